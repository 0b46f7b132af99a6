// The drive as it is after long use: which logical pages exist, and how full of them blocks are
// (mqsim.md, 3.9; B. Van Houdt, A mean field model for a class of garbage collection algorithms in
// flash-based solid state drives, SIGMETRICS 2013).
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "../error.hpp"
#include "device.hpp"
#include "mean_field.hpp"

namespace iojoule::sim::compat {

namespace {
// The tables are far larger than any cache: so many entries before it is looked at, one is asked for.
constexpr std::size_t look_ahead = 16;
constexpr std::size_t planes_at_a_time = 12;
}  // namespace

void Device::precondition() {
  RandomStream random(config_.seed);
  blocks_.will_be_filled();
  for (std::uint32_t index = 0; index < streams_.size(); ++index) {
    Stream& flow = streams_[index];
    if (flow.config->kind == FlowKind::trace) {
      throw ModelError("Unhandled address distribution type in FTL's preconditioning function.");
    }
    if (config_.mapping_ideal) {
      replay(index, nullptr);
    } else {
      ReplayedPages replayed;
      replay(index, &replayed);
      warm_mapping_cache(index, replayed, random);
    }
    const std::vector<double> valid_pages = valid_page_distribution(*flow.config);
    const std::size_t stripe = flow.space.planes.size();
    for (std::size_t first = 0; first < stripe; first += planes_at_a_time) {
      lay_out_planes(index, first, std::min(first + planes_at_a_time, stripe), valid_pages);
      watch_.poll(0);
    }
  }
}

// Neighbouring pages are on different planes, and their entries share a line of the processor's cache.
// So several planes are laid out between two walks over the table.
void Device::lay_out_planes(std::uint32_t index, std::size_t first, std::size_t end,
                            const std::vector<double>& valid_pages) {
  const Stream& flow = streams_[index];
  const std::vector<std::uint32_t>& planes = flow.space.planes;
  PageTable& table = tables_[index];
  const auto walk = [&](auto visit) {
    for (std::size_t row = 0; row + first < flow.logical_pages; row += planes.size()) {
      const std::size_t ahead = row + look_ahead * planes.size();
      table.prefetch_entry(static_cast<std::uint32_t>(ahead + first));
      table.prefetch_entry(static_cast<std::uint32_t>(ahead + end - 1));
      for (std::size_t i = first; i < end && row + i < flow.logical_pages; ++i) {
        const auto lpn = static_cast<std::uint32_t>(row + i);
        const std::uint64_t sectors = table.sectors(lpn);
        if (sectors != 0) visit(i, lpn, sectors);
      }
    }
  };
  std::vector<std::vector<std::uint32_t>> pages(end - first);
  for (auto& of_plane : pages) of_plane.reserve(flow.logical_pages / planes.size());
  walk([&](std::size_t i, std::uint32_t lpn, std::uint64_t) {
    if (pages[i - first].size() < geometry_.pages_per_plane() / sharers_[planes[i]]) {
      pages[i - first].push_back(lpn);
    } else {
      table.forget(lpn);
    }
  });
  for (std::size_t i = first; i < end; ++i) lay_out(index, planes[i], pages[i - first], valid_pages);
  std::vector<std::size_t> next(end - first);
  walk([&](std::size_t i, std::uint32_t lpn, std::uint64_t sectors) {
    table.set(lpn, pages[i - first][next[i - first]++], sectors);
  });
}

// Marks pages as written by the flow's own requests, drawn again, until there are enough of them. Of
// each access MQSim takes the first sector only for written. `replayed` gets the pages, where it is given.
void Device::replay(std::uint32_t index, ReplayedPages* replayed) {
  const Stream& flow = streams_[index];
  const std::uint32_t page_sectors = geometry_.sectors_per_page;
  // MQSim replays the flow as if it began at sector 0, and where it aligns requests, the flow ends so much
  // sooner as its first sector was moved to be aligned.
  FlowSpace space = flow.space;
  space.first_sector = 0;
  std::uint64_t moved = 0;
  if (flow.config->aligned) {
    const std::uint32_t unit = flow.config->alignment_sectors;
    moved = (unit - flow.space.first_sector % unit) % unit;
    space.sectors -= moved;
  }
  const std::uint64_t pages = (flow.space.sectors + page_sectors - 1) / page_sectors;
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(flow.config->initial_occupancy_percent) /
                                                 100.0 * static_cast<double>(pages));
  if (wanted == 0) return;
  const std::uint64_t reached = pages * flow.config->working_set_percent / 100;
  if (wanted > reached) {
    throw ConfigError("initial_occupancy_percent",
                      "is more than the working set has, and the pages are those that its requests reach; lower it "
                      "or raise working_set_percent");
  }
  if (replayed != nullptr) replayed->others.reserve(wanted);
  PageTable& table = tables_[index];
  table.will_be_filled();
  RequestGenerator generator(*flow.config, space, RequestGenerator::Purpose::preconditioning);
  generator.want_pages(wanted, page_sectors, page_sectors_.remainder(flow.space.first_sector) + moved);
  struct Access {
    std::uint32_t page, sector;
    bool ends_request, hot;
  };
  constexpr std::size_t batch = 4 * look_ahead;
  std::vector<Access> accesses;
  std::uint64_t seen = 0;
  for (std::uint64_t round = 1;; ++round) {
    if (round % 1024 == 0) watch_.poll(0);
    accesses.clear();
    while (accesses.size() < batch) {
      const Request request = generator.next();
      std::uint64_t sector = request.start_sector;
      std::uint32_t left = request.sectors;
      while (left > 0) {
        if (sector >= flow.space.sectors) sector %= flow.space.sectors;
        const auto page = static_cast<std::uint32_t>(page_sectors_.quotient(sector));
        const auto offset = static_cast<std::uint32_t>(page_sectors_.remainder(sector));
        const std::uint32_t size = std::min(left, page_sectors - offset);
        left -= size;
        sector += size;
        table.prefetch_entry(page);
        accesses.push_back({page, offset, left == 0, generator.was_hot()});
      }
    }
    for (const Access& access : accesses) {
      if (table.sectors(access.page) == 0) {
        if (replayed != nullptr) {
          if (!access.hot && seen > 0 && replayed->first_run == 0) replayed->first_run = seen;
          (access.hot ? replayed->hot : replayed->others).push_back(access.page);
        }
        ++seen;
      }
      table.mark(access.page, std::uint64_t{1} << access.sector);
      if (access.ends_request && seen >= wanted) return;
    }
  }
}

