// The units that the drive's memory holds: written by the host and not yet in flash, or kept for reads.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "../config.hpp"
#include "../flat_map.hpp"
#include "layout.hpp"

namespace iojoule::sim::physical {

enum class SlotState : std::uint8_t {
  free,
  preparing,  // dirty, but its mapping entry or the part not written is still being read
  dirty,      // waits for its program in a list
  writing,    // in a program under way
  clean,
  dropped     // trimmed while in a list; freed when its turn comes
};

struct CacheSlot {
  std::uint32_t unit;
  std::uint32_t next;                // in its list of dirty slots, or among the free
  std::uint32_t older, newer;        // among the clean of its partition
  std::uint32_t dirty_waiters;       // requests that wait for the version not yet programmed
  std::uint32_t writing_waiters;     // for the version being programmed
  std::uint32_t fill_waiters;        // reads that wait until the slot is prepared
  std::uint32_t list;                // while dirty
  std::uint32_t epoch, writing_epoch;
  std::uint64_t dirty_ns, writing_ns;  // since when: the version to be programmed, being programmed
  std::uint16_t flow;
  SlotState state;
  bool rewritten;  // while it was being programmed
  bool orphan;     // trimmed while under way: no longer to be found
  bool needs_fill;
  bool mapped;     // its mapping entry has been asked for
};

// Dirty slots in the order in which they became so.
struct DirtyList {
  std::uint32_t head = none, tail = none;
  std::uint32_t length = 0;  // without dropped ones
  std::uint32_t forced = 0;  // so many from the head go even if they do not fill a page
};

class WriteCache {
 public:
  WriteCache(const DeviceConfig& device, const Layout& layout, std::size_t flows, std::size_t lists);

  CacheSlot& slot(std::uint32_t index) { return slots_[index]; }
  // The slot that holds the unit, or none.
  std::uint32_t find(std::uint32_t unit) const { return by_unit_.find(unit); }

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
  // Takes the first slot that was not dropped; it is being programmed from now on.
  std::uint32_t dequeue(std::size_t list);
  // First slot of the list that was not dropped, or none.
  std::uint32_t front(std::size_t list);

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
  void link_newest(std::uint32_t index);
  void count_dirty(CacheSlot& slot, std::uint64_t now_ns);
  void end_epoch_of(std::uint32_t epoch);
  void drop_done_epochs();

  bool equal_;
  std::uint32_t quota_, dirty_limit_, dirty_ = 0, free_head_;
  std::vector<CacheSlot> slots_;
  FlatMap by_unit_;
  std::vector<Partition> partitions_;
  std::vector<DirtyList> lists_;
  std::vector<Waiter> waiters_;
  std::uint32_t free_waiter_ = none;
  std::deque<std::uint32_t> epochs_{0};
  std::uint32_t oldest_epoch_ = 0, next_epoch_ = 0;  // next_epoch_ is the one open now
};

}  // namespace iojoule::sim::physical
