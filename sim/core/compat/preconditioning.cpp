// The drive as it is after long use: which logical pages exist, and how full of them blocks are
// (mqsim.md, 3.9; B. Van Houdt, A mean field model for a class of garbage collection algorithms in
// flash-based solid state drives, SIGMETRICS 2013).
#include <cmath>

#include "../error.hpp"
#include "device.hpp"
#include "mean_field.hpp"

namespace iojoule::sim::compat {

void Device::precondition() {
  RandomStream random(config_.seed);
  for (std::uint32_t index = 0; index < streams_.size(); ++index) {
    Stream& flow = streams_[index];
    if (flow.config->kind == FlowKind::trace) {
      throw ModelError("Unhandled address distribution type in FTL's preconditioning function.");
    }
    const std::uint64_t accessed = replay(index);
    const std::vector<double> valid_pages = valid_page_distribution(*flow.config);
    std::vector<std::uint32_t> pages;
    const std::size_t stripe = flow.space.planes.size();
    for (std::size_t i = 0; i < stripe; ++i) {
      const std::uint32_t plane = flow.space.planes[i];
      const std::size_t room = geometry_.pages_per_plane() / sharers_[plane];
      pages.clear();
      for (std::size_t lpn = i; lpn < flow.logical_pages; lpn += stripe) {
        if (tables_[index].sectors(static_cast<std::uint32_t>(lpn)) == 0) continue;
        if (pages.size() < room) {
          pages.push_back(static_cast<std::uint32_t>(lpn));
        } else {
          tables_[index].forget(static_cast<std::uint32_t>(lpn));
        }
      }
      lay_out(index, plane, pages, valid_pages);
      watch_.poll(0);
    }
    if (!config_.mapping_ideal) warm_mapping_cache(index, accessed, random);
  }
}

// Calls `access(page, first sector in it)` for each page of the flow's own requests, drawn again, until
// it answers false.
template <class Access>
void Device::replay_accesses(std::uint32_t index, Access access) {
  const Stream& flow = streams_[index];
  const std::uint32_t page_sectors = geometry_.sectors_per_page;
  const std::uint64_t first = flow.space.first_sector;
  RequestGenerator generator(*flow.config, flow.space, RequestGenerator::Purpose::preconditioning);
  for (std::uint64_t requests = 1;; ++requests) {
    if (requests % 65536 == 0) watch_.poll(0);
    const Request request = generator.next();
    bool wanted = true;
    std::uint64_t sector = request.start_sector;
    std::uint32_t left = request.sectors;
    while (left > 0) {
      if (sector < first || sector >= first + flow.space.sectors) sector = first + sector % flow.space.sectors;
      const auto size = std::min(left, static_cast<std::uint32_t>(page_sectors - sector % page_sectors));
      const std::uint64_t of_flow = sector - first;
      wanted = access(static_cast<std::uint32_t>(of_flow / page_sectors),
                      static_cast<std::uint32_t>(of_flow % page_sectors)) && wanted;
      sector += size;
      left -= size;
    }
    if (!wanted) return;
  }
}

// Marks pages as written until there are enough of them. Of each access MQSim takes the first sector
// only for written. Answers with the number of pages.
std::uint64_t Device::replay(std::uint32_t index) {
  const Stream& flow = streams_[index];
  const std::uint64_t pages = (flow.space.sectors + geometry_.sectors_per_page - 1) / geometry_.sectors_per_page;
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(flow.config->initial_occupancy_percent) /
                                                 100.0 * static_cast<double>(pages));
  PageTable& table = tables_[index];
  std::uint64_t seen = 0;
  if (wanted == 0) return 0;
  replay_accesses(index, [&](std::uint32_t page, std::uint32_t sector) {
    if (table.sectors(page) == 0) ++seen;
    table.mark(page, std::uint64_t{1} << sector);
    return seen < wanted;
  });
  return seen;
}

// Fills the flow's share of the mapping cache with every n-th page that was accessed, n such that a
// walk over as many accesses as there are pages would fill it.
void Device::warm_mapping_cache(std::uint32_t index, std::uint64_t pages, RandomStream& random) {
  MappingCache& cache = mapping_caches_[index];
  const std::uint64_t entries = mapping_cache_entries_ / streams_.size();
  random.uniform();  // MQSim draws twice and uses the second
  const std::uint64_t every = pages / std::max<std::uint64_t>(entries, 1) + 1;
  std::uint64_t wait = random.uniform(0, every - 1), taken = 0, walked = 0;
  if (pages == 0 || entries == 0) return;
  replay_accesses(index, [&](std::uint32_t page, std::uint32_t) {
    if (wait-- == 0) {
      wait = every - 1;
      if (taken < entries && !cache.reserved(page)) {
        cache.reserve(page);
        cache.arrive(page);
        ++taken;
      }
    }
    return taken < entries && ++walked < every * entries * 64;
  });
}

