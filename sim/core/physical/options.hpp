// What the physical mode knows of a drive and its host beyond MQSim's parameters, in SI units.
// Field for field the same names as iojoule.sim.physical_options, which says what each number means
// and where it comes from.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace iojoule::sim {

enum class WriteAllocation : std::uint8_t { striped, round_robin };
enum class MultiPlane : std::uint8_t { none, same_page, any_page };
enum class UnwrittenReads : std::uint8_t { flash, zeros };
enum class InitialState : std::uint8_t { steady, filled };
enum class SlcWhenFull : std::uint8_t { direct, fold };
enum class HostEngine : std::uint8_t { none, psync, posixaio, libaio, io_uring, io_uring_cmd, spdk };
enum class Completion : std::uint8_t { interrupt, polled };
enum class Arrivals : std::uint8_t { exponential, periodic };

struct NandOptions {
  WriteAllocation write_allocation = WriteAllocation::striped;
  MultiPlane multi_plane = MultiPlane::same_page;
  UnwrittenReads unwritten_reads = UnwrittenReads::flash;
  InitialState initial_state = InitialState::steady;
  std::uint32_t mapping_unit_bytes = 0;  // 0: a page
  bool cache_register = false;
  bool transfer_metadata = true;
  std::uint32_t codeword_bytes = 512;
  std::uint64_t ecc_decode_ns = 0;
  // reads of so few bytes of a page sense it in this share of its time; 0 bytes: none does
  std::uint32_t partial_read_bytes = 0;
  double partial_read_share = 1;
  // channel time of a command, and of each further plane in it
  std::uint64_t read_command_ns = 290, read_command_plane_ns = 650;
  std::uint64_t program_command_ns = 361, program_command_plane_ns = 816;
  std::uint64_t erase_command_ns = 220, erase_command_plane_ns = 700;
  std::uint64_t resume_ns = 0;
  std::uint32_t suspends_max = 10;         // of one program or erase
  std::uint64_t suspended_max_ns = 1000000;  // reads are let in for so long, then it resumes
  std::uint64_t write_wait_max_ns = 20000000;  // reads keep a die from writing so long; 0: forever
};

struct LinkOptions {
  std::uint32_t max_payload_bytes = 128;
  std::uint32_t packet_overhead_bytes = 28;
  std::uint64_t latency_ns = 0;  // one way
  std::uint64_t further_page_ns = 0;  // of host memory in one transfer
};

struct ControllerOptions {
  std::uint64_t command_latency_ns = 0;
  std::uint64_t command_occupancy_ns = 0;  // its inverse is the most commands a second
  std::uint64_t max_transfer_bytes = 0;    // MDTS; 0: no limit
  bool power_loss_protection = false;
  std::uint32_t dirty_pages_per_plane = 0;  // 0: as many as the cache holds
  std::uint64_t partial_page_wait_ns = 10000000;
  std::uint32_t mapping_entry_bytes = 8;
  std::uint32_t mapping_entries_per_line = 1;
};

struct SlcOptions {
  std::uint32_t static_blocks_per_plane = 0;
  std::uint32_t dynamic_blocks_per_plane = 0;
  std::uint64_t page_read_ns = 25000;
  std::uint64_t page_program_ns = 200000;
  std::uint64_t block_erase_ns = 3000000;
  SlcWhenFull when_full = SlcWhenFull::direct;
  std::uint64_t fold_idle_ns = 1000000000;  // folds after so long without host commands
};

// Energy = counts x joules + time x watts.
struct EnergyOptions {
  std::array<double, 3> page_read_joules = {0, 0, 0};  // LSB, CSB, MSB
  std::array<double, 3> page_program_joules = {0, 0, 0};
  double block_erase_joules = 0;
  double slc_page_read_joules = 0, slc_page_program_joules = 0, slc_block_erase_joules = 0;
  // of a plane while its array works (V x I)
  double array_read_watts = 0, array_program_watts = 0, array_erase_watts = 0;
  double channel_joules_per_byte = 0;
  double dram_joules_per_byte = 0;
  double dram_refresh_watts = 0;
  double controller_idle_watts = 0, controller_active_watts = 0;
  // in addition, when so many commands are in the drive; with n of them the (n / so many)^exponent part
  double controller_busy_watts = 0;
  std::uint32_t controller_busy_commands = 1;
  double controller_busy_exponent = 1;
  double controller_joules_per_command = 0;
  double controller_joules_per_byte = 0;
  double link_idle_watts = 0, link_active_watts = 0;
  double link_joules_per_byte = 0;
  std::uint64_t power_step_ns = 0;  // 0: no power series
};

// One NVMe power state, as the drive declares it. Watts of 0: not reported.
struct PowerState {
  double max_power_watts = 0;
  bool operational = true;
  std::uint64_t entry_latency_ns = 0, exit_latency_ns = 0;
  double idle_power_watts = 0;
  double active_power_watts = 0;
};

// Autonomous transition: after idle_ns in `from_state` the drive goes to `to_state`.
struct PowerTransition {
  std::uint32_t from_state = 0, to_state = 0;
  std::uint64_t idle_ns = 0;
};

// The host sets a power state at a time of the run.
struct PowerCommand {
  std::uint64_t time_ns = 0;
  std::uint32_t state = 0;
};

struct PowerOptions {
  std::vector<PowerState> states;
  std::uint32_t initial_state = 0;
  std::vector<PowerTransition> autonomous_transitions;
  std::vector<PowerCommand> commands;
  std::uint64_t cap_window_ns = 10000000000;  // NVMe Base Specification 2.1, figure 313, ACTP
  std::uint64_t cap_burst_ns = 10000000;      // so much time's worth of energy may be spent at once
  std::uint64_t cap_reopen_ns = 0;  // once overdrawn, so much time's worth is gathered before work goes on
};

struct PhysicalOptions {
  NandOptions nand;
  LinkOptions link;
  ControllerOptions controller;
  SlcOptions slc;
  EnergyOptions energy;
  PowerOptions power;
  std::uint64_t warmup_ns = 0;       // statistics and energy count from here
  bool finish_background = true;     // the run ends when nothing is left to program or collect
  bool finish_folding = false;       // nor to fold
  std::uint64_t idle_tail_ns = 0;    // and so much idle time after it
  bool check_consistency = false;    // of the drive's tables at the end
};

// How a flow's requests are made and what they cost the host.
struct HostOptions {
  HostEngine engine = HostEngine::none;
  Completion completion = Completion::interrupt;
  std::uint32_t jobs = 1;
  std::uint64_t submit_cpu_ns = 0, complete_cpu_ns = 0, wake_ns = 0;
  std::uint64_t think_time_ns = 0;
  double arrivals_per_second = 0;  // 0: from bandwidth_bytes_per_second
  Arrivals arrivals = Arrivals::exponential;
  std::uint64_t burst_requests = 0;  // 0: no gaps
  std::uint64_t burst_gap_ns = 0;
  std::uint64_t flush_every_writes = 0;
  bool force_unit_access = false;
  std::uint32_t trim_percent = 0;
};

}  // namespace iojoule::sim
