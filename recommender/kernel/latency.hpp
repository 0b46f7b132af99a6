// Latencies: the surfaces, power states, and reads and writes that take turns (iojoule.model).
#pragma once

#include <algorithm>
#include <cmath>

#include "points.hpp"

namespace iojoule::recommender {

// The surface at PS0: the host's bend over the drive's curve, the learned residual and the tails.
IOJOULE_INLINE void surface(const Task& task, const Direction& direction, const Points& points,
                            Answer& answer) {
  const std::size_t count = points.count, sizes = task.axes.request_bytes.size();
  const std::size_t flights = task.axes.log_in_flight.size(), places = task.axes.flight.size();
  const double k = task.host.sharpness;
  Lane device, learned, half, path, unloaded, excess;
  std::array<std::uint32_t, kBlock> at_flight, at_place;
  for (std::size_t i = 0; i < count; ++i) {
    at_flight[i] = static_cast<std::uint32_t>(
        (points.route[i] * flights + points.flight[i]) * sizes + points.size[i]);
    at_place[i] = static_cast<std::uint32_t>(
        (points.klass[i] * places + points.place[i]) * sizes + points.size[i]);
  }
  const double* const path_half = direction.path_half.data();
  gather(points, [&](std::size_t i) { return direction.device.data()[at_flight[i]]; }, device);
  gather(points, [&](std::size_t i) { return direction.learned.data()[at_place[i]]; }, learned);
  gather(points, [&](std::size_t i) { return direction.half.data()[at_place[i]]; }, half);
  gather(points, [&](std::size_t i) { return path_half[points.route[i]]; }, path);
  gather(points,
         [&](std::size_t i) {
           return direction.log_unloaded.data()[points.route[i] * sizes + points.size[i]];
         },
         unloaded);
  for (std::size_t i = 0; i < count; ++i) {
    const lanes::Smooth bent = lanes::smooth_max(0.0, points.log_host[i] - device[i], k);
    const double mean = device[i] + bent.value + learned[i];
    const double drive = lanes::exp(mean - bent.value);
    answer.base[kMean][i] = mean;
    answer.base_half[kMean][i] = half[i] * half[i] + path[i] * path[i];
    answer.log_drive[i] = -bent.value;
    answer.drive[i] = drive;
    answer.hosts[i] = lanes::least(points.added[i], 0.9 * drive);
    answer.waited[i] = 1.0 - lanes::exp(-k * bent.value);
  }
  for (std::size_t q = kP50; q < kQuantities; ++q) {
    if (!has(task.asked.built, q)) continue;
    const Tail& tail = direction.tails[q];
    gather(points, [&](std::size_t i) { return tail.learned.data()[at_place[i]]; }, learned);
    gather(points, [&](std::size_t i) { return tail.half.data()[at_place[i]]; }, half);
    Lane& value = answer.base[q];
    if (tail.collides) {
      gather(points, [&](std::size_t i) { return tail.excess.data()[at_flight[i]]; }, excess);
      for (std::size_t i = 0; i < count; ++i) {
        const double host = lanes::most(points.log_host[i] - device[i], 0.0);
        const double above = unloaded[i] - answer.base[kMean][i] - tail.damping * host;
        value[i] = answer.base[kMean][i] + lanes::log(1.0 + lanes::exp(above) * excess[i]) +
                   learned[i];
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        value[i] = answer.base[kMean][i] + tail.constant + learned[i];
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      // a percentile is no less than the one below it; one that nobody knows is NaN
      const double below = q > kP50 ? answer.base[q - 1][i] : value[i];
      value[i] = value[i] >= below || below != below ? value[i] : below;
      answer.base_half[q][i] = half[i] * half[i] + path[i] * path[i];
    }
  }
}

// What a power state makes of it (model.performance), then collecting garbage.
IOJOULE_INLINE void in_state(const Task& task, const Direction& direction, const Points& points,
                             std::size_t state, Answer& answer) {
  const std::size_t count = points.count, sizes = task.axes.request_bytes.size();
  for (std::size_t q = 0; q < kQuantities; ++q) {
    if (!has(task.asked.wanted, q)) continue;
    std::copy_n(answer.base[q].begin(), count, answer.now[q].begin());
    std::copy_n(answer.base_half[q].begin(), count, answer.spread[q].begin());
  }
  Lane shift, variance, tail_shift, tail_variance, table, split;
  const auto apply = [&]() {
    for (std::size_t q = 0; q < kQuantities; ++q) {
      if (!has(task.asked.wanted, q)) continue;
      const bool heavy = q == kP99 || q == kP999;
      const Lane& by = heavy ? tail_shift : shift;
      const Lane& more = heavy ? tail_variance : variance;
      for (std::size_t i = 0; i < count; ++i) {
        answer.now[q][i] += by[i];
        answer.spread[q][i] += more[i];
      }
    }
  };
  if (state > 0 && direction.log_request_ns.size() > 0) {
    const double k = task.host.sharpness, longer = std::exp(direction.factor.data()[state]);
    const double deep = direction.deep.data()[state], deep_half = direction.deep_half.data()[state];
    const double ceiling = direction.ceiling_half.data()[state];
    const double factor = direction.factor_half.data()[state];
    const double tail = direction.tail.data()[state], tail_half = direction.tail_half.data()[state];
    const double* const request_ns = direction.log_request_ns.data() + state * sizes;
    gather(points, [&](std::size_t i) { return request_ns[points.size[i]]; }, table);
    gather(points, [&](std::size_t i) { return task.axes.log_split.data()[points.size[i]]; },
           split);
    for (std::size_t i = 0; i < count; ++i) {
      const double before = answer.base[kMean][i];
      const double drive = answer.drive[i], hosts = answer.hosts[i];
      const double stretched = lanes::log((hosts + (drive - hosts) * longer) / drive);
      const double grown =
          lanes::log(lanes::exp(k * (answer.log_drive[i] + stretched)) + answer.waited[i]) / k;
      const double deeper = points.log_n[i] + split[i];
      const double queueing = points.log_n[i] + table[i] + deep * deeper;
      const lanes::Smooth throttled =
          lanes::smooth_max(before + grown, queueing, kStateSharpness);
      const double weight = throttled.share;
      const double unsure = ceiling * ceiling + deep_half * deep_half * (deeper * deeper);
      shift[i] = throttled.value - before;
      variance[i] = weight * weight * unsure + factor * factor;
      tail_shift[i] = shift[i] + weight * tail;
      tail_variance[i] = variance[i] + weight * weight * (tail_half * tail_half);
    }
    apply();
  }
  if (!direction.collects) return;
  const double slowed = direction.slowed.data()[state], unsure = direction.unsure.data()[state];
  const double log_rate = direction.log_rate.data()[state];
  const double rate_half = direction.rate_half.data()[state];
  const double heavier = direction.heavier.data()[state];
  const double heavier_half = direction.heavier_half.data()[state];
  gather(points, [&](std::size_t i) { return task.axes.log_bytes.data()[points.size[i]]; },
         table);
  for (std::size_t i = 0; i < count; ++i) {
    const double before = answer.now[kMean][i];
    const double slower =
        lanes::smooth_max(before, points.log_n[i] + table[i] - log_rate, kStateSharpness).value;
    const double by = slower - before;
    shift[i] = slowed * by;
    variance[i] = slowed * slowed * (rate_half * rate_half) + unsure * unsure * (by * by);
    tail_shift[i] = shift[i] + heavier;
    tail_variance[i] = variance[i] + heavier_half * heavier_half;
  }
  apply();
}

// Reads and writes that take turns (model.mixing), or the one direction that there is.
IOJOULE_INLINE void mix(const Task& task, Work& work) {
  const std::size_t count = work.points.count;
  const Asked& asked = task.asked;
  const double reads = asked.read_fraction, writes = 1.0 - reads;
  if (reads == 0.0 || reads == 1.0) {
    const Answer& alone = reads == 1.0 ? work.read : work.write;
    for (std::size_t q = 0; q < kQuantities; ++q) {
      if (!has(asked.wanted, q)) continue;
      std::copy_n(alone.now[q].begin(), count, work.value[q].begin());
      std::copy_n(alone.spread[q].begin(), count, work.half[q].begin());
    }
    return;
  }
  const double slower = std::exp(asked.slower);
  for (std::size_t i = 0; i < count; ++i) {
    const double write = writes * lanes::exp(work.write.now[kMean][i]);
    const double read = reads * lanes::exp(work.read.now[kMean][i]);
    work.value[kMean][i] = lanes::log(lanes::most((read + write) * slower, write));
  }
  const Answer& most = reads >= 0.5 ? work.read : work.write;
  for (std::size_t q = 0; q < kQuantities; ++q) {
    if (!has(asked.wanted, q)) continue;
    const bool heavy = q == kP99 || q == kP999;
    const double own = asked.slower_half * asked.slower_half +
                       (heavy ? asked.heavier_half * asked.heavier_half : 0.0);
    const double tail = q == kP50 ? 0.0 : asked.heavier;
    for (std::size_t i = 0; i < count; ++i) {
      if (q != kMean) {
        const double pure = most.now[q][i] - most.now[kMean][i];
        work.value[q][i] = work.value[kMean][i] + pure + tail;
      }
      work.half[q][i] =
          reads * work.read.spread[q][i] + writes * work.write.spread[q][i] + own;
    }
  }
}

}  // namespace iojoule::recommender
