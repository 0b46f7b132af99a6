// What can be simulated at all: every range that the models rely on, checked before anything is made.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config.hpp"
#include "error.hpp"

namespace iojoule::sim {

// Throws ConfigError with the first field that is out of its range in device.mode, or LimitError
// when the drive's tables could come to need more than limits.memory_bytes.
void validate(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
              std::uint64_t series_step_ns);

// What the tables of the drive need when all of it has been used, in bytes.
std::uint64_t table_bytes(const DeviceConfig& device, const std::vector<FlowConfig>& flows);

// Part of validate: the options of physical mode.
void validate_physical(const DeviceConfig& device);
void validate_host(const FlowConfig& flow, const std::string& name);

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

}  // namespace iojoule::sim
