// Some consecutive points, and what is known of each: one array a quantity, so that loops over them
// run several at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lanes.hpp"
#include "screen.hpp"

namespace iojoule::recommender {

constexpr std::size_t kBlock = 256;  // points at a time: what is known of them stays in the cache
constexpr double kStateSharpness = 4.0;
constexpr double kNs = 1e-9;
constexpr double kLogNs = 20.72326583694641;  // log(10^9)
constexpr double kWakeCores = 0.1;

using Lane = std::array<double, kBlock>;

struct Points {
  std::size_t count = 0;
  std::array<std::uint32_t, kBlock> route, place, flight, size, depth, job, klass;
  Lane log_n, log_host, added;
};

// A direction at PS0 (`mean`, `half`) and then in one power state (`now`, `spread`): log values and
// squares of half widths.
struct Answer {
  Lane log_drive, drive, hosts, waited;
  std::array<Lane, kQuantities> base, base_half, now, spread;
};

struct Work {
  Points points;
  Answer read, write;
  std::array<Lane, kQuantities> value, half;
  Lane capacity, served, busy, requests, up, device, cpu, system;
  // of the power laws: what the drive draws while it serves and in gaps, its law without limit, the
  // bytes that cause background work, and the regressors of CPU power
  Lane active, gap, free, background, cores, woken, awake_x, core_x, job_x, wakeup_x;
  std::array<Lane, kScopes> high;
};

IOJOULE_INLINE bool has(std::size_t quantities, std::size_t one) {
  return (quantities >> one & 1) != 0;
}

template <class Values>
IOJOULE_INLINE void gather(const Points& points, const Values& at, Lane& out) {
  for (std::size_t i = 0; i < points.count; ++i) out[i] = at(i);
}

IOJOULE_INLINE void locate(const Task& task, std::size_t first, Points& points) {
  const Axes& axes = task.axes;
  const std::size_t sizes = axes.request_bytes.size(), jobs = axes.log_jobs.size();
  const std::size_t depths = axes.queue_depth.size();
  for (std::size_t i = 0; i < points.count; ++i) {
    const std::size_t combination = (first + i) / sizes;
    const auto route = static_cast<std::size_t>(axes.route.data()[combination]);
    const auto place = static_cast<std::size_t>(axes.place.data()[combination]);
    const std::size_t depth = place / jobs, job = place % jobs;
    points.route[i] = static_cast<std::uint32_t>(route);
    points.place[i] = static_cast<std::uint32_t>(place);
    points.size[i] = static_cast<std::uint32_t>((first + i) % sizes);
    points.depth[i] = static_cast<std::uint32_t>(depth);
    points.job[i] = static_cast<std::uint32_t>(job);
    points.flight[i] = static_cast<std::uint32_t>(axes.flight.data()[place]);
    points.klass[i] = static_cast<std::uint32_t>(axes.route_class.data()[route]);
    points.log_n[i] = axes.log_in_flight.data()[points.flight[i]];
    points.added[i] = task.host.added_ns.data()[route];
    const std::size_t at = route * depths + depth;
    points.log_host[i] =
        points.log_n[i] + task.host.log_core.data()[at] -
        std::min(axes.log_jobs.data()[job], task.host.log_cores.data()[at]);
  }
}

}  // namespace iojoule::recommender
