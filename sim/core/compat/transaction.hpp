// Flash transactions and the queues they stand in: indices into one pool, no pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace iojoule::sim::compat {

inline constexpr std::uint32_t nothing = UINT32_MAX;

enum class Operation : std::uint8_t { read, program, erase };
enum class Source : std::uint8_t { user, cache, collector, mapping };

struct Transaction {
  std::uint32_t next = nothing;     // in a chain
  std::uint32_t request = nothing;  // the user request it belongs to
  std::uint32_t related = nothing;  // program: the read it waits for; read: the program that waits
  std::uint32_t lpn = 0;            // mapping: the number of the translation page
  std::uint32_t plane = 0, block = 0, page = 0;
  std::uint32_t from_block = 0;     // program of a moved page: where it comes from
  std::uint32_t moves_left = 0;     // erase: pages that are still to be moved
  std::uint32_t bytes = 0;
  Operation operation = Operation::read;
  Source source = Source::user;
  std::uint8_t flow = 0, priority = 0;
  bool placed = false;              // its physical address is known
  std::uint64_t issued_ns = 0, execution_ns = 0, transfer_ns = 0;
  std::uint64_t queued_ns = 0;
  std::uint64_t sectors = 0;        // bit by bit
  std::uint64_t stamp_ns = 0;       // age of the data
};

// Things that come and go, kept in one array; a freed index is the next one given out.
template <class T>
class Pool {
 public:
  std::uint32_t make() {
    if (free_.empty()) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    items_[index] = T{};
    return index;
  }
  void free(std::uint32_t index) { free_.push_back(index); }

  T& operator[](std::uint32_t index) { return items_[index]; }
  const T& operator[](std::uint32_t index) const { return items_[index]; }
  std::uint64_t held_bytes() const {
    return items_.capacity() * sizeof(T) + free_.capacity() * sizeof(std::uint32_t);
  }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
};

// What a chip's queue tells about a transaction without a look at it.
struct Queued {
  std::uint32_t index, page, die, plane_bit;
};

// First in, first out, with removal from the middle: of neighbours, since it is searched for each command.
class TransactionList {
 public:
  std::uint32_t meter = nothing;  // what measures it, if anything does

  bool empty() const { return first_ == items_.size(); }
  std::size_t size() const { return items_.size() - first_; }
  std::uint64_t held_bytes() const { return items_.capacity() * sizeof(Queued); }
  const Queued& operator[](std::size_t place) const { return items_[first_ + place]; }
  // The first from there on of the die, in none of the planes, and with the page's number in the bits that
  // count; `size()` if there is none.
  std::size_t find(std::size_t place, std::uint32_t die, std::uint32_t planes, std::uint32_t page,
                   std::uint32_t bits) const {
    const Queued* const items = items_.data() + first_;
    const std::size_t end = size();
    // One branch for all of it, since which of these it is that keeps a page out cannot be foreseen.
    while (place < end && ((items[place].die ^ die) | (items[place].plane_bit & planes) |
                           ((items[place].page ^ page) & bits)) != 0) {
      ++place;
    }
    return place;
  }

  void push_back(const Queued& item) {
    if (items_.size() == items_.capacity() && first_ > items_.size() / 2) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back(item);
  }
  // What stands before it moves, since it is mostly the first or near to it.
  void remove(std::size_t place) {
    for (std::size_t i = first_ + place; i > first_; --i) items_[i] = items_[i - 1];
    if (++first_ < items_.size()) return;
    items_.clear();
    first_ = 0;
  }

 private:
  std::vector<Queued> items_;  // from first_ on
  std::size_t first_ = 0;
};

}  // namespace iojoule::sim::compat
