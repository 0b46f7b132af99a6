#include "validate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>

#include "compat/mapping_table.hpp"
#include "compat/streams.hpp"
#include "geometry.hpp"
#include "trace.hpp"

namespace iojoule::sim {
namespace {

constexpr std::uint64_t request_sectors_limit = 65535;  // NVMe counts blocks in 16 bits

// Limits of one mode.
struct Reach {
  std::size_t flows;
  std::uint32_t sectors_per_page;
  std::uint32_t planes_per_die;
  std::string_view why;
};
// MQSim's doorbells, of which SATA has one for all flows, its sector masks and tables of command times.
constexpr Reach compat_reach{8, 32, 4, "MQSim goes no further; physical mode does"};
constexpr Reach compat_sata_reach{64, 32, 4, compat_reach.why};
constexpr Reach physical_reach{64, 2048, 64, "no drive has more"};

const Reach& reach_of(const DeviceConfig& device) {
  if (device.mode == Mode::physical) return physical_reach;
  return device.host_interface == HostInterface::sata ? compat_sata_reach : compat_reach;
}

// MQSim keeps these in 32 bits.
void check_memory(const DeviceConfig& device, const FieldCheck& check) {
  if (device.mode == Mode::compat) {
    constexpr std::string_view why = "MQSim keeps it in 32 bits";
    check.within<std::uint64_t>("cache_bytes", device.cache_bytes, 0, UINT32_MAX, why);
    check.within<std::uint64_t>("cmt_bytes", device.cmt_bytes, 0, UINT32_MAX, why);
    check.within("dram_megatransfers_per_second", device.dram_megatransfers_per_second, 1U, 4294U,
                 "MQSim keeps transfers a second in 32 bits");
  }
}

void check_choices(const DeviceConfig& device, const FieldCheck& check) {
  check.that(device.mapping == Mapping::page_level, "mapping",
             "hybrid mapping has no model, here or in MQSim; use page_level");
  std::string letters = device.plane_allocation;
  std::sort(letters.begin(), letters.end());
  check.that(letters == "CDPW", "plane_allocation",
             "must order the letters C, W, D and P, such as CWDP: the first varies fastest");
  check.that(device.scheduler != Scheduler::flin, "scheduler",
             "flin has no model, here or in MQSim; use out_of_order or priority_out_of_order");
}

void check_flash(const DeviceConfig& device, const FieldCheck& check) {
  const Reach& reach = reach_of(device);
  check.within("planes_per_die", device.planes_per_die, 1U, reach.planes_per_die, reach.why);
  check.that(device.page_bytes % sector_bytes == 0, "page_bytes",
             "is " + std::to_string(device.page_bytes) + ", but must be whole sectors of 512 bytes");
  check.within("page_bytes", device.page_bytes, sector_bytes, reach.sectors_per_page * sector_bytes,
               reach.why);

  const std::uint64_t planes = std::uint64_t{device.channels} * device.chips_per_channel *
                               device.dies_per_chip * device.planes_per_die;
  check.within<std::uint64_t>("channels", planes, 1, 1U << 16U,
                              "planes of the whole drive; no drive has more");
  const std::uint64_t pages = planes * device.blocks_per_plane * device.pages_per_block;
  check.within<std::uint64_t>("blocks_per_plane", pages, 1, (std::uint64_t{1} << 32U) - (1U << 20U),
                              "pages of the whole drive, which are numbered in 32 bits");
}

void check_ids(const std::vector<std::uint32_t>& ids, std::string_view field, std::uint32_t count,
               const FieldCheck& check) {
  check.that(!ids.empty(), field, "is empty; list the ones that the flow uses");
  check.within(field, ids.back(), 0U, count - 1, "ids count from 0 to what the drive has");
  check.that(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end(), field,
             "must be in ascending order without repetition");
}

void check_place(const FlowConfig& flow, const DeviceConfig& device, const FieldCheck& check) {
  check_ids(flow.channel_ids, "channel_ids", device.channels, check);
  check_ids(flow.chip_ids, "chip_ids", device.chips_per_channel, check);
  check_ids(flow.die_ids, "die_ids", device.dies_per_chip, check);
  check_ids(flow.plane_ids, "plane_ids", device.planes_per_die, check);
}

void check_sizes(const FlowConfig& flow, const FieldCheck& check) {
  if (flow.size_distribution == SizeDistribution::normal) {
    // No draw of doubles lies further out than ten standard deviations.
    const std::uint64_t largest = flow.size_mean_sectors + 10 * std::uint64_t{flow.size_sd_sectors};
    check.within<std::uint64_t>("size_sd_sectors", largest, 1, request_sectors_limit,
                                "ten standard deviations above the mean must be a request");
  }
  if (flow.aligned) {
    check.within("alignment_sectors", flow.alignment_sectors, 1U, 1U << 20U,
                 "addresses are multiples of it");
  }
}

void check_rate(const FlowConfig& flow, Mode mode, const FieldCheck& check) {
  const bool open_loop = flow.generator == Generator::bandwidth;
  const std::uint64_t request_bytes = std::uint64_t{flow.size_mean_sectors} * sector_bytes;
  const std::uint64_t rate = flow.bandwidth_bytes_per_second;
  if (open_loop && !(mode == Mode::physical && flow.host.arrivals_per_second > 0)) {
    check.within<std::uint64_t>("bandwidth_bytes_per_second", rate, request_bytes,
                                request_bytes * 1'000'000'000U,
                                "from one request a second to one a nanosecond");
  }
  if (mode == Mode::compat && rate != 0) {
    check.within<std::uint64_t>("bandwidth_bytes_per_second", rate, request_bytes, INT32_MAX,
                                "MQSim needs one request a second, even in a closed loop, and keeps "
                                "the rate in 31 bits");
  }
}

void check_synthetic(const FlowConfig& flow, Mode mode, const FieldCheck& check) {
  check.that(flow.address_distribution != AddressDistribution::random_hotcold || flow.hot_region_percent < 100,
             "hot_region_percent", "is 100, but something must be left for the cold region");
  check_sizes(flow, check);
  check_rate(flow, mode, check);
  check.that(flow.stop_ns > 0 || flow.total_requests > 0, "stop_ns",
             "and total_requests are both 0, so that the flow is empty; set one of them");
  if (mode == Mode::compat && flow.generator == Generator::queue_depth && flow.stop_ns == 0) {
    check.that(flow.total_requests >= flow.queue_depth, "total_requests",
               "is less than queue_depth, which MQSim crashes on");
  }
}

void check_trace(const FlowConfig& flow, const DeviceConfig& device, const FieldCheck& check) {
  check.that(!flow.trace_path.empty(), "trace_path", "is missing; name the file");
  check.within("trace_replays", flow.trace_replays, 1U, trace_replays_limit,
               "it says how often the trace is run");
  check.that(device.mode == Mode::physical || !device.preconditioning, "kind",
             "is trace, for which MQSim cannot precondition the drive; turn preconditioning off");
}

// What only shows when the flows are laid out on the drive.
void check_space(const DeviceConfig& device, const std::vector<FlowConfig>& flows,
                 const std::vector<FlowSpace>& spaces) {
  const std::uint32_t page_sectors = device.page_bytes / sector_bytes;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const FieldCheck check("flows[" + std::to_string(i) + "].");
    check.that(spaces[i].sectors >= 2 * page_sectors, "plane_ids",
               "leave this flow less than two pages; lower overprovisioning_ratio or give the drive "
               "more blocks");
    if (flows[i].kind != FlowKind::synthetic) continue;
    check.that(flows[i].size_mean_sectors <= spaces[i].sectors, "size_mean_sectors",
               "is larger than the flow's whole space of " + std::to_string(spaces[i].sectors) +
                   " sectors");
  }
}

void check_compat(const DeviceConfig& device, const std::vector<FlowConfig>& flows) {
  const FieldCheck check("");
  const std::uint64_t entry_bytes = compat::cached_entry_bytes(Geometry(device).physical_pages(),
                                                               device.page_bytes / sector_bytes);
  const std::vector<FlowConfig> streams = compat::streams_of(device, flows);
  const std::uint64_t least_bytes = entry_bytes * (device.cmt_sharing == Sharing::shared ? 1 : streams.size());
  check.that(device.mapping_ideal || device.cmt_bytes >= least_bytes, "cmt_bytes",
             "is " + std::to_string(device.cmt_bytes) + ", but one entry for each part of the cache takes " +
                 std::to_string(least_bytes) + "; write more or use mapping_ideal");
  for (const FlowConfig& stream : streams) {
    if (stream.caching == CachingMode::turned_off) continue;
    check.that(device.cache_mechanism == CacheMechanism::advanced, "cache_mechanism",
               "is simple, which works only for flows whose caching is turned_off");
    const std::uint64_t shares = device.cache_sharing == Sharing::shared ? 1 : flows.size();
    check.that(device.cache_bytes / shares >= device.page_bytes, "cache_bytes",
               "does not hold one page, but a flow caches");
  }
  check.that(device.blocks_per_plane > 3 * streams.size(), "blocks_per_plane",
             "is " + std::to_string(device.blocks_per_plane) + ", but each of the " +
                 std::to_string(streams.size()) + " flows keeps three blocks of a plane open");
  check.that(!device.preconditioning || streams.size() == flows.size(), "preconditioning",
             "of several flows over SATA crashes MQSim; turn it off, or use one flow");
}

}  // namespace

