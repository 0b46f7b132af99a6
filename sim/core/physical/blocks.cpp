#include "blocks.hpp"

#include <algorithm>

namespace iojoule::sim::physical {

Blocks::Blocks(const DeviceConfig& device, const Layout& layout)
    : blocks_per_plane_(layout.blocks_per_plane),
      pages_per_block_(layout.pages_per_block),
      units_per_page_(layout.units_per_page),
      units_per_block_(layout.units_per_block),
      slc_pages_per_block_(std::max(1U, layout.pages_per_block / layout.page_kinds_used)),
      by_plane_(layout.blocks_per_plane),
      kept_for_mapping_(device.mapping_ideal ? 0 : 1),
      slc_static_(device.physical.slc.static_blocks_per_plane),
      slc_dynamic_(device.physical.slc.dynamic_blocks_per_plane),
      erase_limit_(device.pe_cycles_limit),
      level_wear_(device.wear_levelling_dynamic),
      planes_(layout.planes) {
  const auto share = [this](double fraction) {
    return static_cast<std::uint32_t>(fraction * blocks_per_plane_);
  };
  const std::uint32_t kept = 1 + kept_for_mapping_;
  gc_hard_threshold_ = std::max(share(device.gc_hard_threshold), kept + 1);
  gc_threshold_ = std::max(share(device.gc_threshold), gc_hard_threshold_ + 1);
  const std::size_t blocks = std::size_t{layout.planes} * blocks_per_plane_;
  free_.resize(blocks);
  valid_.resize(blocks);
  erases_.resize(blocks);
  next_page_.resize(blocks);
  reads_.resize(blocks);
  filled_order_.resize(blocks);
  state_.resize(blocks, BlockState::free);
  slc_.resize(blocks);
  for (std::uint32_t plane = 0; plane < layout.planes; ++plane) {
    planes_[plane].free_count = blocks_per_plane_;
    count_usable(planes_[plane]);
    for (std::uint32_t i = 0; i < blocks_per_plane_; ++i) {
      free_[first_block(plane) + i] = first_block(plane) + i;
    }
  }
}

void Blocks::count_usable(Plane& plane) const {
  // What garbage collection needs besides data: one free block and its own half-filled one, the
  // same for the mapping table, and the static part of the pseudo-SLC cache.
  const std::uint32_t needed =
      2 + 2 * kept_for_mapping_ + slc_static_ + plane.retired;
  // Then some block has a page's worth that is not valid.
  plane.usable = blocks_per_plane_ <= needed
                     ? 0
                     : (blocks_per_plane_ - needed) * (units_per_block_ - units_per_page_);
}

bool Blocks::may_open(std::uint32_t plane, Stream stream) const {
  const Plane& at = planes_[plane];
  const std::uint32_t slc_missing = slc_static_ > at.slc_count ? slc_static_ - at.slc_count : 0;
  switch (stream) {
    case Stream::moved: return at.free_count > 0;
    case Stream::mapping: return at.free_count > 1;
    case Stream::user: return at.free_count > 1 + kept_for_mapping_ + slc_missing;
    default: break;
  }
  if (at.slc_count < slc_static_) return at.free_count > 1 + kept_for_mapping_;
  return at.slc_count < slc_static_ + slc_dynamic_ && at.free_count > gc_threshold_;
}

std::uint32_t Blocks::take_free(std::uint32_t plane, Stream stream) {
  Plane& at = planes_[plane];
  std::uint32_t* ring = &free_[first_block(plane)];
  const auto slot = [&](std::uint32_t i) -> std::uint32_t& {
    const std::uint32_t place = at.free_head + i;
    return ring[place < blocks_per_plane_ ? place : place - blocks_per_plane_];
  };
  if (level_wear_) {
    // Young blocks for data that change, worn ones for data that stayed (dual pool). Blocks of
    // equal wear take turns.
    std::uint32_t best = 0, best_erases = erases_[slot(0)];
    if (stream == Stream::moved) {
      for (std::uint32_t i = 1; i < at.free_count; ++i) {
        const std::uint32_t erases = erases_[slot(i)];
        if (erases > best_erases) best = i, best_erases = erases;
      }
    } else {
      for (std::uint32_t i = 1; i < at.free_count && best_erases > at.erases_at_least; ++i) {
        const std::uint32_t erases = erases_[slot(i)];
        if (erases < best_erases) best = i, best_erases = erases;
      }
      at.erases_at_least = best_erases;
    }
    if (best != 0) std::swap(slot(0), slot(best));
  }
  const std::uint32_t block = slot(0);
  at.free_head = (at.free_head + 1) % blocks_per_plane_;
  --at.free_count;
  return block;
}

std::uint32_t Blocks::allocate(std::uint32_t plane, Stream stream) {
  std::uint32_t& open = planes_[plane].frontier[static_cast<std::size_t>(stream)];
  if (open == none) {
    open = take_free(plane, stream);
    state_[open] = BlockState::open;
    next_page_[open] = 0;
    slc_[open] = stream == Stream::slc ? 1 : 0;
    planes_[plane].slc_count += slc_[open];
  }
  const std::uint32_t block = open;
  const std::uint32_t page = block * pages_per_block_ + next_page_[block]++;
  if (next_page_[block] == page_limit(block)) {
    state_[block] = BlockState::full;
    if (valid_[block] == 0 && is_slc(block)) ++planes_[plane].slc_empty;
    filled_order_[block] = next_order_++;
    open = none;
  }
  return page;
}

std::uint32_t Blocks::take_filled(std::uint32_t plane) {
  const std::uint32_t block = take_free(plane, Stream::user);
  state_[block] = BlockState::full;
  next_page_[block] = pages_per_block_;
  filled_order_[block] = next_order_++;
  return block;
}

void Blocks::make_victim(std::uint32_t block) {
  if (valid_[block] == 0 && full_slc(block)) --planes_[block / blocks_per_plane_].slc_empty;
  state_[block] = BlockState::victim;
}

bool Blocks::release(std::uint32_t block) {
  const std::uint32_t plane = block / blocks_per_plane_;
  Plane& at = planes_[plane];
  valid_[block] = 0;
  next_page_[block] = 0;
  at.slc_count -= slc_[block];
  slc_[block] = 0;
  at.most_erases = std::max(at.most_erases, ++erases_[block]);
  if (erases_[block] >= erase_limit_) {
    state_[block] = BlockState::retired;
    ++at.retired;
    count_usable(at);
    return true;
  }
  state_[block] = BlockState::free;
  at.erases_at_least = std::min(at.erases_at_least, erases_[block]);
  free_[first_block(plane) + (at.free_head + at.free_count) % blocks_per_plane_] = block;
  ++at.free_count;
  return false;
}

std::uint64_t Blocks::memory_bytes() const {
  return free_.size() * (5 * sizeof(std::uint32_t) + sizeof(std::uint64_t) + 2);
}

}  // namespace iojoule::sim::physical
