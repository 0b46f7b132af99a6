// How a caller watches and stops a run from another thread.
#pragma once

#include <atomic>
#include <functional>

namespace iojoule::sim {

struct Control {
  std::atomic<bool> cancelled{false};
  // called about ten times a second of wall time with the share of simulated time done, 0..1
  std::function<void(double)> progress;
};

}  // namespace iojoule::sim
