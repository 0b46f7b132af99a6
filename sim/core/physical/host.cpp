#include "host.hpp"

#include <algorithm>
#include <cmath>

namespace iojoule::sim::physical {

namespace {

// Subject of a generate event: flow, and job + 1 of a closed loop's place or 0.
constexpr std::uint32_t job_bits = 13;
std::uint32_t subject_of(std::uint16_t flow, std::uint32_t job_or_0) {
  return (std::uint32_t{flow} << job_bits) | job_or_0;
}

std::uint64_t submission_takes_ns(const Context& context) {
  const std::uint64_t delay_ns = to_ns(context.link.submission_ps()) +
                                 context.options.controller.command_latency_ns;
  return context.device.host_interface == HostInterface::sata
             ? delay_ns + context.device.sata_processing_delay_ns
             : delay_ns;
}

void check(const FlowConfig& flow) {
  const HostOptions& host = flow.host;
  if (host.jobs == 0 || host.jobs > 4096) {
    throw ConfigError("host.jobs", "is " + std::to_string(host.jobs) + ", but must be 1 to 4096");
  }
  if (host.trim_percent > 100) {
    throw ConfigError("host.trim_percent", "is over 100, but is a percentage");
  }
  if (flow.kind == FlowKind::synthetic && flow.size_mean_sectors == 0) {
    throw ConfigError("size_mean_sectors", "is 0; a request has at least one sector");
  }
  if (flow.kind == FlowKind::synthetic && flow.aligned && flow.alignment_sectors == 0) {
    throw ConfigError("alignment_sectors", "is 0; say 1 for requests that begin anywhere");
  }
}

}  // namespace

Host::Host(Context& context, const std::vector<FlowConfig>& flows, const Limits& limits,
           std::uint64_t series_step_ns)
    : context_(context),
      flows_(flows.size()),
      open_flows_(flows.size()),
      submission_ns_(submission_takes_ns(context)),
      measuring_(context.options.warmup_ns == 0) {
  for (std::size_t i = 0; i < flows.size(); ++i) {
    check(flows[i]);
    Flow& flow = flows_[i];
    flow.config = &flows[i];
    flow.first_sector = context.layout.spaces[i].first_sector;
    flow.sectors = context.layout.spaces[i].sectors;
    flow.series = FlowSeries(series_step_ns);
    flow.job_free_ns.resize(flows[i].host.jobs);
    flow.trims = SplitMix(static_cast<std::uint64_t>(flows[i].seed) ^ 0x7121B);
    if (flows[i].kind == FlowKind::trace) {
      flow.trace = read_trace(flows[i].trace_path, limits);
      flow.trace_end = flow.trace.size() * flows[i].trace_percent / 100 * flows[i].trace_replays;
      if (!flow.trace.empty()) flow.trace_period_ns = flow.trace.back().arrival_ns;
    } else {
      flow.generator.emplace(flows[i], context.layout.spaces[i]);
    }
    set_up_loop(flow);
  }
  requests_.reserve(1024);
}

void Host::set_up_loop(Flow& flow) {
  const FlowConfig& config = *flow.config;
  flow.open_loop = config.kind == FlowKind::trace || config.generator == Generator::bandwidth ||
                   config.host.arrivals_per_second > 0;
  if (!flow.open_loop) {
    const std::uint32_t each = config.host.engine == HostEngine::psync ? 1 : config.queue_depth;
    if (each == 0) throw ConfigError("queue_depth", "is 0; at least one request is under way");
    flow.depth = std::uint64_t{each} * config.host.jobs;
    if (flow.depth >= subject_limit) {
      throw ConfigError("queue_depth", "times host.jobs is more than " +
                                           std::to_string(subject_limit) + " requests; lower it");
    }
    return;
  }
  flow.depth = std::uint64_t{context_.device.io_queue_depth} * config.host.jobs;
  if (config.kind == FlowKind::trace) return;
  const double bytes = static_cast<double>(config.size_mean_sectors) * sector_bytes;
  const double rate = config.host.arrivals_per_second > 0
                          ? config.host.arrivals_per_second
                          : static_cast<double>(config.bandwidth_bytes_per_second) / bytes;
  if (rate <= 0) throw ConfigError("bandwidth_bytes_per_second", "is 0; say the rate");
  flow.arrival_mean_ns = 1e9 / rate;
  flow.intervals.emplace(config.seed + 7);
}

std::uint32_t Host::new_request() {
  if (free_request_ == none) {
    requests_.push_back({});
    return static_cast<std::uint32_t>(requests_.size() - 1);
  }
  const std::uint32_t index = free_request_;
  free_request_ = requests_[index].next;
  return index;
}

void Host::free(std::uint32_t index) {
  requests_[index].next = free_request_;
  free_request_ = index;
}

void Host::push(RequestQueue& queue, std::uint32_t index) {
  requests_[index].next = none;
  if (queue.head == none) {
    queue.head = index;
  } else {
    requests_[queue.tail].next = index;
  }
  queue.tail = index;
}

std::uint32_t Host::pop(RequestQueue& queue) {
  const std::uint32_t index = queue.head;
  queue.head = requests_[index].next;
  return index;
}

std::uint64_t Host::outstanding() const {
  std::uint64_t sum = 0;
  for (const Flow& flow : flows_) sum += flow.outstanding;
  return sum;
}

void Host::start() {
  for (std::uint16_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    if (flow.open_loop) {
      schedule_arrival(i, 0);
      continue;
    }
    const std::uint64_t jobs = flow.config->host.jobs;
    for (std::uint64_t place = 0; place < flow.depth; ++place) {
      make_in_place(i, static_cast<std::uint16_t>(place % jobs), 0);
    }
    close_if_done(flow);
  }
}

// --- making requests -------------------------------------------------------------------------------

bool Host::may_make(Flow& flow, std::uint64_t at_ns) {
  if (flow.ended) return false;
  const FlowConfig& config = *flow.config;
  if (config.kind == FlowKind::trace) {
    flow.ended = flow.trace_next >= flow.trace_end;
  } else if (config.stop_ns > 0) {
    flow.ended = at_ns >= config.stop_ns;
  } else {
    flow.ended = flow.made >= config.total_requests;
  }
  return !flow.ended;
}

std::uint32_t Host::make(std::uint16_t flow_index, std::uint16_t job, std::uint64_t at_ns) {
  Flow& flow = flows_[flow_index];
  const std::uint32_t index = new_request();
  HostRequest& request = requests_[index];
  request = HostRequest{};
  request.intended_ns = at_ns;
  request.flow = flow_index;
  request.job = job;
  draw(flow, request);
  ++flow.made;
  const HostOptions& host = flow.config->host;
  if (!flow.open_loop && host.burst_requests > 0 &&
      ++flow.requests_since_gap == host.burst_requests) {
    flow.requests_since_gap = 0;
    flow.gap_due = true;
    flow.hold = Hold::draining;
  }
  if (!measuring_) {
    ++flow.open[static_cast<std::size_t>(request.kind)];
    return index;
  }
  FlowResult& result = flow.result;
  if (result.generated++ == 0) result.first_arrival_ns = at_ns;
  result.generated_read += request.kind == RequestKind::read ? 1 : 0;
  result.generated_write += request.kind == RequestKind::write ? 1 : 0;
  result.generated_trim += request.kind == RequestKind::trim ? 1 : 0;
  return index;
}

void Host::draw(Flow& flow, HostRequest& request) {
  bool is_read = false;
  if (flow.generator) {
    const Request drawn = flow.generator->next();
    is_read = drawn.is_read;
    request.sector = drawn.start_sector - std::min(drawn.start_sector, flow.first_sector);
    request.sectors = drawn.sectors;
  } else {
    const TraceRecord& record = flow.trace[flow.trace_next % flow.trace.size()];
    ++flow.trace_next;
    is_read = record.is_read;
    request.sector = record.start_sector % flow.sectors;
    request.sectors = record.sectors;
  }
  // What would pass the end of the flow's space is moved back or cut.
  request.sectors = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::max(1U, request.sectors), flow.sectors));
  if (request.sector + request.sectors > flow.sectors) {
    request.sector = flow.sectors - request.sectors;
  }
  request.kind = is_read ? RequestKind::read : RequestKind::write;
  const std::uint32_t trims = flow.config->host.trim_percent;
  if (trims > 0 && flow.trims.below(100) < trims) request.kind = RequestKind::trim;
}

