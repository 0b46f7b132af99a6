// The clock of a simulation: events in (time, insertion) order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace iojoule::sim {

// Events at one time run in the order in which they were scheduled; an event scheduled for the
// current time runs after all that already stand there. `order` may wrap: it is compared by
// difference, which is right while fewer than 2^31 events are pending.
struct Event {
  std::uint64_t time_ns;
  std::uint32_t order;
  std::uint32_t what;  // kind in the upper 5 bits, subject in the lower 27
};

inline constexpr std::uint32_t subject_bits = 27;
inline constexpr std::uint32_t subject_limit = 1U << subject_bits;

constexpr std::uint32_t event_kind(std::uint32_t what) { return what >> subject_bits; }
constexpr std::uint32_t event_subject(std::uint32_t what) { return what & (subject_limit - 1); }

// The nearest events stand sorted in an array with room at both ends, all others in a 4-ary heap.
// What a drive does next lies mostly right before the first event (a link's next message) or behind
// the last (an array operation), so that an event moves few others; the heap keeps the cost
// logarithmic where very many are pending.
class EventQueue {
 public:
  EventQueue() { far_.reserve(1024); }

  std::uint64_t now_ns() const { return now_ns_; }
  std::uint64_t executed() const { return executed_; }
  bool empty() const { return first_ == last_ && far_.empty(); }

  // Of the earliest event; UINT64_MAX if there is none.
  std::uint64_t next_time_ns() {
    if (empty()) return UINT64_MAX;
    if (first_ == last_) bring_near();
    return near_[first_].time_ns;
  }
  // Sets the clock to a time at which nothing happens, at most that of the earliest event.
  void pass(std::uint64_t time_ns) { now_ns_ = std::max(now_ns_, time_ns); }

  void schedule(std::uint64_t time_ns, std::uint32_t kind, std::uint32_t subject) {
    const Event event{time_ns, next_order_++, (kind << subject_bits) | subject};
    if (first_ == 0 || last_ == near_space) [[unlikely]] make_room();
    if (time_ns >= far_from_ns_) [[unlikely]] {
      push_far(event);
    } else {
      insert_near(event);
    }
  }

  // Advances the clock to the earliest event and takes it out. The queue must not be empty.
  Event next() {
    if (first_ == last_) [[unlikely]] bring_near();
    const Event& event = near_[first_++];
    now_ns_ = event.time_ns;
    ++executed_;
    return event;
  }

 protected:
  static constexpr std::size_t near_limit = 64, near_space = 4 * near_limit;

  static bool earlier(const Event& a, const Event& b) {
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    return static_cast<std::int32_t>(a.order - b.order) < 0;
  }

  // The event is the newest: it goes behind all of its time. By value, here and below: the processor
  // would wait for an event that it has just put together in memory.
  void insert_near(Event event) {
    if (first_ < last_ && event.time_ns < near_[(first_ + last_) / 2].time_ns) {
      std::size_t place = --first_;
      for (; near_[place + 1].time_ns <= event.time_ns; ++place) near_[place] = near_[place + 1];
      near_[place] = event;
    } else {
      std::size_t place = last_++;
      for (; place > first_ && near_[place - 1].time_ns > event.time_ns; --place) near_[place] = near_[place - 1];
      near_[place] = event;
    }
  }

  // Moves the array to the middle of its space. Not inlined, like all that is rare: it would crowd
  // the callers.
  [[gnu::noinline]] void make_room() {
    while (last_ - first_ > near_limit) push_far(near_[--last_]);
    const std::size_t size = last_ - first_, first = (near_space - size) / 2;
    // without [], which may not tell where no element is: there may be none, and the place past the end
    std::memmove(near_.data() + first, near_.data() + first_, size * sizeof(Event));
    first_ = first;
    last_ = first + size;
  }

  [[gnu::noinline]] void bring_near() {
    first_ = last_ = near_space / 4;
    while (!far_.empty() && last_ - first_ < near_limit) near_[last_++] = pop_far();
  }

  [[gnu::noinline]] void push_far(Event event) {
    std::size_t hole = far_.size();
    far_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!earlier(event, far_[parent])) break;
      far_[hole] = far_[parent];
      hole = parent;
    }
    far_[hole] = event;
    far_from_ns_ = far_.front().time_ns;
  }

  Event pop_far() {
    const Event first = far_.front();
    const Event last = far_.back();
    far_.pop_back();
    const std::size_t size = far_.size();
    std::size_t hole = 0;
    while (true) {
      const std::size_t child = 4 * hole + 1;
      if (child >= size) break;
      const std::size_t end = std::min(child + 4, size);
      std::size_t least = child;
      for (std::size_t i = child + 1; i < end; ++i) {
        if (earlier(far_[i], far_[least])) least = i;
      }
      if (!earlier(far_[least], last)) break;
      far_[hole] = far_[least];
      hole = least;
    }
    if (size > 0) far_[hole] = last;
    far_from_ns_ = size > 0 ? far_.front().time_ns : UINT64_MAX;
    return first;
  }

  std::array<Event, near_space> near_;  // sorted from first_ to last_
  std::size_t first_ = near_space / 4, last_ = near_space / 4;
  std::vector<Event> far_;  // none earlier than any of near_
  std::uint64_t far_from_ns_ = UINT64_MAX;
  std::uint64_t now_ns_ = 0;
  std::uint64_t executed_ = 0;
  std::uint32_t next_order_ = 0;
};

// With a place for each of some things that never have more than one event pending, such as links: such an
// event is found by comparison and moves no others.
template <std::size_t places>
class EventQueueWithPlaces : private EventQueue {
 public:
  EventQueueWithPlaces() { single_.fill(never); }

  using EventQueue::executed;
  using EventQueue::now_ns;
  using EventQueue::schedule;

  // The place must be free.
  void schedule_single(std::size_t place, std::uint64_t time_ns, std::uint32_t kind, std::uint32_t subject) {
    single_[place] = {time_ns, next_order_++, (kind << subject_bits) | subject};
  }

  // Advances the clock to the earliest event, which stays where it is until it is taken. False when there is none.
  bool next(Event& event) {
    if (first_ == last_ && !far_.empty()) [[unlikely]] bring_near();
    const Event* first = first_ == last_ ? &never : &near_[first_];
    std::uint64_t time_ns = first->time_ns;
    // Without a branch where times differ, as they mostly do: which is the earlier cannot be foreseen.
    for (const Event& single : single_) {
      if (single.time_ns == time_ns) [[unlikely]] {
        first = earlier(single, *first) ? &single : first;
        continue;
      }
      first = single.time_ns < time_ns ? &single : first;
      time_ns = std::min(single.time_ns, time_ns);
    }
    if (time_ns == UINT64_MAX) [[unlikely]] return false;
    event = *first;
    now_ns_ = time_ns;
    ++executed_;
    return true;
  }
  void take() { ++first_; }
  void take_single(std::size_t place) { single_[place].time_ns = UINT64_MAX; }

 private:
  static constexpr Event never{UINT64_MAX, 0, 0};

  std::array<Event, places> single_;
};

}  // namespace iojoule::sim
