// The host's SATA adapter: one queue for all flows, and a processor that works for a fixed time on each
// command on its way out and again on its way back, one at a time in each direction (mqsim.md, 1.1).
#include "device.hpp"

namespace iojoule::sim::compat {

const Device::HostSide Device::sata_host{
    &Device::submit_over_sata,
    &Device::complete_over_sata,
    [](const FlowConfig&, const FlowSpace& space) { return space.first_sector + space.sectors - 1; },
    [](const DeviceConfig&) { return UINT32_MAX; },
};

void Device::submit_over_sata(std::uint32_t id) {
  sata_outbound_.push_back(id);
  if (sata_outbound_.size() == 1) process_next(sata_submitted);
}

void Device::complete_over_sata(std::uint32_t id) {
  sata_inbound_.push_back(id);
  if (sata_inbound_.size() == 1) process_next(sata_completed);
}

void Device::process_next(EventKind processed) {
  events_.schedule(events_.now_ns() + config_.sata_processing_delay_ns, processed, 0);
}

void Device::finish_sata_submission() {
  const std::uint32_t id = sata_outbound_.front();
  sata_outbound_.pop_front();
  enqueue_or_hold_back(id);
  if (!sata_outbound_.empty()) process_next(sata_submitted);
}

// What the flow asks for next goes behind all that waits; the place in the queue that is free now is
// for those.
void Device::finish_sata_completion() {
  const UserRequest request = take_completion(sata_inbound_.front());
  sata_inbound_.pop_front();
  generate_next(request.flow);
  ring_completion(request);
  enqueue_held_back(queue_of(request));
  if (!sata_inbound_.empty()) process_next(sata_completed);
}

}  // namespace iojoule::sim::compat
