// Which chip does what next: out-of-order scheduling by chip and source (mqsim.md, 3.7).
#include <bit>

#include "device.hpp"

namespace iojoule::sim::compat {

void Device::close_submission() {
  if (--open_submissions_ > 0 || (submitted_.empty() && !mapping_program_submitted_)) return;
  mapping_program_submitted_ = false;
  for (const std::uint32_t index : submitted_) enqueue_transaction(index);
  submitted_.clear();
  if (asking_counts_) {
    for (std::uint32_t channel = 0; channel < geometry_.channels; ++channel) {
      if (!channels_[channel].busy) offer_channel(channel);
    }
    return;
  }
  for (std::uint32_t word = 0; word < channel_sets_.size(); ++word) {
    std::uint64_t candidates = channel_sets_[word].with_work & ~channel_sets_[word].busy;
    for (; candidates != 0; candidates &= candidates - 1) {
      offer_channel(word * ChannelSet::channels + static_cast<std::uint32_t>(std::countr_zero(candidates)));
    }
  }
}

void Device::enqueue_transaction(std::uint32_t index) {
  Transaction& transaction = transactions_[index];
  transaction.queued_ns = events_.now_ns();
  const PlaneSite& site = sites_[transaction.plane];
  const std::uint32_t chip = site.chip;
  ChipQueues& queues = queues_[chip];
  const bool is_read = transaction.operation == Operation::read;
  TransactionList* list = nullptr;
  switch (transaction.source) {
    case Source::mapping: list = &queues.mapping_read; break;
    case Source::collector:
      list = is_read ? &queues.collector_read
             : transaction.operation == Operation::program ? &queues.collector_program
                                                           : &queues.collector_erase;
      break;
    default: {
      const std::size_t level = config_.scheduler == Scheduler::priority_out_of_order ? transaction.priority : 0;
      list = is_read ? &queues.user_read[level] : &queues.user_program[level];
    }
  }
  list->push_back({index, transaction.page, site.die, site.bit});
  if (list->meter != nothing) queue_meters_[list->meter].enter(events_.now_ns());
  ++queues.waiting;
  const std::uint32_t channel = chips_[chip].channel;
  channels_[channel].chips_with_work |= chips_[chip].bit;
  set_of(channel).with_work |= ChannelSet::bit(channel);
}

// Round robin over the channel's chips until one takes the bus.
void Device::ask_every_chip(std::uint32_t index) {
  Channel& channel = channels_[index];
  const std::uint32_t chips = geometry_.chips_per_channel;
  for (std::uint32_t asked = 0; asked < chips && !channel.busy; ++asked) {
    const std::uint32_t chip = channel.next_chip;
    channel.next_chip = chip + 1 == chips ? 0 : chip + 1;
    serve_chip(index * chips + chip);
  }
}

// The same where asking one that is busy or has nothing to do changes nothing: a full round leaves the
// pointer where it was, so only the others are asked.
void Device::ask_ready_chips(std::uint32_t index) {
  Channel& channel = channels_[index];
  const std::uint32_t chips = geometry_.chips_per_channel;
  std::uint64_t candidates = channel.idle_chips & channel.chips_with_work;
  while (candidates != 0) {
    const std::uint64_t ahead = candidates & (~std::uint64_t{0} << channel.next_chip);
    const auto chip = static_cast<std::uint32_t>(std::countr_zero(ahead != 0 ? ahead : candidates));
    candidates &= ~(std::uint64_t{1} << chip);
    serve_chip(index * chips + chip);
    if (channel.busy) {
      channel.next_chip = chip + 1 == chips ? 0 : chip + 1;
      return;
    }
  }
}

void Device::serve_chip(std::uint32_t chip) {
  if (serve_reads(chip) || serve_programs(chip)) return;
  serve_erases(chip);
}

// Asking moves the turns on, whether or not the chip can take a command.
TransactionList* Device::user_queue(ClassQueues& queues, ClassTurns& turns) const {
  if (config_.scheduler == Scheduler::priority_out_of_order) return turns.next(queues);
  return queues.front().empty() ? nullptr : &queues.front();
}

bool Device::serve_reads(std::uint32_t chip) {
  ChipQueues& queues = queues_[chip];
  const auto user = [&] { return user_queue(queues.user_read, queues.read_turns); };
  TransactionList* first = nullptr;
  TransactionList* second = nullptr;
  if (!queues.mapping_read.empty()) {
    first = &queues.mapping_read;
    second = !queues.collector_read.empty() ? &queues.collector_read : user();
  } else if (!queues.collector_read.empty()) {
    first = &queues.collector_read;
    second = user();
  } else if (!queues.collector_program.empty() || !queues.collector_erase.empty()) {
    return false;
  } else {
    first = user();
  }
  return first != nullptr && issue(chip, *first, second);
}

bool Device::serve_programs(std::uint32_t chip) {
  ChipQueues& queues = queues_[chip];
  const auto user = [&] { return user_queue(queues.user_program, queues.program_turns); };
  TransactionList* first = nullptr;
  TransactionList* second = nullptr;
  if (!queues.collector_program.empty()) {
    first = &queues.collector_program;
    second = user();
  } else if (!queues.collector_erase.empty()) {
    return false;
  } else {
    first = user();
  }
  return first != nullptr && issue(chip, *first, second);
}

void Device::serve_erases(std::uint32_t chip) {
  ChipQueues& queues = queues_[chip];
  if (!queues.collector_erase.empty()) issue(chip, queues.collector_erase, nullptr);
}

bool Device::ready(const Transaction& transaction) const {
  switch (transaction.operation) {
    case Operation::read: return true;
    case Operation::program: return transaction.related == nothing;
    default: return pages_to_move(transaction) == 0;
  }
}

// One command for one die: the first ready page, then pages with the head's number in other planes.
// False where the chip is busy.
bool Device::issue(std::uint32_t chip, TransactionList& first, TransactionList* second) {
  if (chips_[chip].status != Chip::Status::idle) return false;
  std::uint32_t die = first[0].die;
  const std::uint32_t page = first[0].page;
  taken_planes_ = 0;
  for (std::uint32_t i = 0; i < geometry_.dies_per_chip; ++i) {
    take(chip, first, die, page);
    if (second != nullptr && chips_[chip].active.size() < geometry_.planes_per_die) {
      take(chip, *second, die, page);
    }
    if (!chips_[chip].active.empty()) {
      start_command(chip);
      return true;
    }
    die = die + 1 == geometry_.dies_per_chip ? 0 : die + 1;
  }
  return true;
}

void Device::take(std::uint32_t chip, TransactionList& list, std::uint32_t die, std::uint32_t page) {
  CommandPages& active = chips_[chip].active;
  for (std::size_t place = 0; active.size() < geometry_.planes_per_die;) {
    place = list.find(place, die, taken_planes_, page, active.empty() ? 0 : UINT32_MAX);
    if (place == list.size()) return;
    const Queued queued = list[place];
    if (!ready(transactions_[queued.index])) {
      ++place;
      continue;
    }
    taken_planes_ |= queued.plane_bit;
    active.push_back(queued.index);
    list.remove(place);
    if (list.meter != nothing) {
      queue_meters_[list.meter].leave(events_.now_ns(), transactions_[queued.index].queued_ns);
    }
    if (--queues_[chip].waiting > 0) continue;
    const std::uint32_t channel = chips_[chip].channel;
    channels_[channel].chips_with_work &= ~chips_[chip].bit;
    if (channels_[channel].chips_with_work == 0) set_of(channel).with_work &= ~ChannelSet::bit(channel);
  }
}

}  // namespace iojoule::sim::compat
