// The drive whose requests are fed in the order of arrival. A read costs no event unless its die or
// the firmware is busy, and its completion is known when its die begins it.
#include <algorithm>
#include <functional>

#include "../physical/consistency.hpp"
#include "../physical/device.hpp"

namespace iojoule::sim::physical {

namespace {
constexpr std::uint32_t prefetched_units_max = 127;
constexpr std::size_t over_few = 64;
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
  const std::uint32_t index = host_.make_from_outside(kind, sector, sectors, at_ns);
  if (!others_wait_ && (in_device_[0] + over_ < places_ || place_free())) [[likely]] {
    accept(index);
  } else {
    wait_for_place(index);
  }
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
  if (over_ == over_ns_.size()) [[unlikely]] forget_over();
  over_ns_[over_++] = done_ns;
  if (others_wait_) [[unlikely]] {
    std::push_heap(over_ns_.data(), over_ns_.data() + over_, std::greater<>());
    await_place();
  }
}

// Often enough that those that are not over yet stay in the processor's cache.
void Device::forget_over() {
  if (!others_wait_) {
    const auto is_over = [now_ns = context_.now_ns()](std::uint64_t at_ns) { return at_ns <= now_ns; };
    over_ = static_cast<std::size_t>(
        std::remove_if(over_ns_.data(), over_ns_.data() + over_, is_over) - over_ns_.data());
  }
  over_ns_.resize(std::max(over_few, 2 * over_));
}

// Whether the drive takes another command after all.
bool Device::place_free() {
  forget_over();
  return in_device_[0] + over_ < places_;
}

void Device::wait_for_place(std::uint32_t index) {
  if (!others_wait_) std::make_heap(over_ns_.data(), over_ns_.data() + over_, std::greater<>());
  others_wait_ = true;
  host_.push(submission_queues_[0], index);
  await_place();
}

// The first of those completed ahead that is over lets the next in.
void Device::await_place() {
  if (over_ == 0 || over_ns_[0] >= place_free_ns_) return;
  place_free_ns_ = over_ns_[0];
  context_.schedule(std::max(place_free_ns_, context_.now_ns()), EventKind::place_free, 0);
}

void Device::on_place_free() {
  place_free_ns_ = UINT64_MAX;
  while (others_wait_) {
    while (over_ > 0 && over_ns_[0] <= context_.now_ns()) {
      std::pop_heap(over_ns_.data(), over_ns_.data() + over_--, std::greater<>());
    }
    if (in_device_[0] + over_ >= places_) return await_place();
    const std::uint32_t index = host_.pop(submission_queues_[0]);
    others_wait_ = submission_queues_[0].head != none;
    accept(index);
  }
}

EnergyResult Device::joules_until_now() {
  flash_.settle();
  context_.meter.settle(context_.now_ns());
  return context_.meter.joules();
}

RunResult Device::finish_feeding(const std::function<void(std::uint64_t)>& passing) {
  while (commands_ > 0 || others_wait_ || !finished()) {
    if (context_.events.empty()) throw halted();
    passing(context_.events.next_time_ns());
    handle(context_.events.next());
    after_event();
  }
  const std::uint64_t end_ns =
      std::max(ahead_until_ns_, context_.now_ns()) + context_.options.idle_tail_ns;
  passing(end_ns);
  advance_fed(end_ns);
  if (context_.options.check_consistency) check_consistency(context_);
  return report();
}

}  // namespace iojoule::sim::physical
