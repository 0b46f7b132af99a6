#include "precondition.hpp"

#include <algorithm>
#include <string>

#include "steady_state.hpp"

namespace iojoule::sim::physical {

namespace {

// What one flow has on one plane.
struct Share {
  std::uint16_t flow;
  std::uint32_t lane;       // place of the plane in the flow's striping
  std::uint32_t units;      // units of the flow's space on this plane
  std::uint32_t in_set;     // of them in its working set
  std::uint32_t written;    // of them written before the run
};

class Filling {
 public:
  Filling(Context& context, const std::vector<FlowConfig>& flows)
      : context_(context),
        flows_(flows),
        layout_(context.layout),
        random_(static_cast<std::uint64_t>(context.device.seed) * 2654435761U + 17),
        shares_(layout_.planes) {
    for (std::uint16_t f = 0; f < flows.size(); ++f) add_shares(f);
  }

  void check_planes() const {
    if (context_.options.nand.write_allocation != WriteAllocation::round_robin) return;
    for (const FlowSpace& space : layout_.spaces) {
      std::vector<std::uint32_t> planes = space.planes, first = layout_.spaces[0].planes;
      std::sort(planes.begin(), planes.end());
      std::sort(first.begin(), first.end());
      if (planes == first) continue;
      throw ConfigError("physical.nand.write_allocation",
                        "round_robin lets data of all flows share all blocks, so every flow must "
                        "list the same channels, chips, dies and planes; say striped to part them");
    }
  }

  void check_room() const {
    const bool writes = std::any_of(flows_.begin(), flows_.end(), [](const FlowConfig& flow) {
      return flow.kind == FlowKind::trace || flow.read_percent < 100;
    });
    for (std::uint32_t plane = 0; plane < layout_.planes; ++plane) {
      std::uint64_t most = context_.mapping_cache.pages() / layout_.planes + 1;
      bool filled = false;
      for (const Share& share : shares_[plane]) {
        const bool trace = flows_[share.flow].kind == FlowKind::trace;
        most += trace ? share.units : std::max(share.in_set, share.written);
        filled = filled || share.written > 0;
      }
      if ((!writes && !filled) || most <= context_.blocks.usable_units(plane)) continue;
      throw ConfigError(
          "overprovisioning_ratio",
          "the flows can fill " + std::to_string(most) + " of a plane's " +
              std::to_string(std::uint64_t{layout_.blocks_per_plane} * layout_.units_per_block) +
              " units, but garbage collection can work with at most " +
              std::to_string(context_.blocks.usable_units(plane)) +
              "; raise overprovisioning_ratio, give the planes more blocks, or lower "
              "working_set_percent or physical.slc.static_blocks_per_plane");
    }
  }

  void fill(Watch& watch) {
    for (std::uint32_t plane = 0; plane < layout_.planes; ++plane) {
      watch.poll(0);
      collect_units(plane);
      if (units_.empty()) continue;
      if (context_.options.nand.initial_state == InitialState::filled) {
        fill_in_order(plane);
      } else {
        fill_steady(plane);
      }
    }
  }

 private:
  // A flow's written units, apart by how often they are overwritten.
  struct Source {
    std::vector<std::uint32_t> units;
    std::size_t taken = 0;
  };

  void add_shares(std::uint16_t f) {
    const std::vector<std::uint32_t>& planes = layout_.spaces[f].planes;
    const std::uint32_t all = layout_.first_unit[f + 1U] - layout_.first_unit[f];
    const auto lanes = static_cast<std::uint32_t>(planes.size());
    const std::uint32_t per_lane = all / lanes;
    const std::uint64_t wanted = std::uint64_t{all} * flows_[f].initial_occupancy_percent / 100;
    const std::uint64_t set = std::uint64_t{per_lane} * flows_[f].working_set_percent / 100;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      // Whatever does not divide evenly is spread, so that the sum is exact.
      const auto written =
          static_cast<std::uint32_t>(wanted * (lane + 1) / lanes - wanted * lane / lanes);
      shares_[planes[lane]].push_back(
          {f, lane, per_lane, static_cast<std::uint32_t>(set), written});
    }
  }

