// The ranges of physical/options.hpp.
#include <cstddef>
#include <string>

#include "geometry.hpp"
#include "validate.hpp"

namespace iojoule::sim {
namespace {

class PhysicalCheck : public FieldCheck {
 public:
  using FieldCheck::FieldCheck;
  void step(std::string_view field, std::uint64_t value_ns) const {
    within<std::uint64_t>(field, value_ns, 0, step_limit_ns, "no step of a drive takes longer");
  }
  void time(std::string_view field, std::uint64_t value_ns) const {
    within<std::uint64_t>(field, value_ns, 0, run_limit_ns, "runs are shorter than 31 years");
  }
  void joules(std::string_view field, double value) const {
    within(field, value, 0.0, 1.0, "one operation takes micro- to millijoules");
  }
  void joules_per_byte(std::string_view field, double value) const {
    within(field, value, 0.0, 1e-3, "moving a byte takes nanojoules");
  }
  void watts(std::string_view field, double value) const {
    within(field, value, 0.0, 1000.0, "drives draw up to some dozen watts");
  }
};

void check_nand(const DeviceConfig& device) {
  const NandOptions& nand = device.physical.nand;
  const PhysicalCheck check("physical.nand.");
  const std::uint32_t unit = nand.mapping_unit_bytes == 0 ? device.page_bytes : nand.mapping_unit_bytes;
  check.that(unit >= sector_bytes && unit % sector_bytes == 0 && device.page_bytes % unit == 0,
             "mapping_unit_bytes",
             "is " + std::to_string(unit) + ", but must be whole sectors of 512 bytes and divide the "
                 "page of " + std::to_string(device.page_bytes) + " bytes");
  check.within("codeword_bytes", nand.codeword_bytes, 1U, 1U << 20U,
               "at least a byte is corrected at once");
  check.step("ecc_decode_ns", nand.ecc_decode_ns);
  check.within("partial_read_bytes", nand.partial_read_bytes, 0U, device.page_bytes,
               "it is a part of a page");
  check.within("partial_read_share", nand.partial_read_share, 0.01, 1.0,
               "a part of a page is not sensed later than the whole");
  check.step("read_command_ns", nand.read_command_ns);
  check.step("read_command_plane_ns", nand.read_command_plane_ns);
  check.step("program_command_ns", nand.program_command_ns);
  check.step("program_command_plane_ns", nand.program_command_plane_ns);
  check.step("erase_command_ns", nand.erase_command_ns);
  check.step("erase_command_plane_ns", nand.erase_command_plane_ns);
  check.step("resume_ns", nand.resume_ns);
  check.step("suspended_max_ns", nand.suspended_max_ns);
  check.step("write_wait_max_ns", nand.write_wait_max_ns);
}

void check_link_and_controller(const DeviceConfig& device) {
  const LinkOptions& link = device.physical.link;
  const PhysicalCheck of_link("physical.link.");
  of_link.within("max_payload_bytes", link.max_payload_bytes, 1U, 1U << 20U, "packets hold some kB");
  of_link.within("packet_overhead_bytes", link.packet_overhead_bytes, 0U, 1U << 20U,
                 "headers have some dozen bytes");
  of_link.step("latency_ns", link.latency_ns);
  of_link.step("further_page_ns", link.further_page_ns);

  const ControllerOptions& controller = device.physical.controller;
  const PhysicalCheck check("physical.controller.");
  check.step("command_latency_ns", controller.command_latency_ns);
  check.step("command_occupancy_ns", controller.command_occupancy_ns);
  const std::uint64_t most = controller.max_transfer_bytes;
  check.that(most % sector_bytes == 0, "max_transfer_bytes",
             "is " + std::to_string(most) + ", but must be whole sectors of 512 bytes");
  check.within<std::uint64_t>("max_transfer_bytes", most, 0, std::uint64_t{1} << 32U,
                              "MDTS is some hundred KiB; 0 stands for no limit");
  check.step("partial_page_wait_ns", controller.partial_page_wait_ns);
  check.within("mapping_entry_bytes", controller.mapping_entry_bytes, 1U, 64U,
               "an entry holds an address and a little more");
  check.within("mapping_entries_per_line", controller.mapping_entries_per_line, 1U, 4096U,
               "a line is at most a page of entries");
}

void check_slc(const DeviceConfig& device) {
  const SlcOptions& slc = device.physical.slc;
  const PhysicalCheck check("physical.slc.");
  check.within("static_blocks_per_plane", slc.static_blocks_per_plane, 0U, device.blocks_per_plane,
               "a plane has no more blocks");
  check.within("dynamic_blocks_per_plane", slc.dynamic_blocks_per_plane, 0U, device.blocks_per_plane,
               "a plane has no more blocks");
  check.step("page_read_ns", slc.page_read_ns);
  check.step("page_program_ns", slc.page_program_ns);
  check.step("block_erase_ns", slc.block_erase_ns);
  check.step("fold_idle_ns", slc.fold_idle_ns);
}

void check_energy(const EnergyOptions& energy) {
  const PhysicalCheck check("physical.energy.");
  for (const double value : energy.page_read_joules) check.joules("page_read_joules", value);
  for (const double value : energy.page_program_joules) check.joules("page_program_joules", value);
  check.joules("block_erase_joules", energy.block_erase_joules);
  check.joules("slc_page_read_joules", energy.slc_page_read_joules);
  check.joules("slc_page_program_joules", energy.slc_page_program_joules);
  check.joules("slc_block_erase_joules", energy.slc_block_erase_joules);
  check.joules("controller_joules_per_command", energy.controller_joules_per_command);
  check.watts("array_read_watts", energy.array_read_watts);
  check.watts("array_program_watts", energy.array_program_watts);
  check.watts("array_erase_watts", energy.array_erase_watts);
  check.watts("dram_refresh_watts", energy.dram_refresh_watts);
  check.watts("controller_idle_watts", energy.controller_idle_watts);
  check.watts("controller_active_watts", energy.controller_active_watts);
  check.watts("controller_busy_watts", energy.controller_busy_watts);
  check.within("controller_busy_commands", energy.controller_busy_commands, 1U, 65536U,
               "it counts commands in the drive");
  check.within("controller_busy_exponent", energy.controller_busy_exponent, 0.01, 10.0,
               "1 is linear; below, the first commands cost most");
  check.watts("link_idle_watts", energy.link_idle_watts);
  check.watts("link_active_watts", energy.link_active_watts);
  check.joules_per_byte("channel_joules_per_byte", energy.channel_joules_per_byte);
  check.joules_per_byte("dram_joules_per_byte", energy.dram_joules_per_byte);
  check.joules_per_byte("controller_joules_per_byte", energy.controller_joules_per_byte);
  check.joules_per_byte("link_joules_per_byte", energy.link_joules_per_byte);
  check.step("power_step_ns", energy.power_step_ns);
}

void check_power(const PowerOptions& power) {
  const PhysicalCheck check("physical.power.");
  const std::size_t count = power.states.size();
  check.within<std::size_t>("states", count, 0, 32, "NVMe has 32 power states");
  const auto exists = [&](std::string_view field, std::uint32_t state) {
    check.that(state < count, field,
               "names power state " + std::to_string(state) + ", but the table has " +
                   std::to_string(count));
  };
  for (const PowerState& state : power.states) {
    check.watts("states", state.max_power_watts);
    check.watts("states", state.idle_power_watts);
    check.watts("states", state.active_power_watts);
    check.step("states", state.entry_latency_ns);
    check.step("states", state.exit_latency_ns);
  }
  if (count > 0 || power.initial_state != 0) exists("initial_state", power.initial_state);
  if (count > 0) {
    check.that(power.states[power.initial_state].operational, "initial_state",
               "is not operational; name one that is");
  }
  check.within<std::size_t>("autonomous_transitions", power.autonomous_transitions.size(), 0, 32,
                            "each state has at most one");
  for (const PowerTransition& move : power.autonomous_transitions) {
    exists("autonomous_transitions", move.from_state);
    exists("autonomous_transitions", move.to_state);
    check.time("autonomous_transitions", move.idle_ns);
  }
  check.within<std::size_t>("commands", power.commands.size(), 0, 4096, "so many may be set");
  for (const PowerCommand& command : power.commands) {
    exists("commands", command.state);
    check.time("commands", command.time_ns);
  }
  check.within<std::uint64_t>("cap_window_ns", power.cap_window_ns, 1'000'000, step_limit_ns,
                              "power is averaged over milliseconds to minutes");
  check.step("cap_burst_ns", power.cap_burst_ns);
  check.within<std::uint64_t>("cap_reopen_ns", power.cap_reopen_ns, 0, power.cap_burst_ns,
                              "beyond cap_burst_ns work would never go on");
}

}  // namespace

void validate_physical(const DeviceConfig& device) {
  check_nand(device);
  check_link_and_controller(device);
  check_slc(device);
  check_energy(device.physical.energy);
  check_power(device.physical.power);
  const PhysicalCheck check("physical.");
  check.time("warmup_ns", device.physical.warmup_ns);
  check.time("idle_tail_ns", device.physical.idle_tail_ns);
}

void validate_host(const FlowConfig& flow, const std::string& name) {
  const HostOptions& host = flow.host;
  const PhysicalCheck check(name + "host.");
  check.within("jobs", host.jobs, 1U, 4096U, "jobs are threads of the host");
  check.step("submit_cpu_ns", host.submit_cpu_ns);
  check.step("complete_cpu_ns", host.complete_cpu_ns);
  check.step("wake_ns", host.wake_ns);
  check.step("think_time_ns", host.think_time_ns);
  check.within("arrivals_per_second", host.arrivals_per_second, 0.0, 1e9,
               "an open loop's rate; 0: from bandwidth_bytes_per_second");
  check.that(host.arrivals_per_second == 0.0 || host.arrivals_per_second >= 1e-6,
             "arrivals_per_second", "is less than one request in eleven days");
  check.time("burst_requests", host.burst_requests);
  check.time("burst_gap_ns", host.burst_gap_ns);
  check.time("flush_every_writes", host.flush_every_writes);
  check.within("trim_percent", host.trim_percent, 0U, 100U, "it is a percentage");
}

}  // namespace iojoule::sim
