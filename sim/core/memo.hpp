// The last values of a function of one number.
#pragma once

#include <array>
#include <cstdint>

#include "flat_map.hpp"

namespace iojoule::sim {

// For what takes a division or a conversion to floating point, where few different numbers are asked for:
// sizes of requests. Remembers one number of those that share a place.
class Memo {
 public:
  template <class Function>
  std::uint64_t operator()(std::uint64_t number, const Function& function) const {
    Entry& entry = entries_[scattered(number, 64 - bits)];
    if (entry.number != number) [[unlikely]] entry = {number, function(number)};
    return entry.value;
  }

 private:
  static constexpr int bits = 5;
  struct Entry {
    std::uint64_t number = UINT64_MAX, value = 0;
  };

  mutable std::array<Entry, 1U << bits> entries_;
};

}  // namespace iojoule::sim
