// Numbers for places: physical units, pages, blocks, planes, dies; logical units of the flows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../config.hpp"
#include "../divisor.hpp"
#include "../error.hpp"
#include "../geometry.hpp"

namespace iojoule::sim::physical {

inline constexpr std::uint32_t none = UINT32_MAX;

// A mapping unit is what one entry of the mapping table stands for; a page holds `units_per_page`.
// Physical units count page by page, block by block, plane by plane; logical units flow by flow.
struct Layout {
  Layout(const DeviceConfig& device, const std::vector<FlowConfig>& flows);

  Geometry geometry;
  std::uint32_t units_per_page, unit_bytes, unit_sectors;
  std::uint32_t planes, dies, planes_per_die, dies_per_channel, dies_per_chip;
  std::uint32_t blocks_per_plane, pages_per_block, pages_per_plane, page_kinds_used;
  std::uint32_t units_per_block;
  Divisor by_unit;  // of sectors
  Divisor32 by_page, by_block, by_plane, by_die, by_channel, by_chip;  // what many things divide by

  // Each flow's sectors begin and end with a page; its pages go round its planes.
  std::vector<FlowSpace> spaces;
  std::vector<Divisor32> by_lane;  // by how many planes each flow has
  std::vector<std::uint32_t> first_unit;  // of each flow, and the number of all at the end

  std::uint32_t logical_units() const { return first_unit.back(); }
  std::uint32_t unit_of_sector(std::uint64_t sector) const {
    return static_cast<std::uint32_t>(by_unit.quotient(sector));
  }
  std::uint32_t plane_of_page(std::uint32_t page) const { return by_plane.quotient(page); }
  std::uint32_t block_of_page(std::uint32_t page) const { return by_block.quotient(page); }
  std::uint32_t block_of_unit(std::uint32_t physical_unit) const {
    return by_block.quotient(by_page.quotient(physical_unit));
  }
  std::uint32_t page_in_block(std::uint32_t page) const { return by_block.remainder(page); }
  std::uint32_t page_of_unit(std::uint32_t physical_unit) const {
    return by_page.quotient(physical_unit);
  }
  std::uint32_t die_of_plane(std::uint32_t plane) const { return by_die.quotient(plane); }
  std::uint32_t channel_of_die(std::uint32_t die) const { return by_channel.quotient(die); }
  std::uint32_t chip_of_die(std::uint32_t die) const { return by_chip.quotient(die); }

  // The plane that striping gives a flow's unit.
  std::uint32_t striped_plane(std::uint32_t flow, std::uint32_t unit) const {
    return spaces[flow].planes[by_lane[flow].remainder(by_page.quotient(unit - first_unit[flow]))];
  }

  // Lower, centre or upper bit: pages of a block take turns (two kinds in MLC, three in TLC).
  std::uint32_t page_kind(std::uint32_t page) const {
    switch (page_kinds_used) {
      case 1: return 0;
      case 2: return page_in_block(page) % 2 == 0 ? 0 : 2;
      default: return page_in_block(page) % 3;
    }
  }
};

}  // namespace iojoule::sim::physical