  // The n-th unit of a flow on one of its planes.
  std::uint32_t unit_of(const Share& share, std::uint32_t n) const {
    const std::uint32_t per_page = layout_.units_per_page;
    const auto lanes = static_cast<std::uint32_t>(layout_.spaces[share.flow].planes.size());
    return layout_.first_unit[share.flow] +
           (n / per_page * lanes + share.lane) * per_page + n % per_page;
  }

  bool is_sequential(const Share& share) const {
    return flows_[share.flow].address_distribution == AddressDistribution::streaming;
  }

  // Which units of the plane are written: of a random flow any of its working set, of another the
  // first; sources_ has them by class, units_ all of them.
  void collect_units(std::uint32_t plane) {
    units_.clear();
    sources_.clear();
    classes_.clear();
    all_sequential_ = true;
    for (const Share& share : shares_[plane]) {
      if (share.written == 0) continue;
      const bool sequential = is_sequential(share);
      all_sequential_ = all_sequential_ && sequential;
      const FlowConfig& flow = flows_[share.flow];
      const bool hot_cold = flow.address_distribution == AddressDistribution::random_hotcold;
      const auto hot_end = static_cast<std::uint32_t>(
          std::uint64_t{share.in_set} * (hot_cold ? flow.hot_region_percent : 100) / 100);
      const std::size_t first = sources_.size();
      sources_.resize(first + (hot_cold ? 2 : 1));
      const auto take = [&](std::uint32_t n) {
        const std::uint32_t unit = unit_of(share, n);
        units_.push_back(unit);
        sources_[first + (hot_cold && n >= hot_end ? 1 : 0)].units.push_back(unit);
      };
      std::uint32_t left = share.written;
      const std::uint32_t range = sequential ? left : std::max(share.in_set, left);
      for (std::uint32_t n = 0; n < range && left > 0; ++n) {
        // Selection sampling (Knuth, TAOCP 2, 3.4.2, algorithm S).
        if (left < range - n && random_.below(range - n) >= left) continue;
        take(n);
        --left;
      }
      const double hot_rate = hot_cold ? (100.0 - flow.hot_region_percent) / 100.0 : 1.0;
      const double weight = flow.kind == FlowKind::trace ? 1.0 : 1.0 - flow.read_percent / 100.0;
      classes_.push_back({0, weight * hot_rate});
      if (hot_cold) classes_.push_back({0, weight * (1 - hot_rate)});
    }
    double rates = 0;
    for (const WriteClass& c : classes_) rates += c.rate;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      classes_[i].units =
          static_cast<double>(sources_[i].units.size()) / static_cast<double>(units_.size());
      classes_[i].rate = rates > 0 ? classes_[i].rate / rates : classes_[i].units;
    }
  }

  void place(std::uint32_t unit, std::uint32_t block, std::uint32_t at) {
    context_.table.put(Content::of_unit(unit), block * layout_.units_per_block + at);
  }

  void fill_in_order(std::uint32_t plane) {
    for (std::size_t next = 0; next < units_.size();) {
      const std::uint32_t block = context_.blocks.take_filled(plane);
      std::uint32_t at = 0;
      for (; at < layout_.units_per_block && next < units_.size(); ++at) {
        place(units_[next++], block, at);
      }
      context_.blocks.add_valid(block, at);
    }
  }

  void fill_steady(std::uint32_t plane) {
    const std::uint32_t per_block = layout_.units_per_block;
    const auto needed =
        static_cast<std::uint32_t>((units_.size() + per_block - 1) / per_block);
    // As many blocks are left free as garbage collection keeps free.
    const std::uint32_t free = context_.blocks.gc_threshold();
    const std::uint32_t slc = context_.options.slc.static_blocks_per_plane;
    const std::uint32_t used = std::max(
        needed, layout_.blocks_per_plane > free + slc ? layout_.blocks_per_plane - free - slc : 0);
    if (all_sequential_) {
      fill_in_order(plane);
      for (std::uint32_t i = needed; i < used; ++i) {
        context_.blocks.take_filled(plane);
      }
      return;
    }
    fill_sampled(plane, used);
  }

