// Channels and chips: commands out, array operations, data back.
#include "device.hpp"

namespace iojoule::sim::compat {

void Device::set_status(std::uint32_t index, Chip::Status status) {
  Chip& chip = chips_[index];
  chip.status = status;
  std::uint64_t& idle = channels_[chip.channel].idle_chips;
  idle = status == Chip::Status::idle ? idle | chip.bit : idle & ~chip.bit;
}

void Device::set_busy(std::uint32_t index, bool busy) {
  channels_[index].busy = busy;
  std::uint64_t& set = set_of(index).busy;
  set = busy ? set | ChannelSet::bit(index) : set & ~ChannelSet::bit(index);
}

// chips_[index].active holds the pages; the channel and the chip are idle.
void Device::start_command(std::uint32_t index) {
  Chip& chip = chips_[index];
  Channel& channel = channels_[chip.channel];
  const std::size_t pages = chip.active.size();
  chip.operation = transactions_[chip.active.front()].operation;
  std::uint64_t duration = 0;
  switch (chip.operation) {
    case Operation::read:
      ++(pages == 1 ? counts_.cmd_read : counts_.cmd_mp_read);
      duration = WholeNsChannel::read_command_ns(pages);
      break;
    case Operation::program:
      ++(pages == 1 ? counts_.cmd_prog : counts_.cmd_mp_prog);
      duration = WholeNsChannel::program_command_ns(pages);
      break;
    case Operation::erase:
      ++(pages == 1 ? counts_.cmd_erase : counts_.cmd_mp_erase);
      duration = WholeNsChannel::erase_command_ns(pages);
      break;
  }
  const std::uint64_t command = duration;
  for (const std::uint32_t page : chip.active) {
    Transaction& transaction = transactions_[page];
    const std::uint64_t data = chip.operation == Operation::program ? bus_.data_ns(transaction.bytes) : 0;
    transaction.transfer_ns = command + data;
    duration += data;
    OriginCounts& counts = chip.operation == Operation::read      ? counts_.pages_read
                           : chip.operation == Operation::program ? counts_.pages_programmed
                                                                  : counts_.blocks_erased;
    ++(transaction.source == Source::collector ? counts.gc
       : transaction.source == Source::mapping ? counts.mapping
                                               : counts.user);
  }
  chip.transfer_ns += duration;
  channel.busy_ns += duration;
  set_busy(chip.channel, true);
  channel.chip = index;
  channel.sending = nothing;
  set_status(index, Chip::Status::command);
  events_.schedule(events_.now_ns() + duration, bus_done, chip.channel);
}

void Device::start_array(std::uint32_t index) {
  Chip& chip = chips_[index];
  std::uint64_t duration = 0;
  for (const std::uint32_t page : chip.active) {
    const std::uint32_t number = transactions_[page].page;
    const std::uint64_t one = chip.operation == Operation::read      ? array_.read_ns(number)
                              : chip.operation == Operation::program ? array_.program_ns(number)
                                                                     : array_.erase_ns();
    duration = std::max(duration, one);
  }
  for (const std::uint32_t page : chip.active) transactions_[page].execution_ns = duration;
  chip.execution_ns += duration;
  set_status(index, chip.operation == Operation::read      ? Chip::Status::reading
                    : chip.operation == Operation::program ? Chip::Status::programming
                                                           : Chip::Status::erasing);
  events_.schedule(events_.now_ns() + duration, chip_done, index);
}

void Device::finish_bus(std::uint32_t index) {
  Channel& channel = channels_[index];
  if (channel.sending == nothing) {
    start_array(channel.chip);
  } else {
    const std::uint32_t page = channel.sending;
    const std::uint32_t chip = chip_of(transactions_[page].plane);
    transaction_done(page);
    if (--chips_[chip].pages_to_send == 0) set_status(chip, Chip::Status::idle);
  }
  for (Ring<std::uint32_t>* out : {&channel.mapping_out, &channel.user_out, &channel.collector_out}) {
    if (out->empty()) continue;
    const std::uint32_t page = out->front();
    out->pop_front();
    send_page(index, page);
    return;
  }
  set_busy(index, false);
  offer_channel(index);
}

void Device::send_page(std::uint32_t index, std::uint32_t page) {
  Channel& channel = channels_[index];
  Transaction& transaction = transactions_[page];
  const std::uint64_t duration = bus_.data_ns(transaction.bytes);
  transaction.transfer_ns += duration;
  chips_[chip_of(transaction.plane)].transfer_ns += duration;
  channel.busy_ns += duration;
  set_busy(index, true);
  channel.sending = page;
  events_.schedule(events_.now_ns() + duration, bus_done, index);
}

void Device::finish_chip(std::uint32_t index) {
  Chip& chip = chips_[index];
  const std::uint32_t channel_index = chip.channel;
  Channel& channel = channels_[channel_index];
  if (chip.operation == Operation::read) {
    set_status(index, Chip::Status::data_out);
    // MQSim queues all pages of a command where the first one belongs.
    const Source source = transactions_[chip.active.front()].source;
    Ring<std::uint32_t>& out = source == Source::mapping     ? channel.mapping_out
                               : source == Source::collector ? channel.collector_out
                                                             : channel.user_out;
    for (const std::uint32_t page : chip.active) {
      ++chip.pages_to_send;
      if (!channel.busy) {
        send_page(channel_index, page);
        continue;
      }
      out.push_back(page);
    }
    chip.active.clear();
    return;
  }
  for (const std::uint32_t page : chip.active) transaction_done(page);
  chips_[index].active.clear();
  set_status(index, Chip::Status::idle);
  if (!channel.busy) offer_channel(channel_index);
}

// Everybody who may have waited for it, in MQSim's order, and then it is gone.
void Device::transaction_done(std::uint32_t index) {
  const Transaction& done = transactions_[index];
  if (done.source == Source::user) {
    Stream& stream = streams_[done.flow];
    const bool is_write = done.operation == Operation::program;
    const std::uint64_t turnaround = events_.now_ns() - done.issued_ns;
    const std::uint64_t transfer = done.transfer_ns - 1;  // MQSim counts from -1 on
    stream.turnaround_ns[is_write] += turnaround;
    stream.execution_ns[is_write] += done.execution_ns;
    stream.transfer_ns[is_write] += transfer;
    stream.waiting_ns[is_write] += turnaround - done.execution_ns - transfer;
  }
  switch (done.source) {
    case Source::user:
    case Source::cache: finish_user_transaction(index); break;
    case Source::mapping: finish_mapping_transaction(index); break;
    case Source::collector: break;
  }
  finish_for_collector(index);
  transactions_.free(index);
}

}  // namespace iojoule::sim::compat
