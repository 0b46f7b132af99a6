// The bytes on the lab's drive: memory that is taken only where something was written.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace iojoule::lab {

class Store {
 public:
  explicit Store(std::uint64_t bytes) : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    data_ = static_cast<char*>(memory);
  }
  ~Store() { munmap(data_, bytes_); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  const char* at(std::uint64_t offset) const { return data_ + offset; }
  void write(std::uint64_t offset, const char* from, std::uint64_t bytes) {
    std::memcpy(data_ + offset, from, bytes);
  }
  // Reads of it return zeros from now on; whole pages of memory are given back.
  void discard(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t end = offset + bytes;
    const std::uint64_t first = (offset + page - 1) / page * page, last = end / page * page;
    if (first >= last) {
      std::memset(data_ + offset, 0, bytes);
      return;
    }
    std::memset(data_ + offset, 0, first - offset);
    std::memset(data_ + last, 0, end - last);
    madvise(data_ + first, last - first, MADV_DONTNEED);
  }

 private:
  static constexpr std::uint64_t page = 4096;
  std::uint64_t bytes_;
  char* data_ = nullptr;
};

}  // namespace iojoule::lab
