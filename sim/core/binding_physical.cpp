// What physical mode alone has, in Python: its options and its part of a result.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"
#include "physical/names.hpp"
#include "physical/options.hpp"
#include "result.hpp"

namespace iojoule::sim {
namespace {

void bind_energy_result(nb::module_& module) {
  nb::class_<FlashWork> work(module, "FlashWork", "Operation x page x origin, the last fastest.");
  work.def_ro("counts", &FlashWork::counts).def_ro("joules", &FlashWork::joules);
  nb::class_<EnergyResult> bound(module, "EnergyResult", "Joules by component.");
#define FIELD(name) bound.def_ro(#name, &EnergyResult::name)
  FIELD(array_read_joules);
  FIELD(array_program_joules);
  FIELD(array_erase_joules);
  FIELD(channel_joules);
  FIELD(dram_joules);
  FIELD(controller_joules);
  FIELD(link_joules);
  FIELD(controller_static_joules);
  FIELD(dram_static_joules);
  FIELD(link_static_joules);
  FIELD(flash);
#undef FIELD
  bound.def_prop_ro("total_joules", &EnergyResult::total_joules);
}

}  // namespace

void bind_physical_options(nb::module_& module, Choices& choices) {
  bind_record<NandOptions>(module, choices, "NandOptions", "Flash beyond MQSim's parameters.");
  bind_record<LinkOptions>(module, choices, "LinkOptions", "Packets on the host link.");
  bind_record<ControllerOptions>(module, choices, "ControllerOptions", "The drive's controller.");
  bind_record<SlcOptions>(module, choices, "SlcOptions", "The pseudo-SLC cache.");
  bind_record<EnergyOptions>(module, choices, "EnergyOptions", "Joules by operation, watts by state.");
  bind_record<PowerState>(module, choices, "PowerState", "One NVMe power state.");
  bind_record<PowerTransition>(module, choices, "PowerTransition", "An autonomous power state transition.");
  bind_record<PowerCommand>(module, choices, "PowerCommand", "The host sets a power state.");
  bind_record<PowerOptions>(module, choices, "PowerOptions", "Power states and caps.");
  bind_record<PhysicalOptions>(module, choices, "PhysicalOptions", "What physical mode knows of a drive.");
  bind_record<HostOptions>(module, choices, "HostOptions", "How a flow's requests are made and what they cost the host.");
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
