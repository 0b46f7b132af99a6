// What the physical mode knows of a drive and its host beyond MQSim's parameters, in SI units.
// Field for field the same names as iojoule.sim.physical_options, which says what each number means
// and where it comes from. Ranges that depend on other fields are in validate_physical.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "../record.hpp"

namespace iojoule::sim {

enum class WriteAllocation : std::uint8_t { striped, round_robin };
enum class MultiPlane : std::uint8_t { none, same_page, any_page };
enum class UnwrittenReads : std::uint8_t { flash, zeros };
enum class InitialState : std::uint8_t { steady, filled };
enum class SlcWhenFull : std::uint8_t { direct, fold };
enum class HostEngine : std::uint8_t { none, psync, posixaio, libaio, io_uring, io_uring_cmd, spdk };
enum class Completion : std::uint8_t { interrupt, polled };
enum class Arrivals : std::uint8_t { exponential, periodic };

using JoulesByPage = std::array<double, 3>;  // LSB, CSB, MSB

#define NAND_OPTIONS(FIELD) \
  FIELD(WriteAllocation, write_allocation, any, WriteAllocation::striped) \
  FIELD(MultiPlane, multi_plane, any, MultiPlane::same_page) \
  FIELD(UnwrittenReads, unwritten_reads, any, UnwrittenReads::flash) \
  FIELD(InitialState, initial_state, any, InitialState::steady) \
  /* 0: a page */ \
  FIELD(std::uint32_t, mapping_unit_bytes, any, 0) \
  FIELD(bool, cache_register, any, false) \
  FIELD(bool, transfer_metadata, any, true) \
  FIELD(std::uint32_t, codeword_bytes, within(1U, 1U << 20U, "at least a byte is corrected at once"), 512) \
  FIELD(std::uint64_t, ecc_decode_ns, step, 0) \
  /* reads of so few bytes of a page sense it in this share of its time; 0 bytes: none does */ \
  FIELD(std::uint32_t, partial_read_bytes, any, 0) \
  FIELD(double, partial_read_share, within(0.01, 1.0, "a part of a page is not sensed later than the whole"), 1) \
  /* channel time of a command, and of each further plane in it */ \
  FIELD(std::uint64_t, read_command_ns, step, 290) \
  FIELD(std::uint64_t, read_command_plane_ns, step, 650) \
  FIELD(std::uint64_t, program_command_ns, step, 361) \
  FIELD(std::uint64_t, program_command_plane_ns, step, 816) \
  FIELD(std::uint64_t, erase_command_ns, step, 220) \
  FIELD(std::uint64_t, erase_command_plane_ns, step, 700) \
  FIELD(std::uint64_t, resume_ns, step, 0) \
  /* of one program or erase */ \
  FIELD(std::uint32_t, suspends_max, any, 10) \
  /* reads are let in for so long, then it resumes */ \
  FIELD(std::uint64_t, suspended_max_ns, step, 1000000) \
  /* reads keep a die from writing so long; 0: forever */ \
  FIELD(std::uint64_t, write_wait_max_ns, step, 20000000)
IOJOULE_RECORD(NandOptions, NAND_OPTIONS);

#define LINK_OPTIONS(FIELD) \
  FIELD(std::uint32_t, max_payload_bytes, within(1U, 1U << 20U, "packets hold some kB"), 128) \
  FIELD(std::uint32_t, packet_overhead_bytes, within(0U, 1U << 20U, "headers have some dozen bytes"), 28) \
  /* one way */ \
  FIELD(std::uint64_t, latency_ns, step, 0) \
  /* of host memory in one transfer */ \
  FIELD(std::uint64_t, further_page_ns, step, 0)
IOJOULE_RECORD(LinkOptions, LINK_OPTIONS);

#define CONTROLLER_OPTIONS(FIELD) \
  FIELD(std::uint64_t, command_latency_ns, step, 0) \
  /* its inverse is the most commands a second */ \
  FIELD(std::uint64_t, command_occupancy_ns, step, 0) \
  /* MDTS; 0: no limit */ \
  FIELD(std::uint64_t, max_transfer_bytes, within(0ULL, 1ULL << 32U, "MDTS is some hundred KiB; 0 stands for no limit"), 0) \
  FIELD(bool, power_loss_protection, any, false) \
  /* 0: as many as the cache holds */ \
  FIELD(std::uint32_t, dirty_pages_per_plane, any, 0) \
  FIELD(std::uint64_t, partial_page_wait_ns, step, 10000000) \
  FIELD(std::uint32_t, mapping_entry_bytes, within(1U, 64U, "an entry holds an address and a little more"), 8) \
  FIELD(std::uint32_t, mapping_entries_per_line, within(1U, 4096U, "a line is at most a page of entries"), 1)
IOJOULE_RECORD(ControllerOptions, CONTROLLER_OPTIONS);

#define SLC_OPTIONS(FIELD) \
  FIELD(std::uint32_t, static_blocks_per_plane, any, 0) \
  FIELD(std::uint32_t, dynamic_blocks_per_plane, any, 0) \
  FIELD(std::uint64_t, page_read_ns, step, 25000) \
  FIELD(std::uint64_t, page_program_ns, step, 200000) \
  FIELD(std::uint64_t, block_erase_ns, step, 3000000) \
  FIELD(SlcWhenFull, when_full, any, SlcWhenFull::direct) \
  /* folds after so long without host commands */ \
  FIELD(std::uint64_t, fold_idle_ns, step, 1000000000)
IOJOULE_RECORD(SlcOptions, SLC_OPTIONS);

// Energy = counts x joules + time x watts.
#define ENERGY_OPTIONS(FIELD) \
  FIELD(JoulesByPage, page_read_joules, joules, {0, 0, 0}) \
  FIELD(JoulesByPage, page_program_joules, joules, {0, 0, 0}) \
  FIELD(double, block_erase_joules, joules, 0) \
  FIELD(double, slc_page_read_joules, joules, 0) \
  FIELD(double, slc_page_program_joules, joules, 0) \
  FIELD(double, slc_block_erase_joules, joules, 0) \
  /* of a plane while its array works (V x I) */ \
  FIELD(double, array_read_watts, watts, 0) \
  FIELD(double, array_program_watts, watts, 0) \
  FIELD(double, array_erase_watts, watts, 0) \
  FIELD(double, channel_joules_per_byte, joules_per_byte, 0) \
  FIELD(double, dram_joules_per_byte, joules_per_byte, 0) \
  FIELD(double, dram_refresh_watts, watts, 0) \
  FIELD(double, controller_idle_watts, watts, 0) \
  FIELD(double, controller_active_watts, watts, 0) \
  /* in addition, when so many commands are in the drive; with n of them the (n / so many)^exponent part */ \
  FIELD(double, controller_busy_watts, watts, 0) \
  FIELD(std::uint32_t, controller_busy_commands, within(1U, 65536U, "it counts commands in the drive"), 1) \
  FIELD(double, controller_busy_exponent, within(0.01, 10.0, "1 is linear; below, the first commands cost most"), 1) \
  FIELD(double, controller_joules_per_command, joules, 0) \
  FIELD(double, controller_joules_per_byte, joules_per_byte, 0) \
  FIELD(double, link_idle_watts, watts, 0) \
  FIELD(double, link_active_watts, watts, 0) \
  FIELD(double, link_joules_per_byte, joules_per_byte, 0) \
  /* 0: no power series */ \
  FIELD(std::uint64_t, power_step_ns, step, 0)
IOJOULE_RECORD(EnergyOptions, ENERGY_OPTIONS);

// One NVMe power state, as the drive declares it. Watts of 0: not reported.
#define POWER_STATE(FIELD) \
  FIELD(double, max_power_watts, watts, 0) \
  FIELD(bool, operational, any, true) \
  FIELD(std::uint64_t, entry_latency_ns, step, 0) \
  FIELD(std::uint64_t, exit_latency_ns, step, 0) \
  FIELD(double, idle_power_watts, watts, 0) \
  FIELD(double, active_power_watts, watts, 0)
IOJOULE_RECORD(PowerState, POWER_STATE);

// Autonomous transition: after idle_ns in `from_state` the drive goes to `to_state`.
#define POWER_TRANSITION(FIELD) \
  FIELD(std::uint32_t, from_state, any, 0) \
  FIELD(std::uint32_t, to_state, any, 0) \
  FIELD(std::uint64_t, idle_ns, run_time, 0)
IOJOULE_RECORD(PowerTransition, POWER_TRANSITION);

// The host sets a power state at a time of the run.
#define POWER_COMMAND(FIELD) \
  FIELD(std::uint64_t, time_ns, run_time, 0) \
  FIELD(std::uint32_t, state, any, 0)
IOJOULE_RECORD(PowerCommand, POWER_COMMAND);

#define POWER_OPTIONS(FIELD) \
  FIELD(std::vector<PowerState>, states, any, {}) \
  FIELD(std::uint32_t, initial_state, any, 0) \
  FIELD(std::vector<PowerTransition>, autonomous_transitions, any, {}) \
  FIELD(std::vector<PowerCommand>, commands, any, {}) \
  /* NVMe Base Specification 2.1, figure 313, ACTP */ \
  FIELD(std::uint64_t, cap_window_ns, within(std::uint64_t{1'000'000}, step_limit_ns, "power is averaged over milliseconds to minutes"), 10000000000) \
  /* so much time's worth of energy may be spent at once */ \
  FIELD(std::uint64_t, cap_burst_ns, step, 10000000) \
  /* once overdrawn, so much time's worth is gathered before work goes on */ \
  FIELD(std::uint64_t, cap_reopen_ns, any, 0)
IOJOULE_RECORD(PowerOptions, POWER_OPTIONS);

#define PHYSICAL_OPTIONS(FIELD) \
  FIELD(NandOptions, nand, any, {}) \
  FIELD(LinkOptions, link, any, {}) \
  FIELD(ControllerOptions, controller, any, {}) \
  FIELD(SlcOptions, slc, any, {}) \
  FIELD(EnergyOptions, energy, any, {}) \
  FIELD(PowerOptions, power, any, {}) \
  /* statistics and energy count from here */ \
  FIELD(std::uint64_t, warmup_ns, run_time, 0) \
  /* the run ends when nothing is left to program or collect */ \
  FIELD(bool, finish_background, any, true) \
  /* nor to fold */ \
  FIELD(bool, finish_folding, any, false) \
  /* and so much idle time after it */ \
  FIELD(std::uint64_t, idle_tail_ns, run_time, 0) \
  /* of the drive's tables at the end */ \
  FIELD(bool, check_consistency, any, false)
IOJOULE_RECORD(PhysicalOptions, PHYSICAL_OPTIONS);

// How a flow's requests are made and what they cost the host.
#define HOST_OPTIONS(FIELD) \
  FIELD(HostEngine, engine, any, HostEngine::none) \
  FIELD(Completion, completion, any, Completion::interrupt) \
  FIELD(std::uint32_t, jobs, within(1U, 4096U, "jobs are threads of the host"), 1) \
  FIELD(std::uint64_t, submit_cpu_ns, step, 0) \
  FIELD(std::uint64_t, complete_cpu_ns, step, 0) \
  FIELD(std::uint64_t, wake_ns, step, 0) \
  FIELD(std::uint64_t, think_time_ns, step, 0) \
  /* 0: from bandwidth_bytes_per_second */ \
  FIELD(double, arrivals_per_second, within(0.0, 1e9, "an open loop's rate; 0: from bandwidth_bytes_per_second"), 0) \
  FIELD(Arrivals, arrivals, any, Arrivals::exponential) \
  /* 0: no gaps */ \
  FIELD(std::uint64_t, burst_requests, run_time, 0) \
  FIELD(std::uint64_t, burst_gap_ns, run_time, 0) \
  FIELD(std::uint64_t, flush_every_writes, run_time, 0) \
  FIELD(bool, force_unit_access, any, false) \
  FIELD(std::uint32_t, trim_percent, percent, 0)
IOJOULE_RECORD(HostOptions, HOST_OPTIONS);

}  // namespace iojoule::sim
