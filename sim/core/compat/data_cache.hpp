// The slots of the write cache: one page each, least recently used first out.
#pragma once

#include <cstdint>
#include <vector>

#include "../flat_map.hpp"
#include "recency_list.hpp"

namespace iojoule::sim::compat {

struct CacheSlot {
  std::uint64_t key = 0;
  std::uint64_t written_ns = 0;  // when the request behind the newest data came in
  std::uint64_t sectors = 0;     // bit by bit
  std::uint32_t previous = UINT32_MAX, next = UINT32_MAX;  // towards the recently used, the old
  bool dirty = false;            // not on flash and not on its way there
};

constexpr std::uint64_t page_key(std::uint8_t flow, std::uint32_t lpn) {
  return (std::uint64_t{flow} << 32U) | lpn;
}
constexpr std::uint64_t key_without_page = page_key(UINT8_MAX, UINT32_MAX);  // of no flow
constexpr std::uint32_t lpn_of_key(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

class DataCache {
 public:
  static constexpr std::uint32_t absent = FlatMap::absent;

  explicit DataCache(std::size_t capacity) : capacity_(capacity) {}

  std::uint64_t held_bytes() const {
    return slots_.capacity() * sizeof(CacheSlot) + free_.capacity() * sizeof(std::uint32_t) + index_.bytes();
  }
  std::uint32_t find(std::uint64_t key) const { return index_.find(key); }
  bool full() const { return index_.size() >= capacity_; }
  CacheSlot& operator[](std::uint32_t slot) { return slots_[slot]; }

  void touch(std::uint32_t slot) {
    recency_.touch(slots_, slot);
  }

  // The key must be absent and the cache not full.
  std::uint32_t insert(std::uint64_t key, std::uint64_t sectors, std::uint64_t written_ns, bool dirty) {
    std::uint32_t slot;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[slot] = {key, written_ns, sectors, absent, absent, dirty};
    index_.insert(key, slot);
    recency_.link_first(slots_, slot);
    return slot;
  }

  void remove(std::uint32_t slot) {
    recency_.unlink(slots_, slot);
    index_.erase(slots_[slot].key);
    free_.push_back(slot);
  }

  // Takes the least recently used slot out. The cache must not be empty.
  CacheSlot evict() {
    const std::uint32_t slot = recency_.last();
    const CacheSlot evicted = slots_[slot];
    remove(slot);
    return evicted;
  }

 private:
  std::size_t capacity_;
  std::vector<CacheSlot> slots_;
  std::vector<std::uint32_t> free_;
  FlatMap index_;
  RecencyList<CacheSlot> recency_;
};

}  // namespace iojoule::sim::compat
