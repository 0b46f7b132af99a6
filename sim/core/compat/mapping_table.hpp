// What a flow's logical pages map to, and the part of that which the controller holds (CMT).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "../flat_map.hpp"
#include "../lazy_array.hpp"
#include "../packed_array.hpp"
#include "recency_list.hpp"

namespace iojoule::sim::compat {

// Physical pages are numbered within their plane, which follows from the logical page.
//
// An entry has the bits it needs and no more. Neighbouring entries form a group, which is laid down
// behind the last one when it is first written to: what a run touches of a large drive lies together
// and takes the memory, and the time to get it, of that part alone. A table that will be filled lies in
// the order of the pages.
class PageTable {
 public:
  PageTable() = default;
  PageTable(std::size_t pages, std::uint32_t pages_per_plane, std::uint32_t sector_bits)
      : size_(pages),
        apart_(sector_bits + place_bits(pages_per_plane) > 64),
        sector_bits_(apart_ ? 0 : sector_bits),
        groups_(pages / group_pages + 1),
        entries_((groups_.size() + 1) * group_pages, sector_bits_ + place_bits(pages_per_plane)),
        sectors_apart_(apart_ ? (groups_.size() + 1) * group_pages : 0, sector_bits) {
    groups_.will_be_filled();  // in no order, and read before they are written
  }

  bool mapped(std::uint32_t lpn) const { return entry(lpn) >> sector_bits_ != 0; }
  std::uint32_t place(std::uint32_t lpn) const { return static_cast<std::uint32_t>(entry(lpn) >> sector_bits_) - 1; }
  std::uint64_t sectors(std::uint32_t lpn) const {
    if (apart_) [[unlikely]] return sectors_apart_[place_of(lpn)];
    return entry(lpn) & ((std::uint64_t{1} << sector_bits_) - 1);
  }
  void set(std::uint32_t lpn, std::uint32_t place, std::uint64_t sectors) {
    write(lpn, std::uint64_t{place} + 1, sectors);
  }
  // Notes sectors as written before the page has a place.
  void mark(std::uint32_t lpn, std::uint64_t sectors) {
    write(lpn, entry(lpn) >> sector_bits_, this->sectors(lpn) | sectors);
  }
  void forget(std::uint32_t lpn) { write(lpn, 0, 0); }
  std::size_t size() const { return size_; }
  std::uint64_t held_bytes() const {
    return groups_.held_bytes() + entries_.held_bytes() + sectors_apart_.held_bytes();
  }

  // To be said before anything is written.
  void will_be_filled() {
    in_order_ = true;
    entries_.will_be_filled();
    sectors_apart_.will_be_filled();
  }

  // First one, then the other: the group tells where the entry is. Any page will do.
  [[gnu::always_inline]] void prefetch_group(std::uint32_t lpn) const {
    if (lpn < size_ && !in_order_) __builtin_prefetch(&groups_[lpn / group_pages]);
  }
  [[gnu::always_inline]] void prefetch_entry(std::uint32_t lpn) const {
    if (lpn < size_) entries_.prefetch(place_of(lpn));
  }

 private:
  static constexpr std::uint32_t group_pages = 16;

  static constexpr std::uint32_t place_bits(std::uint32_t pages_per_plane) {
    return static_cast<std::uint32_t>(std::bit_width(pages_per_plane));
  }
  std::uint64_t entry(std::uint32_t lpn) const { return entries_[place_of(lpn)]; }
  std::size_t place_of(std::uint32_t lpn) const {
    if (in_order_) return lpn;
    return std::size_t{groups_[lpn / group_pages]} * group_pages + lpn % group_pages;
  }
  void write(std::uint32_t lpn, std::uint64_t place, std::uint64_t sectors) {
    if (!in_order_ && groups_[lpn / group_pages] == 0) {
      groups_[lpn / group_pages] = ++last_group_;
      entries_.begin(std::size_t{last_group_} * group_pages, group_pages);
    }
    const std::size_t at = place_of(lpn);
    if (apart_) [[unlikely]] {
      sectors_apart_.set(at, sectors);
      sectors = 0;
    }
    entries_.set(at, place << sector_bits_ | sectors);
  }

  std::size_t size_ = 0;
  bool apart_ = false;               // an entry with its sectors would not fit into 64 bits
  bool in_order_ = false;
  std::uint32_t sector_bits_ = 0;    // in an entry
  LazyArray<std::uint32_t> groups_;  // where they lie; 0: nowhere yet, and there all entries are 0
  std::uint32_t last_group_ = 0;
  PackedArray entries_;              // (place + 1, 0: never written or read; valid sectors, bit by bit)
  PackedArray sectors_apart_;
};

// The cached mapping table: which entries of the page table are at hand, least recently used first
// out. Their values stand in the page table alone. MQSim saves all of the entry that it evicts, but only
// the places of the others of that mapping page: these count as clean from then on, and when they leave,
// their valid sectors are again those that were saved before.
class MappingCache {
 public:
  static constexpr std::uint32_t absent = FlatMap::absent;

