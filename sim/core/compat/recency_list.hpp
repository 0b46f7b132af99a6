// The entries of an array in the order of their last use, linked by themselves.
#pragma once

#include <cstdint>
#include <vector>

namespace iojoule::sim::compat {

// Entry has `previous`, towards the recently used, and `next`, towards the old: indices, or `nothing`.
template <class Entry>
class RecencyList {
 public:
  static constexpr std::uint32_t nothing = UINT32_MAX;

  // The least recently used; there must be one.
  std::uint32_t last() const { return last_; }
  void link_first(std::vector<Entry>& entries, std::uint32_t entry) {
    entries[entry].previous = nothing;
    entries[entry].next = first_;
    (first_ == nothing ? last_ : entries[first_].previous) = entry;
    first_ = entry;
  }
  void unlink(std::vector<Entry>& entries, std::uint32_t entry) {
    const Entry& gone = entries[entry];
    (gone.previous == nothing ? first_ : entries[gone.previous].next) = gone.next;
    (gone.next == nothing ? last_ : entries[gone.next].previous) = gone.previous;
  }
  void touch(std::vector<Entry>& entries, std::uint32_t entry) {
    unlink(entries, entry);
    link_first(entries, entry);
  }

 private:
  std::uint32_t first_ = nothing, last_ = nothing;
};

}  // namespace iojoule::sim::compat
