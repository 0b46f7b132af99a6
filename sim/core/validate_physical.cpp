// What physical/options.hpp asks of several fields together.
#include <cstddef>
#include <string>

#include "geometry.hpp"
#include "validate.hpp"

namespace iojoule::sim {
namespace {

void check_nand(const DeviceConfig& device) {
  const NandOptions& nand = device.physical.nand;
  const FieldCheck check("physical.nand.");
  check_ranges(nand, check);
  const std::uint32_t unit = nand.mapping_unit_bytes == 0 ? device.page_bytes : nand.mapping_unit_bytes;
  check.that(unit >= sector_bytes && unit % sector_bytes == 0 && device.page_bytes % unit == 0,
             "mapping_unit_bytes",
             "is " + std::to_string(unit) + ", but must be whole sectors of 512 bytes and divide the "
                 "page of " + std::to_string(device.page_bytes) + " bytes");
  check.within("partial_read_bytes", nand.partial_read_bytes, 0U, device.page_bytes,
               "it is a part of a page");
}

void check_controller(const ControllerOptions& controller) {
  const FieldCheck check("physical.controller.");
  check_ranges(controller, check);
  check.that(controller.max_transfer_bytes % sector_bytes == 0, "max_transfer_bytes",
             "is " + std::to_string(controller.max_transfer_bytes) +
                 ", but must be whole sectors of 512 bytes");
}

void check_slc(const DeviceConfig& device) {
  const SlcOptions& slc = device.physical.slc;
  const FieldCheck check("physical.slc.");
  check_ranges(slc, check);
  check.within("static_blocks_per_plane", slc.static_blocks_per_plane, 0U, device.blocks_per_plane,
               "a plane has no more blocks");
  check.within("dynamic_blocks_per_plane", slc.dynamic_blocks_per_plane, 0U, device.blocks_per_plane,
               "a plane has no more blocks");
}

// Each record of a list of at most so many.
template <class Record>
void check_list(const std::string& field, const std::vector<Record>& records, std::size_t most,
                std::string_view why) {
  const FieldCheck check("physical.power.");
  check.within<std::size_t>(field, records.size(), 0, most, why);
  for (std::size_t i = 0; i < records.size(); ++i) {
    check_ranges(records[i], FieldCheck("physical.power." + field + "[" + std::to_string(i) + "]."));
  }
}

void check_power(const PowerOptions& power) {
  const FieldCheck check("physical.power.");
  check_ranges(power, check);
  check_list("states", power.states, 32, "NVMe has 32 power states");
  check_list("autonomous_transitions", power.autonomous_transitions, 32, "each state has at most one");
  check_list("commands", power.commands, 4096, "so many may be set");
  const std::size_t count = power.states.size();
  const auto exists = [&](std::string_view field, std::uint32_t state) {
    check.that(state < count, field,
               "names power state " + std::to_string(state) + ", but the table has " +
                   std::to_string(count));
  };
  if (count > 0 || power.initial_state != 0) exists("initial_state", power.initial_state);
  if (count > 0) {
    check.that(power.states[power.initial_state].operational, "initial_state",
               "is not operational; name one that is");
  }
  for (const PowerTransition& move : power.autonomous_transitions) {
    exists("autonomous_transitions", move.from_state);
    exists("autonomous_transitions", move.to_state);
  }
  for (const PowerCommand& command : power.commands) exists("commands", command.state);
  check.within<std::uint64_t>("cap_reopen_ns", power.cap_reopen_ns, 0, power.cap_burst_ns,
                              "beyond cap_burst_ns work would never go on");
}

}  // namespace

void validate_physical(const DeviceConfig& device) {
  check_nand(device);
  check_ranges(device.physical.link, FieldCheck("physical.link."));
  check_controller(device.physical.controller);
  check_slc(device);
  check_ranges(device.physical.energy, FieldCheck("physical.energy."));
  check_power(device.physical.power);
  check_ranges(device.physical, FieldCheck("physical."));
}

void validate_host(const FlowConfig& flow, const std::string& name) {
  const FieldCheck check(name + "host.");
  check_ranges(flow.host, check);
  check.that(flow.host.arrivals_per_second == 0.0 || flow.host.arrivals_per_second >= 1e-6,
             "arrivals_per_second", "is less than one request in eleven days");
}

}  // namespace iojoule::sim
