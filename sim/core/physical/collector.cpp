#include "collector.hpp"

#include <algorithm>
#include <bit>

namespace iojoule::sim::physical {

Collector::Collector(const DeviceConfig& device, const Layout& layout, Blocks& blocks,
                     const MappingTable& table)
    : layout_(layout),
      blocks_(blocks),
      table_(table),
      policy_(device.gc_policy),
      choices_(std::max(1U, static_cast<std::uint32_t>(std::bit_width(layout.blocks_per_plane)) - 1)),
      random_pp_valid_max_(static_cast<std::uint32_t>((1.0 - device.overprovisioning_ratio) *
                                                      layout.units_per_block)),
      level_wear_(device.wear_levelling_static),
      fold_when_full_(device.physical.slc.when_full == SlcWhenFull::fold),
      has_slc_(device.physical.slc.static_blocks_per_plane +
                   device.physical.slc.dynamic_blocks_per_plane >
               0),
      slc_static_(device.physical.slc.static_blocks_per_plane),
      wear_threshold_(device.wear_levelling_threshold),
      random_(static_cast<std::uint64_t>(device.seed)),
      jobs_(layout.planes) {}

bool Collector::consider(std::uint32_t plane) {
  if (active(plane)) return false;
  if (blocks_.free_blocks(plane) < blocks_.gc_threshold()) {
    if (has_slc_ && blocks_.slc_blocks(plane) > slc_static_ &&
        begin(plane, oldest_slc(plane, false), Emptying::folding)) {
      return true;
    }
    if (begin(plane, choose_victim(plane), Emptying::collection)) return true;
  }
  if (!has_slc_) return false;
  if (folding_) return begin(plane, oldest_slc(plane, false), Emptying::folding);
  if (blocks_.can_allocate(plane, Stream::slc)) return false;
  return begin(plane, oldest_slc(plane, !fold_when_full_), Emptying::folding);
}

bool Collector::begin(std::uint32_t plane, std::uint32_t block, Emptying kind) {
  if (block == none) return false;
  Job& job = jobs_[plane];
  ++jobs_active_;
  blocks_.make_victim(block);
  job.block = block;
  job.kind = kind;
  job.next_page = 0;
  job.erasing = false;
  job.moves.clear();
  job.moves_head = 0;
  if (job.moves.capacity() == 0) job.moves.reserve(layout_.units_per_page * 4U);
  return true;
}

Step Collector::next(std::uint32_t plane) {
  Job& job = jobs_[plane];
  if (job.block == none || job.erasing) return Step::nothing;
  skip_invalid(job);
  const std::size_t waiting = job.moves.size() - job.moves_head;
  job.next_page = valid_page(job);
  const bool all_read = job.next_page == blocks_.pages_used(job.block) && job.reads == 0;
  if (waiting >= layout_.units_per_page || (waiting > 0 && all_read)) {
    return blocks_.can_allocate(plane, Stream::moved) ? Step::program : Step::nothing;
  }
  if (job.next_page < blocks_.pages_used(job.block)) return Step::read;
  const bool idle = all_read && job.programs == 0 && blocks_.reads(job.block) == 0;
  return idle ? Step::erase : Step::nothing;
}

std::uint32_t Collector::valid_page(const Job& job) const {
  const std::uint32_t used = blocks_.pages_used(job.block);
  std::uint32_t page = job.next_page;
  for (; page < used; ++page) {
    const std::uint32_t first =
        (job.block * layout_.pages_per_block + page) * layout_.units_per_page;
    for (std::uint32_t i = 0; i < layout_.units_per_page; ++i) {
      if (table_.content(first + i) != 0) return page;
    }
  }
  return page;
}

std::uint32_t Collector::peek_read(std::uint32_t plane) const {
  return jobs_[plane].block * layout_.pages_per_block + jobs_[plane].next_page;
}

std::uint32_t Collector::begin_read(std::uint32_t plane, std::uint32_t& units) {
  Job& job = jobs_[plane];
  const std::uint32_t page = peek_read(plane);
  units = 0;
  for (std::uint32_t i = 0; i < layout_.units_per_page; ++i) {
    units += table_.content(page * layout_.units_per_page + i) != 0 ? 1 : 0;
  }
  ++job.next_page;
  ++job.reads;
  return page;
}

void Collector::read_done(std::uint32_t plane, std::uint32_t page) {
  Job& job = jobs_[plane];
  --job.reads;
  for (std::uint32_t i = 0; i < layout_.units_per_page; ++i) {
    const std::uint32_t from = page * layout_.units_per_page + i;
    const std::uint32_t content = table_.content(from);
    if (content != 0) job.moves.push_back({content, from});
  }
}

std::uint32_t Collector::begin_program(std::uint32_t plane, Move* moves) {
  Job& job = jobs_[plane];
  std::uint32_t count = 0;
  while (count < layout_.units_per_page && job.moves_head < job.moves.size()) {
    const Move move = job.moves[job.moves_head++];
    if (valid(move)) moves[count++] = move;
  }
  if (job.moves_head == job.moves.size()) {
    job.moves.clear();
    job.moves_head = 0;
  }
  ++job.programs;
  return count;
}

Emptying Collector::erase_done(std::uint32_t plane) {
  Job& job = jobs_[plane];
  job.block = none;
  --jobs_active_;
  const Emptying done = job.kind;
  if (consider(plane) || !level_wear_) return done;
  const std::uint32_t cold = coldest(plane);
  if (cold != none && blocks_.most_erases(plane) - blocks_.erases(cold) > wear_threshold_) {
    begin(plane, cold, Emptying::levelling);
  }
  return done;
}

void Collector::skip_invalid(Job& job) {
  while (job.moves_head < job.moves.size() && !valid(job.moves[job.moves_head])) ++job.moves_head;
}

bool Collector::collectable(std::uint32_t block) const {
  return blocks_.state(block) == BlockState::full && !blocks_.is_slc(block);
}

std::uint32_t Collector::choose_victim(std::uint32_t plane) {
  std::uint32_t block = none;
  switch (policy_) {
    case VictimPolicy::greedy: break;
    case VictimPolicy::fifo: block = oldest(plane); break;
    case VictimPolicy::rga: block = fewest_valid_of_random(plane); break;
    case VictimPolicy::random: block = random_full(plane, layout_.units_per_block); break;
    case VictimPolicy::random_p: block = random_full(plane, layout_.units_per_block - 1); break;
    case VictimPolicy::random_pp: block = random_full(plane, random_pp_valid_max_); break;
  }
  // Whatever the policy, a plane that is running out takes what frees most. A victim must free a
  // page at least, because the last page that is moved may stay partly empty.
  const bool urgent = blocks_.free_blocks(plane) <= blocks_.gc_hard_threshold();
  const auto frees_nothing = [&] {
    return blocks_.valid(block) + layout_.units_per_page > layout_.units_per_block;
  };
  if (!urgent && blocks_.reclaimable_units(plane) < 2 * layout_.units_per_block) return none;
  if (block == none || (urgent && frees_nothing())) block = greedy(plane);
  return block == none || frees_nothing() ? none : block;
}

std::uint32_t Collector::greedy(std::uint32_t plane) const {
  std::uint32_t best = none;
  const std::uint32_t first = blocks_.first_block(plane);
  for (std::uint32_t i = first; i < first + blocks_.blocks_per_plane(); ++i) {
    if (collectable(i) && (best == none || blocks_.valid(i) < blocks_.valid(best))) best = i;
  }
  return best;
}

std::uint32_t Collector::oldest(std::uint32_t plane) const {
  std::uint32_t best = none;
  const std::uint32_t first = blocks_.first_block(plane);
  for (std::uint32_t i = first; i < first + blocks_.blocks_per_plane(); ++i) {
    if (collectable(i) && (best == none || blocks_.filled_order(i) < blocks_.filled_order(best))) {
      best = i;
    }
  }
  return best;
}

std::uint32_t Collector::oldest_slc(std::uint32_t plane, bool only_empty) const {
  if (blocks_.slc_blocks(plane) == 0 || (only_empty && blocks_.slc_empty(plane) == 0)) return none;
  std::uint32_t best = none;
  const std::uint32_t first = blocks_.first_block(plane);
  for (std::uint32_t i = first; i < first + blocks_.blocks_per_plane(); ++i) {
    if (blocks_.state(i) != BlockState::full || !blocks_.is_slc(i)) continue;
    if (only_empty && blocks_.valid(i) > 0) continue;
    if (best == none || blocks_.filled_order(i) < blocks_.filled_order(best)) best = i;
  }
  return best;
}

std::uint32_t Collector::coldest(std::uint32_t plane) const {
  std::uint32_t best = none;
  const std::uint32_t first = blocks_.first_block(plane);
  for (std::uint32_t i = first; i < first + blocks_.blocks_per_plane(); ++i) {
    if (collectable(i) && (best == none || blocks_.erases(i) < blocks_.erases(best))) best = i;
  }
  return best;
}

std::uint32_t Collector::random_full(std::uint32_t plane, std::uint32_t valid_max) {
  // Nearly every block is full when collection runs, so a few draws do.
  constexpr int draws_max = 256;
  const std::uint32_t first = blocks_.first_block(plane);
  for (int draw = 0; draw < draws_max; ++draw) {
    const std::uint32_t block = first + random_.below(blocks_.blocks_per_plane());
    if (collectable(block) && blocks_.valid(block) <= valid_max) return block;
  }
  return none;
}

std::uint32_t Collector::fewest_valid_of_random(std::uint32_t plane) {
  std::uint32_t best = none;
  for (std::uint32_t draw = 0; draw < choices_; ++draw) {
    const std::uint32_t block = random_full(plane, layout_.units_per_block);
    if (block == none) return best;
    if (best == none || blocks_.valid(block) < blocks_.valid(best)) best = block;
  }
  return best;
}

}  // namespace iojoule::sim::physical
