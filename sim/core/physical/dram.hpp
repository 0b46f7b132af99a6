// The drive's memory: one channel with its real bandwidth.
#pragma once

#include <cstdint>

#include "../config.hpp"
#include "../divisor.hpp"
#include "fifo_server.hpp"

namespace iojoule::sim::physical {

class Dram {
 public:
  explicit Dram(const DeviceConfig& device)
      : row_bytes_(device.dram_row_bytes),
        by_row_(row_bytes_),
        row_open_ps_(to_ps(device.dram_trcd_ns + device.dram_tcl_ns)),
        row_close_ps_(to_ps(device.dram_trp_ns)),
        bytes_per_microsecond_(std::uint64_t{device.dram_megatransfers_per_second} *
                               device.dram_burst_bytes) {}

  // dram_burst_bytes move in each of the transfers; every row is opened, and closed before the next.
  std::uint64_t duration_ps(std::uint64_t bytes) const {
    const std::uint64_t rows = by_row_.quotient(bytes + row_bytes_ - 1);
    return rows * row_open_ps_ + (rows - 1) * row_close_ps_ +
           bytes * 1'000'000 / bytes_per_microsecond_;
  }

  // When so many accesses, one after the other, are done, in ps.
  std::uint64_t access(std::uint64_t ready_ps, std::uint64_t bytes, std::uint32_t count = 1) {
    if (bytes != last_bytes_) {
      last_bytes_ = bytes;
      last_ps_ = duration_ps(bytes);
    }
    return server_.serve(ready_ps, last_ps_ * count);
  }

  std::uint64_t busy_ns() const { return server_.busy_ns(); }
  void forget_busy() { server_.forget_busy(); }

 private:
  std::uint64_t row_bytes_;
  Divisor by_row_;
  std::uint64_t row_open_ps_, row_close_ps_, bytes_per_microsecond_;
  std::uint64_t last_bytes_ = 0, last_ps_ = 0;  // mostly it is asked for the same again
  FifoServer server_;
};

}  // namespace iojoule::sim::physical
