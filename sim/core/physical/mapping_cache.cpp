#include "mapping_cache.hpp"

#include <algorithm>

namespace iojoule::sim::physical {

namespace {

std::uint32_t entries_in_page(const DeviceConfig& device, const Layout& layout) {
  const ControllerOptions& options = device.physical.controller;
  const std::uint32_t entries = layout.unit_bytes / options.mapping_entry_bytes;
  // A line lies in one page.
  return std::max(options.mapping_entries_per_line,
                  entries - entries % options.mapping_entries_per_line);
}

}  // namespace

std::uint32_t MappingCache::page_count(const DeviceConfig& device, const Layout& layout) {
  if (device.mapping_ideal) return 0;
  const std::uint32_t entries = entries_in_page(device, layout);
  return (layout.logical_units() + entries - 1) / entries;
}

MappingCache::MappingCache(const DeviceConfig& device, const Layout& layout, std::size_t flows)
    : ideal_(device.mapping_ideal),
      equal_(device.cmt_sharing == Sharing::equal_partitioning),
      entries_per_line_(device.physical.controller.mapping_entries_per_line),
      entries_per_page_(entries_in_page(device, layout)),
      pages_(page_count(device, layout)),
      page_(pages_),
      partitions_(equal_ ? flows : 1) {
  if (ideal_) return;
  const std::uint64_t line_bytes =
      std::uint64_t{device.physical.controller.mapping_entry_bytes} * entries_per_line_;
  const std::uint64_t all = (layout.logical_units() + entries_per_line_ - 1) / entries_per_line_;
  const std::uint64_t lines = std::min(all, std::max<std::uint64_t>(device.cmt_bytes / line_bytes,
                                                                    partitions_.size()));
  lines_.resize(lines);
  by_number_ = FlatMap(lines);
  quota_ = static_cast<std::uint32_t>(lines / partitions_.size());
  for (std::uint32_t i = 0; i < lines; ++i) {
    lines_[i].newer = i + 1 < lines ? i + 1 : none;
  }
  free_ = 0;
}

MappingAccess MappingCache::access(std::uint32_t unit, std::uint16_t flow) {
  const std::uint32_t number = unit / entries_per_line_;
  const std::uint32_t index = by_number_.find(number);
  if (index != FlatMap::absent) {
    touch(index);
    return MappingAccess::hit;
  }
  Page& page = page_[page_of(unit)];
  if (page.loading) return MappingAccess::loading;
  if (page.writing) {
    cached_line(number, flow);
    return MappingAccess::in_memory;
  }
  page.loading = true;
  return MappingAccess::miss;
}

void MappingCache::keep(std::uint32_t unit, std::uint16_t flow) {
  const std::uint32_t number = unit / entries_per_line_;
  if (!by_number_.contains(number)) cached_line(number, flow);
}

void MappingCache::wait(std::uint32_t page_number, std::uint32_t who) {
  std::uint32_t index = free_waiter_;
  if (index == none) {
    index = static_cast<std::uint32_t>(waiters_.size());
    waiters_.push_back({});
  } else {
    free_waiter_ = waiters_[index].next;
  }
  waiters_[index] = {who, none};
  Page& page = page_[page_number];
  if (page.waiters == 0) {
    page.waiters = index + 1;
  } else {
    waiters_[page.last_waiter - 1].next = index;
  }
  page.last_waiter = index + 1;
}

void MappingCache::loaded(std::uint32_t page_number, std::vector<std::uint32_t>& woken) {
  Page& page = page_[page_number];
  page.loading = false;
  std::uint32_t index = page.waiters - 1;
  page.waiters = page.last_waiter = 0;
  woken.clear();
  while (index != none) {
    woken.push_back(waiters_[index].who);
    const std::uint32_t next = waiters_[index].next;
    waiters_[index].next = free_waiter_;
    free_waiter_ = index;
    index = next;
  }
}

void MappingCache::change(std::uint32_t unit, std::uint16_t flow) {
  const std::uint32_t number = unit / entries_per_line_;
  std::uint32_t index = by_number_.find(number);
  if (index == FlatMap::absent) {
    index = cached_line(number, flow);
  } else {
    touch(index);
  }
  Line& line = lines_[index];
  if (line.dirty) return;
  Page& page = page_[page_of(unit)];
  line.dirty = true;
  line.dirty_prev = none;
  line.dirty_next = page.dirty_first - 1;
  if (line.dirty_next != none) lines_[line.dirty_next].dirty_prev = index;
  page.dirty_first = index + 1;
}

// A line for a number that has none; the longest unused of the partition gives way.
std::uint32_t MappingCache::cached_line(std::uint32_t number, std::uint16_t flow) {
  const auto which = static_cast<std::uint16_t>(equal_ ? flow : 0);
  Partition& partition = partitions_[which];
  std::uint32_t index = free_;
  if (partition.used >= quota_ || index == none) {
    index = partition.oldest;
    const std::uint32_t page = lines_[index].number / (entries_per_page_ / entries_per_line_);
    if (lines_[index].dirty) {
      clean_page(page);
      want_write_back(page);
    }
    by_number_.erase(lines_[index].number);
    unlink(index);
  } else {
    free_ = lines_[index].newer;
    ++partition.used;
  }
  Line& line = lines_[index];
  line.number = number;
  line.partition = which;
  line.dirty = false;
  by_number_.insert(number, index);
  link_newest(index);
  return index;
}

void MappingCache::clean_page(std::uint32_t page_number) {
  Page& page = page_[page_number];
  for (std::uint32_t i = page.dirty_first - 1; i != none; i = lines_[i].dirty_next) {
    lines_[i].dirty = false;
  }
  page.dirty_first = 0;
}

void MappingCache::want_write_back(std::uint32_t page_number) {
  Page& page = page_[page_number];
  if (page.writing) {
    page.again = true;
    return;
  }
  page.writing = true;
  page.next_wanted = none;
  (wanted_last_ == none ? wanted_first_ : page_[wanted_last_].next_wanted) = page_number;
  wanted_last_ = page_number;
}

std::uint32_t MappingCache::take_write_back() {
  const std::uint32_t page = wanted_first_;
  wanted_first_ = page_[page].next_wanted;
  if (wanted_first_ == none) wanted_last_ = none;
  return page;
}

void MappingCache::write_back_done(std::uint32_t page_number) {
  Page& page = page_[page_number];
  page.writing = false;
  if (page.again) {
    page.again = false;
    want_write_back(page_number);
  }
}

void MappingCache::touch(std::uint32_t index) {
  if (partitions_[lines_[index].partition].newest == index) return;
  unlink(index);
  link_newest(index);
}

void MappingCache::unlink(std::uint32_t index) {
  Line& line = lines_[index];
  Partition& partition = partitions_[line.partition];
  (line.older == none ? partition.oldest : lines_[line.older].newer) = line.newer;
  (line.newer == none ? partition.newest : lines_[line.newer].older) = line.older;
}

void MappingCache::link_newest(std::uint32_t index) {
  Line& line = lines_[index];
  Partition& partition = partitions_[line.partition];
  line.newer = none;
  line.older = partition.newest;
  (line.older == none ? partition.oldest : lines_[line.older].newer) = index;
  partition.newest = index;
}

}  // namespace iojoule::sim::physical
