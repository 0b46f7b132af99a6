#include "run.hpp"

#include <numeric>
#include <string>

#include "../error.hpp"
#include "device.hpp"

namespace iojoule::sim::physical {

namespace {

std::vector<std::uint32_t> all(std::uint32_t count) {
  std::vector<std::uint32_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0U);
  return ids;
}

// Nothing here is beyond what sim/device.py lets pass; it keeps the core itself from dividing by zero.
void check_drive(const DeviceConfig& device) {
  const auto positive = [](const char* field, double value) {
    if (!(value > 0)) throw ConfigError(field, "is not above 0");
  };
  positive("link_lane_gigabytes_per_second", device.link_lane_gigabytes_per_second);
  positive("link_lanes", device.link_lanes);
  positive("channel_megatransfers_per_second", device.channel_megatransfers_per_second);
  positive("channel_width_bytes", device.channel_width_bytes);
  positive("dram_megatransfers_per_second", device.dram_megatransfers_per_second);
  positive("dram_burst_bytes", device.dram_burst_bytes);
  positive("dram_row_bytes", device.dram_row_bytes);
  positive("channels", device.channels);
  positive("chips_per_channel", device.chips_per_channel);
  positive("dies_per_chip", device.dies_per_chip);
  positive("planes_per_die", device.planes_per_die);
  positive("blocks_per_plane", device.blocks_per_plane);
  positive("pages_per_block", device.pages_per_block);
  positive("page_bytes", device.page_bytes);
  positive("queue_fetch_size", device.queue_fetch_size);
  positive("io_queue_depth", device.io_queue_depth);
  positive("physical.nand.codeword_bytes", device.physical.nand.codeword_bytes);
  positive("physical.link.max_payload_bytes", device.physical.link.max_payload_bytes);
  positive("physical.controller.mapping_entry_bytes",
           device.physical.controller.mapping_entry_bytes);
  positive("physical.controller.mapping_entries_per_line",
           device.physical.controller.mapping_entries_per_line);
  if (device.page_bytes / sector_bytes > 255 * 8) {
    throw ConfigError("page_bytes", "is over 1 MiB");
  }
}

void check_words(const DeviceConfig& device) {
  if (device.mapping == Mapping::hybrid) {
    throw ConfigError("mapping", "hybrid has no model; say page_level");
  }
  if (device.scheduler == Scheduler::flin) {
    throw ConfigError("scheduler",
                      "flin has no model; say out_of_order or priority_out_of_order");
  }
  const SlcOptions& slc = device.physical.slc;
  if (slc.static_blocks_per_plane + slc.dynamic_blocks_per_plane > 0 &&
      device.flash_technology == FlashTechnology::slc) {
    throw ConfigError("physical.slc.static_blocks_per_plane",
                      "flash with one bit per cell has no pseudo-SLC cache; say 0 for both sizes");
  }
}

// Tables that are filled at once; the mapping table grows with what is written.
void check_memory(const DeviceConfig& device, const Limits& limits) {
  const double planes = double(device.channels) * device.chips_per_channel * device.dies_per_chip *
                        device.planes_per_die;
  const double pages = planes * device.blocks_per_plane * device.pages_per_block;
  const double units = pages * device.page_bytes /
                       (device.physical.nand.mapping_unit_bytes == 0
                            ? device.page_bytes
                            : device.physical.nand.mapping_unit_bytes);
  constexpr double bytes_per_block = 40, bytes_per_plane = 500, bytes_per_slot = 200;
  double bytes = planes * device.blocks_per_plane * bytes_per_block + planes * bytes_per_plane;
  bytes += static_cast<double>(device.cache_bytes) / device.page_bytes * bytes_per_slot;
  if (device.preconditioning) bytes += units * 2 * sizeof(std::uint32_t);
  if (bytes > static_cast<double>(limits.memory_bytes)) {
    throw LimitError("memory_bytes",
                     "the simulated drive's tables may take " + std::to_string(bytes / 1e6) +
                         " MB; allow more, simulate a smaller drive, or switch preconditioning off");
  }
}

}  // namespace

void check(const DeviceConfig& device, const Limits& limits) {
  check_drive(device);
  check_words(device);
  check_memory(device, limits);
}

FlowConfig whole_drive(const DeviceConfig& device) {
  FlowConfig flow;
  flow.channel_ids = all(device.channels);
  flow.chip_ids = all(device.chips_per_channel);
  flow.die_ids = all(device.dies_per_chip);
  flow.plane_ids = all(device.planes_per_die);
  flow.total_requests = 1;
  return flow;
}

RunResult run(const DeviceConfig& device, const std::vector<FlowConfig>& flows,
              const Limits& limits, Control& control, std::uint64_t series_step_ns,
              bool ahead) {
  check(device, limits);
  Device drive(device, flows, limits, control, series_step_ns, ahead);
  return drive.run();
}

}  // namespace iojoule::sim::physical
