// What MQSim's front ends make of the flows: the streams that the drive knows.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "../config.hpp"

namespace iojoule::sim::compat {

// The flows with the ids that count. With SATA MQSim gives every flow the whole drive, whatever it
// lists, and so to each the same share of it.
inline std::vector<FlowConfig> flows_as_laid_out(const DeviceConfig& device, std::vector<FlowConfig> flows) {
  if (device.host_interface == HostInterface::nvme) return flows;
  const auto all = [](std::uint32_t count) {
    std::vector<std::uint32_t> ids(count);
    std::iota(ids.begin(), ids.end(), 0U);
    return ids;
  };
  for (FlowConfig& flow : flows) {
    flow.channel_ids = all(device.channels);
    flow.chip_ids = all(device.chips_per_channel);
    flow.die_ids = all(device.dies_per_chip);
    flow.plane_ids = all(device.planes_per_die);
  }
  return flows;
}

// With NVMe each flow is a stream. SATA has one for all of them, of class HIGH, cached as the first
// flow says (mqsim.md, 1.2).
inline std::vector<FlowConfig> streams_of(const DeviceConfig& device, const std::vector<FlowConfig>& flows) {
  if (device.host_interface == HostInterface::nvme) return flows;
  std::vector<FlowConfig> streams = flows_as_laid_out(device, {flows.front()});
  streams.front().priority = Priority::high;
  return streams;
}

}  // namespace iojoule::sim::compat
