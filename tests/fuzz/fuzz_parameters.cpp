// Whatever the parameters are, a run within tight limits returns a sound result or throws an error of
// error.hpp.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "control.hpp"
#include "error.hpp"
#include "parameters.hpp"
#include "require.hpp"
#include "result.hpp"
#include "simulate.hpp"

using namespace iojoule::sim;
using namespace iojoule::sim::fuzz;

namespace {

void check_latencies(const LatencySummary& latency) {
  REQUIRE(latency.min_ns <= latency.p50_ns && latency.p50_ns <= latency.p90_ns);
  REQUIRE(latency.p90_ns <= latency.p99_ns && latency.p99_ns <= latency.p999_ns);
  REQUIRE(latency.p999_ns <= latency.p9999_ns && latency.p9999_ns <= latency.max_ns);
  REQUIRE(std::isfinite(latency.mean_ns));
  REQUIRE(latency.mean_ns <= static_cast<double>(latency.max_ns) * (1 + 1e-9));
}

void check(const RunResult& result, const Inputs& inputs) {
  REQUIRE(result.flows.size() == inputs.flows.size());
  for (const FlowResult& flow : result.flows) {
    REQUIRE(flow.serviced <= flow.generated);
    REQUIRE(flow.serviced == flow.serviced_read + flow.serviced_write + flow.serviced_trim);
    REQUIRE(flow.last_completion_ns <= result.device.sim_end_ns);
    for (const LatencySummary* each : {&flow.device, &flow.device_read, &flow.device_write,
                                       &flow.end_to_end}) {
      check_latencies(*each);
    }
  }
  for (const QueueResult& queue : result.device.queues) {
    REQUIRE(queue.dequeued <= queue.enqueued && queue.max_length <= queue.enqueued);
    REQUIRE(std::isfinite(queue.mean_length) && std::isfinite(queue.sd_length));
    REQUIRE(queue.mean_length <= static_cast<double>(queue.max_length) * (1 + 1e-9));
  }
  REQUIRE(std::isfinite(result.device.physical.energy.total_joules()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Inputs inputs = inputs_of(data, size);
  Limits limits;
  limits.memory_bytes = 128U << 20;
  limits.simulated_ns = 1'000'000'000;
  limits.events = 20'000;
  limits.wall_seconds = 2;
  Control control;
  try {
    const bool fast = inputs.device.mode == Mode::physical && size % 2 == 1;
    check(simulate(inputs.device, inputs.flows, limits, control, inputs.series_step_ns, true, fast), inputs);
  } catch (const ConfigError& error) {
    REQUIRE(!error.field.empty());
  } catch (const TraceError&) {
  } catch (const LimitError& error) {
    REQUIRE(!error.limit.empty());
  } catch (const ModelError&) {
  }
  return 0;
}
