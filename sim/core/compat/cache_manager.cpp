// The data cache: writes end in DRAM and go to flash behind the request's back (mqsim.md, 3.4).
#include <bit>

#include "device.hpp"

namespace iojoule::sim::compat {

namespace {
// Pages written again within this time stay in DRAM until they are evicted.
constexpr std::uint64_t window_ns = 1'000'000'000;
}  // namespace

bool Device::writes_cached(std::uint8_t flow) const {
  const CachingMode mode = streams_[flow].config->caching;
  return mode == CachingMode::write_cache || mode == CachingMode::write_read_cache;
}

bool Device::reads_cached(std::uint8_t flow) const {
  const CachingMode mode = streams_[flow].config->caching;
  return mode == CachingMode::read_cache || mode == CachingMode::write_read_cache;
}

std::uint32_t Device::chain(const std::vector<std::uint32_t>& pages) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    transactions_[pages[i]].next = i + 1 < pages.size() ? pages[i + 1] : nothing;
  }
  return pages.empty() ? nothing : pages.front();
}

void Device::service_read(std::uint32_t id, std::vector<std::uint32_t>& pages) {
  UserRequest& request = requests_[id];
  if (streams_[request.stream].config->caching != CachingMode::turned_off) {
    DataCache& cache = caches_[share_of(request.stream)];
    std::size_t kept = 0;
    for (const std::uint32_t index : pages) {
      Transaction& page = transactions_[index];
      const std::uint32_t slot = cache.find(page_key(page.flow, page.lpn));
      if (slot != DataCache::absent) {
        cache.touch(slot);
        const std::uint64_t hit = cache[slot].sectors & page.sectors;
        const auto hit_sectors = static_cast<std::uint32_t>(std::popcount(hit));
        request.cached_sectors += hit_sectors;
        if (hit == page.sectors) {
          ++counts_.cache_hits_read;
          transactions_.free(index);
          continue;
        }
        page.sectors &= ~hit;
        page.bytes -= hit_sectors * sector_bytes;
      }
      ++counts_.cache_misses_read;
      pages[kept++] = index;
    }
    pages.resize(kept);
  }
  request.open_transactions = static_cast<std::uint32_t>(pages.size());
  if (request.cached_sectors > 0) {
    access_dram({DramAccess::Purpose::user, request.stream, request.cached_sectors * sector_bytes, id});
  }
  if (!pages.empty()) dispatch(pages);
}

// Takes the pages of a write one by one into the cache, as long as fewer sectors than a page of every
// plane are on their way to flash. The first write of a page in the current window goes straight on.
void Device::destage(std::uint32_t id) {
  UserRequest& request = requests_[id];
  const std::uint8_t flow = request.stream;
  DataCache& cache = caches_[share_of(flow)];
  std::uint32_t& pressure = back_pressure_[share_of(flow)];
  std::uint32_t evicted_sectors = 0, written_back_sectors = 0, dram_sectors = 0;
  std::uint32_t evictions = nothing, last_eviction = nothing;
  std::vector<std::uint32_t>& write_back = write_back_pages_;
  write_back.clear();

  while (request.pending_writes != nothing &&
         pressure + evicted_sectors + written_back_sectors < back_pressure_limit_) {
    const std::uint32_t index = request.pending_writes;
    request.pending_writes = transactions_[index].next;
    const Transaction page = transactions_[index];
    const std::uint64_t key = page_key(flow, page.lpn);
    std::uint32_t slot = cache.find(key);
    if (slot != DataCache::absent) {
      ++counts_.cache_hits_write;
      cache.touch(slot);
      CacheSlot& held = cache[slot];
      held.sectors |= page.sectors;
      held.written_ns = std::max(held.written_ns, page.stamp_ns);
      held.dirty = true;
    } else {
      ++counts_.cache_misses_write;
      if (cache.full()) {
        const CacheSlot evicted = cache.evict();
        if (must_be_programmed(evicted, flow)) {
          const std::uint32_t eviction = make_eviction(evicted, flow, Priority::urgent);
          (evictions == nothing ? evictions : transactions_[last_eviction].next) = eviction;
          last_eviction = eviction;
          evicted_sectors += static_cast<std::uint32_t>(std::popcount(evicted.sectors));
        }
      }
      slot = cache.insert(key, page.sectors, page.stamp_ns, true);
    }
    const auto sectors = static_cast<std::uint32_t>(std::popcount(page.sectors));
    dram_sectors += sectors;
    if (!written_lately_[flow].contains(page.lpn)) {
      written_lately_[flow].insert(page.lpn, 0);
      cache[slot].dirty = false;
      written_back_sectors += sectors;
      write_back.push_back(index);
    } else {
      transactions_.free(index);
    }
  }
  request.cached_sectors += dram_sectors;
  pressure += evicted_sectors + written_back_sectors;

  if (evictions != nothing) {
    access_dram({DramAccess::Purpose::eviction, flow, evicted_sectors * sector_bytes, evictions});
  }
  if (dram_sectors > 0) {
    access_dram({DramAccess::Purpose::user, flow, dram_sectors * sector_bytes, id});
  }
  if (!write_back.empty()) dispatch(write_back);
  if (events_.now_ns() > next_window_ns_) {
    written_lately_[flow].clear();
    next_window_ns_ = events_.now_ns() + window_ns;
  }
}