namespace {

// Walks over a ring of numbers 0..size-1 and a place between the last and the first, of which ever more
// are taken out.
class ShrinkingRing {
 public:
  explicit ShrinkingRing(std::uint64_t size) : left_(size / word_bits + 1, ~std::uint64_t{0}), size_(size) {
    left_.back() = (std::uint64_t{1} << (size % word_bits)) - 1;
  }

  // The number `steps` further on; negative steps go back. `size` for the place behind the last.
  std::uint64_t move(std::uint64_t at, std::int64_t steps) const {
    for (; steps > 0; --steps) at = at == size_ ? first_from(0) : first_from(at + 1);
    for (; steps < 0; ++steps) at = last_before(at);
    return at;
  }
  std::uint64_t take_out(std::uint64_t number) {
    left_[number / word_bits] &= ~(std::uint64_t{1} << (number % word_bits));
    return first_from(number + 1);
  }

 private:
  static constexpr std::uint64_t word_bits = 64;

  std::uint64_t first_from(std::uint64_t number) const {
    std::uint64_t word = number / word_bits;
    if (word >= left_.size()) return size_;
    std::uint64_t bits = left_[word] & (~std::uint64_t{0} << (number % word_bits));
    while (bits == 0) {
      if (++word == left_.size()) return size_;
      bits = left_[word];
    }
    return word * word_bits + static_cast<std::uint64_t>(std::countr_zero(bits));
  }
  std::uint64_t last_before(std::uint64_t number) const {
    std::uint64_t word = number / word_bits;
    std::uint64_t bits = left_[word] & ~(~std::uint64_t{0} << (number % word_bits));
    while (bits == 0) {
      if (word-- == 0) return size_;
      bits = left_[word];
    }
    return word * word_bits + word_bits - 1 - static_cast<std::uint64_t>(std::countl_zero(bits));
  }

