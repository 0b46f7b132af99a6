// The blocks of every plane: which are free, which are being filled, how worn and how valid each is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "../divisor.hpp"
#include "layout.hpp"

namespace iojoule::sim::physical {

// Data of different lifetimes do not share blocks: what the host writes, what garbage collection
// moved (and hence lives longer), pages of the mapping table, the pseudo-SLC cache.
enum class Stream : std::uint8_t { user, moved, mapping, slc };
inline constexpr std::size_t stream_count = 4;

enum class BlockState : std::uint8_t { free, open, full, victim, retired };

class Blocks {
 public:
  Blocks(const DeviceConfig& device, const Layout& layout);

  // Whether the stream's next page exists. Some free blocks are kept back so that garbage
  // collection always has where to move to: user data leave one for it (and one for the mapping
  // table where there is one), the mapping table leaves one.
  bool can_allocate(std::uint32_t plane, Stream stream) const {
    return frontier(plane, stream) != none || may_open(plane, stream);
  }
  // Number within its block of the page that allocate would return.
  std::uint32_t peek(std::uint32_t plane, Stream stream) const {
    const std::uint32_t block = frontier(plane, stream);
    return block == none ? 0 : next_page_[block];
  }
  // The next page of the stream; can_allocate must hold.
  std::uint32_t allocate(std::uint32_t plane, Stream stream);

  // A free block for filling the drive before the run; it is full at once.
  std::uint32_t take_filled(std::uint32_t plane);

  void add_valid(std::uint32_t block, std::uint32_t units) {
    Plane& plane = planes_[by_plane_.quotient(block)];
    if (valid_[block] == 0 && full_slc(block)) [[unlikely]] --plane.slc_empty;
    valid_[block] += units;
    plane.valid += units;
  }
  void drop_valid(std::uint32_t block, std::uint32_t units = 1) {
    Plane& plane = planes_[by_plane_.quotient(block)];
    valid_[block] -= units;
    plane.valid -= units;
    if (valid_[block] == 0 && full_slc(block)) [[unlikely]] ++plane.slc_empty;
  }

  std::uint32_t valid(std::uint32_t block) const { return valid_[block]; }
  std::uint32_t erases(std::uint32_t block) const { return erases_[block]; }
  BlockState state(std::uint32_t block) const { return state_[block]; }
  bool is_slc(std::uint32_t block) const { return slc_[block] != 0; }
  std::uint32_t pages_used(std::uint32_t block) const { return next_page_[block]; }
  std::uint64_t filled_order(std::uint32_t block) const { return filled_order_[block]; }
  std::uint32_t free_blocks(std::uint32_t plane) const { return planes_[plane].free_count; }
  std::uint32_t slc_blocks(std::uint32_t plane) const { return planes_[plane].slc_count; }
  // Full blocks of the pseudo-SLC cache in which nothing is valid any more.
  std::uint32_t slc_empty(std::uint32_t plane) const { return planes_[plane].slc_empty; }
  std::uint32_t retired_blocks(std::uint32_t plane) const { return planes_[plane].retired; }
  std::uint32_t most_erases(std::uint32_t plane) const { return planes_[plane].most_erases; }
  std::uint32_t first_block(std::uint32_t plane) const { return plane * blocks_per_plane_; }
  std::uint32_t blocks_per_plane() const { return blocks_per_plane_; }

  // Garbage collection starts below so many free blocks, and goes before the host below the other.
  std::uint32_t gc_threshold() const { return gc_threshold_; }
  std::uint32_t gc_hard_threshold() const { return gc_hard_threshold_; }
  // Most units of data a plane can hold such that garbage collection never runs out of room.
  std::uint32_t usable_units(std::uint32_t plane) const { return planes_[plane].usable; }
  // Whether a plane chosen freely, and not by striping, may take another page of data.
  bool has_room(std::uint32_t plane, std::uint32_t units) const {
    return planes_[plane].valid + units <= usable_units(plane);
  }

  // What is neither free nor valid, half-filled blocks included.
  std::uint32_t reclaimable_units(std::uint32_t plane) const {
    const Plane& at = planes_[plane];
    return (blocks_per_plane_ - at.free_count - at.retired) * units_per_block_ - at.valid;
  }

  // Reads under way on a block delay its erase.
  void begin_read(std::uint32_t block) { ++reads_[block]; }
  void end_read(std::uint32_t block) { --reads_[block]; }
  std::uint32_t reads(std::uint32_t block) const { return reads_[block]; }

  void make_victim(std::uint32_t block);
  // After its erase: free again, or retired at the limit of its erase cycles (true).
  bool release(std::uint32_t block);

  std::uint64_t memory_bytes() const;

 private:
  struct Plane {
    std::array<std::uint32_t, stream_count> frontier{none, none, none, none};
    std::uint32_t free_count = 0, free_head = 0;  // a ring in free_
    std::uint32_t slc_count = 0, slc_empty = 0, retired = 0, most_erases = 0;
    std::uint32_t valid = 0, usable = 0;
    std::uint32_t erases_at_least = 0;  // of every free block
  };

  std::uint32_t frontier(std::uint32_t plane, Stream stream) const {
    return planes_[plane].frontier[static_cast<std::size_t>(stream)];
  }
  bool full_slc(std::uint32_t block) const {
    return state_[block] == BlockState::full && is_slc(block);
  }
  void count_usable(Plane& plane) const;
  bool may_open(std::uint32_t plane, Stream stream) const;
  std::uint32_t take_free(std::uint32_t plane, Stream stream);
  std::uint32_t page_limit(std::uint32_t block) const {
    return is_slc(block) ? slc_pages_per_block_ : pages_per_block_;
  }

  std::uint32_t blocks_per_plane_, pages_per_block_, units_per_page_, units_per_block_, slc_pages_per_block_;
  Divisor32 by_plane_;
  std::uint32_t kept_for_mapping_;  // 0 with an ideal table
  std::uint32_t slc_static_, slc_dynamic_;
  std::uint32_t gc_threshold_, gc_hard_threshold_;
  std::uint32_t erase_limit_;
  bool level_wear_;
  std::vector<Plane> planes_;
  std::vector<std::uint32_t> free_, valid_, erases_, next_page_, reads_;
  std::vector<std::uint64_t> filled_order_;
  std::vector<BlockState> state_;
  std::vector<std::uint8_t> slc_;
  std::uint64_t next_order_ = 0;
};

}  // namespace iojoule::sim::physical
