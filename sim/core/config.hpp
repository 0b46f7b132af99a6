// What a run is told: the drive, the flows and the limits, in SI units with the unit in the name.
// Field for field the same names as iojoule.sim.device.DeviceConfig and iojoule.sim.workload.FlowConfig.
// Ranges that depend on other fields or on the mode are in validate.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "physical/options.hpp"
#include "record.hpp"

namespace iojoule::sim {

// compat: MQSim to the nanosecond, quirks included; physical: a drive that works, with energy.
enum class Mode : std::uint8_t { compat, physical };
enum class HostInterface : std::uint8_t { nvme, sata };
enum class CacheMechanism : std::uint8_t { simple, advanced };
enum class Sharing : std::uint8_t { shared, equal_partitioning };
enum class Mapping : std::uint8_t { page_level, hybrid };
enum class Scheduler : std::uint8_t { out_of_order, priority_out_of_order, flin };
enum class VictimPolicy : std::uint8_t { greedy, rga, random, random_p, random_pp, fifo };
enum class FlashTechnology : std::uint8_t { slc, mlc, tlc };
enum class Suspension : std::uint8_t { none, erase, program, program_erase };
enum class Priority : std::uint8_t { urgent, high, medium, low };
enum class CachingMode : std::uint8_t { turned_off, write_cache, read_cache, write_read_cache };
enum class FlowKind : std::uint8_t { synthetic, trace };
enum class Generator : std::uint8_t { bandwidth, queue_depth };
enum class AddressDistribution : std::uint8_t { streaming, random_uniform, random_hotcold };
enum class SizeDistribution : std::uint8_t { fixed, normal };

// One physical page holds pages of one kind: lower, centre or upper bit of its cells.
inline constexpr std::size_t page_kinds = 3;  // LSB, CSB, MSB

using NanosecondsByPage = std::array<std::uint64_t, page_kinds>;
using Ids = std::vector<std::uint32_t>;

#define DEVICE_CONFIG(FIELD) \
  FIELD(Mode, mode, any, Mode::compat) \
  /* host link */ \
  FIELD(double, link_lane_gigabytes_per_second, within(1e-6, 1000.0, "a lane moves data, and PCIe 7.0 moves 16 GB/s a lane"), 0.4) \
  FIELD(std::uint32_t, link_lanes, within(1U, 1024U, "PCIe links have 1 to 32 lanes"), 4) \
  FIELD(std::uint64_t, sata_processing_delay_ns, step, 400000) \
  /* front end */ \
  FIELD(std::int64_t, seed, seed_range, 123) \
  FIELD(bool, preconditioning, any, true) \
  FIELD(HostInterface, host_interface, any, HostInterface::nvme) \
  FIELD(std::uint32_t, io_queue_depth, within(2U, 65535U, "a queue holds one entry less than its size, and NVMe counts them in 16 bits"), 1024) \
  FIELD(std::uint32_t, queue_fetch_size, within(1U, 65535U, "the drive must take commands, and no more than a queue has"), 512) \
  /* data cache */ \
  FIELD(CacheMechanism, cache_mechanism, any, CacheMechanism::advanced) \
  FIELD(Sharing, cache_sharing, any, Sharing::shared) \
  FIELD(std::uint64_t, cache_bytes, within(0ULL, 1ULL << 40U, "a drive holds at most 1 TiB of DRAM"), 512ULL << 20) \
  FIELD(std::uint32_t, dram_row_bytes, within(1U, 1U << 30U, "a row holds something"), 8192) \
  FIELD(std::uint32_t, dram_megatransfers_per_second, within(1U, 1'000'000U, "DRAM runs at some 8000 MT/s"), 800) \
  FIELD(std::uint32_t, dram_burst_bytes, within(1U, 1U << 30U, "a burst moves something"), 4) \
  FIELD(std::uint64_t, dram_trcd_ns, step, 13) \
  FIELD(std::uint64_t, dram_tcl_ns, step, 13) \
  FIELD(std::uint64_t, dram_trp_ns, step, 13) \
  /* address mapping */ \
  FIELD(Mapping, mapping, any, Mapping::page_level) \
  FIELD(bool, mapping_ideal, any, false) \
  FIELD(std::uint64_t, cmt_bytes, within(0ULL, 1ULL << 40U, "a drive holds at most 1 TiB of DRAM"), 2ULL << 20) \
  FIELD(Sharing, cmt_sharing, any, Sharing::shared) \
  /* the first letter varies fastest */ \
  FIELD(std::string, plane_allocation, any, "CWDP") \
  /* back end */ \
  FIELD(Scheduler, scheduler, any, Scheduler::out_of_order) \
  FIELD(double, overprovisioning_ratio, within(0.0, 0.95, "some of the flash must be left for data"), 0.07) \
  FIELD(double, gc_threshold, fraction, 0.05) \
  FIELD(VictimPolicy, gc_policy, any, VictimPolicy::rga) \
  FIELD(bool, gc_copyback, any, false) \
  FIELD(bool, gc_preemptible, any, true) \
  FIELD(double, gc_hard_threshold, fraction, 0.005) \
  FIELD(bool, wear_levelling_dynamic, any, true) \
  FIELD(bool, wear_levelling_static, any, true) \
  FIELD(std::uint32_t, wear_levelling_threshold, any, 100) \
  FIELD(std::uint64_t, suspend_erase_for_read_ns, step, 700000) \
  FIELD(std::uint64_t, suspend_erase_for_write_ns, step, 700000) \
  FIELD(std::uint64_t, suspend_program_for_read_ns, step, 100000) \
  /* flash */ \
  FIELD(std::uint32_t, channels, within(1U, 1024U, "drives have up to some dozen channels"), 8) \
  FIELD(std::uint32_t, channel_width_bytes, within(1U, 64U, "flash interfaces are one or two bytes wide"), 1) \
  FIELD(std::uint32_t, channel_megatransfers_per_second, within(1U, 100'000U, "flash interfaces run at up to some 4800 MT/s"), 333) \
  FIELD(std::uint32_t, chips_per_channel, within(1U, 64U, "a channel holds up to some dozen chips"), 4) \
  FIELD(FlashTechnology, flash_technology, any, FlashTechnology::mlc) \
  FIELD(Suspension, suspension, any, Suspension::erase) \
  FIELD(NanosecondsByPage, page_read_ns, step, {75000, 75000, 75000}) \
  FIELD(NanosecondsByPage, page_program_ns, step, {750000, 750000, 750000}) \
  FIELD(std::uint64_t, block_erase_ns, step, 3800000) \
  FIELD(std::uint32_t, pe_cycles_limit, within(1U, UINT32_MAX, "flash wears out"), 10000) \
  FIELD(std::uint64_t, suspend_erase_ns, step, 700000) \
  FIELD(std::uint64_t, suspend_program_ns, step, 100000) \
  FIELD(std::uint32_t, dies_per_chip, within(1U, 64U, "a package stacks some 32 dies"), 2) \
  FIELD(std::uint32_t, planes_per_die, any, 2) \
  FIELD(std::uint32_t, blocks_per_plane, within(1U, 1U << 20U, "planes have some 1000"), 2048) \
  FIELD(std::uint32_t, pages_per_block, within(1U, 1U << 16U, "blocks have some 1000"), 256) \
  FIELD(std::uint32_t, page_bytes, any, 8192) \
  FIELD(std::uint32_t, page_metadata_bytes, within(0U, 1U << 16U, "the spare area is a fraction of the page"), 448) \
  /* read in physical mode only */ \
  FIELD(PhysicalOptions, physical, any, {})
IOJOULE_RECORD(DeviceConfig, DEVICE_CONFIG);

#define FLOW_CONFIG(FIELD) \
  FIELD(FlowKind, kind, any, FlowKind::synthetic) \
  FIELD(Priority, priority, any, Priority::high) \
  FIELD(CachingMode, caching, any, CachingMode::write_cache) \
  FIELD(Ids, channel_ids, any, {}) \
  FIELD(Ids, chip_ids, any, {}) \
  FIELD(Ids, die_ids, any, {}) \
  FIELD(Ids, plane_ids, any, {}) \
  FIELD(std::uint32_t, initial_occupancy_percent, percent, 0) \
  /* synthetic */ \
  FIELD(std::uint32_t, working_set_percent, within(1U, 100U, "it is a percentage"), 100) \
  FIELD(Generator, generator, any, Generator::queue_depth) \
  FIELD(std::uint32_t, read_percent, percent, 100) \
  FIELD(AddressDistribution, address_distribution, any, AddressDistribution::random_uniform) \
  FIELD(std::uint32_t, hot_region_percent, percent, 0) \
  FIELD(bool, aligned, any, true) \
  FIELD(std::uint32_t, alignment_sectors, any, 8) \
  FIELD(SizeDistribution, size_distribution, any, SizeDistribution::fixed) \
  FIELD(std::uint32_t, size_mean_sectors, within(1U, 65535U, "a request has at most 65535 sectors, which NVMe counts in 16 bits"), 8) \
  FIELD(std::uint32_t, size_sd_sectors, any, 0) \
  FIELD(std::int64_t, seed, seed_range, 1) \
  FIELD(std::uint32_t, queue_depth, within(1U, 1U << 20U, "so many requests are under way"), 1) \
  FIELD(std::uint64_t, bandwidth_bytes_per_second, any, 0) \
  /* 0: total_requests ends the flow */ \
  FIELD(std::uint64_t, stop_ns, within(std::uint64_t{0}, run_limit_ns, "it is the longest time that a run may simulate"), 0) \
  FIELD(std::uint64_t, total_requests, within(0ULL, 1ULL << 40U, "runs have fewer than 10^12 requests"), 0) \
  /* trace: the file's text, read by read_trace (trace.hpp) */ \
  FIELD(std::string, trace_path, any, {}) \
  FIELD(std::uint32_t, trace_percent, within(1U, 10'000U, "it is a percentage of the trace"), 100) \
  FIELD(std::uint32_t, trace_replays, any, 1) \
  /* read in physical mode only */ \
  FIELD(HostOptions, host, any, {})
IOJOULE_RECORD(FlowConfig, FLOW_CONFIG);

// What a run may use before it is stopped with a LimitError.
struct Limits {
  std::uint64_t memory_bytes = 8ULL << 30;
  std::uint64_t simulated_ns = UINT64_MAX;
  double wall_seconds = 0;            // 0: no limit
  std::uint64_t events = UINT64_MAX;
};

}  // namespace iojoule::sim
