// What physical mode alone has, in Python: its options and its part of a result.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"
#include "physical/names.hpp"
#include "physical/options.hpp"
#include "result.hpp"

namespace iojoule::sim {
namespace {

void bind_nand_options(nb::module_& module, Choices& choices) {
  nb::class_<NandOptions> bound(module, "NandOptions", "Flash beyond MQSim's parameters.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &NandOptions::name)
#define CHOICE(name) bind_choice(bound, choices, #name, &NandOptions::name)
  CHOICE(write_allocation);
  CHOICE(multi_plane);
  CHOICE(unwritten_reads);
  CHOICE(initial_state);
  FIELD(mapping_unit_bytes);
  FIELD(cache_register);
  FIELD(transfer_metadata);
  FIELD(codeword_bytes);
  FIELD(ecc_decode_ns);
  FIELD(partial_read_bytes);
  FIELD(partial_read_share);
  FIELD(read_command_ns);
  FIELD(read_command_plane_ns);
  FIELD(program_command_ns);
  FIELD(program_command_plane_ns);
  FIELD(erase_command_ns);
  FIELD(erase_command_plane_ns);
  FIELD(resume_ns);
  FIELD(suspends_max);
  FIELD(suspended_max_ns);
  FIELD(write_wait_max_ns);
#undef CHOICE
#undef FIELD
}

void bind_link_options(nb::module_& module) {
  nb::class_<LinkOptions> bound(module, "LinkOptions", "Packets on the host link.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &LinkOptions::name)
  FIELD(max_payload_bytes);
  FIELD(packet_overhead_bytes);
  FIELD(latency_ns);
  FIELD(further_page_ns);
#undef FIELD
}

void bind_controller_options(nb::module_& module) {
  nb::class_<ControllerOptions> bound(module, "ControllerOptions", "The drive's controller.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &ControllerOptions::name)
  FIELD(command_latency_ns);
  FIELD(command_occupancy_ns);
  FIELD(max_transfer_bytes);
  FIELD(power_loss_protection);
  FIELD(dirty_pages_per_plane);
  FIELD(partial_page_wait_ns);
  FIELD(mapping_entry_bytes);
  FIELD(mapping_entries_per_line);
#undef FIELD
}

void bind_slc_options(nb::module_& module, Choices& choices) {
  nb::class_<SlcOptions> bound(module, "SlcOptions", "The pseudo-SLC cache.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &SlcOptions::name)
#define CHOICE(name) bind_choice(bound, choices, #name, &SlcOptions::name)
  FIELD(static_blocks_per_plane);
  FIELD(dynamic_blocks_per_plane);
  FIELD(page_read_ns);
  FIELD(page_program_ns);
  FIELD(block_erase_ns);
  CHOICE(when_full);
  FIELD(fold_idle_ns);
#undef CHOICE
#undef FIELD
}

void bind_energy_options(nb::module_& module) {
  nb::class_<EnergyOptions> bound(module, "EnergyOptions", "Joules by operation, watts by state.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &EnergyOptions::name)
  FIELD(page_read_joules);
  FIELD(page_program_joules);
  FIELD(block_erase_joules);
  FIELD(slc_page_read_joules);
  FIELD(slc_page_program_joules);
  FIELD(slc_block_erase_joules);
  FIELD(array_read_watts);
  FIELD(array_program_watts);
  FIELD(array_erase_watts);
  FIELD(channel_joules_per_byte);
  FIELD(dram_joules_per_byte);
  FIELD(dram_refresh_watts);
  FIELD(controller_idle_watts);
  FIELD(controller_active_watts);
  FIELD(controller_busy_watts);
  FIELD(controller_busy_commands);
  FIELD(controller_busy_exponent);
  FIELD(controller_joules_per_command);
  FIELD(controller_joules_per_byte);
  FIELD(link_idle_watts);
  FIELD(link_active_watts);
  FIELD(link_joules_per_byte);
  FIELD(power_step_ns);
#undef FIELD
}

void bind_power_state(nb::module_& module) {
  nb::class_<PowerState> bound(module, "PowerState", "One NVMe power state.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &PowerState::name)
  FIELD(max_power_watts);
  FIELD(operational);
  FIELD(entry_latency_ns);
  FIELD(exit_latency_ns);
  FIELD(idle_power_watts);
  FIELD(active_power_watts);
#undef FIELD
}

void bind_power_transition(nb::module_& module) {
  nb::class_<PowerTransition> bound(module, "PowerTransition", "An autonomous power state transition.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &PowerTransition::name)
  FIELD(from_state);
  FIELD(to_state);
  FIELD(idle_ns);
#undef FIELD
}

void bind_power_command(nb::module_& module) {
  nb::class_<PowerCommand> bound(module, "PowerCommand", "The host sets a power state.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &PowerCommand::name)
  FIELD(time_ns);
  FIELD(state);
#undef FIELD
}

void bind_power_options(nb::module_& module) {
  nb::class_<PowerOptions> bound(module, "PowerOptions", "Power states and caps.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &PowerOptions::name)
  FIELD(states);
  FIELD(initial_state);
  FIELD(autonomous_transitions);
  FIELD(commands);
  FIELD(cap_window_ns);
  FIELD(cap_burst_ns);
  FIELD(cap_reopen_ns);
#undef FIELD
}

void bind_physical_options(nb::module_& module) {
  nb::class_<PhysicalOptions> bound(module, "PhysicalOptions", "What physical mode knows of a drive.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &PhysicalOptions::name)
  FIELD(nand);
  FIELD(link);
  FIELD(controller);
  FIELD(slc);
  FIELD(energy);
  FIELD(power);
  FIELD(warmup_ns);
  FIELD(finish_background);
  FIELD(finish_folding);
  FIELD(check_consistency);
  FIELD(idle_tail_ns);
#undef FIELD
}

void bind_host_options(nb::module_& module, Choices& choices) {
  nb::class_<HostOptions> bound(module, "HostOptions", "How a flow's requests are made and what they cost the host.");
  bound.def(nb::init<>());
#define FIELD(name) bound.def_rw(#name, &HostOptions::name)
#define CHOICE(name) bind_choice(bound, choices, #name, &HostOptions::name)
  CHOICE(engine);
  CHOICE(completion);
  FIELD(jobs);
  FIELD(submit_cpu_ns);
  FIELD(complete_cpu_ns);
  FIELD(wake_ns);
  FIELD(think_time_ns);
  FIELD(arrivals_per_second);
  CHOICE(arrivals);
  FIELD(burst_requests);
  FIELD(burst_gap_ns);
  FIELD(flush_every_writes);
  FIELD(force_unit_access);
  FIELD(trim_percent);
#undef CHOICE
#undef FIELD
}

void bind_energy_result(nb::module_& module) {
  nb::class_<EnergyResult> bound(module, "EnergyResult", "Joules by component.");
#define FIELD(name) bound.def_ro(#name, &EnergyResult::name)
  FIELD(array_read_joules);
  FIELD(array_program_joules);
  FIELD(array_erase_joules);
  FIELD(channel_joules);
  FIELD(dram_joules);
  FIELD(controller_joules);
  FIELD(link_joules);
#undef FIELD
  bound.def_prop_ro("total_joules", &EnergyResult::total_joules);
}

}  // namespace

void bind_physical_options(nb::module_& module, Choices& choices) {
  bind_nand_options(module, choices);
  bind_link_options(module);
  bind_controller_options(module);
  bind_slc_options(module, choices);
  bind_energy_options(module);
  bind_power_state(module);
  bind_power_transition(module);
  bind_power_command(module);
  bind_power_options(module);
  bind_physical_options(module);
  bind_host_options(module, choices);
}

void bind_physical_result(nb::module_& module) {
  bind_energy_result(module);
  nb::class_<PhysicalResult> bound(module, "PhysicalResult", "What only a drive that works has.");
#define FIELD(name) bound.def_ro(#name, &PhysicalResult::name)
  FIELD(measured_from_ns);
  FIELD(energy);
  FIELD(power_step_ns);
  FIELD(commands);
  FIELD(units_written);
  FIELD(units_moved);
  FIELD(unit_bytes);
  FIELD(slc_pages_read);
  FIELD(slc_pages_programmed);
  FIELD(slc_blocks_erased);
  FIELD(slc_folds);
  FIELD(program_suspends);
  FIELD(erase_suspends);
  FIELD(fill_reads);
  FIELD(flushes);
  FIELD(flush_wait_sum_ns);
  FIELD(blocks_retired);
  FIELD(erase_count_min);
  FIELD(erase_count_max);
  FIELD(throttled_ns);
  FIELD(power_transitions);
#undef FIELD
  bind_array(bound, "power_watts", &PhysicalResult::power_watts);
  bind_array(bound, "power_state_ns", &PhysicalResult::power_state_ns);
}

}  // namespace iojoule::sim