// Fills whole blocks of the plane, the fullest first, until its pages have found a place; what is
// left of each block is stale. The distribution is moved to the plane's real mean.
void Device::lay_out(std::uint32_t flow, std::uint32_t plane, std::vector<std::uint32_t>& pages,
                     const std::vector<double>& valid_pages) {
  const auto per_block = static_cast<int>(geometry_.pages_per_block);
  const double share = 1.0 / sharers_[plane];
  const auto goal = static_cast<std::uint32_t>(
      static_cast<double>(geometry_.blocks_per_plane - collection_threshold() / 2) * share);
  double model_mean = 0;
  for (int i = 0; i <= per_block; ++i) model_mean += valid_pages[static_cast<std::size_t>(i)] * i;
  model_mean /= per_block;
  const double real_mean = static_cast<double>(pages.size()) / (goal * geometry_.pages_per_block);
  std::vector<double> moved = valid_pages;
  if (std::abs(model_mean - real_mean) * per_block > 0.9999) {
    const int shift = static_cast<int>((real_mean - model_mean) * per_block);
    for (int i = 0; i < per_block; ++i) {
      const int from = i - shift;
      moved[static_cast<std::size_t>(i)] =
          from >= 0 && from < per_block ? valid_pages[static_cast<std::size_t>(from)] : 0;
    }
  }
  const auto blocks_with = [&](int valid) {
    return static_cast<std::uint32_t>(moved[static_cast<std::size_t>(valid)] * goal);
  };
  std::uint64_t placed = 0;
  for (int valid = per_block; valid >= 0; --valid) placed += static_cast<std::uint64_t>(valid) * blocks_with(valid);
  std::uint64_t short_of = placed < pages.size() ? pages.size() - placed : 0;
  std::uint32_t left = goal;
  for (int valid = per_block; valid >= 0; --valid) {
    std::uint64_t blocks = blocks_with(valid);
    if (short_of > 0 && blocks > 0 && valid > 0) {
      const auto each = static_cast<std::uint64_t>(valid);
      blocks += (short_of + each - 1) / each;
      short_of = 0;
    }
    blocks = std::min<std::uint64_t>(blocks, left);
    left -= static_cast<std::uint32_t>(blocks);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      // Once the pages run out, MQSim goes on with what the last block got, not with the next number.
      valid = std::min(valid, static_cast<int>(pages.size()));
      fill_block(flow, plane, pages, static_cast<std::size_t>(valid));
    }
  }
  if (!pages.empty()) {
    throw ModelError("It is not possible to assign PPA to all LPAs in Allocate_address_for_preconditioning!"
                     " It is not safe to continue preconditioning." + std::to_string(pages.size()));
  }
}

void Device::fill_block(std::uint32_t flow, std::uint32_t plane, std::vector<std::uint32_t>& pages,
                        std::size_t valid) {
  Frontiers& frontiers = blocks_.frontiers(plane, flow);
  const std::uint32_t block = frontiers.data;
  std::uint32_t& next = blocks_.block(plane, block).next_page;
  for (std::size_t i = 0; i < valid; ++i, ++next) {
    const std::uint32_t lpn = pages.back();
    pages.pop_back();
    blocks_.set_owner(plane, block, next, lpn);
    tables_[flow].set(lpn, block * geometry_.pages_per_block + next, tables_[flow].sectors(lpn));
  }
  blocks_.fill_with_stale_pages(plane, block);
  frontiers.data = blocks_.open(plane, flow, false);
}

std::vector<double> Device::valid_page_distribution(const FlowConfig& flow) const {
  const std::uint32_t pages = geometry_.pages_per_block;
  const double occupancy = static_cast<double>(flow.initial_occupancy_percent) / 100.0;
  const double used = occupancy * (1 - config_.overprovisioning_ratio);
  const double of_filled =
      used / (1 - static_cast<double>(collection_threshold()) / geometry_.blocks_per_plane);
  if (flow.address_distribution == AddressDistribution::streaming) {
    std::vector<double> valid(pages + 1, 0.0);
    valid.front() = 1 - of_filled;
    valid.back() = of_filled;
    return valid;
  }
  switch (config_.gc_policy) {
    case VictimPolicy::greedy:
    case VictimPolicy::fifo: return valid_pages_by_choice(pages, of_filled, 30);
    case VictimPolicy::rga:
      return valid_pages_by_choice(pages, of_filled,
                                   static_cast<unsigned>(std::bit_width(geometry_.blocks_per_plane) - 1));
    case VictimPolicy::random_pp: return valid_pages_below(pages, used, occupancy);
    default: return valid_pages_at_random(pages, of_filled);
  }
}

}  // namespace iojoule::sim::compat
