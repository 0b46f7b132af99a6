// The write path of the drive: cache, what has to be read first, flash; flush, FUA and TRIM.
#include <algorithm>

#include "device.hpp"

namespace iojoule::sim::physical {

// Whether the request is done only when its data are in flash.
bool Device::writes_through(const HostRequest& request) const {
  const FlowConfig& flow = host_.flow(request.flow);
  if (flow.caching == CachingMode::turned_off || flow.caching == CachingMode::read_cache) return true;
  return flow.host.force_unit_access && !context_.options.controller.power_loss_protection;
}

bool Device::keeps_copies(std::uint16_t flow) const {
  const CachingMode caching = host_.flow(flow).caching;
  return caching == CachingMode::read_cache || caching == CachingMode::write_read_cache;
}

void Device::data_arrives(std::uint32_t index) {
  host_.request(index).progress = 0;
  if (waiting_writes_.head != none || !advance_write(index)) {
    host_.push(waiting_writes_, index);
  } else {
    part_done(index);
  }
}

// Takes the request's units into the cache, as many as there is room for; true when it has all.
bool Device::advance_write(std::uint32_t index) {
  HostRequest& request = host_.request(index);
  const std::uint64_t now_ns = context_.now_ns();
  const std::uint32_t first = first_unit(request), count = unit_count(request);
  const bool through = writes_through(request);
  const bool mapped = context_.mapping_cache.ideal();
  WriteCache& cache = context_.cache;
  // All units up to there, but maybe the first, are written as a whole and with nobody waiting.
  const std::uint32_t whole =
      through || !mapped                                                      ? 0
      : context_.layout.by_unit.remainder(request.sector + request.sectors) == 0 ? count
                                                                              : count - 1;
  while (request.progress < count) {
    const std::uint32_t unit = first + request.progress;
    const bool edge = request.progress == 0 || request.progress + 1 == count;
    std::uint32_t slot = cache.find(unit);
    bool begins = true;
    if (slot == none) {
      slot = cache.acquire_dirty(unit, request.flow, now_ns);
      if (slot == none) return false;
      ++context_.counts.cache_misses_write;
      cache.slot(slot).needs_fill =
          edge && bytes_in_unit(request, unit) < context_.layout.unit_bytes;
    } else if (cache.slot(slot).state == SlotState::clean) {
      if (!cache.make_dirty(slot, now_ns)) return false;
      cache.slot(slot).mapped = false;
      ++context_.counts.cache_hits_write;
    } else {
      if (cache.slot(slot).state == SlotState::writing) cache.rewrite(slot, now_ns);
      ++context_.counts.cache_hits_write;
      begins = false;
    }
    if (through) {
      ++request.pending;
      CacheSlot& held = cache.slot(slot);
      held.dirty_waiters = cache.add_waiter(index, held.dirty_waiters);
    }
    ++request.progress;
    if (!begins) continue;
    if (!mapped || cache.slot(slot).needs_fill) {
      prepare(slot);
      continue;
    }
    queue_slot(slot);
    // What follows it in its list is entered at once.
    if (request.progress < whole && flushes_.head == none) {
      const std::uint32_t further = std::min(whole - request.progress,
                                             flash_.units_in_list(request.flow, unit) - 1);
      const std::uint32_t entered = cache.extend(cache.slot(slot).list, unit + 1, further,
                                                 request.flow, now_ns);
      context_.counts.cache_misses_write += entered;
      request.progress += entered;
    }
  }
  const std::uint64_t bytes = std::uint64_t{request.sectors} * sector_bytes;
  request.data_end_ps = std::max(request.data_end_ps, access_dram(to_ps(now_ns), bytes));
  return true;
}

void Device::retry_writes() {
  while (waiting_writes_.head != none && advance_write(waiting_writes_.head)) {
    // Out of the queue first: a request that is done may be free at once.
    part_done(host_.pop(waiting_writes_));
  }
}

// Brings a dirty slot to its list: first its mapping entry, then the part that was not written.
void Device::prepare(std::uint32_t index) {
  CacheSlot& slot = context_.cache.slot(index);
  if (!slot.mapped && !context_.mapping_cache.ideal()) {
    slot.mapped = true;
    if (!mapping_ready(slot.unit, slot.flow, false, (index << 1U) | 1U)) return;
  }
  if (slot.needs_fill && !slot.orphan && context_.table.find(slot.unit) != none) {
    flash_.read(ReadKind::fill, index, place_of(slot.flow, slot.unit),
                {slot.unit, 1, context_.layout.unit_bytes}, read_class(slot.flow));
    return;
  }
  slot_filled(index);
}

void Device::slot_filled(std::uint32_t index) {
  CacheSlot& slot = context_.cache.slot(index);
  slot.needs_fill = false;
  std::uint32_t chain = slot.fill_waiters;
  slot.fill_waiters = none;
  while (chain != none) {
    std::uint32_t request = none;
    chain = context_.cache.pop_waiter(chain, request);
    answer_from_memory(request, bytes_in_unit(host_.request(request), slot.unit));
    part_done(request);
  }
  queue_slot(index);
}

void Device::queue_slot(std::uint32_t index) {
  WriteCache& cache = context_.cache;
  if (!cache.still_wanted(index)) {
    serve_flushes();
    retry_writes();
    return;
  }
  const CacheSlot& slot = cache.slot(index);
  const std::size_t list = flash_.list_of(slot.flow, slot.unit, host_.flow(slot.flow).priority);
  cache.enqueue(index, list);
  // Somebody waits for this slot or for a flush: then a part of a page must do.
  if (context_.layout.units_per_page > 1 &&
      (slot.dirty_waiters != none || flushes_.head != none)) {
    flash_.force(list);
  }
  flash_.list_changed(list);
}

void Device::slots_programmed(const std::uint32_t* slots, std::uint32_t count,
                              std::uint64_t array_ns, std::uint64_t transfer_ns) {
  if (count == 0) return;
  WriteCache& cache = context_.cache;
  const std::uint64_t now_ns = context_.now_ns();
  // Mostly nobody waits for any of them, and all can go at once.
  const std::uint16_t flow = cache.slot(slots[0]).flow;
  bool plain = flushes_.head == none && waiting_writes_.head == none &&
               energy_.dram_joules_per_byte == 0 && !keeps_copies(flow);
  std::uint64_t turnaround_ns = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const CacheSlot& slot = cache.slot(slots[i]);
    plain = plain && !slot.rewritten && !slot.orphan && slot.writing_waiters == none &&
            slot.flow == flow;
    turnaround_ns += now_ns - slot.writing_ns;
  }
  if (plain) {
    host_.add_transaction(flow, true, turnaround_ns, array_ns * count, transfer_ns * count, count);
    context_.dram.access(to_ps(now_ns), context_.layout.unit_bytes, count);
    return cache.release_programmed(slots, count);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const CacheSlot& slot = cache.slot(slots[i]);
    host_.add_transaction(slot.flow, true, now_ns - slot.writing_ns, array_ns, transfer_ns);
    access_dram(to_ps(now_ns), context_.layout.unit_bytes);
    const std::uint32_t waiters = slot.writing_waiters;
    if (cache.programmed(slots[i], keeps_copies(slot.flow))) prepare(slots[i]);
    if (waiters != none) release_waiters(waiters);
    if (flushes_.head != none) serve_flushes();
    if (waiting_writes_.head != none) retry_writes();
  }
}

