// A drive that works in step with somebody else's clock: requests come from outside when they come,
// and their completions are known as soon as their time is reached.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../config.hpp"
#include "../control.hpp"
#include "../result.hpp"
#include "host.hpp"

namespace iojoule::sim::physical {

class Device;

// Times are in ns from the making of the drive and never go back: what is asked for at an earlier
// time than the last counts at the last. Memory does not grow with time as long as the power series
// is taken.
class Live final : private CompletionSink {
 public:
  struct Done {
    std::uint64_t cookie, done_ns;
  };

  // An empty drive, or as its preconditioning leaves it. `device.physical.energy.power_step_ns` is
  // the step of the power series.
  //
  // Throws ConfigError or LimitError where a whole run would.
  explicit Live(const DeviceConfig& device, const Limits& limits = {});
  ~Live();
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  std::uint64_t sectors() const;  // of 512 bytes

  // The host puts a command into its queue at at_ns. A flush has no sectors.
  //
  // Throws ConfigError for sectors that the drive does not have.
  void submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors, std::uint64_t cookie,
              std::uint64_t at_ns);
  // Lets everything happen that happens up to until_ns, and appends what was completed, in order.
  //
  // Throws ModelError when the drive can do no more (no block can be freed).
  void advance(std::uint64_t until_ns, std::vector<Done>& done);
  // When something happens next if no command comes; UINT64_MAX: never.
  std::uint64_t next_event_ns() const;
  // Until when advance may wait without learning of a completion too late: a little later than the
  // next event, which costs fewer calls.
  std::uint64_t due_ns() const;
  std::uint64_t now_ns() const;
  std::uint64_t outstanding() const;
  bool active() const;  // commands or flash operations are under way

  // What the host sets. Throws ConfigError for a state that the table does not have.
  void set_power_state(std::uint32_t state, std::uint64_t at_ns);
  std::uint32_t power_state() const;
  void set_autonomous_transitions(const std::vector<PowerTransition>& moves, std::uint64_t at_ns);
  void set_write_cache(bool on);

  // Joules of each whole step of the power series since the last call; returns when the first began.
  std::uint64_t take_steps(std::vector<double>& joules);
  // What the drive has counted, since it was made.
  const DeviceResult& counts() const;

 private:
  void completed(std::uint32_t index, std::uint64_t done_ns) override;
  void advance_to(std::uint64_t at_ns);

  DeviceConfig config_;
  std::vector<FlowConfig> flows_;
  Control control_;
  std::unique_ptr<Device> device_;
  std::vector<std::uint64_t> cookies_;  // by the number of the request
  std::vector<Done> done_;              // not yet fetched
};

}  // namespace iojoule::sim::physical
