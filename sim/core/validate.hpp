// What can be simulated at all: every range that the models rely on, checked before anything is made.
// The range of a field by itself stands with its declaration (record.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config.hpp"

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

}  // namespace iojoule::sim
