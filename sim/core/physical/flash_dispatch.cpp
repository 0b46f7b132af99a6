// Which operation a die begins next: reads before writes before background work, unless something
// is about to run out; suspension; the power cap's gate.
#include <algorithm>

#include "flash.hpp"

namespace iojoule::sim::physical {

bool Flash::joins(std::uint32_t page, std::uint32_t lead_page) const {
  return nand_.multi_plane == MultiPlane::any_page ||
         (nand_.multi_plane == MultiPlane::same_page && page == lead_page);
}

// --- dispatching -----------------------------------------------------------------------------------

void Flash::mark_all() {
  for (std::uint32_t die = 0; die < dies_.size(); ++die) mark(die);
}

void Flash::begin_marked() {
  // A dispatch may mark further dies.
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    const std::uint32_t die = marked_[i];
    dies_[die].marked = false;
    dispatch(die);
    update_busy(die);
  }
  marked_.clear();
  if (round_robin_ && lists_changed_) offer_lists();
}

// Full rows of units go to idle dies in turn.
void Flash::offer_lists() {
  lists_changed_ = false;
  for (std::size_t list = 0; list < context_.cache.lists(); ++list) {
    std::size_t tries = turn_.size();
    while (tries > 0 && busy_dies_ < dies_.size() && list_ready(list, list_batch_)) {
      const std::uint32_t die = turn_[next_turn_];
      next_turn_ = next_turn_ + 1 < turn_.size() ? next_turn_ + 1 : 0;
      --tries;
      update_busy(die);
      if (dies_[die].busy || flow_planes_[die].empty()) continue;
      if (leaving(die)) {
        wake_when_left(die);
        continue;
      }
      dispatch(die);
      update_busy(die);
      if (dies_[die].busy) tries = turn_.size();
    }
  }
}

void Flash::dispatch(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  if (die.array == Array::programming || die.array == Array::erasing) {
    consider_suspending(die_index);
    return;
  }
  if (die.array != Array::idle) return;
  const bool waits = leaving(die_index);
  if (!waits || nand_.cache_register) {
    if (die.suspended != Suspended::nothing) {
      continue_suspended(die_index);
    } else if (!context_.power.open(context_.now_ns())) {
      gate(die_index);
    } else {
      begin_next(die_index);
    }
  }
  if (waits && wants_more(die_index)) wake_when_left(die_index);
}

bool Flash::begin_next(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  const bool writes = registers_free(die_index);
  if (die.waiting[0] > 0) return begin_reads(die_index);
  if (writes) {
    if (!gc_preemptible_ && collect(die_index)) return true;
    if (writes_overdue(die_index) && begin_user_program(die_index)) return true;
  }
  if (begin_reads(die_index)) return true;
  if (!writes) return false;
  if (urgent(die_index) && collect(die_index)) return true;
  if (die.mapping_writes > 0 && begin_mapping_program(die_index)) return true;
  if (begin_user_program(die_index)) return true;
  return collect(die_index);
}

bool Flash::urgent(std::uint32_t die_index) const {
  const std::uint32_t planes = context_.layout.planes_per_die;
  for (std::uint32_t p = die_index * planes; p < (die_index + 1) * planes; ++p) {
    if (collector_.active(p) &&
        context_.blocks.free_blocks(p) <= context_.blocks.gc_hard_threshold()) {
      return true;
    }
  }
  return false;
}

// Whether reads have kept a die from writing for too long.
bool Flash::writes_overdue(std::uint32_t die_index) {
  const Die& die = dies_[die_index];
  const std::uint64_t due_ns = die.wrote_ns + nand_.write_wait_max_ns, now_ns = context_.now_ns();
  if (nand_.write_wait_max_ns == 0 || due_ns > now_ns || !reads_waiting(die)) return false;
  const auto overdue = [&](std::size_t list) {
    const std::uint32_t first = context_.cache.list(list).head;
    return first != none &&
           context_.cache.slot(first).dirty_ns + nand_.write_wait_max_ns <= now_ns;
  };
  const std::size_t planes = context_.layout.planes_per_die;
  const std::size_t begin = round_robin_ ? 0 : die_index * planes * classes_;
  const std::size_t end = round_robin_ ? context_.cache.lists() : begin + planes * classes_;
  for (std::size_t list = begin; list < end; ++list) {
    if (overdue(list)) return true;
  }
  return false;
}

bool Flash::writes_ready(std::uint32_t die_index) {
  if (round_robin_) return false;  // any other die will do
  const std::size_t planes = context_.layout.planes_per_die;
  const std::size_t begin = die_index * planes * classes_;
  for (std::size_t list = begin; list < begin + planes * classes_; ++list) {
    const auto plane = static_cast<std::uint32_t>(list / classes_);
    if (list_ready(list, context_.layout.units_per_page) &&
        context_.blocks.can_allocate(plane, user_stream(plane))) {
      return true;
    }
  }
  return false;
}

