#include "live.hpp"

#include <algorithm>
#include <string>

#include "../error.hpp"
#include "../validate.hpp"
#include "device.hpp"
#include "power_states.hpp"
#include "run.hpp"

namespace iojoule::sim::physical {

Live::Live(const DeviceConfig& device, const Limits& limits)
    : config_(device), flows_{whole_drive(device)} {
  if (config_.mode != Mode::physical) {
    throw ConfigError("mode", "is compat, but a live drive needs physical");
  }
  validate(config_, flows_, limits, 0);
  check(config_, limits);
  device_ = std::make_unique<Device>(config_, flows_, limits, control_, 0);
  device_->serve(*this);
  // a host may ask for any of them
  const PowerOptions& power = config_.physical.power;
  for (std::uint32_t state = 0; state < power.states.size(); ++state) {
    if (power.states[state].operational) refill_watts(power, config_.physical.energy, state);
  }
}

Live::~Live() = default;

std::uint64_t Live::sectors() const { return device_->sectors(); }
std::uint64_t Live::next_event_ns() const { return device_->next_event_ns(); }
std::uint64_t Live::due_ns() const { return device_->due_ns(); }
std::uint64_t Live::now_ns() const { return device_->now_ns(); }
std::uint64_t Live::outstanding() const { return device_->outstanding(); }
bool Live::active() const { return device_->active(); }
std::uint32_t Live::power_state() const { return device_->power_state(); }
const DeviceResult& Live::counts() const { return device_->counts(); }

void Live::advance_to(std::uint64_t at_ns) { device_->advance(std::max(at_ns, now_ns())); }

void Live::submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors,
                  std::uint64_t cookie, std::uint64_t at_ns) {
  const bool flush = kind == RequestKind::flush;
  if (flush ? sectors != 0 : sectors == 0 || sector >= this->sectors() ||
                                 sectors > this->sectors() - sector) {
    throw ConfigError("sectors", "from " + std::to_string(sector) + ", " +
                                     std::to_string(sectors) + " of them, are not on a drive of " +
                                     std::to_string(this->sectors()));
  }
  advance_to(at_ns);
  const std::uint32_t index = device_->submit(kind, sector, sectors);
  if (index >= cookies_.size()) cookies_.resize(index + 1);
  cookies_[index] = cookie;
}

void Live::advance(std::uint64_t until_ns, std::vector<Done>& done) {
  advance_to(until_ns);
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

void Live::completed(std::uint32_t index, std::uint64_t done_ns) {
  done_.push_back({cookies_[index], done_ns});
}

void Live::set_power_state(std::uint32_t state, std::uint64_t at_ns) {
  if (state >= config_.physical.power.states.size()) {
    throw ConfigError("physical.power.states", "has no state " + std::to_string(state));
  }
  advance_to(at_ns);
  device_->set_power_state(state);
}

void Live::set_autonomous_transitions(const std::vector<PowerTransition>& moves,
                                      std::uint64_t at_ns) {
  const std::size_t states = config_.physical.power.states.size();
  for (const PowerTransition& move : moves) {
    if (move.from_state >= states || move.to_state >= states) {
      throw ConfigError("physical.power.autonomous_transitions",
                        "names a state that the table does not have");
    }
  }
  advance_to(at_ns);
  config_.physical.power.autonomous_transitions = moves;
  device_->transitions_changed();
}

void Live::set_write_cache(bool on) {
  flows_[0].caching = on ? CachingMode::write_cache : CachingMode::turned_off;
}

std::uint64_t Live::take_steps(std::vector<double>& joules) { return device_->take_steps(joules); }

}  // namespace iojoule::sim::physical
