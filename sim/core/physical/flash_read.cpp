// Reads: queues of a die's planes, sensing, and the way of the data over the channel.
#include <algorithm>

#include "flash.hpp"

namespace iojoule::sim::physical {

std::uint32_t Flash::new_read() {
  if (free_read_ == none) {
    reads_.push_back({});
    return static_cast<std::uint32_t>(reads_.size() - 1);
  }
  const std::uint32_t index = free_read_;
  free_read_ = reads_[index].next;
  return index;
}

void Flash::free_read(std::uint32_t index) {
  PageRead& read = reads_[index];
  if (read.written) context_.blocks.end_read(context_.layout.block_of_page(read.page));
  read.next = free_read_;
  free_read_ = index;
}

void Flash::read(ReadKind kind, std::uint32_t owner, const Place& place, const Part& part,
                 std::uint8_t queue_class, bool alone) {
  const std::uint32_t index = new_read();
  PageRead& read = reads_[index];
  read.asked_ns = context_.now_ns();
  read.owner = owner;
  read.plane = place.plane;
  read.page = place.page;
  read.written = place.written;
  read.kind = kind;
  read.queue_class = queue_class;
  read.first_unit = part.first_unit;
  read.units = part.units;
  read.useful_bytes = part.bytes;
  read.bytes = bytes_out(part.bytes);
  read.next = none;
  if (place.written) context_.blocks.begin_read(context_.layout.block_of_page(place.page));
  const std::uint32_t die = context_.layout.die_of_plane(place.plane);
  if (alone && idle_for_read(die)) return sense(die, index, 1);
  Queue& queue = read_queues_[place.plane * read_classes + queue_class];
  if (queue.head == none) {
    queue.head = index;
  } else {
    reads_[queue.tail].next = index;
  }
  queue.tail = index;
  ++dies_[die].waiting[queue_class];
  mark(die);
}

// Whole codewords cross the channel.
std::uint32_t Flash::bytes_out(std::uint32_t useful_bytes) const {
  const std::uint32_t codewords = (useful_bytes + nand_.codeword_bytes - 1) / nand_.codeword_bytes;
  return std::min(codewords * nand_.codeword_bytes, context_.device.page_bytes);
}

// The class whose turn it is: urgent before all, the others in proportion 4, 2, 1. None waits
// forever, and no turn is lost on a class with nothing to do.
std::uint32_t Flash::next_class(const std::array<std::uint32_t, 4>& waiting,
                                std::array<std::uint8_t, 4>& credit) const {
  if (waiting[0] > 0) return 0;
  if (!by_priority_) {
    for (std::uint32_t c = 1; c < 4; ++c) {
      if (waiting[c] > 0) return c;
    }
    return none;
  }
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t c = 1; c < 4; ++c) {
      if (waiting[c] > 0 && credit[c] > 0) {
        --credit[c];
        return c;
      }
    }
    credit = {0, 4, 2, 1};
  }
  return none;
}

bool Flash::begin_reads(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  if (die.waiting[0] > 0) {
    begin_class(die_index, 0);
    return true;
  }
  const std::uint32_t chosen = next_class(
      {die.waiting[1], die.waiting[2], die.waiting[3], die.waiting[4]}, die.read_credit);
  if (chosen == none) return false;
  begin_class(die_index, chosen + 1);
  return true;
}

// The oldest read of the class, and with it those heads of the other planes' queues that may share
// its command.
void Flash::begin_class(std::uint32_t die_index, std::size_t queue_class) {
  Die& die = dies_[die_index];
  const std::uint32_t planes = context_.layout.planes_per_die;
  const std::uint32_t first = die_index * planes;
  const auto queue_of = [&](std::uint32_t plane) -> Queue& {
    return read_queues_[plane * read_classes + queue_class];
  };
  std::uint32_t lead = none;
  for (std::uint32_t p = first; p < first + planes; ++p) {
    const std::uint32_t head = queue_of(p).head;
    if (head == none) continue;
    if (lead == none || reads_[head].asked_ns < reads_[queue_of(lead).head].asked_ns) lead = p;
  }
  const std::uint32_t lead_page = context_.layout.page_in_block(reads_[queue_of(lead).head].page);
  std::uint32_t chain = none, count = 0;
  for (std::uint32_t i = 0; i < planes; ++i) {
    const std::uint32_t p = first + (lead - first + i) % planes;
    Queue& queue = queue_of(p);
    if (queue.head == none) continue;
    const std::uint32_t page = context_.layout.page_in_block(reads_[queue.head].page);
    if (i > 0 && !joins(page, lead_page)) continue;
    const std::uint32_t index = queue.head;
    queue.head = reads_[index].next;
    reads_[index].next = chain;
    chain = index;
    ++count;
    --die.waiting[queue_class];
    if (nand_.multi_plane == MultiPlane::none) break;
  }
  sense(die_index, chain, count);
}

