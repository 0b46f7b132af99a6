// The drive: takes the host's commands apart into cache, mapping and flash work, and puts the answers
// together.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "../error.hpp"
#include "../watch.hpp"
#include "context.hpp"
#include "flash.hpp"
#include "host.hpp"

namespace iojoule::sim::physical {

class Device final : private FlashClient {
 public:
  Device(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
         Control& control, std::uint64_t series_step_ns, bool ahead = false);

  RunResult run();

  // Instead of run, requests in the order of arrival, completed ahead: ../fast/device_fed.cpp
  void begin_feeding(CompletionSink& sink);
  void feed(RequestKind kind, std::uint64_t sector, std::uint32_t sectors, std::uint64_t at_ns);
  // For a request that comes soon: mapping entries, and then what a write changes where they say.
  void prefetch_entries(std::uint64_t sector, std::uint64_t sectors) const;
  void prefetch_contents(std::uint64_t sector, std::uint64_t sectors) const;
  // Everything that happens up to then; joules are settled.
  void advance_fed(std::uint64_t until_ns);
  EnergyResult joules_until_now();
  const HostRequest& request(std::uint32_t index) { return host_.request(index); }
  // `passing` is told of each time before anything happens then.
  RunResult finish_feeding(const std::function<void(std::uint64_t)>& passing);

  // Instead of run, a drive whose requests come from outside (live.hpp): device_live.cpp
  void serve(CompletionSink& sink);
  void advance(std::uint64_t until_ns);
  std::uint64_t next_event_ns() { return context_.events.next_time_ns(); }
  std::uint64_t due_ns();
  // Now, that is where advance has come to.
  std::uint32_t submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors);
  void set_power_state(std::uint32_t state);
  void transitions_changed();
  std::uint64_t take_steps(std::vector<double>& joules);
  std::uint64_t now_ns() const { return context_.now_ns(); }
  std::uint64_t sectors() const { return context_.layout.spaces[0].sectors; }
  std::uint64_t outstanding() const { return host_.outstanding(); }
  std::uint32_t power_state() const { return context_.power.current(); }
  bool active() const { return active_; }
  const DeviceResult& counts() const { return context_.counts; }

 private:
  // A unit of a read that waits for its mapping entry.
  struct WaitingUnit {
    std::uint32_t request, unit, bytes, next;
  };
  // Consecutive units of a request that lie in one page.
  struct Gathered {
    Flash::Place place{none, none, false};
    Flash::Part part{0, 0, 0};
  };

  // the run: device.cpp
  void schedule_settings();
  void handle(const Event& event);
  void after_event();
  bool finished();
  ModelError halted() const;
  void begin_measuring();
  void note_activity() {
    const bool active = !idle_but_ahead() || ahead_until_ns_ > context_.now_ns();
    if (active != active_) set_active(active);
  }
  void set_active(bool active);
  void arm_power_timer();
  void arm_fold_timer();
  void on_fold_timer();
  RunResult report();
  // Whether nothing is left that would keep the drive active after the requests completed ahead.
  bool idle_but_ahead() const {
    return commands_ == 0 && flash_.busy_dies() == 0 && !flash_.gated();
  }
  void completed_ahead(std::uint32_t index, std::uint64_t done_ns);
  bool can_fetch();
  void drop_past_completions();
  void fetch_later(std::uint32_t index);
  void schedule_fetch();
  void on_fetch();

  // commands: device.cpp
  void request_arrives(std::uint32_t index);
  void accept(std::uint32_t index);
  void process(std::uint32_t index);
  void part_done(std::uint32_t index);
  void complete(std::uint32_t index);
  void request_done(std::uint32_t index);
  std::uint64_t commands_of(const HostRequest& request) const;

  // reads: device_read.cpp
  void start_read(std::uint32_t index);
  void gather(std::uint32_t index, Gathered& gathered, std::uint32_t unit, std::uint32_t bytes);
  // `last`: nothing more is read in the same moment.
  void issue(std::uint32_t index, Gathered& gathered, bool last);
  void answer_from_memory(std::uint32_t index, std::uint64_t bytes);
  void send_to_host(std::uint32_t index, std::uint64_t ready_ps, std::uint64_t bytes);
  void page_read(const PageRead& read, std::uint64_t out_ns) override;
  Flash::Place place_of(std::uint16_t flow, std::uint32_t unit) const;
  std::uint8_t read_class(std::uint16_t flow) const;
  std::uint32_t first_unit(const HostRequest& request) const;
  std::uint32_t unit_count(const HostRequest& request) const;
  std::uint32_t bytes_in_unit(const HostRequest& request, std::uint32_t unit) const;

