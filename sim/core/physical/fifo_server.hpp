// Something that serves one job after the other in the order of asking: a channel, a link, a memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace iojoule::sim::physical {

// Resources keep picoseconds, because a byte takes fractions of a nanosecond; events happen at
// whole nanoseconds. Rounding up an end never lets a resource run faster than it is.
inline constexpr std::uint64_t ps_per_ns = 1000;
// A run may not go further: half of what 64 bits of picoseconds hold, the rest is for what is under way.
inline constexpr std::uint64_t clock_limit_ns = 8'640'000'000'000'000;  // 100 days
constexpr std::uint64_t to_ps(std::uint64_t ns) { return ns * ps_per_ns; }
constexpr std::uint64_t to_ns(std::uint64_t ps) { return (ps + ps_per_ns - 1) / ps_per_ns; }

// Never idle while a job waits, and first come, first served. Because the end of a job is known when
// it is asked for, waiting costs no event.
class FifoServer {
 public:
  // When the job is done, in ps. Jobs are asked for when they are ready.
  std::uint64_t serve(std::uint64_t ready_ps, std::uint64_t duration_ps) {
    busy_ps_ += duration_ps;
    return take(ready_ps, duration_ps);
  }

  // The same for a job that is asked for at now_ps and ready later: the time before it stays free for
  // jobs that are ready sooner. A job that meets one asked for earlier goes on behind it, so that no
  // capacity is lost.
  std::uint64_t reserve(std::uint64_t now_ps, std::uint64_t ready_ps, std::uint64_t duration_ps) {
    busy_ps_ += duration_ps;
    forget_gaps(now_ps);
    if (ready_ps < free_ps_) return take(ready_ps, duration_ps);
    const std::uint64_t from_ps = std::max(free_ps_, now_ps);
    if (ready_ps > from_ps) gaps_.emplace_back(from_ps, ready_ps);
    return free_ps_ = ready_ps + duration_ps;
  }

  std::uint64_t free_ps() const { return free_ps_; }
  std::uint64_t busy_ns() const { return busy_ps_ / ps_per_ns; }
  void forget_busy() { busy_ps_ = 0; }

 private:
  struct Gap {
    std::uint64_t begin_ps, end_ps;
  };

  // Those that are over; all of them where the jobs before were long ago.
  void forget_gaps(std::uint64_t now_ps) {
    if (gaps_.empty()) return;
    if (gaps_.back().end_ps <= now_ps) return gaps_.clear();
    std::size_t past = 0;
    while (gaps_[past].end_ps <= now_ps) ++past;
    if (past > 0) gaps_.erase(gaps_.begin(), gaps_.begin() + static_cast<std::ptrdiff_t>(past));
  }

  [[gnu::always_inline]] std::uint64_t take(std::uint64_t ready_ps, std::uint64_t duration_ps) {
    if (gaps_.empty() || gaps_.back().end_ps <= ready_ps) [[likely]] {
      return free_ps_ = std::max(ready_ps, free_ps_) + duration_ps;
    }
    return fill(ready_ps, duration_ps);
  }

  // Takes free time from ready_ps on, in as many pieces as it takes.
  [[gnu::noinline]] std::uint64_t fill(std::uint64_t ready_ps, std::uint64_t left_ps) {
    std::size_t i = gaps_.size();
    while (i > 0 && gaps_[i - 1].end_ps > ready_ps) --i;
    const std::size_t first = i;
    for (; i < gaps_.size(); ++i) {
      const std::uint64_t begin_ps = std::max(gaps_[i].begin_ps, ready_ps);
      const std::uint64_t room_ps = gaps_[i].end_ps - begin_ps;
      if (left_ps <= room_ps) break;
      left_ps -= room_ps;
    }
    std::uint64_t done_ps = 0;
    Gap rest[2];
    std::size_t rests = 0;
    if (first < gaps_.size() && gaps_[first].begin_ps < ready_ps) {
      rest[rests++] = {gaps_[first].begin_ps, ready_ps};
    }
    if (i < gaps_.size()) {
      done_ps = std::max(gaps_[i].begin_ps, ready_ps) + left_ps;
      if (done_ps < gaps_[i].end_ps) rest[rests++] = {done_ps, gaps_[i].end_ps};
      ++i;
    } else {
      done_ps = free_ps_ = std::max(free_ps_, ready_ps) + left_ps;
    }
    const auto at = [this](std::size_t n) { return gaps_.begin() + static_cast<std::ptrdiff_t>(n); };
    const std::size_t kept = std::min(rests, i - first);
    std::copy_n(rest, kept, at(first));
    if (kept < rests) {
      gaps_.insert(at(first + kept), rest[kept]);
    } else {
      gaps_.erase(at(first + kept), at(i));
    }
    return done_ps;
  }

  std::uint64_t free_ps_ = 0, busy_ps_ = 0;
  std::vector<Gap> gaps_;  // free time before free_ps_, earliest first
};

}  // namespace iojoule::sim::physical
