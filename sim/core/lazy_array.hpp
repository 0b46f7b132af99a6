// A zero-filled array whose pages cost nothing until they are touched.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace iojoule::sim {

// Of a mapping that begins at `data`, what lies in blocks of 4 KiB that are not all zero: the same on
// every machine, whatever the size of its pages.
std::uint64_t filled_bytes(const void* data, std::size_t bytes);

// For tables as large as the simulated drive, of which a run touches a part: start-up takes no time
// and memory is what was used. T must be fine with all bits zero.
template <class T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LazyArray() = default;
  explicit LazyArray(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* mapped = mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(mapped);
  }
  LazyArray(LazyArray&& other) noexcept { swap(other); }
  LazyArray& operator=(LazyArray&& other) noexcept {
    swap(other);
    return *this;
  }
  LazyArray(const LazyArray&) = delete;
  LazyArray& operator=(const LazyArray&) = delete;
  ~LazyArray() {
    if (data_ != nullptr) munmap(data_, size_ * sizeof(T));
  }

  // Most of it is about to be touched in no order: large pages spare the processor most of its walks
  // through page tables. Only a hint.
  void will_be_filled() {
    if (size_ > 0) madvise(data_, bytes(), MADV_HUGEPAGE);
  }

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  // Looks at all that was touched: for the end of a run.
  std::uint64_t held_bytes() const { return filled_bytes(data_, bytes()); }

 private:
  void swap(LazyArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace iojoule::sim
