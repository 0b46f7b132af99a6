// How long commands and data take on a flash channel: any rate above zero, to the picosecond.
#pragma once

#include <cstdint>

#include "../config.hpp"
#include "../memo.hpp"

namespace iojoule::sim::physical {

class ChannelTiming {
 public:
  explicit ChannelTiming(const DeviceConfig& device)
      : nand_(device.physical.nand),
        page_bytes_(device.page_bytes),
        metadata_bytes_(nand_.transfer_metadata ? device.page_metadata_bytes : 0),
        bytes_per_microsecond_(std::uint64_t{device.channel_megatransfers_per_second} *
                               device.channel_width_bytes) {}

  // Data plus its share of the spare area.
  std::uint64_t bytes_moved(std::uint64_t bytes) const {
    return moved_(bytes, [this](std::uint64_t of) {
      return of + (of * metadata_bytes_ + page_bytes_ - 1) / page_bytes_;
    });
  }
  std::uint64_t data_ps(std::uint64_t bytes_moved) const {
    return durations_(bytes_moved,
                      [this](std::uint64_t of) { return of * 1'000'000 / bytes_per_microsecond_; });
  }
  std::uint64_t read_command_ps(std::uint32_t planes) const {
    return command_ps(nand_.read_command_ns, nand_.read_command_plane_ns, planes);
  }
  std::uint64_t program_command_ps(std::uint32_t planes) const {
    return command_ps(nand_.program_command_ns, nand_.program_command_plane_ns, planes);
  }
  std::uint64_t erase_command_ps(std::uint32_t planes) const {
    return command_ps(nand_.erase_command_ns, nand_.erase_command_plane_ns, planes);
  }

 private:
  static std::uint64_t command_ps(std::uint64_t first_ns, std::uint64_t further_ns,
                                  std::uint32_t planes) {
    return (first_ns + (planes - 1) * further_ns) * 1000;
  }

  const NandOptions& nand_;
  std::uint64_t page_bytes_, metadata_bytes_, bytes_per_microsecond_;
  Memo moved_, durations_;
};

}  // namespace iojoule::sim::physical
