#include "trace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "error.hpp"

namespace iojoule::sim {
namespace {

constexpr std::size_t columns = 5;
constexpr std::size_t quoted_characters = 24;
using Line = std::array<std::string_view, columns>;

// Text of a file fit for a message: short and printable whatever the file holds.
std::string quoted(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown = "'";
  for (const char character : text.substr(0, quoted_characters)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f) {
      shown += character;
    } else {
      shown.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
    }
  }
  return shown + (text.size() > quoted_characters ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  bool next(TraceRecord& record) {
    std::string_view line;
    std::size_t tokens = 0;
    const std::size_t before = line_;
    do {
      if (rest_.empty()) return false;
      line = take_line();
      tokens = split(line);
    } while (tokens == 0);
    if (line_ > before + 1) {
      fail(before + 1, "the line is empty but requests follow it; remove it");
    }
    if (tokens != columns) {
      fail(line_, "has " + std::string(tokens > columns ? "more than 5" : std::to_string(tokens)) +
                      " columns, not 5 (arrival in ns, device, first sector, sectors, type): " +
                      quoted(line));
    }
    record.arrival_ns = number(0, "the arrival in ns", trace_arrival_limit_ns);
    record.start_sector = number(2, "the first sector", trace_sector_limit);
    record.sectors =
        static_cast<std::uint32_t>(number(3, "the number of sectors", trace_sectors_limit));
    record.is_read = number(4, "the type (0 write, else read)", UINT32_MAX) != 0;
    if (record.sectors == 0) fail(line_, "the request has 0 sectors; remove the line");
    if (record.arrival_ns < last_arrival_ns_) {
      fail(line_, "the arrival goes back from " + std::to_string(last_arrival_ns_) + " to " +
                      std::to_string(record.arrival_ns) + " ns; sort the file by its first column");
    }
    last_arrival_ns_ = record.arrival_ns;
    return true;
  }

  [[noreturn]] void fail(std::size_t line, const std::string& message) const {
    throw TraceError(path_, line, message);
  }

 private:
  std::string_view take_line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  // Fills tokens_ with the first five; returns how many there are, 6 for more than five.
  std::size_t split(std::string_view line) {
    std::size_t count = 0;
    std::size_t i = 0;
    const auto blank = [](char character) { return character == ' ' || character == '\t'; };
    while (true) {
      while (i < line.size() && blank(line[i])) ++i;
      if (i == line.size()) return count;
      const std::size_t start = i;
      while (i < line.size() && !blank(line[i])) ++i;
      if (count == columns) return columns + 1;
      tokens_[count++] = line.substr(start, i - start);
    }
  }

  std::uint64_t number(std::size_t column, const char* what, std::uint64_t limit) const {
    const std::string_view token = tokens_[column];
    const char* const end = token.data() + token.size();
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(token.data(), end, value);
    if (error == std::errc::invalid_argument || stop != end) {
      fail(line_, std::string(what) + " is not a whole number: " + quoted(token));
    }
    if (error != std::errc() || value > limit) {
      fail(line_, std::string(what) + " is beyond " + std::to_string(limit) + ": " + quoted(token));
    }
    return value;
  }

  std::string_view rest_;
  const std::string& path_;
  Line tokens_{};
  std::size_t line_ = 0;
  std::uint64_t last_arrival_ns_ = 0;
};

void check_memory(std::size_t bytes, const std::string& path, const Limits& limits) {
  if (bytes > limits.memory_bytes) {
    throw LimitError("memory_bytes", path + ": the trace needs " + std::to_string(bytes) +
                                         " bytes of memory, more than the limit of " +
                                         std::to_string(limits.memory_bytes) +
                                         "; raise the limit or split the trace");
  }
}

struct CloseFile {
  int descriptor;
  ~CloseFile() { ::close(descriptor); }
};

[[noreturn]] void fail_to_read(const std::string& path) {
  throw TraceError(path, 0, std::string("cannot be read: ") + std::strerror(errno));
}

}  // namespace

std::vector<TraceRecord> parse_trace(std::string_view text, const std::string& path,
                                     const Limits& limits) {
  const auto newlines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  check_memory(text.size() + (newlines + 1) * sizeof(TraceRecord), path, limits);
  std::vector<TraceRecord> records;
  records.reserve(newlines + 1);
  Parser parser(text, path);
  TraceRecord record{};
  while (parser.next(record)) records.push_back(record);
  if (records.empty()) parser.fail(0, "holds no request");
  return records;
}

std::vector<TraceRecord> read_trace(const std::string& path, const Limits& limits) {
  // O_NONBLOCK: opening a pipe must not wait for somebody to write into it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail_to_read(path);
  const CloseFile closing{descriptor};
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_to_read(path);
  if (!S_ISREG(status.st_mode)) throw TraceError(path, 0, "is not a file");
  const auto size = static_cast<std::size_t>(status.st_size);
  check_memory(size, path, limits);
  const auto text = std::make_unique_for_overwrite<char[]>(size);
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t got = ::read(descriptor, text.get() + filled, size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(path);
    if (got == 0) break;  // somebody made the file shorter meanwhile
    filled += static_cast<std::size_t>(got);
  }
  return parse_trace({text.get(), filled}, path, limits);
}

}  // namespace iojoule::sim
