#include "layout.hpp"

namespace iojoule::sim::physical {

namespace {

// Entries of the reverse table keep the upper bit for mapping pages, and 0 for "nothing".
constexpr std::uint64_t units_limit = (1ULL << 31) - 2;

std::uint32_t unit_size(const DeviceConfig& device) {
  const std::uint32_t asked = device.physical.nand.mapping_unit_bytes;
  const std::uint32_t unit = asked == 0 ? device.page_bytes : asked;
  if (unit % sector_bytes != 0 || device.page_bytes % unit != 0) {
    throw ConfigError("physical.nand.mapping_unit_bytes",
                      "is " + std::to_string(unit) + ", but must be a multiple of " +
                          std::to_string(sector_bytes) + " that divides the page of " +
                          std::to_string(device.page_bytes) + " bytes");
  }
  return unit;
}

}  // namespace

Layout::Layout(const DeviceConfig& device, const std::vector<FlowConfig>& flows)
    : geometry(device),
      units_per_page(device.page_bytes / unit_size(device)),
      unit_bytes(unit_size(device)),
      unit_sectors(unit_bytes / sector_bytes),
      planes(geometry.planes()),
      dies(geometry.dies()),
      planes_per_die(device.planes_per_die),
      dies_per_channel(device.chips_per_channel * device.dies_per_chip),
      dies_per_chip(device.dies_per_chip),
      blocks_per_plane(device.blocks_per_plane),
      pages_per_block(device.pages_per_block),
      pages_per_plane(geometry.pages_per_plane()),
      page_kinds_used(static_cast<std::uint32_t>(device.flash_technology) + 1),
      units_per_block(pages_per_block * units_per_page),
      by_unit(unit_sectors),
      by_page(units_per_page),
      by_block(pages_per_block),
      by_plane(pages_per_plane),
      by_die(planes_per_die),
      by_channel(dies_per_channel),
      by_chip(dies_per_chip) {
  if (geometry.physical_pages() * units_per_page > units_limit) {
    throw ConfigError("blocks_per_plane",
                      "the drive has " + std::to_string(geometry.physical_pages() * units_per_page) +
                          " mapping units, but physical mode numbers at most " +
                          std::to_string(units_limit) +
                          "; make the drive smaller or physical.nand.mapping_unit_bytes larger");
  }
  spaces = flow_spaces(device, geometry, flows);
  std::uint64_t next_sector = 0;
  for (FlowSpace& space : spaces) {
    space.first_sector = next_sector;
    by_lane.emplace_back(static_cast<std::uint32_t>(space.planes.size()));
    const std::uint64_t row = space.planes.size() * geometry.sectors_per_page;
    space.sectors -= space.sectors % row;
    if (space.sectors == 0) {
      throw ConfigError("overprovisioning_ratio",
                        "leaves a flow not one page on each of its planes; lower it or give the "
                        "planes more blocks");
    }
    first_unit.push_back(static_cast<std::uint32_t>(next_sector / unit_sectors));
    next_sector += space.sectors;
  }
  first_unit.push_back(static_cast<std::uint32_t>(next_sector / unit_sectors));
}

}  // namespace iojoule::sim::physical
