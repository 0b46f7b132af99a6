// Keeps a run within its limits and its caller informed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "config.hpp"
#include "control.hpp"
#include "error.hpp"

namespace iojoule::sim {

// Made when a run begins. An event loop calls `tick` before each event, which costs two comparisons;
// work without events (filling a drive, reading a trace) calls `poll` every millisecond or so.
// Both throw Cancelled, LimitError, and whatever the caller's progress function throws.
class Watch {
 public:
  // `expected_end_ns` is when the flows are due to stop, 0 if nobody knows: what progress refers to.
  Watch(const Limits& limits, Control& control, std::uint64_t expected_end_ns)
      : limits_(limits),
        control_(control),
        expected_end_ns_(expected_end_ns),
        next_look_(std::min(events_between_looks, limits.events)) {}

  // now_ns: the time of the event about to run; executed: how many ran before it.
  void tick(std::uint64_t now_ns, std::uint64_t executed) {
    if (executed < next_look_ && now_ns <= limits_.simulated_ns) [[likely]] return;
    look(now_ns, executed);
  }

  // What the run holds in memory, for what grows while it runs: looked at every few thousand events.
  void measure(std::function<std::uint64_t()> held_bytes) { held_bytes_ = std::move(held_bytes); }

  // share_done: 0..1
  void poll(double share_done) {
    if (control_.cancelled.load(std::memory_order_relaxed)) throw Cancelled();
    const Clock::time_point now = Clock::now();
    if (limits_.wall_seconds > 0 && now - start_ > Seconds(limits_.wall_seconds)) {
      throw LimitError("wall_seconds", "the run took longer than its limit of " +
                                           std::to_string(limits_.wall_seconds) +
                                           " s; allow more or simulate less");
    }
    if (now < next_report_) return;
    next_report_ = now + report_period;
    if (control_.progress) control_.progress(share_done);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  static constexpr std::uint64_t events_between_looks = 4096;  // well under a millisecond
  static constexpr std::chrono::milliseconds report_period{100};

  void look(std::uint64_t now_ns, std::uint64_t executed) {
    if (now_ns > limits_.simulated_ns) {
      throw LimitError("simulated_ns", "the run would go on past its limit of " +
                                           std::to_string(limits_.simulated_ns) +
                                           " ns of simulated time; allow more or stop it earlier");
    }
    if (executed >= limits_.events) {
      throw LimitError("events", "the run needs more than its limit of " +
                                     std::to_string(limits_.events) +
                                     " events; allow more or simulate less");
    }
    if (held_bytes_) check_memory(held_bytes_());
    next_look_ = std::min(executed + events_between_looks, limits_.events);
    poll(expected_end_ns_ == 0 ? 0.0
                               : std::min(1.0, static_cast<double>(now_ns) /
                                                   static_cast<double>(expected_end_ns_)));
  }

  void check_memory(std::uint64_t held) const {
    if (held <= limits_.memory_bytes) return;
    throw LimitError("memory_bytes", "the run holds " + std::to_string(held) +
                                         " bytes, more than its limit of " +
                                         std::to_string(limits_.memory_bytes) +
                                         "; allow more, or send the drive no more requests than "
                                         "it can serve");
  }

  const Limits limits_;
  Control& control_;
  std::uint64_t expected_end_ns_;
  std::function<std::uint64_t()> held_bytes_;
  std::uint64_t next_look_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_report_ = start_ + report_period;
};

}  // namespace iojoule::sim
