// The simulator's live device as a model of the lab's drive.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config.hpp"
#include "model.hpp"
#include "physical/live.hpp"

namespace iojoule::lab {

class Simulated final : public Model {
 public:
  // Throws sim::ConfigError or sim::LimitError.
  Simulated(const sim::DeviceConfig& device, std::uint64_t step_ns);

  std::uint64_t sectors() const override { return live_->sectors(); }
  std::uint32_t blocks() const override;
  std::uint32_t erase_cycles_limit() const override { return config_.pe_cycles_limit; }
  void submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors, std::uint64_t cookie,
              std::uint64_t at_ns) override;
  void advance(std::uint64_t until_ns, std::vector<Done>& done) override;
  std::uint64_t due_ns() const override { return live_->due_ns(); }
  std::uint64_t now_ns() const override { return live_->now_ns(); }
  bool active() const override { return live_->active(); }
  void set_power_state(std::uint32_t state, std::uint64_t at_ns) override;
  std::uint32_t power_state() const override { return live_->power_state(); }
  void set_transitions(const std::vector<sim::PowerTransition>& moves,
                       std::uint64_t at_ns) override;
  void set_write_cache(bool on) override;
  void take_steps(std::vector<double>& joules) override { live_->take_steps(joules); }
  Work work() const override;
  void format() override;

 private:
  sim::DeviceConfig config_;
  std::unique_ptr<sim::physical::Live> live_;
  std::vector<sim::physical::Live::Done> done_;
  bool write_cache_ = true;
  std::uint32_t operational_;
};

}  // namespace iojoule::lab