std::uint64_t table_bytes(const DeviceConfig& device, const std::vector<FlowConfig>& flows) {
  const Geometry geometry(device);
  const std::uint64_t pages = geometry.physical_pages();
  const std::uint64_t blocks = std::uint64_t{geometry.planes()} * device.blocks_per_plane;
  std::uint64_t units = pages;
  if (device.mode == Mode::physical && device.physical.nand.mapping_unit_bytes > 0) {
    units *= device.page_bytes / device.physical.nand.mapping_unit_bytes;
  }
  // Place and sector mask of a logical unit, owner of a physical one, valid bits.
  const std::uint64_t mapping = units * 12 + units / 8;
  // A block's state and its words of valid bits, which are at least one.
  const std::uint64_t block_states = blocks * 48;
  // A cached page or mapping entry: list node and hash entry. No more of them than there are.
  const std::uint64_t cached = std::min(units, device.cache_bytes / device.page_bytes) * 64;
  const std::uint64_t entries = device.mapping_ideal ? 0 : std::min(units, device.cmt_bytes / 4) * 64;
  std::uint64_t requests = 0;
  for (const FlowConfig& flow : flows) {
    const std::uint64_t pages_each = flow.size_mean_sectors * sector_bytes / device.page_bytes + 2;
    if (flow.kind == FlowKind::synthetic) requests += flow.queue_depth * (128 + 128 * pages_each);
  }
  return mapping + block_states + cached + entries + requests;
}

