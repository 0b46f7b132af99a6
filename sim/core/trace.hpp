// Block traces in MQSim's text form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config.hpp"

namespace iojoule::sim {

struct TraceRecord {
  std::uint64_t arrival_ns;
  std::uint64_t start_sector;
  std::uint32_t sectors;
  bool is_read;
};

// What a record may hold; beyond that a file is damaged or in another unit. The longest trace
// replayed most often still ends within 64 bits of ns.
inline constexpr std::uint64_t trace_arrival_limit_ns = 1'000'000'000'000'000;      // 11.6 days
inline constexpr std::uint32_t trace_replays_limit = 10'000;
inline constexpr std::uint64_t trace_sector_limit = std::uint64_t{1} << 48;         // 128 PiB
// Blocks in a command: 0's based in 16 bits (NVM Command Set Specification, Read, CDW12.NLB).
inline constexpr std::uint32_t trace_sectors_limit = 65536;

// Reads a whole trace: one request a line, five columns parted by blanks - arrival in ns (never
// less than the line before), device (ignored), first sector, sectors, type (0: write, any other
// number: read). Lines may end in CRLF and the file in empty lines.
//
// Throws TraceError with the line at the first thing that is none of this, where MQSim would end
// the trace in silence, and LimitError before it takes more than limits.memory_bytes.
std::vector<TraceRecord> read_trace(const std::string& path, const Limits& limits);

// The same for text at hand; `path` only names it in errors.
std::vector<TraceRecord> parse_trace(std::string_view text, const std::string& path,
                                     const Limits& limits);

}  // namespace iojoule::sim
