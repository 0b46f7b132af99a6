// A model of the lab's drive that behaves as a fitted profile says (docs/lab.md, "A rehearsal").
//
// All requests in flight are served at once. With n of them, each goes on at the pace at which it
// would take the profile's mean latency at n, times a factor of its own whose mean is 1: so n in
// flight complete at the profile's rate (Little's law), requests of several kinds take turns as the
// profile assumes, and latencies spread as it says.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "model.hpp"
#include "profile_table.hpp"

namespace iojoule::lab {

// Tells sequential commands from random ones: so many in a row, each near the end of the last.
class Streams {
 public:
  Pattern seen(std::uint64_t sector, std::uint32_t sectors);
  void forget() { heads_ = {}; }

 private:
  struct Head {
    std::uint64_t end = UINT64_MAX, used = 0;
    std::uint32_t in_a_row = 0;
  };
  // more than one large random request is split into
  static constexpr std::uint32_t enough = 8;
  // commands may overtake each other by so many
  static constexpr std::uint64_t slack = 8;

  std::array<Head, 16> heads_{};
  std::uint64_t clock_ = 0;
};

class Rehearsed final : public Model {
 public:
  Rehearsed(ProfileTable table, std::uint64_t step_ns);

  std::uint64_t sectors() const override { return table_.sectors; }
  std::uint64_t kept_bytes() const override { return table_.kept_bytes; }
  void submit(RequestKind kind, std::uint64_t sector, std::uint32_t sectors, std::uint64_t cookie,
              std::uint64_t at_ns) override;
  void advance(std::uint64_t until_ns, std::vector<Done>& done) override;
  std::uint64_t due_ns() const override;
  std::uint64_t now_ns() const override { return now_ns_; }
  bool active() const override { return !idle(); }
  void set_power_state(std::uint32_t state, std::uint64_t at_ns) override;
  std::uint32_t power_state() const override { return state_; }
  void set_transitions(const std::vector<sim::PowerTransition>& moves,
                       std::uint64_t at_ns) override;
  void set_write_cache(bool) override {}  // the profile holds for the cache as it was measured
  void take_steps(std::vector<double>& joules) override;
  Work work() const override { return {}; }
  void format() override;

 private:
  struct Request {
    double end;  // when its kind's progress is there, it is done
    std::uint64_t cookie;
    bool operator>(const Request& other) const { return end > other.end; }
  };
  // Requests that are alike, and how far each has come since the first began.
  struct Kind {
    RequestKind operation;
    Pattern pattern;
    std::uint32_t sectors, commands;  // a request beyond the largest command counts as several
    ProfileLine line;
    double progress = 0, latency_ns = 0, watts = 0;
    std::priority_queue<Request, std::vector<Request>, std::greater<>> requests;
  };

  bool idle() const { return in_flight_ == 0 && others_.empty(); }
  Kind& kind_of(RequestKind operation, Pattern pattern, std::uint32_t sectors);
  double bytes_of(const Kind& kind) const;
  // After requests in flight, power state or mix have changed: paces and watts.
  void refresh();
  void pass(std::uint64_t at_ns);      // time, in which nothing changes
  void spend(std::uint64_t until_ns);  // joules up to then
  void happen();                       // what is due now
  void go_to(std::uint64_t until_ns);  // with all that happens on the way
  std::uint64_t next_ns() const;       // when something happens next
  void enter(std::uint32_t state);
  bool interleaved() const;

  ProfileTable table_;
  std::uint64_t step_ns_;
  std::uint64_t now_ns_ = 0, ready_ns_ = 0, rest_since_ns_ = 0;
  std::vector<Kind> kinds_;
  std::vector<Done> others_;    // flushes and trims, to be done at their time
  std::vector<Done> finished_;  // not yet fetched
  Streams streams_;
  std::uint64_t submitted_ = 0;
  std::array<std::uint64_t, 2> last_of_{};  // number of the last read, of the last write; 0: none
  double in_flight_ = 0, watts_ = 0;
  std::uint32_t state_ = 0, operational_ = 0, next_state_ = 0;
  std::vector<sim::PowerTransition> moves_;
  std::vector<double> steps_;
  double step_joules_ = 0;  // of the step that has begun
};

}  // namespace iojoule::lab
