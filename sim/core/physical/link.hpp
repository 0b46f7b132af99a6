// The PCIe link: two directions that do not disturb each other, payload in packets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../config.hpp"
#include "../divisor.hpp"
#include "../memo.hpp"
#include "fifo_server.hpp"

namespace iojoule::sim::physical {

// NVMe sizes: submission entry 64 B, completion entry 16 B, doorbell 4 B (NVMe Base Specification
// 2.1, 3.3.3 and 3.1.4.10).
inline constexpr std::uint64_t submission_entry_bytes = 64, completion_entry_bytes = 16,
                               doorbell_bytes = 4;

inline constexpr std::uint64_t host_page_bytes = 4096;

class Link {
 public:
  explicit Link(const DeviceConfig& device)
      : payload_(device.physical.link.max_payload_bytes),
        by_payload_(payload_),
        overhead_(device.physical.link.packet_overhead_bytes),
        latency_ps_(to_ps(device.physical.link.latency_ns)),
        further_page_ps_(to_ps(device.physical.link.further_page_ns)),
        ps_per_byte_(1000.0 / (device.link_lane_gigabytes_per_second * device.link_lanes)) {}

  // Bytes on the wire for so many of payload; a request for data has none.
  std::uint64_t wire_bytes(std::uint64_t payload) const {
    const std::uint64_t packets = payload == 0 ? 1 : by_payload_.quotient(payload + payload_ - 1);
    return payload + packets * overhead_;
  }
  std::uint64_t duration_ps(std::uint64_t payload) const {
    return durations_(payload, [this](std::uint64_t bytes) {
      return static_cast<std::uint64_t>(static_cast<double>(wire_bytes(bytes)) * ps_per_byte_ + 0.5);
    });
  }

  // From ringing the doorbell to the command's being in the drive: the doorbell, the drive's
  // request for the entry, the entry.
  std::uint64_t submission_ps() const {
    return duration_ps(doorbell_bytes) + duration_ps(0) + duration_ps(submission_entry_bytes) +
           3 * latency_ps_;
  }
  // The drive asks the host for the data of a write.
  std::uint64_t data_request_ps() const { return duration_ps(0) + latency_ps_; }

  std::uint64_t latency_ps() const { return latency_ps_; }

  // When the last byte of what will be ready has left the drive, in ps; it arrives latency_ps later.
  std::uint64_t to_host(std::uint64_t now_ps, std::uint64_t ready_ps, std::uint64_t payload) {
    return to_host_.reserve(now_ps, ready_ps, transfer_ps(payload));
  }
  // When the last byte has arrived, in ps.
  std::uint64_t to_device(std::uint64_t ready_ps, std::uint64_t payload) {
    return to_device_.serve(ready_ps, transfer_ps(payload)) + latency_ps_;
  }

  // Submission entries that have arrived by now; how long that took is in submission_ps.
  void take_entries(std::uint64_t now_ps, std::uint64_t payload) {
    const std::uint64_t took_ps = duration_ps(payload);
    to_device_.serve(now_ps - std::min(now_ps, took_ps), took_ps);
  }

  std::uint64_t busy_to_device_ns() const { return to_device_.busy_ns(); }
  std::uint64_t busy_to_host_ns() const { return to_host_.busy_ns(); }
  void forget_busy() {
    to_device_.forget_busy();
    to_host_.forget_busy();
  }

 private:
  // Data lie in pages of the host's memory, and every page but the first has its address looked up:
  // an entry of the command's PRP list (NVMe Base Specification 2.1, 4.3.1), and the IOMMU.
  std::uint64_t transfer_ps(std::uint64_t payload) const {
    const std::uint64_t further = payload == 0 ? 0 : (payload - 1) / host_page_bytes;
    return duration_ps(payload) + further * further_page_ps_;
  }

  std::uint64_t payload_;
  Divisor by_payload_;
  std::uint64_t overhead_, latency_ps_, further_page_ps_;
  double ps_per_byte_;
  Memo durations_;
  FifoServer to_device_, to_host_;
};

}  // namespace iojoule::sim::physical
