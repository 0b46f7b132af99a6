// Whatever a trace file holds, the reader returns records that are in order and in range, or throws a
// TraceError for a line of the file, or a LimitError.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "error.hpp"
#include "require.hpp"
#include "trace.hpp"

using namespace iojoule::sim;

namespace {

void check(const std::vector<TraceRecord>& records) {
  REQUIRE(!records.empty());
  std::uint64_t last_ns = 0;
  for (const TraceRecord& record : records) {
    REQUIRE(record.arrival_ns >= last_ns && record.arrival_ns <= trace_arrival_limit_ns);
    REQUIRE(record.sectors > 0 && record.sectors <= trace_sectors_limit);
    REQUIRE(record.start_sector <= trace_sector_limit);
    last_ns = record.arrival_ns;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Limits limits;
  limits.memory_bytes = 1U << 16;
  try {
    check(parse_trace(text, "fuzzed", limits));
  } catch (const TraceError& error) {
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    REQUIRE(error.line <= lines);
    const std::string_view said = error.what();
    REQUIRE(std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  } catch (const LimitError&) {
    REQUIRE(size * sizeof(TraceRecord) + size + sizeof(TraceRecord) > limits.memory_bytes);
  }
  return 0;
}
