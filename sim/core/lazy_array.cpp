#include "lazy_array.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace iojoule::sim {

namespace {

constexpr std::size_t block_bytes = 4096;

// A whole number of words.
bool all_zero(const unsigned char* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, data + i, sizeof(word));
    if (word != 0) return false;
  }
  return true;
}

}  // namespace

// Only pages that the system has given are read; reading others would make it give them.
std::uint64_t filled_bytes(const void* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = (bytes + page_bytes - 1) / page_bytes;
  const std::size_t step = std::min(block_bytes, page_bytes);
  // The mapping is of whole pages, and mincore, which does not write there, takes no const.
  auto* const first = static_cast<unsigned char*>(const_cast<void*>(data));
  std::array<unsigned char, 4096> given{};
  std::uint64_t filled = 0;
  for (std::size_t done = 0; done < pages; done += given.size()) {
    const std::size_t count = std::min(given.size(), pages - done);
    if (mincore(first + done * page_bytes, count * page_bytes, given.data()) != 0) return bytes;
    for (std::size_t page = 0; page < count; ++page) {
      if ((given[page] & 1U) == 0) continue;
      const unsigned char* const at = first + (done + page) * page_bytes;
      for (std::size_t offset = 0; offset < page_bytes; offset += step) {
        if (!all_zero(at + offset, step)) filled += step;
      }
    }
  }
  return filled;
}

}  // namespace iojoule::sim
