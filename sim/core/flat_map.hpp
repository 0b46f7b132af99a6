// A map from whole numbers to 32-bit values in a flat array: linear probing, no tombstones.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace iojoule::sim {

// Scatters keys over 2^(64 - shift) places: Fibonacci hashing (Knuth, TAOCP 3, 6.4).
inline std::uint64_t scattered(std::uint64_t key, int shift) { return (key * 0x9E3779B97F4A7C15ULL) >> shift; }

// Holds any key but the largest of its type. Grows by doubling at half full, so that a table made
// with the expected number of keys allocates nothing later.
class FlatMap {
 public:
  using Key = std::uint64_t;
  static constexpr std::uint32_t absent = UINT32_MAX;

  explicit FlatMap(std::size_t expected = 16) { reset(std::bit_ceil(2 * expected + 16)); }

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

  std::uint32_t find(Key key) const {
    for (std::size_t i = home(key); slots_[i].key != empty; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return slots_[i].value;
    }
    return absent;
  }
  [[gnu::always_inline]] void prefetch(Key key) const { __builtin_prefetch(&slots_[home(key)]); }
  bool contains(Key key) const { return find(key) != absent; }

  // The key must not be there yet.
  void insert(Key key, std::uint32_t value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    place(key, value);
    ++size_;
  }

  void erase(Key key) {
    std::size_t i = home(key);
    while (slots_[i].key != key) {
      if (slots_[i].key == empty) return;
      i = (i + 1) & mask_;
    }
    // Close the gap: move back every follower that its home allows to stand here.
    for (std::size_t j = (i + 1) & mask_; slots_[j].key != empty; j = (j + 1) & mask_) {
      if (((j - home(slots_[j].key)) & mask_) < ((j - i) & mask_)) continue;
      slots_[i] = slots_[j];
      i = j;
    }
    slots_[i].key = empty;
    --size_;
  }

  void clear() {
    if (size_ > 0) reset(slots_.size());
  }

 private:
  static constexpr Key empty = std::numeric_limits<Key>::max();

  struct Slot {
    Key key = empty;
    std::uint32_t value = 0;
  };

  std::size_t home(Key key) const { return static_cast<std::size_t>(scattered(key, shift_)); }

  void reset(std::size_t capacity) {
    slots_.assign(capacity, Slot{});
    mask_ = capacity - 1;
    shift_ = 64 - std::countr_zero(capacity);
    size_ = 0;
  }

  void place(Key key, std::uint32_t value) {
    std::size_t i = home(key);
    while (slots_[i].key != empty) i = (i + 1) & mask_;
    slots_[i] = {key, value};
  }

  void grow() {
    std::vector<Slot> slots(2 * slots_.size());
    slots.swap(slots_);
    mask_ = slots_.size() - 1;
    --shift_;
    for (const Slot& slot : slots) {
      if (slot.key != empty) place(slot.key, slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0, size_ = 0;
  int shift_ = 0;
};

}  // namespace iojoule::sim
