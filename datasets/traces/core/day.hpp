// A synthetic day of many volumes as a stream of requests; what it means stands in day.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace iojoule::traces {

// The same for all volumes, in slots of a second.
struct DayConfig {
  std::uint64_t seed = 1;
  double slots = 86400;
  double slots_per_minute = 60;    // of the day; fewer in fast motion
  double steady_share = 0.4;       // of a volume's requests; the others come in bursts
  double burst_slots = 4;          // mean length of a burst
  double sequential_share = 0.2;   // requests that begin where the volume's last one ended
  double gap_cv = 2.5;             // of the gaps of all volumes together within a slot
  std::vector<double> minutes;     // load of each minute of the day, mean 1
  std::vector<double> rate;        // of each volume, requests/s
  std::vector<double> burst_time;  // share of the slots in which it bursts
  std::vector<double> write_share;
  std::vector<std::uint64_t> blocks;  // its size in blocks of 4 KiB
  std::vector<std::uint64_t> sizes;   // of requests, bytes
  std::vector<double> read_odds, write_odds;  // of the sizes
};

struct Requests {
  std::span<std::int64_t> arrival_ns, offset_bytes, size_bytes;
  std::span<std::uint8_t> is_write;
  std::span<std::uint32_t> volume;
};

class Day {
 public:
  explicit Day(DayConfig config);
  // Fills the arrays; fewer than asked only at the end of the day.
  std::size_t next(const Requests& into);
  // Expected requests in the busiest second from here on. No request can be drawn afterwards.
  double busiest_second();

 private:
  struct Choice {  // of the alias method (Walker; Vose 1991): one draw, one comparison
    std::uint32_t threshold, other;
  };
  struct Volume {
    std::uint64_t first_block, blocks, next_offset;
    std::uint32_t write_threshold;
    bool bursts;
  };

  std::uint64_t draw();
  double uniform();
  double next_rate();
  void start_slot();
  static void build(const std::vector<double>& odds, std::vector<Choice>& choices);
  static std::uint32_t pick(const std::vector<Choice>& choices, std::uint64_t random);

  DayConfig config_;
  std::uint64_t state_[4];
  std::vector<Choice> volume_choices_, read_choices_, write_choices_;
  std::vector<double> weights_;
  std::vector<Volume> volumes_;
  std::vector<double> gaps_;  // quantiles of a gap whose mean is 1
  double slot_ = -1, time_s_ = 0, mean_gap_s_ = 0;
  std::uint32_t sequential_threshold_;
};

}  // namespace iojoule::traces
