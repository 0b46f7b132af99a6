#include "simulated.hpp"

namespace iojoule::lab {

namespace {

sim::DeviceConfig with_step(sim::DeviceConfig device, std::uint64_t step_ns) {
  device.physical.energy.power_step_ns = step_ns;
  return device;
}

}  // namespace

Simulated::Simulated(const sim::DeviceConfig& device, std::uint64_t step_ns)
    : config_(with_step(device, step_ns)),
      live_(std::make_unique<sim::physical::Live>(config_)),
      operational_(config_.physical.power.initial_state) {}

std::uint32_t Simulated::blocks() const {
  return config_.channels * config_.chips_per_channel * config_.dies_per_chip *
         config_.planes_per_die * config_.blocks_per_plane;
}

void Simulated::submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors,
                       std::uint64_t cookie, std::uint64_t at_ns) {
  live_->submit(kind, sector, sectors, cookie, at_ns);
}

void Simulated::advance(std::uint64_t until_ns, std::vector<Done>& done) {
  live_->advance(until_ns, done_);
  for (const auto& each : done_) done.push_back({each.cookie, each.done_ns});
  done_.clear();
}

void Simulated::set_power_state(std::uint32_t state, std::uint64_t at_ns) {
  live_->set_power_state(state, at_ns);
  if (config_.physical.power.states[state].operational) operational_ = state;
}

void Simulated::set_transitions(const std::vector<sim::PowerTransition>& moves,
                                std::uint64_t at_ns) {
  live_->set_autonomous_transitions(moves, at_ns);
  config_.physical.power.autonomous_transitions = moves;
}

void Simulated::set_write_cache(bool on) {
  write_cache_ = on;
  live_->set_write_cache(on);
}

Model::Work Simulated::work() const {
  const sim::DeviceResult& counts = live_->counts();
  return {counts.pages_programmed.total(), counts.blocks_erased.total(),
          counts.physical.throttled_ns};
}

void Simulated::format() {
  config_.physical.power.initial_state = operational_;
  live_ = std::make_unique<sim::physical::Live>(config_);
  live_->set_write_cache(write_cache_);
}

}  // namespace iojoule::lab
