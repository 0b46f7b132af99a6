// What a run tells: plain numbers, per flow and for the whole drive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace iojoule::sim {

// All in ns; 0 for an absent class. Percentiles are nearest rank.
struct LatencySummary {
  std::uint64_t count = 0;
  double mean_ns = 0;
  std::uint64_t min_ns = 0, max_ns = 0;
  std::uint64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, p999_ns = 0, p9999_ns = 0;
  double percentile_relative_error = 0;  // 0: exact; else the histogram's bin width
};

// One step of a flow's time series: what completed in [i * step, (i + 1) * step).
struct FlowStep {
  std::uint64_t serviced_read = 0, serviced_write = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::uint64_t latency_sum_ns = 0, latency_max_ns = 0;
};

struct FlowResult {
  std::uint64_t generated = 0, generated_read = 0, generated_write = 0;
  std::uint64_t serviced = 0, serviced_read = 0, serviced_write = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::uint64_t first_arrival_ns = 0, last_completion_ns = 0;
  // device: submission queue to completion; end to end: arrival (intended start) to completion
  LatencySummary device, device_read, device_write;
  LatencySummary end_to_end, end_to_end_read, end_to_end_write;
  // Means over the flow's flash transactions, read then write. Compat mode: their times over the pages
  // of all requests, as MQSim has it (parts.hpp).
  double transaction_turnaround_ns[2] = {0, 0};
  double transaction_execution_ns[2] = {0, 0};
  double transaction_transfer_ns[2] = {0, 0};
  double transaction_waiting_ns[2] = {0, 0};
  std::vector<FlowStep> series;
  // physical mode; TRIMs are neither reads nor writes and part of generated and serviced
  std::uint64_t generated_trim = 0, serviced_trim = 0, bytes_trimmed = 0;
  std::uint64_t host_cpu_ns = 0;  // of all jobs
};

// Pages or blocks by who asked for them.
struct OriginCounts {
  std::uint64_t user = 0, gc = 0, mapping = 0;
  std::uint64_t total() const { return user + gc + mapping; }
};

// One transaction queue of one chip.
struct QueueResult {
  std::string name;       // e.g. "User_Read_TR_Queue"
  std::uint32_t channel = 0, chip = 0;
  std::int32_t priority = -1;  // -1: the queue has no classes
  std::uint64_t enqueued = 0, dequeued = 0, max_length = 0, max_waiting_ns = 0;
  double mean_length = 0, mean_waiting_ns = 0;
  double sd_length = 0;  // as MQSim has it, see compat/queue_meter.hpp
};

// Pages or blocks that the arrays worked on, and what that took, by operation (read, program,
// erase), page (LSB, CSB, MSB, pseudo-SLC) and origin (user, collection, mapping).
inline constexpr std::size_t flash_operations = 3, flash_pages = 4, flash_origins = 3;
struct FlashWork {
  std::array<std::uint64_t, flash_operations * flash_pages * flash_origins> counts = {};
  std::array<double, flash_operations * flash_pages * flash_origins> joules = {};
};

// Physical mode: joules by component, from the end of the warm-up to the end of the run.
struct EnergyResult {
  double array_read_joules = 0, array_program_joules = 0, array_erase_joules = 0;
  double channel_joules = 0, dram_joules = 0, controller_joules = 0, link_joules = 0;
  // the part of the last three that time alone took, whatever the drive did
  double controller_static_joules = 0, dram_static_joules = 0, link_static_joules = 0;
  FlashWork flash;
  double total_joules() const {
    return array_read_joules + array_program_joules + array_erase_joules + channel_joules +
           dram_joules + controller_joules + link_joules;
  }
};

// Physical mode: what only a drive that works has. Pages and blocks are also in the totals of
// DeviceResult.
struct PhysicalResult {
  std::uint64_t measured_from_ns = 0;  // end of the warm-up
  EnergyResult energy;
  std::uint64_t power_step_ns = 0;
  std::vector<double> power_watts;     // means over [measured_from_ns + i * step, ... + step)
  std::uint64_t commands = 0;          // after splitting at the drive's largest transfer
  std::uint64_t units_written = 0;     // mapping units programmed for the host
  std::uint64_t units_moved = 0;       // by garbage collection, wear levelling and folding
  std::uint32_t unit_bytes = 0;
  std::uint64_t slc_pages_read = 0, slc_pages_programmed = 0, slc_blocks_erased = 0;
  std::uint64_t slc_folds = 0;         // pseudo-SLC blocks emptied into native ones
  std::uint64_t program_suspends = 0, erase_suspends = 0;
  std::uint64_t fill_reads = 0;        // of units of which the host wrote a part
  std::uint64_t flushes = 0;
  std::uint64_t flush_wait_sum_ns = 0;
  std::uint64_t blocks_retired = 0;    // at the limit of their erase cycles
  std::uint32_t erase_count_min = 0, erase_count_max = 0;
  std::uint64_t throttled_ns = 0;      // time in which the power cap held dies back
  std::vector<std::uint64_t> power_state_ns;  // time in each state of the drive's table
  std::uint64_t power_transitions = 0;
};

struct DeviceResult {
  std::uint64_t sim_end_ns = 0, events = 0;
  OriginCounts pages_read, pages_programmed, blocks_erased;
  std::uint64_t cmd_read = 0, cmd_mp_read = 0, cmd_prog = 0, cmd_mp_prog = 0;
  std::uint64_t cmd_erase = 0, cmd_mp_erase = 0;
  std::uint64_t map_reads = 0, map_writes_queued = 0;
  std::uint64_t cmt_queries_read = 0, cmt_queries_write = 0, cmt_hits_read = 0, cmt_hits_write = 0;
  std::uint64_t cmt_misses_at_once = 0;  // compat mode: no mapping page had to be read for them
  std::uint64_t cache_hits_read = 0, cache_misses_read = 0, cache_hits_write = 0, cache_misses_write = 0;
  std::uint64_t evictions_fatal_to_mqsim = 0;  // see Device::must_be_programmed of compat mode
  std::uint64_t retries_by_address = 0;  // see Device::retry_stopped_programs of compat mode
  std::uint64_t gc_exec = 0, gc_page_moves = 0, wl_exec = 0;
  // busy time: one entry a chip (channel-major), a die, a channel; link: to device, to host
  std::vector<std::uint64_t> chip_exec_ns, chip_transfer_ns, die_busy_ns, channel_busy_ns;
  std::uint64_t dram_busy_ns = 0, link_busy_ns[2] = {0, 0};
  // Of the simulated drive's tables; compat mode: the part that is filled, physical mode: all of it.
  std::uint64_t memory_bytes = 0;
  std::vector<QueueResult> queues;  // compat mode, where they were asked for
  PhysicalResult physical;
};

struct RunResult {
  DeviceResult device;
  std::vector<FlowResult> flows;
  std::uint64_t series_step_ns = 0;  // 0: no time series was asked for
};

}  // namespace iojoule::sim
