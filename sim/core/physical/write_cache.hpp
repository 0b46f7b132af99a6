// The units that the drive's memory holds: written by the host and not yet in flash, or kept for reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "../ring.hpp"
#include "layout.hpp"
#include "mapping_table.hpp"

namespace iojoule::sim::physical {

enum class SlotState : std::uint8_t {
  free,
  preparing,  // dirty, but its mapping entry or the part not written is still being read
  dirty,      // waits for its program in a list
  writing,    // in a program under way
  clean
};

struct CacheSlot {
  std::uint32_t unit = none;
  std::uint32_t next = none;                // in its list of dirty slots, or among the free
  std::uint32_t older = none, newer = none;  // among the clean of its partition; the one before in its list
  std::uint32_t dirty_waiters = none;       // requests that wait for the version not yet programmed
  std::uint32_t writing_waiters = none;     // for the version being programmed
  std::uint32_t fill_waiters = none;        // reads that wait until the slot is prepared
  std::uint32_t list = 0;                   // while dirty
  std::uint32_t epoch = 0, writing_epoch = 0;
  std::uint64_t dirty_ns = 0, writing_ns = 0;  // since when: the version to be programmed, being programmed
  std::uint16_t flow = 0;
  SlotState state = SlotState::free;
  bool rewritten = false;  // while it was being programmed
  bool orphan = false;     // trimmed while under way: no longer to be found
  bool needs_fill = false;
  bool mapped = false;     // its mapping entry has been asked for
};

// Dirty slots in the order in which they became so.
struct DirtyList {
  std::uint32_t head = none, tail = none;
  std::uint32_t length = 0;
  std::uint32_t forced = 0;  // so many from the head go even if they do not fill a page
};

class WriteCache {
 public:
  WriteCache(const DeviceConfig& device, const Layout& layout, MappingTable& table,
             std::size_t flows, std::size_t lists);
  // Even without a data cache the controller buffers what it programs: a page for every plane, twice.
  static std::uint32_t slot_count(const DeviceConfig& device, const Layout& layout);

  CacheSlot& slot(std::uint32_t index) { return slots_[index]; }
  // The slot that holds the unit, or none.
  std::uint32_t find(std::uint32_t unit) const { return table_.slot(unit); }

  // A slot for a unit that has none, to be dirty next; none while the limits leave no room. Clean
  // slots give way, the longest unused first.
  std::uint32_t acquire_dirty(std::uint32_t unit, std::uint16_t flow, std::uint64_t now_ns);
  // A clean copy for later reads, if there is room.
  void keep_clean(std::uint32_t unit, std::uint16_t flow);
  void touch(std::uint32_t index);
  // A clean slot is written again; false while the limit of dirty ones leaves no room.
  bool make_dirty(std::uint32_t index, std::uint64_t now_ns);
  // A slot being programmed is written again.
  void rewrite(std::uint32_t index, std::uint64_t now_ns);

  DirtyList& list(std::size_t index) { return lists_[index]; }
  std::size_t lists() const { return lists_.size(); }
  void enqueue(std::uint32_t index, std::size_t list);
  // Acquires and enqueues up to `count` units from this one on, as far as none is in a slot and no
  // clean slot has to give way; how many. The list must not be empty.
  std::uint32_t extend(std::size_t list, std::uint32_t unit, std::uint32_t count, std::uint16_t flow,
                       std::uint64_t now_ns);
  // Takes the first slot, or none; it is being programmed from now on.
  std::uint32_t dequeue(std::size_t list);

  // Programs of slots that were neither rewritten nor trimmed since and are not kept are done.
  void release_programmed(const std::uint32_t* slots, std::uint32_t count);
  // A program is done. True: the slot was rewritten meanwhile and is dirty again (preparing).
  bool programmed(std::uint32_t index, bool keep);
  // Forgets a unit that the host trimmed. Returns the waiters that no longer wait, or none.
  std::uint32_t trim(std::uint32_t unit);
  // After a slot was prepared: false if it was trimmed meanwhile and is gone.
  bool still_wanted(std::uint32_t index);

  // A flush waits for everything dirty now: for the epoch that ends here.
  std::uint32_t close_epoch();
  bool epoch_done(std::uint32_t epoch) const { return epoch < oldest_epoch_; }

