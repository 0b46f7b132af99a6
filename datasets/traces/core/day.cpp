#include "day.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace iojoule::traces {
namespace {

constexpr std::size_t quantiles = 4096;
constexpr std::uint64_t block_bytes = 4096;

std::uint32_t threshold(double share) {
  return static_cast<std::uint32_t>(std::clamp(share, 0.0, 1.0) * 4294967295.0);
}

// Quantiles of the hyper-exponential with two phases, balanced means, mean 1 and this CV.
std::vector<double> gap_quantiles(double cv) {
  const double c2 = std::max(cv * cv, 1.0);
  const double p = 0.5 * (1 + std::sqrt((c2 - 1) / (c2 + 1)));
  const double fast = 2 * p, slow = 2 * (1 - p);
  std::vector<double> found(quantiles);
  double sum = 0;
  for (std::size_t i = 0; i < quantiles; ++i) {
    const double above = 1 - (static_cast<double>(i) + 0.5) / quantiles;
    double low = 0, high = 1e4;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      const double beyond = p * std::exp(-fast * middle) + (1 - p) * std::exp(-slow * middle);
      (beyond > above ? low : high) = middle;
    }
    sum += found[i] = low;
  }
  for (double& gap : found) gap *= quantiles / sum;
  return found;
}

}  // namespace

Day::Day(DayConfig config)
    : config_(std::move(config)),
      weights_(config_.rate.size()),
      gaps_(gap_quantiles(config_.gap_cv)),
      sequential_threshold_(threshold(config_.sequential_share)) {
  std::uint64_t seed = config_.seed;
  for (std::uint64_t& word : state_) {  // SplitMix64
    std::uint64_t mixed = seed += 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    word = mixed ^ (mixed >> 31);
  }
  build(config_.read_odds, read_choices_);
  build(config_.write_odds, write_choices_);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < config_.rate.size(); ++i) {
    const std::uint64_t blocks = config_.blocks[i];
    volumes_.push_back({first, blocks, 0, threshold(config_.write_share[i]),
                        uniform() < config_.burst_time[i]});
    first += blocks;
  }
  start_slot();
}

// xoshiro256++ (Blackman and Vigna, 2021).
std::uint64_t Day::draw() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Day::uniform() { return static_cast<double>(draw() >> 11) * 0x1.0p-53; }

void Day::build(const std::vector<double>& odds, std::vector<Choice>& choices) {
  const std::size_t n = odds.size();
  const double sum = std::accumulate(odds.begin(), odds.end(), 0.0);
  choices.assign(n, {UINT32_MAX, 0});
  std::vector<double> scaled(n);
  std::vector<std::uint32_t> small, large;
  for (std::size_t i = 0; i < n; ++i) {
    scaled[i] = odds[i] * static_cast<double>(n) / sum;
    choices[i].other = static_cast<std::uint32_t>(i);
    (scaled[i] < 1 ? small : large).push_back(static_cast<std::uint32_t>(i));
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t less = small.back(), more = large.back();
    small.pop_back();
    choices[less] = {threshold(scaled[less]), more};
    scaled[more] -= 1 - scaled[less];
    if (scaled[more] < 1) {
      large.pop_back();
      small.push_back(more);
    }
  }
}

std::uint32_t Day::pick(const std::vector<Choice>& choices, std::uint64_t random) {
  const auto index = static_cast<std::uint32_t>(((random >> 32) * choices.size()) >> 32);
  const Choice& choice = choices[index];
  return static_cast<std::uint32_t>(random) <= choice.threshold ? index : choice.other;
}

// Volumes begin and end their bursts; requests a second at the minute's load.
double Day::next_rate() {
  double total = 0;
  const double end = 1 / config_.burst_slots;
  for (std::size_t i = 0; i < volumes_.size(); ++i) {
    const double share = config_.burst_time[i];
    const double turn = volumes_[i].bursts ? end : end * share / (1 - share);
    if (uniform() < turn) volumes_[i].bursts = !volumes_[i].bursts;
    const double burst = volumes_[i].bursts ? (1 - config_.steady_share) / share : 0;
    total += weights_[i] = config_.rate[i] * (config_.steady_share + burst);
  }
  const auto minute = static_cast<std::size_t>(slot_ / config_.slots_per_minute) % config_.minutes.size();
  return total * config_.minutes[minute];
}

void Day::start_slot() {
  slot_ += 1;
  if (slot_ >= config_.slots) return;
  const double mean_gap_s = 1 / next_rate();
  build(weights_, volume_choices_);
  // what is left of the gap that reaches into the slot passes at the new pace
  const double left = mean_gap_s_ > 0 ? (time_s_ - slot_) / mean_gap_s_ : gaps_[draw() % quantiles];
  mean_gap_s_ = mean_gap_s;
  time_s_ = slot_ + left * mean_gap_s_;
}

double Day::busiest_second() {
  double most = 1 / mean_gap_s_;
  while (++slot_ < config_.slots) most = std::max(most, next_rate());
  return most;
}

std::size_t Day::next(const Requests& into) {
  std::size_t count = 0;
  while (count < into.arrival_ns.size()) {
    while (time_s_ >= slot_ + 1 && slot_ < config_.slots) start_slot();
    if (slot_ >= config_.slots) break;
    const std::uint64_t first = draw(), second = draw(), third = draw();
    const std::uint32_t id = pick(volume_choices_, first);
    Volume& volume = volumes_[id];
    const bool write = static_cast<std::uint32_t>(second) < volume.write_threshold;
    const std::uint64_t size =
        config_.sizes[pick(write ? write_choices_ : read_choices_, third)];
    const std::uint64_t space = volume.blocks * block_bytes;
    std::uint64_t offset = volume.next_offset;
    if (static_cast<std::uint32_t>(second >> 32) >= sequential_threshold_) {
      // the eighth power of a uniform: the first hundredth of the volume gets 56 % of requests
      double place = static_cast<double>(draw() >> 11) * 0x1.0p-53;
      place *= place;
      place *= place;
      place *= place;
      offset = static_cast<std::uint64_t>(place * static_cast<double>(volume.blocks)) * block_bytes;
    }
    if (offset + size > space) offset = space > size ? space - size : 0;
    volume.next_offset = offset + size;
    into.arrival_ns[count] = static_cast<std::int64_t>(time_s_ * 1e9);
    into.offset_bytes[count] =
        static_cast<std::int64_t>(volume.first_block * block_bytes + offset);
    into.size_bytes[count] = static_cast<std::int64_t>(size);
    into.is_write[count] = write;
    into.volume[count] = id;
    ++count;
    time_s_ += mean_gap_s_ * gaps_[first & (quantiles - 1)];
  }
  return count;
}

}  // namespace iojoule::traces
