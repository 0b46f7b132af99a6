// The mapping table of the drive: entries that are not in memory, and changed ones on their way back.
#include "device.hpp"

namespace iojoule::sim::physical {

// Pages of the table go round all planes; before one is written for the first time, it is read from
// where this puts it.
Flash::Place Device::mapping_place(std::uint32_t page) const {
  const Layout& layout = context_.layout;
  const std::uint32_t physical = context_.table.find_mapping_page(page);
  if (physical != none) {
    const std::uint32_t flash_page = layout.page_of_unit(physical);
    return {layout.plane_of_page(flash_page), flash_page, true};
  }
  const std::uint32_t plane = page % layout.planes;
  return {plane, plane * layout.pages_per_plane + page / layout.planes % layout.pages_per_plane,
          false};
}

// Whether the entry of the unit is in memory; if not, `waiter` is told when it is.
bool Device::mapping_ready(std::uint32_t unit, std::uint16_t flow, bool is_read,
                           std::uint32_t waiter) {
  DeviceResult& counts = context_.counts;
  ++(is_read ? counts.cmt_queries_read : counts.cmt_queries_write);
  MappingCache& cache = context_.mapping_cache;
  switch (cache.access(unit, flow)) {
    case MappingAccess::hit:
      ++(is_read ? counts.cmt_hits_read : counts.cmt_hits_write);
      return true;
    case MappingAccess::in_memory: return true;
    case MappingAccess::loading: cache.wait(cache.page_of(unit), waiter); return false;
    case MappingAccess::miss: break;
  }
  const std::uint32_t page = cache.page_of(unit);
  cache.wait(page, waiter);
  load_mapping_page(page);
  return false;
}

void Device::load_mapping_page(std::uint32_t page) {
  flash_.read(ReadKind::mapping_load, page, mapping_place(page),
              {0, 0, context_.layout.unit_bytes}, 0);
}

void Device::mapping_page_loaded(std::uint32_t page) {
  context_.mapping_cache.loaded(page, woken_);
  const bool flash_always = context_.options.nand.unwritten_reads == UnwrittenReads::flash;
  Gathered gathered;
  std::uint32_t request = none;
  for (const std::uint32_t waiter : woken_) {
    const std::uint32_t who = waiter >> 1U;
    if ((waiter & 1U) != 0) {
      CacheSlot& slot = context_.cache.slot(who);
      context_.mapping_cache.keep(slot.unit, slot.flow);
      continue;
    }
    const WaitingUnit unit = waiting_units_[who];
    waiting_units_[who].next = free_waiting_unit_;
    free_waiting_unit_ = who;
    context_.mapping_cache.keep(unit.unit, host_.request(unit.request).flow);
    if (unit.request != request && request != none) issue(request, gathered, false);
    request = unit.request;
    if (!flash_always && context_.table.find(unit.unit) == none) {
      answer_from_memory(request, unit.bytes);
    } else {
      gather(request, gathered, unit.unit, unit.bytes);
    }
  }
  if (request != none) issue(request, gathered, woken_.size() == 1);
  // Only now: a request whose units all waited here must not complete between two of them.
  for (const std::uint32_t waiter : woken_) {
    const std::uint32_t who = waiter >> 1U;
    if ((waiter & 1U) != 0) {
      prepare(who);
    } else {
      part_done(waiting_units_[who].request);
    }
  }
}

void Device::serve_write_backs() {
  while (context_.mapping_cache.write_back_wanted()) {
    const std::uint32_t page = context_.mapping_cache.take_write_back();
    const Flash::Place place = mapping_place(page);
    // The entries that are not in memory are read first.
    flash_.read(ReadKind::mapping_update, page, place, {0, 0, context_.layout.unit_bytes}, 0);
    ++context_.counts.map_writes_queued;
  }
  flash_.run_marked();
}

void Device::mapping_page_programmed(std::uint32_t page) {
  context_.mapping_cache.write_back_done(page);
}

}  // namespace iojoule::sim::physical
