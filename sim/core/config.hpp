// What a run is told: the drive, the flows and the limits, in SI units with the unit in the name.
// Field for field the same names as iojoule.sim.device.Device and iojoule.sim.workload.Flow.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "physical/options.hpp"

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

struct DeviceConfig {
  Mode mode = Mode::compat;

  // host link
  double link_lane_gigabytes_per_second = 0.4;
  std::uint32_t link_lanes = 4;
  std::uint64_t sata_processing_delay_ns = 400000;

  // front end
  std::int64_t seed = 123;
  bool preconditioning = true;
  HostInterface host_interface = HostInterface::nvme;
  std::uint32_t io_queue_depth = 1024;
  std::uint32_t queue_fetch_size = 512;

  // data cache
  CacheMechanism cache_mechanism = CacheMechanism::advanced;
  Sharing cache_sharing = Sharing::shared;
  std::uint64_t cache_bytes = 512ULL << 20;
  std::uint32_t dram_row_bytes = 8192;
  std::uint32_t dram_megatransfers_per_second = 800;
  std::uint32_t dram_burst_bytes = 4;
  std::uint64_t dram_trcd_ns = 13;
  std::uint64_t dram_tcl_ns = 13;
  std::uint64_t dram_trp_ns = 13;

  // address mapping
  Mapping mapping = Mapping::page_level;
  bool mapping_ideal = false;
  std::uint64_t cmt_bytes = 2ULL << 20;
  Sharing cmt_sharing = Sharing::shared;
  std::string plane_allocation = "CWDP";  // the first letter varies fastest

  // back end
  Scheduler scheduler = Scheduler::out_of_order;
  double overprovisioning_ratio = 0.07;
  double gc_threshold = 0.05;
  VictimPolicy gc_policy = VictimPolicy::rga;
  bool gc_copyback = false;
  bool gc_preemptible = true;
  double gc_hard_threshold = 0.005;
  bool wear_levelling_dynamic = true;
  bool wear_levelling_static = true;
  std::uint32_t wear_levelling_threshold = 100;
  std::uint64_t suspend_erase_for_read_ns = 700000;
  std::uint64_t suspend_erase_for_write_ns = 700000;
  std::uint64_t suspend_program_for_read_ns = 100000;

  // flash
  std::uint32_t channels = 8;
  std::uint32_t channel_width_bytes = 1;
  std::uint32_t channel_megatransfers_per_second = 333;
  std::uint32_t chips_per_channel = 4;
  FlashTechnology flash_technology = FlashTechnology::mlc;
  Suspension suspension = Suspension::erase;
  std::array<std::uint64_t, page_kinds> page_read_ns = {75000, 75000, 75000};
  std::array<std::uint64_t, page_kinds> page_program_ns = {750000, 750000, 750000};
  std::uint64_t block_erase_ns = 3800000;
  std::uint32_t pe_cycles_limit = 10000;
  std::uint64_t suspend_erase_ns = 700000;
  std::uint64_t suspend_program_ns = 100000;
  std::uint32_t dies_per_chip = 2;
  std::uint32_t planes_per_die = 2;
  std::uint32_t blocks_per_plane = 2048;
  std::uint32_t pages_per_block = 256;
  std::uint32_t page_bytes = 8192;
  std::uint32_t page_metadata_bytes = 448;

  PhysicalOptions physical;  // read in physical mode only
};

struct FlowConfig {
  FlowKind kind = FlowKind::synthetic;
  Priority priority = Priority::high;
  CachingMode caching = CachingMode::write_cache;
  std::vector<std::uint32_t> channel_ids, chip_ids, die_ids, plane_ids;
  std::uint32_t initial_occupancy_percent = 0;

  // synthetic
  std::uint32_t working_set_percent = 100;
  Generator generator = Generator::queue_depth;
  std::uint32_t read_percent = 100;
  AddressDistribution address_distribution = AddressDistribution::random_uniform;
  std::uint32_t hot_region_percent = 0;
  bool aligned = true;
  std::uint32_t alignment_sectors = 8;
  SizeDistribution size_distribution = SizeDistribution::fixed;
  std::uint32_t size_mean_sectors = 8;
  std::uint32_t size_sd_sectors = 0;
  std::int64_t seed = 1;
  std::uint32_t queue_depth = 1;
  std::uint64_t bandwidth_bytes_per_second = 0;
  std::uint64_t stop_ns = 0;          // 0: total_requests ends the flow
  std::uint64_t total_requests = 0;

  // trace: the file's text, read by read_trace (trace.hpp)
  std::string trace_path;
  std::uint32_t trace_percent = 100;
  std::uint32_t trace_replays = 1;

  HostOptions host;  // read in physical mode only
};

// What a run may use before it is stopped with a LimitError.
struct Limits {
  std::uint64_t memory_bytes = 8ULL << 30;
  std::uint64_t simulated_ns = UINT64_MAX;
  double wall_seconds = 0;            // 0: no limit
  std::uint64_t events = UINT64_MAX;
};

}  // namespace iojoule::sim