bool Flash::collect(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  const std::uint32_t planes = context_.layout.planes_per_die;
  for (std::uint32_t i = 0; i < planes; ++i) {
    const std::uint32_t turn = (die.next_plane + i) % planes;
    const std::uint32_t plane = die_index * planes + turn;
    if (!collector_.active(plane)) continue;
    const Step step = collector_.next(plane);
    if (step == Step::nothing) continue;
    die.next_plane = (turn + 1) % planes;
    switch (step) {
      case Step::read: begin_moved_reads(die_index, plane); break;
      case Step::program: begin_moved_programs(die_index, plane); break;
      default: begin_erases(die_index, plane); break;
    }
    return true;
  }
  return false;
}

// --- suspension ------------------------------------------------------------------------------------

void Flash::consider_suspending(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  const std::uint64_t now_ns = context_.now_ns();
  if (die.suspended != Suspended::nothing || die.outs > 0) return;
  if (die.operation.suspends >= nand_.suspends_max) return;
  if (now_ns < die.began_ns) return consider_when_begun(die_index);
  const std::uint64_t left_ns = die.end_ns - now_ns;
  const DeviceConfig& device = context_.device;
  const bool reads = reads_waiting(die);
  if (die.array == Array::programming) {
    if (suspend_programs_ && reads && left_ns > device.suspend_program_for_read_ns) {
      suspend(die_index, device.suspend_program_ns);
    }
  } else if (suspend_erases_) {
    if ((reads && left_ns > device.suspend_erase_for_read_ns) ||
        (writes_ready(die_index) && left_ns > device.suspend_erase_for_write_ns)) {
      suspend(die_index, device.suspend_erase_ns);
    }
  }
}

// What is still being loaded cannot be suspended yet.
void Flash::consider_when_begun(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  if (die.begin_awaited || !(die.array == Array::programming ? suspend_programs_ : suspend_erases_)) {
    return;
  }
  die.begin_awaited = true;
  context_.schedule(die.began_ns, EventKind::begun, die_index);
}

void Flash::on_begun(std::uint32_t die_index) {
  dies_[die_index].begin_awaited = false;
  mark(die_index);
}

void Flash::suspend(std::uint32_t die_index, std::uint64_t takes_ns) {
  Die& die = dies_[die_index];
  const std::uint64_t now_ns = context_.now_ns();
  const bool program = die.array == Array::programming;
  spend_segment(die, program ? Component::array_program : Component::array_erase, now_ns);
  ++(program ? context_.counts.physical.program_suspends : context_.counts.physical.erase_suspends);
  ++die.operation.suspends;
  die.operation.remaining_ns = die.end_ns - now_ns;
  die.paused = die.operation;
  die.suspended = program ? Suspended::program : Suspended::erase;
  die.array = Array::suspending;
  die.end_ns = now_ns + takes_ns;
  context_.schedule(die.end_ns, EventKind::suspended, die_index);
}

void Flash::on_suspended(std::uint32_t die_index) {
  dies_[die_index].array = Array::idle;
  dies_[die_index].suspended_ns = context_.now_ns();
  mark(die_index);
}

void Flash::continue_suspended(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  const std::uint64_t now_ns = context_.now_ns();
  if (!suspended_too_long(die)) {
    if (begin_reads(die_index)) return;
    if (!registers_free(die_index)) return;
    if (die.suspended == Suspended::erase && begin_user_program(die_index)) return;
  }
  if (!registers_free(die_index)) return;
  die.operation = die.paused;
  die.array = die.suspended == Suspended::program ? Array::programming : Array::erasing;
  die.suspended = Suspended::nothing;
  die.began_ns = now_ns + nand_.resume_ns;
  die.end_ns = die.began_ns + die.operation.remaining_ns;
  context_.schedule(die.end_ns,
                    die.array == Array::programming ? EventKind::program_done : EventKind::erase_done,
                    die_index);
}

// --- power -------------------------------------------------------------------------

void Flash::gate(std::uint32_t die_index) {
  if (dies_[die_index].gated) return;
  if (gated_head_ == gated_.size()) {
    gated_.clear();
    gated_head_ = 0;
    gated_since_ns_ = context_.now_ns();
    context_.schedule(context_.power.reopens_ns(context_.now_ns()), EventKind::power_reopens, 0);
  }
  dies_[die_index].gated = true;
  gated_.push_back(die_index);
}

// Those held back go on in the order in which they were, as far as the budget goes.
void Flash::on_power_reopens() {
  const std::uint64_t now_ns = context_.now_ns();
  const std::size_t waiting = gated_.size();
  while (gated_head_ < waiting && context_.power.open(now_ns)) {
    const std::uint32_t die = gated_[gated_head_++];
    dies_[die].gated = false;
    dispatch(die);
    update_busy(die);
  }
  if (gated_head_ < gated_.size()) {
    context_.schedule(std::max(now_ns + 1, context_.power.reopens_ns(now_ns)),
                      EventKind::power_reopens, 0);
    return;
  }
  context_.counts.physical.throttled_ns += now_ns - gated_since_ns_;
}

void Flash::update_busy(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  const bool busy =
      die.array != Array::idle || die.outs > 0 || die.suspended != Suspended::nothing;
  if (busy == die.busy) return;
  die.busy = busy;
  if (busy) {
    ++busy_dies_;
    die.busy_since_ns = std::max(die.busy_since_ns, context_.now_ns());
  } else {
    --busy_dies_;
    count_busy(die, die.busy_since_ns, context_.now_ns());
  }
}

}  // namespace iojoule::sim::physical