// A closed loop's place is free: its next request, or none.
void Host::make_in_place(std::uint16_t flow_index, std::uint16_t job, std::uint64_t at_ns) {
  Flow& flow = flows_[flow_index];
  if (flow.hold != Hold::nothing) {
    flow.held.push_back(job);
    return;
  }
  if (may_make(flow, at_ns)) submit(make(flow_index, job, at_ns), at_ns);
}

void Host::schedule_arrival(std::uint16_t flow_index, std::uint64_t after_ns) {
  Flow& flow = flows_[flow_index];
  std::uint64_t at_ns = after_ns;
  if (flow.config->kind == FlowKind::trace) {
    if (!may_make(flow, 0)) return close_if_done(flow);
    const std::uint64_t replay = flow.trace_next / flow.trace.size();
    at_ns = flow.trace[flow.trace_next % flow.trace.size()].arrival_ns +
            replay * flow.trace_period_ns;
  } else {
    double interval_ns = flow.arrival_mean_ns;
    if (flow.config->host.arrivals == Arrivals::exponential) {
      interval_ns = flow.intervals->exponential(flow.arrival_mean_ns);
    }
    // The fraction of a nanosecond is carried on, so that the rate is exact.
    const double sum_ns = interval_ns + flow.arrival_carry_ns;
    const double whole_ns = std::floor(sum_ns);
    flow.arrival_carry_ns = sum_ns - whole_ns;
    at_ns += static_cast<std::uint64_t>(whole_ns);
    const HostOptions& host = flow.config->host;
    if (host.burst_requests > 0 && flow.made > 0 && flow.made % host.burst_requests == 0) {
      at_ns += host.burst_gap_ns;
    }
    if (!may_make(flow, at_ns)) return close_if_done(flow);
  }
  context_.schedule(std::max(at_ns, context_.now_ns()), EventKind::generate,
                    subject_of(flow_index, 0));
}

