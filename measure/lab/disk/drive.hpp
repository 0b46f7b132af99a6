// The lab's drive: a model in step with CLOCK_MONOTONIC, its data, its record and its faults. Not for
// several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include "model.hpp"
#include "record.hpp"
#include "store.hpp"

namespace iojoule::lab {

std::uint64_t monotonic_ns();

// What the drive has done since it was made; formatting does not reset it.
struct Totals {
  std::uint64_t read_commands = 0, write_commands = 0, other_commands = 0, failed_commands = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::uint64_t busy_ns = 0;  // with at least one command under way
  std::uint64_t programmed_pages = 0, erased_blocks = 0, throttled_ns = 0;
};

class Drive {
 public:
  // A request whose reply is due.
  struct Reply {
    std::uint32_t ticket;
    int error;  // an errno, or 0
  };

  // The drive in a file that read_model knows; throws as that does.
  explicit Drive(const std::string& path);

  std::uint64_t bytes() const { return store_.bytes(); }
  Store& store() { return store_; }

  // A command has come; its ticket is a small number, free again once it is answered. Data of a
  // write are in the store already.
  std::uint32_t submit(RequestKind kind, std::uint64_t offset, std::uint64_t bytes);
  // Lets time go on to now, and brings the power record there.
  void catch_up();
  // The same, and appends what is to be answered now.
  void advance(std::vector<Reply>& replies);
  // To be called once the reply has been sent: that is when the host knows.
  void answered(const Reply& reply);
  // When advance has something to do again.
  std::uint64_t next_wake_ns() const;

  // --- what the controller is told
  void set_power_state(std::uint32_t state);
  std::uint32_t power_state() const { return model_->power_state(); }
  void set_transitions(const std::vector<sim::PowerTransition>& moves);
  void set_write_cache(bool on);
  // Data and mapping are gone, all blocks are free; what was under way fails.
  void format();

  // --- faults
  void fail_next(std::uint64_t requests) { to_fail_ = requests; }
  void stall(std::uint64_t until_ns) { stalled_until_ns_ = until_ns; }
  void vanish() { vanished_ = true; }
  void end_faults();
  bool vanished() const { return vanished_; }

  // --- record
  const PowerRecord& power() const { return power_; }
  const Ring<Entry>& entries() const { return entries_; }
  Totals totals() const;
  std::uint32_t blocks() const { return model_->blocks(); }
  std::uint32_t erase_cycles_limit() const { return model_->erase_cycles_limit(); }
  double temperature_celsius() const { return celsius_; }
  bool active() const { return model_->active(); }
  std::uint64_t outstanding() const { return under_way_; }

 private:
  struct Request {
    std::uint64_t arrived_ns = 0, bytes = 0;
    RequestKind kind = RequestKind::read;
    bool in_drive = false;
  };

  static constexpr std::uint64_t power_step_ns = 50'000;
  static constexpr std::uint64_t power_rest_ns = 2'000'000;  // brings it there by itself so often
  static constexpr std::uint64_t rest_ns = 20'000'000;  // looks at the clock at least so often
  static constexpr std::size_t watts_kept = 2'400'000;  // two minutes
  static constexpr std::size_t entries_kept = std::size_t{1} << 22U;  // 64 MiB
  static constexpr double ambient_celsius = 30, celsius_per_watt = 6, warming_seconds = 20;

  std::uint64_t model_ns(std::uint64_t now_ns) const { return now_ns - model_from_ns_; }
  void let_pass(std::uint64_t now_ns);
  void take_power();

  std::unique_ptr<Model> model_;
  std::uint64_t model_from_ns_;
  Store store_;
  PowerRecord power_;
  Ring<Entry> entries_{entries_kept};
  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_;
  std::vector<Model::Done> done_;
  std::vector<Reply> due_;  // the model is through with them
  std::vector<double> steps_;
  Totals totals_;
  std::uint64_t under_way_ = 0, busy_since_ns_ = 0;
  std::uint64_t to_fail_ = 0, stalled_until_ns_ = 0;
  bool vanished_ = false;
  double celsius_ = ambient_celsius;
};

}  // namespace iojoule::lab
