// DeviceConfig, FlowConfig and Limits in Python.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"
#include "config.hpp"

namespace iojoule::sim {
namespace {

void bind_device(nb::module_& module, Choices& choices) {
  nb::class_<DeviceConfig> bound(module, "DeviceConfig", "A drive; see sim/core/config.hpp.");
  bound.def(nb::init<>());
  const auto choice = [&](const char* name, auto member) {
    bind_choice(bound, choices, name, member);
  };
  choice("mode", &DeviceConfig::mode);
  choice("host_interface", &DeviceConfig::host_interface);
  choice("cache_mechanism", &DeviceConfig::cache_mechanism);
  choice("cache_sharing", &DeviceConfig::cache_sharing);
  choice("mapping", &DeviceConfig::mapping);
  choice("cmt_sharing", &DeviceConfig::cmt_sharing);
  choice("scheduler", &DeviceConfig::scheduler);
  choice("gc_policy", &DeviceConfig::gc_policy);
  choice("flash_technology", &DeviceConfig::flash_technology);
  choice("suspension", &DeviceConfig::suspension);
#define FIELD(name) bound.def_rw(#name, &DeviceConfig::name)
  FIELD(link_lane_gigabytes_per_second);
  FIELD(link_lanes);
  FIELD(sata_processing_delay_ns);
  FIELD(seed);
  FIELD(preconditioning);
  FIELD(io_queue_depth);
  FIELD(queue_fetch_size);
  FIELD(cache_bytes);
  FIELD(dram_row_bytes);
  FIELD(dram_megatransfers_per_second);
  FIELD(dram_burst_bytes);
  FIELD(dram_trcd_ns);
  FIELD(dram_tcl_ns);
  FIELD(dram_trp_ns);
  FIELD(mapping_ideal);
  FIELD(cmt_bytes);
  FIELD(plane_allocation);
  FIELD(overprovisioning_ratio);
  FIELD(gc_threshold);
  FIELD(gc_copyback);
  FIELD(gc_preemptible);
  FIELD(gc_hard_threshold);
  FIELD(wear_levelling_dynamic);
  FIELD(wear_levelling_static);
  FIELD(wear_levelling_threshold);
  FIELD(suspend_erase_for_read_ns);
  FIELD(suspend_erase_for_write_ns);
  FIELD(suspend_program_for_read_ns);
  FIELD(channels);
  FIELD(channel_width_bytes);
  FIELD(channel_megatransfers_per_second);
  FIELD(chips_per_channel);
  FIELD(page_read_ns);
  FIELD(page_program_ns);
  FIELD(block_erase_ns);
  FIELD(pe_cycles_limit);
  FIELD(suspend_erase_ns);
  FIELD(suspend_program_ns);
  FIELD(dies_per_chip);
  FIELD(planes_per_die);
  FIELD(blocks_per_plane);
  FIELD(pages_per_block);
  FIELD(page_bytes);
  FIELD(page_metadata_bytes);
  FIELD(physical);
#undef FIELD
}

void bind_flow(nb::module_& module, Choices& choices) {
  nb::class_<FlowConfig> bound(module, "FlowConfig", "A stream of requests; see sim/core/config.hpp.");
  bound.def(nb::init<>());
  const auto choice = [&](const char* name, auto member) {
    bind_choice(bound, choices, name, member);
  };
  choice("kind", &FlowConfig::kind);
  choice("priority", &FlowConfig::priority);
  choice("caching", &FlowConfig::caching);
  choice("generator", &FlowConfig::generator);
  choice("address_distribution", &FlowConfig::address_distribution);
  choice("size_distribution", &FlowConfig::size_distribution);
#define FIELD(name) bound.def_rw(#name, &FlowConfig::name)
  FIELD(channel_ids);
  FIELD(chip_ids);
  FIELD(die_ids);
  FIELD(plane_ids);
  FIELD(initial_occupancy_percent);
  FIELD(working_set_percent);
  FIELD(read_percent);
  FIELD(hot_region_percent);
  FIELD(aligned);
  FIELD(alignment_sectors);
  FIELD(size_mean_sectors);
  FIELD(size_sd_sectors);
  FIELD(seed);
  FIELD(queue_depth);
  FIELD(bandwidth_bytes_per_second);
  FIELD(stop_ns);
  FIELD(total_requests);
  FIELD(trace_path);
  FIELD(trace_percent);
  FIELD(trace_replays);
  FIELD(host);
#undef FIELD
}

void bind_limits(nb::module_& module) {
  nb::class_<Limits>(module, "Limits", "What a run may use before it is stopped with a LimitError.")
      .def(nb::init<>())
      .def_rw("memory_bytes", &Limits::memory_bytes)
      .def_rw("simulated_ns", &Limits::simulated_ns)
      .def_rw("wall_seconds", &Limits::wall_seconds)
      .def_rw("events", &Limits::events);
}

}  // namespace

void bind_config(nb::module_& module, Choices& choices) {
  bind_device(module, choices);
  bind_flow(module, choices);
  bind_limits(module);
}

}  // namespace iojoule::sim
