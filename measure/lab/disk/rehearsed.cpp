#include "rehearsed.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "error.hpp"

namespace iojoule::lab {

namespace {

// A read and a write are interleaved when both were among so many commands.
constexpr std::uint64_t mix_commands = 32;

// Quantiles one after the other that fill 0 to 1 evenly, so that means settle soon.
double quantile(std::uint64_t number) {
  constexpr double golden = 0.6180339887498949;
  const double far = static_cast<double>(number % (1ULL << 32U)) * golden;
  return far - std::floor(far);
}

constexpr double rounding = 1e-9;

}  // namespace

// --- streams ---------------------------------------------------------------------------------------

Pattern Streams::seen(std::uint64_t sector, std::uint32_t sectors) {
  ++clock_;
  const std::uint64_t end = sector + sectors, near = slack * sectors;
  Head* oldest = heads_.data();
  for (Head& head : heads_) {
    if (head.end != UINT64_MAX && sector + near >= head.end && sector <= head.end + near) {
      head.end = std::max(head.end, end);
      head.used = clock_;
      return ++head.in_a_row > enough ? Pattern::sequential : Pattern::random;
    }
    if (head.used < oldest->used) oldest = &head;
  }
  *oldest = {end, clock_, 1};
  return Pattern::random;
}

// --- requests --------------------------------------------------------------------------------------

Rehearsed::Rehearsed(ProfileTable table, std::uint64_t step_ns)
    : table_(std::move(table)), step_ns_(step_ns) {
  refresh();
}

void Rehearsed::submit(RequestKind operation, std::uint64_t sector, std::uint32_t sectors,
                       std::uint64_t cookie, std::uint64_t at_ns) {
  go_to(at_ns);
  if (!table_.states[state_].operational) {
    ready_ns_ = std::max(ready_ns_, now_ns_) + table_.states[state_].exit_ns;
    enter(operational_);
  }
  if (operation == RequestKind::trim || operation == RequestKind::flush) {
    others_.push_back({cookie, std::max(now_ns_, ready_ns_) + table_.other_ns});
    refresh();
    return;
  }
  const auto direction = static_cast<std::size_t>(operation == RequestKind::write);
  last_of_[direction] = ++submitted_;
  Kind& kind = kind_of(operation, streams_.seen(sector, sectors), sectors);
  in_flight_ += kind.commands;
  const double factor = table_.spread(operation, kind.pattern, state_, bytes_of(kind), in_flight_,
                                      quantile(submitted_));
  kind.requests.push({kind.progress + factor, cookie});
  refresh();
}

Rehearsed::Kind& Rehearsed::kind_of(RequestKind operation, Pattern pattern, std::uint32_t sectors) {
  for (Kind& kind : kinds_) {
    if (kind.operation == operation && kind.pattern == pattern && kind.sectors == sectors) {
      return kind;
    }
  }
  const std::uint64_t bytes = sectors * sector_bytes;
  const auto commands =
      static_cast<std::uint32_t>((bytes + table_.largest_bytes - 1) / table_.largest_bytes);
  Kind& kind = kinds_.emplace_back(Kind{operation, pattern, sectors, commands, {}, {}, {}, {}, {}});
  kind.line = table_.line(operation, pattern, state_, bytes_of(kind));
  return kind;
}

double Rehearsed::bytes_of(const Kind& kind) const {
  return static_cast<double>(kind.sectors * sector_bytes) / kind.commands;
}

bool Rehearsed::interleaved() const {
  const auto& [read, write] = last_of_;
  return read > 0 && write > 0 && std::min(read, write) + mix_commands > submitted_;
}

void Rehearsed::refresh() {
  watts_ = table_.states[state_].idle_watts;
  if (in_flight_ == 0 || now_ns_ < ready_ns_) return;
  const ProfileTable::Place place = table_.place(in_flight_);
  const bool mixed = interleaved();
  double busy_watts = 0;
  for (Kind& kind : kinds_) {
    const auto at = [&](const std::vector<double>& values) {
      return values[place.entry] + (values[place.entry + 1] - values[place.entry]) * place.part;
    };
    const double slower = mixed ? table_.mixed_factor(kind.pattern) : 1;
    kind.latency_ns = std::exp(at(kind.line.log_latency_ns)) * slower;
    const double beyond = at(kind.line.watts) - table_.busy_base_watts;
    const double share =
        static_cast<double>(kind.requests.size()) * kind.commands / in_flight_;
    busy_watts += share * (table_.busy_base_watts + beyond / slower);
  }
  watts_ = busy_watts;
}

// --- time ------------------------------------------------------------------------------------------

void Rehearsed::spend(std::uint64_t until_ns) {
  std::uint64_t at_ns = now_ns_;
  while (at_ns < until_ns) {
    const std::uint64_t step_end_ns = (at_ns / step_ns_ + 1) * step_ns_;
    const std::uint64_t next_ns = std::min(step_end_ns, until_ns);
    step_joules_ += watts_ * static_cast<double>(next_ns - at_ns) * 1e-9;
    if (next_ns == step_end_ns) {
      steps_.push_back(step_joules_);
      step_joules_ = 0;
    }
    at_ns = next_ns;
  }
}

void Rehearsed::pass(std::uint64_t at_ns) {
  if (at_ns <= now_ns_) return;
  spend(at_ns);
  if (now_ns_ >= ready_ns_) {
    const auto passed_ns = static_cast<double>(at_ns - now_ns_);
    for (Kind& kind : kinds_) kind.progress += passed_ns / kind.latency_ns;
  }
  now_ns_ = at_ns;
}

std::uint64_t Rehearsed::due_ns() const { return finished_.empty() ? next_ns() : now_ns_; }

std::uint64_t Rehearsed::next_ns() const {
  std::uint64_t due = never_ns;
  for (const Done& other : others_) due = std::min(due, other.done_ns);
  if (in_flight_ > 0 && now_ns_ < ready_ns_) return std::min(due, ready_ns_);
  for (const Kind& kind : kinds_) {
    const double left = std::max(0.0, kind.requests.top().end - kind.progress);
    due = std::min(due, now_ns_ + static_cast<std::uint64_t>(std::ceil(left * kind.latency_ns)));
  }
  if (idle()) {
    if (next_state_ != state_) return now_ns_;
    for (const sim::PowerTransition& move : moves_) {
      if (move.from_state == state_) {
        due = std::min(due, std::max(now_ns_, rest_since_ns_ + move.idle_ns));
      }
    }
  }
  return due;
}

void Rehearsed::happen() {
  if (idle()) {
    if (next_state_ != state_) {
      enter(next_state_);
      return;
    }
    for (const sim::PowerTransition& move : moves_) {
      if (move.from_state == state_ && rest_since_ns_ + move.idle_ns <= now_ns_) {
        ready_ns_ = now_ns_ + table_.states[move.to_state].entry_ns;
        enter(move.to_state);
        return;
      }
    }
  }
  std::erase_if(others_, [&](const Done& other) {
    if (other.done_ns > now_ns_) return false;
    finished_.push_back({other.cookie, now_ns_});
    return true;
  });
  if (now_ns_ >= ready_ns_) {
    for (Kind& kind : kinds_) {
      while (!kind.requests.empty() &&
             kind.requests.top().end <= kind.progress * (1 + rounding) + rounding) {
        finished_.push_back({kind.requests.top().cookie, now_ns_});
        kind.requests.pop();
        in_flight_ -= kind.commands;
      }
    }
    std::erase_if(kinds_, [](const Kind& kind) { return kind.requests.empty(); });
  }
  if (idle()) rest_since_ns_ = now_ns_;
}

void Rehearsed::go_to(std::uint64_t until_ns) {
  for (std::uint64_t due = next_ns(); due <= until_ns; due = next_ns()) {
    pass(due);
    happen();
    refresh();
  }
  pass(until_ns);
}

void Rehearsed::advance(std::uint64_t until_ns, std::vector<Done>& done) {
  go_to(until_ns);
  done.insert(done.end(), finished_.begin(), finished_.end());
  finished_.clear();
}

void Rehearsed::take_steps(std::vector<double>& joules) {
  joules.insert(joules.end(), steps_.begin(), steps_.end());
  steps_.clear();
}

// --- the controller's side -------------------------------------------------------------------------

void Rehearsed::enter(std::uint32_t state) {
  state_ = next_state_ = state;
  rest_since_ns_ = now_ns_;
  if (table_.states[state].operational) {
    operational_ = state;
    for (Kind& kind : kinds_) {
      kind.line = table_.line(kind.operation, kind.pattern, state, bytes_of(kind));
    }
  }
  refresh();
}

void Rehearsed::set_power_state(std::uint32_t state, std::uint64_t at_ns) {
  if (state >= table_.states.size()) {
    throw sim::ConfigError("power_state", "the drive has no state " + std::to_string(state));
  }
  go_to(at_ns);
  if (state == state_) {
    next_state_ = state;
    return;
  }
  if (!table_.states[state].operational && !idle()) {
    next_state_ = state;  // as soon as there is nothing to do
    return;
  }
  ready_ns_ = std::max(ready_ns_, now_ns_) + table_.states[state_].exit_ns +
              table_.states[state].entry_ns;
  enter(state);
}

void Rehearsed::set_transitions(const std::vector<sim::PowerTransition>& moves,
                                std::uint64_t at_ns) {
  go_to(at_ns);
  for (const sim::PowerTransition& move : moves) {
    if (std::max(move.from_state, move.to_state) >= table_.states.size()) {
      throw sim::ConfigError("autonomous_transitions", "names a state that the drive has not");
    }
  }
  moves_ = moves;
}

void Rehearsed::format() {
  kinds_.clear();
  others_.clear();
  finished_.clear();
  streams_.forget();
  steps_.clear();
  in_flight_ = step_joules_ = 0;
  now_ns_ = ready_ns_ = rest_since_ns_ = 0;
  last_of_ = {};
  enter(operational_);
}

}  // namespace iojoule::lab
