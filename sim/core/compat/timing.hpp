// How long MQSim lets things take. Each type is one of its rules, named after what is odd in it.
#pragma once

#include <cstdint>

#include "../config.hpp"
#include "../geometry.hpp"
#include "../memo.hpp"

namespace iojoule::sim::compat {

// PCIe packets of 128 B with 28 B around each, spread over the lanes; whole ns (mqsim.md, 3.2).
class PacketedLink {
 public:
  explicit PacketedLink(const DeviceConfig& device)
      : lanes_(device.link_lanes),
        gigabytes_per_second_(device.link_lane_gigabytes_per_second),
        doorbell_ns_(write_ns(2)),
        submission_ns_(write_ns(72)),
        completion_ns_(write_ns(16)),
        read_request_ns_(transfer_ns(32)) {}

  std::uint64_t doorbell_ns() const { return doorbell_ns_; }
  std::uint64_t submission_ns() const { return submission_ns_; }
  std::uint64_t completion_ns() const { return completion_ns_; }
  std::uint64_t read_request_ns() const { return read_request_ns_; }

  std::uint64_t write_ns(std::uint64_t payload_bytes) const {
    return writes_ns_(payload_bytes, [this](std::uint64_t payload) {
      const std::uint64_t full = payload / packet_payload_bytes;
      const std::uint64_t rest = payload % packet_payload_bytes;
      return transfer_ns(full * (packet_payload_bytes + overhead_bytes) +
                         (rest == 0 ? 0 : rest + overhead_bytes));
    });
  }

 private:
  static constexpr std::uint64_t packet_payload_bytes = 128, overhead_bytes = 28;

  std::uint64_t transfer_ns(std::uint64_t bytes) const {
    const std::uint64_t per_lane = (bytes + lanes_ - 1) / lanes_;
    return static_cast<std::uint64_t>(static_cast<double>(per_lane) / gigabytes_per_second_);
  }

  std::uint32_t lanes_;
  double gigabytes_per_second_;
  Memo writes_ns_;
  std::uint64_t doorbell_ns_, submission_ns_, completion_ns_, read_request_ns_;
};

// DRAM time: activation, then one beat for two bursts. Above one row MQSim counts every second row
// only and divides the rest by the beat time (mqsim.md, 3.4); its rate is 32 bits of Hz.
class HalfCountedDram {
 public:
  explicit HalfCountedDram(const DeviceConfig& device)
      : row_bytes_(device.dram_row_bytes),
        burst_bytes_(device.dram_burst_bytes),
        trcd_ns_(device.dram_trcd_ns),
        tcl_ns_(device.dram_tcl_ns),
        trp_ns_(device.dram_trp_ns),
        beat_ns_(1e9 / static_cast<double>(static_cast<std::uint32_t>(
                            device.dram_megatransfers_per_second * 1000000U))) {}

  std::uint64_t access_ns(std::uint32_t bytes) const {
    if (bytes <= row_bytes_) {
      return trcd_ns_ + tcl_ns_ + static_cast<std::uint64_t>(half_bursts(bytes) * beat_ns_);
    }
    const auto row_ns = static_cast<std::uint64_t>(half_bursts(row_bytes_) * beat_ns_ +
                                                   static_cast<double>(trp_ns_));
    return 2 * (trcd_ns_ + tcl_ns_) + row_ns * (bytes / row_bytes_ / 2) +
           static_cast<std::uint64_t>(static_cast<double>(bytes % row_bytes_) /
                                      (burst_bytes_ * beat_ns_));
  }

 private:
  double half_bursts(std::uint32_t bytes) const { return bytes / burst_bytes_ / 2; }

  std::uint32_t row_bytes_, burst_bytes_;
  std::uint64_t trcd_ns_, tcl_ns_, trp_ns_;
  double beat_ns_;
};

// ONFI NV-DDR2 with the time of two beats cut to whole ns, so that 334 to 500 MT/s are one speed and
// anything above 1000 MT/s is free; commands of more planes cost more (mqsim.md, 0.5 and 3.7).
class WholeNsChannel {
 public:
  explicit WholeNsChannel(const DeviceConfig& device)
      : width_bytes_(device.channel_width_bytes),
        two_beats_ns_(2 * (1000 / device.channel_megatransfers_per_second)) {}

  std::uint64_t data_ns(std::uint32_t bytes) const {
    return std::uint64_t{bytes / width_bytes_ / 2} * two_beats_ns_;
  }
  static std::uint64_t read_command_ns(std::size_t planes) { return 290 + 650 * (planes - 1); }
  static std::uint64_t program_command_ns(std::size_t planes) { return 361 + 816 * (planes - 1); }
  static std::uint64_t erase_command_ns(std::size_t planes) { return 220 + 700 * (planes - 1); }

 private:
  std::uint32_t width_bytes_;
  std::uint64_t two_beats_ns_;
};

// Array times by the kind of page. Reads take 20 ns more than configured (mqsim.md, 1.3).
class PageKindArray {
 public:
  explicit PageKindArray(const DeviceConfig& device)
      : technology_(device.flash_technology),
        read_ns_(device.page_read_ns),
        program_ns_(device.page_program_ns),
        erase_ns_(device.block_erase_ns) {}

  std::uint64_t read_ns(std::uint32_t page) const { return read_ns_[kind(page)] + 20; }
  std::uint64_t program_ns(std::uint32_t page) const { return program_ns_[kind(page)]; }
  std::uint64_t erase_ns() const { return erase_ns_; }

 private:
  std::size_t kind(std::uint32_t page) const {
    constexpr std::size_t lsb = 0, csb = 1, msb = 2;
    switch (technology_) {
      case FlashTechnology::slc: return lsb;
      case FlashTechnology::mlc: return page % 2 == 0 ? lsb : msb;
      default:
        if (page <= 5) return lsb;
        if (page <= 7) return csb;
        return ((page - 8) >> 1U) % 3;
    }
  }

  FlashTechnology technology_;
  std::array<std::uint64_t, page_kinds> read_ns_, program_ns_;
  std::uint64_t erase_ns_;
};

}  // namespace iojoule::sim::compat
