#include "device.hpp"

#include "../watch.hpp"
#include "run.hpp"
#include "striping.hpp"

namespace iojoule::sim::compat {

namespace {

std::uint64_t expected_end(const std::vector<FlowConfig>& flows) {
  std::uint64_t end = 0;
  for (const FlowConfig& flow : flows) end = std::max(end, flow.stop_ns);
  return end;
}

}  // namespace

Device::Device(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
               Control& control, std::uint64_t series_step_ns, bool with_queues)
    : config_(device),
      flow_configs_(flows),
      geometry_(device),
      planes_per_chip_(device.dies_per_chip * device.planes_per_die),
      page_sectors_(geometry_.sectors_per_page),
      block_pages_(geometry_.pages_per_block),
      watch_(limits, control, expected_end(flows)),
      link_(device),
      dram_(device),
      blocks_(geometry_, flows.size(), device.gc_policy == VictimPolicy::fifo),
      queues_(geometry_.chips()),
      chips_(geometry_.chips()),
      channels_(geometry_.channels),
      bus_(device),
      array_(device) {
  to_device_.delivered = to_device_delivered;
  to_host_.delivered = to_host_delivered;
  make_flows(limits, series_step_ns);
  make_caches();
  make_mapping();
  make_chips();
  if (with_queues) make_queue_meters();
  stopped_programs_.resize(geometry_.planes());
  erasures_.resize(geometry_.planes());
  sharers_.resize(geometry_.planes());
  for (const Flow& flow : flows_) {
    for (const std::uint32_t plane : flow.space.planes) ++sharers_[plane];
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

void Device::make_flows(const Limits& limits, std::uint64_t series_step_ns) {
  std::vector<FlowSpace> spaces = flow_spaces(config_, geometry_, flow_configs_);
  flows_.resize(flow_configs_.size());
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    flow.config = &flow_configs_[i];
    flow.space = std::move(spaces[i]);
    flow.data_planes = striped_planes_or_dies(geometry_, flow_configs_[i], config_.plane_allocation);
    flow.stripe = Divisor(flow.data_planes.size());
    flow.last_sector = flow.space.first_sector + flow.space.sectors - 1;
    flow.queue_slots = config_.io_queue_depth - 1;
    flow.series = FlowSeries(series_step_ns);
    if (flow.config->kind == FlowKind::synthetic) {
      flow.last_sector = RequestGenerator::working_set_end(*flow.config, flow.space);
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
  const std::size_t shares = shared ? 1 : flows_.size();
  for (std::size_t i = 0; i < shares; ++i) {
    caches_.emplace_back(config_.cache_bytes / shares / config_.page_bytes);
  }
  written_lately_.resize(flows_.size());
  never_programmed_.resize(flows_.size());
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
  mapping_pages_.resize(flows_.size());
  // Where a flow does not begin at a page, its masks reach past the page's sectors (see segment), and
  // another flow can come to write them (see destage).
  const bool begin_at_pages = std::all_of(flows_.begin(), flows_.end(), [&](const Flow& flow) {
    return flow.space.first_sector % sectors == 0;
  });
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    flow.logical_pages = flow.space.sectors / sectors + 1;
    // A request may begin in the last page and reach past it.
    tables_.emplace_back(flow.logical_pages + (1U << 16U) / sectors + 1, geometry_.pages_per_plane(),
                         begin_at_pages ? sectors : 2 * sectors - 1);
    barriers_.emplace_back();
    mapping_barriers_.emplace_back();
    // shared by the flows means a whole one for each of them in MQSim (mqsim.md, 1.2)
    const std::size_t shares = config_.cmt_sharing == Sharing::shared ? 1 : flows_.size();
    mapping_caches_.emplace_back(mapping_cache_entries_ / shares, tables_.back().size());
    const std::size_t pages = tables_.back().size() / entries_per_mapping_page_ + 1;
    MappingPages& mapping = mapping_pages_[i];
    mapping.place.assign(pages, nothing);
    mapping.arriving.resize(pages);
    mapping.departing.resize(pages);
    // An ideal table takes room on flash too. All pages but the last when that is not full: MQSim
    // takes its entries for never written.
    const std::uint64_t laid_out = flow.space.sectors / sectors / entries_per_mapping_page_;
    for (std::uint32_t number = 0; number < laid_out; ++number) {
      place_mapping_program(static_cast<std::uint8_t>(i), number);
    }
  }
}

RunResult Device::run() {
  // MQSim starts its flows from the last to the first
  for (std::size_t i = flows_.size(); i-- > 0;) {
    Flow& flow = flows_[i];
    const auto index = static_cast<std::uint32_t>(i);
    if (flow.config->kind == FlowKind::trace) {
      if (flow.records_to_play > 0) events_.schedule(flow.trace.front().arrival_ns, flow_arrival, index);
    } else if (flow.config->generator == Generator::bandwidth) {
      events_.schedule(flow.generator->next_interval_ns(), flow_arrival, index);
    } else {
      events_.schedule(1, flow_start, index);
    }
  }
  while (!events_.empty()) {
    const Event event = events_.next();
    watch_.tick(event.time_ns, events_.executed());
    const std::uint32_t subject = event_subject(event.what);
    switch (event_kind(event.what)) {
      case flow_start: start_flow(subject); break;
      case flow_arrival: arrive(subject); break;
      case to_device_delivered: deliver(to_device_); break;
      case to_host_delivered: deliver(to_host_); break;
      case dram_done: finish_dram(); break;
      case bus_done: finish_bus(subject); break;
      default: finish_chip(subject); break;
    }
  }
  return report();
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
  for (Flow& flow : flows_) {
    FlowResult& out = flow.result;
    const auto mean = [&](std::uint64_t sum, int direction) {
      const std::uint64_t count = flow.pages[direction];
      return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
    };
    for (int direction = 0; direction < 2; ++direction) {
      out.transaction_turnaround_ns[direction] = mean(flow.turnaround_ns[direction], direction);
      out.transaction_execution_ns[direction] = mean(flow.execution_ns[direction], direction);
      out.transaction_transfer_ns[direction] = mean(flow.transfer_ns[direction], direction);
      out.transaction_waiting_ns[direction] = mean(flow.waiting_ns[direction], direction);
    }
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
