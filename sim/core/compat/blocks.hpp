// Blocks, write frontiers and pools of free blocks of every plane.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <vector>

#include "../error.hpp"
#include "../geometry.hpp"
#include "../lazy_array.hpp"
#include "../packed_array.hpp"

namespace iojoule::sim::compat {

struct Block {
  std::uint32_t next_page = 0;
  std::uint32_t invalid_pages = 0;
  std::uint32_t erase_count = 0;
  std::uint32_t erase_transaction = 0;
  std::uint16_t programs = 0, reads = 0;  // on their way
  std::uint8_t flow = 0;
  bool collecting = false;
  bool holds_mapping = false;
};

// Free blocks with the fewest erases first, then the ones that became free first. Blocks that were
// never erased need no entry: they come before all others, in the order of their numbers.
class FreeBlocks {
 public:
  void reset(std::uint32_t blocks) { end_ = blocks; }
  std::uint32_t size() const { return end_ - next_ + static_cast<std::uint32_t>(returned_.size()); }

  std::uint64_t held_bytes() const { return returned_.capacity() * sizeof(Returned); }

  std::uint32_t take() {
    if (next_ < end_) return next_++;
    std::pop_heap(returned_.begin(), returned_.end(), later);
    const std::uint32_t block = returned_.back().block;
    returned_.pop_back();
    return block;
  }
  void give_back(std::uint32_t block, std::uint32_t erase_count) {
    returned_.push_back({(std::uint64_t{erase_count} << 32U) | order_++, block});
    std::push_heap(returned_.begin(), returned_.end(), later);
  }

 private:
  struct Returned {
    std::uint64_t key;
    std::uint32_t block;
  };
  static bool later(const Returned& a, const Returned& b) { return a.key > b.key; }

  std::uint32_t next_ = 0, end_ = 0, order_ = 0;
  std::vector<Returned> returned_;
};

struct Frontiers {
  std::uint32_t data = 0, collector = 0, mapping = 0;
};

class Blocks {
 public:
  Blocks(const Geometry& geometry, std::uint64_t logical_pages, std::size_t flows, bool keep_history)
      : flows_(flows),
        keep_history_(keep_history),
        blocks_per_plane_(geometry.blocks_per_plane),
        pages_per_block_(geometry.pages_per_block),
        words_per_block_((geometry.pages_per_block + 63) / 64),
        blocks_(std::size_t{geometry.planes()} * geometry.blocks_per_plane),
        invalid_(blocks_.size() * words_per_block_),
        owner_(geometry.physical_pages(),
               static_cast<std::uint32_t>(std::bit_width(logical_pages + past_the_end))),
        frontiers_(geometry.planes() * flows),
        free_(geometry.planes()),
        history_(keep_history ? geometry.planes() : 0) {
    for (std::uint32_t plane = 0; plane < geometry.planes(); ++plane) {
      free_[plane].reset(blocks_per_plane_);
      for (std::size_t flow = 0; flow < flows; ++flow) {
        Frontiers& at = frontiers(plane, flow);
        at.data = open(plane, flow, false);
        at.mapping = open(plane, flow, true);
        at.collector = open(plane, flow, false);
      }
    }
  }

  std::uint64_t held_bytes() const {
    std::uint64_t held = blocks_.held_bytes() + invalid_.held_bytes() + owner_.held_bytes() +
                         frontiers_.capacity() * sizeof(Frontiers) + free_.capacity() * sizeof(FreeBlocks);
    for (const FreeBlocks& free : free_) held += free.held_bytes();
    for (const std::deque<std::uint32_t>& opened : history_) held += opened.size() * sizeof(std::uint32_t);
    return held;
  }

  // Blocks in the order in which they were opened; kept for the FIFO victim policy only.
  std::deque<std::uint32_t>& usage_history(std::uint32_t plane) { return history_[plane]; }

  Block& block(std::uint32_t plane, std::uint32_t block) {
    return blocks_[std::size_t{plane} * blocks_per_plane_ + block];
  }
  Frontiers& frontiers(std::uint32_t plane, std::size_t flow) { return frontiers_[plane * flows_ + flow]; }
  std::uint32_t free_blocks(std::uint32_t plane) const { return free_[plane].size(); }
  std::uint32_t pages_per_block() const { return pages_per_block_; }
  std::uint32_t blocks_per_plane() const { return blocks_per_plane_; }

  // Takes a free block as a frontier of the flow.
  std::uint32_t open(std::uint32_t plane, std::size_t flow, bool for_mapping) {
    if (free_[plane].size() == 0) throw ModelError("Requesting a free block from an empty pool!");
    const std::uint32_t taken = free_[plane].take();
    if (keep_history_) history_[plane].push_back(taken);
    Block& opened = block(plane, taken);
    opened.flow = static_cast<std::uint8_t>(flow);
    opened.holds_mapping = for_mapping;
    return taken;
  }

  // Of all pages of flash.
  std::size_t page_number(std::uint32_t plane, std::uint32_t block, std::uint32_t page) const {
    return (std::size_t{plane} * blocks_per_plane_ + block) * pages_per_block_ + page;
  }
  bool valid(std::uint32_t plane, std::uint32_t block, std::uint32_t page) const {
    return (invalid_[word(plane, block, page)] >> (page % 64) & 1U) == 0;
  }
  void invalidate(std::uint32_t plane, std::uint32_t index, std::uint32_t page) {
    ++block(plane, index).invalid_pages;
    invalid_[word(plane, index, page)] |= std::uint64_t{1} << (page % 64);
  }

  void will_be_filled() { owner_.will_be_filled(); }

  // The logical page behind a physical one.
  std::uint32_t owner(std::uint32_t plane, std::uint32_t block, std::uint32_t page) const {
    return static_cast<std::uint32_t>(owner_[page_number(plane, block, page)]);
  }
  void set_owner(std::uint32_t plane, std::uint32_t block, std::uint32_t page, std::uint32_t lpn) {
    if (page == 0) owner_.begin(page_number(plane, block, 0), pages_per_block_);
    owner_.set(page_number(plane, block, page), lpn);
  }

  // Marks what is left of a block as written and stale.
  void fill_with_stale_pages(std::uint32_t plane, std::uint32_t index) {
    Block& filled = block(plane, index);
    for (; filled.next_page < pages_per_block_; ++filled.next_page) invalidate(plane, index, filled.next_page);
  }

  void erase(std::uint32_t plane, std::uint32_t index) {
    Block& erased = block(plane, index);
    erased.next_page = 0;
    erased.invalid_pages = 0;
    ++erased.erase_count;
    erased.collecting = false;
    erased.holds_mapping = false;
    for (std::uint32_t i = 0; i < words_per_block_; ++i) invalid_[word(plane, index, 64 * i)] = 0;
    free_[plane].give_back(index, erased.erase_count);
  }

 private:
  // A request may begin in a flow's last page and reach past it.
  static constexpr std::uint64_t past_the_end = 1U << 16U;

  std::size_t word(std::uint32_t plane, std::uint32_t block, std::uint32_t page) const {
    return (std::size_t{plane} * blocks_per_plane_ + block) * words_per_block_ + page / 64;
  }

  std::size_t flows_;
  bool keep_history_;
  std::uint32_t blocks_per_plane_, pages_per_block_, words_per_block_;
  LazyArray<Block> blocks_;
  LazyArray<std::uint64_t> invalid_;
  PackedArray owner_;
  std::vector<Frontiers> frontiers_;
  std::vector<FreeBlocks> free_;
  std::vector<std::deque<std::uint32_t>> history_;
};

}  // namespace iojoule::sim::compat
