#include "consistency.hpp"

#include <string>

#include "../error.hpp"
#include "context.hpp"

namespace iojoule::sim::physical {

namespace {

void require(bool holds, const char* what, std::uint32_t which) {
  if (!holds) throw ModelError(std::string(what) + " (number " + std::to_string(which) + ")");
}

void check_logical(const Context& context) {
  for (std::uint32_t unit = 0; unit < context.layout.logical_units(); ++unit) {
    const std::uint32_t physical = context.table.find(unit);
    if (physical == none) continue;
    require(context.table.content(physical) == Content::of_unit(unit),
            "a logical unit is not where the mapping table says", unit);
  }
}

void check_block(const Context& context, std::uint32_t block) {
  const std::uint32_t units = context.layout.units_per_block;
  const std::uint32_t written = context.blocks.pages_used(block) * context.layout.units_per_page;
  std::uint32_t valid = 0;
  for (std::uint32_t u = 0; u < units; ++u) {
    const std::uint32_t physical = block * units + u;
    const std::uint32_t content = context.table.content(physical);
    if (content == 0) continue;
    ++valid;
    require(u < written, "a page holds data that was never programmed", physical);
    require(context.table.find_content(content) == physical,
            "two physical units hold the same logical unit", physical);
  }
  require(valid == context.blocks.valid(block), "a block miscounts its valid units", block);
}

}  // namespace

void check_consistency(const Context& context) {
  check_logical(context);
  for (std::uint32_t plane = 0; plane < context.layout.planes; ++plane) {
    std::uint32_t free = 0, slc = 0;
    const std::uint32_t first = context.blocks.first_block(plane);
    for (std::uint32_t b = first; b < first + context.layout.blocks_per_plane; ++b) {
      check_block(context, b);
      free += context.blocks.state(b) == BlockState::free ? 1 : 0;
      slc += context.blocks.is_slc(b) ? 1 : 0;
    }
    require(free == context.blocks.free_blocks(plane), "a plane miscounts its free blocks", plane);
    require(slc == context.blocks.slc_blocks(plane), "a plane miscounts its pseudo-SLC blocks",
            plane);
  }
}

}  // namespace iojoule::sim::physical
