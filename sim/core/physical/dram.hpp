// The drive's memory: one channel with its real bandwidth.
#pragma once

#include <cstdint>

#include "../config.hpp"
#include "../memo.hpp"
#include "fifo_server.hpp"

namespace iojoule::sim::physical {

class Dram {
 public:
  explicit Dram(const DeviceConfig& device)
      : row_bytes_(device.dram_row_bytes),
        row_open_ps_(to_ps(device.dram_trcd_ns + device.dram_tcl_ns)),
        row_close_ps_(to_ps(device.dram_trp_ns)),
        bytes_per_microsecond_(std::uint64_t{device.dram_megatransfers_per_second} *
                               device.dram_burst_bytes) {}

  // dram_burst_bytes move in each of the transfers; every row is opened, and closed before the next.
  std::uint64_t duration_ps(std::uint64_t bytes) const {
    return durations_(bytes, [this](std::uint64_t of) {
      const std::uint64_t rows = (of + row_bytes_ - 1) / row_bytes_;
      return rows * row_open_ps_ + (rows - 1) * row_close_ps_ + of * 1'000'000 / bytes_per_microsecond_;
    });
  }

  // When so many accesses, one after the other, are done, in ps.
  std::uint64_t access(std::uint64_t ready_ps, std::uint64_t bytes, std::uint32_t count = 1) {
    return server_.serve(ready_ps, duration_ps(bytes) * count);
  }

  std::uint64_t busy_ns() const { return server_.busy_ns(); }
  void forget_busy() { server_.forget_busy(); }

 private:
  std::uint64_t row_bytes_;
  std::uint64_t row_open_ps_, row_close_ps_, bytes_per_microsecond_;
  Memo durations_;
  FifoServer server_;
};

}  // namespace iojoule::sim::physical
