// The host: flows that make requests, submission queues, completions. How the host's driver or adapter
// goes about it is in nvme_host.cpp and sata_host.cpp.
#include "device.hpp"

namespace iojoule::sim::compat {

void Device::start_flow(std::uint32_t index) {
  Flow& flow = flows_[index];
  if (flow.config->kind == FlowKind::trace) return arrive(index);
  for (std::uint32_t i = 0; i < flow.config->queue_depth && may_generate(flow); ++i) {
    submit(generate(index));
  }
}

bool Device::may_generate(const Flow& flow) const {
  const FlowConfig& config = *flow.config;
  if (config.stop_ns > 0) return events_.now_ns() <= config.stop_ns;
  return flow.result.generated < config.total_requests;
}

std::uint32_t Device::generate(std::uint32_t index) {
  Flow& flow = flows_[index];
  Request made;
  if (flow.config->kind == FlowKind::trace) {
    const TraceRecord& record = flow.trace[flow.next_record % flow.trace.size()];
    // MQSim folds addresses over one sector less than the flow has
    const std::uint64_t span = flow.space.sectors - 1;
    const std::uint64_t offset =
        record.start_sector <= span ? record.start_sector : record.start_sector % span;
    made = {flow.space.first_sector + offset, record.sectors, record.is_read};
  } else {
    made = flow.generator->next();
  }
  const std::uint32_t id = requests_.make();
  UserRequest& request = requests_[id];
  request.flow = static_cast<std::uint8_t>(index);
  request.stream = flow.stream;
  request.start_sector = made.start_sector;
  request.sectors = made.sectors;
  request.is_read = made.is_read;
  request.arrival_ns = events_.now_ns();
  ++flow.result.generated;
  ++(made.is_read ? flow.result.generated_read : flow.result.generated_write);
  if (flow.result.generated == 1) flow.result.first_arrival_ns = events_.now_ns();
  return id;
}

void Device::arrive(std::uint32_t index) {
  Flow& flow = flows_[index];
  if (flow.config->kind == FlowKind::trace) {
    submit(generate(index));
    if (++flow.next_record < flow.records_to_play) {
      const std::uint64_t round = flow.next_record / flow.trace.size();
      const TraceRecord& next = flow.trace[flow.next_record % flow.trace.size()];
      events_.schedule(round * flow.trace.back().arrival_ns + next.arrival_ns, flow_arrival, index);
    }
    return;
  }
  if (!may_generate(flow)) return;
  submit(generate(index));
  events_.schedule(events_.now_ns() + flow.generator->next_interval_ns(), flow_arrival, index);
}

void Device::enqueue_or_hold_back(std::uint32_t id) {
  QueuePair& queue = queue_of(requests_[id]);
  if (queue.has_room()) {
    enqueue(id);
  } else {
    queue.host_backlog.push_back(id);
  }
}

void Device::enqueue_held_back(QueuePair& queue) {
  while (!queue.host_backlog.empty() && queue.has_room()) {
    const std::uint32_t next = queue.host_backlog.front();
    queue.host_backlog.pop_front();
    enqueue(next);
  }
}

void Device::enqueue(std::uint32_t id) {
  UserRequest& request = requests_[id];
  QueuePair& queue = queue_of(request);
  request.enqueued_ns = events_.now_ns();
  queue.submission_queue.push_back(id);
  // The memory behind a request takes longer to come than all that happens before it is read.
  const std::uint32_t page = first_page(request);
  tables_[request.stream].prefetch_group(page);
  if (!config_.mapping_ideal) mapping_caches_[request.stream].prefetch(page);
  ++queue.rung;
  send(to_device_, {submission_doorbell, flows_[request.flow].queue, id, link_.doorbell_ns()});
}

// The request has ended for its flow, and is gone but for what is returned.
UserRequest Device::take_completion(std::uint32_t id) {
  const UserRequest request = requests_[id];
  requests_.free(id);
  Flow& flow = flows_[request.flow];
  const std::uint64_t now = events_.now_ns();
  const std::uint64_t bytes = std::uint64_t{request.sectors} * sector_bytes;

  FlowResult& result = flow.result;
  ++result.serviced;
  ++(request.is_read ? result.serviced_read : result.serviced_write);
  (request.is_read ? result.bytes_read : result.bytes_written) += bytes;
  result.last_completion_ns = now;
  flow.latencies.record(request.is_read, now - request.enqueued_ns, now - request.arrival_ns);
  flow.series.record(now, request.is_read, bytes, now - request.enqueued_ns);
  queue_of(request).fetched_as_known = request.fetched_at_completion;
  return request;
}

void Device::ring_completion(const UserRequest& request) {
  send(to_device_, {completion_doorbell, flows_[request.flow].queue, nothing, link_.doorbell_ns()});
}

// A flow that keeps its depth asks for the next as soon as one is done.
void Device::generate_next(std::uint32_t index) {
  const Flow& flow = flows_[index];
  if (flow.config->kind == FlowKind::synthetic && flow.config->generator == Generator::queue_depth &&
      may_generate(flow)) {
    submit(generate(index));
  }
}

}  // namespace iojoule::sim::compat