void Host::make_arrival(std::uint16_t flow_index) {
  Flow& flow = flows_[flow_index];
  const std::uint64_t now_ns = context_.now_ns();
  const auto job = static_cast<std::uint16_t>(flow.made % flow.job_free_ns.size());
  const bool waits = flow.hold != Hold::nothing || flow.outstanding >= flow.depth;
  const std::uint32_t index = make(flow_index, job, now_ns);
  if (waits) {
    push(flow.backlog, index);
  } else {
    submit(index, now_ns);
  }
  schedule_arrival(flow_index, now_ns);
}

void Host::on_generate(std::uint32_t subject) {
  const auto flow_index = static_cast<std::uint16_t>(subject >> job_bits);
  const std::uint32_t job_or_0 = subject & ((1U << job_bits) - 1);
  Flow& flow = flows_[flow_index];
  if (flow.hold == Hold::pausing && job_or_0 == flow.job_free_ns.size() + 1) {
    go_on(flow_index, context_.now_ns());
  } else if (job_or_0 > 0) {
    make_in_place(flow_index, static_cast<std::uint16_t>(job_or_0 - 1), context_.now_ns());
    close_if_done(flow);
  } else {
    make_arrival(flow_index);
  }
}

void Host::submit(std::uint32_t index, std::uint64_t at_ns) {
  HostRequest& request = requests_[index];
  Flow& flow = flows_[request.flow];
  ++flow.outstanding;
  const HostOptions& host = flow.config->host;
  if (request.kind == RequestKind::write && host.flush_every_writes > 0 &&
      ++flow.writes_since_flush == host.flush_every_writes) {
    flow.writes_since_flush = 0;
    flow.flush_due = true;
    flow.hold = Hold::draining;
  }
  std::uint64_t& free_ns = flow.job_free_ns[request.job];
  free_ns = std::max(free_ns, at_ns) + host.submit_cpu_ns;
  if (measures(free_ns)) flow.result.host_cpu_ns += host.submit_cpu_ns;
  request.submitted_ns = free_ns;
  context_.schedule(free_ns + submission_ns(), EventKind::request_arrives, index);
}

std::uint32_t Host::submit_from_outside(RequestKind kind, std::uint64_t sector,
                                        std::uint32_t sectors) {
  const std::uint32_t index = make_from_outside(kind, sector, sectors, context_.now_ns());
  submit(index, context_.now_ns());
  return index;
}

std::uint32_t Host::make_from_outside(RequestKind kind, std::uint64_t sector,
                                      std::uint32_t sectors, std::uint64_t at_ns) {
  const std::uint32_t index = new_request();
  HostRequest& request = requests_[index];
  request = HostRequest{};
  request.intended_ns = request.submitted_ns = at_ns;
  request.kind = kind;
  request.sector = sector;
  request.sectors = sectors;
  return index;
}

