// Reads whose times are settled when their die begins them, against the next free times of the
// channel, instead of an event for the end of sensing and one for each page that leaves. What a die
// begins next, and which reads share a command, is decided where it always is.
#include <algorithm>

#include "../physical/flash.hpp"

namespace iojoule::sim::physical {

// Whether the die would begin a read at once if it came now.
bool Flash::idle_for_read(std::uint32_t die_index) {
  if (ahead_.empty()) return false;
  Die& die = dies_[die_index];
  const std::uint64_t now_ns = context_.now_ns();
  if (die.array != Array::idle || die.outs > 0 || die.suspended != Suspended::nothing ||
      ahead_[die_index].array_free_ns > now_ns || reads_waiting(die) ||
      !context_.power.open(now_ns)) {
    return false;
  }
  // It would rather write or collect.
  if (context_.cache.dirty() == 0 && collector_.jobs_active() == 0) [[likely]] return true;
  if (nand_.write_wait_max_ns > 0 && die.wrote_ns + nand_.write_wait_max_ns <= now_ns) return false;
  return gc_preemptible_ || collector_.jobs_active() == 0;
}

// What follows a read of another kind happens when its data are there, and needs the event. The times
// until then may be settled where nothing can begin before it.
bool Flash::can_commit(const Die& die, std::uint32_t chain) const {
  if (ahead_.empty() || die.outs > 0) return false;
  if (!nand_.cache_register) return true;
  for (std::uint32_t i = chain; i != none; i = reads_[i].next) {
    if (reads_[i].kind != ReadKind::user) return false;
  }
  return true;
}

// When the command has been given, in ps.
std::uint64_t Flash::command_ahead(std::uint32_t die_index, std::uint64_t command_ps) {
  const std::uint64_t now_ps = to_ps(context_.now_ns());
  const DieAhead& ahead = ahead_[die_index];
  const std::uint64_t given_ps =
      channels_[context_.layout.channel_of_die(die_index)].cut_in(now_ps, command_ps);
  // One that waited for the array goes before the data of the read before, which have been settled.
  if (!reading_ahead(die_index) || ahead.array_free_ns < context_.now_ns()) return given_ps;
  return std::min(given_ps, std::max(now_ps, ahead.data_begin_ps) + command_ps);
}

// The pages of the chain leave the die when they are sensed.
void Flash::leave_ahead(std::uint32_t die_index, std::uint32_t chain) {
  Die& die = dies_[die_index];
  DieAhead& ahead = ahead_[die_index];
  const std::uint64_t now_ns = context_.now_ns(), now_ps = to_ps(now_ns);
  const bool others_wait = reads_waiting(die);
  std::uint64_t move_ps = to_ps(die.end_ns);
  ahead.array_free_ns = die.end_ns;
  if (nand_.cache_register) {
    ahead.array_free_ns = std::max(ahead.array_free_ns, ahead.registers_free_ns);
    move_ps = to_ps(ahead.array_free_ns);
    if (others_wait) move_ps += timing_.read_command_ps(1);
  }
  FifoServer& channel = channels_[context_.layout.channel_of_die(die_index)];
  std::uint64_t out_ps = 0;
  bool first = true;
  for (std::uint32_t i = chain; i != none;) {
    PageRead& read = reads_[i];
    const std::uint64_t length_ps = timing_.data_ps(timing_.bytes_moved(read.bytes));
    out_ps = channel.reserve_behind(now_ps, move_ps, length_ps);
    if (first) ahead.data_begin_ps = std::max(move_ps, out_ps - length_ps);
    first = false;
    count_move(die_index, read, out_ps);
    const std::uint32_t next = read.next;
    if (read.kind != ReadKind::user) {
      ++die.outs;
      context_.schedule(to_ns(out_ps), EventKind::page_out, i);
    } else {
      if (read.written) context_.blocks.end_read(context_.layout.block_of_page(read.page));
      client_.page_read(read, to_ns(out_ps));  // no read begins in here
      read.next = free_read_;
      free_read_ = i;
    }
    i = next;
  }
  die.array = Array::idle;
  ahead.registers_free_ns = to_ns(out_ps);
  if (!nand_.cache_register) ahead.array_free_ns = ahead.registers_free_ns;
  count_busy(die, die.busy ? die.busy_since_ns : now_ns, ahead.registers_free_ns);
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

void Flash::wake_after_reads(std::uint32_t die_index) {
  DieAhead& ahead = ahead_[die_index];
  if (ahead.wakes || dies_[die_index].outs > 0) return;  // the last page that leaves marks the die
  ahead.wakes = true;
  context_.schedule(ahead.array_free_ns > context_.now_ns() ? ahead.array_free_ns
                                                            : ahead.registers_free_ns,
                    EventKind::reads_over, die_index);
}

void Flash::on_reads_over(std::uint32_t die_index) {
  ahead_[die_index].wakes = false;
  lists_changed_ = true;
  mark(die_index);
}

}  // namespace iojoule::sim::physical
