// Empties blocks: garbage collection, static wear levelling, folding of the pseudo-SLC cache.
#pragma once

#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "blocks.hpp"
#include "layout.hpp"
#include "mapping_table.hpp"

namespace iojoule::sim::physical {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, seeded, the same on every machine.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  // Uniform over 0 .. bound - 1 (Lemire's multiplication; the bias is below 2^-32).
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32U) * bound) >> 32U);
  }
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

enum class Emptying : std::uint8_t { collection, levelling, folding };

// What a plane's job needs next from its die.
enum class Step : std::uint8_t { nothing, read, program, erase };

// One valid unit on its way: it counts only if it still lies where it was read.
struct Move {
  std::uint32_t content, from;
};

// At most one block per plane is being emptied. Its valid pages are read, their valid units packed
// into pages of the stream of moved data, and when all of them are programmed and no read is under
// way on it, it is erased. Until its program is done a unit is found at its old place.
class Collector {
 public:
  Collector(const DeviceConfig& device, const Layout& layout, Blocks& blocks,
            const MappingTable& table);

  // Begins a job if the plane needs one and has none; true if it begins.
  bool consider(std::uint32_t plane);
  // While the host is idle the pseudo-SLC cache is folded.
  void set_folding(bool folding) { folding_ = folding; }
  bool folding() const { return folding_; }
  // Whether the plane has something to fold.
  bool has_foldable(std::uint32_t plane) const { return oldest_slc(plane, false) != none; }

  std::uint32_t jobs_active() const { return jobs_active_; }
  bool active(std::uint32_t plane) const { return jobs_[plane].block != none; }
  Emptying kind(std::uint32_t plane) const { return jobs_[plane].kind; }
  std::uint32_t victim(std::uint32_t plane) const { return jobs_[plane].block; }
  Step next(std::uint32_t plane);

  // The page that `read` means, and how many of its units are valid.
  std::uint32_t begin_read(std::uint32_t plane, std::uint32_t& units);
  std::uint32_t peek_read(std::uint32_t plane) const;
  void read_done(std::uint32_t plane, std::uint32_t page);
  // Fills `moves` with up to a page of units for `program`; how many.
  std::uint32_t begin_program(std::uint32_t plane, Move* moves);
  void program_done(std::uint32_t plane) { --jobs_[plane].programs; }
  void begin_erase(std::uint32_t plane) { jobs_[plane].erasing = true; }
  // The job ends; what it was.
  Emptying erase_done(std::uint32_t plane);

 private:
  struct Job {
    std::uint32_t block = none;
    std::uint32_t next_page = 0, reads = 0, programs = 0;
    std::uint32_t moves_head = 0;
    Emptying kind = Emptying::collection;
    bool erasing = false;
    std::vector<Move> moves;
  };

  bool begin(std::uint32_t plane, std::uint32_t block, Emptying kind);
  std::uint32_t choose_victim(std::uint32_t plane);
  std::uint32_t greedy(std::uint32_t plane) const;
  std::uint32_t oldest(std::uint32_t plane) const;
  std::uint32_t oldest_slc(std::uint32_t plane, bool only_empty) const;
  std::uint32_t coldest(std::uint32_t plane) const;
  std::uint32_t random_full(std::uint32_t plane, std::uint32_t valid_max);
  std::uint32_t fewest_valid_of_random(std::uint32_t plane);
  bool collectable(std::uint32_t block) const;
  bool valid(const Move& move) const { return table_.content(move.from) == move.content; }
  void skip_invalid(Job& job);
  std::uint32_t valid_page(const Job& job) const;

  const Layout& layout_;
  Blocks& blocks_;
  const MappingTable& table_;
  VictimPolicy policy_;
  std::uint32_t choices_;
  std::uint32_t random_pp_valid_max_;
  bool level_wear_, fold_when_full_, has_slc_, folding_ = false;
  std::uint32_t slc_static_, wear_threshold_, jobs_active_ = 0;
  SplitMix random_;
  std::vector<Job> jobs_;
};

}  // namespace iojoule::sim::physical
