#include "screen.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "latency.hpp"
#include "points.hpp"
#include "watts.hpp"

namespace iojoule::recommender {
namespace {

// Full speed and the demanded work (recommender.equal_work), with half widths in place of squares.
IOJOULE_INLINE void serve(const Task& task, Work& work) {
  const Points& points = work.points;
  const Asked& asked = task.asked;
  const double between = asked.between_half * asked.between_half;
  Lane fastest, useful;
  gather(points, [&](std::size_t i) { return task.axes.log_fastest.data()[points.size[i]]; },
         fastest);
  gather(points, [&](std::size_t i) { return task.axes.useful_bytes.data()[points.size[i]]; },
         useful);
  for (std::size_t q = 0; q < kQuantities; ++q) {
    if (!has(asked.wanted, q)) continue;
    for (std::size_t i = 0; i < points.count; ++i) {
      work.half[q][i] = std::sqrt(work.half[q][i] + between);
    }
  }
  for (std::size_t i = 0; i < points.count; ++i) {
    const double floor = fastest[i] + points.log_n[i];
    const double latency = lanes::most(work.value[kMean][i], floor);
    const double iops = lanes::exp(points.log_n[i] + kLogNs - latency);
    const double capacity = iops * useful[i];
    const double served = asked.demand > 0.0 ? lanes::least(capacity, asked.demand) : capacity;
    work.value[kMean][i] = latency;
    work.up[i] = lanes::least(work.half[kMean][i], latency - floor);
    work.capacity[i] = capacity;
    work.served[i] = served;
    work.busy[i] = served / capacity;
    work.requests[i] = served / useful[i];
  }
}

// The interval bound that is held against each limit (recommender.screen).
IOJOULE_INLINE void reach(const Task& task, const Bound& bound, const Work& work, Lane& reached) {
  const Points& points = work.points;
  const double scale = bound.scale;
  if (bound.kind == Kind::Latency) {
    const Lane& value = work.value[bound.quantity];
    const Lane& half = work.half[bound.quantity];
    for (std::size_t i = 0; i < points.count; ++i) {
      reached[i] = lanes::exp(value[i] + scale * half[i]);
    }
  } else if (bound.kind == Kind::Power) {
    reached = work.high[bound.quantity];
  } else if (bound.kind == Kind::Endurance) {
    const double writes = 1.0 - task.asked.read_fraction;
    for (std::size_t i = 0; i < points.count; ++i) {
      const double bytes = task.axes.request_bytes.data()[points.size[i]];
      const bool full = !(work.served[i] < work.capacity[i]) || task.asked.demand == 0.0;
      const double more = full ? lanes::exp(scale * work.up[i]) : 1.0;
      reached[i] = task.asked.years_bytes / (work.requests[i] * writes * bytes * more);
    }
  } else {
    const double over = bound.kind == Kind::Operations ? 1.0 / task.asked.useful_bytes : 1.0;
    for (std::size_t i = 0; i < points.count; ++i) {
      reached[i] = work.capacity[i] * lanes::exp(-scale * work.half[kMean][i]) * over;
    }
  }
}

IOJOULE_INLINE void give(const Task& task, std::size_t state, std::size_t row, const Work& work,
                         const Out& out) {
  const std::size_t states = task.axes.states, count = work.points.count;
  std::array<std::uint8_t, kBlock> good;
  good.fill(1);
  Lane reached, missed;
  for (std::size_t b = 0; b < task.asked.bounds.size(); ++b) {
    const Bound& bound = task.asked.bounds[b];
    const double limit = bound.limit;
    reach(task, bound, work, reached);
    if (bound.kind == Kind::Latency || bound.kind == Kind::Power) {
      for (std::size_t i = 0; i < count; ++i) missed[i] = reached[i] / limit - 1.0;
    } else {
      for (std::size_t i = 0; i < count; ++i) missed[i] = limit / reached[i] - 1.0;
    }
    double* const to_reached = out.reached + b * out.rows + row + state;
    double* const to_missed = out.violations + b * out.rows + row + state;
    for (std::size_t i = 0; i < count; ++i) {
      // NaN, which nobody can hold against a bound, stays NaN
      missed[i] = missed[i] < 0.0 ? 0.0 : missed[i];
      to_reached[i * states] = reached[i];
      to_missed[i * states] = missed[i];
    }
    if (bound.soft) continue;
    for (std::size_t i = 0; i < count; ++i) good[i] = missed[i] == 0.0 ? good[i] : 0;
  }
  Lane mean, tail;
  for (std::size_t i = 0; i < count; ++i) mean[i] = lanes::exp(work.value[kMean][i]);
  if (task.asked.tail == kMean) {
    tail = mean;
  } else {
    const Lane& value = work.value[task.asked.tail];
    for (std::size_t i = 0; i < count; ++i) tail[i] = lanes::exp(value[i]);
  }
  const std::array<const Lane*, kColumns> lanes_of = {
      &work.capacity, &work.served, &mean, &tail, &work.device, &work.cpu, &work.system};
  const std::array<bool, kColumns> known = {
      true, true, true, true, task.power.device, task.power.host,
      task.power.wall && task.power.host && task.power.device};
  for (std::size_t column = 0; column < kColumns; ++column) {
    if (!known[column]) continue;
    double* const to = out.columns + column * out.rows + row + state;
    const Lane& from = *lanes_of[column];
    for (std::size_t i = 0; i < count; ++i) to[i * states] = from[i];
  }
  for (std::size_t i = 0; i < count; ++i) out.feasible[row + i * states + state] = good[i];
}

}  // namespace

IOJOULE_CLONES void screen(const Task& task, std::size_t first, std::size_t last, Out out) {
  const std::size_t states = task.axes.states;
  const double reads = task.asked.read_fraction;
  const auto work = std::make_unique<Work>();
  for (std::size_t at = first; at < last; at += kBlock) {
    work->points.count = std::min(kBlock, last - at);
    locate(task, at, work->points);
    if (reads > 0.0) surface(task, task.read, work->points, work->read);
    if (reads < 1.0) surface(task, task.write, work->points, work->write);
    for (std::size_t state = 0; state < states; ++state) {
      if (reads > 0.0) in_state(task, task.read, work->points, state, work->read);
      if (reads < 1.0) in_state(task, task.write, work->points, state, work->write);
      mix(task, *work);
      serve(task, *work);
      power(task, state, *work);
      give(task, state, (at - out.first) * states, *work, out);
    }
  }
}

}  // namespace iojoule::recommender
