// The entry to physical mode.
#pragma once

#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "../control.hpp"
#include "../result.hpp"

namespace iojoule::sim::physical {

// What a run asks of its drive, beyond validate. Throws ConfigError or LimitError.
void check(const DeviceConfig& device, const Limits& limits);

// One flow over the whole drive, for requests that come from outside.
FlowConfig whole_drive(const DeviceConfig& device);

// Runs the flows against a drive that works: dies in parallel, real rates, energy, power states.
//
// Throws ConfigError before anything is simulated, TraceError, LimitError, ModelError or Cancelled.
// With `ahead` work is committed when it comes, where that is certain: the fast engine.
RunResult run(const DeviceConfig& device, const std::vector<FlowConfig>& flows,
              const Limits& limits, Control& control, std::uint64_t series_step_ns,
              bool ahead = false);

}  // namespace iojoule::sim::physical
