// A small drive with two flows, and every parameter by number with a way to set it from raw bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "config.hpp"
#include "names.hpp"
#include "physical/names.hpp"
#include "require.hpp"

namespace iojoule::sim::fuzz {

// --- from raw bits to values that are now sensible, now anything ---------------------------------

template <class Value>
void set(Value& field, std::uint64_t raw) {
  if constexpr (std::is_same_v<Value, bool>) {
    field = raw & 1U;
  } else if constexpr (std::is_enum_v<Value>) {
    field = static_cast<Value>(raw % names_of<Value>.size());
  } else if constexpr (std::is_floating_point_v<Value>) {
    field = raw & 1U ? std::bit_cast<double>(raw) : static_cast<double>(raw % 100000) / 1000.0;
  } else {
    field = static_cast<Value>(raw);
  }
}

inline void set(std::array<std::uint64_t, 3>& field, std::uint64_t raw) { field[raw % 3] = raw >> 2U; }

inline void set(std::array<double, 3>& field, std::uint64_t raw) { set(field[raw % 3], raw >> 2U); }

// The bits say which ids are in the list; the topmost one repeats the first at its end.
inline void set(std::vector<std::uint32_t>& ids, std::uint64_t raw) {
  ids.clear();
  for (std::uint32_t id = 0; id < 63; ++id) {
    if (raw >> id & 1U) ids.push_back(id);
  }
  if (raw >> 63U && !ids.empty()) ids.push_back(ids.front());
}

inline void set(std::string& text, std::uint64_t raw) {
  constexpr const char* words[] = {"CWDP", "PDWC", "WCPD", "DPCW", "CCWD", "", "cwdp", "CWDPC"};
  text = words[raw % std::size(words)];
}

inline std::string a_trace() {
  const std::string path = "fuzz_parameters.trace";
  static const bool written = [&] {
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    for (unsigned i = 0; i < 50; ++i) {
      std::fprintf(file, "%u 0 %u %u %u\n", i * 1000, i * i * 977, 1 + i % 70, i % 3);
    }
    return std::fclose(file) == 0;
  }();
  REQUIRE(written);
  return path;
}

struct Inputs {
  DeviceConfig device;
  std::vector<FlowConfig> flows;
  std::uint64_t series_step_ns = 0;
};

inline Inputs small() {
  Inputs inputs;
  DeviceConfig& device = inputs.device;
  device.preconditioning = false;
  device.gc_preemptible = false;
  device.cache_bytes = 1U << 20;
  device.cmt_bytes = 1U << 12;
  device.channels = device.chips_per_channel = device.planes_per_die = 2;
  device.dies_per_chip = 1;
  device.blocks_per_plane = 32;
  device.pages_per_block = 16;
  device.overprovisioning_ratio = 0.2;
  inputs.flows.resize(2);
  for (FlowConfig& flow : inputs.flows) {
    flow.channel_ids = flow.chip_ids = flow.plane_ids = {0, 1};
    flow.die_ids = {0};
    flow.read_percent = 50;
    flow.queue_depth = 4;
    flow.stop_ns = 5'000'000;
    flow.initial_occupancy_percent = 50;
  }
  return inputs;
}

// --- every parameter -----------------------------------------------------------------------------

// The element that the lowest bits choose; the list grows up to it.
template <class Element>
Element& element(std::vector<Element>& list, std::uint64_t raw) {
  const std::size_t index = raw % 34;
  if (index >= list.size()) list.resize(index + 1);
  return list[index];
}

using Change = void (*)(Inputs&, std::uint64_t);

#define DEVICE(name) [](Inputs& inputs, std::uint64_t raw) { set(inputs.device.name, raw); }
#define IN_LIST(list, name)                                               \
  [](Inputs& inputs, std::uint64_t raw) {                                 \
    set(element(inputs.device.physical.power.list, raw).name, raw >> 6U); \
  }
#define POWER_STATE(name) IN_LIST(states, name)
#define POWER_TRANSITION(name) IN_LIST(autonomous_transitions, name)
#define POWER_COMMAND(name) IN_LIST(commands, name)
#define FLOW_AT(index, name)                                           \
  [](Inputs& inputs, std::uint64_t raw) {                              \
    if (index < inputs.flows.size()) set(inputs.flows[index].name, raw); \
  }
#define FLOW(name) FLOW_AT(0, name), FLOW_AT(1, name)

inline constexpr Change changes[] = {
    DEVICE(mode), DEVICE(link_lane_gigabytes_per_second), DEVICE(link_lanes),
    DEVICE(sata_processing_delay_ns), DEVICE(seed), DEVICE(preconditioning),
    DEVICE(host_interface), DEVICE(io_queue_depth), DEVICE(queue_fetch_size),
    DEVICE(cache_mechanism), DEVICE(cache_sharing), DEVICE(cache_bytes), DEVICE(dram_row_bytes),
    DEVICE(dram_megatransfers_per_second), DEVICE(dram_burst_bytes), DEVICE(dram_trcd_ns),
    DEVICE(dram_tcl_ns), DEVICE(dram_trp_ns), DEVICE(mapping), DEVICE(mapping_ideal),
    DEVICE(cmt_bytes), DEVICE(cmt_sharing), DEVICE(plane_allocation), DEVICE(scheduler),
    DEVICE(overprovisioning_ratio), DEVICE(gc_threshold), DEVICE(gc_policy), DEVICE(gc_copyback),
    DEVICE(gc_preemptible), DEVICE(gc_hard_threshold), DEVICE(wear_levelling_dynamic),
    DEVICE(wear_levelling_static), DEVICE(wear_levelling_threshold),
    DEVICE(suspend_erase_for_read_ns), DEVICE(suspend_erase_for_write_ns),
    DEVICE(suspend_program_for_read_ns), DEVICE(channels), DEVICE(channel_width_bytes),
    DEVICE(channel_megatransfers_per_second), DEVICE(chips_per_channel), DEVICE(flash_technology),
    DEVICE(suspension), DEVICE(page_read_ns), DEVICE(page_program_ns), DEVICE(block_erase_ns),
    DEVICE(pe_cycles_limit), DEVICE(suspend_erase_ns), DEVICE(suspend_program_ns),
    DEVICE(dies_per_chip), DEVICE(planes_per_die), DEVICE(blocks_per_plane),
    DEVICE(pages_per_block), DEVICE(page_bytes), DEVICE(page_metadata_bytes),
    DEVICE(physical.nand.write_allocation), DEVICE(physical.nand.multi_plane),
    DEVICE(physical.nand.unwritten_reads), DEVICE(physical.nand.initial_state),
    DEVICE(physical.nand.mapping_unit_bytes), DEVICE(physical.nand.cache_register),
    DEVICE(physical.nand.transfer_metadata), DEVICE(physical.nand.codeword_bytes),
    DEVICE(physical.nand.ecc_decode_ns), DEVICE(physical.nand.read_command_ns),
    DEVICE(physical.nand.read_command_plane_ns), DEVICE(physical.nand.program_command_ns),
    DEVICE(physical.nand.program_command_plane_ns), DEVICE(physical.nand.erase_command_ns),
    DEVICE(physical.nand.erase_command_plane_ns), DEVICE(physical.nand.resume_ns),
    DEVICE(physical.nand.suspends_max), DEVICE(physical.nand.suspended_max_ns),
    DEVICE(physical.nand.write_wait_max_ns),
    DEVICE(physical.link.max_payload_bytes), DEVICE(physical.link.packet_overhead_bytes),
    DEVICE(physical.link.latency_ns),
    DEVICE(physical.controller.command_latency_ns),
    DEVICE(physical.controller.command_occupancy_ns),
    DEVICE(physical.controller.max_transfer_bytes),
    DEVICE(physical.controller.power_loss_protection),
    DEVICE(physical.controller.dirty_pages_per_plane),
    DEVICE(physical.controller.partial_page_wait_ns),
    DEVICE(physical.controller.mapping_entry_bytes),
    DEVICE(physical.controller.mapping_entries_per_line),
    DEVICE(physical.slc.static_blocks_per_plane), DEVICE(physical.slc.dynamic_blocks_per_plane),
    DEVICE(physical.slc.page_read_ns), DEVICE(physical.slc.page_program_ns),
    DEVICE(physical.slc.block_erase_ns), DEVICE(physical.slc.when_full),
    DEVICE(physical.slc.fold_idle_ns),
    DEVICE(physical.energy.page_read_joules), DEVICE(physical.energy.page_program_joules),
    DEVICE(physical.energy.block_erase_joules), DEVICE(physical.energy.slc_page_read_joules),
    DEVICE(physical.energy.slc_page_program_joules),
    DEVICE(physical.energy.slc_block_erase_joules), DEVICE(physical.energy.array_read_watts),
    DEVICE(physical.energy.array_program_watts), DEVICE(physical.energy.array_erase_watts),
    DEVICE(physical.energy.channel_joules_per_byte), DEVICE(physical.energy.dram_joules_per_byte),
    DEVICE(physical.energy.dram_refresh_watts), DEVICE(physical.energy.controller_idle_watts),
    DEVICE(physical.energy.controller_active_watts),
    DEVICE(physical.energy.controller_joules_per_command),
    DEVICE(physical.energy.controller_joules_per_byte), DEVICE(physical.energy.link_idle_watts),
    DEVICE(physical.energy.link_active_watts), DEVICE(physical.energy.link_joules_per_byte),
    DEVICE(physical.energy.power_step_ns),
    DEVICE(physical.power.initial_state), DEVICE(physical.power.cap_window_ns),
    DEVICE(physical.power.cap_burst_ns), DEVICE(physical.warmup_ns),
    DEVICE(physical.finish_background), DEVICE(physical.idle_tail_ns),
    POWER_STATE(max_power_watts), POWER_STATE(operational), POWER_STATE(entry_latency_ns),
    POWER_STATE(exit_latency_ns), POWER_STATE(idle_power_watts), POWER_STATE(active_power_watts),
    POWER_TRANSITION(from_state), POWER_TRANSITION(to_state), POWER_TRANSITION(idle_ns),
    POWER_COMMAND(time_ns), POWER_COMMAND(state),
    FLOW(kind), FLOW(priority), FLOW(caching), FLOW(channel_ids), FLOW(chip_ids), FLOW(die_ids),
    FLOW(plane_ids), FLOW(initial_occupancy_percent), FLOW(working_set_percent), FLOW(generator),
    FLOW(read_percent), FLOW(address_distribution), FLOW(hot_region_percent), FLOW(aligned),
    FLOW(alignment_sectors), FLOW(size_distribution), FLOW(size_mean_sectors),
    FLOW(size_sd_sectors), FLOW(seed), FLOW(queue_depth), FLOW(bandwidth_bytes_per_second),
    FLOW(stop_ns), FLOW(total_requests), FLOW(trace_percent), FLOW(trace_replays),
    FLOW(host.engine), FLOW(host.completion), FLOW(host.jobs), FLOW(host.submit_cpu_ns),
    FLOW(host.complete_cpu_ns), FLOW(host.wake_ns), FLOW(host.think_time_ns),
    FLOW(host.arrivals_per_second), FLOW(host.arrivals), FLOW(host.burst_requests),
    FLOW(host.burst_gap_ns), FLOW(host.flush_every_writes), FLOW(host.force_unit_access),
    FLOW(host.trim_percent),
    [](Inputs& inputs, std::uint64_t raw) { set(inputs.series_step_ns, raw); },
    [](Inputs& inputs, std::uint64_t raw) {
      const FlowConfig like = inputs.flows.empty() ? FlowConfig{} : inputs.flows.front();
      inputs.flows.resize(raw % 10, like);
    },
    [](Inputs& inputs, std::uint64_t raw) {
      if (inputs.flows.empty()) return;
      FlowConfig& flow = inputs.flows[raw % inputs.flows.size()];
      flow.kind = FlowKind::trace;
      flow.trace_path = raw >> 63U ? "no such file" : a_trace();
    },
};

#undef FLOW
#undef FLOW_AT
#undef POWER_COMMAND
#undef POWER_TRANSITION
#undef POWER_STATE
#undef IN_LIST
#undef DEVICE

// An input of the fuzzer: ten bytes a change, the number of the parameter and its new value.
inline Inputs inputs_of(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t change_bytes = 10;
  Inputs inputs = small();
  for (; size >= change_bytes; data += change_bytes, size -= change_bytes) {
    std::uint16_t number = 0;
    std::uint64_t raw = 0;
    std::memcpy(&number, data, sizeof number);
    std::memcpy(&raw, data + sizeof number, sizeof raw);
    changes[number % std::size(changes)](inputs, raw);
  }
  return inputs;
}

}  // namespace iojoule::sim::fuzz