  std::vector<std::uint64_t> left_;
  std::uint64_t size_;
};

}  // namespace

// How many entries of the mapping cache a stream finds warm: equal parts, or, where the cache is shared,
// as the sectors that it would move a second if each request waited for one page.
std::uint64_t Device::warm_entries(std::uint32_t index) const {
  if (config_.cmt_sharing == Sharing::equal_partitioning) return mapping_cache_entries_ / streams_.size();
  const auto mean_ns = [&](const std::array<std::uint64_t, 3>& of_pages) {
    const auto low = static_cast<double>(of_pages[0]), middle = static_cast<double>(of_pages[1]),
               high = static_cast<double>(of_pages[2]);
    switch (config_.flash_technology) {
      case FlashTechnology::slc: return low;
      case FlashTechnology::mlc: return 0.5 * (low + high);
      default: return (low + middle + high) / 3;
    }
  };
  const double read_ns = mean_ns(config_.page_read_ns), program_ns = mean_ns(config_.page_program_ns);
  const auto sectors_per_ns = [&](const Stream& stream) {
    const FlowConfig& flow = *stream.config;
    const double reads = static_cast<double>(flow.read_percent) / 100.0;
    const double rate =
        flow.generator == Generator::queue_depth
            ? static_cast<double>(flow.queue_depth) / (reads * read_ns + (1 - reads) * program_ns)
            : 1 / static_cast<double>(std::max<std::uint64_t>(1, RequestGenerator::mean_interval_ns(flow)));
    return rate * static_cast<double>(flow.size_mean_sectors);
  };
  double all = 0;
  for (const Stream& stream : streams_) all += sectors_per_ns(stream);
  return static_cast<std::uint64_t>(sectors_per_ns(streams_[index]) / all *
                                    static_cast<double>(mapping_cache_entries_));
}

// Fills the stream's share of the mapping cache. For a sequential flow MQSim takes page 0, where it was
// written, and then the last ones, from the end. With a hot region it takes pages in the order in which they
// came: of that region its percentage of the share, but no more than the region has, although requests reach
// beyond it; then others. Where there are no others it takes all. For other flows it walks over the pages, in
// that order, with steps of one length; it draws where it counts from and the length, and turns round where
// the count, not the walk, comes to an end of the pages that are left.
void Device::warm_mapping_cache(std::uint32_t index, ReplayedPages& replayed, RandomStream& random) {
  MappingCache& cache = mapping_caches_[index];
  const FlowConfig& flow = *streams_[index].config;
  const std::uint64_t share = warm_entries(index);
  const auto take = [&](std::uint32_t page) {
    cache.reserve(page);
    cache.arrive(page, tables_[index].sectors(page));
  };
  std::vector<std::uint32_t>& order = replayed.others;
  if (!replayed.hot.empty()) {
    order.insert(order.begin(), replayed.hot.begin(), replayed.hot.end());
    const std::uint64_t run = replayed.first_run == 0 ? replayed.hot.size() : replayed.first_run;
    const std::uint64_t others = order.size() - run;
    const std::uint64_t region =
        page_sectors_.quotient(streams_[index].space.sectors) * flow.hot_region_percent / 100;
    const std::uint64_t hot =
        others == 0 ? std::min(share, run)
                    : std::min({share * flow.hot_region_percent / 100, run, region});
    for (std::uint64_t i = 0; i < hot; ++i) take(order[i]);
    const std::uint64_t end = std::min(share - hot, others);
    for (std::uint64_t i = hot; i < end; ++i) take(order[run + i]);
    return;
  }
  const std::uint64_t pages = order.size(), entries = std::min(share, pages);
  if (entries == 0) return;
  if (flow.address_distribution == AddressDistribution::streaming) {
    std::sort(order.begin(), order.end());
    const std::uint64_t from_start = order.front() == 0 ? 0 : 1;
    for (std::uint64_t i = 0; i < entries; ++i) take(order[(2 * pages - i - from_start) % pages]);
    return;
  }
  // drawn also where all pages are taken: the next flow's draws come after these
  auto counted = static_cast<std::int64_t>(random.uniform(0, pages - 2));
  auto step = static_cast<std::int64_t>(random.uniform(0, pages / entries));
  if (entries == pages) {
    for (const std::uint32_t page : order) take(page);
    return;
  }
  ShrinkingRing ring(pages);
  std::uint64_t at = ring.move(0, step);
  for (std::uint64_t taken = 1;; ++taken) {
    if (at == pages) at = ring.move(at, 1);
    take(order[at]);
    if (taken == entries) return;
    at = ring.take_out(at);
    const auto last = static_cast<std::int64_t>(pages - taken) - 1;
    if (counted + step > last || counted + step < 0) step = -step;
    at = ring.move(at, step);
    counted += step;
  }
}

