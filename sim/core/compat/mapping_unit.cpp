// From logical to flash pages: the page table, its cache, placement of reads and programs.
#include <bit>

#include "../error.hpp"
#include "device.hpp"
#include "striping.hpp"

namespace iojoule::sim::compat {

// Translates what can be translated now and hands it to the scheduler in one go.
void Device::dispatch(const std::vector<std::uint32_t>& pages) {
  for (const std::uint32_t index : pages) {
    const Transaction& page = transactions_[index];
    if (locked(page.flow, page.lpn)) {
      wait_behind_barrier(index);
    } else {
      translate_when_mapped(index);
    }
  }
  open_submission();
  for (const std::uint32_t index : pages) {
    if (transactions_[index].placed) submit_placed(index);
  }
  close_submission();
}

void Device::submit_placed(std::uint32_t index) {
  submit_transaction(index);
  const Transaction& page = transactions_[index];
  if (page.operation == Operation::program && page.related != nothing) submit_transaction(page.related);
}

// No reference to a transaction may live across what can make another one.
bool Device::translate_when_mapped(std::uint32_t index) {
  const bool is_read = transactions_[index].operation == Operation::read;
  const std::uint8_t flow = transactions_[index].flow;
  const std::uint32_t lpn = transactions_[index].lpn;
  ++(is_read ? counts_.cmt_queries_read : counts_.cmt_queries_write);
  if (config_.mapping_ideal || mapping_caches_[flow].at_hand(lpn)) {
    ++(is_read ? counts_.cmt_hits_read : counts_.cmt_hits_write);
    return place_or_stop(index);
  }
  if (fetch_mapping(flow, lpn)) return place_or_stop(index);
  MappingPages& pages = mapping_pages_[flow];
  append(is_read ? pages.waiting_reads : pages.waiting_programs, lpn, index);
  return false;
}

bool Device::place_or_stop(std::uint32_t index) {
  if (place(index)) return true;
  stopped_programs_[transactions_[index].plane].push_back(index);
  return false;
}

bool Device::place(std::uint32_t index) {
  Transaction& page = transactions_[index];
  page.plane = plane_of(page.flow, page.lpn);
  touch_mapping(page.flow, page.lpn);
  if (page.operation == Operation::read) {
    place_read(index);
    return true;
  }
  if (writes_stopped(page.plane)) return false;
  place_program(index);
  return true;
}

// Where a page goes that is read before it was written.
std::uint32_t Device::plane_of_first_read(std::uint8_t flow, std::uint32_t lpn) const {
  const std::vector<std::uint32_t>& planes = streams_[flow].first_read_planes;
  if (planes.empty()) return plane_of(flow, lpn);
  const std::uint32_t plane = planes[streams_[flow].stripe.remainder(lpn)];
  if (plane != no_plane) return plane;
  throw ConfigError("die_ids",
                    "with the plane allocation DWCP MQSim takes the number of a die for that of a plane where a page is "
                    "read that was never written, and the flow has a die with a number that no plane has; use another "
                    "allocation");
}

// As the page table holds it: a place in the plane of first reads, where that is another one, counts on from
// the last of the other plane.
std::uint32_t Device::place_in(std::uint32_t plane, std::uint8_t flow, std::uint32_t lpn,
                               std::uint32_t place) const {
  if (streams_[flow].first_read_planes.empty() || plane == plane_of(flow, lpn)) return place;
  return place + geometry_.pages_per_plane();
}

// The page's plane is the one that it is written to.
void Device::set_data_place(Transaction& page, std::uint32_t place) const {
  const Stream& stream = streams_[page.flow];
  if (!stream.first_read_planes.empty() && place >= geometry_.pages_per_plane()) {
    page.plane = stream.first_read_planes[stream.stripe.remainder(page.lpn)];
    place -= geometry_.pages_per_plane();
  }
  set_place(page, place);
}

// A page that was never written gets a place when it is read first; nothing is programmed.
void Device::place_read(std::uint32_t index) {
  const std::uint8_t flow = transactions_[index].flow;
  const std::uint32_t lpn = transactions_[index].lpn;
  PageTable& table = tables_[flow];
  if (!table.mapped(lpn)) {
    // May begin a collection, which makes transactions: no reference to one survives this.
    const std::uint32_t plane = plane_of_first_read(flow, lpn);
    const std::uint32_t place = next_data_page(plane, flow, lpn);
    update_mapping(flow, lpn, place_in(plane, flow, lpn, place), transactions_[index].sectors);
  }
  Transaction& page = transactions_[index];
  set_data_place(page, table.place(lpn));
  ++blocks_.block(page.plane, page.block).reads;
  page.placed = true;
}

// Old data that the new do not cover are read first; the program waits for them.
void Device::place_program(std::uint32_t index) {
  const std::uint8_t flow = transactions_[index].flow;
  const std::uint32_t lpn = transactions_[index].lpn;
  PageTable& table = tables_[flow];
  if (table.mapped(lpn)) {
    const std::uint64_t kept = table.sectors(lpn) & ~transactions_[index].sectors;
    std::uint32_t update = nothing;
    if (kept != 0) update = transactions_.make();
    const Transaction& page = transactions_[index];
    Transaction old;
    old.plane = page.plane;
    old.flow = flow;
    old.lpn = lpn;
    set_data_place(old, table.place(lpn));
    if (kept != 0) {
      old.operation = Operation::read;
      old.source = page.source;
      // MQSim gives it this class whatever that of the program or of the flow is.
      old.priority = static_cast<std::uint8_t>(Priority::high);
      old.request = page.request;
      old.related = index;
      old.sectors = kept;
      old.bytes = static_cast<std::uint32_t>(std::popcount(kept)) * sector_bytes;
      old.issued_ns = events_.now_ns();
      old.placed = true;
      transactions_[update] = old;
      transactions_[index].related = update;
      ++blocks_.block(old.plane, old.block).reads;
    }
    blocks_.invalidate(old.plane, old.block, old.page);
  }
  const std::uint32_t place = next_data_page(transactions_[index].plane, flow, lpn);
  Transaction& page = transactions_[index];
  set_place(page, place);
  update_mapping(flow, lpn, place, page.sectors | table.sectors(lpn));
  page.placed = true;
}

// The next page of the flow's write frontier in that plane. MQSim counts a program as begun for it,
// also where a read takes the page and no program will ever end.
std::uint32_t Device::next_data_page(std::uint32_t plane, std::uint8_t flow, std::uint32_t lpn) {
  Frontiers& frontiers = blocks_.frontiers(plane, flow);
  const std::uint32_t block = frontiers.data;
  const std::uint32_t page = blocks_.block(plane, block).next_page++;
  blocks_.set_owner(plane, block, page, lpn);
  const std::uint64_t number = blocks_.page_number(plane, block, page);
  if (reads_cached(flow) && !unprogrammed_.contains(number)) unprogrammed_.insert(number, 0);
  ++blocks_.block(plane, block).programs;
  if (page + 1 == geometry_.pages_per_block) {
    frontiers.data = blocks_.open(plane, flow, false);
    check_collection(plane);
  }
  return block * geometry_.pages_per_block + page;
}

void Device::touch_mapping(std::uint8_t flow, std::uint32_t lpn) {
  if (config_.mapping_ideal || mapping_caches_[flow].touch(lpn)) return;
  throw ModelError("the entry of a logical page left the mapping cache while its write waited for a free block");
}

void Device::update_mapping(std::uint8_t flow, std::uint32_t lpn, std::uint32_t place, std::uint64_t sectors) {
  if (!config_.mapping_ideal) mapping_caches_[flow].change(lpn);
  tables_[flow].set(lpn, place, sectors);
}

// True when the entry can be had at once; else it is on its way from flash.
bool Device::fetch_mapping(std::uint8_t flow, std::uint32_t lpn) {
  MappingCache& cache = mapping_caches_[flow];
  MappingPages::Page& page = mapping_pages_[flow][lpn / entries_per_mapping_page_];
  if (!page.arriving.empty()) {
    if (!cache.awaited(lpn)) {
      make_mapping_room(flow);
      cache.reserve(lpn);
      page.arriving.push_back(lpn);
    }
    return false;
  }
  const bool on_flash = page.place != nothing;
  const std::uint64_t saved_sectors = tables_[flow].sectors(lpn);
  // What preconditioning mapped, MQSim takes for never written as long as its mapping page was never written.
  if (!on_flash && tables_[flow].mapped(lpn)) tables_[flow].forget(lpn);
  const bool in_memory = !on_flash || page.departing > 0;
  make_mapping_room(flow);
  cache.reserve(lpn);
  if (in_memory) {
    cache.arrive(lpn, saved_sectors);
    ++counts_.cmt_misses_at_once;
    return true;
  }
  read_mapping(flow, lpn);
  return false;
}

// A collection moves a page whose entry need not be at hand: it takes a place in the cache, without a
// read from flash.
void Device::bring_mapping(std::uint8_t flow, std::uint32_t lpn) {
  MappingCache& cache = mapping_caches_[flow];
  if (cache.touch(lpn)) return;
  make_mapping_room(flow);
  cache.reserve(lpn);
  cache.arrive(lpn, tables_[flow].sectors(lpn));
}

void Device::make_mapping_room(std::uint8_t flow) {
  MappingCache& cache = mapping_caches_[flow];
  if (!cache.full()) return;
  const MappingCache::Evicted evicted = cache.evict(tables_[flow]);
  if (evicted.dirty) write_back_mapping(flow, evicted.lpn);
}

std::uint32_t Device::make_mapping_read(std::uint8_t flow, std::uint32_t number, std::uint32_t bytes) {
  const std::uint32_t index = transactions_.make();
  Transaction& read = transactions_[index];
  read.operation = Operation::read;
  read.source = Source::mapping;
  read.flow = flow;
  read.lpn = number;
  read.bytes = bytes;
  read.plane = mapping_plane_of(flow, number);
  set_place(read, mapping_pages_[flow][number].place);
  read.issued_ns = events_.now_ns();
  read.placed = true;
  ++blocks_.block(read.plane, read.block).reads;
  ++counts_.map_reads;
  return index;
}

void Device::read_mapping(std::uint8_t flow, std::uint32_t lpn) {
  const std::uint32_t number = lpn / entries_per_mapping_page_;
  mapping_pages_[flow][number].arriving.push_back(lpn);
  open_submission();
  submit_transaction(make_mapping_read(flow, number, sector_bytes));
  close_submission();
}

// Reads the entries of the page that are not at hand and queues its program, which never runs: from
// now on the page counts as being in memory (mqsim.md, 0.6).
void Device::write_back_mapping(std::uint8_t flow, std::uint32_t lpn) {
  MappingCache& cache = mapping_caches_[flow];
  const std::uint32_t number = lpn / entries_per_mapping_page_;
  MappingPages::Page& mapping_page = mapping_pages_[flow][number];
  std::uint64_t sectors_to_read = 0;
  const std::uint32_t first = number * entries_per_mapping_page_;
  cache.write_back(first, first + entries_per_mapping_page_, [&](std::uint32_t page) {
    sectors_to_read |= std::uint64_t{1} << ((page - first) * stored_entry_bytes_ / sector_bytes);
  });
  open_submission();
  if (mapping_page.place != nothing) {
    const auto bytes = static_cast<std::uint32_t>(std::popcount(sectors_to_read)) * sector_bytes;
    submit_transaction(make_mapping_read(flow, number, bytes));
    mapping_page.arriving.push_back(lpn);  // whoever misses meanwhile waits for this read
  } else {
    ++counts_.map_reads;  // MQSim counts a read that it does not do
  }
  ++mapping_page.departing;
  ++counts_.map_writes_queued;
  mapping_program_submitted_ = true;
  if (QueueMeter* meter = mapping_program_meter(mapping_plane_of(flow, number))) meter->enter(events_.now_ns());
  place_mapping_program(flow, number);
  close_submission();
}

void Device::place_mapping_program(std::uint8_t flow, std::uint32_t number) {
  std::uint32_t& place = mapping_pages_[flow][number].place;
  const std::uint32_t plane = mapping_plane_of(flow, number);
  const std::uint32_t old = place;
  if (old != nothing) {
    blocks_.invalidate(plane, old / geometry_.pages_per_block, old % geometry_.pages_per_block);
  }
  Frontiers& frontiers = blocks_.frontiers(plane, flow);
  const std::uint32_t block = frontiers.mapping;
  const std::uint32_t page = blocks_.block(plane, block).next_page++;
  blocks_.set_owner(plane, block, page, number);
  ++blocks_.block(plane, block).programs;  // never ends, see next_data_page
  place = block * geometry_.pages_per_block + page;
  if (page + 1 == geometry_.pages_per_block) {
    frontiers.mapping = blocks_.open(plane, flow, true);
    check_collection(plane);
  }
}

// A translation page has come: everything that waited for one of its entries goes on.
void Device::finish_mapping_transaction(std::uint32_t index) {
  const Transaction done = transactions_[index];
  if (done.operation != Operation::read) return;
  MappingPages& pages = mapping_pages_[done.flow];
  MappingCache& cache = mapping_caches_[done.flow];
  std::vector<std::uint32_t> arrived;
  arrived.swap(pages[done.lpn].arriving);
  open_submission();
  for (const std::uint32_t lpn : arrived) {
    if (!cache.awaited(lpn)) continue;
    cache.arrive(lpn, tables_[done.flow].sectors(lpn));
    for (FlatMap* waiting : {&pages.waiting_reads, &pages.waiting_programs}) {
      std::uint32_t next = take_chain(*waiting, lpn);
      while (next != nothing) {
        const std::uint32_t current = next;
        next = transactions_[current].next;
        if (locked(done.flow, lpn)) {
          wait_behind_barrier(current);
        } else if (place_or_stop(current)) {
          submit_placed(current);
        }
      }
    }
  }
  close_submission();
}

// Chains of transactions by logical page, in the order of their coming. A chain's head is its oldest.
void Device::append(FlatMap& chains, std::uint32_t lpn, std::uint32_t index) {
  transactions_[index].next = nothing;
  std::uint32_t last = chains.find(lpn);
  if (last == FlatMap::absent) {
    chains.insert(lpn, index);
    return;
  }
  while (transactions_[last].next != nothing) last = transactions_[last].next;
  transactions_[last].next = index;
}

std::uint32_t Device::take_chain(FlatMap& chains, std::uint32_t lpn) {
  const std::uint32_t first = chains.find(lpn);
  if (first == FlatMap::absent) return nothing;
  chains.erase(lpn);
  return first;
}

}  // namespace iojoule::sim::compat