// --- completions -----------------------------------------------------------------------------------

void Host::on_request_done(std::uint32_t index) {
  const HostRequest request = requests_[index];
  Flow& flow = flows_[request.flow];
  if (sink_ != nullptr) [[unlikely]] {
    free(index);
    --flow.outstanding;
    return sink_->completed(index, context_.now_ns());
  }
  const HostOptions& host = flow.config->host;
  const std::uint64_t now_ns = context_.now_ns();
  std::uint64_t& free_ns = flow.job_free_ns[request.job];
  // A job that runs finds the completion by itself; one that sleeps has to be woken.
  const bool sleeps = host.completion == Completion::interrupt && free_ns <= now_ns;
  free_ns = std::max(free_ns, now_ns + (sleeps ? host.wake_ns : 0)) + host.complete_cpu_ns;
  busy_until_ns_ = std::max(busy_until_ns_, free_ns);
  if (measures(free_ns)) {
    flow.result.host_cpu_ns += host.complete_cpu_ns;
    record(flow, request, free_ns);
  } else if (request.kind != RequestKind::flush) {
    --flow.open[static_cast<std::size_t>(request.kind)];
  }
  free(index);
  --flow.outstanding;
  const std::uint64_t done_ns = free_ns;
  if (request.kind == RequestKind::flush) {
    drained(request.flow, done_ns);
  } else {
    if (flow.open_loop) {
      if (flow.hold == Hold::nothing && flow.backlog.head != none) submit(pop(flow.backlog), done_ns);
    } else if (host.think_time_ns > 0) {
      context_.schedule(done_ns + host.think_time_ns, EventKind::generate,
                        subject_of(request.flow, request.job + 1U));
    } else {
      make_in_place(request.flow, request.job, done_ns);
    }
    if (flow.hold == Hold::draining && flow.outstanding == 0) drained(request.flow, done_ns);
  }
  close_if_done(flow);
}

// All requests of a flow on hold are done.
void Host::drained(std::uint16_t flow_index, std::uint64_t at_ns) {
  Flow& flow = flows_[flow_index];
  if (flow.flush_due) {
    flow.flush_due = false;
    flow.hold = Hold::flushing;
    submit_flush(flow_index, at_ns);
  } else if (flow.gap_due) {
    flow.gap_due = false;
    flow.hold = Hold::pausing;
    context_.schedule(at_ns + flow.config->host.burst_gap_ns, EventKind::generate,
                      subject_of(flow_index, static_cast<std::uint32_t>(flow.job_free_ns.size()) + 1));
  } else {
    go_on(flow_index, at_ns);
  }
}

void Host::submit_flush(std::uint16_t flow_index, std::uint64_t at_ns) {
  const std::uint32_t index = new_request();
  HostRequest& request = requests_[index];
  request = HostRequest{};
  request.intended_ns = at_ns;
  request.flow = flow_index;
  request.kind = RequestKind::flush;
  submit(index, at_ns);
}

void Host::go_on(std::uint16_t flow_index, std::uint64_t at_ns) {
  Flow& flow = flows_[flow_index];
  flow.hold = Hold::nothing;
  while (flow.hold == Hold::nothing && flow.backlog.head != none && flow.outstanding < flow.depth) {
    submit(pop(flow.backlog), at_ns);
  }
  // A request may put the flow on hold again; the places left then stay held.
  std::size_t taken = 0;
  while (taken < flow.held.size() && flow.hold == Hold::nothing) {
    const std::uint16_t job = flow.held[taken++];
    if (may_make(flow, at_ns)) submit(make(flow_index, job, at_ns), at_ns);
  }
  flow.held.erase(flow.held.begin(), flow.held.begin() + static_cast<std::ptrdiff_t>(taken));
  if (flow.hold == Hold::draining && flow.outstanding == 0) drained(flow_index, at_ns);
  close_if_done(flow);
}

void Host::close_if_done(Flow& flow) {
  if (flow.closed || !flow.ended || flow.outstanding > 0 || flow.backlog.head != none) return;
  if (flow.hold == Hold::draining && flow.flush_due) return;  // its last flush is to come
  flow.closed = true;
  --open_flows_;
}

}  // namespace iojoule::sim::physical
