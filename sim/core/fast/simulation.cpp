#include "simulation.hpp"

#include <algorithm>
#include <string>

#include "../error.hpp"
#include "../physical/run.hpp"
#include "../validate.hpp"

namespace iojoule::sim::fast {

namespace {

// The tables that a request will need are fetched into the processor's cache so much sooner.
constexpr std::size_t entries_ahead = 16, contents_ahead = 8;
constexpr std::size_t intervals_max = std::size_t{1} << 22;

std::vector<FlowConfig> flows_of(const DeviceConfig& device, const Options& options) {
  FlowConfig flow = physical::whole_drive(device);
  flow.initial_occupancy_percent = options.occupancy_percent;
  flow.read_percent = 50;
  return {flow};
}

[[noreturn]] void refuse(const char* field, std::uint64_t number, const std::string& why) {
  throw ConfigError(field, "of request " + std::to_string(number) + " " + why);
}

}  // namespace

Simulation::Simulation(const DeviceConfig& device, const Options& options)
    : config_(device),
      flows_(flows_of(device, options)),
      interval_ns_(options.interval_ns),
      warmup_ns_(device.physical.warmup_ns),
      interval_end_ns_(options.interval_ns == 0 ? UINT64_MAX : options.interval_ns),
      latencies_{LatencyRecorder(0), LatencyRecorder(0)} {
  if (config_.mode != Mode::physical) {
    throw ConfigError("mode", "is compat, but the fast engine needs physical");
  }
  validate(config_, flows_, options.limits, 0);
  physical::check(config_, options.limits);
  device_ = std::make_unique<physical::Device>(config_, flows_, options.limits, control_, 0, true);
  sectors_ = device_->sectors();
  device_->begin_feeding(*this);
}

void Simulation::feed(const std::int64_t* arrival_ns, const std::int64_t* offset_bytes,
                      const std::int64_t* size_bytes, const std::uint8_t* is_write,
                      std::size_t count) {
  const auto drive_bytes = static_cast<std::int64_t>(bytes());
  if (finished_) throw ConfigError("feed", "comes after the result; make a new simulation");
  for (std::size_t i = 0; i < count; ++i) {
    const auto on_drive = [&](std::size_t n) {
      return n < count && offset_bytes[n] >= 0 && size_bytes[n] > 0 &&
             offset_bytes[n] < drive_bytes && size_bytes[n] <= drive_bytes - offset_bytes[n];
    };
    const auto sector_of = [&](std::size_t n) {
      return static_cast<std::uint64_t>(offset_bytes[n]) / sector_bytes;
    };
    const auto sectors_of = [&](std::size_t n) {
      return std::max(std::uint64_t{1}, static_cast<std::uint64_t>(size_bytes[n]) / sector_bytes);
    };
    if (const std::size_t n = i + entries_ahead; on_drive(n)) {
      device_->prefetch_entries(sector_of(n), sectors_of(n));
    }
    if (const std::size_t n = i + contents_ahead; on_drive(n) && is_write[n] != 0) {
      device_->prefetch_contents(sector_of(n), sectors_of(n));
    }
    const auto at_ns = static_cast<std::uint64_t>(arrival_ns[i]);
    const auto offset = static_cast<std::uint64_t>(offset_bytes[i]);
    const auto size = static_cast<std::uint64_t>(size_bytes[i]);
    if (arrival_ns[i] < 0) refuse("arrival_ns", fed_, "is below 0");
    if (at_ns > physical::clock_limit_ns) {
      refuse("arrival_ns", fed_, "is more than 100 days after the start, the longest run; take a part of it");
    }
    if (at_ns < last_ns_) refuse("arrival_ns", fed_, "is before that of the request before it");
    if (size_bytes[i] <= 0) refuse("size_bytes", fed_, "is not above 0");
    const std::uint64_t first = offset / sector_bytes;
    const std::uint64_t end = (offset + size + sector_bytes - 1) / sector_bytes;
    if (offset_bytes[i] < 0 || end > sectors_ || first >= end) {
      refuse("offset_bytes", fed_, "is not on the drive of " + std::to_string(bytes()) + " bytes");
    }
    if (end - first > UINT32_MAX) refuse("size_bytes", fed_, "is above 2 TiB");
    if (at_ns >= interval_end_ns_) close_intervals(at_ns);
    last_ns_ = at_ns;
    const bool writes = is_write[i] != 0;
    const std::uint64_t moved = (end - first) * sector_bytes;
    if (interval_ns_ > 0) {
      ++(writes ? interval_.writes : interval_.reads);
      (writes ? interval_.bytes_written : interval_.bytes_read) += moved;
    }
    device_->feed(writes ? physical::RequestKind::write : physical::RequestKind::read, first,
                  static_cast<std::uint32_t>(end - first), at_ns);
    ++fed_;
  }
}

void Simulation::completed(std::uint32_t index, std::uint64_t done_ns) {
  const physical::HostRequest& request = device_->request(index);
  const std::uint64_t latency_ns = done_ns - request.intended_ns;
  if (interval_ns_ > 0) {
    interval_latency_sum_ns_ += static_cast<double>(latency_ns);
    ++interval_completed_;
    interval_latencies_.record(latency_ns);
  }
  if (request.intended_ns < warmup_ns_) return;
  const std::uint64_t moved = std::uint64_t{request.sectors} * sector_bytes;
  flow_.last_completion_ns = std::max(flow_.last_completion_ns, done_ns);
  if (flow_.serviced++ == 0) flow_.first_arrival_ns = request.intended_ns;
  if (request.kind == physical::RequestKind::write) {
    ++flow_.serviced_write;
    flow_.bytes_written += moved;
    latencies_[1].record(latency_ns);
  } else {
    ++flow_.serviced_read;
    flow_.bytes_read += moved;
    latencies_[0].record(latency_ns);
  }
}

void Simulation::close_intervals(std::uint64_t until_ns) {
  while (interval_end_ns_ <= until_ns) {
    device_->advance_fed(interval_end_ns_);
    close_interval();
    interval_end_ns_ += interval_ns_;
  }
}

void Simulation::close_interval() {
  if (intervals_.size() >= intervals_max) {
    throw ConfigError("interval_seconds", "gives more than " + std::to_string(intervals_max) +
                                              " intervals; choose longer ones");
  }
  const double joules = device_->joules_until_now().total_joules();
  const DeviceResult& counts = device_->counts();
  const Seen now{joules, counts.physical.slc_pages_programmed, counts.pages_programmed.total(),
                 counts.physical.units_moved};
  // The end of the warm-up sets all counts back.
  const auto since = [](auto later, auto sooner) { return later >= sooner ? later - sooner : later; };
  interval_.joules = since(now.joules, seen_.joules);
  interval_.slc_pages_programmed = since(now.slc_pages_programmed, seen_.slc_pages_programmed);
  interval_.pages_programmed = since(now.pages_programmed, seen_.pages_programmed);
  interval_.units_moved = since(now.units_moved, seen_.units_moved);
  if (interval_completed_ > 0) {
    interval_.latency_mean_ns = interval_latency_sum_ns_ / static_cast<double>(interval_completed_);
    const std::uint64_t rank = (interval_completed_ - 1) / 100 * 99 +
                               ((interval_completed_ - 1) % 100 * 99 + 50) / 100 + 1;
    interval_.latency_p99_ns = interval_latencies_.at_rank(rank);
  }
  intervals_.push_back(interval_);
  interval_ = {};
  seen_ = now;
  if (interval_completed_ > 0) interval_latencies_.clear();
  interval_latency_sum_ns_ = 0;
  interval_completed_ = 0;
}

const RunResult& Simulation::finish() {
  if (finished_) return result_;
  finished_ = true;
  result_ = device_->finish_feeding([this](std::uint64_t at_ns) {
    if (at_ns >= interval_end_ns_) close_intervals(at_ns);
  });
  if (interval_ns_ > 0) {
    const std::uint64_t end_ns = result_.device.sim_end_ns;
    close_intervals(end_ns);
    if (end_ns > interval_end_ns_ - interval_ns_ || intervals_.empty()) close_interval();
  }
  flow_.generated = flow_.serviced;
  flow_.generated_read = flow_.serviced_read;
  flow_.generated_write = flow_.serviced_write;
  flow_.device_read = flow_.end_to_end_read = latencies_[0].summary();
  flow_.device_write = flow_.end_to_end_write = latencies_[1].summary();
  latencies_[0].merge(latencies_[1]);
  flow_.device = flow_.end_to_end = latencies_[0].summary();
  FlowResult& of_host = result_.flows.at(0);
  for (int i = 0; i < 2; ++i) {
    flow_.transaction_turnaround_ns[i] = of_host.transaction_turnaround_ns[i];
    flow_.transaction_execution_ns[i] = of_host.transaction_execution_ns[i];
    flow_.transaction_transfer_ns[i] = of_host.transaction_transfer_ns[i];
    flow_.transaction_waiting_ns[i] = of_host.transaction_waiting_ns[i];
  }
  of_host = flow_;
  return result_;
}

}  // namespace iojoule::sim::fast
