#include "device.hpp"

#include "../watch.hpp"
#include "run.hpp"
#include "start_order.hpp"
#include "striping.hpp"

namespace iojoule::sim::compat {

namespace {

std::uint64_t expected_end(const std::vector<FlowConfig>& flows) {
  std::uint64_t end = 0;
  for (const FlowConfig& flow : flows) end = std::max(end, flow.stop_ns);
  return end;
}

// URGENT and HIGH, which are all that there is otherwise, are served in this order at any time.
bool classes_take_turns(const DeviceConfig& device, const std::vector<FlowConfig>& streams) {
  return device.scheduler == Scheduler::priority_out_of_order &&
         std::any_of(streams.begin(), streams.end(), [](const FlowConfig& stream) {
           return stream.priority == Priority::medium || stream.priority == Priority::low;
         });
}

// Of all flows.
std::uint64_t logical_pages(const Geometry& geometry, const DeviceConfig& device) {
  return static_cast<std::uint64_t>(static_cast<double>(geometry.physical_pages()) *
                                    (1 - device.overprovisioning_ratio)) + 1;
}

}  // namespace

Device::Device(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
               Control& control, std::uint64_t series_step_ns, bool with_queues)
    : config_(device),
      flow_configs_(flows),
      stream_configs_(streams_of(device, flows)),
      host_(device.host_interface == HostInterface::sata ? sata_host : nvme_host),
      geometry_(device),
      planes_per_chip_(device.dies_per_chip * device.planes_per_die),
      page_sectors_(geometry_.sectors_per_page),
      block_pages_(geometry_.pages_per_block),
      watch_(limits, control, expected_end(flows)),
      link_(device),
      dram_(device),
      blocks_(geometry_, logical_pages(geometry_, device), stream_configs_.size(), device.gc_policy == VictimPolicy::fifo),
      asking_counts_(classes_take_turns(device, stream_configs_)),
      queues_(geometry_.chips()),
      chips_(geometry_.chips()),
      channels_(geometry_.channels),
      channel_sets_(geometry_.channels / ChannelSet::channels + 1),
      bus_(device),
      array_(device) {
  make_streams();
  make_flows(limits, series_step_ns);
  make_caches();
  make_mapping();
  make_chips();
  if (with_queues) make_queue_meters();
  stopped_programs_.resize(geometry_.planes());
  erasures_.resize(geometry_.planes());
  sharers_.resize(geometry_.planes());
  for (const Stream& stream : streams_) {
    for (const std::uint32_t plane : stream.space.planes) ++sharers_[plane];
  }
  if (config_.preconditioning) precondition();
}

// What divisions would tell again for every page.
void Device::make_chips() {
  for (std::uint32_t i = 0; i < chips_.size(); ++i) {
    chips_[i].channel = i / geometry_.chips_per_channel;
    chips_[i].bit = std::uint64_t{1} << (i % geometry_.chips_per_channel);
    channels_[chips_[i].channel].idle_chips |= chips_[i].bit;
  }
  for (std::uint32_t plane = 0; plane < geometry_.planes(); ++plane) {
    const PlaneAddress at = geometry_.plane_address(plane);
    sites_.push_back({plane / planes_per_chip_, at.die, 1U << at.plane});
  }
}

// Each has a queue pair of its own.
void Device::make_streams() {
  std::vector<FlowSpace> spaces = flow_spaces(config_, geometry_, stream_configs_);
  streams_.resize(stream_configs_.size());
  queue_pairs_.resize(streams_.size());
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    stream.config = &stream_configs_[i];
    stream.space = std::move(spaces[i]);
    stream.stripe = Divisor(stream.space.planes.size());
    stream.first_read_planes = planes_of_first_reads(geometry_, *stream.config, config_.plane_allocation);
    stream.last_sector = host_.last_sector(*stream.config, stream.space);
    queue_pairs_[i].slots = config_.io_queue_depth - 1;
    queue_pairs_[i].fetch_limit = host_.fetch_limit(config_);
  }
}

