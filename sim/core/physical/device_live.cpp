// The drive whose requests come from outside, one by one, as time goes on.
#include <algorithm>

#include "../error.hpp"
#include "device.hpp"

namespace iojoule::sim::physical {

void Device::serve(CompletionSink& sink) {
  live_ = true;
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

// A completion needs its way over the link, so what leads to one may be looked at so much later.
std::uint64_t Device::due_ns() {
  while (!arrivals_.empty() && arrivals_.top() <= context_.now_ns()) arrivals_.pop();
  const std::uint64_t arrives_ns = arrivals_.empty() ? UINT64_MAX : arrivals_.top();
  const std::uint64_t next_ns = context_.events.next_time_ns();
  const std::uint64_t way_ns = context_.options.link.latency_ns;
  return std::min(arrives_ns, next_ns < UINT64_MAX - way_ns ? next_ns + way_ns : UINT64_MAX);
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
