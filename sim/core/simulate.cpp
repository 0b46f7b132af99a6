#include "simulate.hpp"

#include "compat/run.hpp"
#include "error.hpp"
#include "physical/run.hpp"
#include "validate.hpp"

namespace iojoule::sim {

RunResult simulate(const DeviceConfig& device, const std::vector<FlowConfig>& flows,
                   const Limits& limits, Control& control, std::uint64_t series_step_ns,
                   bool with_queues, bool ahead) {
  validate(device, flows, limits, series_step_ns);
  if (ahead && device.mode == Mode::compat) {
    throw ConfigError("mode", "is compat, but the fast engine needs physical");
  }
  RunResult result = device.mode == Mode::compat
                         ? compat::run(device, flows, limits, control, series_step_ns, with_queues)
                         : physical::run(device, flows, limits, control, series_step_ns, ahead);
  result.series_step_ns = series_step_ns;
  return result;
}

}  // namespace iojoule::sim
