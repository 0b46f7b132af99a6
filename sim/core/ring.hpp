// First in, first out in one array, which grows and never shrinks.
#pragma once

#include <cstddef>
#include <vector>

namespace iojoule::sim {

template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return items_.size() * sizeof(T); }

  T& operator[](std::size_t i) { return items_[(first_ + i) & (room_ - 1)]; }
  T& front() { return items_[first_]; }

  void push_back(const T& item) {
    if (size_ == room_) grow();
    (*this)[size_++] = item;
  }
  void pop_front() {
    first_ = (first_ + 1) & (room_ - 1);
    --size_;
  }

 private:
  // Room for a power of two of items, so that positions wrap with a mask.
  [[gnu::noinline]] void grow() {
    std::vector<T> larger(room_ == 0 ? 16 : 2 * room_);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    items_.swap(larger);
    room_ = items_.size();
    first_ = 0;
  }

  std::vector<T> items_;
  std::size_t room_ = 0, first_ = 0, size_ = 0;
};

}  // namespace iojoule::sim
