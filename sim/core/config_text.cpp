#include "config_text.hpp"

#include <array>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <vector>

#include "error.hpp"
#include "names.hpp"
#include "physical/names.hpp"

namespace iojoule::sim {
namespace {

template <class Io, class Record>
void visit(Io& io, Record& record) {
  Record::fields([&](std::string_view name, auto member, const auto&) { io.field(name, record.*member); });
}

template <class Value>
inline constexpr bool is_text = std::is_same_v<Value, std::string>;
template <class Value>
inline constexpr bool is_number = std::is_arithmetic_v<Value>;

class Writer {
 public:
  template <class Value>
  void field(std::string_view name, Value& value) {
    const std::string outer = path_;
    if (!path_.empty()) path_ += '.';
    path_ += name;
    put(value);
    path_ = outer;
  }

  std::string text() const { return text_.str(); }

 private:
  template <class Value>
  void put(Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      line(value ? "true" : "false");
    } else if constexpr (is_number<Value>) {
      std::array<char, 40> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
      line({digits.data(), end});
    } else if constexpr (std::is_enum_v<Value>) {
      line(name_of(value));
    } else if constexpr (is_text<Value>) {
      line(value);
    } else {
      visit(*this, value);
    }
  }
  template <class Each, std::size_t size>
  void put(std::array<Each, size>& values) {
    for (std::size_t i = 0; i < size; ++i) field(std::to_string(i), values[i]);
  }
  template <class Each>
  void put(std::vector<Each>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) field(std::to_string(i), values[i]);
  }
  void line(std::string_view value) { text_ << path_ << ' ' << value << '\n'; }

  std::string path_;
  std::ostringstream text_;
};

class Reader {
 public:
  explicit Reader(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      const std::size_t space = line.find(' ');
      if (space == std::string::npos) throw ConfigError(line, "has no value");
      values_[line.substr(0, space)] = line.substr(space + 1);
    }
  }

  template <class Value>
  void field(std::string_view name, Value& value) {
    const std::string outer = path_;
    if (!path_.empty()) path_ += '.';
    path_ += name;
    get(value);
    path_ = outer;
  }

  void refuse_rest() const {
    if (!values_.empty()) throw ConfigError(values_.begin()->first, "is no field of a drive");
  }

 private:
  template <class Value>
  void get(Value& value) {
    if constexpr (is_number<Value> || std::is_enum_v<Value> || is_text<Value>) {
      const auto found = values_.find(path_);
      if (found == values_.end()) return;
      const std::string word = found->second;
      values_.erase(found);
      read(word, value);
    } else {
      visit(*this, value);
    }
  }
  template <class Each, std::size_t size>
  void get(std::array<Each, size>& values) {
    for (std::size_t i = 0; i < size; ++i) field(std::to_string(i), values[i]);
  }
  // As many elements as there are lines for.
  template <class Each>
  void get(std::vector<Each>& values) {
    values.clear();
    for (std::size_t i = 0; has(std::to_string(i)); ++i) {
      values.emplace_back();
      field(std::to_string(i), values.back());
    }
  }
  bool has(const std::string& element) const {
    const std::string prefix = path_ + "." + element + ".";
    const auto next = values_.lower_bound(prefix);
    return next != values_.end() && next->first.compare(0, prefix.size(), prefix) == 0;
  }

  template <class Value>
  void read(const std::string& word, Value& value) const {
    bool known = false;
    if constexpr (std::is_same_v<Value, bool>) {
      known = word == "true" || word == "false";
      value = word == "true";
    } else if constexpr (is_number<Value>) {
      const char* end = word.data() + word.size();
      const auto told = std::from_chars(word.data(), end, value);
      known = told.ec == std::errc() && told.ptr == end;
    } else if constexpr (std::is_enum_v<Value>) {
      for (std::size_t i = 0; i < names_of<Value>.size(); ++i) {
        if (names_of<Value>[i] != word) continue;
        value = static_cast<Value>(i);
        known = true;
      }
    } else {
      value = word;
      known = true;
    }
    if (!known) throw ConfigError(path_, "cannot be read: " + word);
  }

  std::string path_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::string write_drive_text(const DeviceConfig& device) {
  DeviceConfig copy = device;  // the reader's way through the fields cannot be const
  Writer writer;
  visit(writer, copy);
  return writer.text();
}

DeviceConfig read_drive_text(const std::string& text) {
  DeviceConfig device;
  Reader reader(text);
  visit(reader, device);
  reader.refuse_rest();
  return device;
}

}  // namespace iojoule::sim
