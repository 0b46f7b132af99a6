// What decides when the lab's drive completes a command and what it draws: a simulated device, or
// a table made of a fitted profile. Behind it all else is the same (drive.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include "record.hpp"

namespace iojoule::lab {

inline constexpr std::uint64_t never_ns = UINT64_MAX;
inline constexpr std::uint64_t sector_bytes = 512;

// Times are in ns from the making of the model and never go back: what is asked for at an earlier
// time than the last counts at the last.
class Model {
 public:
  struct Done {
    std::uint64_t cookie, done_ns;
  };
  // What the drive counts of its own work, since it was made or formatted.
  struct Work {
    std::uint64_t programmed_pages = 0, erased_blocks = 0, throttled_ns = 0;
  };

  Model() = default;
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual std::uint64_t sectors() const = 0;
  // So many bytes of what is written are remembered; for a drive larger than the machine's memory.
  virtual std::uint64_t kept_bytes() const { return UINT64_MAX; }
  virtual std::uint32_t blocks() const { return 1; }
  virtual std::uint32_t erase_cycles_limit() const { return 1; }

  virtual void submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors,
                      std::uint64_t cookie, std::uint64_t at_ns) = 0;
  // Lets everything happen that happens up to until_ns, and appends what was completed, in order.
  virtual void advance(std::uint64_t until_ns, std::vector<Done>& done) = 0;
  // When advance has something to do if no command comes; never_ns: never.
  virtual std::uint64_t due_ns() const = 0;
  virtual std::uint64_t now_ns() const = 0;
  virtual bool active() const = 0;  // it works, be it for the host or on its own

  // Throws sim::ConfigError for a state that the drive does not have.
  virtual void set_power_state(std::uint32_t state, std::uint64_t at_ns) = 0;
  virtual std::uint32_t power_state() const = 0;
  virtual void set_transitions(const std::vector<sim::PowerTransition>& moves,
                               std::uint64_t at_ns) = 0;
  virtual void set_write_cache(bool on) = 0;

  // Joules of each whole step since the last call.
  virtual void take_steps(std::vector<double>& joules) = 0;
  virtual Work work() const = 0;

  // What was under way is forgotten, the drive is empty, and time begins anew.
  virtual void format() = 0;
};

// The drive in a file, one of write_drive_text or of a profile; joules come in steps of step_ns.
// Throws sim::ConfigError or std::runtime_error.
std::unique_ptr<Model> read_model(const std::string& path, std::uint64_t step_ns);

}  // namespace iojoule::lab
