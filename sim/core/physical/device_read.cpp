// The read path of the drive: cache, mapping, flash, link.
#include <algorithm>

#include "device.hpp"

namespace iojoule::sim::physical {

std::uint32_t Device::first_unit(const HostRequest& request) const {
  return context_.layout.first_unit[request.flow] +
         context_.layout.unit_of_sector(request.sector);
}

std::uint32_t Device::unit_count(const HostRequest& request) const {
  const Layout& layout = context_.layout;
  return layout.unit_of_sector(request.sector + request.sectors - 1) -
         layout.unit_of_sector(request.sector) + 1;
}

// How much of a unit the request covers.
std::uint32_t Device::bytes_in_unit(const HostRequest& request, std::uint32_t unit) const {
  const std::uint64_t per_unit = context_.layout.unit_sectors;
  const std::uint64_t start =
      std::uint64_t{unit - context_.layout.first_unit[request.flow]} * per_unit;
  const std::uint64_t from = std::max(start, request.sector);
  const std::uint64_t to = std::min(start + per_unit, request.sector + request.sectors);
  return static_cast<std::uint32_t>((to - from) * sector_bytes);
}

std::uint8_t Device::read_class(std::uint16_t flow) const {
  if (context_.device.scheduler != Scheduler::priority_out_of_order) {
    return 1 + static_cast<std::uint8_t>(Priority::high);
  }
  return static_cast<std::uint8_t>(1 + static_cast<std::uint8_t>(host_.flow(flow).priority));
}

void Device::start_read(std::uint32_t index) {
  const HostRequest& request = host_.request(index);  // none is made in here
  const std::uint32_t first = first_unit(request), count = unit_count(request);
  const bool flash_always = context_.options.nand.unwritten_reads == UnwrittenReads::flash;
  std::uint64_t from_memory = 0;
  Gathered gathered;
  for (std::uint32_t unit = first; unit < first + count; ++unit) {
    const std::uint32_t bytes = bytes_in_unit(request, unit);
    const std::uint32_t slot = context_.cache.find(unit);
    if (slot != none) {
      ++context_.counts.cache_hits_read;
      CacheSlot& held = context_.cache.slot(slot);
      if (held.state == SlotState::preparing && held.needs_fill) {
        held.fill_waiters = context_.cache.add_waiter(index, held.fill_waiters);
        ++host_.request(index).pending;
      } else {
        context_.cache.touch(slot);
        from_memory += bytes;
      }
      continue;
    }
    ++context_.counts.cache_misses_read;
    if (!context_.mapping_cache.ideal()) {
      std::uint32_t waiting = free_waiting_unit_;
      if (waiting == none) {
        waiting = static_cast<std::uint32_t>(waiting_units_.size());
        waiting_units_.push_back({index, unit, bytes, none});
      } else {
        free_waiting_unit_ = waiting_units_[waiting].next;
        waiting_units_[waiting] = {index, unit, bytes, none};
      }
      if (!mapping_ready(unit, request.flow, true, waiting << 1U)) {
        ++host_.request(index).pending;
        continue;
      }
      waiting_units_[waiting].next = free_waiting_unit_;
      free_waiting_unit_ = waiting;
    }
    if (!flash_always && context_.table.find(unit) == none) {
      from_memory += bytes;  // zeros
      continue;
    }
    gather(index, gathered, unit, bytes);
  }
  issue(index, gathered, true);
  if (from_memory > 0) answer_from_memory(index, from_memory);
  part_done(index);
}

void Device::gather(std::uint32_t index, Gathered& gathered, std::uint32_t unit,
                    std::uint32_t bytes) {
  const Flash::Place place = place_of(host_.request(index).flow, unit);
  if (gathered.part.units > 0 && gathered.place.page == place.page &&
      gathered.place.written == place.written) {
    ++gathered.part.units;
    gathered.part.bytes += bytes;
    return;
  }
  issue(index, gathered, false);
  gathered = {place, {unit, 1, bytes}};
}

void Device::issue(std::uint32_t index, Gathered& gathered, bool last) {
  if (gathered.part.units == 0) return;
  HostRequest& request = host_.request(index);
  ++request.pending;
  const bool alone = last && gathered.part.units == unit_count(request);
  flash_.read(ReadKind::user, index, gathered.place, gathered.part, read_class(request.flow), alone);
  gathered.part.units = 0;
}

void Device::answer_from_memory(std::uint32_t index, std::uint64_t bytes) {
  send_to_host(index, access_dram(to_ps(context_.now_ns()), bytes), bytes);
}

void Device::send_to_host(std::uint32_t index, std::uint64_t ready_ps, std::uint64_t bytes) {
  const std::uint64_t left_ps = leave(ready_ps, bytes);
  spend_link(bytes, left_ps);
  HostRequest& request = host_.request(index);
  request.data_end_ps = std::max(request.data_end_ps, left_ps);
}

void Device::page_read(const PageRead& read, std::uint64_t out_ns) {
  switch (read.kind) {
    case ReadKind::user: break;
    case ReadKind::fill: return slot_filled(read.owner);
    case ReadKind::mapping_load: return mapping_page_loaded(read.owner);
    case ReadKind::mapping_update:
      return flash_.write_mapping_page(read.owner, mapping_place(read.owner).plane);
    case ReadKind::moved: return;
  }
  const std::uint16_t flow = host_.request(read.owner).flow;
  host_.add_transaction(flow, false, out_ns - read.asked_ns, read.array_ns, read.transfer_ns);
  send_to_host(read.owner, to_ps(out_ns + context_.options.nand.ecc_decode_ns), read.useful_bytes);
  if (keeps_copies(flow)) {
    for (std::uint32_t u = 0; u < read.units; ++u) {
      context_.cache.keep_clean(read.first_unit + u, flow);
    }
  }
  part_done(read.owner);
}

}  // namespace iojoule::sim::physical