// MQSim crashes on what cannot be programmed: the pages without an address, see fill_from_read, those
// of flows that do not cache writes, and those that `flow` does not have, see make_eviction. Here what
// has no place is dropped.
bool Device::must_be_programmed(const CacheSlot& evicted, std::uint8_t flow) {
  if (!evicted.dirty) return false;
  const bool has_place = lpn_of_key(evicted.key) < streams_[flow].logical_pages;
  if (!has_place || !writes_cached(flow)) ++counts_.evictions_fatal_to_mqsim;
  return has_place;
}

// MQSim takes the evicted page for one of the flow whose page takes its slot. A write evicts in class
// URGENT, the fill of a read in none, which is served as HIGH.
std::uint32_t Device::make_eviction(const CacheSlot& slot, std::uint8_t flow, Priority priority) {
  const std::uint32_t index = transactions_.make();
  Transaction& page = transactions_[index];
  page.flow = flow;
  page.lpn = lpn_of_key(slot.key);
  page.operation = Operation::program;
  page.source = Source::cache;
  page.priority = static_cast<std::uint8_t>(priority);
  page.sectors = slot.sectors;
  page.bytes = static_cast<std::uint32_t>(std::popcount(slot.sectors)) * sector_bytes;
  page.issued_ns = events_.now_ns();
  page.stamp_ns = slot.written_ns;
  return index;
}

void Device::access_dram(const DramAccess& access) {
  if (dram_busy_) {
    dram_queues_[share_of(access.flow)].push_back(access);
    return;
  }
  start_dram(access);
  dram_turn_ = share_of(access.flow);
}

void Device::start_dram(const DramAccess& access) {
  const std::uint64_t duration = dram_.access_ns(access.bytes);
  dram_busy_ = true;
  dram_current_ = access;
  dram_busy_ns_ += duration;
  events_.schedule_single(dram, events_.now_ns() + duration, dram_done, 0);
}

void Device::finish_dram() {
  const DramAccess done = dram_current_;
  switch (done.purpose) {
    case DramAccess::Purpose::user:
      requests_[done.subject].cached_sectors -= done.bytes / sector_bytes;
      finish_if_done(done.subject);
      break;
    case DramAccess::Purpose::eviction: {
      write_back_pages_.clear();
      for (std::uint32_t i = done.subject; i != nothing; i = transactions_[i].next) {
        write_back_pages_.push_back(i);
      }
      dispatch(write_back_pages_);
      break;
    }
    case DramAccess::Purpose::fill: break;
  }
  dram_busy_ = false;
  for (std::size_t i = 0; i < dram_queues_.size(); ++i) {
    const auto turn = static_cast<std::uint32_t>((dram_turn_ + 1 + i) % dram_queues_.size());
    Ring<DramAccess>& queue = dram_queues_[turn];
    if (queue.empty()) continue;
    const DramAccess next = queue.front();
    queue.pop_front();
    dram_turn_ = turn;
    start_dram(next);
    return;
  }
}

