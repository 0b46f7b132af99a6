// The dies: what each does next, and how long it takes. Dies work in parallel and share channels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "channel_timing.hpp"
#include "collector.hpp"
#include "context.hpp"
#include "fifo_server.hpp"

namespace iojoule::sim::physical {

enum class ReadKind : std::uint8_t {
  user,            // owner: request
  fill,            // owner: cache slot, of which the host wrote a part
  mapping_load,    // owner: page of the mapping table that somebody waits for
  mapping_update,  // owner: page of the mapping table about to be written back
  moved            // owner: plane whose block is being emptied
};

// A page to be read, or a part of it.
struct PageRead {
  std::uint64_t asked_ns, began_ns;
  std::uint32_t owner;
  std::uint32_t plane;
  std::uint32_t page;         // counted over the drive; of a page never written, where it would be
  bool written;               // false: there is nothing to protect from being erased
  ReadKind kind;
  std::uint8_t queue_class;   // 0: mapping; 1 to 4: user, by priority
  std::uint32_t first_unit, units;  // logical units that were asked for
  std::uint32_t useful_bytes;       // of data that were asked for
  std::uint32_t bytes;              // of data that cross the channel
  std::uint32_t array_ns, transfer_ns;
  std::uint32_t next;
};

// Who is told what the flash has done.
class FlashClient {
 public:
  // Its data have left the die at out_ns, which is now or, where reads are settled ahead, later.
  virtual void page_read(const PageRead& read, std::uint64_t out_ns) = 0;
  // All slots of a page.
  virtual void slots_programmed(const std::uint32_t* slots, std::uint32_t count,
                                std::uint64_t array_ns, std::uint64_t transfer_ns) = 0;
  virtual void mapping_page_programmed(std::uint32_t page) = 0;

 protected:
  ~FlashClient() = default;
};

class Flash {
 public:
  // With `ahead` a user's read is over, for the client, when it is sensed (../fast/flash_ahead.cpp).
  Flash(Context& context, FlashClient& client, bool ahead = false);

  // Where a unit is: its page in flash, or where striping would have put it.
  struct Place {
    std::uint32_t plane, page;
    bool written;
  };
  // What of it: so many units from the first, so many bytes.
  struct Part {
    std::uint32_t first_unit, units, bytes;
  };
  void read(ReadKind kind, std::uint32_t owner, const Place& place, const Part& part,
            std::uint8_t queue_class, bool alone = false);
  // A page of the mapping table is to be programmed on the plane.
  void write_mapping_page(std::uint32_t page, std::uint32_t plane);
  // A dirty slot was put into a list of the cache.
  void list_changed(std::size_t list) {
    if (partial_timer_[list] == 0) arm_partial_timer(list);
    if (round_robin_) {
      lists_changed_ = true;
    } else {
      mark(context_.layout.die_of_plane(static_cast<std::uint32_t>(list / classes_)));
    }
  }
  // Everything now in the lists goes, whether or not it fills pages.
  void force_all();
  void on_partial_page(std::size_t list);
  // Lets every die that was given something begin it. To be called after each event.
  void run_marked() {
    if (!marked_.empty() || (round_robin_ && lists_changed_)) begin_marked();
  }
  void mark(std::uint32_t die) {
    if (dies_[die].marked) return;
    dies_[die].marked = true;
    marked_.push_back(die);
  }
  void mark_all();

  void on_sense_done(std::uint32_t die);
  void on_page_out(std::uint32_t read);
  void on_program_done(std::uint32_t die);
  void on_erase_done(std::uint32_t die);
  void on_begun(std::uint32_t die);
  void on_suspended(std::uint32_t die);
  void on_left(std::uint32_t die);
  void on_power_reopens();

  // Spends what programs and erases under way have drawn so far, which otherwise counts at their end.
  void settle();

  void begin_folding();
  void end_folding() { collector_.set_folding(false); }

  // Whether the power cap holds dies back.
  bool gated() const { return gated_head_ < gated_.size(); }
  void force(std::size_t list);
  std::uint32_t busy_dies() const { return busy_dies_; }
  // Whether some block is being emptied or some page of the mapping table waits.
  bool background_work() const { return collector_.jobs_active() > 0 || mapping_writes_ > 0; }
  bool foldable() const;

