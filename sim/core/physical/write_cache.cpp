#include "write_cache.hpp"

#include <algorithm>

namespace iojoule::sim::physical {

std::uint32_t WriteCache::slot_count(const DeviceConfig& device, const Layout& layout) {
  const std::uint64_t buffers = std::uint64_t{2} * layout.planes * layout.units_per_page;
  const std::uint64_t wanted = std::max(device.cache_bytes / layout.unit_bytes, buffers);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(
      wanted, std::max<std::uint64_t>(layout.logical_units(), buffers)));
}

WriteCache::WriteCache(const DeviceConfig& device, const Layout& layout, MappingTable& table,
                       std::size_t flows, std::size_t lists)
    : table_(table),
      equal_(device.cache_sharing == Sharing::equal_partitioning),
      free_head_(0),
      slots_(slot_count(device, layout)),
      partitions_(equal_ ? flows : 1),
      lists_(lists) {
  epochs_.push_back(0);
  const auto count = static_cast<std::uint32_t>(slots_.size());
  quota_ = std::max(1U, count / static_cast<std::uint32_t>(partitions_.size()));
  const std::uint64_t limit = std::uint64_t{device.physical.controller.dirty_pages_per_plane} *
                              layout.planes * layout.units_per_page;
  dirty_limit_ = limit == 0 ? count : static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, count));
  for (std::uint32_t i = 0; i < count; ++i) {
    slots_[i].next = i + 1 < count ? i + 1 : none;
  }
}

void WriteCache::keep_clean(std::uint32_t unit, std::uint16_t flow) {
  if (find(unit) != none) return;
  const std::uint32_t index = acquire(unit, flow);
  if (index != none) link_newest(index);
}

void WriteCache::touch(std::uint32_t index) {
  if (slots_[index].state != SlotState::clean) return;
  unlink_clean(index);
  link_newest(index);
}

bool WriteCache::make_dirty(std::uint32_t index, std::uint64_t now_ns) {
  if (dirty_ >= dirty_limit_) return false;
  unlink_clean(index);
  count_dirty(slots_[index], now_ns);
  return true;
}

void WriteCache::rewrite(std::uint32_t index, std::uint64_t now_ns) {
  CacheSlot& slot = slots_[index];
  if (slot.rewritten) return;
  slot.rewritten = true;
  slot.dirty_ns = now_ns;
  slot.epoch = next_epoch_;
  ++epochs_[epochs_.size() - 1];
}

std::uint32_t WriteCache::trim(std::uint32_t unit) {
  const std::uint32_t index = find(unit);
  if (index == none) return none;
  CacheSlot& slot = slots_[index];
  table_.let_go(unit, index);
  const std::uint32_t waiters = slot.dirty_waiters;
  slot.dirty_waiters = none;
  switch (slot.state) {
    case SlotState::clean:
      unlink_clean(index);
      release(index);
      break;
    case SlotState::dirty:
      unlink_dirty(index);
      --dirty_;
      end_epoch_of(slot.epoch);
      release(index);
      break;
    case SlotState::writing:
      if (slot.rewritten) end_epoch_of(slot.epoch);
      slot.rewritten = false;
      slot.orphan = true;
      break;
    default: slot.orphan = true; break;
  }
  return waiters;
}

void WriteCache::unlink_dirty(std::uint32_t index) {
  const CacheSlot& slot = slots_[index];
  DirtyList& list = lists_[slot.list];
  (list.head == index ? list.head : slots_[slot.older].next) = slot.next;
  (list.tail == index ? list.tail : slots_[slot.next].older) = slot.older;
  --list.length;
  list.forced = std::min(list.forced, list.length);
}

std::uint32_t WriteCache::close_epoch() {
  epochs_.push_back(0);
  const std::uint32_t closed = next_epoch_++;
  drop_done_epochs();
  return closed;
}

std::uint32_t WriteCache::add_waiter(std::uint32_t request, std::uint32_t chain) {
  std::uint32_t index = free_waiter_;
  if (index == none) {
    index = static_cast<std::uint32_t>(waiters_.size());
    waiters_.push_back({});
  } else {
    free_waiter_ = waiters_[index].next;
  }
  waiters_[index] = {request, chain};
  return index;
}

std::uint32_t WriteCache::pop_waiter(std::uint32_t chain, std::uint32_t& request) {
  const std::uint32_t next = waiters_[chain].next;
  request = waiters_[chain].request;
  waiters_[chain].next = free_waiter_;
  free_waiter_ = chain;
  return next;
}

}  // namespace iojoule::sim::physical
