// Flash transactions and the queues they stand in: indices into one pool, no pointers.
#pragma once

#include <cstdint>
#include <vector>

namespace iojoule::sim::compat {

inline constexpr std::uint32_t nothing = UINT32_MAX;

enum class Operation : std::uint8_t { read, program, erase };
enum class Source : std::uint8_t { user, cache, collector, mapping };

struct Transaction {
  std::uint32_t next = nothing, previous = nothing;  // neighbours in the queue it stands in
  std::uint32_t request = nothing;                   // the user request it belongs to
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

// First in, first out, with removal from the middle.
struct TransactionList {
  std::uint32_t head = nothing, tail = nothing, size = 0;
  std::uint32_t meter = nothing;  // what measures it, if anything does

  bool empty() const { return head == nothing; }

  void push_back(Pool<Transaction>& pool, std::uint32_t index) {
    pool[index].previous = tail;
    pool[index].next = nothing;
    (tail == nothing ? head : pool[tail].next) = index;
    tail = index;
    ++size;
  }
  void remove(Pool<Transaction>& pool, std::uint32_t index) {
    const Transaction& gone = pool[index];
    (gone.previous == nothing ? head : pool[gone.previous].next) = gone.next;
    (gone.next == nothing ? tail : pool[gone.next].previous) = gone.previous;
    --size;
  }
};

}  // namespace iojoule::sim::compat