  MappingCache(std::size_t capacity, std::size_t pages) : capacity_(capacity), reserved_(pages / word_bits + 1) {}

  std::uint64_t held_bytes() const {
    return entries_.capacity() * sizeof(Entry) + free_.capacity() * sizeof(std::uint32_t) + index_.bytes() +
           reserved_.held_bytes();
  }
  [[gnu::always_inline]] void prefetch(std::uint32_t lpn) const { index_.prefetch(lpn); }
  bool full() const { return index_.size() >= capacity_; }
  bool at_hand(std::uint32_t lpn) const {
    const std::uint32_t entry = index_.find(lpn);
    return entry != absent && entries_[entry].arrived;
  }
  bool awaited(std::uint32_t lpn) const {
    const std::uint32_t entry = index_.find(lpn);
    return entry != absent && !entries_[entry].arrived;
  }
  // False when the entry is not there.
  [[nodiscard]] bool touch(std::uint32_t lpn) {
    const std::uint32_t entry = index_.find(lpn);
    if (entry == absent) return false;
    recency_.touch(entries_, entry);
    return true;
  }
  void change(std::uint32_t lpn) {
    Entry& entry = entries_[index_.find(lpn)];
    entry.changed = entry.dirty = true;
  }
  // With the valid sectors that are saved of it.
  void arrive(std::uint32_t lpn, std::uint64_t saved_sectors) {
    Entry& entry = entries_[index_.find(lpn)];
    entry.saved_sectors = saved_sectors;
    entry.arrived = true;
    entry.changed = entry.dirty = false;
  }

  // Makes a place for an entry that is still to come. The cache must not be full.
  void reserve(std::uint32_t lpn) {
    std::uint32_t entry;
    if (free_.empty()) {
      entry = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      entry = free_.back();
      free_.pop_back();
    }
    reserved_[lpn / word_bits] |= std::uint64_t{1} << (lpn % word_bits);
    entries_[entry] = {lpn, absent, absent, 0, false, false, false};
    index_.insert(lpn, entry);
    recency_.link_first(entries_, entry);
  }

  struct Evicted {
    std::uint32_t lpn;
    bool dirty;
  };
  // Takes the least recently used entry out. The cache must not be empty.
  Evicted evict(PageTable& table) {
    const std::uint32_t entry = recency_.last();
    const Evicted evicted{entries_[entry].lpn, entries_[entry].dirty};
    if (entries_[entry].changed && !evicted.dirty) {
      table.set(evicted.lpn, table.place(evicted.lpn), entries_[entry].saved_sectors);
    }
    recency_.unlink(entries_, entry);
    index_.erase(evicted.lpn);
    reserved_[evicted.lpn / word_bits] &= ~(std::uint64_t{1} << (evicted.lpn % word_bits));
    free_.push_back(entry);
    return evicted;
  }

  // Uses every entry at hand of the pages first..end-1 in their order: what is dirty becomes clean, and
  // `was_clean(page)` is called for the others.
  template <class WasClean>
  void write_back(std::uint32_t first, std::uint32_t end, WasClean was_clean) {
    for (std::uint32_t base = first - first % word_bits; base < end; base += word_bits) {
      if (base / word_bits >= reserved_.size()) return;
      for (std::uint64_t bits = reserved_[base / word_bits]; bits != 0; bits &= bits - 1) {
        const std::uint32_t lpn = base + static_cast<std::uint32_t>(std::countr_zero(bits));
        if (lpn < first || lpn >= end) continue;
        const std::uint32_t entry = index_.find(lpn);
        if (!entries_[entry].arrived) continue;
        if (!entries_[entry].dirty) {
          was_clean(lpn);
          continue;
        }
        entries_[entry].dirty = false;
        recency_.touch(entries_, entry);
      }
    }
  }

 private:
  static constexpr std::uint32_t word_bits = 64;

  struct Entry {
    std::uint32_t lpn, previous, next;
    std::uint64_t saved_sectors;
    bool arrived, changed, dirty;
  };

  std::size_t capacity_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  FlatMap index_;                      // logical page -> entry
  LazyArray<std::uint64_t> reserved_;  // the same pages, bit by bit, to walk them in their order
  RecencyList<Entry> recency_;
};

// Sizes of MQSim's entries (mqsim.md, 1.2 and 3.5).
constexpr std::uint64_t cached_entry_bytes(std::uint64_t physical_pages, std::uint32_t sectors_per_page) {
  const auto address_bits = static_cast<std::uint64_t>(std::bit_width(physical_pages - 1));
  return (2 * address_bits + sectors_per_page + 7) / 8;
}
constexpr std::uint64_t stored_entry_bytes(std::uint64_t physical_pages, std::uint32_t sectors_per_page) {
  const auto address_bits = static_cast<std::uint64_t>(std::bit_width(physical_pages - 1));
  return (address_bits + sectors_per_page + 7) / 8;
}

}  // namespace iojoule::sim::compat