// Fills whole blocks of the plane, the fullest first, until its pages have found a place; what is
// left of each block is stale. The distribution is moved to the plane's real mean. Each page's number is
// replaced by its place.
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
    // no farther than out of sight: where the flow has no block of its own, one mean is infinite
    const double most = per_block, by = (real_mean - model_mean) * per_block;
    const int shift = static_cast<int>(std::clamp(by, -most, most));
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
  std::size_t pages_left = pages.size();
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
      valid = std::min(valid, static_cast<int>(pages_left));
      pages_left -= static_cast<std::size_t>(valid);
      fill_block(flow, plane, {pages.data() + pages_left, static_cast<std::size_t>(valid)});
    }
  }
  if (pages_left > 0) {
    throw ModelError("It is not possible to assign PPA to all LPAs in Allocate_address_for_preconditioning!"
                     " It is not safe to continue preconditioning." + std::to_string(pages_left));
  }
}

void Device::fill_block(std::uint32_t flow, std::uint32_t plane, std::span<std::uint32_t> pages) {
  Frontiers& frontiers = blocks_.frontiers(plane, flow);
  const std::uint32_t block = frontiers.data;
  std::uint32_t& next = blocks_.block(plane, block).next_page;
  for (auto page = pages.rbegin(); page != pages.rend(); ++page, ++next) {
    blocks_.set_owner(plane, block, next, *page);
    *page = block * geometry_.pages_per_block + next;
  }
  blocks_.fill_with_stale_pages(plane, block);
  frontiers.data = blocks_.open(plane, flow, false);
}

namespace {

// The distribution of uniform writes, narrower and moved up: MQSim's form for a small hot region. The share
// `hot` of the space gets the rest of the requests.
std::vector<double> drawn_together(const std::vector<double>& uniform, double hot) {
  double mean = 0;
  for (std::size_t i = 0; i < uniform.size(); ++i) mean += static_cast<double>(i) * uniform[i];
  const double slope = std::sqrt((1 - hot) / hot);
  std::vector<double> valid(uniform.size(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const double place = slope * (static_cast<double>(i) - mean);
    // nothing is filled where the flow occupies nothing: all shares are NaN, and so are places
    if (!(place > -1 && place < static_cast<double>(uniform.size() - 1))) continue;
    sum += valid[i] = uniform[static_cast<std::size_t>(std::max(place, 0.0))];
  }
  if (sum == 0) return uniform;
  for (double& share : valid) share /= sum;
  return valid;
}

}  // namespace

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
  const auto uniform = [&] {
    switch (config_.gc_policy) {
      case VictimPolicy::greedy:
      case VictimPolicy::fifo: return valid_pages_by_choice(pages, of_filled, 30);
      case VictimPolicy::rga:
        return valid_pages_by_choice(pages, of_filled,
                                     static_cast<unsigned>(std::bit_width(geometry_.blocks_per_plane) - 1));
      case VictimPolicy::random_pp: return valid_pages_below(pages, used, fullest_occupancy());
      default: return valid_pages_at_random(pages, of_filled);
    }
  }();
  return RequestGenerator::has_small_hot_region(flow)
             ? drawn_together(uniform, static_cast<double>(flow.hot_region_percent) / 100.0)
             : uniform;
}

}  // namespace iojoule::sim::compat
