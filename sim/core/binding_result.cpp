// RunResult and its parts in Python, and the recorder of latencies.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "binding.hpp"
#include "result.hpp"
#include "statistics.hpp"

namespace iojoule::sim {
namespace {

// {read, write} or {to device, to host}
template <class Owner, class Value>
void bind_pair(nb::class_<Owner>& bound, const char* name, Value (Owner::*member)[2]) {
  bound.def_prop_ro(name, [member](const Owner& owner) {
    return std::make_tuple((owner.*member)[0], (owner.*member)[1]);
  });
}

using Series = std::map<std::string, Column<std::uint64_t>>;

Series series_of(nb::handle_t<FlowResult> self) {
  const std::vector<FlowStep>& steps = nb::cast<const FlowResult&>(self).series;
  constexpr std::size_t stride = sizeof(FlowStep) / sizeof(std::uint64_t);
  static_assert(stride * sizeof(std::uint64_t) == sizeof(FlowStep));
  const auto of = [&](std::uint64_t FlowStep::* member) {
    const std::uint64_t* first = steps.empty() ? nullptr : &(steps.front().*member);
    return column(self, first, steps.size(), stride);
  };
  return {{"serviced_read", of(&FlowStep::serviced_read)},
          {"serviced_write", of(&FlowStep::serviced_write)},
          {"bytes_read", of(&FlowStep::bytes_read)},
          {"bytes_written", of(&FlowStep::bytes_written)},
          {"latency_sum_ns", of(&FlowStep::latency_sum_ns)},
          {"latency_max_ns", of(&FlowStep::latency_max_ns)}};
}

void bind_latency(nb::module_& module) {
  nb::class_<LatencySummary> bound(module, "LatencySummary", "One distribution of latencies in ns.");
#define FIELD(name) bound.def_ro(#name, &LatencySummary::name)
  FIELD(count);
  FIELD(mean_ns);
  FIELD(min_ns);
  FIELD(max_ns);
  FIELD(p50_ns);
  FIELD(p90_ns);
  FIELD(p99_ns);
  FIELD(p999_ns);
  FIELD(p9999_ns);
  FIELD(percentile_relative_error);
#undef FIELD
}

void bind_flow_result(nb::module_& module) {
  nb::class_<FlowResult> bound(module, "FlowResult", "What one flow asked for and got.");
#define FIELD(name) bound.def_ro(#name, &FlowResult::name)
  FIELD(generated);
  FIELD(generated_read);
  FIELD(generated_write);
  FIELD(serviced);
  FIELD(serviced_read);
  FIELD(serviced_write);
  FIELD(bytes_read);
  FIELD(bytes_written);
  FIELD(first_arrival_ns);
  FIELD(last_completion_ns);
  FIELD(device);
  FIELD(device_read);
  FIELD(device_write);
  FIELD(end_to_end);
  FIELD(end_to_end_read);
  FIELD(end_to_end_write);
  FIELD(generated_trim);
  FIELD(serviced_trim);
  FIELD(bytes_trimmed);
  FIELD(host_cpu_ns);
#undef FIELD
  bind_pair(bound, "transaction_turnaround_ns", &FlowResult::transaction_turnaround_ns);
  bind_pair(bound, "transaction_execution_ns", &FlowResult::transaction_execution_ns);
  bind_pair(bound, "transaction_transfer_ns", &FlowResult::transaction_transfer_ns);
  bind_pair(bound, "transaction_waiting_ns", &FlowResult::transaction_waiting_ns);
  bound.def_prop_ro("series", &series_of, "Columns of the time series, one row a step.");
}

void bind_device_result(nb::module_& module) {
  nb::class_<OriginCounts>(module, "OriginCounts", "Pages or blocks by who asked for them.")
      .def_ro("user", &OriginCounts::user)
      .def_ro("gc", &OriginCounts::gc)
      .def_ro("mapping", &OriginCounts::mapping)
      .def_prop_ro("total", &OriginCounts::total);

  nb::class_<QueueResult> queue(module, "QueueResult", "One transaction queue of one chip.");
#define FIELD(name) queue.def_ro(#name, &QueueResult::name)
  FIELD(name);
  FIELD(channel);
  FIELD(chip);
  FIELD(priority);
  FIELD(enqueued);
  FIELD(dequeued);
  FIELD(max_length);
  FIELD(max_waiting_ns);
  FIELD(mean_length);
  FIELD(mean_waiting_ns);
  FIELD(sd_length);
#undef FIELD

  nb::class_<DeviceResult> bound(module, "DeviceResult", "What the whole drive did.");
#define FIELD(name) bound.def_ro(#name, &DeviceResult::name)
  FIELD(sim_end_ns);
  FIELD(events);
  FIELD(pages_read);
  FIELD(pages_programmed);
  FIELD(blocks_erased);
  FIELD(cmd_read);
  FIELD(cmd_mp_read);
  FIELD(cmd_prog);
  FIELD(cmd_mp_prog);
  FIELD(cmd_erase);
  FIELD(cmd_mp_erase);
  FIELD(map_reads);
  FIELD(map_writes_queued);
  FIELD(cmt_queries_read);
  FIELD(cmt_queries_write);
  FIELD(cmt_hits_read);
  FIELD(cmt_hits_write);
  FIELD(cmt_misses_at_once);
  FIELD(cache_hits_read);
  FIELD(cache_misses_read);
  FIELD(cache_hits_write);
  FIELD(cache_misses_write);
  FIELD(evictions_fatal_to_mqsim);
  FIELD(retries_by_address);
  FIELD(gc_exec);
  FIELD(gc_page_moves);
  FIELD(wl_exec);
  FIELD(dram_busy_ns);
  FIELD(memory_bytes);
  FIELD(queues);
  FIELD(physical);
  FIELD(chip_exec_ns);
  FIELD(chip_transfer_ns);
  FIELD(die_busy_ns);
  FIELD(channel_busy_ns);
#undef FIELD
  bind_pair(bound, "link_busy_ns", &DeviceResult::link_busy_ns);
}

void bind_run_result(nb::module_& module) {
  nb::class_<RunResult>(module, "RunResult", "What a run tells.")
      .def_ro("device", &RunResult::device)
      .def_ro("flows", &RunResult::flows)
      .def_ro("series_step_ns", &RunResult::series_step_ns);
}

void bind_recorder(nb::module_& module) {
  using Latencies = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  nb::class_<LatencyRecorder>(module, "LatencyRecorder",
                              "Takes latencies in ns; exact up to 4 Mi of them.")
      .def(nb::init<>())
      .def("record",
           [](LatencyRecorder& recorder, const Latencies& latencies_ns) {
             for (std::size_t i = 0; i < latencies_ns.shape(0); ++i) {
               recorder.record(latencies_ns(i));
             }
           },
           "latencies_ns"_a)
      // By value, because a recorder may be merged with itself.
      .def("merge",
           [](LatencyRecorder& recorder, LatencyRecorder other) { recorder.merge(other); },
           "other"_a,
           "As if all that `other` has recorded had been recorded here too.")
      .def("summary", &LatencyRecorder::summary);
}

}  // namespace

void bind_result(nb::module_& module) {
  bind_physical_result(module);
  bind_latency(module);
  bind_flow_result(module);
  bind_device_result(module);
  bind_run_result(module);
  bind_recorder(module);
}

}  // namespace iojoule::sim
