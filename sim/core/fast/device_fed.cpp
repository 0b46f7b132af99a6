// The drive whose requests are fed in the order of arrival. A read costs no event unless its die or
// the firmware is busy, and its completion is known when its die begins it.
#include <algorithm>
#include <functional>

#include "../physical/consistency.hpp"
#include "../physical/device.hpp"

namespace iojoule::sim::physical {

namespace {
constexpr std::uint32_t prefetched_units_max = 127;
constexpr std::size_t completions_min = 64;
}

void Device::begin_feeding(CompletionSink& sink) {
  fed_ = &sink;
  context_.table.expect_much();
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
  if (submission_queues_[0].head == none && can_fetch()) [[likely]] {
    accept(index);
  } else {
    fetch_later(index);
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
    const Event event = context_.events.next();
    if (event_kind(event.what) == static_cast<std::uint32_t>(EventKind::sense_done)) [[likely]] {
      flash_.on_sense_done(event_subject(event.what));
    } else {
      handle(event);
    }
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
  if (known_completions_ == completion_ns_.size()) [[unlikely]] drop_past_completions();
  completion_ns_[known_completions_++] = done_ns;
  if (submission_queues_[0].head != none) [[unlikely]] {
    std::push_heap(completion_ns_.data(), completion_ns_.data() + known_completions_, std::greater<>());
    schedule_fetch();
  }
}

// Whether fewer commands are in flight than the drive fetches and the host's queue holds.
bool Device::can_fetch() {
  if (in_device_[0] + known_completions_ < in_flight_limit_) [[likely]] return true;
  drop_past_completions();
  return in_device_[0] + known_completions_ < in_flight_limit_;
}

// Called often enough that the array stays in the processor's cache. A heap drops its top instead.
void Device::drop_past_completions() {
  if (submission_queues_[0].head == none) {
    const auto past = [now_ns = context_.now_ns()](std::uint64_t at_ns) { return at_ns <= now_ns; };
    std::uint64_t* const first = completion_ns_.data();
    known_completions_ =
        static_cast<std::size_t>(std::remove_if(first, first + known_completions_, past) - first);
  }
  completion_ns_.resize(std::max(completions_min, 2 * known_completions_));
}

void Device::fetch_later(std::uint32_t index) {
  RequestQueue& queue = submission_queues_[0];
  if (queue.head == none) {
    std::make_heap(completion_ns_.data(), completion_ns_.data() + known_completions_, std::greater<>());
  }
  host_.push(queue, index);
  schedule_fetch();
}

// At the next completion that is known; later ones schedule it again.
void Device::schedule_fetch() {
  if (known_completions_ == 0 || completion_ns_[0] >= fetch_ns_) return;
  fetch_ns_ = completion_ns_[0];
  context_.schedule(std::max(fetch_ns_, context_.now_ns()), EventKind::fetch, 0);
}

void Device::on_fetch() {
  RequestQueue& queue = submission_queues_[0];
  fetch_ns_ = UINT64_MAX;
  while (queue.head != none) {
    while (known_completions_ > 0 && completion_ns_[0] <= context_.now_ns()) {
      std::pop_heap(completion_ns_.data(), completion_ns_.data() + known_completions_--,
                    std::greater<>());
    }
    if (in_device_[0] + known_completions_ >= in_flight_limit_) return schedule_fetch();
    accept(host_.pop(queue));
  }
}

EnergyResult Device::joules_until_now() {
  flash_.settle();
  context_.meter.settle(context_.now_ns());
  return context_.meter.joules();
}

RunResult Device::finish_feeding(const std::function<void(std::uint64_t)>& passing) {
  while (commands_ > 0 || submission_queues_[0].head != none || !finished()) {
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
