// Which queue has which meter, and what they told in the end.
#include "queue_meter.hpp"

#include <algorithm>
#include <tuple>

#include "device.hpp"

namespace iojoule::sim::compat {

namespace {
// The meters of a chip, in this order: its lists, and the programs of mapping pages, which MQSim
// queues and never runs, so that there is no list of them.
constexpr std::uint32_t classes = std::tuple_size_v<ClassQueues>;
constexpr std::uint32_t user_read = 0, user_program = user_read + classes,
                        mapping_read = user_program + classes, mapping_program = mapping_read + 1,
                        collector_read = mapping_program + 1, collector_program = collector_read + 1,
                        collector_erase = collector_program + 1, meters = collector_erase + 1;
}  // namespace

void Device::make_queue_meters() {
  queue_meters_.resize(queues_.size() * meters);
  for (std::uint32_t chip = 0; chip < queues_.size(); ++chip) {
    const std::uint32_t first = chip * meters;
    ChipQueues& queues = queues_[chip];
    for (std::uint32_t level = 0; level < classes; ++level) {
      queues.user_read[level].meter = first + user_read + level;
      queues.user_program[level].meter = first + user_program + level;
    }
    queues.mapping_read.meter = first + mapping_read;
    queues.collector_read.meter = first + collector_read;
    queues.collector_program.meter = first + collector_program;
    queues.collector_erase.meter = first + collector_erase;
  }
}

QueueMeter* Device::mapping_program_meter(std::uint32_t plane) {
  if (queue_meters_.empty()) return nullptr;
  return &queue_meters_[chip_of(plane) * meters + mapping_program];
}

void Device::report_queues() {
  if (queue_meters_.empty()) return;
  const bool has_classes = config_.scheduler == Scheduler::priority_out_of_order;
  for (std::uint32_t chip = 0; chip < chips_.size(); ++chip) {
    const auto report = [&](const char* name, std::uint32_t meter, std::int32_t level = -1) {
      QueueResult& queue = counts_.queues.emplace_back();
      queue.name = name;
      queue.channel = chips_[chip].channel;
      queue.chip = chip % geometry_.chips_per_channel;
      queue.priority = level;
      queue_meters_[chip * meters + meter].report(events_.now_ns(), queue);
    };
    // without classes all stand in the first list
    const std::int32_t first = has_classes ? 0 : -1, end = has_classes ? classes : 0;
    for (std::int32_t level = first; level < end; ++level) {
      const auto list = static_cast<std::uint32_t>(std::max(level, 0));
      report("User_Read_TR_Queue", user_read + list, level);
      report("User_Write_TR_Queue", user_program + list, level);
    }
    report("Mapping_Read_TR_Queue", mapping_read);
    report("Mapping_Write_TR_Queue", mapping_program);
    report("GC_Read_TR_Queue", collector_read);
    report("GC_Write_TR_Queue", collector_program);
    report("GC_Erase_TR_Queue", collector_erase);
  }
}

}  // namespace iojoule::sim::compat
