// What the parts of one simulated drive share: clock, meters, counters.
#pragma once

#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "../event_queue.hpp"
#include "../result.hpp"
#include "blocks.hpp"
#include "dram.hpp"
#include "energy.hpp"
#include "layout.hpp"
#include "link.hpp"
#include "mapping_cache.hpp"
#include "mapping_table.hpp"
#include "power_states.hpp"
#include "write_cache.hpp"

namespace iojoule::sim::physical {

enum class EventKind : std::uint32_t {
  generate,         // subject: flow; its next open-loop request, or the end of a gap
  request_arrives,  // request: its command is in the drive
  request_ready,    // request: the firmware is through with it
  data_arrives,     // request: the host's data are in the drive
  request_done,     // request: its completion is at the host
  sense_done,       // die
  page_out,         // read: its data have left the die
  program_done,     // die
  erase_done,       // die
  begun,            // die
  suspended,        // die
  left,             // die: data that were settled ahead have left it
  partial_page,     // write list: it has waited long enough for a whole page
  command_over,     // so many commands that were completed ahead are over
  fetch,            // a queued command is fetched: one that was completed ahead is over
  power_reopens,
  power_timer,
  power_command,    // index into PowerOptions::commands
  fold_timer,
  warmup_end,
  run_end
};

struct Context {
  Context(const DeviceConfig& device_, const std::vector<FlowConfig>& flows)
      : device(device_),
        options(device_.physical),
        layout(device_, flows),
        meter(options.energy.power_step_ns),
        power(device_, meter),
        link(device_),
        dram(device_),
        mapping_cache(device_, layout, flows.size()),
        table(layout.logical_units(), mapping_cache.pages(),
              std::uint64_t{layout.planes} * layout.blocks_per_plane * layout.units_per_block,
              WriteCache::slot_count(device_, layout)),
        blocks(device_, layout),
        cache(device_, layout, table, flows.size(), write_list_count(device_, layout, flows.size())) {}

  // Dirty units wait for one plane, apart by priority where the scheduler has any; or, where any die
  // will do, for their flow.
  static std::size_t write_list_count(const DeviceConfig& device, const Layout& layout,
                                      std::size_t flows) {
    if (device.physical.nand.write_allocation == WriteAllocation::round_robin) return flows;
    return std::size_t{layout.planes} * priority_classes(device);
  }
  static std::size_t priority_classes(const DeviceConfig& device) {
    return device.scheduler == Scheduler::priority_out_of_order ? 4 : 1;
  }

  std::uint64_t now_ns() const { return events.now_ns(); }
  void schedule(std::uint64_t time_ns, EventKind kind, std::uint32_t subject) {
    events.schedule(time_ns, static_cast<std::uint32_t>(kind), subject);
  }
  std::uint16_t flow_of_unit(std::uint32_t unit) const {
    std::uint16_t flow = 0;
    while (unit >= layout.first_unit[flow + 1U]) ++flow;
    return flow;
  }

  // Of the drive's tables, as if all of the lazily filled ones were full.
  std::uint64_t memory_bytes() const {
    return blocks.memory_bytes() + cache.memory_bytes() + mapping_cache.memory_bytes() +
           (table.logical_units() + table.physical_units()) * sizeof(std::uint32_t);
  }

  const DeviceConfig& device;
  const PhysicalOptions& options;
  Layout layout;
  EventQueue events;
  EnergyMeter meter;
  PowerManager power;
  Link link;
  Dram dram;
  MappingCache mapping_cache;
  MappingTable table;
  Blocks blocks;
  WriteCache cache;
  DeviceResult counts;  // since the end of the warm-up
};

}  // namespace iojoule::sim::physical