  std::uint32_t dirty() const { return dirty_; }
  // At most: 48 bytes a slot for finding it, of which it takes 4 now. Results state the sum, and the
  // same drive states the same in every version.
  std::uint64_t memory_bytes() const { return slots_.size() * (sizeof(CacheSlot) + 48); }

  // Lists of waiting requests, without allocation.
  std::uint32_t add_waiter(std::uint32_t request, std::uint32_t chain);
  // Takes one from the chain; `request` is who waited.
  std::uint32_t pop_waiter(std::uint32_t chain, std::uint32_t& request);

 private:
  struct Waiter {
    std::uint32_t request, next;
  };
  struct Partition {
    std::uint32_t used = 0, oldest = none, newest = none;
  };

  Partition& partition_of(std::uint16_t flow) { return partitions_[equal_ ? flow : 0]; }
  std::uint32_t acquire(std::uint32_t unit, std::uint16_t flow);
  void release(std::uint32_t index);
  void unlink_clean(std::uint32_t index);
  void unlink_dirty(std::uint32_t index);
  void link_newest(std::uint32_t index);
  void count_dirty(CacheSlot& slot, std::uint64_t now_ns);
  void end_epoch_of(std::uint32_t epoch);
  void drop_done_epochs();

  MappingTable& table_;
  bool equal_;
  std::uint32_t quota_, dirty_limit_, dirty_ = 0, free_head_;
  std::vector<CacheSlot> slots_;
  std::vector<Partition> partitions_;
  std::vector<DirtyList> lists_;
  std::vector<Waiter> waiters_;
  std::uint32_t free_waiter_ = none;
  Ring<std::uint32_t> epochs_;  // dirty slots of each, the oldest first
  std::uint32_t oldest_epoch_ = 0, next_epoch_ = 0;  // next_epoch_ is the one open now
};

// --- what happens for every unit that is written

inline std::uint32_t WriteCache::acquire(std::uint32_t unit, std::uint16_t flow) {
  Partition& partition = partition_of(flow);
  if (partition.used >= quota_ || free_head_ == none) {
    if (partition.oldest == none) return none;
    const std::uint32_t victim = partition.oldest;
    unlink_clean(victim);
    table_.let_go(slots_[victim].unit, victim);
    release(victim);
  }
  const std::uint32_t index = free_head_;
  CacheSlot& slot = slots_[index];
  free_head_ = slot.next;
  ++partition.used;
  slot = CacheSlot{.unit = unit, .flow = flow, .state = SlotState::clean};
  table_.hold(unit, index);
  return index;
}

inline std::uint32_t WriteCache::acquire_dirty(std::uint32_t unit, std::uint16_t flow,
                                        std::uint64_t now_ns) {
  if (dirty_ >= dirty_limit_) return none;
  const std::uint32_t index = acquire(unit, flow);
  if (index != none) count_dirty(slots_[index], now_ns);
  return index;
}

inline void WriteCache::count_dirty(CacheSlot& slot, std::uint64_t now_ns) {
  slot.state = SlotState::preparing;
  slot.dirty_ns = now_ns;
  slot.epoch = next_epoch_;
  ++epochs_[epochs_.size() - 1];
  ++dirty_;
}

inline void WriteCache::enqueue(std::uint32_t index, std::size_t list_index) {
  DirtyList& list = lists_[list_index];
  CacheSlot& slot = slots_[index];
  slot.state = SlotState::dirty;
  slot.list = static_cast<std::uint32_t>(list_index);
  slot.next = none;
  slot.older = list.tail;
  if (list.head == none) {
    list.head = index;
  } else {
    slots_[list.tail].next = index;
  }
  list.tail = index;
  ++list.length;
}

inline std::uint32_t WriteCache::extend(std::size_t list_index, std::uint32_t unit,
                                        std::uint32_t count, std::uint16_t flow,
                                        std::uint64_t now_ns) {
  Partition& partition = partition_of(flow);
  DirtyList& list = lists_[list_index];
  count = std::min({count, dirty_limit_ - dirty_, quota_ - partition.used});
  std::uint32_t taken = 0, index = free_head_, tail = list.tail;
  for (; taken < count && table_.slot(unit + taken) == none; ++taken) {
    CacheSlot& slot = slots_[index];
    const std::uint32_t next_free = slot.next;
    slot = CacheSlot{.unit = unit + taken,
                     .older = tail,
                     .list = static_cast<std::uint32_t>(list_index),
                     .epoch = next_epoch_,
                     .dirty_ns = now_ns,
                     .flow = flow,
                     .state = SlotState::dirty};
    table_.hold(unit + taken, index);
    slots_[tail].next = index;
    tail = index;
    index = next_free;
  }
  free_head_ = index;
  list.tail = tail;
  list.length += taken;
  partition.used += taken;
  dirty_ += taken;
  epochs_[epochs_.size() - 1] += taken;
  return taken;
}

inline void WriteCache::release_programmed(const std::uint32_t* slots, std::uint32_t count) {
  std::uint32_t free = free_head_;
  for (std::uint32_t i = 0; i < count; ++i) {
    CacheSlot& slot = slots_[slots[i]];
    table_.let_go(slot.unit, slots[i]);
    --epochs_[slot.writing_epoch - oldest_epoch_];
    slot.state = SlotState::free;
    slot.next = free;
    free = slots[i];
    if (equal_) --partitions_[slot.flow].used;
  }
  if (!equal_) partitions_[0].used -= count;
  free_head_ = free;
  dirty_ -= count;
  drop_done_epochs();
}

inline std::uint32_t WriteCache::dequeue(std::size_t list_index) {
  DirtyList& list = lists_[list_index];
  const std::uint32_t index = list.head;
  if (index == none) return none;
  CacheSlot& slot = slots_[index];
  list.head = slot.next;
  --list.length;
  if (list.forced > 0) --list.forced;
  slot.state = SlotState::writing;
  slot.writing_waiters = slot.dirty_waiters;
  slot.dirty_waiters = none;
  slot.writing_epoch = slot.epoch;
  slot.writing_ns = slot.dirty_ns;
  return index;
}

inline bool WriteCache::programmed(std::uint32_t index, bool keep) {
  CacheSlot& slot = slots_[index];
  end_epoch_of(slot.writing_epoch);
  slot.writing_waiters = none;
  if (slot.rewritten) {
    slot.rewritten = false;
    slot.state = SlotState::preparing;
    return true;
  }
  --dirty_;
  if (slot.orphan) {
    release(index);
  } else if (keep) {
    slot.state = SlotState::clean;
    link_newest(index);
  } else {
    table_.let_go(slot.unit, index);
    release(index);
  }
  return false;
}

inline bool WriteCache::still_wanted(std::uint32_t index) {
  CacheSlot& slot = slots_[index];
  if (!slot.orphan) return true;
  end_epoch_of(slot.epoch);
  --dirty_;
  release(index);
  return false;
}

inline void WriteCache::end_epoch_of(std::uint32_t epoch) {
  --epochs_[epoch - oldest_epoch_];
  drop_done_epochs();
}

inline void WriteCache::drop_done_epochs() {
  while (oldest_epoch_ < next_epoch_ && epochs_.front() == 0) {
    epochs_.pop_front();
    ++oldest_epoch_;
  }
}

inline void WriteCache::release(std::uint32_t index) {
  --partition_of(slots_[index].flow).used;
  slots_[index].state = SlotState::free;
  slots_[index].next = free_head_;
  free_head_ = index;
}

inline void WriteCache::unlink_clean(std::uint32_t index) {
  CacheSlot& slot = slots_[index];
  Partition& partition = partition_of(slot.flow);
  (slot.older == none ? partition.oldest : slots_[slot.older].newer) = slot.newer;
  (slot.newer == none ? partition.newest : slots_[slot.newer].older) = slot.older;
}

inline void WriteCache::link_newest(std::uint32_t index) {
  CacheSlot& slot = slots_[index];
  Partition& partition = partition_of(slot.flow);
  slot.newer = none;
  slot.older = partition.newest;
  (slot.older == none ? partition.oldest : slots_[slot.older].newer) = index;
  partition.newest = index;
}

}  // namespace iojoule::sim::physical
