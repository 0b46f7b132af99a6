// The part of the mapping table that is in the drive's memory (DFTL: Gupta et al., ASPLOS 2009).
#pragma once

#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "../flat_map.hpp"
#include "../lazy_array.hpp"
#include "layout.hpp"

namespace iojoule::sim::physical {

// Where an entry is when somebody needs it.
enum class MappingAccess : std::uint8_t {
  hit,
  in_memory,  // not cached, but its page is in memory for another reason: being read or written back
  loading,    // its page is being read from flash
  miss        // its page has to be read; it is loading from now on
};

// Lines of `mapping_entries_per_line` entries are kept in the order of use. Evicting a changed line
// writes back its whole page of the table, and with it all other changed lines of that page.
class MappingCache {
 public:
  MappingCache(const DeviceConfig& device, const Layout& layout, std::size_t flows);

  // Pages of the mapping table; each fills one mapping unit.
  static std::uint32_t page_count(const DeviceConfig& device, const Layout& layout);

  bool ideal() const { return ideal_; }
  std::uint32_t pages() const { return pages_; }
  std::uint32_t page_of(std::uint32_t unit) const { return unit / entries_per_page_; }

  MappingAccess access(std::uint32_t unit, std::uint16_t flow);
  // The unit's entry is cached from now on: its page was read.
  void keep(std::uint32_t unit, std::uint16_t flow);
  // Lets `waiter` know when the page of a loading unit is there.
  void wait(std::uint32_t page, std::uint32_t waiter);
  // The page was read: its waiters, in the order of asking, now in `woken`.
  void loaded(std::uint32_t page, std::vector<std::uint32_t>& woken);

  // The unit's entry changed. Evictions may ask for write-backs.
  void change(std::uint32_t unit, std::uint16_t flow);

  // Pages to be written back, oldest first. A page is taken once until write_back_done.
  bool write_back_wanted() const { return wanted_first_ != none; }
  std::uint32_t take_write_back();
  void write_back_done(std::uint32_t page);

  std::uint64_t memory_bytes() const { return lines_.size() * (sizeof(Line) + 24); }

 private:
  struct Line {
    std::uint32_t number;                  // unit / entries_per_line
    std::uint32_t older, newer;            // in order of use, in its partition
    std::uint32_t dirty_prev, dirty_next;  // changed lines of the same page
    std::uint16_t partition;
    bool dirty;
  };
  struct Page {
    std::uint32_t dirty_first;  // index + 1
    std::uint32_t waiters;      // index + 1
    std::uint32_t last_waiter;  // index + 1
    std::uint32_t next_wanted;
    bool loading, writing, again;
  };
  struct Waiter {
    std::uint32_t who, next;
  };
  struct Partition {
    std::uint32_t used = 0, oldest = none, newest = none;
  };

  std::uint32_t cached_line(std::uint32_t number, std::uint16_t flow);
  void touch(std::uint32_t index);
  void unlink(std::uint32_t index);
  void link_newest(std::uint32_t index);
  void clean_page(std::uint32_t page);
  void want_write_back(std::uint32_t page);

  bool ideal_, equal_;
  std::uint32_t entries_per_line_, entries_per_page_, pages_;
  std::uint32_t quota_ = 0, free_ = none;
  std::vector<Line> lines_;
  FlatMap by_number_;
  LazyArray<Page> page_;
  std::vector<Partition> partitions_;
  std::vector<Waiter> waiters_;
  std::uint32_t free_waiter_ = none;
  std::uint32_t wanted_first_ = none, wanted_last_ = none;
};

}  // namespace iojoule::sim::physical
