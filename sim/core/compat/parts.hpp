// The parts of the device: plain state, no behaviour.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "../divisor.hpp"
#include "../flat_map.hpp"
#include "../generator.hpp"
#include "../result.hpp"
#include "../ring.hpp"
#include "../statistics.hpp"
#include "../trace.hpp"
#include "class_turns.hpp"
#include "transaction.hpp"

namespace iojoule::sim::compat {

struct UserRequest {
  std::uint64_t start_sector = 0;
  std::uint64_t arrival_ns = 0, enqueued_ns = 0;
  std::uint64_t fetched_at_completion = 0;  // commands fetched by then, as the completion tells
  std::uint32_t sectors = 0;
  std::uint32_t cached_sectors = 0;         // still to pass between DRAM and controller
  std::uint32_t open_transactions = 0;      // on their way to or from flash
  std::uint32_t pending_writes = nothing;   // chain of pages that found no room in the cache
  std::uint8_t flow = 0, stream = 0;
  bool is_read = false;
};

// One flow's host side and its statistics.
struct Flow {
  const FlowConfig* config = nullptr;
  std::uint8_t stream = 0, queue = 0;
  FlowSpace space;  // that its requests lie in, a part of the stream's
  std::unique_ptr<RequestGenerator> generator;
  std::vector<TraceRecord> trace;
  std::uint64_t next_record = 0, records_to_play = 0;

  FlowResult result;
  FlowLatencies latencies;
  FlowSeries series;
};

// A submission and a completion queue.
struct QueuePair {
  std::uint32_t slots = 0;
  std::uint32_t fetch_limit = 0;         // commands in the device beyond which none is fetched
  Ring<std::uint32_t> host_backlog;      // found the submission queue full
  Ring<std::uint32_t> submission_queue;  // not fetched yet
  std::uint64_t rung = 0, fetched = 0, fetched_as_known = 0;
  std::uint32_t announced = 0;                 // doorbells that arrived and led to no fetch yet
  std::uint32_t in_device = 0;
  std::uint32_t unconsumed = 0;                   // places of the completion queue that are taken
  std::deque<std::uint32_t> waiting_completions;  // found the completion queue full

  bool has_room() const { return rung - fetched_as_known < slots; }
};

// What the device takes for one source of requests, and its statistics. Arrays of two: read, write.
struct Stream {
  const FlowConfig* config = nullptr;
  FlowSpace space;
  Divisor stripe;                          // by the number of its planes
  std::vector<std::uint32_t> first_read_planes;  // see planes_of_first_reads
  std::uint64_t last_sector = 0;           // that a request may start in
  std::uint64_t logical_pages = 0;
  std::uint64_t pages[2] = {};  // of requests, also those that the cache serves or a collection drops
  // of the transactions that run, those that read what a program does not cover among the reads
  std::uint64_t turnaround_ns[2] = {}, execution_ns[2] = {}, transfer_ns[2] = {}, waiting_ns[2] = {};
};

enum EventKind : std::uint8_t {
  // a message has come over the link to the device
  submission_doorbell, completion_doorbell, submission, write_data,
  // over that to the host
  submission_fetch, write_data_fetch, read_data, completion,
  flow_start, flow_arrival, sata_submitted, sata_completed, dram_done, bus_done, chip_done,
};

// What has at most one event pending.
enum Single : std::size_t { to_device, to_host, dram, singles };

// A message on a link, about a request.
struct Message {
  EventKind kind;
  std::uint8_t queue;
  std::uint32_t subject;
  std::uint64_t duration_ns;
};

struct LinkQueue {
  Single direction;
  Ring<Message> messages = {};
  std::uint64_t busy_ns = 0;
};

struct DramAccess {
  enum class Purpose : std::uint8_t { user, eviction, fill };
  Purpose purpose;
  std::uint8_t flow;
  std::uint32_t bytes;
  std::uint32_t subject;  // a request, or the first of a chain of evicted pages
};

// The translation pages of one stream, by number.
struct MappingPages {
  struct Page {
    std::uint32_t place = nothing, departing = 0;
    std::vector<std::uint32_t> arriving;  // logical pages that wait for it
  };
  std::vector<Page> pages;
  FlatMap waiting_reads, waiting_programs;  // logical page -> oldest that waits for it

  Page& operator[](std::uint32_t number) { return pages[number]; }
  std::uint64_t held_bytes() const {
    return pages.capacity() * sizeof(Page) + waiting_reads.bytes() + waiting_programs.bytes();
  }
};

struct ChipQueues {
  ClassQueues user_read, user_program;
  ClassTurns read_turns, program_turns;
  TransactionList mapping_read, collector_read, collector_program, collector_erase;
  std::uint32_t waiting = 0;  // in all of them

  std::uint64_t held_bytes() const {
    std::uint64_t held = mapping_read.held_bytes() + collector_read.held_bytes() +
                         collector_program.held_bytes() + collector_erase.held_bytes();
    for (const TransactionList& list : user_read) held += list.held_bytes();
    for (const TransactionList& list : user_program) held += list.held_bytes();
    return held;
  }
};

// The pages of one command: of one die, each in another plane.
class CommandPages {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::uint32_t front() const { return pages_.front(); }
  const std::uint32_t* begin() const { return pages_.data(); }
  const std::uint32_t* end() const { return pages_.data() + size_; }
  void push_back(std::uint32_t page) { pages_[size_++] = page; }
  void clear() { size_ = 0; }

 private:
  static constexpr std::size_t planes_per_die_limit = 4;  // of MQSim, see validate.cpp
  std::array<std::uint32_t, planes_per_die_limit> pages_{};
  std::size_t size_ = 0;
};

// Where a plane is: its chip, the die in it, the plane's bit in the mask of a command's planes.
struct PlaneSite {
  std::uint32_t chip = 0, die = 0, bit = 0;
};

struct Chip {
  enum class Status : std::uint8_t { idle, command, reading, programming, erasing, data_out };
  std::uint32_t channel = 0;
  std::uint64_t bit = 0;              // in its channel's masks of chips
  Status status = Status::idle;
  Operation operation = Operation::read;
  CommandPages active;                // the pages of the running command
  std::uint32_t pages_to_send = 0;    // read, not yet over the channel
  std::uint64_t execution_ns = 0, transfer_ns = 0;
};

struct Channel {
  bool busy = false;
  std::uint32_t chip = 0;           // whose command is on the bus
  std::uint32_t sending = nothing;  // the page that is on the bus
  std::uint32_t next_chip = 0;      // where round robin goes on
  std::uint64_t idle_chips = 0, chips_with_work = 0;
  Ring<std::uint32_t> mapping_out, user_out, collector_out;
  std::uint64_t busy_ns = 0;
};

// Of 64 neighbouring channels, bit by bit: each submission asks all of them.
struct ChannelSet {
  static constexpr std::uint32_t channels = 64;
  static constexpr std::uint64_t bit(std::uint32_t channel) { return std::uint64_t{1} << (channel % channels); }
  std::uint64_t busy = 0, with_work = 0;
};

}  // namespace iojoule::sim::compat
