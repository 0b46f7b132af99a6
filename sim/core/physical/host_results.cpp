// What the host measures of its flows.
#include "host.hpp"

namespace iojoule::sim::physical {

void Host::record(Flow& flow, const HostRequest& request, std::uint64_t done_ns) {
  if (request.kind == RequestKind::flush) return;
  FlowResult& result = flow.result;
  const std::uint64_t bytes = std::uint64_t{request.sectors} * sector_bytes;
  const std::uint64_t device_ns = context_.now_ns() - request.submitted_ns;
  const std::uint64_t end_to_end_ns = done_ns - request.intended_ns;
  ++result.serviced;
  result.last_completion_ns = std::max(result.last_completion_ns, done_ns);
  if (request.kind == RequestKind::trim) {
    ++result.serviced_trim;
    result.bytes_trimmed += bytes;
    flow.device_other.record(device_ns);
    flow.end_to_end_other.record(end_to_end_ns);
    return;
  }
  const bool is_read = request.kind == RequestKind::read;
  ++(is_read ? result.serviced_read : result.serviced_write);
  (is_read ? result.bytes_read : result.bytes_written) += bytes;
  flow.device[is_read ? 0 : 1].record(device_ns);
  flow.end_to_end[is_read ? 0 : 1].record(end_to_end_ns);
  flow.series.record(done_ns, is_read, bytes, device_ns);
}

void Host::begin_measuring() {
  measuring_ = true;
  for (Flow& flow : flows_) {
    FlowResult& result = flow.result;
    result.generated_read = flow.open[0];
    result.generated_write = flow.open[1];
    result.generated_trim = flow.open[2];
    result.generated = flow.open[0] + flow.open[1] + flow.open[2];
    if (result.generated > 0) result.first_arrival_ns = context_.now_ns();
    for (int i = 0; i < 2; ++i) {
      flow.transactions[i] = 0;
      flow.result.transaction_turnaround_ns[i] = 0;
      flow.result.transaction_execution_ns[i] = 0;
      flow.result.transaction_transfer_ns[i] = 0;
    }
  }
}

std::vector<FlowResult> Host::results(std::uint64_t end_ns) {
  std::vector<FlowResult> results;
  for (Flow& flow : flows_) {
    FlowResult& result = flow.result;
    for (int i = 0; i < 2; ++i) {
      if (flow.transactions[i] == 0) continue;
      const auto count = static_cast<double>(flow.transactions[i]);
      // from the whole sums: the difference of three rounded means can be below zero
      result.transaction_waiting_ns[i] =
          (result.transaction_turnaround_ns[i] - result.transaction_execution_ns[i] -
           result.transaction_transfer_ns[i]) /
          count;
      result.transaction_turnaround_ns[i] /= count;
      result.transaction_execution_ns[i] /= count;
      result.transaction_transfer_ns[i] /= count;
    }
    result.device_read = flow.device[0].summary();
    result.device_write = flow.device[1].summary();
    result.end_to_end_read = flow.end_to_end[0].summary();
    result.end_to_end_write = flow.end_to_end[1].summary();
    for (const LatencyRecorder* part : {&flow.device[1], &flow.device_other}) {
      flow.device[0].merge(*part);
    }
    for (const LatencyRecorder* part : {&flow.end_to_end[1], &flow.end_to_end_other}) {
      flow.end_to_end[0].merge(*part);
    }
    result.device = flow.device[0].summary();
    result.end_to_end = flow.end_to_end[0].summary();
    result.series = flow.series.take(end_ns);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace iojoule::sim::physical
