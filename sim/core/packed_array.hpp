// A zero-filled array of numbers of a few bits each, one after the other without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lazy_array.hpp"

namespace iojoule::sim {

// Costs nothing until it is touched, like the LazyArray it lies in. Needs a little-endian machine.
class PackedArray {
 public:
  PackedArray() = default;
  // Numbers of 58 to 63 bits get 64, so that each lies within eight bytes.
  PackedArray(std::size_t size, std::uint32_t bits)
      : bits_(bits <= 57 ? bits : 64),
        mask_(~std::uint64_t{0} >> (64 - bits_)),
        bytes_(size == 0 ? 0 : (size * bits_ + 7) / 8 + 2 * sizeof(std::uint64_t)) {}

  std::uint64_t operator[](std::size_t i) const {
    const std::size_t bit = i * bits_;
    return load(bit / 8) >> (bit % 8) & mask_;
  }
  void set(std::size_t i, std::uint64_t value) {
    const std::size_t bit = i * bits_;
    const std::uint64_t others = load(bit / 8) & ~(mask_ << (bit % 8));
    const std::uint64_t word = others | value << (bit % 8);
    std::memcpy(&bytes_[bit / 8], &word, sizeof(word));
  }
  // To be said before a few neighbouring numbers are written the first time. A page of memory that is
  // read first gets its own place only when it is written, and then every processor that runs a thread
  // of this process has to be told. `set` reads first; this writes, and changes nothing.
  void begin(std::size_t first, std::size_t count) {
    const std::size_t last = (first + count) * bits_ / 8 + sizeof(std::uint64_t) - 1;
    __atomic_fetch_or(&bytes_[first * bits_ / 8], 0, __ATOMIC_RELAXED);
    __atomic_fetch_or(&bytes_[last], 0, __ATOMIC_RELAXED);
  }
  void will_be_filled() { bytes_.will_be_filled(); }
  std::uint64_t held_bytes() const { return bytes_.held_bytes(); }
  [[gnu::always_inline]] void prefetch(std::size_t i) const { __builtin_prefetch(&bytes_[i * bits_ / 8], 1); }

 private:
  std::uint64_t load(std::size_t byte) const {
    std::uint64_t word;
    std::memcpy(&word, &bytes_[byte], sizeof(word));
    return word;
  }

  std::uint32_t bits_ = 0;
  std::uint64_t mask_ = 0;
  LazyArray<unsigned char> bytes_;
};

}  // namespace iojoule::sim
