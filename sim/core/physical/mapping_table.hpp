// Which physical unit holds a logical unit, and the reverse.
#pragma once

#include <cstdint>
#include <vector>

#include "../lazy_array.hpp"
#include "layout.hpp"

namespace iojoule::sim::physical {

// What a physical unit holds: a logical unit, or a page of the mapping table itself.
struct Content {
  static constexpr std::uint32_t mapping_page_bit = 1U << 31;
  static std::uint32_t of_unit(std::uint32_t unit) { return unit + 1; }
  static std::uint32_t of_mapping_page(std::uint32_t page) { return mapping_page_bit | page; }
  static bool is_mapping_page(std::uint32_t content) { return (content & mapping_page_bit) != 0; }
  static std::uint32_t unit(std::uint32_t content) { return content - 1; }
  static std::uint32_t mapping_page(std::uint32_t content) { return content & ~mapping_page_bit; }
};

// Both tables are filled with zeros where nothing was written, and cost memory only where something
// was. A physical unit whose content is 0 is free or no longer valid. The entry of a unit that the
// drive's memory holds names its slot there, so that one look tells both; its place in flash stands
// with the slot meanwhile.
class MappingTable {
 public:
  MappingTable(std::uint32_t logical_units, std::uint32_t mapping_pages, std::uint64_t physical_units,
               std::uint32_t slots)
      : forward_(logical_units), mapping_pages_(mapping_pages), reverse_(physical_units), held_(slots) {}

  // `none` where the unit was never written or has been trimmed.
  std::uint32_t find(std::uint32_t unit) const { return place_of(entry_of(unit)) - 1; }
  std::uint32_t find_mapping_page(std::uint32_t page) const { return mapping_pages_[page] - 1; }
  std::uint32_t find_content(std::uint32_t content) const {
    return Content::is_mapping_page(content) ? find_mapping_page(Content::mapping_page(content))
                                             : find(Content::unit(content));
  }

  // The slot of the drive's memory that holds the unit, or none.
  std::uint32_t slot(std::uint32_t unit) const {
    const std::uint32_t entry = entry_of(unit);
    return (entry & held_bit) != 0 ? entry & ~held_bit : none;
  }
  // A unit in no slot is in this one; it leaves it.
  void hold(std::uint32_t unit, std::uint32_t slot) {
    empty_ = false;
    held_[slot] = forward_[unit];
    forward_[unit] = held_bit | slot;
  }
  void let_go(std::uint32_t unit, std::uint32_t slot) { forward_[unit] = held_[slot]; }

  // For a long run: large pages, where filling them costs little even if only a few of them are used.
  void expect_much() {
    for (LazyArray<std::uint32_t>* table : {&forward_, &reverse_}) {
      if (table->bytes() <= filled_bytes_max) table->will_be_filled();
    }
  }

  // For a request that comes soon: its units' entries, and, when those are there, what a write of
  // them changes.
  [[gnu::always_inline]] void prefetch(std::uint32_t unit) const {
    if (!empty_) __builtin_prefetch(&forward_[unit], 1);
  }
  void prefetch_contents(std::uint32_t first, std::uint32_t last) const {
    if (empty_) return;
    std::uint32_t before = 0;
    for (std::uint32_t unit = first; unit <= last; ++unit) {
      const std::uint32_t entry = forward_[unit];
      if (entry != before + 1 && entry != 0 && (entry & held_bit) == 0) prefetch_place(entry - 1);
      before = entry;
    }
  }
  void prefetch_place(std::uint32_t physical_unit) const {
    __builtin_prefetch(&reverse_[physical_unit], 1);
  }

  std::uint32_t content(std::uint32_t physical_unit) const { return reverse_[physical_unit]; }

  // Sets both directions; the content must not be anywhere else.
  void put(std::uint32_t content, std::uint32_t physical_unit) {
    empty_ = false;
    entry(content) = physical_unit + 1;
    reverse_[physical_unit] = content;
  }

  // The unit that the slot holds is somewhere else or nowhere, and now there. Returns where it was.
  std::uint32_t move_held(std::uint32_t unit, std::uint32_t slot, std::uint32_t physical_unit) {
    const std::uint32_t old = held_[slot] - 1;
    if (old != none) reverse_[old] = 0;
    held_[slot] = physical_unit + 1;
    reverse_[physical_unit] = Content::of_unit(unit);
    return old;
  }

  // Forgets where a content is.
  void remove(std::uint32_t content) {
    std::uint32_t& where = entry(content);
    reverse_[where - 1] = 0;
    where = 0;
  }

  std::size_t logical_units() const { return forward_.size(); }
  std::size_t physical_units() const { return reverse_.size(); }

 private:
  static constexpr std::size_t filled_bytes_max = std::size_t{128} << 20;
  static constexpr std::uint32_t held_bit = 1U << 31;  // no place has it: see units_limit in layout.cpp

  // Reads of a drive that was never written leave the table alone, whose pages would each be touched
  // for the first time.
  std::uint32_t entry_of(std::uint32_t unit) const { return empty_ ? 0 : forward_[unit]; }
  std::uint32_t place_of(std::uint32_t entry) const {
    return (entry & held_bit) != 0 ? held_[entry & ~held_bit] : entry;
  }
  std::uint32_t& entry(std::uint32_t content) {
    if (Content::is_mapping_page(content)) return mapping_pages_[Content::mapping_page(content)];
    std::uint32_t& of_unit = forward_[Content::unit(content)];
    return (of_unit & held_bit) != 0 ? held_[of_unit & ~held_bit] : of_unit;
  }

  LazyArray<std::uint32_t> forward_, mapping_pages_, reverse_;
  bool empty_ = true;                // no unit has an entry yet
  std::vector<std::uint32_t> held_;  // by slot: where its unit lies in flash, as in forward_
};

}  // namespace iojoule::sim::physical
