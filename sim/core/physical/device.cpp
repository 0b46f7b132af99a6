#include "device.hpp"

#include <algorithm>
#include <string>

#include "../error.hpp"
#include "consistency.hpp"
#include "precondition.hpp"

namespace iojoule::sim::physical {

namespace {

std::uint64_t expected_end_ns(const std::vector<FlowConfig>& flows) {
  std::uint64_t end = 0;
  for (const FlowConfig& flow : flows) end = std::max(end, flow.stop_ns);
  return end;
}

// Native command queueing of SATA has 32 tags.
std::uint32_t fetch_limit(const DeviceConfig& device) {
  return device.host_interface == HostInterface::sata ? std::min(device.queue_fetch_size, 32U)
                                                      : device.queue_fetch_size;
}

Limits within_clock(Limits limits) {
  limits.simulated_ns = std::min(limits.simulated_ns, clock_limit_ns);
  return limits;
}

}  // namespace

Device::Device(const DeviceConfig& device, const std::vector<FlowConfig>& flows,
               const Limits& limits, Control& control, std::uint64_t series_step_ns, bool ahead)
    : context_(device, flows),
      flash_(context_, *this, ahead),
      host_(context_, flows, limits, series_step_ns),
      watch_(within_clock(limits), control, expected_end_ns(flows)),
      energy_(device.physical.energy),
      series_step_ns_(series_step_ns),
      fetch_limit_(fetch_limit(device)),
      submission_queues_(flows.size()),
      in_device_(flows.size()),
      has_slc_(device.physical.slc.static_blocks_per_plane +
                   device.physical.slc.dynamic_blocks_per_plane >
               0),
      counts_commands_(context_.power.counts_commands()),
      in_flight_limit_(std::min(fetch_limit_, device.io_queue_depth)) {
  precondition(context_, flows, watch_);
}

void Device::schedule_settings() {
  if (context_.options.warmup_ns > 0) {
    context_.schedule(context_.options.warmup_ns, EventKind::warmup_end, 0);
  }
  const std::vector<PowerCommand>& commands = context_.options.power.commands;
  for (std::uint32_t i = 0; i < commands.size(); ++i) {
    context_.schedule(commands[i].time_ns, EventKind::power_command, i);
  }
  arm_power_timer();
}

RunResult Device::run() {
  schedule_settings();
  host_.start();
  after_event();
  while (!ended_) {
    if (context_.events.empty()) throw halted();
    const Event event = context_.events.next();
    watch_.tick(event.time_ns, context_.events.executed());
    handle(event);
    after_event();
  }
  if (context_.options.check_consistency) check_consistency(context_);
  return report();
}

ModelError Device::halted() const {
  const std::string under_way =
      std::to_string(std::max<std::uint64_t>(commands_, host_.outstanding())) + " requests under way";
  std::uint64_t retired = 0;
  for (std::uint32_t p = 0; p < context_.layout.planes; ++p) {
    retired += context_.blocks.retired_blocks(p);
  }
  if (retired > 0) {
    return ModelError("the drive is worn out with " + under_way + ": " + std::to_string(retired) +
                      " blocks have reached pe_cycles_limit; raise it or write less");
  }
  return ModelError("the drive came to a halt with " + under_way +
                    ": no block can be freed; raise overprovisioning_ratio or lower the flows' "
                    "working sets");
}

void Device::handle(const Event& event) {
  const std::uint32_t subject = event_subject(event.what);
  switch (static_cast<EventKind>(event_kind(event.what))) {
    case EventKind::generate: return host_.on_generate(subject);
    case EventKind::request_arrives: return request_arrives(subject);
    case EventKind::request_ready: return process(subject);
    case EventKind::data_arrives: return data_arrives(subject);
    case EventKind::request_done: return request_done(subject);
    case EventKind::sense_done: return flash_.on_sense_done(subject);
    case EventKind::page_out: return flash_.on_page_out(subject);
    case EventKind::program_done: return flash_.on_program_done(subject);
    case EventKind::erase_done: return flash_.on_erase_done(subject);
    case EventKind::begun: return flash_.on_begun(subject);
    case EventKind::suspended: return flash_.on_suspended(subject);
    case EventKind::left: return flash_.on_left(subject);
    case EventKind::command_over:
      return context_.power.set_commands(context_.now_ns(), split_commands_ -= subject);
    case EventKind::fetch: return on_fetch();
    case EventKind::partial_page: return flash_.on_partial_page(subject);
    case EventKind::power_reopens: return flash_.on_power_reopens();
    case EventKind::power_timer:
      power_timer_ns_ = UINT64_MAX;
      context_.power.on_timer(context_.now_ns());
      return arm_power_timer();
    case EventKind::power_command:
      context_.power.command(context_.now_ns(), context_.options.power.commands[subject].state);
      return arm_power_timer();
    case EventKind::fold_timer: return on_fold_timer();
    case EventKind::warmup_end: return begin_measuring();
    case EventKind::run_end: ended_ = true; return;
  }
}

void Device::after_event() {
  flash_.run_marked();
  if (context_.mapping_cache.write_back_wanted()) serve_write_backs();
  const bool ends = host_.done() && !draining_ && finished();
  note_activity();  // after that, since it may begin the last programs
  if (ends) {
    draining_ = true;
    context_.schedule(context_.now_ns() + context_.options.idle_tail_ns, EventKind::run_end, 0);
  }
}

bool Device::finished() {
  if (!context_.options.finish_background) return true;
  if (context_.cache.dirty() > 0) {
    flash_.force_all();
    flash_.run_marked();
    return false;
  }
  if (flash_.busy_dies() > 0 || flash_.background_work() || flash_.gated() ||
      context_.mapping_cache.write_back_wanted()) {
    return false;
  }
  return !context_.options.finish_folding || !has_slc_ || !flash_.foldable();
}

// The drive is active while it has commands or dies at work.
void Device::set_active(bool active) {
  active_ = active;
  if (active) {
    context_.power.begin_activity(context_.now_ns());
  } else {
    context_.power.end_activity(context_.now_ns());
    arm_power_timer();
  }
}

// Folding begins when the host has been idle for long enough.
void Device::arm_fold_timer() {
  if (!has_slc_ || fold_timer_) return;
  fold_timer_ = true;
  context_.schedule(std::max(context_.now_ns(),
                             command_idle_since_ns_ + context_.options.slc.fold_idle_ns),
                    EventKind::fold_timer, 0);
}

void Device::on_fold_timer() {
  fold_timer_ = false;
  if (commands_ > 0) return;
  if (context_.now_ns() < command_idle_since_ns_ + context_.options.slc.fold_idle_ns) {
    arm_fold_timer();
  } else {
    flash_.begin_folding();
  }
}

void Device::arm_power_timer() {
  const std::uint64_t wanted_ns = context_.power.timer_ns();
  if (wanted_ns == UINT64_MAX || wanted_ns >= power_timer_ns_) return;
  power_timer_ns_ = wanted_ns;
  context_.schedule(std::max(wanted_ns, context_.now_ns()), EventKind::power_timer, 0);
}

void Device::begin_measuring() {
  const std::uint64_t now_ns = context_.now_ns();
  context_.counts = DeviceResult{};
  context_.counts.physical.measured_from_ns = now_ns;
  context_.meter.restart(now_ns);
  context_.power.restart(now_ns);
  context_.link.forget_busy();
  context_.dram.forget_busy();
  flash_.forget_busy();
  host_.begin_measuring();
}

// --- commands --------------------------------------------------------------------------------------

std::uint64_t Device::commands_of(const HostRequest& request) const {
  const std::uint64_t largest = context_.options.controller.max_transfer_bytes;
  const std::uint64_t bytes = std::uint64_t{request.sectors} * sector_bytes;
  return largest == 0 || bytes <= largest ? 1 : (bytes + largest - 1) / largest;
}

void Device::request_arrives(std::uint32_t index) {
  const std::uint16_t flow = host_.request(index).flow;
  if (in_device_[flow] >= fetch_limit_) {
    host_.push(submission_queues_[flow], index);
  } else {
    accept(index);
  }
}

void Device::accept(std::uint32_t index) {
  const HostRequest& request = host_.request(index);
  const std::uint64_t now_ns = context_.now_ns();
  ++in_device_[request.flow];
  ++commands_;
  flash_.end_folding();
  note_activity();
  const std::uint64_t commands = commands_of(request);
  if (counts_commands_) [[unlikely]] {
    context_.power.set_commands(now_ns, split_commands_ += commands);
  }
  context_.counts.physical.commands += commands;
  const std::uint64_t entries = commands * submission_entry_bytes;
  context_.link.take_entries(to_ps(now_ns), entries);
  spend_link(entries, to_ps(now_ns));
  const double joules = energy_.controller_joules_per_command * static_cast<double>(commands);
  context_.power.charge(joules);
  context_.meter.spend(Component::controller, joules, now_ns, now_ns);
  const std::uint64_t ready_ns = context_.power.wake(now_ns);
  // The firmware takes the next command so much later.
  const std::uint64_t occupancy_ps =
      to_ps(context_.options.controller.command_occupancy_ns * commands);
  const std::uint64_t turn_ns =
      to_ns(firmware_.serve(to_ps(ready_ns), occupancy_ps) - occupancy_ps);
  if (turn_ns > now_ns) {
    context_.schedule(turn_ns, EventKind::request_ready, index);
  } else {
    process(index);
  }
}

void Device::process(std::uint32_t index) {
  HostRequest& request = host_.request(index);
  request.pending = 1;  // until all its parts are on their way
  request.data_end_ps = to_ps(context_.now_ns());
  const std::uint64_t bytes = std::uint64_t{request.sectors} * sector_bytes;
  switch (request.kind) {
    case RequestKind::read: return start_read(index);
    case RequestKind::trim: return start_trim(index);
    case RequestKind::flush: return start_flush(index);
    case RequestKind::write: break;
  }
  const std::uint64_t asked_ps = to_ps(context_.now_ns()) + context_.link.data_request_ps();
  const std::uint64_t there_ps = context_.link.to_device(asked_ps, bytes);
  spend_link(bytes, there_ps);
  context_.schedule(to_ns(there_ps), EventKind::data_arrives, index);
}

// One of the things a request waited for is done.
void Device::part_done(std::uint32_t index) {
  HostRequest& request = host_.request(index);
  if (--request.pending == 0) complete(index);
}

void Device::complete(std::uint32_t index) {
  const HostRequest& request = host_.request(index);
  const std::uint64_t now_ns = context_.now_ns();
  const std::uint64_t entries = commands_of(request) * completion_entry_bytes;
  const std::uint64_t left_ps = leave(std::max(request.data_end_ps, to_ps(now_ns)), entries);
  spend_link(entries, left_ps);
  std::uint64_t done_ns = to_ns(left_ps + context_.link.latency_ps());
  if (context_.device.host_interface == HostInterface::sata) {
    done_ns += context_.device.sata_processing_delay_ns;
  }
  if (request.kind != RequestKind::flush && request.kind != RequestKind::trim) {
    const double joules = energy_.controller_joules_per_byte *
                          static_cast<double>(std::uint64_t{request.sectors} * sector_bytes);
    context_.power.charge(joules);
    context_.meter.spend(Component::controller, joules, now_ns, now_ns);
  }
  if (fed_ != nullptr) return completed_ahead(index, done_ns);
  if (live_) [[unlikely]] arrivals_.push(done_ns);
  context_.schedule(done_ns, EventKind::request_done, index);
}

void Device::request_done(std::uint32_t index) {
  const std::uint16_t flow = host_.request(index).flow;
  --in_device_[flow];
  if (counts_commands_) [[unlikely]] {
    split_commands_ -= commands_of(host_.request(index));
    context_.power.set_commands(context_.now_ns(), split_commands_);
  }
  if (--commands_ == 0) {
    command_idle_since_ns_ = context_.now_ns();
    arm_fold_timer();
  }
  host_.on_request_done(index);
  RequestQueue& queue = submission_queues_[flow];
  if (queue.head != none && in_device_[flow] < fetch_limit_) accept(host_.pop(queue));
}

// --- energy of link and memory ---------------------------------------------------------------------

void Device::spend_on_wire(std::uint64_t wire_bytes, std::uint64_t until_ps) {
  const double joules = energy_.link_joules_per_byte * static_cast<double>(wire_bytes);
  context_.power.charge(joules);
  const std::uint64_t end_ns = to_ns(until_ps);
  context_.meter.spend(Component::link, joules, std::min(context_.now_ns(), end_ns), end_ns);
}

void Device::spend_on_dram(std::uint64_t bytes, std::uint64_t end_ps) {
  const double joules = energy_.dram_joules_per_byte * static_cast<double>(bytes);
  context_.power.charge(joules);
  context_.meter.spend(Component::dram, joules,
                       (end_ps - context_.dram.duration_ps(bytes)) / ps_per_ns, to_ns(end_ps));
}

// --- result ----------------------------------------------------------------------------------------

RunResult Device::report() {
  const std::uint64_t end_ns =
      std::max({context_.now_ns(), host_.busy_until_ns(), ahead_until_ns_});
  const std::uint64_t warmup_ns = context_.options.warmup_ns;
  if (end_ns < warmup_ns) {
    throw ConfigError("physical.warmup_ns",
                      "is " + std::to_string(warmup_ns) + " ns, but the run ends after " +
                          std::to_string(end_ns) + " ns, so that nothing is measured; shorten the "
                          "warm-up or lengthen the run");
  }
  flash_.settle();
  context_.meter.settle(end_ns);
  RunResult run;
  DeviceResult& device = run.device;
  device = context_.counts;
  device.sim_end_ns = end_ns;
  device.events = context_.events.executed();
  device.dram_busy_ns = context_.dram.busy_ns();
  device.link_busy_ns[0] = context_.link.busy_to_device_ns();
  device.link_busy_ns[1] = context_.link.busy_to_host_ns();
  flash_.report(device);
  device.memory_bytes = context_.memory_bytes();
  PhysicalResult& physical = device.physical;
  physical.unit_bytes = context_.layout.unit_bytes;
  physical.energy = context_.meter.joules();
  physical.power_step_ns = energy_.power_step_ns;
  physical.power_watts = context_.meter.series_watts(end_ns);
  physical.power_state_ns = context_.power.state_times_ns(end_ns);
  physical.power_transitions = context_.power.transitions();
  const std::uint32_t blocks = context_.layout.planes * context_.layout.blocks_per_plane;
  physical.erase_count_min = UINT32_MAX;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const std::uint32_t erases = context_.blocks.erases(b);
    physical.erase_count_min = std::min(physical.erase_count_min, erases);
    physical.erase_count_max = std::max(physical.erase_count_max, erases);
  }
  run.flows = host_.results(end_ns);
  run.series_step_ns = series_step_ns_;
  return run;
}

}  // namespace iojoule::sim::physical