  // the mapping table: device_mapping.cpp
  bool mapping_ready(std::uint32_t unit, std::uint16_t flow, bool is_read, std::uint32_t waiter);
  void load_mapping_page(std::uint32_t page);
  void mapping_page_loaded(std::uint32_t page);
  void serve_write_backs();
  void mapping_page_programmed(std::uint32_t page) override;
  Flash::Place mapping_place(std::uint32_t page) const;

  // writes: device_write.cpp
  void data_arrives(std::uint32_t index);
  bool advance_write(std::uint32_t index);
  void retry_writes();
  void prepare(std::uint32_t slot);
  void queue_slot(std::uint32_t slot);
  void slot_filled(std::uint32_t slot);
  void slots_programmed(const std::uint32_t* slots, std::uint32_t count, std::uint64_t array_ns,
                        std::uint64_t transfer_ns) override;
  void release_waiters(std::uint32_t chain);
  void start_trim(std::uint32_t index);
  void start_flush(std::uint32_t index);
  void serve_flushes();
  bool writes_through(const HostRequest& request) const;
  bool keeps_copies(std::uint16_t flow) const;

  // When the last byte of what will be ready has left for the host.
  std::uint64_t leave(std::uint64_t ready_ps, std::uint64_t bytes) {
    return context_.link.to_host(to_ps(context_.now_ns()), ready_ps, bytes);
  }
  // Energy of a transfer that ends then.
  void spend_link(std::uint64_t payload, std::uint64_t until_ps) {
    if (energy_.link_joules_per_byte != 0) spend_on_wire(context_.link.wire_bytes(payload), until_ps);
  }
  void spend_on_wire(std::uint64_t wire_bytes, std::uint64_t until_ps);
  std::uint64_t access_dram(std::uint64_t ready_ps, std::uint64_t bytes) {
    const std::uint64_t end_ps = context_.dram.access(ready_ps, bytes);
    if (energy_.dram_joules_per_byte != 0) spend_on_dram(bytes, end_ps);
    return end_ps;
  }
  void spend_on_dram(std::uint64_t bytes, std::uint64_t end_ps);

  Context context_;
  Flash flash_;
  Host host_;
  Watch watch_;
  const EnergyOptions& energy_;
  const std::uint64_t series_step_ns_;
  const std::uint32_t fetch_limit_;
  FifoServer firmware_;
  std::vector<RequestQueue> submission_queues_;  // by flow: commands not yet fetched
  std::vector<std::uint32_t> in_device_;         // by flow
  RequestQueue waiting_writes_;                  // for room in the cache
  RequestQueue flushes_;
  std::vector<WaitingUnit> waiting_units_;
  std::uint32_t free_waiting_unit_ = none;
  std::vector<std::uint32_t> woken_;
  std::uint64_t split_commands_ = 0;             // the same, after splitting; where watts depend on it
  std::uint32_t commands_ = 0;                   // accepted and not yet done at the host
  std::uint64_t power_timer_ns_ = UINT64_MAX;
  bool fold_timer_ = false, has_slc_, counts_commands_;
  bool active_ = false, draining_ = false, ended_ = false;
  std::uint64_t command_idle_since_ns_ = 0;
  // When completions that are on their way arrive, the first on top; kept by a live drive alone.
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> arrivals_;
  bool live_ = false;
  CompletionSink* fed_ = nullptr;
  std::uint64_t ahead_until_ns_ = 0;   // the last completion of requests that were fed
  const std::uint32_t in_flight_limit_;
  // Known completion times of fed requests, some of them past; a min-heap while commands are queued.
  std::vector<std::uint64_t> completion_ns_;
  std::size_t known_completions_ = 0;
  std::uint64_t fetch_ns_ = UINT64_MAX;  // of the next scheduled fetch
};

// --- what happens for every unit that is read

// A unit never written has no place; what a read of it costs is that of the page where striping
// would have put it. Inlined: the processor would wait for what is put together in memory.
[[gnu::always_inline]] inline Flash::Place Device::place_of(std::uint16_t flow, std::uint32_t unit) const {
  const Layout& layout = context_.layout;
  const std::uint32_t physical = context_.table.find(unit);
  if (physical != none) {
    const std::uint32_t page = layout.page_of_unit(physical);
    return {layout.plane_of_page(page), page, true};
  }
  const std::uint32_t flow_page = layout.page_of_unit(unit - layout.first_unit[flow]);
  const std::uint32_t row = layout.by_plane.remainder(layout.by_lane[flow].quotient(flow_page));
  const std::uint32_t plane = layout.striped_plane(flow, unit);
  return {plane, plane * layout.pages_per_plane + row, false};
}

}  // namespace iojoule::sim::physical