  const BlockSample& sample_for(std::uint32_t used) {
    const double utilisation = static_cast<double>(units_.size()) /
                               (static_cast<double>(used) * layout_.units_per_block);
    const bool same = sample_.blocks > 0 && sample_.classes == classes_.size() &&
                      std::abs(utilisation - sample_utilisation_) < 1e-3;
    if (!same) {
      sample_utilisation_ = utilisation;
      sample_ = sample_steady_state(utilisation, classes_, context_.device.gc_policy,
                                    layout_.blocks_per_plane,
                                    context_.device.overprovisioning_ratio, random_.next());
    }
    return sample_;
  }

  // Every used block gets its part of each class, as the sampled block of the same rank has it.
  void fill_sampled(std::uint32_t plane, std::uint32_t used) {
    const BlockSample& sample = sample_for(used);
    const std::uint32_t per_block = layout_.units_per_block;
    std::vector<double> sums(sources_.size(), 0), reached(sources_.size(), 0);
    const auto rank = [&](std::uint32_t i) {
      return static_cast<std::size_t>(std::uint64_t{i} * sample.blocks / used);
    };
    for (std::uint32_t i = 0; i < used; ++i) {
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += sample.of(rank(i), c);
    }
    std::size_t unplaced = units_.size();
    for (std::uint32_t i = 0; i < used; ++i) {
      chosen_.clear();
      const std::size_t room_after = std::size_t{used - i - 1} * per_block;
      for (std::size_t c = 0; c < sources_.size(); ++c) {
        reached[c] += sample.of(rank(i), c);
        Source& source = sources_[c];
        const double share = sums[c] > 0 ? reached[c] / sums[c] : (i + 1.0) / used;
        auto until = static_cast<std::size_t>(
            share * static_cast<double>(source.units.size()) + 0.5);
        if (i + 1 == used) until = source.units.size();
        until = std::min(until, source.taken + per_block - chosen_.size());
        take_until(source, until);
      }
      // Rounding must not leave more than the blocks to come can hold.
      for (Source& source : sources_) {
        const std::size_t placed = unplaced - chosen_.size();
        if (placed <= room_after) break;
        const std::size_t more = std::min(placed - room_after, per_block - chosen_.size());
        take_until(source, std::min(source.units.size(), source.taken + more));
      }
      unplaced -= chosen_.size();
      scatter(context_.blocks.take_filled(plane));
    }
  }

  void take_until(Source& source, std::size_t until) {
    while (source.taken < until) chosen_.push_back(source.units[source.taken++]);
  }

  // The chosen units on random places of the block.
  void scatter(std::uint32_t block) {
    std::size_t left = chosen_.size();
    for (std::uint32_t at = 0; at < layout_.units_per_block && left > 0; ++at) {
      const std::uint32_t places = layout_.units_per_block - at;
      if (random_.below(places) >= left) continue;
      place(chosen_[--left], block, at);
    }
    context_.blocks.add_valid(block, static_cast<std::uint32_t>(chosen_.size()));
  }

  Context& context_;
  const std::vector<FlowConfig>& flows_;
  const Layout& layout_;
  SplitMix random_;
  std::vector<std::vector<Share>> shares_;  // by plane
  std::vector<std::uint32_t> units_, chosen_;
  std::vector<Source> sources_;
  std::vector<WriteClass> classes_;
  bool all_sequential_ = true;
  BlockSample sample_;
  double sample_utilisation_ = 0;
};

}  // namespace

void precondition(Context& context, const std::vector<FlowConfig>& flows, Watch& watch) {
  Filling filling(context, flows);
  filling.check_planes();
  filling.check_room();
  if (context.device.preconditioning) filling.fill(watch);
}

}  // namespace iojoule::sim::physical