void Device::release_waiters(std::uint32_t chain) {
  while (chain != none) {
    std::uint32_t request = none;
    chain = context_.cache.pop_waiter(chain, request);
    part_done(request);
  }
}

// The command changes one entry of the mapping table for every unit it covers.
void Device::start_trim(std::uint32_t index) {
  const HostRequest request = host_.request(index);
  const std::uint32_t first = first_unit(request), count = unit_count(request);
  std::uint32_t trimmed = 0;
  for (std::uint32_t unit = first; unit < first + count; ++unit) {
    if (bytes_in_unit(request, unit) < context_.layout.unit_bytes) continue;
    ++trimmed;
    release_waiters(context_.cache.trim(unit));
    const std::uint32_t physical = context_.table.find(unit);
    if (physical != none) {
      context_.blocks.drop_valid(context_.layout.block_of_unit(physical));
      context_.table.remove(Content::of_unit(unit));
    }
    if (!context_.mapping_cache.ideal()) context_.mapping_cache.change(unit, request.flow);
  }
  if (trimmed > 0) {
    const std::uint64_t bytes =
        std::uint64_t{trimmed} * context_.options.controller.mapping_entry_bytes;
    host_.request(index).data_end_ps = access_dram(to_ps(context_.now_ns()), bytes);
    serve_flushes();
    retry_writes();
  }
  part_done(index);
}

// All that was dirty when the flush came has to be in flash, unless a power cut cannot harm it.
void Device::start_flush(std::uint32_t index) {
  ++context_.counts.physical.flushes;
  HostRequest& request = host_.request(index);
  if (context_.options.controller.power_loss_protection) {
    part_done(index);
    return;
  }
  request.epoch = context_.cache.close_epoch();
  host_.push(flushes_, index);
  flash_.force_all();
  serve_flushes();
}

void Device::serve_flushes() {
  while (flushes_.head != none &&
         context_.cache.epoch_done(host_.request(flushes_.head).epoch)) {
    const std::uint32_t index = host_.pop(flushes_);
    context_.counts.physical.flush_wait_sum_ns +=
        context_.now_ns() - host_.request(index).submitted_ns;
    part_done(index);
  }
}

}  // namespace iojoule::sim::physical
