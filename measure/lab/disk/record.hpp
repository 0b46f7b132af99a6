// What the lab's drive remembers of what it did: every completion, and its joules over time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "physical/host.hpp"

namespace iojoule::lab {

using sim::physical::RequestKind;

// Keeps the last `limit` of what is pushed, in order; grows up to there.
template <class Value>
class Ring {
 public:
  explicit Ring(std::size_t limit) : limit_(limit) {}

  void push(const Value& value) {
    if (values_.size() < limit_) {
      values_.push_back(value);
    } else {
      values_[first_] = value;
      first_ = first_ + 1 < limit_ ? first_ + 1 : 0;
    }
    ++pushed_;
  }
  std::size_t size() const { return values_.size(); }
  // How many were pushed before the first that is still there.
  std::uint64_t dropped() const { return pushed_ - values_.size(); }
  const Value& operator[](std::size_t index) const {
    const std::size_t place = first_ + index;
    return values_[place < values_.size() ? place : place - values_.size()];
  }

 private:
  std::size_t limit_, first_ = 0;
  std::uint64_t pushed_ = 0;
  std::vector<Value> values_;
};

// One completion, as it goes over the control socket.
struct Entry {
  std::uint64_t done_ns;  // when the reply was sent, CLOCK_MONOTONIC
  std::uint64_t packed;   // latency_ns: 40 bits, sectors: 20 bits, kind: 3 bits, failed: 1 bit
};

inline Entry entry_of(std::uint64_t arrived_ns, std::uint64_t done_ns, std::uint64_t sectors,
                      RequestKind kind, bool failed) {
  const std::uint64_t latency_ns =
      std::min<std::uint64_t>(done_ns - std::min(arrived_ns, done_ns), (1ULL << 40U) - 1);
  const std::uint64_t counted = std::min<std::uint64_t>(sectors, (1ULL << 20U) - 1);
  return {done_ns, latency_ns << 24U | counted << 4U | static_cast<std::uint64_t>(kind) << 1U |
                       (failed ? 1U : 0U)};
}

// Watts at even steps, with the joules since the start at each of them.
class PowerRecord {
 public:
  PowerRecord(std::uint64_t start_ns, std::uint64_t step_ns, std::size_t steps_kept)
      : start_ns_(start_ns), step_ns_(step_ns), watts_(steps_kept), marks_(marks_kept) {
    marks_.push(0);
  }

  // The supply's capacitors: what is drawn in a step is taken from the rail over some steps.
  void push(double joules) {
    if (!filled_) {
      filled_ = true;
      stored_joules_ = joules * (1 / passed_ - 1);
    }
    stored_joules_ += joules;
    const double taken = stored_joules_ * passed_;
    stored_joules_ -= taken;
    joules_ += taken;
    watts_.push(static_cast<float>(taken / (static_cast<double>(step_ns_) * 1e-9)));
    if (++steps_ % steps_per_mark == 0) marks_.push(joules_);
  }

  std::uint64_t step_ns() const { return step_ns_; }
  std::uint64_t end_ns() const { return start_ns_ + steps_ * step_ns_; }
  double joules() const { return joules_; }

  // Watts of the whole steps from `from_ns` on; where the first of them begins.
  std::uint64_t watts_from(std::uint64_t from_ns, std::vector<float>& watts) const {
    const std::uint64_t ahead = from_ns > start_ns_ ? from_ns - start_ns_ : 0;
    const std::uint64_t wanted = (ahead + step_ns_ - 1) / step_ns_;
    const std::uint64_t first = std::clamp(wanted, watts_.dropped(), steps_);
    for (std::uint64_t i = first; i < steps_; ++i) {
      watts.push_back(watts_[static_cast<std::size_t>(i - watts_.dropped())]);
    }
    return start_ns_ + first * step_ns_;
  }

  // Joules since the start; between two marks by their line. Not before the first mark kept.
  double joules_at(std::uint64_t at_ns) const {
    const double mark_ns = static_cast<double>(step_ns_ * steps_per_mark);
    const double at = at_ns > start_ns_ ? static_cast<double>(at_ns - start_ns_) / mark_ns : 0;
    const double place = std::max(0.0, at - static_cast<double>(marks_.dropped()));
    const auto index = static_cast<std::size_t>(place);
    if (index + 1 >= marks_.size()) return joules_;
    const double part = place - std::floor(place);
    return marks_[index] * (1 - part) + marks_[index + 1] * part;
  }
  std::uint64_t oldest_ns() const {
    return start_ns_ + marks_.dropped() * step_ns_ * steps_per_mark;
  }

 private:
  static constexpr std::uint64_t steps_per_mark = 40;
  static constexpr std::size_t marks_kept = std::size_t{1} << 22;  // over two hours of 2 ms
  static constexpr double passed_ = 0.1;  // of what is stored, in a step: 0.5 ms at 50 us

  std::uint64_t start_ns_, step_ns_, steps_ = 0;
  bool filled_ = false;
  double stored_joules_ = 0, joules_ = 0;
  Ring<float> watts_;
  Ring<double> marks_;
};

}  // namespace iojoule::lab