  // The list of the cache in which a flow's dirty unit waits.
  std::size_t list_of(std::uint16_t flow, std::uint32_t unit, Priority priority) const {
    return round_robin_ ? flow : striped_list(flow, unit, priority);
  }
  // Of that unit and those after it, how many wait in one list.
  std::uint32_t units_in_list(std::uint16_t flow, std::uint32_t unit) const {
    const Layout& layout = context_.layout;
    if (round_robin_) return UINT32_MAX;
    return layout.units_per_page - layout.by_page.remainder(unit - layout.first_unit[flow]);
  }
  void forget_busy();
  void report(DeviceResult& result) const;
  const Collector& collector() const { return collector_; }

 private:
  enum class Array : std::uint8_t { idle, sensing, holding, programming, erasing, suspending };
  enum class Suspended : std::uint8_t { nothing, program, erase };
  static constexpr std::size_t read_classes = 5;

  // A program or erase.
  struct Operation {
    std::uint64_t nominal_ns = 0, remaining_ns = 0;
    double joules = 0, watts = 0;
    std::uint32_t suspends = 0;
  };
  struct Die {
    std::uint64_t began_ns = 0, end_ns = 0;  // of what the array is doing
    std::uint64_t suspended_ns = 0;
    std::uint64_t busy_ns = 0, busy_since_ns = 0;  // counted, and up to when at least
    std::uint64_t wrote_ns = 0;              // when user data were last programmed
    Operation operation, paused;
    std::uint32_t outs = 0;       // sensed pages that still leave over the channel
    std::uint32_t sensed = none;  // chain of the pages being sensed
    std::array<std::uint32_t, read_classes> waiting{};
    std::array<std::uint8_t, 4> read_credit{}, write_credit{};
    std::uint32_t mapping_writes = 0, next_plane = 0, next_row = 0;
    Array array = Array::idle;
    Suspended suspended = Suspended::nothing;
    bool busy = false, marked = false, gated = false;
    bool begin_awaited = false;  // by what would suspend the operation
  };
  struct Queue {
    std::uint32_t head = none, tail = none;
  };
  // Data of reads that were settled ahead.
  struct Leaving {
    std::uint64_t until_ns = 0;  // they take the die's registers
    bool wakes = false;          // an event is pending for then
  };
  struct Sensing {
    std::uint64_t array_ns;
    double joules;
  };
  // What a plane is programming.
  struct PlaneProgram {
    std::uint32_t page = none;
    Stream stream = Stream::user;
    std::uint8_t count = 0;
    std::uint32_t transfer_ns = 0;
  };

  // dispatching: flash_dispatch.cpp
  void begin_marked();
  void arm_partial_timer(std::size_t list);
  std::uint32_t units_worth_a_program() const;
  std::size_t striped_list(std::uint16_t flow, std::uint32_t unit, Priority priority) const;
  void dispatch(std::uint32_t die);
  bool begin_next(std::uint32_t die);
  // Whether what the die has suspended must go on before anything else.
  bool suspended_too_long(const Die& die) const {
    return die.suspended != Suspended::nothing &&
           die.suspended_ns + nand_.suspended_max_ns < context_.now_ns();
  }
  void continue_suspended(std::uint32_t die);
  void consider_suspending(std::uint32_t die);
  void consider_when_begun(std::uint32_t die);
  bool collect(std::uint32_t die);
  bool urgent(std::uint32_t die) const;
  bool writes_overdue(std::uint32_t die);
  bool writes_ready(std::uint32_t die);
  void suspend(std::uint32_t die, std::uint64_t takes_ns);
  void offer_lists();
  void update_busy(std::uint32_t die);
  // Counts each moment once: reads that were settled ahead overlap with one another and with what a
  // suspended die keeps.
  static void count_busy(Die& die, std::uint64_t from_ns, std::uint64_t until_ns) {
    from_ns = std::max(from_ns, die.busy_since_ns);
    if (until_ns <= from_ns) return;
    die.busy_ns += until_ns - from_ns;
    die.busy_since_ns = until_ns;
  }
  // Whether data that were settled ahead still leave the die. At their very end they do, until the
  // event for it: whatever waits for the die is begun there, in the order in which it came.
  bool leaving(std::uint32_t die) const {
    return !leaving_.empty() && leaving_[die].until_ns >= context_.now_ns() &&
           leaving_[die].until_ns > 0;
  }
  // Programs, erases and the data of the next read need the page registers.
  bool registers_free(std::uint32_t die) const { return dies_[die].outs == 0 && !leaving(die); }
  void release_registers(std::uint32_t die);
  // Whether something may have come while a read was sensed: where reads begin without their queue, that
  // alone makes the die busy.
  bool may_go_on(const Die& die) const { return leaving_.empty() || die.busy; }
  bool idle_for_read(std::uint32_t die);
  void settle_read(std::uint32_t read, std::uint64_t out_ns);
  void settled_ahead(std::uint32_t die, std::uint64_t began_ns);
  bool wants_more(std::uint32_t die);
  void wake_when_left(std::uint32_t die);
  void gate(std::uint32_t die);
  std::uint32_t next_class(const std::array<std::uint32_t, 4>& waiting,
                           std::array<std::uint8_t, 4>& credit) const;
  bool joins(std::uint32_t page, std::uint32_t lead_page) const;

