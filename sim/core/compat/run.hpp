// MQSim's device behind the simulator's one entry.
#pragma once

#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "../control.hpp"
#include "../result.hpp"

namespace iojoule::sim::compat {

// See simulate.hpp. The result is MQSim's, to the nanosecond.
RunResult run(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
              Control& control, std::uint64_t series_step_ns, bool with_queues);

}  // namespace iojoule::sim::compat
