#include "rows.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace iojoule::traces {
namespace {

constexpr std::size_t quoted_characters = 80;
constexpr std::int64_t limit = std::int64_t{1} << 62;
constexpr std::int64_t size_limit = std::int64_t{1} << 32;

bool blank(char character) { return character == ' ' || character == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// A whole number without a sign, below 2^62 after the unit; false where it is none.
bool whole(std::string_view token, std::int64_t unit, std::int64_t& value) {
  if (token.empty() || token.size() > 19) return false;
  std::uint64_t sum = 0;
  for (const char character : token) {
    const auto digit = static_cast<unsigned>(character - '0');
    if (digit > 9) return false;
    sum = sum * 10 + digit;
  }
  if (sum > static_cast<std::uint64_t>(limit / unit)) return false;
  value = static_cast<std::int64_t>(sum) * unit;
  return true;
}

bool one_of(std::string_view token, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word.size() == token.size() &&
           std::equal(word.begin(), word.end(), token.begin(), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + ('a' - 'A')) : b);
           });
  });
}

}  // namespace

void RowParser::feed(std::string_view text, Rows& rows) {
  while (!text.empty() && defect_ == Defect::none && !ended_) {
    const auto* found = static_cast<const char*>(std::memchr(text.data(), '\n', text.size()));
    const std::size_t end = found ? static_cast<std::size_t>(found - text.data()) : text.size();
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (layout_.comment && line.front() == layout_.comment) ||
        trimmed(line).empty()) {
      continue;
    }
    switch (layout_.dialect) {
      case Dialect::table: defect_ = table_row(line, rows); break;
      case Dialect::blkparse: defect_ = blkparse_row(line, rows); break;
      default: defect_ = iolog_row(line, rows);
    }
    if (defect_ != Defect::none) defect_text_ = line.substr(0, quoted_characters);
  }
}

int RowParser::split(std::string_view line) {
  int count = 0;
  if (layout_.separator != ' ') {
    while (count < tokens_limit) {
      const auto* found =
          static_cast<const char*>(std::memchr(line.data(), layout_.separator, line.size()));
      const std::size_t end = found ? static_cast<std::size_t>(found - line.data()) : line.size();
      tokens_[static_cast<std::size_t>(count++)] = trimmed(line.substr(0, end));
      if (!found) return count;
      line.remove_prefix(end + 1);
    }
    return tokens_limit + 1;
  }
  std::size_t i = 0;
  while (true) {
    while (i < line.size() && blank(line[i])) ++i;
    if (i == line.size()) return count;
    if (count == tokens_limit) return tokens_limit + 1;
    const std::size_t start = i;
    while (i < line.size() && !blank(line[i])) ++i;
    tokens_[static_cast<std::size_t>(count++)] = line.substr(start, i - start);
  }
}

std::string_view RowParser::token(int column, int count) const {
  if (layout_.elastic >= 0 && column > layout_.elastic) column += count - layout_.columns_max;
  return tokens_[static_cast<std::size_t>(column)];
}

bool RowParser::time_of(std::string_view text, std::int64_t& ns) const {
  std::string_view fraction;
  if (const std::size_t point = text.find('.');
      layout_.time_fraction && point != std::string_view::npos) {
    fraction = text.substr(point + 1);
    text = text.substr(0, point);
    if (fraction.empty() || fraction.size() > 12) return false;
  }
  std::int64_t units = 0;
  if (!whole(text, 1, units)) return false;
  units -= layout_.time_origin;
  const std::int64_t unit = layout_.time_unit_ps;
  if (unit >= 1000) {
    if (units > limit / (unit / 1000) || units < -(limit / (unit / 1000))) return false;
    ns = units * (unit / 1000);
  } else {
    ns = units / (1000 / unit);
  }
  if (!fraction.empty()) {
    std::int64_t parts = 0;
    if (!whole(fraction, 1, parts)) return false;
    // at most 10^12 parts of at most 1000 s in ps: the product needs more than 64 bits
    double share = static_cast<double>(parts);
    for (std::size_t i = 0; i < fraction.size(); ++i) share /= 10;
    ns += static_cast<std::int64_t>(share * (static_cast<double>(unit) / 1000) + 0.5);
  }
  return true;
}

void RowParser::note(Oddity kind) {
  Seen& seen = odd_[static_cast<std::size_t>(kind)];
  if (seen.count++ == 0) seen.first = line_;
}

std::uint32_t RowParser::volume_id(std::string_view name) {
  std::uint32_t* known = nullptr;
  if (!name.empty() && name.size() <= 4 && (name.size() == 1 || name.front() != '0')) {
    std::size_t number = 0;
    bool digits = true;
    for (const char character : name) {
      digits = digits && character >= '0' && character <= '9';
      number = number * 10 + static_cast<std::size_t>(character - '0');
    }
    if (digits) known = &number_ids_[number];
  }
  if (known && *known) return *known - 1;
  const auto [place, added] =
      ids_.try_emplace(std::string(name), static_cast<std::uint32_t>(volumes_.size()));
  if (added) volumes_.emplace_back(name);
  if (known) *known = place->second + 1;
  return place->second;
}

