// The one entry to the simulator: configuration in, result out.
#pragma once

#include <cstdint>
#include <vector>

#include "config.hpp"
#include "control.hpp"
#include "result.hpp"

namespace iojoule::sim {

// Runs the flows against the drive in device.mode until nothing is left to do. Holds no state
// between calls: any number may run at the same time. A series_step_ns of 0 asks for no time series;
// queues of transactions are measured, and told, where the mode has them and `with_queues` is true.
//
// Throws ConfigError before anything is simulated, TraceError, LimitError, ModelError or Cancelled.
RunResult simulate(const DeviceConfig& device, const std::vector<FlowConfig>& flows,
                   const Limits& limits, Control& control, std::uint64_t series_step_ns = 0,
                   bool with_queues = false, bool ahead = false);

}  // namespace iojoule::sim
