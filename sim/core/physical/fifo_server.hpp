// Something that serves one job after the other in the order of asking: a channel, a link, a memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace iojoule::sim::physical {

// Resources keep picoseconds, because a byte takes fractions of a nanosecond; events happen at
// whole nanoseconds. Rounding up an end never lets a resource run faster than it is.
inline constexpr std::uint64_t ps_per_ns = 1000;
constexpr std::uint64_t to_ps(std::uint64_t ns) { return ns * ps_per_ns; }
constexpr std::uint64_t to_ns(std::uint64_t ps) { return (ps + ps_per_ns - 1) / ps_per_ns; }

// Never idle while a job waits, and first come, first served. Because the end of a job is known when
// it is asked for, waiting costs no event.
class FifoServer {
 public:
  // When the job is done, in ps.
  std::uint64_t serve(std::uint64_t ready_ps, std::uint64_t duration_ps) {
    free_ps_ = std::max(ready_ps, free_ps_) + duration_ps;
    busy_ps_ += duration_ps;
    return free_ps_;
  }

  std::uint64_t free_ps() const { return free_ps_; }
  std::uint64_t busy_ns() const { return busy_ps_ / ps_per_ns; }
  void forget_busy() { busy_ps_ = 0; }

 private:
  std::uint64_t free_ps_ = 0, busy_ps_ = 0;
};

}  // namespace iojoule::sim::physical
