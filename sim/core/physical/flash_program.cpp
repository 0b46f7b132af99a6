// Programs and erases: which units go into a page, when it is done, and what becomes valid where.
#include <algorithm>

#include "flash.hpp"

namespace iojoule::sim::physical {

Stream Flash::user_stream(std::uint32_t plane) const {
  const SlcOptions& slc = context_.options.slc;
  if (slc.static_blocks_per_plane + slc.dynamic_blocks_per_plane == 0) return Stream::user;
  if (context_.blocks.can_allocate(plane, Stream::slc)) return Stream::slc;
  const bool waits = slc.when_full == SlcWhenFull::fold && context_.blocks.slc_blocks(plane) > 0;
  return waits ? Stream::slc : Stream::user;
}

bool Flash::begin_user_program(std::uint32_t die) {
  const bool began = round_robin_ ? begin_round_robin(die) : begin_striped(die);
  if (began) dies_[die].wrote_ns = context_.now_ns();
  return began;
}

bool Flash::begin_striped(std::uint32_t die_index) {
  const std::uint32_t planes = context_.layout.planes_per_die;
  const std::uint32_t first = die_index * planes;
  const std::uint32_t batch = context_.layout.units_per_page;
  const auto can_begin = [&](std::uint32_t plane, std::uint32_t of_class) {
    return list_ready(plane * classes_ + of_class, batch) &&
           context_.blocks.can_allocate(plane, user_stream(plane));
  };
  std::array<std::uint32_t, 4> waiting{};
  for (std::uint32_t p = first; p < first + planes; ++p) {
    for (std::uint32_t c = 0; c < classes_; ++c) waiting[c] += can_begin(p, c) ? 1 : 0;
  }
  const std::uint32_t chosen = next_class(waiting, dies_[die_index].write_credit);
  if (chosen == none) return false;
  std::uint32_t lead = none;
  std::uint64_t oldest_ns = UINT64_MAX;
  for (std::uint32_t p = first; p < first + planes; ++p) {
    if (!can_begin(p, chosen)) continue;
    const std::uint64_t since_ns =
        context_.cache.slot(context_.cache.list(p * classes_ + chosen).head).dirty_ns;
    if (since_ns < oldest_ns) {
      oldest_ns = since_ns;
      lead = p;
    }
  }
  const Stream stream = user_stream(lead);
  const std::uint32_t lead_page = context_.blocks.peek(lead, stream);
  for (std::uint32_t i = 0; i < planes; ++i) {
    const std::uint32_t p = first + (lead - first + i) % planes;
    if (i > 0 && (!can_begin(p, chosen) || user_stream(p) != stream ||
                  !joins(context_.blocks.peek(p, stream), lead_page))) {
      continue;
    }
    take_units(p, p * classes_ + chosen, stream, batch);
  }
  start_program(die_index);
  return true;
}

// A row of pages, one on each plane of the die that has room; all of them in one stream.
bool Flash::begin_round_robin(std::uint32_t die_index) {
  const std::uint32_t per_page = context_.layout.units_per_page;
  for (std::size_t list = 0; list < context_.cache.lists(); ++list) {
    if (!list_ready(list, per_page)) continue;
    row_.clear();
    for (const std::uint32_t plane : flow_planes_[die_index]) {
      if (context_.blocks.has_room(plane, per_page)) row_.push_back(plane);
    }
    const auto width = static_cast<std::uint32_t>(row_.size());
    if (width == 0 || !list_ready(list, std::min(width * per_page, list_batch_))) continue;
    const bool all_slc = std::all_of(row_.begin(), row_.end(), [&](std::uint32_t plane) {
      return user_stream(plane) == Stream::slc;
    });
    const Stream stream = all_slc ? Stream::slc : Stream::user;
    const bool ready = std::all_of(row_.begin(), row_.end(), [&](std::uint32_t plane) {
      return context_.blocks.can_allocate(plane, stream);
    });
    if (!ready) continue;  // garbage collection or folding is making room
    // A row that is not full begins with another plane each time.
    const std::uint32_t first = dies_[die_index].next_row++ % width;
    for (std::uint32_t i = 0; i < width && context_.cache.list(list).head != none; ++i) {
      take_units(row_[(first + i) % width], list, stream, per_page);
    }
    start_program(die_index);
    return true;
  }
  return false;
}

void Flash::take_units(std::uint32_t plane, std::size_t list, Stream stream, std::uint32_t count) {
  PlaneProgram& program = programs_[plane];
  program.page = context_.blocks.allocate(plane, stream);
  program.stream = stream;
  const Layout& layout = context_.layout;
  const std::uint32_t first = program.page * layout.units_per_page;
  std::uint32_t* const units = &program_units_[plane * layout.units_per_page];
  // Units that were written together mostly lie together, so that a block loses several at once.
  std::uint32_t old_block = none, lost = 0, taken = 0;
  for (; taken < count; ++taken) {
    const std::uint32_t index = context_.cache.dequeue(list);
    if (index == none) break;
    units[taken] = index;
    const CacheSlot& slot = context_.cache.slot(index);
    // From here on the unit is found in its new page; until that is programmed, reads find the slot.
    const std::uint32_t old = context_.table.move_held(slot.unit, index, first + taken);
    if (old != none) {
      const std::uint32_t block = layout.block_of_unit(old);
      if (block != old_block && lost > 0) {
        context_.blocks.drop_valid(old_block, lost);
        lost = 0;
      }
      old_block = block;
      ++lost;
    }
    if (!ideal_mapping_) context_.mapping_cache.change(slot.unit, slot.flow);
  }
  if (lost > 0) context_.blocks.drop_valid(old_block, lost);
  context_.blocks.add_valid(layout.block_of_page(program.page), taken);
  program.count = static_cast<std::uint8_t>(taken);
  context_.table.prefetch_place(first + layout.units_per_page);  // of the plane's next page
  arm_partial_timer(list);
  collector_.consider(plane);
}

bool Flash::begin_mapping_program(std::uint32_t die_index) {
  const std::uint32_t planes = context_.layout.planes_per_die;
  const std::uint32_t per_page = context_.layout.units_per_page;
  bool began = false;
  std::uint32_t lead_page = none;
  for (std::uint32_t p = die_index * planes; p < (die_index + 1) * planes; ++p) {
    Queue& queue = mapping_queues_[p];
    if (queue.head == none || !context_.blocks.can_allocate(p, Stream::mapping)) continue;
    const std::uint32_t next_page = context_.blocks.peek(p, Stream::mapping);
    if (began && !joins(next_page, lead_page)) continue;
    PlaneProgram& program = programs_[p];
    program.page = context_.blocks.allocate(p, Stream::mapping);
    program.stream = Stream::mapping;
    program.count = 0;
    while (program.count < per_page && queue.head != none) {
      program_units_[p * per_page + program.count++] = queue.head;
      queue.head = next_mapping_write_[queue.head];
      --dies_[die_index].mapping_writes;
      --mapping_writes_;
    }
    collector_.consider(p);
    began = true;
    lead_page = next_page;
  }
  if (began) start_program(die_index);
  return began;
}

void Flash::begin_moved_programs(std::uint32_t die_index, std::uint32_t lead) {
  const std::uint32_t planes = context_.layout.planes_per_die;
  const std::uint32_t first = die_index * planes;
  const std::uint32_t per_page = context_.layout.units_per_page;
  const std::uint32_t lead_page = context_.blocks.peek(lead, Stream::moved);
  for (std::uint32_t i = 0; i < planes; ++i) {
    const std::uint32_t p = first + (lead - first + i) % planes;
    if (i > 0 && (!collector_.active(p) || collector_.next(p) != Step::program ||
                  (!round_robin_ && !joins(context_.blocks.peek(p, Stream::moved), lead_page)))) {
      continue;
    }
    PlaneProgram& program = programs_[p];
    program.count = static_cast<std::uint8_t>(collector_.begin_program(p, moves_.data()));
    program.page = context_.blocks.allocate(p, Stream::moved);
    program.stream = Stream::moved;
    for (std::uint32_t u = 0; u < program.count; ++u) {
      program_units_[p * per_page + u] = moves_[u].content;
      program_from_[p * per_page + u] = moves_[u].from;
    }
    if (nand_.multi_plane == MultiPlane::none && !round_robin_) break;
  }
  start_program(die_index);
}

void Flash::start_program(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  const Layout& layout = context_.layout;
  const std::uint32_t first = die_index * layout.planes_per_die;
  std::uint32_t count = 0;
  std::uint64_t longest_ns = 0, moved_bytes = 0;
  double joules = 0;
  const auto page_joules = [&](const PlaneProgram& program) {
    return program.stream == Stream::slc ? energy_.slc_page_program_joules
                                         : energy_.page_program_joules[layout.page_kind(program.page)];
  };
  for (std::uint32_t p = first; p < first + layout.planes_per_die; ++p) {
    PlaneProgram& program = programs_[p];
    if (program.page == none) continue;
    ++count;
    const bool slc = program.stream == Stream::slc;
    const std::uint32_t kind = layout.page_kind(program.page);
    longest_ns = std::max(longest_ns, slc ? context_.options.slc.page_program_ns
                                          : context_.device.page_program_ns[kind]);
    joules += page_joules(program);
    const bool stays_inside =
        copyback_ && program.stream == Stream::moved && program.count == layout.units_per_page;
    const std::uint64_t bytes =
        stays_inside ? 0 : timing_.bytes_moved(std::uint64_t{program.count} * layout.unit_bytes);
    moved_bytes += bytes;
    program.transfer_ns = static_cast<std::uint32_t>(timing_.data_ps(bytes) / ps_per_ns);
    OriginCounts& pages = context_.counts.pages_programmed;
    switch (program.stream) {
      case Stream::moved:
        ++pages.gc;
        ++context_.counts.gc_page_moves;
        context_.counts.physical.units_moved += program.count;
        break;
      case Stream::mapping: ++pages.mapping; break;
      default:
        ++pages.user;
        context_.counts.physical.units_written += program.count;
        break;
    }
    if (slc) ++context_.counts.physical.slc_pages_programmed;
  }
  const double seconds = static_cast<double>(longest_ns) * 1e-9;
  for (std::uint32_t p = first; p < first + layout.planes_per_die; ++p) {
    const PlaneProgram& program = programs_[p];
    if (program.page == none) continue;
    const bool slc = program.stream == Stream::slc;
    const std::uint32_t kind = slc ? slc_page : layout.page_kind(program.page);
    const Origin origin = program.stream == Stream::moved     ? Origin::collection
                          : program.stream == Stream::mapping ? Origin::mapping
                                                              : Origin::user;
    context_.meter.count(ArrayWork::program, kind, origin,
                         page_joules(program) + energy_.array_program_watts * seconds);
  }
  ++(count == 1 ? context_.counts.cmd_prog : context_.counts.cmd_mp_prog);
  const std::uint64_t channel_ps = timing_.program_command_ps(count) + timing_.data_ps(moved_bytes);
  FifoServer& channel = channels_[layout.channel_of_die(die_index)];
  const std::uint64_t loaded_ps = channel.serve(to_ps(context_.now_ns()), channel_ps);
  chip_transfer_ps_[layout.chip_of_die(die_index)] += channel_ps;
  const double channel_joules = energy_.channel_joules_per_byte * static_cast<double>(moved_bytes);
  context_.meter.spend(Component::channel, channel_joules, (loaded_ps - channel_ps) / ps_per_ns,
                       to_ns(loaded_ps));
  die.array = Array::programming;
  die.began_ns = to_ns(loaded_ps);
  die.end_ns = die.began_ns + longest_ns;
  die.operation = {longest_ns, 0, joules, energy_.array_program_watts * count, 0};
  context_.power.charge(channel_joules + joules +
                        die.operation.watts * static_cast<double>(longest_ns) * 1e-9);
  context_.schedule(die.end_ns, EventKind::program_done, die_index);
}

// What the array did from began_ns to end_ns, as its share of the whole operation.
void Flash::spend_segment(Die& die, Component component, std::uint64_t end_ns) {
  const std::uint64_t length_ns = end_ns - die.began_ns;
  const Operation& operation = die.operation;
  const double share = operation.nominal_ns == 0 ? 1.0
                                                 : static_cast<double>(length_ns) /
                                                       static_cast<double>(operation.nominal_ns);
  context_.meter.spend(
      component,
      operation.joules * share + operation.watts * static_cast<double>(length_ns) * 1e-9,
      die.began_ns, end_ns);
  chip_exec_ns_[context_.layout.chip_of_die(static_cast<std::uint32_t>(&die - dies_.data()))] +=
      length_ns;
}

void Flash::settle() {
  const std::uint64_t now_ns = context_.now_ns();
  for (Die& die : dies_) {
    const bool programs = die.array == Array::programming;
    if ((!programs && die.array != Array::erasing) || now_ns <= die.began_ns) continue;
    spend_segment(die, programs ? Component::array_program : Component::array_erase, now_ns);
    die.began_ns = now_ns;
  }
}

void Flash::on_program_done(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  if (die.array != Array::programming || die.end_ns != context_.now_ns()) return;  // was suspended
  spend_segment(die, Component::array_program, die.end_ns);
  die.array = Array::idle;
  const std::uint32_t first = die_index * context_.layout.planes_per_die;
  for (std::uint32_t p = first; p < first + context_.layout.planes_per_die; ++p) {
    if (programs_[p].page != none) finish_plane(p, die.operation.nominal_ns);
  }
  mark(die_index);
}

void Flash::finish_plane(std::uint32_t plane, std::uint64_t array_ns) {
  const PlaneProgram program = programs_[plane];
  programs_[plane].page = none;
  const std::uint32_t per_page = context_.layout.units_per_page;
  if (program.stream == Stream::user || program.stream == Stream::slc) {
    return client_.slots_programmed(&program_units_[plane * per_page], program.count, array_ns,
                                    program.transfer_ns);
  }
  const std::uint32_t block = context_.layout.block_of_page(program.page);
  for (std::uint32_t u = 0; u < program.count; ++u) {
    const std::uint32_t what = program_units_[plane * per_page + u];
    const std::uint32_t physical = program.page * per_page + u;
    if (program.stream == Stream::mapping) {
      const std::uint32_t old = context_.table.find_mapping_page(what);
      const std::uint32_t content = Content::of_mapping_page(what);
      if (old != none) {
        context_.blocks.drop_valid(context_.layout.block_of_unit(old));
        context_.table.remove(content);
      }
      context_.table.put(content, physical);
      context_.blocks.add_valid(block, 1);
      client_.mapping_page_programmed(what);
    } else {
      const std::uint32_t from = program_from_[plane * per_page + u];
      if (context_.table.content(from) != what) continue;  // written anew or trimmed meanwhile
      context_.blocks.drop_valid(context_.layout.block_of_unit(from));
      context_.table.remove(what);
      context_.table.put(what, physical);
      context_.blocks.add_valid(block, 1);
      if (!ideal_mapping_ && !Content::is_mapping_page(what)) {
        const std::uint32_t unit = Content::unit(what);
        context_.mapping_cache.change(unit, context_.flow_of_unit(unit));
      }
    }
  }
  if (program.stream == Stream::moved) collector_.program_done(plane);
}

void Flash::begin_erases(std::uint32_t die_index, std::uint32_t lead) {
  Die& die = dies_[die_index];
  const Layout& layout = context_.layout;
  const std::uint32_t first = die_index * layout.planes_per_die;
  const auto block_joules = [this](bool slc) {
    return slc ? energy_.slc_block_erase_joules : energy_.block_erase_joules;
  };
  std::uint32_t count = 0, slc_count = 0;
  std::uint64_t longest_ns = 0;
  double joules = 0;
  for (std::uint32_t i = 0; i < layout.planes_per_die; ++i) {
    const std::uint32_t p = first + (lead - first + i) % layout.planes_per_die;
    if (i > 0 && (!collector_.active(p) || collector_.next(p) != Step::erase)) continue;
    const bool slc = context_.blocks.is_slc(collector_.victim(p));
    longest_ns = std::max(longest_ns, slc ? context_.options.slc.block_erase_ns
                                          : context_.device.block_erase_ns);
    joules += block_joules(slc);
    if (slc) ++context_.counts.physical.slc_blocks_erased;
    slc_count += slc;
    collector_.begin_erase(p);
    erasing_[p] = true;
    ++count;
    ++context_.counts.blocks_erased.gc;
    if (nand_.multi_plane == MultiPlane::none) break;
  }
  const double array_joules = energy_.array_erase_watts * static_cast<double>(longest_ns) * 1e-9;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool slc = i < slc_count;
    context_.meter.count(ArrayWork::erase, slc ? slc_page : 0, Origin::collection,
                         array_joules + block_joules(slc));
  }
  ++(count == 1 ? context_.counts.cmd_erase : context_.counts.cmd_mp_erase);
  const std::uint64_t command_ps = timing_.erase_command_ps(count);
  chip_transfer_ps_[layout.chip_of_die(die_index)] += command_ps;
  die.array = Array::erasing;
  die.began_ns = to_ns(channels_[layout.channel_of_die(die_index)].serve(
      to_ps(context_.now_ns()), command_ps));
  die.end_ns = die.began_ns + longest_ns;
  die.operation = {longest_ns, 0, joules, energy_.array_erase_watts * count, 0};
  context_.power.charge(joules + die.operation.watts * static_cast<double>(longest_ns) * 1e-9);
  context_.schedule(die.end_ns, EventKind::erase_done, die_index);
}

void Flash::on_erase_done(std::uint32_t die_index) {
  Die& die = dies_[die_index];
  if (die.array != Array::erasing || die.end_ns != context_.now_ns()) return;  // was suspended
  spend_segment(die, Component::array_erase, die.end_ns);
  die.array = Array::idle;
  const std::uint32_t first = die_index * context_.layout.planes_per_die;
  for (std::uint32_t p = first; p < first + context_.layout.planes_per_die; ++p) {
    if (!erasing_[p]) continue;
    erasing_[p] = false;
    if (context_.blocks.release(collector_.victim(p))) ++context_.counts.physical.blocks_retired;
    switch (collector_.erase_done(p)) {
      case Emptying::collection: ++context_.counts.gc_exec; break;
      case Emptying::levelling: ++context_.counts.wl_exec; break;
      case Emptying::folding: ++context_.counts.physical.slc_folds; break;
    }
  }
  lists_changed_ = true;
  mark(die_index);
}

}  // namespace iojoule::sim::physical