void validate(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
              std::uint64_t series_step_ns) {
  const FieldCheck check("");
  check_ranges(device, check);
  check_memory(device, check);
  check_choices(device, check);
  check_flash(device, check);
  const Reach& reach = reach_of(device);
  check.within<std::size_t>("flows", flows.size(), 1, reach.flows, reach.why);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const FlowConfig& flow = flows[i];
    const std::string name = "flows[" + std::to_string(i) + "].";
    const FieldCheck of_flow(name);
    check_ranges(flow, of_flow);
    check_place(flow, device, of_flow);
    if (flow.kind == FlowKind::synthetic) {
      check_synthetic(flow, device.mode, of_flow);
    } else {
      check_trace(flow, device, of_flow);
    }
    if (device.mode == Mode::physical) validate_host(flow, name);
  }
  if (device.mode == Mode::compat) {
    check_compat(device, flows);
  } else {
    validate_physical(device);
  }
  check.within<std::uint64_t>("series_step_ns", series_step_ns, 0, run_limit_ns,
                              "it is a time of the run; 0 asks for no series");
  const std::uint64_t needed = table_bytes(device, flows);
  if (needed > limits.memory_bytes) {
    throw LimitError("memory_bytes",
                     "the simulated drive's tables can come to need " + std::to_string(needed) +
                         " bytes, more than the limit of " + std::to_string(limits.memory_bytes) +
                         "; raise the limit or simulate a smaller drive or cache");
  }
  const bool compat = device.mode == Mode::compat;
  check_space(device, flows,
              flow_spaces(device, Geometry(device), compat ? compat::flows_as_laid_out(device, flows) : flows));
}

}  // namespace iojoule::sim
