// In which order the flows start at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "../config.hpp"
#include "../geometry.hpp"

namespace iojoule::sim::compat {

// MQSim starts its objects in the order of an unordered_map from their names, in which the flows come
// last. So the order depends on how many chips there are: a map of libstdc++ puts a new bucket first, a
// name that shares a bucket in front of that one's others, and turns round at each growth. Traces have
// the names that MqsimEngine gives them: where a file lies changes nothing.
inline std::vector<std::uint32_t> start_order(const Geometry& geometry, const std::vector<FlowConfig>& flows) {
  constexpr std::uint32_t no_flow = UINT32_MAX;
  std::unordered_map<std::string, std::uint32_t> objects;
  objects.emplace("SSDDevice", no_flow);
  for (std::uint32_t channel = 0; channel < geometry.channels; ++channel) {
    for (std::uint32_t chip = 0; chip < geometry.chips_per_channel; ++chip) {
      objects.emplace("SSDDevice.Channel." + std::to_string(channel) + ".Chip." + std::to_string(chip), no_flow);
    }
  }
  for (const char* part : {"SSDDevice.PHY", "SSDDevice.FTL", "SSDDevice.FTL.TSU", "SSDDevice.FTL.AddressMappingUnit",
                           "SSDDevice.FTL.GCandWLUnit", "SSDDevice.DataCache", "SSDDevice.HostInterface", "Host",
                           "Host.PCIeLink"}) {
    objects.emplace(part, no_flow);
  }
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    const std::string number = std::to_string(i);
    const bool is_trace = flows[i].kind == FlowKind::trace;
    objects.emplace("Host.IO_Flow." + (is_trace ? "Trace.flow_" + number + ".trace" : "Synth.No_" + number), i);
  }
  std::vector<std::uint32_t> order;
  for (const auto& [name, flow] : objects) {
    if (flow != no_flow) order.push_back(flow);
  }
  return order;
}

}  // namespace iojoule::sim::compat
