// The drive whose requests are fed in the order of arrival. A read costs no event unless its die or
// the firmware is busy, and its completion is known when its die begins it.
#include <algorithm>

#include "../physical/consistency.hpp"
#include "../physical/device.hpp"

namespace iojoule::sim::physical {

namespace {
constexpr std::uint32_t prefetched_units_max = 127;
}

void Device::begin_feeding(CompletionSink& sink) {
  fed_ = &sink;
  schedule_settings();
  after_event();
}

void Device::feed(RequestKind kind, std::uint64_t sector, std::uint32_t sectors,
                  std::uint64_t at_ns) {
  const std::uint64_t arrives_ns = at_ns + host_.submission_ns();
  if (context_.events.next_time_ns() <= arrives_ns || (active_ && idle_but_ahead())) {
    advance_fed(arrives_ns);
  }
  context_.events.pass(arrives_ns);
  accept(host_.make_from_outside(kind, sector, sectors, at_ns));
  flash_.run_marked();
  if (context_.mapping_cache.write_back_wanted()) serve_write_backs();
}

void Device::prefetch_entries(std::uint64_t sector, std::uint64_t sectors) const {
  const std::uint32_t first = context_.layout.unit_of_sector(sector);
  const std::uint32_t last = context_.layout.unit_of_sector(sector + sectors - 1);
  context_.table.prefetch(first);
  context_.table.prefetch(last);
}

void Device::prefetch_contents(std::uint64_t sector, std::uint64_t sectors) const {
  const std::uint32_t first = context_.layout.unit_of_sector(sector);
  const std::uint32_t last = context_.layout.unit_of_sector(sector + sectors - 1);
  context_.table.prefetch_contents(first, std::min(last, first + prefetched_units_max));
}

void Device::advance_fed(std::uint64_t until_ns) {
  while (true) {
    const std::uint64_t event_ns = context_.events.next_time_ns();
    // The drive falls idle when the last request that was completed ahead is over.
    if (active_ && idle_but_ahead() && ahead_until_ns_ <= std::min(event_ns, until_ns)) {
      context_.events.pass(ahead_until_ns_);
      note_activity();
      continue;
    }
    if (event_ns > until_ns) break;
    handle(context_.events.next());
    after_event();
  }
  context_.events.pass(until_ns);
}

void Device::completed_ahead(std::uint32_t index, std::uint64_t done_ns) {
  const HostRequest& request = host_.request(index);
  ahead_until_ns_ = std::max(ahead_until_ns_, done_ns);
  if (counts_commands_) {
    context_.schedule(done_ns, EventKind::command_over,
                      static_cast<std::uint32_t>(commands_of(request)));
  }
  --in_device_[request.flow];
  --commands_;
  command_idle_since_ns_ = ahead_until_ns_;
  arm_fold_timer();
  fed_->completed(index, done_ns);
  host_.free(index);
}

EnergyResult Device::joules_until_now() {
  flash_.settle();
  context_.meter.settle(context_.now_ns());
  return context_.meter.joules();
}

RunResult Device::finish_feeding() {
  while (commands_ > 0 || !finished()) {
    if (context_.events.empty()) throw halted();
    handle(context_.events.next());
    after_event();
  }
  advance_fed(std::max(ahead_until_ns_, context_.now_ns()) + context_.options.idle_tail_ns);
  if (context_.options.check_consistency) check_consistency(context_);
  return report();
}

}  // namespace iojoule::sim::physical
