// Garbage collection and wear levelling, with the faults that MQSim's have (mqsim.md, 3.8).
#include <algorithm>
#include <bit>
#include <string>

#include "../error.hpp"
#include "device.hpp"

namespace iojoule::sim::compat {

namespace {
// Collections of a plane under way at once; also the free blocks below which its writes stop.
constexpr std::uint32_t collections_at_once = 10;
// Erase counts may differ by this much, says MQSim whatever its configuration says.
constexpr std::uint32_t wear_levelling_threshold = 100;
}  // namespace

std::uint32_t Device::collection_threshold() const {
  const auto threshold = static_cast<std::uint32_t>(config_.gc_threshold * geometry_.blocks_per_plane);
  return std::max(threshold, collections_at_once);
}

bool Device::writes_stopped(std::uint32_t plane) const {
  return blocks_.free_blocks(plane) < collections_at_once;
}

// --- barriers: logical pages that are being moved ---------------------------------------------

bool Device::locked(std::uint8_t flow, std::uint32_t lpn) const {
  return barriers_[flow].size() != 0 && barriers_[flow].contains(lpn);
}

// MQSim drops whatever meets a barrier when the barrier is lifted: the request never completes, a
// cached write never gives its room back.
void Device::wait_behind_barrier(std::uint32_t) {}

void Device::lock_block(std::uint32_t plane, std::uint32_t index) {
  const Block& block = blocks_.block(plane, index);
  for (std::uint32_t page = 0; page < block.next_page; ++page) {
    if (!blocks_.valid(plane, index, page)) continue;
    const std::uint32_t lpn = blocks_.owner(plane, index, page);
    FlatMap& barrier = block.holds_mapping ? mapping_barriers_[block.flow] : barriers_[block.flow];
    if (barrier.contains(lpn)) throw ModelError("Illegal operation: Locking an LPA that has already been locked!");
    barrier.insert(lpn, 0);
  }
}

void Device::unlock(std::uint8_t flow, std::uint32_t lpn, bool holds_mapping) {
  FlatMap& barrier = holds_mapping ? mapping_barriers_[flow] : barriers_[flow];
  if (!barrier.contains(lpn)) throw ModelError("Illegal operation: Unlocking an LPA that has not been locked!");
  barrier.erase(lpn);
}

// --- choice of the victim ---------------------------------------------------------------------

bool Device::safe_victim(std::uint32_t plane, std::uint32_t index) {
  for (std::size_t flow = 0; flow < streams_.size(); ++flow) {
    const Frontiers& frontiers = blocks_.frontiers(plane, flow);
    if (index == frontiers.data || index == frontiers.mapping || index == frontiers.collector) return false;
  }
  const Block& block = blocks_.block(plane, index);
  return block.programs == 0 && !block.collecting;
}

// As the flows that there are were preconditioned.
double Device::fullest_occupancy() const {
  std::uint32_t percent = 0;
  for (const FlowConfig& stream : stream_configs_) percent = std::max(percent, stream.initial_occupancy_percent);
  return static_cast<double>(percent) / 100.0;
}

std::uint32_t Device::random_block() {
  return static_cast<std::uint32_t>(collector_random_.uniform(0, geometry_.blocks_per_plane - 1));
}

bool Device::under_erasure(std::uint32_t plane, std::uint32_t block) const {
  const std::vector<std::uint32_t>& erasing = erasures_[plane];
  return std::find(erasing.begin(), erasing.end(), block) != erasing.end();
}

std::uint32_t Device::choose_victim(std::uint32_t plane) {
  switch (config_.gc_policy) {
    case VictimPolicy::greedy: return greediest_block(plane);
    case VictimPolicy::rga: return best_of_some(plane);
    case VictimPolicy::fifo: {
      std::deque<std::uint32_t>& history = blocks_.usage_history(plane);
      const std::uint32_t oldest = history.front();
      history.pop_front();
      return oldest;
    }
    default: return random_victim(plane);
  }
}

std::uint32_t Device::greediest_block(std::uint32_t plane) {
  std::uint32_t best = under_erasure(plane, 0) ? 1 : 0;
  for (std::uint32_t block = 1; block < geometry_.blocks_per_plane; ++block) {
    const Block& candidate = blocks_.block(plane, block);
    if (candidate.invalid_pages > blocks_.block(plane, best).invalid_pages &&
        candidate.next_page == geometry_.pages_per_block && safe_victim(plane, block)) {
      best = block;
    }
  }
  return best;
}

// Randomised greedy: the best of floor(log2 blocks) different blocks.
std::uint32_t Device::best_of_some(std::uint32_t plane) {
  std::vector<std::uint32_t>& drawn = drawn_blocks_;
  drawn.clear();
  const auto wanted = static_cast<std::size_t>(std::bit_width(geometry_.blocks_per_plane) - 1);
  while (drawn.size() < wanted) {
    watch_.poll(0);
    const std::uint32_t block = random_block();
    if (under_erasure(plane, block) || !safe_victim(plane, block)) continue;
    const auto place = std::lower_bound(drawn.begin(), drawn.end(), block);
    if (place == drawn.end() || *place != block) drawn.insert(place, block);
  }
  std::uint32_t best = drawn.front();
  for (const std::uint32_t block : drawn) {
    const Block& candidate = blocks_.block(plane, block);
    if (candidate.invalid_pages > blocks_.block(plane, best).invalid_pages &&
        candidate.next_page == geometry_.pages_per_block) {
      best = block;
    }
  }
  return best;
}

// RANDOM takes any block that is safe, RANDOM_P a full one, RANDOM_PP a full one with enough invalid
// pages; each gives up after as many draws as there are blocks, and takes the last.
std::uint32_t Device::random_victim(std::uint32_t plane) {
  const auto enough = static_cast<std::uint32_t>(fullest_occupancy() * geometry_.pages_per_block);
  std::uint32_t block = random_block();
  for (std::uint32_t draws = 0; draws < geometry_.blocks_per_plane; ++draws) {
    const Block& candidate = blocks_.block(plane, block);
    const bool full = candidate.next_page == geometry_.pages_per_block;
    bool wanted = safe_victim(plane, block);
    if (config_.gc_policy != VictimPolicy::random) wanted = wanted && full;
    if (config_.gc_policy == VictimPolicy::random_pp) wanted = wanted && candidate.invalid_pages >= enough;
    if (wanted) break;
    block = random_block();
  }
  return block;
}

// --- collection -------------------------------------------------------------------------------

void Device::check_collection(std::uint32_t plane) {
  if (blocks_.free_blocks(plane) >= collection_threshold()) return;
  if (erasures_[plane].size() >= collections_at_once) return;
  const std::uint32_t index = choose_victim(plane);
  if (under_erasure(plane, index)) return;
  Block& block = blocks_.block(plane, index);
  if (block.next_page == 0 || block.invalid_pages == 0) return;
  block.collecting = true;
  erasures_[plane].push_back(index);
  lock_block(plane, index);
  if (block.programs == 0 && block.reads == 0) {
    ++counts_.gc_exec;
    counts_.gc_page_moves += move_block(plane, index, true);
  }
}

// Reads the valid pages of a block; each is programmed when it has been read, and the erase waits
// for all of them. Tells how many there are.
std::uint32_t Device::move_block(std::uint32_t plane, std::uint32_t index, bool submit_erase) {
  open_submission();
  const std::uint32_t erase = transactions_.make();
  std::uint32_t moves = 0;
  const std::uint8_t flow = blocks_.block(plane, index).flow;
  for (std::uint32_t page = 0; page < blocks_.block(plane, index).next_page; ++page) {
    if (!blocks_.valid(plane, index, page)) continue;
    ++moves;
    const std::uint32_t read = make_collector_transaction(Operation::read, plane, index, flow);
    transactions_[read].page = page;
    transactions_[read].lpn = blocks_.owner(plane, index, page);
    transactions_[read].bytes = config_.page_bytes;
    submit_transaction(read);
  }
  transactions_[erase] = Transaction{};
  Transaction& erasure = transactions_[erase];
  erasure.operation = Operation::erase;
  erasure.source = Source::collector;
  erasure.plane = plane;
  erasure.block = index;
  erasure.flow = flow;
  erasure.moves_left = moves;
  erasure.issued_ns = events_.now_ns();
  blocks_.block(plane, index).erase_transaction = erase;
  if (submit_erase) submit_transaction(erase);
  close_submission();
  return moves;
}

std::uint32_t Device::make_collector_transaction(Operation operation, std::uint32_t plane, std::uint32_t block,
                                                 std::uint8_t flow) {
  const std::uint32_t id = transactions_.make();
  Transaction& made = transactions_[id];
  made.operation = operation;
  made.source = Source::collector;
  made.plane = plane;
  made.block = block;
  made.flow = flow;
  made.issued_ns = events_.now_ns();
  return id;
}

std::uint32_t Device::pages_to_move(const Transaction& erase) const { return erase.moves_left; }

// Every transaction that ends comes here.
void Device::finish_for_collector(std::uint32_t id) {
  const Transaction& done = transactions_[id];
  if (done.source != Source::collector) {
    Block& block = blocks_.block(done.plane, done.block);
    if (done.operation == Operation::read) --block.reads;
    if (done.operation == Operation::program) --block.programs;
    if (block.collecting && block.programs == 0 && block.reads == 0) {
      // MQSim forgets to submit the erase of a collection that had to wait: the block is lost.
      ++counts_.gc_exec;
      counts_.gc_page_moves += move_block(done.plane, done.block, false);
    }
    return;
  }
  switch (done.operation) {
    case Operation::read: program_moved_page(Transaction(done)); break;  // makes transactions
    case Operation::program: {
      const Block& source = blocks_.block(done.plane, done.from_block);
      unlock(done.flow, done.lpn, source.holds_mapping);
      --transactions_[source.erase_transaction].moves_left;
      break;
    }
    case Operation::erase: finish_erase(done.plane, done.block); break;
  }
}

void Device::program_moved_page(const Transaction& read) {
  open_submission();
  const std::uint32_t id = make_collector_transaction(Operation::program, read.plane, 0, read.flow);
  Frontiers& frontiers = blocks_.frontiers(read.plane, read.flow);
  const bool mapping = blocks_.block(read.plane, read.block).holds_mapping;
  blocks_.invalidate(read.plane, read.block, read.page);
  std::uint32_t& frontier = mapping ? frontiers.mapping : frontiers.collector;
  const std::uint32_t block = frontier;
  const std::uint32_t page = blocks_.block(read.plane, block).next_page++;
  blocks_.set_owner(read.plane, block, page, read.lpn);
  Transaction& program = transactions_[id];
  program.block = block;
  program.page = page;
  program.from_block = read.block;
  program.lpn = read.lpn;
  program.bytes = config_.page_bytes;
  const std::uint32_t place = block * geometry_.pages_per_block + page;
  if (page + 1 == geometry_.pages_per_block) {
    frontier = blocks_.open(read.plane, read.flow, mapping);
    check_collection(read.plane);
  }
  if (mapping) {
    mapping_pages_[read.flow][read.lpn].place = place;
  } else {
    if (!config_.mapping_ideal) bring_mapping(read.flow, read.lpn);
    update_mapping(read.flow, read.lpn, place_in(read.plane, read.flow, read.lpn, place),
                   tables_[read.flow].sectors(read.lpn));
  }
  ++counts_.cmt_queries_write;
  ++counts_.cmt_hits_write;
  submit_transaction(id);
  close_submission();
}

void Device::finish_erase(std::uint32_t plane, std::uint32_t index) {
  std::vector<std::uint32_t>& erasing = erasures_[plane];
  erasing.erase(std::find(erasing.begin(), erasing.end(), index));
  blocks_.erase(plane, index);
  if (levelling_due(plane)) level_wear(plane);
  retry_stopped_programs(plane);
  if (writes_stopped(plane)) check_collection(plane);
}

// In the order of their coming. MQSim's is that of their addresses in memory, which depends on the
// allocator of the machine it runs on.
void Device::retry_stopped_programs(std::uint32_t plane) {
  std::vector<std::uint32_t>& stopped = stopped_programs_[plane];
  if (stopped.size() > 1) ++counts_.retries_by_address;
  open_submission();
  std::size_t placed = 0;
  while (placed < stopped.size() && place(stopped[placed])) submit_placed(stopped[placed++]);
  stopped.erase(stopped.begin(), stopped.begin() + static_cast<std::ptrdiff_t>(placed));
  close_submission();
}

// --- wear levelling ---------------------------------------------------------------------------

// MQSim takes the difference of the numbers of the most and the least erased block for that of their
// erase counts, in unsigned arithmetic.
bool Device::levelling_due(std::uint32_t plane) {
  std::uint32_t most = 0, least = 0;
  for (std::uint32_t i = 1; i < geometry_.blocks_per_plane; ++i) {
    const std::uint32_t count = blocks_.block(plane, i).erase_count;
    if (count > blocks_.block(plane, most).erase_count) most = i;
    if (count < blocks_.block(plane, least).erase_count) least = i;
  }
  return most - least >= wear_levelling_threshold;
}

void Device::level_wear(std::uint32_t plane) {
  std::uint32_t coldest = 0;
  for (std::uint32_t i = 1; i < geometry_.blocks_per_plane; ++i) {
    if (blocks_.block(plane, i).erase_count < blocks_.block(plane, coldest).erase_count) coldest = i;
  }
  if (!safe_victim(plane, coldest)) return;
  // MQSim marks another block than it moves: it takes the number for that of a channel, whose first
  // block it marks. A number that no channel has makes it write outside its tables; nothing is
  // marked here then.
  if (coldest < geometry_.channels) {
    const std::uint32_t first_plane = coldest * geometry_.chips_per_channel * planes_per_chip_;
    blocks_.block(first_plane, 0).collecting = true;
  }
  const Block& block = blocks_.block(plane, coldest);
  erasures_[plane].push_back(coldest);
  lock_block(plane, coldest);
  if (block.programs == 0 && block.reads == 0) {
    ++counts_.wl_exec;
    move_block(plane, coldest, true);
  }
}

}  // namespace iojoule::sim::compat
