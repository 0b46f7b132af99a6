// How long a queue was over time and how long its transactions waited, as MQSim states it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../result.hpp"

namespace iojoule::sim::compat {

// The time spent at each length is kept; means follow from it at the end.
class QueueMeter {
 public:
  void enter(std::uint64_t now_ns) {
    pass(now_ns);
    ++enqueued_;
    if (++length_ == ns_at_length_.size()) ns_at_length_.push_back(0);
  }
  void leave(std::uint64_t now_ns, std::uint64_t entered_ns) {
    pass(now_ns);
    const std::uint64_t waited_ns = now_ns - entered_ns;
    ++dequeued_;
    --length_;
    waiting_ns_ += waited_ns;
    max_waiting_ns_ = std::max(max_waiting_ns_, waited_ns);
  }

  // With x a length and f(x) its share of the time up to the last change: the mean is the sum of
  // x f(x). What MQSim takes for the standard deviation is the root of the sum of (x f(x) - mean)^2
  // over all lengths from 0 to the greatest.
  void report(std::uint64_t end_ns, QueueResult& into) const {
    into.enqueued = enqueued_;
    into.dequeued = dequeued_;
    into.max_length = ns_at_length_.size() - 1;
    into.max_waiting_ns = max_waiting_ns_;
    if (dequeued_ > 0) into.mean_waiting_ns = static_cast<double>(waiting_ns_) / static_cast<double>(dequeued_);
    if (end_ns == 0) return;
    const auto part = [&](std::size_t length) {
      return static_cast<double>(ns_at_length_[length]) / static_cast<double>(end_ns) * static_cast<double>(length);
    };
    double squares = 0;
    for (std::size_t length = 0; length < ns_at_length_.size(); ++length) into.mean_length += part(length);
    for (std::size_t length = 0; length < ns_at_length_.size(); ++length) {
      squares += (part(length) - into.mean_length) * (part(length) - into.mean_length);
    }
    into.sd_length = std::sqrt(squares);
  }

 private:
  void pass(std::uint64_t now_ns) {
    ns_at_length_[length_] += now_ns - changed_ns_;
    changed_ns_ = now_ns;
  }

  std::vector<std::uint64_t> ns_at_length_{0};
  std::uint64_t changed_ns_ = 0, waiting_ns_ = 0, max_waiting_ns_ = 0;
  std::uint64_t enqueued_ = 0, dequeued_ = 0;
  std::size_t length_ = 0;
};

}  // namespace iojoule::sim::compat
