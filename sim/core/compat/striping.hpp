// On which planes MQSim puts a flow's pages.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "../config.hpp"
#include "../geometry.hpp"

namespace iojoule::sim::compat {

inline constexpr std::uint32_t no_plane = UINT32_MAX;

// Where pages go that are read before they are ever written. That is where they would be written to, but
// for DWCP (then none are returned otherwise): there MQSim looks planes up among the ids of the flow's
// dies, and past the end of these it finds 0. A die whose number no plane has leads nowhere.
inline std::vector<std::uint32_t> planes_of_first_reads(const Geometry& geometry, FlowConfig flow,
                                                        const std::string& letters) {
  if (letters != "DWCP") return {};
  const std::vector<std::uint32_t> plane_ids = flow.plane_ids;
  std::vector<std::uint32_t> found(plane_ids.size(), 0);
  std::copy_n(flow.die_ids.begin(), std::min(found.size(), flow.die_ids.size()), found.begin());
  if (found == plane_ids) return {};
  const auto exists = [&](std::uint32_t id) { return id < geometry.planes_per_die; };
  std::transform(found.begin(), found.end(), flow.plane_ids.begin(),
                 [&](std::uint32_t id) { return exists(id) ? id : 0; });
  std::vector<std::uint32_t> planes = striped_planes(geometry, flow, letters);
  const std::size_t of_each = planes.size() / plane_ids.size();  // the plane varies last
  for (std::size_t i = 0; i < planes.size(); ++i) {
    if (!exists(found[i / of_each])) planes[i] = no_plane;
  }
  return planes;
}

}  // namespace iojoule::sim::compat
