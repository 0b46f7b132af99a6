// Reads of the user whose way over the channel is settled when they are sensed: the client is told
// then, and what their die keeps until they have left costs an event only where something waits.
#include <algorithm>

#include "../physical/flash.hpp"

namespace iojoule::sim::physical {

// Whether the die would begin a read at once if it came now.
bool Flash::idle_for_read(std::uint32_t die_index) {
  if (leaving_.empty()) return false;
  Die& die = dies_[die_index];
  const std::uint64_t now_ns = context_.now_ns();
  if (die.array != Array::idle || die.outs > 0 || die.suspended != Suspended::nothing ||
      (!nand_.cache_register && leaving(die_index)) || reads_waiting(die) ||
      !context_.power.open(now_ns)) {
    return false;
  }
  // It would rather write or collect.
  if (context_.cache.dirty() == 0 && collector_.jobs_active() == 0) [[likely]] return true;
  if (nand_.write_wait_max_ns > 0 && die.wrote_ns + nand_.write_wait_max_ns <= now_ns) return false;
  return gc_preemptible_ || collector_.jobs_active() == 0;
}

void Flash::settle_read(std::uint32_t index, std::uint64_t out_ns) {
  const PageRead& read = reads_[index];
  const std::uint32_t die_index = context_.layout.die_of_plane(read.plane);
  --dies_[die_index].outs;
  std::uint64_t& until_ns = leaving_[die_index].until_ns;
  until_ns = std::max(until_ns, out_ns);
  client_.page_read(read, out_ns);  // no read begins in here
  free_read(index);
}

// After the reads of a command. What waits for the registers to be free has to look when they are.
void Flash::settled_ahead(std::uint32_t die_index, std::uint64_t began_ns) {
  Die& die = dies_[die_index];
  if (die.array == Array::holding && die.outs == 0) die.array = Array::idle;
  count_busy(die, die.busy ? die.busy_since_ns : began_ns, leaving_[die_index].until_ns);
}

// Whether the die has something to begin after its reads. What comes later marks it and asks again.
bool Flash::wants_more(std::uint32_t die_index) {
  const Die& die = dies_[die_index];
  if (reads_waiting(die) || die.suspended != Suspended::nothing || die.mapping_writes > 0 ||
      collector_.jobs_active() > 0) {
    return true;
  }
  if (!round_robin_) return writes_ready(die_index);
  for (std::size_t list = 0; list < context_.cache.lists(); ++list) {
    if (list_ready(list, context_.layout.units_per_page)) return true;
  }
  return false;
}

void Flash::wake_when_left(std::uint32_t die_index) {
  Leaving& leaving = leaving_[die_index];
  if (leaving.wakes) return;
  leaving.wakes = true;
  context_.schedule(leaving.until_ns, EventKind::left, die_index);
}

void Flash::on_left(std::uint32_t die_index) {
  Leaving& leaving = leaving_[die_index];
  leaving.wakes = false;
  if (leaving.until_ns == context_.now_ns()) leaving.until_ns = 0;
  release_registers(die_index);
  mark(die_index);
}

}  // namespace iojoule::sim::physical
