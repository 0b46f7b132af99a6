// Joules by component and watts over time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../error.hpp"
#include "../result.hpp"

namespace iojoule::sim::physical {

enum class Component : std::uint8_t {
  array_read, array_program, array_erase, channel, dram, controller, link
};
inline constexpr std::size_t component_count = 7;

enum class ArrayWork : std::uint8_t { read, program, erase };
enum class Origin : std::uint8_t { user, collection, mapping };
inline constexpr std::uint32_t slc_page = 3;  // beside the page kinds 0 to 2 of a layout

// What the drive draws whether or not it does anything, by component.
struct StaticWatts {
  double controller = 0, dram = 0, link = 0;
  double total() const { return controller + dram + link; }
};

class EnergyMeter {
 public:
  static constexpr std::size_t steps_max = std::size_t{1} << 24;  // 128 MiB

  explicit EnergyMeter(std::uint64_t power_step_ns) : step_ns_(power_step_ns) {}

  // Spent evenly over [start_ns, end_ns); what lies before the measured part is left out.
  void spend(Component component, double joules, std::uint64_t start_ns, std::uint64_t end_ns) {
    if (joules == 0) return;
    if (start_ns < from_ns_) {
      if (end_ns <= from_ns_) return;
      joules *= static_cast<double>(end_ns - from_ns_) / static_cast<double>(end_ns - start_ns);
      start_ns = from_ns_;
    }
    joules_[static_cast<std::size_t>(component)] += joules;
    if (step_ns_ != 0) draw(joules, start_ns, end_ns);
  }

  // One page or block more that the arrays work on, and what it takes from begin to end.
  void count(ArrayWork work, std::uint32_t page, Origin origin, double joules) {
    const std::size_t index = (static_cast<std::size_t>(work) * flash_pages + page) *
                                  flash_origins + static_cast<std::size_t>(origin);
    ++flash_.counts[index];
    flash_.joules[index] += joules;
  }

  // Everything up to now_ns was drawn at the present watts; from now on at `watts`.
  void set_static(std::uint64_t now_ns, const StaticWatts& watts) {
    settle(now_ns);
    watts_ = watts;
  }
  const StaticWatts& static_watts() const { return watts_; }

  // Brings the static part up to now_ns.
  void settle(std::uint64_t now_ns) {
    if (now_ns <= settled_ns_) return;
    const double seconds = static_cast<double>(now_ns - settled_ns_) * 1e-9;
    spend(Component::controller, watts_.controller * seconds, settled_ns_, now_ns);
    spend(Component::dram, watts_.dram * seconds, settled_ns_, now_ns);
    spend(Component::link, watts_.link * seconds, settled_ns_, now_ns);
    static_joules_.controller += watts_.controller * seconds;
    static_joules_.dram += watts_.dram * seconds;
    static_joules_.link += watts_.link * seconds;
    settled_ns_ = now_ns;
  }

  // Forgets what was spent so far: the end of the warm-up.
  void restart(std::uint64_t now_ns) {
    settle(now_ns);
    from_ns_ = series_from_ns_ = now_ns;
    joules_.fill(0);
    static_joules_ = {};
    flash_ = {};
    step_joules_.clear();
  }

  // To be called once, after settle at the run's end.
  EnergyResult joules() const {
    const auto of = [this](Component c) { return joules_[static_cast<std::size_t>(c)]; };
    return {of(Component::array_read), of(Component::array_program), of(Component::array_erase),
            of(Component::channel), of(Component::dram), of(Component::controller),
            of(Component::link), static_joules_.controller, static_joules_.dram,
            static_joules_.link, flash_};
  }

  // Mean watts of every step up to end_ns; the last one may be shorter than a step. It takes what a
  // transfer draws that outlasts the run.
  std::vector<double> series_watts(std::uint64_t end_ns) const {
    std::vector<double> watts(step_joules_);
    if (watts.empty()) return watts;
    const std::uint64_t length_ns = std::max<std::uint64_t>(end_ns - series_from_ns_, 1);
    const std::size_t steps = (length_ns - 1) / step_ns_ + 1;
    for (; watts.size() > steps; watts.pop_back()) watts[watts.size() - 2] += watts.back();
    for (std::size_t i = 0; i < watts.size(); ++i) {
      watts[i] /= static_cast<double>(std::min(step_ns_, length_ns - i * step_ns_)) * 1e-9;
    }
    return watts;
  }

  // Takes the joules of the whole steps before now_ns out of the series and appends them to `joules`;
  // returns where the first of them begins. To be called after settle: what a later `spend` still
  // draws from before now_ns counts in the first step that is left.
  std::uint64_t take_steps(std::uint64_t now_ns, std::vector<double>& joules) {
    const std::uint64_t first_ns = series_from_ns_;
    if (step_ns_ == 0 || now_ns < first_ns) return first_ns;
    const std::size_t count = (now_ns - first_ns) / step_ns_;
    if (count > step_joules_.size()) step_joules_.resize(count);
    const auto end = step_joules_.begin() + static_cast<std::ptrdiff_t>(count);
    joules.insert(joules.end(), step_joules_.begin(), end);
    step_joules_.erase(step_joules_.begin(), end);
    series_from_ns_ += count * step_ns_;
    return first_ns;
  }

 private:
  void draw(double joules, std::uint64_t start_ns, std::uint64_t end_ns) {
    start_ns = std::max(start_ns, series_from_ns_);
    end_ns = std::max(start_ns, end_ns);
    std::size_t index = (start_ns - series_from_ns_) / step_ns_;
    const std::size_t last = end_ns > start_ns ? (end_ns - 1 - series_from_ns_) / step_ns_ : index;
    reach(last);
    if (index == last) {
      step_joules_[index] += joules;
      return;
    }
    const double per_ns = joules / static_cast<double>(end_ns - start_ns);
    std::uint64_t at_ns = start_ns;
    for (; index <= last; ++index) {
      const std::uint64_t until_ns = std::min(end_ns, series_from_ns_ + (index + 1) * step_ns_);
      step_joules_[index] += per_ns * static_cast<double>(until_ns - at_ns);
      at_ns = until_ns;
    }
  }

  void reach(std::size_t index) {
    if (index < step_joules_.size()) return;
    if (index >= steps_max) {
      throw ConfigError("physical.energy.power_step_ns",
                        "a step of " + std::to_string(step_ns_) + " ns needs more than " +
                            std::to_string(steps_max) + " steps for this run; choose a longer one");
    }
    step_joules_.resize(index + 1);
  }

  std::uint64_t step_ns_, from_ns_ = 0, settled_ns_ = 0;
  std::uint64_t series_from_ns_ = 0;  // where step_joules_ begins: from_ns_, unless steps were taken
  StaticWatts watts_;
  StaticWatts static_joules_;  // W x s since from_ns_
  FlashWork flash_;
  std::array<double, component_count> joules_{};
  std::vector<double> step_joules_;
};

}  // namespace iojoule::sim::physical
