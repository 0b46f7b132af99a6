// The drive's NVMe power states: what it draws in each, the cap of the operational ones, sleep.
#pragma once

#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "energy.hpp"

namespace iojoule::sim::physical {

// Watts that a capped state may spend on the average; 0: it has no cap. Throws ConfigError where the
// drive draws as much before any flash operation.
double refill_watts(const PowerOptions& power, const EnergyOptions& energy, std::uint32_t state);

// Three rules.
// * Cap: energy comes from a budget that is filled at the cap's rate and holds `cap_burst_ns` worth
//   of it. Flash operations start only while the budget is not overdrawn, and everything else that
//   is drawn (controller, link, memory) comes off it. With `cap_reopen_ns` they then wait until so
//   much time's worth of the cap is in it again. The rate is so much below the cap that no
//   window of cap_window_ns exceeds it.
// * Sleep: a state that is not operational is entered after the idle time that the autonomous
//   transitions name, or when the host sets it and the drive is idle. A command wakes the drive:
//   it waits until an entry under way is over, and the exit latency.
// * Watts: an idle operational state draws its declared idle power, or the sum of the parts.
class PowerManager {
 public:
  PowerManager(const DeviceConfig& device, EnergyMeter& meter);

  // --- cap
  bool capped() const { return refill_watts_ > 0; }
  // Whether a flash operation may start now.
  bool open(std::uint64_t now_ns) {
    if (!capped()) return true;
    refill(now_ns);
    if (budget_joules_ >= 0 && !held_) [[likely]] return true;
    held_ = budget_joules_ < reopen_joules_;
    return !held_;
  }
  // When that will be so again if nothing else is drawn.
  std::uint64_t reopens_ns(std::uint64_t now_ns) const;
  // Energy that something just begun will take.
  void charge(double joules) {
    if (capped()) budget_joules_ -= joules;
  }

  // So many commands are in the drive now. To be called only where `counts_commands`.
  void set_commands(std::uint64_t now_ns, std::uint64_t commands);
  bool counts_commands() const { return !busy_watts_.empty(); }

  // --- activity: commands or flash operations under way
  void begin_activity(std::uint64_t now_ns);
  void end_activity(std::uint64_t now_ns);
  bool active() const { return active_; }
  std::uint64_t idle_since_ns() const { return idle_since_ns_; }

  // A command has arrived: when the drive can work on it.
  std::uint64_t wake(std::uint64_t now_ns);
  // The host sets a state.
  void command(std::uint64_t now_ns, std::uint32_t state);
  // The autonomous transitions are others now.
  void transitions_changed(std::uint64_t now_ns);
  std::uint32_t current() const { return current_; }
  // When `on_timer` wants to be called; UINT64_MAX: not at all.
  std::uint64_t timer_ns() const { return timer_ns_; }
  void on_timer(std::uint64_t now_ns);

  // --- results
  void restart(std::uint64_t now_ns);
  std::vector<std::uint64_t> state_times_ns(std::uint64_t now_ns);
  std::uint64_t transitions() const { return transitions_; }

 private:
  const PowerState& state() const { return options_.states[current_]; }
  void enter(std::uint64_t now_ns, std::uint32_t state);
  void set_cap();
  void set_watts(std::uint64_t now_ns);
  StaticWatts watts_now() const;
  void set_timer(std::uint64_t from_ns);
  void refill(std::uint64_t now_ns);

  const PowerOptions& options_;
  const EnergyOptions& energy_;
  EnergyMeter& meter_;
  static constexpr std::uint32_t no_state = UINT32_MAX;
  std::uint32_t current_, operational_;
  std::uint32_t asked_to_sleep_ = no_state;  // by the host, until a command wakes the drive
  bool active_ = false, asleep_ = false;
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t settled_at_ns_ = 0;  // an entry or exit under way is over then
  std::uint64_t timer_ns_ = UINT64_MAX;
  std::uint32_t timer_state_ = 0;
  double refill_watts_ = 0, budget_joules_ = 0, budget_max_joules_ = 0, reopen_joules_ = 0;
  bool held_ = false;  // overdrawn and not yet back at reopen_joules_
  std::vector<double> busy_watts_;  // of the controller, by commands in the drive; empty: none
  double busy_now_watts_ = 0;
  std::uint64_t refilled_ns_ = 0;
  std::vector<std::uint64_t> state_ns_;
  std::uint64_t state_since_ns_ = 0, transitions_ = 0;
};

}  // namespace iojoule::sim::physical
