// Where things are on the drive: planes in one row, sectors of each flow, striping of its pages.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "config.hpp"

namespace iojoule::sim {

inline constexpr std::uint32_t sector_bytes = 512;

// A plane's place. Planes are numbered channel-major: channel, chip, die, plane.
struct PlaneAddress {
  std::uint32_t channel, chip, die, plane;
};

struct Geometry {
  explicit Geometry(const DeviceConfig& device)
      : channels(device.channels),
        chips_per_channel(device.chips_per_channel),
        dies_per_chip(device.dies_per_chip),
        planes_per_die(device.planes_per_die),
        blocks_per_plane(device.blocks_per_plane),
        pages_per_block(device.pages_per_block),
        sectors_per_page(device.page_bytes / sector_bytes) {}

  std::uint32_t channels, chips_per_channel, dies_per_chip, planes_per_die;
  std::uint32_t blocks_per_plane, pages_per_block, sectors_per_page;

  std::uint32_t chips() const { return channels * chips_per_channel; }
  std::uint32_t dies() const { return chips() * dies_per_chip; }
  std::uint32_t planes() const { return dies() * planes_per_die; }
  std::uint32_t pages_per_plane() const { return blocks_per_plane * pages_per_block; }
  std::uint64_t physical_pages() const {
    return static_cast<std::uint64_t>(planes()) * pages_per_plane();
  }

  std::uint32_t plane_index(const PlaneAddress& at) const {
    return ((at.channel * chips_per_channel + at.chip) * dies_per_chip + at.die) * planes_per_die +
           at.plane;
  }
  PlaneAddress plane_address(std::uint32_t index) const {
    PlaneAddress at{};
    at.plane = index % planes_per_die;
    index /= planes_per_die;
    at.die = index % dies_per_chip;
    index /= dies_per_chip;
    at.chip = index % chips_per_channel;
    at.channel = index / chips_per_channel;
    return at;
  }
};

// The planes of one flow in the order in which its logical pages go round them: page p lives on
// planes[p % planes.size()]. The letters of plane_allocation name channel, way (chip), die and
// plane; the first varies fastest (mqsim.md, 3.6).
inline std::vector<std::uint32_t> striped_planes(const Geometry& geometry, const FlowConfig& flow,
                                                 const std::string& letters) {
  struct Axis {
    const std::vector<std::uint32_t>* ids;
    std::uint32_t PlaneAddress::*member;
  };
  std::vector<Axis> axes;
  for (const char letter : letters) {
    switch (letter) {
      case 'C': axes.push_back({&flow.channel_ids, &PlaneAddress::channel}); break;
      case 'W': axes.push_back({&flow.chip_ids, &PlaneAddress::chip}); break;
      case 'D': axes.push_back({&flow.die_ids, &PlaneAddress::die}); break;
      default: axes.push_back({&flow.plane_ids, &PlaneAddress::plane}); break;
    }
  }
  std::size_t count = 1;
  for (const Axis& axis : axes) count *= axis.ids->size();
  std::vector<std::uint32_t> planes(count);
  for (std::size_t i = 0; i < count; ++i) {
    PlaneAddress at{};
    std::size_t rest = i;
    for (const Axis& axis : axes) {
      at.*axis.member = (*axis.ids)[rest % axis.ids->size()];
      rest /= axis.ids->size();
    }
    planes[i] = geometry.plane_index(at);
  }
  return planes;
}

// A flow's share of the drive. Sectors start at 0 for the first flow and go on from flow to flow;
// a plane's logical space is split evenly among the flows that list it (mqsim.md, 1.4).
struct FlowSpace {
  std::uint64_t first_sector = 0, sectors = 0;
  std::vector<std::uint32_t> planes;  // in striping order
};

inline std::vector<FlowSpace> flow_spaces(const DeviceConfig& device, const Geometry& geometry,
                                          const std::vector<FlowConfig>& flows) {
  std::vector<FlowSpace> spaces(flows.size());
  std::vector<std::uint32_t> sharers(geometry.planes(), 0);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    spaces[i].planes = striped_planes(geometry, flows[i], device.plane_allocation);
    for (const std::uint32_t plane : spaces[i].planes) ++sharers[plane];
  }
  const auto plane_sectors =
      static_cast<double>(std::uint64_t{geometry.pages_per_plane()} * geometry.sectors_per_page);
  std::uint64_t next = 0;
  for (FlowSpace& space : spaces) {
    space.first_sector = next;
    for (const std::uint32_t plane : space.planes) {
      space.sectors += static_cast<std::uint64_t>(plane_sectors * (1.0 - device.overprovisioning_ratio) /
                                                  sharers[plane]);
    }
    next += space.sectors;
  }
  return spaces;
}

}  // namespace iojoule::sim
