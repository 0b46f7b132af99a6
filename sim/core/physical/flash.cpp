#include "flash.hpp"

#include <algorithm>

namespace iojoule::sim::physical {

Flash::Flash(Context& context, FlashClient& client, bool ahead)
    : context_(context),
      client_(client),
      timing_(context.device),
      collector_(context.device, context.layout, context.blocks, context.table),
      nand_(context.options.nand),
      energy_(context.options.energy),
      ideal_mapping_(context.device.mapping_ideal),
      by_priority_(context.device.scheduler == Scheduler::priority_out_of_order),
      gc_preemptible_(context.device.gc_preemptible),
      copyback_(context.device.gc_copyback),
      round_robin_(nand_.write_allocation == WriteAllocation::round_robin),
      suspend_programs_(context.device.suspension == Suspension::program ||
                        context.device.suspension == Suspension::program_erase),
      suspend_erases_(context.device.suspension == Suspension::erase ||
                      context.device.suspension == Suspension::program_erase),
      classes_(Context::priority_classes(context.device)),
      dies_(context.layout.dies),
      leaving_(ahead ? context.layout.dies : 0),
      channels_(context.device.channels),
      chip_exec_ns_(context.layout.geometry.chips()),
      chip_transfer_ps_(context.layout.geometry.chips()),
      read_queues_(std::size_t{context.layout.planes} * read_classes),
      programs_(context.layout.planes),
      program_units_(std::size_t{context.layout.planes} * context.layout.units_per_page),
      program_from_(program_units_.size()),
      erasing_(context.layout.planes),
      mapping_queues_(context.layout.planes),
      next_mapping_write_(context.mapping_cache.pages()),
      moves_(context.layout.units_per_page),
      partial_timer_(context.cache.lists()) {
  const Layout& layout = context_.layout;
  reads_.reserve(4096);
  for (std::uint32_t i = 0; i < layout.dies_per_channel; ++i) {
    for (std::uint32_t c = 0; c < context_.device.channels; ++c) {
      turn_.push_back(c * layout.dies_per_channel + i);
    }
  }
  list_batch_ = layout.units_per_page;
  if (!round_robin_) return;
  flow_planes_.resize(layout.dies);
  for (const std::uint32_t plane : layout.spaces[0].planes) {
    flow_planes_[layout.die_of_plane(plane)].push_back(plane);
  }
  list_batch_ = units_worth_a_program();
}

// Units that make a list worth a program: a page, or a page on every plane of a die.
std::uint32_t Flash::units_worth_a_program() const {
  const std::uint32_t per_page = context_.layout.units_per_page;
  if (!round_robin_) return per_page;
  const std::uint32_t die = context_.layout.die_of_plane(context_.layout.spaces[0].planes[0]);
  return static_cast<std::uint32_t>(flow_planes_[die].size()) * per_page;
}

std::size_t Flash::striped_list(std::uint16_t flow, std::uint32_t unit, Priority priority) const {
  const std::size_t of_class = by_priority_ ? static_cast<std::size_t>(priority) : 0;
  return context_.layout.striped_plane(flow, unit) * classes_ + of_class;
}

// A list that does not fill a page waits for more, but not forever.
void Flash::arm_partial_timer(std::size_t list) {
  if (partial_timer_[list] != 0 || list_ready(list, list_batch_)) return;
  const std::uint32_t first = context_.cache.list(list).head;
  if (first == none) return;
  partial_timer_[list] = 1;
  const std::uint64_t due_ns =
      context_.cache.slot(first).dirty_ns + context_.options.controller.partial_page_wait_ns;
  context_.schedule(std::max(due_ns, context_.now_ns()), EventKind::partial_page,
                    static_cast<std::uint32_t>(list));
}

void Flash::on_partial_page(std::size_t list) {
  partial_timer_[list] = 0;
  const std::uint32_t first = context_.cache.list(list).head;
  if (first == none) return;
  const std::uint64_t due_ns =
      context_.cache.slot(first).dirty_ns + context_.options.controller.partial_page_wait_ns;
  if (due_ns <= context_.now_ns()) force(list);
  arm_partial_timer(list);
}

void Flash::force(std::size_t list) {
  DirtyList& dirty = context_.cache.list(list);
  if (dirty.head == none) return;
  dirty.forced = dirty.length;
  if (round_robin_) {
    lists_changed_ = true;
  } else {
    mark(context_.layout.die_of_plane(static_cast<std::uint32_t>(list / classes_)));
  }
}

void Flash::force_all() {
  for (std::size_t list = 0; list < context_.cache.lists(); ++list) force(list);
}

void Flash::write_mapping_page(std::uint32_t page, std::uint32_t plane) {
  Queue& queue = mapping_queues_[plane];
  if (queue.head == none) {
    queue.head = page;
  } else {
    next_mapping_write_[queue.tail] = page;
  }
  queue.tail = page;
  next_mapping_write_[page] = none;
  const std::uint32_t die = context_.layout.die_of_plane(plane);
  ++dies_[die].mapping_writes;
  ++mapping_writes_;
  mark(die);
}

void Flash::begin_folding() {
  if (collector_.folding()) return;
  collector_.set_folding(true);
  for (std::uint32_t plane = 0; plane < context_.layout.planes; ++plane) {
    if (collector_.consider(plane)) mark(context_.layout.die_of_plane(plane));
  }
}

bool Flash::foldable() const {
  for (std::uint32_t plane = 0; plane < context_.layout.planes; ++plane) {
    if (collector_.has_foldable(plane)) return true;
  }
  return false;
}

void Flash::forget_busy() {
  for (FifoServer& channel : channels_) channel.forget_busy();
  std::fill(chip_exec_ns_.begin(), chip_exec_ns_.end(), 0);
  std::fill(chip_transfer_ps_.begin(), chip_transfer_ps_.end(), 0);
  const std::uint64_t now_ns = context_.now_ns();
  for (Die& die : dies_) {
    die.busy_since_ns = std::max(die.busy_since_ns, now_ns);
    die.busy_ns = die.busy_since_ns - now_ns;  // of reads that were settled ahead
  }
}

void Flash::report(DeviceResult& result) const {
  result.chip_exec_ns = chip_exec_ns_;
  for (const std::uint64_t ps : chip_transfer_ps_) result.chip_transfer_ns.push_back(to_ns(ps));
  for (Die die : dies_) {
    if (die.busy) count_busy(die, die.busy_since_ns, context_.now_ns());
    result.die_busy_ns.push_back(die.busy_ns);
  }
  for (const FifoServer& channel : channels_) result.channel_busy_ns.push_back(channel.busy_ns());
}

}  // namespace iojoule::sim::physical
