// On which planes MQSim puts a flow's pages.
#pragma once

#include <string>
#include <vector>

#include "../config.hpp"
#include "../error.hpp"
#include "../geometry.hpp"

namespace iojoule::sim::compat {

// As striped_planes, but for DWCP: there MQSim looks planes up among the ids of the flow's dies, and
// past the end of these it finds 0.
inline std::vector<std::uint32_t> striped_planes_or_dies(const Geometry& geometry, FlowConfig flow,
                                                         const std::string& letters) {
  if (letters == "DWCP") {
    for (std::size_t i = 0; i < flow.plane_ids.size(); ++i) {
      flow.plane_ids[i] = i < flow.die_ids.size() ? flow.die_ids[i] : 0;
      if (flow.plane_ids[i] >= geometry.planes_per_die) {
        throw ConfigError("die_ids", "with the plane allocation DWCP MQSim takes die " +
                                         std::to_string(flow.plane_ids[i]) + " for a plane, of which there are " +
                                         std::to_string(geometry.planes_per_die) + "; use another allocation");
      }
    }
  }
  return striped_planes(geometry, flow, letters);
}

}  // namespace iojoule::sim::compat
