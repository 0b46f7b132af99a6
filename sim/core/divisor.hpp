// Division by a number that is fixed for a run.
#pragma once

#include <bit>
#include <cstdint>

namespace iojoule::sim {

// A shift or a mask where the number is a power of two, as the drives' mostly are: a division takes
// some twenty cycles, and every page needs several.
class Divisor {
 public:
  explicit Divisor(std::uint64_t number = 1)
      : number_(number), shift_(static_cast<std::uint32_t>(std::countr_zero(number))), power_(std::has_single_bit(number)) {}

  std::uint64_t quotient(std::uint64_t n) const { return power_ ? n >> shift_ : n / number_; }
  std::uint64_t remainder(std::uint64_t n) const { return power_ ? n & (number_ - 1) : n % number_; }

 private:
  std::uint64_t number_;
  std::uint32_t shift_;
  bool power_;
};

// Of 32-bit numbers, by one multiplication (Lemire, Kaser, Kurz, Software: Practice and Experience 49,
// 2019: exact for every pair).
class Divisor32 {
 public:
  explicit Divisor32(std::uint32_t number = 1) : number_(number), inverse_(UINT64_MAX / number + 1) {}

  std::uint32_t quotient(std::uint32_t n) const {
    if (number_ == 1) [[unlikely]] return n;
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint32_t>((Wide{inverse_} * n) >> 64);
  }
  std::uint32_t remainder(std::uint32_t n) const { return n - quotient(n) * number_; }

 private:
  std::uint32_t number_;
  std::uint64_t inverse_;
};

}  // namespace iojoule::sim