void Flash::begin_moved_reads(std::uint32_t die_index, std::uint32_t lead) {
  const std::uint32_t planes = context_.layout.planes_per_die;
  const std::uint32_t first = die_index * planes;
  const std::uint32_t lead_page = context_.layout.page_in_block(collector_.peek_read(lead));
  std::uint32_t chain = none, count = 0;
  for (std::uint32_t i = 0; i < planes; ++i) {
    const std::uint32_t p = first + (lead - first + i) % planes;
    if (i > 0 && (!collector_.active(p) || collector_.next(p) != Step::read ||
                  !joins(context_.layout.page_in_block(collector_.peek_read(p)), lead_page))) {
      continue;
    }
    const std::uint32_t index = new_read();
    PageRead& read = reads_[index];
    std::uint32_t units = 0;
    const std::uint32_t page = collector_.begin_read(p, units);
    const bool stays_inside = copyback_ && units == context_.layout.units_per_page;
    read = PageRead{};
    read.asked_ns = context_.now_ns();
    read.owner = read.plane = p;
    read.page = page;
    read.written = true;
    read.kind = ReadKind::moved;
    read.units = units;
    read.bytes = stays_inside ? 0 : units * context_.layout.unit_bytes;
    read.next = chain;
    context_.blocks.begin_read(context_.layout.block_of_page(page));
    chain = index;
    ++count;
    if (nand_.multi_plane == MultiPlane::none) break;
  }
  sense(die_index, chain, count);
}

// Small reads may sense a part of the page only, which takes less time.
std::uint64_t Flash::sensing_ns(std::uint64_t page_ns, std::uint32_t bytes) const {
  if (bytes == 0 || bytes > nand_.partial_read_bytes) return page_ns;
  return static_cast<std::uint64_t>(static_cast<double>(page_ns) * nand_.partial_read_share);
}

// Counts a page among those sensed; how long that takes and what it costs.
Flash::Sensing Flash::count_sensing(ReadKind kind, std::uint32_t page, bool written,
                                    std::uint32_t bytes) {
  const Layout& layout = context_.layout;
  const bool slc = written && context_.blocks.is_slc(layout.block_of_page(page));
  const std::uint32_t bit = layout.page_kind(page);
  const std::uint64_t page_ns =
      slc ? context_.options.slc.page_read_ns : context_.device.page_read_ns[bit];
  const std::uint64_t array_ns = sensing_ns(page_ns, bytes);
  OriginCounts& pages = context_.counts.pages_read;
  Origin origin = Origin::user;
  switch (kind) {
    case ReadKind::user: ++pages.user; break;
    case ReadKind::fill:
      ++pages.user;
      ++context_.counts.physical.fill_reads;
      break;
    case ReadKind::moved:
      origin = Origin::collection;
      ++pages.gc;
      break;
    default:
      origin = Origin::mapping;
      ++pages.mapping;
      ++context_.counts.map_reads;
      break;
  }
  if (slc) ++context_.counts.physical.slc_pages_read;
  const double joules = (slc ? energy_.slc_page_read_joules : energy_.page_read_joules[bit]) +
                        energy_.array_read_watts * static_cast<double>(array_ns) * 1e-9;
  context_.meter.count(ArrayWork::read, slc ? slc_page : bit, origin, joules);
  return {array_ns, joules};
}

