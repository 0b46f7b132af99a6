// Which class of user requests a chip serves next (mqsim.md, 3.7).
#pragma once

#include <array>
#include <cstddef>

#include "../config.hpp"
#include "transaction.hpp"

namespace iojoule::sim::compat {

// One queue a class, in the order of `Priority`.
using ClassQueues = std::array<TransactionList, 4>;

// URGENT goes before all others, which take turns by weight: of seven turns HIGH has four, MEDIUM two
// and LOW one, in rounds that are for classes of at least the round's weight. A class without requests
// loses its turn. The search ends where it has come to the fourth new round, short of a class that
// stands behind HIGH in it: LOW alone is served every second time, and is left behind where MQSim does
// not ask again.
class ClassTurns {
 public:
  TransactionList* next(ClassQueues& queues) {
    if (!queues[urgent].empty()) return &queues[urgent];
    for (std::size_t rounds = 0;;) {
      if (class_ == low) {
        class_ = high;
        least_weight_ = least_weight_ == 1 ? most_weight : least_weight_ - 1;
        if (++rounds == most_weight) return nullptr;
      } else {
        ++class_;
      }
      if (weights[class_] >= least_weight_ && !queues[class_].empty()) return &queues[class_];
    }
  }

 private:
  static constexpr std::size_t urgent = static_cast<std::size_t>(Priority::urgent);
  static constexpr std::size_t high = static_cast<std::size_t>(Priority::high);
  static constexpr std::size_t low = static_cast<std::size_t>(Priority::low);
  static constexpr std::size_t most_weight = 4;
  static constexpr std::array<std::size_t, 4> weights{0, most_weight, 2, 1};

  std::size_t class_ = high, least_weight_ = most_weight;  // HIGH has had its first turn
};

}  // namespace iojoule::sim::compat
