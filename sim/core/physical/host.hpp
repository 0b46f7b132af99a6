// The host: makes each flow's requests, spends its CPU time on them, and measures their latency.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../generator.hpp"
#include "../statistics.hpp"
#include "../trace.hpp"
#include "collector.hpp"
#include "context.hpp"

namespace iojoule::sim::physical {

enum class RequestKind : std::uint8_t { read, write, trim, flush };

struct HostRequest {
  std::uint64_t intended_ns;   // when it should begin; latency end to end counts from here
  std::uint64_t submitted_ns;  // its entry is in the submission queue
  std::uint64_t data_end_ps;   // its last byte is in memory or has left the drive
  std::uint64_t sector;        // of the flow
  std::uint32_t sectors;
  std::uint32_t pending;       // what the drive still has to do for it
  std::uint32_t progress;      // units already taken into the cache
  std::uint32_t epoch;         // of a flush
  std::uint32_t next;          // in a queue of waiting requests
  std::uint16_t flow, job;
  RequestKind kind;
};

// First in, first out, by the requests' own links.
struct RequestQueue {
  std::uint32_t head = none, tail = none;
};

// Who is told of requests that come from outside.
class CompletionSink {
 public:
  virtual void completed(std::uint32_t index, std::uint64_t done_ns) = 0;

 protected:
  ~CompletionSink() = default;
};

class Host {
 public:
  Host(Context& context, const std::vector<FlowConfig>& flows, const Limits& limits,
       std::uint64_t series_step_ns);

  void start();
  // Instead of start: requests come from outside, and the flows make none.
  void serve(CompletionSink& sink) { sink_ = &sink; }
  // The request's number, which its completion names and a later request may have again.
  std::uint32_t submit_from_outside(RequestKind kind, std::uint64_t sector, std::uint32_t sectors);
  // The same without an event: its command is in the drive submission_ns after the request was made.
  std::uint32_t make_from_outside(RequestKind kind, std::uint64_t sector, std::uint32_t sectors,
                                  std::uint64_t at_ns);
  std::uint64_t submission_ns() const { return submission_ns_; }
  void free(std::uint32_t index);
  // An event of EventKind::generate.
  void on_generate(std::uint32_t subject);
  // The completion of a request has arrived.
  void on_request_done(std::uint32_t index);

  HostRequest& request(std::uint32_t index) { return requests_[index]; }
  const FlowConfig& flow(std::uint16_t index) const { return *flows_[index].config; }
  std::size_t flow_count() const { return flows_.size(); }
  void push(RequestQueue& queue, std::uint32_t index);
  std::uint32_t pop(RequestQueue& queue);

  // No flow will make another request, and none is under way.
  bool done() const { return open_flows_ == 0; }
  std::uint64_t outstanding() const;
  // When its CPU is done with the last completion, which can be after the last event.
  std::uint64_t busy_until_ns() const { return busy_until_ns_; }
  // Nothing counts that was done before.
  void begin_measuring();
  // Sums over a flow's flash transactions, reads and writes apart; `count` of them took so long
  // together.
  void add_transaction(std::uint16_t flow, bool is_write, std::uint64_t turnaround_ns,
                       std::uint64_t execution_ns, std::uint64_t transfer_ns,
                       std::uint32_t count = 1);
  std::vector<FlowResult> results(std::uint64_t end_ns);

 private:
  // Why a flow submits no requests for a while: it waits for all of its own, and then flushes or
  // pauses; or it is doing so. An open loop pauses between arrivals instead, whatever is under way.
  enum class Hold : std::uint8_t { nothing, draining, flushing, pausing };

  struct Flow {
    const FlowConfig* config = nullptr;
    std::optional<RequestGenerator> generator;
    std::optional<RandomStream> intervals;
    std::vector<TraceRecord> trace;
    std::uint64_t trace_next = 0, trace_end = 0, trace_period_ns = 0;
    std::uint64_t first_sector = 0, sectors = 0;
    SplitMix trims{0};
    std::vector<std::uint64_t> job_free_ns;
    std::vector<std::uint16_t> held;  // closed loop: places whose next request waits
    RequestQueue backlog;             // open loop: requests not yet submitted
    std::uint64_t depth = 0, outstanding = 0, made = 0;
    std::uint64_t writes_since_flush = 0, requests_since_gap = 0;
    double arrival_mean_ns = 0, arrival_carry_ns = 0;
    bool open_loop = false, ended = false, closed = false, flush_due = false, gap_due = false;
    Hold hold = Hold::nothing;
    LatencyRecorder device[2], end_to_end[2];  // reads, and all others
    LatencyRecorder device_other, end_to_end_other;
    // Made before anything is measured, and not done then: reads, writes, TRIMs.
    std::uint64_t open[3] = {0, 0, 0};
    FlowSeries series;
    FlowResult result;
    std::uint64_t transactions[2] = {0, 0};
  };

  // Whether work that a job's CPU finishes then is measured. A busy CPU finishes completions later
  // than the drive, some of them after the end of the warm-up.
  bool measures(std::uint64_t at_ns) const { return at_ns >= context_.options.warmup_ns; }
  void set_up_loop(Flow& flow);
  bool may_make(Flow& flow, std::uint64_t at_ns);
  std::uint32_t make(std::uint16_t index, std::uint16_t job, std::uint64_t at_ns);
  void draw(Flow& flow, HostRequest& request);
  void make_in_place(std::uint16_t index, std::uint16_t job, std::uint64_t at_ns);
  void make_arrival(std::uint16_t index);
  void schedule_arrival(std::uint16_t index, std::uint64_t after_ns);
  void submit(std::uint32_t index, std::uint64_t at_ns);
  void submit_flush(std::uint16_t index, std::uint64_t at_ns);
  void drained(std::uint16_t index, std::uint64_t at_ns);
  void go_on(std::uint16_t index, std::uint64_t at_ns);
  void record(Flow& flow, const HostRequest& request, std::uint64_t done_ns);
  void close_if_done(Flow& flow);
  std::uint32_t new_request();

  Context& context_;
  std::vector<Flow> flows_;
  std::vector<HostRequest> requests_;
  std::uint32_t free_request_ = none;
  std::size_t open_flows_;
  std::uint64_t submission_ns_;  // from the doorbell to the command's being in the drive
  std::uint64_t busy_until_ns_ = 0;
  bool measuring_;
  CompletionSink* sink_ = nullptr;
};

inline void Host::add_transaction(std::uint16_t index, bool is_write, std::uint64_t turnaround_ns,
                           std::uint64_t execution_ns, std::uint64_t transfer_ns,
                           std::uint32_t count) {
  Flow& flow = flows_[index];
  const int i = is_write ? 1 : 0;
  flow.transactions[i] += count;
  flow.result.transaction_turnaround_ns[i] += static_cast<double>(turnaround_ns);
  flow.result.transaction_execution_ns[i] += static_cast<double>(execution_ns);
  flow.result.transaction_transfer_ns[i] += static_cast<double>(transfer_ns);
}

}  // namespace iojoule::sim::physical