  // reads: flash_read.cpp
  std::uint32_t new_read();
  void free_read(std::uint32_t index);
  bool begin_reads(std::uint32_t die);
  void begin_class(std::uint32_t die, std::size_t queue_class);
  std::uint64_t sensing_ns(std::uint64_t page_ns, std::uint32_t bytes) const;
  void sense(std::uint32_t die, std::uint32_t chain, std::uint32_t count);
  std::uint32_t bytes_out(std::uint32_t useful_bytes) const;
  Sensing count_sensing(ReadKind kind, std::uint32_t page, bool written, std::uint32_t bytes);
  void move_out(std::uint32_t die);
  void count_move(std::uint32_t die, PageRead& read, std::uint64_t out_ps);
  bool reads_waiting(const Die& die) const {
    const auto& of = die.waiting;
    return (of[0] | of[1] | of[2] | of[3] | of[4]) != 0;
  }

  // programs and erases: flash_program.cpp
  bool begin_user_program(std::uint32_t die);
  bool begin_striped(std::uint32_t die);
  bool begin_round_robin(std::uint32_t die);
  bool begin_mapping_program(std::uint32_t die);
  void begin_moved_programs(std::uint32_t die, std::uint32_t lead);
  void begin_moved_reads(std::uint32_t die, std::uint32_t lead);
  void begin_erases(std::uint32_t die, std::uint32_t lead);
  bool list_ready(std::size_t list_index, std::uint32_t batch) {
    const DirtyList& list = context_.cache.list(list_index);
    return list.length >= batch || list.forced > 0;
  }
  Stream user_stream(std::uint32_t plane) const;
  void take_units(std::uint32_t plane, std::size_t list, Stream stream, std::uint32_t count);
  void start_program(std::uint32_t die);
  void finish_plane(std::uint32_t plane, std::uint64_t array_ns);
  void spend_segment(Die& die, Component component, std::uint64_t end_ns);

  Context& context_;
  FlashClient& client_;
  ChannelTiming timing_;
  Collector collector_;
  const NandOptions& nand_;
  const EnergyOptions& energy_;
  bool ideal_mapping_, by_priority_, gc_preemptible_, copyback_, round_robin_;
  bool suspend_programs_, suspend_erases_;
  std::size_t classes_;

  std::vector<Die> dies_;
  std::vector<Leaving> leaving_;  // by die; empty: no read is settled ahead
  std::vector<FifoServer> channels_;
  std::vector<std::uint64_t> chip_exec_ns_, chip_transfer_ps_;
  std::vector<Queue> read_queues_;           // plane x class
  std::vector<PageRead> reads_;
  std::uint32_t free_read_ = none;
  std::vector<PlaneProgram> programs_;       // by plane
  std::vector<std::uint32_t> program_units_, program_from_;  // plane x unit in page
  std::vector<bool> erasing_;                // by plane
  std::vector<Queue> mapping_queues_;        // by plane
  LazyArray<std::uint32_t> next_mapping_write_;
  std::vector<std::uint32_t> marked_, gated_;
  std::size_t gated_head_ = 0;
  bool lists_changed_ = false;
  std::vector<std::vector<std::uint32_t>> flow_planes_;  // round robin: of all flows, by die
  std::vector<std::uint32_t> row_;
  std::vector<std::uint32_t> turn_;          // dies, channel varying fastest
  std::uint32_t next_turn_ = 0, busy_dies_ = 0, mapping_writes_ = 0;
  std::vector<Move> moves_;                  // a page's worth
  std::vector<std::uint8_t> partial_timer_;  // by list: one is pending
  std::uint64_t gated_since_ns_ = 0;
  std::uint32_t list_batch_ = 0;             // units that make a list worth a program
};

}  // namespace iojoule::sim::physical