void Device::make_flows(const Limits& limits, std::uint64_t series_step_ns) {
  std::vector<FlowSpace> spaces =
      flow_spaces(config_, geometry_, flows_as_laid_out(config_, flow_configs_));
  flows_.resize(flow_configs_.size());
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    flow.config = &flow_configs_[i];
    flow.stream = flow.queue = static_cast<std::uint8_t>(std::min(i, streams_.size() - 1));
    flow.space = std::move(spaces[i]);
    flow.series = FlowSeries(series_step_ns);
    if (flow.config->kind == FlowKind::synthetic) {
      flow.generator = std::make_unique<RequestGenerator>(*flow.config, flow.space);
    } else {
      flow.trace = read_trace(flow.config->trace_path, limits);
      flow.records_to_play = flow.config->trace_replays == 1
          ? flow.trace.size() * flow.config->trace_percent / 100
          : flow.trace.size() * flow.config->trace_replays;
    }
  }
}

void Device::make_caches() {
  const bool shared = config_.cache_sharing == Sharing::shared;
  const std::size_t shares = shared ? 1 : streams_.size();
  // also where several flows are one stream, which then gets one part of the cache
  const std::size_t parts = shared ? 1 : flows_.size();
  for (std::size_t i = 0; i < shares; ++i) {
    caches_.emplace_back(config_.cache_bytes / parts / config_.page_bytes);
  }
  written_lately_.resize(streams_.size());
  back_pressure_.resize(shares);
  waiting_writes_.resize(shares);
  dram_queues_.resize(shares);
  back_pressure_limit_ = geometry_.planes() * geometry_.sectors_per_page;
}

void Device::make_mapping() {
  const std::uint64_t physical = geometry_.physical_pages();
  const std::uint32_t sectors = geometry_.sectors_per_page;
  stored_entry_bytes_ = static_cast<std::uint32_t>(stored_entry_bytes(physical, sectors));
  entries_per_mapping_page_ = config_.page_bytes / stored_entry_bytes_;
  mapping_cache_entries_ = config_.cmt_bytes / cached_entry_bytes(physical, sectors);
  mapping_pages_.resize(streams_.size());
  // Where a stream does not begin at a page, its masks reach past the page's sectors (see segment), and
  // another stream can come to write them (see make_eviction).
  const bool begin_at_pages = std::all_of(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.space.first_sector % sectors == 0;
  });
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    stream.logical_pages = stream.space.sectors / sectors + 1;
    // A request may begin in the last page and reach past it.
    const std::uint32_t planes_of_a_page = stream.first_read_planes.empty() ? 1 : 2;  // see place_in
    tables_.emplace_back(stream.logical_pages + (1U << 16U) / sectors + 1,
                         planes_of_a_page * geometry_.pages_per_plane(),
                         begin_at_pages ? sectors : 2 * sectors - 1);
    barriers_.emplace_back();
    mapping_barriers_.emplace_back();
    // shared by the flows means a whole one for each of them in MQSim (mqsim.md, 1.2)
    const std::size_t shares = config_.cmt_sharing == Sharing::shared ? 1 : streams_.size();
    mapping_caches_.emplace_back(mapping_cache_entries_ / shares, tables_.back().size());
    const std::size_t pages = tables_.back().size() / entries_per_mapping_page_ + 1;
    mapping_pages_[i].pages.resize(pages);
    // An ideal table takes room on flash too. All pages but the last when that is not full of entries,
    // each logical page that is there in part counted: MQSim takes its entries for never written.
    std::uint64_t in_flows = 0;  // less than the stream has, where its planes cannot be divided evenly
    for (const Flow& flow : flows_) in_flows += flow.stream == i ? flow.space.sectors : 0;
    const std::uint64_t laid_out = (in_flows + sectors - 1) / sectors / entries_per_mapping_page_;
    for (std::uint32_t number = 0; number < laid_out; ++number) {
      place_mapping_program(static_cast<std::uint8_t>(i), number);
    }
  }
}

// The link is taken until the message has been received.
template <auto receive>
void Device::deliver(LinkQueue& link) {
  const Message message = link.messages.front();
  link.busy_ns += message.duration_ns;
  (this->*receive)(message);
  link.messages.pop_front();
  if (link.messages.empty()) {
    events_.take_single(link.direction);
  } else {
    begin_transfer(link, link.messages.front());
  }
}

