#include "steady_state.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace iojoule::sim::physical {

namespace {

constexpr std::uint32_t sampled_blocks = 400;
constexpr std::uint32_t units_per_block = 128;
constexpr std::uint32_t spare_blocks = 4;      // free and being filled
constexpr double overwrites = 4;               // of the whole plane

// A plane with nothing but its mapping: where each unit lies, and what lies in each place.
class SmallPlane {
 public:
  SmallPlane(double utilisation, const std::vector<WriteClass>& classes, VictimPolicy policy,
             std::uint32_t choices, double overprovisioning, std::uint64_t seed)
      : classes_(classes),
        policy_(policy),
        choices_(choices),
        valid_max_pp_(static_cast<std::uint32_t>((1 - overprovisioning) * units_per_block)),
        random_(seed),
        unit_at_(std::size_t{blocks} * units_per_block, none),
        valid_(blocks),
        full_(blocks),
        order_(blocks) {
    fill(std::min(utilisation, 1.0));
  }

  void overwrite() {
    double which = random_.uniform();
    std::size_t c = 0;
    while (c + 1 < classes_.size() && which >= classes_[c].rate) which -= classes_[c++].rate;
    const std::uint32_t count = first_unit_[c + 1] - first_unit_[c];
    if (count == 0) return;
    const std::uint32_t unit = first_unit_[c] + random_.below(count);
    unit_at_[place_[unit]] = none;
    --valid_[place_[unit] / units_per_block];
    append(user_, unit);
    while (free_.size() < 2) collect();
  }

  BlockSample sample() const {
    std::vector<std::uint32_t> by_valid(blocks);
    std::iota(by_valid.begin(), by_valid.end(), 0U);
    std::stable_sort(by_valid.begin(), by_valid.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return valid_[a] < valid_[b]; });
    BlockSample sample;
    sample.classes = classes_.size();
    for (const std::uint32_t block : by_valid) {
      if (!full_[block]) continue;
      ++sample.blocks;
      sample.valid.resize(sample.blocks * sample.classes, 0.0F);
      for (std::uint32_t i = 0; i < units_per_block; ++i) {
        const std::uint32_t unit = unit_at_[block * units_per_block + i];
        if (unit == none) continue;
        sample.valid[(sample.blocks - 1) * sample.classes + class_of(unit)] +=
            1.0F / units_per_block;
      }
    }
    return sample;
  }

 private:
  static constexpr std::uint32_t blocks = sampled_blocks + spare_blocks;
  struct Frontier {
    std::uint32_t block = 0, filled = 0;
  };

  std::size_t class_of(std::uint32_t unit) const {
    std::size_t c = 0;
    while (unit >= first_unit_[c + 1]) ++c;
    return c;
  }

  // Begins with every block equally valid, and the classes mixed.
  void fill(double utilisation) {
    const double units = utilisation * sampled_blocks * units_per_block;
    double share = 0;
    first_unit_.push_back(0);
    for (const WriteClass& c : classes_) {
      share += c.units;
      first_unit_.push_back(static_cast<std::uint32_t>(std::lround(std::min(share, 1.0) * units)));
    }
    place_.resize(first_unit_.back());
    std::vector<std::uint32_t> shuffled(place_.size());
    std::iota(shuffled.begin(), shuffled.end(), 0U);
    for (std::size_t i = shuffled.size(); i > 1; --i) {
      std::swap(shuffled[i - 1], shuffled[random_.below(static_cast<std::uint32_t>(i))]);
    }
    std::size_t next = 0;
    for (std::uint32_t block = 0; block < sampled_blocks; ++block) {
      const std::size_t until = shuffled.size() * (block + 1) / sampled_blocks;
      for (std::uint32_t i = 0; next < until; ++i) put(shuffled[next++], block, i);
      full_[block] = true;
      order_[block] = next_order_++;
    }
    for (std::uint32_t block = sampled_blocks; block < blocks; ++block) free_.push_back(block);
    user_.block = take_free();
    moved_.block = take_free();
  }

  void put(std::uint32_t unit, std::uint32_t block, std::uint32_t at) {
    place_[unit] = block * units_per_block + at;
    unit_at_[place_[unit]] = unit;
    ++valid_[block];
  }

  std::uint32_t take_free() {
    const std::uint32_t block = free_.back();
    free_.pop_back();
    return block;
  }

  void append(Frontier& frontier, std::uint32_t unit) {
    put(unit, frontier.block, frontier.filled);
    if (++frontier.filled < units_per_block) return;
    full_[frontier.block] = true;
    order_[frontier.block] = next_order_++;
    frontier = {take_free(), 0};
  }

  void collect() {
    const std::uint32_t victim = choose();
    full_[victim] = false;
    for (std::uint32_t i = 0; i < units_per_block; ++i) {
      std::uint32_t& unit = unit_at_[victim * units_per_block + i];
      if (unit == none) continue;
      const std::uint32_t moving = unit;
      unit = none;
      append(moved_, moving);
    }
    valid_[victim] = 0;
    free_.push_back(victim);
  }

  std::uint32_t choose() {
    if (policy_ == VictimPolicy::greedy || policy_ == VictimPolicy::fifo) return best_of_all();
    std::uint32_t best = none;
    const std::uint32_t draws = policy_ == VictimPolicy::rga ? choices_ : 1;
    for (std::uint32_t d = 0; d < draws; ++d) {
      const std::uint32_t block = random_full();
      if (best == none || better(block, best)) best = block;
    }
    return best;
  }

  std::uint32_t best_of_all() const {
    std::uint32_t best = none;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      if (full_[b] && (best == none || better(b, best))) best = b;
    }
    return best;
  }

  bool better(std::uint32_t a, std::uint32_t b) const {
    return policy_ == VictimPolicy::fifo ? order_[a] < order_[b] : valid_[a] < valid_[b];
  }

  std::uint32_t random_full() {
    constexpr int draws_max = 64;
    const std::uint32_t valid_max = policy_ == VictimPolicy::random_p    ? units_per_block - 1
                                    : policy_ == VictimPolicy::random_pp ? valid_max_pp_
                                                                         : units_per_block;
    for (int draw = 0; draw < draws_max; ++draw) {
      const std::uint32_t block = random_.below(blocks);
      if (full_[block] && valid_[block] <= valid_max) return block;
    }
    return best_of_all();
  }

  const std::vector<WriteClass>& classes_;
  VictimPolicy policy_;
  std::uint32_t choices_, valid_max_pp_;
  SplitMix random_;
  std::vector<std::uint32_t> first_unit_, place_, unit_at_, valid_;
  std::vector<bool> full_;
  std::vector<std::uint64_t> order_;
  std::vector<std::uint32_t> free_;
  Frontier user_, moved_;
  std::uint64_t next_order_ = 0;
};

}  // namespace

BlockSample sample_steady_state(double utilisation, const std::vector<WriteClass>& classes,
                                VictimPolicy policy, std::uint32_t blocks_per_plane,
                                double overprovisioning, std::uint64_t seed) {
  const auto choices = static_cast<std::uint32_t>(
      std::max(1, static_cast<int>(std::bit_width(blocks_per_plane)) - 1));
  SmallPlane plane(utilisation, classes, policy, choices, overprovisioning, seed);
  // A plane that is full to the brim has nothing to collect.
  constexpr double full_to_the_brim = 0.985;
  if (utilisation < full_to_the_brim) {
    const auto writes =
        static_cast<std::uint64_t>(overwrites * sampled_blocks * units_per_block);
    for (std::uint64_t i = 0; i < writes; ++i) plane.overwrite();
  }
  return plane.sample();
}

}  // namespace iojoule::sim::physical