void RowParser::add(Rows& rows, std::int64_t time, std::int64_t offset, std::int64_t size,
                    bool write, std::uint32_t volume) {
  rows.arrival_ns.push_back(time);
  rows.offset_bytes.push_back(offset);
  rows.size_bytes.push_back(size);
  rows.is_write.push_back(write ? 1 : 0);
  rows.volume.push_back(volume);
  rows.line.push_back(line_);
}

Defect RowParser::table_row(std::string_view line, Rows& rows) {
  const int count = split(line);
  const bool fits = count >= layout_.columns_min &&
                    (layout_.elastic >= 0 || count <= layout_.columns_max) && count <= tokens_limit;
  if (!fits) return Defect::columns;
  std::int64_t time = 0, offset = 0, size = 0;
  if (!time_of(token(layout_.time, count), time)) return Defect::time;
  if (!whole(token(layout_.offset, count), layout_.offset_unit, offset)) return Defect::offset;
  if (!whole(token(layout_.size, count), layout_.size_unit, size) || size >= size_limit) {
    return Defect::size;
  }
  const std::string_view op = token(layout_.op, count);
  const bool write = one_of(op, layout_.writes);
  if (!write && !one_of(op, layout_.reads)) {
    if (!one_of(op, layout_.ignored)) return Defect::operation;
    note(Oddity::ignored);
    return Defect::none;
  }
  if (size == 0) {
    note(Oddity::empty);
    return Defect::none;
  }
  std::uint32_t volume = 0;
  if (layout_.volume_2 >= 0) {
    std::string name(token(layout_.volume, count));
    name += layout_.volume_joint;
    volume = volume_id(name.append(token(layout_.volume_2, count)));
  } else if (layout_.volume >= 0) {
    volume = volume_id(token(layout_.volume, count));
  } else {
    volume = volume_id("0");
  }
  add(rows, time, offset, size, write, volume);
  return Defect::none;
}

// maj,min cpu seq s.ns pid action rwbs sector + n ...; a summary follows the events.
Defect RowParser::blkparse_row(std::string_view line, Rows& rows) {
  const std::string_view shown = trimmed(line);
  for (const std::string_view end : {"CPU", "Total (", "Throughput (", "Events ("}) {
    if (shown.starts_with(end)) {
      ended_ = true;
      return Defect::none;
    }
  }
  const int count = std::min(split(line), tokens_limit);
  if (count < 6 || tokens_[0].find(',') == std::string_view::npos) return Defect::columns;
  std::int64_t time = 0, number = 0;
  if (!time_of(tokens_[3], time)) return Defect::time;
  if (!whole(tokens_[1], 1, number) || !whole(tokens_[2], 1, number)) return Defect::columns;
  const std::string_view action = tokens_[5];
  if (action.empty() || action.size() > 2) return Defect::operation;
  if (action.size() != 1 || action.front() != layout_.action) return Defect::none;
  if (count < 7) return Defect::operation;
  std::string_view does = tokens_[6];
  if (does.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string_view::npos) {
    return Defect::operation;
  }
  if (does.starts_with('F')) {
    note(Oddity::flush);
    does.remove_prefix(1);
  }
  const bool data = count >= 10 && tokens_[8] == "+";
  if (does.starts_with('D')) {
    note(Oddity::discard);
  } else if (!does.starts_with('R') && !does.starts_with('W')) {
    note(Oddity::ignored);
  } else if (!data) {
    // a flush may say W and have no data; others move none either
    note(Oddity::empty);
  } else {
    std::int64_t offset = 0, size = 0;
    if (!whole(tokens_[7], 512, offset)) return Defect::offset;
    if (!whole(tokens_[9], 512, size) || size >= size_limit) return Defect::size;
    if (size == 0) {
      note(Oddity::empty);
    } else {
      add(rows, time, offset, size, does.front() == 'W', volume_id(tokens_[0]));
    }
  }
  return Defect::none;
}

// Version 2: file action [offset length], with waits; version 3: time file action [offset length].
Defect RowParser::iolog_row(std::string_view line, Rows& rows) {
  if (line_ == 1) return Defect::none;  // the first line names the version
  int count = split(line), first = 0;
  std::int64_t time = waited_ns_;
  if (layout_.dialect == Dialect::fio_iolog_3) {
    if (count < 1 || !time_of(tokens_[0], time)) return Defect::time;
    first = 1;
  }
  count -= first;
  const auto word = [&](int i) { return tokens_[static_cast<std::size_t>(first + i)]; };
  if (count != 2 && count != 4) return Defect::columns;
  const std::string_view action = word(1);
  if (count == 2) {
    return one_of(action, {"add", "open", "close", "unlink"}) ? Defect::none : Defect::operation;
  }
  std::int64_t offset = 0, size = 0;
  if (!whole(word(2), 1, offset)) return Defect::offset;
  if (!whole(word(3), 1, size) || (size >= size_limit && action != "wait")) return Defect::size;
  if (action == "wait") {
    // the offset's place holds the time
    if (!time_of(word(2), time) || time > limit - waited_ns_) return Defect::time;
    waited_ns_ += time;
  } else if (action == "sync" || action == "datasync") {
    note(Oddity::flush);
  } else if (action == "trim") {
    note(Oddity::discard);
  } else if (action != "read" && action != "write") {
    return Defect::operation;
  } else if (size == 0) {
    note(Oddity::empty);
  } else {
    add(rows, time, offset, size, action == "write", volume_id(word(0)));
  }
  return Defect::none;
}

}  // namespace iojoule::traces
