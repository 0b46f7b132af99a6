// What a fitted profile says, as a table: latency, watts and the spread of latencies by operation,
// pattern, power state, request size and requests in flight. measure/lab/rehearsal.py writes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "record.hpp"

namespace iojoule::lab {

enum class Pattern : std::uint8_t { random, sequential };

// One size of request, by the place of the requests in flight in ProfileTable::in_flight.
struct ProfileLine {
  std::vector<double> log_latency_ns, watts;
};

class ProfileTable {
 public:
  static constexpr const char* first_word = "iojoule-lab-profile";

  struct State {
    bool operational = true;
    std::uint64_t entry_ns = 0, exit_ns = 0;
    double idle_watts = 0;
  };

  // Throws std::runtime_error for what it cannot read.
  static ProfileTable read(const std::string& text);

  // At that size; between two sizes of the table by the line in log-log coordinates.
  ProfileLine line(RequestKind kind, Pattern pattern, std::uint32_t state, double bytes) const;
  // Where so many requests lie among in_flight: between entry and entry + 1, so far on.
  struct Place {
    std::size_t entry;
    double part;
  };
  Place place(double requests) const;
  // The latency at a quantile over the mean latency.
  double spread(RequestKind kind, Pattern pattern, std::uint32_t state, double bytes,
                double requests, double quantile) const;
  double mixed_factor(Pattern pattern) const { return mixed_[static_cast<std::size_t>(pattern)]; }

  std::uint64_t sectors = 0, kept_bytes = 0, largest_bytes = 0;
  std::uint64_t other_ns = 0;      // a flush or a trim
  double busy_base_watts = 0;      // what is drawn beyond it follows the rate
  std::vector<State> states;

 private:
  struct Surface {
    std::vector<double> log_latency_ns, watts, spread;  // by size, then requests in flight
  };

  const Surface& surface(RequestKind kind, Pattern pattern, std::uint32_t state) const {
    return surfaces_[(state * 2 + (kind == RequestKind::write ? 1 : 0)) * 2 +
                     static_cast<std::size_t>(pattern)];
  }
  static Place find(const std::vector<double>& logs, double value);

  std::array<double, 2> mixed_{1, 1};
  // logarithms to base 2, increasing
  std::vector<double> in_flight_, bytes_, spread_in_flight_;
  std::vector<double> quantiles_;
  std::vector<Surface> surfaces_;
};

}  // namespace iojoule::lab
