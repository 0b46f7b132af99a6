// Records of parameters. Each parameter is declared once, by its type, name, range and default; from
// that come the member, the check of its range, its line in a drive's text and its name in Python.
//
//   #define LINK_OPTIONS(FIELD) FIELD(std::uint64_t, latency_ns, step, 0) ...
//   IOJOULE_RECORD(LinkOptions, LINK_OPTIONS);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.hpp"

namespace iojoule::sim {

inline constexpr std::uint64_t step_limit_ns = 1'000'000'000'000;        // 1000 s
inline constexpr std::uint64_t run_limit_ns = 1'000'000'000'000'000'000;  // 31 years

// Checks the fields of one structure; `prefix` stands before their names in errors.
class FieldCheck {
 public:
  explicit FieldCheck(std::string prefix) : prefix_(std::move(prefix)) {}

  // `why` says what the range comes from. A NaN is in no range.
  template <class Value>
  void within(std::string_view field, Value value, Value low, Value high, std::string_view why) const {
    if (value >= low && value <= high) return;
    std::ostringstream message;
    message << "is " << value << ", but must be " << low << " to " << high << ": " << why;
    fail(field, message.str());
  }

  void that(bool holds, std::string_view field, const std::string& message) const {
    if (!holds) fail(field, message);
  }

  [[noreturn]] void fail(std::string_view field, const std::string& message) const {
    throw ConfigError(prefix_ + std::string(field), message);
  }

 private:
  std::string prefix_;
};

// --- ranges --------------------------------------------------------------------------------------

namespace ranges {

template <class Number>
struct Range {
  Number low, high;
  std::string_view why;
};

template <class Number>
constexpr Range<Number> within(Number low, Number high, std::string_view why) {
  return {low, high, why};
}

// Whatever the type holds; `validate` looks at it beside other fields, if at all.
struct AnyValue {};
inline constexpr AnyValue any;

inline constexpr auto step = within(std::uint64_t{0}, step_limit_ns, "no step of a drive takes longer than 1000 s");
inline constexpr auto run_time = within(std::uint64_t{0}, run_limit_ns, "runs are shorter than 31 years");
inline constexpr auto percent = within(0U, 100U, "it is a percentage");
inline constexpr auto fraction = within(0.0, 1.0, "it is a fraction of the blocks");
inline constexpr auto seed_range = within(std::int64_t{INT32_MIN}, std::int64_t{INT32_MAX}, "a seed has 32 bits with sign");
inline constexpr auto joules = within(0.0, 1.0, "one operation takes micro- to millijoules");
inline constexpr auto joules_per_byte = within(0.0, 1e-3, "moving a byte takes nanojoules");
inline constexpr auto watts = within(0.0, 1000.0, "drives draw up to some dozen watts");

}  // namespace ranges

template <class Value>
void check_range(std::string_view, const Value&, ranges::AnyValue, const FieldCheck&) {}

template <class Value, class Number>
void check_range(std::string_view field, const Value& value, const ranges::Range<Number>& range,
                 const FieldCheck& check) {
  check.within<Value>(field, value, static_cast<Value>(range.low), static_cast<Value>(range.high),
                      range.why);
}

template <class Value, std::size_t size, class Number>
void check_range(std::string_view field, const std::array<Value, size>& values,
                 const ranges::Range<Number>& range, const FieldCheck& check) {
  for (const Value& value : values) check_range(field, value, range, check);
}

// Throws ConfigError with the first field of the record that is out of its range.
template <class Record>
void check_ranges(const Record& record, const FieldCheck& check) {
  Record::fields([&](std::string_view name, auto member, const auto& range) {
    check_range(name, record.*member, range, check);
  });
}

// --- declarations --------------------------------------------------------------------------------

#define IOJOULE_MEMBER(type, name, range, ...) type name = __VA_ARGS__;
#define IOJOULE_FIELD(type, name, range, ...) visit(#name, &Self::name, range);

// The struct `Name` with the members of `FIELDS`, and `fields`, which calls visit(name, pointer to
// the member, range) for each of them in order.
#define IOJOULE_RECORD(Name, FIELDS)    \
  struct Name {                         \
    FIELDS(IOJOULE_MEMBER)              \
    using Self = Name;                  \
    template <class Visit>              \
    static void fields(Visit&& visit) { \
      using namespace ranges;           \
      FIELDS(IOJOULE_FIELD)             \
    }                                   \
  }

}  // namespace iojoule::sim
