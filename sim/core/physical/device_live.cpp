// The drive whose requests come from outside, one by one, as time goes on.
#include "../error.hpp"
#include "device.hpp"

namespace iojoule::sim::physical {

void Device::serve(CompletionSink& sink) {
  host_.serve(sink);
  arm_power_timer();
  after_event();
}

void Device::advance(std::uint64_t until_ns) {
  while (context_.events.next_time_ns() <= until_ns) {
    handle(context_.events.next());
    after_event();
  }
  context_.events.pass(until_ns);
  if (context_.events.empty() && host_.outstanding() > 0) throw halted();
}

std::uint32_t Device::submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors) {
  return host_.submit_from_outside(kind, sector, sectors);
}

void Device::set_power_state(std::uint32_t state) {
  context_.power.command(context_.now_ns(), state);
  arm_power_timer();
  after_event();
}

void Device::transitions_changed() {
  context_.power.transitions_changed(context_.now_ns());
  arm_power_timer();
}

std::uint64_t Device::take_steps(std::vector<double>& joules) {
  flash_.settle();
  context_.meter.settle(context_.now_ns());
  return context_.meter.take_steps(context_.now_ns(), joules);
}

}  // namespace iojoule::sim::physical
