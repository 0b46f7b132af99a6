// The fast engine for traces: requests in the order of arrival, in batches, in bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../config.hpp"
#include "../control.hpp"
#include "../result.hpp"
#include "../statistics.hpp"
#include "../physical/device.hpp"

namespace iojoule::sim::fast {

// What came and what was spent in one interval. Requests count where they arrive.
struct Interval {
  double joules = 0;
  std::uint64_t reads = 0, writes = 0, bytes_read = 0, bytes_written = 0;
  double latency_mean_ns = 0;
  std::uint64_t latency_p99_ns = 0;
  // pages and mapping units, as in DeviceResult
  std::uint64_t slc_pages_programmed = 0, pages_programmed = 0, units_moved = 0;
};

struct Options {
  std::uint32_t occupancy_percent = 0;  // written before the first request, where the drive says so
  std::uint64_t interval_ns = 0;        // 0: no intervals
  Limits limits;
};

class Simulation final : private physical::CompletionSink {
 public:
  // A percentile of an interval is so near.
  static constexpr int interval_bits = 7;

  // Throws ConfigError or LimitError where a run of the event engine would.
  Simulation(const DeviceConfig& device, const Options& options);

  // Requests that arrive after all those before. Throws ConfigError for one that is out of order,
  // empty or not on the drive, with its number from 0; ModelError when the drive can do no more.
  void feed(const std::int64_t* arrival_ns, const std::int64_t* offset_bytes,
            const std::int64_t* size_bytes, const std::uint8_t* is_write, std::size_t count);

  // Lets the drive come to rest. Nothing can be fed after it.
  const RunResult& finish();

  std::uint64_t bytes() const { return sectors_ * sector_bytes; }
  std::uint64_t fed() const { return fed_; }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  struct Seen {
    double joules = 0;
    std::uint64_t slc_pages_programmed = 0, pages_programmed = 0, units_moved = 0;
  };

  void completed(std::uint32_t index, std::uint64_t done_ns) override;
  void close_intervals(std::uint64_t until_ns);
  void close_interval();

  DeviceConfig config_;
  std::vector<FlowConfig> flows_;
  Control control_;
  std::unique_ptr<physical::Device> device_;
  std::uint64_t sectors_ = 0, fed_ = 0, last_ns_ = 0;
  const std::uint64_t interval_ns_, warmup_ns_;
  std::uint64_t interval_end_ns_;
  std::array<LatencyRecorder, 2> latencies_;  // reads, writes
  FlowResult flow_;
  Interval interval_;
  double interval_latency_sum_ns_ = 0;
  std::uint64_t interval_completed_ = 0;
  LogLinearBins<interval_bits> interval_latencies_;
  Seen seen_;
  std::vector<Interval> intervals_;
  bool finished_ = false;
  RunResult result_;
};

}  // namespace iojoule::sim::fast
