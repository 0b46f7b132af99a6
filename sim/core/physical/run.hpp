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

// Runs the flows against a drive that works: dies in parallel, real rates, energy, power states.
//
// Throws ConfigError before anything is simulated, TraceError, LimitError, ModelError or Cancelled.
RunResult run(const DeviceConfig& device, const std::vector<FlowConfig>& flows,
              const Limits& limits, Control& control, std::uint64_t series_step_ns);

}  // namespace iojoule::sim::physical