void Device::finish_if_done(std::uint32_t id) {
  const UserRequest& request = requests_[id];
  if (request.cached_sectors == 0 && request.open_transactions == 0 && request.pending_writes == nothing) {
    complete(id);
  }
}

// A flash transaction of a user request or of the cache itself has ended.
void Device::finish_user_transaction(std::uint32_t index) {
  const Transaction& done = transactions_[index];
  if (done.operation == Operation::read) {
    if (done.related != nothing) {  // it was read for the program that replaces its page
      transactions_[done.related].related = nothing;
      return;
    }
    const std::uint32_t request = done.request;
    if (reads_cached(done.flow)) fill_from_read(Transaction(done));  // makes transactions
    --requests_[request].open_transactions;
    finish_if_done(request);
    return;
  }
  if (reads_cached(done.flow)) unprogrammed_.erase(blocks_.page_number(done.plane, done.block, done.page));
  if (done.source == Source::user && !writes_cached(done.flow)) {
    --requests_[done.request].open_transactions;
    finish_if_done(done.request);
    return;
  }
  const std::uint32_t share = share_of(done.flow);
  back_pressure_[share] -= (done.bytes + sector_bytes - 1) / sector_bytes;
  DataCache& cache = caches_[share_of(done.flow)];
  const std::uint32_t slot = cache.find(page_key(done.flow, done.lpn));
  if (slot != DataCache::absent) {
    if (done.stamp_ns >= cache[slot].written_ns) {
      cache.remove(slot);
    } else {
      cache.touch(slot);
    }
  }
  // In the order of their coming, until one finds no room; behind it there is none either.
  Ring<std::uint32_t>& waiting = waiting_writes_[share];
  while (!waiting.empty()) {
    const std::uint32_t request = waiting.front();
    destage(request);
    if (requests_[request].pending_writes != nothing) break;
    waiting.pop_front();
    if (back_pressure_[share] > back_pressure_limit_) break;
  }
}

// Read caching keeps what came from flash. MQSim takes the page's address from the flash page, where it
// stands once the page is programmed; what is not, or was only ever read, shares one slot without one, with
// all flows. A slot that was there already becomes dirty and as young as the read, and only a new one costs
// time in DRAM.
void Device::fill_from_read(const Transaction& read) {
  DataCache& cache = caches_[share_of(read.flow)];
  const bool programmed = !unprogrammed_.contains(blocks_.page_number(read.plane, read.block, read.page));
  const std::uint64_t key = programmed ? page_key(read.flow, read.lpn) : key_without_page;
  const std::uint32_t slot = cache.find(key);
  if (slot != DataCache::absent) {
    cache.touch(slot);
    cache[slot].sectors |= read.sectors;
    cache[slot].written_ns = std::max(cache[slot].written_ns, read.stamp_ns);
    cache[slot].dirty = true;
    return;
  }
  if (cache.full()) {
    const CacheSlot evicted = cache.evict();
    if (must_be_programmed(evicted, read.flow)) {
      const std::uint32_t eviction = make_eviction(evicted, read.flow, Priority::high);
      const std::uint32_t bytes = transactions_[eviction].bytes;
      back_pressure_[share_of(read.flow)] += bytes / sector_bytes;
      access_dram({DramAccess::Purpose::eviction, read.flow, bytes, eviction});
    }
  }
  cache.insert(key, read.sectors, read.stamp_ns, false);
  const auto bytes = static_cast<std::uint32_t>(std::popcount(read.sectors)) * sector_bytes;
  access_dram({DramAccess::Purpose::fill, read.flow, bytes, nothing});
}

}  // namespace iojoule::sim::compat
