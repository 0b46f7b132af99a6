#include "power_states.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "../error.hpp"

namespace iojoule::sim::physical {

namespace {

// The cap a state declares: active power is the largest average over 10 s, maximum power the
// sustained maximum (NVMe Base Specification 2.1, figure 313). 0: none.
double cap_watts(const PowerState& state) {
  if (state.active_power_watts > 0 && state.max_power_watts > 0) {
    return std::min(state.active_power_watts, state.max_power_watts);
  }
  return std::max(state.active_power_watts, state.max_power_watts);
}

}  // namespace

double refill_watts(const PowerOptions& power, const EnergyOptions& energy, std::uint32_t state) {
  const double cap = cap_watts(power.states[state]);
  if (cap == 0) return 0;
  // A window spends what flows in, plus a full budget, plus the operation that overdraws it, for
  // which as much again is set aside.
  const double burst_share =
      static_cast<double>(power.cap_burst_ns) / static_cast<double>(power.cap_window_ns);
  const double refill = cap * (1 - 2 * burst_share);
  const double base = energy.controller_active_watts + energy.controller_busy_watts +
                      energy.dram_refresh_watts + energy.link_active_watts;
  if (base >= refill) {
    throw ConfigError("physical.power.states",
                      "state " + std::to_string(state) + " caps the drive at " +
                          std::to_string(cap) + " W, but it draws " + std::to_string(base) +
                          " W before any flash operation; raise the cap or lower "
                          "controller_active_watts, controller_busy_watts, dram_refresh_watts or link_active_watts");
  }
  return refill;
}

PowerManager::PowerManager(const DeviceConfig& device, EnergyMeter& meter)
    : options_(device.physical.power),
      energy_(device.physical.energy),
      meter_(meter),
      current_(options_.initial_state),
      operational_(options_.initial_state),
      state_ns_(options_.states.size(), 0) {
  const auto known = [this](std::uint32_t state) { return state < options_.states.size(); };
  bool all_known = options_.states.empty() || known(options_.initial_state);
  for (const PowerTransition& t : options_.autonomous_transitions) {
    all_known = all_known && known(t.from_state) && known(t.to_state);
  }
  for (const PowerCommand& c : options_.commands) all_known = all_known && known(c.state);
  if (!all_known) {
    throw ConfigError("physical.power.states",
                      "a power state is used that the table does not have; add it");
  }
  if (!options_.states.empty() && !state().operational) {
    throw ConfigError("physical.power.initial_state", "is not operational; name a state that is");
  }
  if (options_.cap_burst_ns * 4 > options_.cap_window_ns) {
    throw ConfigError("physical.power.cap_burst_ns",
                      "is over a quarter of cap_window_ns, so the cap could not be held over the "
                      "window; make it shorter");
  }
  if (energy_.controller_busy_watts > 0) {
    const std::uint32_t most = energy_.controller_busy_commands;
    for (std::uint32_t n = 0; n <= most; ++n) {
      const double part = static_cast<double>(n) / static_cast<double>(most);
      busy_watts_.push_back(energy_.controller_busy_watts *
                            std::pow(part, energy_.controller_busy_exponent));
    }
  }
  set_cap();
  budget_joules_ = budget_max_joules_;
  meter_.set_static(0, watts_now());
  set_timer(0);
}

void PowerManager::set_cap() {
  refill_watts_ = 0;
  if (options_.states.empty()) return;
  const double cap = cap_watts(options_.states[operational_]);
  if (cap == 0) return;
  refill_watts_ = refill_watts(options_, energy_, operational_);
  budget_max_joules_ = cap * static_cast<double>(options_.cap_burst_ns) * 1e-9;
  budget_joules_ = std::min(budget_joules_, budget_max_joules_);
  reopen_joules_ = cap * static_cast<double>(options_.cap_reopen_ns) * 1e-9;
}

StaticWatts PowerManager::watts_now() const {
  const bool table = !options_.states.empty();
  if (table && asleep_) {
    const PowerState& s = state();
    return {s.idle_power_watts > 0 ? s.idle_power_watts : s.max_power_watts, 0, 0};
  }
  if (active_) {
    return {energy_.controller_active_watts + busy_now_watts_, energy_.dram_refresh_watts, energy_.link_active_watts};
  }
  StaticWatts idle{energy_.controller_idle_watts, energy_.dram_refresh_watts,
                   energy_.link_idle_watts};
  if (table && options_.states[operational_].idle_power_watts > 0) {
    idle.controller = std::max(
        0.0, options_.states[operational_].idle_power_watts - idle.dram - idle.link);
  }
  return idle;
}

void PowerManager::set_watts(std::uint64_t now_ns) {
  if (capped()) refill(now_ns);
  meter_.set_static(now_ns, watts_now());
}

void PowerManager::refill(std::uint64_t now_ns) {
  if (now_ns <= refilled_ns_) return;
  const double seconds = static_cast<double>(now_ns - refilled_ns_) * 1e-9;
  refilled_ns_ = now_ns;
  budget_joules_ = std::min(
      budget_max_joules_,
      budget_joules_ + (refill_watts_ - meter_.static_watts().total()) * seconds);
}

std::uint64_t PowerManager::reopens_ns(std::uint64_t now_ns) const {
  const double net = refill_watts_ - meter_.static_watts().total();
  const double wanted = (held_ ? reopen_joules_ : 0) - budget_joules_;
  return now_ns + 1 + static_cast<std::uint64_t>(std::ceil(wanted / net * 1e9));
}

void PowerManager::set_commands(std::uint64_t now_ns, std::uint64_t commands) {
  busy_now_watts_ = busy_watts_[std::min<std::uint64_t>(commands, busy_watts_.size() - 1)];
  set_watts(now_ns);
}

void PowerManager::begin_activity(std::uint64_t now_ns) {
  active_ = true;
  timer_ns_ = UINT64_MAX;
  if (asleep_) wake(now_ns);
  set_watts(now_ns);
}

void PowerManager::end_activity(std::uint64_t now_ns) {
  active_ = false;
  idle_since_ns_ = now_ns;
  set_watts(now_ns);
  set_timer(now_ns);
}

std::uint64_t PowerManager::wake(std::uint64_t now_ns) {
  asked_to_sleep_ = no_state;
  if (!asleep_) return std::max(now_ns, settled_at_ns_);
  const std::uint64_t exit_ns = state().exit_latency_ns;
  settled_at_ns_ = std::max(now_ns, settled_at_ns_) + exit_ns;
  enter(now_ns, operational_);
  return settled_at_ns_;
}

void PowerManager::command(std::uint64_t now_ns, std::uint32_t target) {
  const PowerState& to = options_.states[target];
  if (to.operational) {
    const std::uint64_t exit_ns = state().exit_latency_ns;
    operational_ = target;
    asked_to_sleep_ = no_state;
    settled_at_ns_ = std::max(now_ns, settled_at_ns_) + exit_ns + to.entry_latency_ns;
    if (capped()) refill(now_ns);
    set_cap();
    refilled_ns_ = std::max(refilled_ns_, now_ns);
    enter(now_ns, target);
    if (!active_) set_timer(now_ns);
    return;
  }
  asked_to_sleep_ = target;
  if (active_) return;
  set_timer(now_ns);
  on_timer(now_ns);
}

void PowerManager::transitions_changed(std::uint64_t now_ns) {
  if (!active_) set_timer(now_ns);
}

void PowerManager::set_timer(std::uint64_t from_ns) {
  timer_ns_ = UINT64_MAX;
  if (asked_to_sleep_ != no_state) {
    if (current_ == asked_to_sleep_) return;
    timer_ns_ = from_ns;
    timer_state_ = asked_to_sleep_;
    return;
  }
  for (const PowerTransition& t : options_.autonomous_transitions) {
    // NVMe: an idle time of zero switches the transition off.
    if (t.from_state != current_ || t.idle_ns == 0) continue;
    timer_ns_ = std::max(from_ns, settled_at_ns_) + t.idle_ns;
    timer_state_ = t.to_state;
  }
}

void PowerManager::on_timer(std::uint64_t now_ns) {
  if (active_ || now_ns < timer_ns_) return;
  settled_at_ns_ = std::max(now_ns, settled_at_ns_) + options_.states[timer_state_].entry_latency_ns;
  enter(now_ns, timer_state_);
  set_timer(now_ns);
}

void PowerManager::enter(std::uint64_t now_ns, std::uint32_t target) {
  state_ns_[current_] += now_ns - state_since_ns_;
  state_since_ns_ = now_ns;
  if (target != current_) ++transitions_;
  current_ = target;
  asleep_ = !options_.states[target].operational;
  set_watts(now_ns);
}

void PowerManager::restart(std::uint64_t now_ns) {
  std::fill(state_ns_.begin(), state_ns_.end(), 0);
  state_since_ns_ = now_ns;
  transitions_ = 0;
}

std::vector<std::uint64_t> PowerManager::state_times_ns(std::uint64_t now_ns) {
  if (!state_ns_.empty()) {
    state_ns_[current_] += now_ns - state_since_ns_;
    state_since_ns_ = now_ns;
  }
  return state_ns_;
}

}  // namespace iojoule::sim::physical