void Flash::sense(std::uint32_t die_index, std::uint32_t chain, std::uint32_t count) {
  Die& die = dies_[die_index];
  const Layout& layout = context_.layout;
  const std::uint64_t now_ns = context_.now_ns();
  const std::uint64_t command_ps = timing_.read_command_ps(count);
  FifoServer& channel = channels_[layout.channel_of_die(die_index)];
  const std::uint64_t began_ns = to_ns(channel.serve(to_ps(now_ns), command_ps));
  chip_transfer_ps_[layout.chip_of_die(die_index)] += command_ps;
  std::uint64_t longest_ns = 0;
  double joules = 0;
  for (std::uint32_t i = chain; i != none; i = reads_[i].next) {
    PageRead& read = reads_[i];
    const Sensing sensing = count_sensing(read.kind, read.page, read.written, read.bytes);
    longest_ns = std::max(longest_ns, sensing.array_ns);
    joules += sensing.joules;
    read.began_ns = now_ns;
    read.array_ns = static_cast<std::uint32_t>(sensing.array_ns);
    read.transfer_ns = static_cast<std::uint32_t>(command_ps / ps_per_ns);
  }
  ++(count == 1 ? context_.counts.cmd_read : context_.counts.cmd_mp_read);
  die.array = Array::sensing;
  die.sensed = chain;
  die.began_ns = began_ns;
  die.end_ns = began_ns + longest_ns;
  chip_exec_ns_[layout.chip_of_die(die_index)] += longest_ns;
  context_.power.charge(joules);
  context_.meter.spend(Component::array_read, joules, began_ns, die.end_ns);
  context_.schedule(die.end_ns, EventKind::sense_done, die_index);
}

void Flash::on_sense_done(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  if (!registers_free(die_index)) {
    die.array = Array::holding;
    return release_registers(die_index);
  }
  move_out(die_index);
  if (may_go_on(die)) mark(die_index);
}

// The sensed pages leave over the channel. With a cache register the array is free at once, and the
// command of the next read goes before the data (ONFI 4.0, Read Cache).
void Flash::move_out(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  const std::uint32_t chain = die.sensed;
  for (std::uint32_t i = chain; i != none; i = reads_[i].next) ++die.outs;
  die.sensed = none;
  die.array = nand_.cache_register ? Array::idle : Array::holding;
  if (nand_.cache_register && may_go_on(die)) dispatch(die_index);
  FifoServer& channel = channels_[context_.layout.channel_of_die(die_index)];
  const std::uint64_t now_ps = to_ps(context_.now_ns()), began_ns = reads_[chain].began_ns;
  for (std::uint32_t i = chain; i != none;) {
    PageRead& read = reads_[i];
    const std::uint32_t next = read.next;
    const std::uint64_t out_ps =
        channel.serve(now_ps, timing_.data_ps(timing_.bytes_moved(read.bytes)));
    count_move(die_index, read, out_ps);
    if (!leaving_.empty() && read.kind == ReadKind::user) {
      settle_read(i, to_ns(out_ps));
    } else {
      context_.schedule(to_ns(out_ps), EventKind::page_out, i);
    }
    i = next;
  }
  if (!leaving_.empty()) settled_ahead(die_index, began_ns);
}

// The data of a sensed read follow, or the array is free, once nothing takes the registers.
void Flash::release_registers(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  if (die.array != Array::holding || die.outs > 0) return;
  if (leaving(die_index)) return wake_when_left(die_index);
  if (die.sensed != none) {
    move_out(die_index);
  } else {
    die.array = Array::idle;
  }
}

// The data of a read cross the channel until out_ps.
void Flash::count_move(std::uint32_t die_index, PageRead& read, std::uint64_t out_ps) {
  const std::uint64_t moved = timing_.bytes_moved(read.bytes);
  const std::uint64_t move_ps = timing_.data_ps(moved);
  chip_transfer_ps_[context_.layout.chip_of_die(die_index)] += move_ps;
  read.transfer_ns += static_cast<std::uint32_t>(move_ps / ps_per_ns);
  const double joules = energy_.channel_joules_per_byte * static_cast<double>(moved);
  context_.power.charge(joules);
  context_.meter.spend(Component::channel, joules, (out_ps - move_ps) / ps_per_ns, to_ns(out_ps));
}

void Flash::on_page_out(std::uint32_t index) {
  const PageRead read = reads_[index];
  free_read(index);
  const std::uint32_t die_index = context_.layout.die_of_plane(read.plane);
  --dies_[die_index].outs;
  release_registers(die_index);
  if (read.kind == ReadKind::moved) {
    collector_.read_done(read.plane, read.page);
  } else {
    client_.page_read(read, context_.now_ns());
  }
  mark(die_index);
}

}  // namespace iojoule::sim::physical
