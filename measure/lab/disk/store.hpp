// The bytes on the lab's drive: memory that is taken only where something was written.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>

namespace iojoule::lab {

class Store {
 public:
  // Only `kept_bytes` of what is written are remembered at a time, and the rest reads as zeros:
  // for a drive that is larger than the machine's memory.
  Store(std::uint64_t bytes, std::uint64_t kept_bytes)
      : bytes_(bytes), limited_(kept_bytes < bytes), free_pages_(kept_bytes / page), data_(bytes) {
    if (!limited_) return;
    used_.emplace((bytes / page + bits) / bits * sizeof(std::uint64_t));
    // a huge page would take 2 MiB of memory for every 4 KiB written
    madvise(data_.begin, bytes, MADV_NOHUGEPAGE);
  }

  std::uint64_t bytes() const { return bytes_; }
  // Of what is written now, whole pages are dropped when there is no more room for them.
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

  const char* at(std::uint64_t offset, std::uint64_t bytes) const {
    // reading a page for the first time costs memory of the kernel: none for what is not there
    if (limited_ && bytes <= nothing_bytes && !any_used(offset, bytes)) return nothing_.begin;
    return data_.begin + offset;
  }
  void write(std::uint64_t offset, const char* from, std::uint64_t bytes) {
    if (!limited_) {
      std::memcpy(data_.begin + offset, from, bytes);
      return;
    }
    for (std::uint64_t at = offset, end = offset + bytes; at < end;) {
      const std::uint64_t next = std::min(end, (at / page + 1) * page);
      if (take(at / page)) {
        std::memcpy(data_.begin + at, from + (at - offset), next - at);
      } else {
        dropped_bytes_ += next - at;
      }
      at = next;
    }
  }
  // Reads of it return zeros from now on; whole pages of memory are given back.
  void discard(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t end = offset + bytes;
    const std::uint64_t first = (offset + page - 1) / page * page, last = end / page * page;
    if (first >= last) {
      clear(offset, bytes);
      return;
    }
    clear(offset, first - offset);
    clear(last, end - last);
    madvise(data_.begin + first, last - first, MADV_DONTNEED);
    if (limited_) give_back(first / page, last / page);
  }

 private:
  // Zeros that take no memory until something else is written there.
  struct Mapping {
    explicit Mapping(std::uint64_t bytes_) : bytes(bytes_) {
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
      begin = static_cast<char*>(memory);
    }
    ~Mapping() { munmap(begin, bytes); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    std::uint64_t bytes;
    char* begin = nullptr;
  };

  static constexpr std::uint64_t page = 4096, bits = 64;
  static constexpr std::uint64_t nothing_bytes = 1U << 20U;

  std::uint64_t& word(std::uint64_t number) const {
    return reinterpret_cast<std::uint64_t*>(used_->begin)[number / bits];
  }
  bool is_used(std::uint64_t number) const { return (word(number) >> number % bits & 1U) != 0; }
  bool any_used(std::uint64_t offset, std::uint64_t bytes) const {
    for (std::uint64_t i = offset / page; i * page < offset + bytes; ++i) {
      if (is_used(i)) return true;
    }
    return false;
  }
  bool take(std::uint64_t number) {
    if (is_used(number)) return true;
    if (free_pages_ == 0) return false;
    --free_pages_;
    word(number) |= 1ULL << number % bits;
    return true;
  }
  void give_back(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) {
      if (i % bits == 0 && i + bits <= last) {
        std::uint64_t& whole = word(i);
        free_pages_ += static_cast<std::uint64_t>(std::popcount(whole));
        if (whole != 0) whole = 0;
        i += bits - 1;
      } else if (is_used(i)) {
        ++free_pages_;
        word(i) &= ~(1ULL << i % bits);
      }
    }
  }
  void clear(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0 || (limited_ && !is_used(offset / page))) return;
    std::memset(data_.begin + offset, 0, bytes);
  }

  std::uint64_t bytes_;
  bool limited_;
  std::uint64_t free_pages_, dropped_bytes_ = 0;
  Mapping data_;
  std::optional<Mapping> used_;
  Mapping nothing_{nothing_bytes};
};

}  // namespace iojoule::lab