RunResult Device::run() {
  for (const std::uint32_t index : start_order(geometry_, flow_configs_)) {
    Flow& flow = flows_[index];
    if (flow.config->kind == FlowKind::trace) {
      if (flow.records_to_play > 0) events_.schedule(flow.trace.front().arrival_ns, flow_arrival, index);
    } else if (flow.config->generator == Generator::bandwidth) {
      events_.schedule(flow.generator->next_interval_ns(), flow_arrival, index);
    } else {
      events_.schedule(1, flow_start, index);
    }
  }
  Event event;
  while (events_.next(event)) {
    watch_.tick(event.time_ns, events_.executed());
    const std::uint32_t subject = event_subject(event.what);
    switch (event_kind(event.what)) {
      case submission_doorbell: deliver<&Device::receive_submission_doorbell>(to_device_); break;
      case completion_doorbell: deliver<&Device::receive_completion_doorbell>(to_device_); break;
      case submission: deliver<&Device::receive_submission>(to_device_); break;
      case write_data: deliver<&Device::receive_write_data>(to_device_); break;
      case submission_fetch: deliver<&Device::receive_submission_fetch>(to_host_); break;
      case write_data_fetch: deliver<&Device::receive_write_data_fetch>(to_host_); break;
      case read_data: deliver<&Device::receive_read_data>(to_host_); break;
      case completion: deliver<&Device::receive_completion>(to_host_); break;
      case dram_done: events_.take_single(dram); finish_dram(); break;
      case bus_done: events_.take(); finish_bus(subject); break;
      case chip_done: events_.take(); finish_chip(subject); break;
      case flow_start: events_.take(); start_flow(subject); break;
      case flow_arrival: events_.take(); arrive(subject); break;
      case sata_submitted: events_.take(); finish_sata_submission(); break;
      default: events_.take(); finish_sata_completion(); break;
    }
  }
  return report();
}

// Means over what a stream's transactions took.
void Device::tell_transactions(const Stream& stream, FlowResult& out) {
  for (int direction = 0; direction < 2; ++direction) {
    const std::uint64_t count = stream.pages[direction];
    const auto mean = [count](std::uint64_t sum) {
      return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
    };
    out.transaction_turnaround_ns[direction] = mean(stream.turnaround_ns[direction]);
    out.transaction_execution_ns[direction] = mean(stream.execution_ns[direction]);
    out.transaction_transfer_ns[direction] = mean(stream.transfer_ns[direction]);
    out.transaction_waiting_ns[direction] = mean(stream.waiting_ns[direction]);
  }
}

RunResult Device::report() {
  RunResult result;
  counts_.sim_end_ns = events_.now_ns();
  counts_.events = events_.executed();
  for (const Chip& chip : chips_) {
    counts_.chip_exec_ns.push_back(chip.execution_ns);
    counts_.chip_transfer_ns.push_back(chip.transfer_ns);
  }
  for (const Channel& channel : channels_) counts_.channel_busy_ns.push_back(channel.busy_ns);
  counts_.dram_busy_ns = dram_busy_ns_;
  counts_.link_busy_ns[0] = to_device_.busy_ns;
  counts_.link_busy_ns[1] = to_host_.busy_ns;
  counts_.memory_bytes = held_bytes();
  report_queues();
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    FlowResult& out = flow.result;
    if (i < streams_.size()) tell_transactions(streams_[i], out);
    flow.latencies.summarise(out);
    out.series = flow.series.take(events_.now_ns());
    result.flows.push_back(std::move(out));
  }
  result.device = std::move(counts_);
  return result;
}

// Of the drive's tables: what is kept of its pages and blocks, its caches, and what is under way.
std::uint64_t Device::held_bytes() const {
  std::uint64_t held = blocks_.held_bytes() + requests_.held_bytes() + transactions_.held_bytes() +
                       sites_.capacity() * sizeof(PlaneSite) + queues_.capacity() * sizeof(ChipQueues) +
                       chips_.capacity() * sizeof(Chip) + channels_.capacity() * sizeof(Channel);
  for (const ChipQueues& queues : queues_) held += queues.held_bytes();
  for (const DataCache& cache : caches_) held += cache.held_bytes();
  for (const PageTable& table : tables_) held += table.held_bytes();
  for (const MappingCache& cache : mapping_caches_) held += cache.held_bytes();
  for (const MappingPages& pages : mapping_pages_) held += pages.held_bytes();
  for (const auto* maps : {&written_lately_, &barriers_, &mapping_barriers_}) {
    for (const FlatMap& map : *maps) held += map.bytes();
  }
  return held;
}

RunResult run(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
              Control& control, std::uint64_t series_step_ns, bool with_queues) {
  return Device(device, flows, limits, control, series_step_ns, with_queues).run();
}

}  // namespace iojoule::sim::compat
