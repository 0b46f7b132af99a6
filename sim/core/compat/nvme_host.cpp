// The host's NVMe driver: it takes no time (mqsim.md, 3.3).
#include "device.hpp"

namespace iojoule::sim::compat {

const Device::HostSide Device::nvme_host{
    &Device::submit_over_nvme,
    &Device::complete_over_nvme,
    [](const FlowConfig& stream, const FlowSpace& space) {
      return stream.kind == FlowKind::synthetic ? RequestGenerator::working_set_end(stream, space)
                                                : space.first_sector + space.sectors - 1;
    },
    [](const DeviceConfig& device) { return device.queue_fetch_size; },
};

void Device::submit_over_nvme(std::uint32_t id) { enqueue_or_hold_back(id); }

void Device::complete_over_nvme(std::uint32_t id) {
  const UserRequest request = take_completion(id);
  enqueue_held_back(queue_of(request));
  ring_completion(request);
  generate_next(request.flow);
}

}  // namespace iojoule::sim::compat
