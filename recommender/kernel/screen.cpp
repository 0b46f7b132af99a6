#include "screen.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "lanes.hpp"

namespace iojoule::recommender {
namespace {

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
  Lane capacity, served, busy, requests, up, active, gap, later, device, cpu, system;
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

// Mean power at the demanded work (recommender.equal_work over the laws of model).
IOJOULE_INLINE void draw(const Task& task, std::size_t state, Work& work) {
  const Points& points = work.points;
  const Power& power = task.power;
  const double rest = task.asked.rest, writes = 1.0 - task.asked.read_fraction;
  Lane each, bytes;
  gather(points, [&](std::size_t i) { return task.axes.request_bytes.data()[points.size[i]]; },
         bytes);
  if (power.device) {
    const double base = power.base, beside = power.beside.data()[state];
    const double limit = power.limit.data()[state], idle = power.idle.data()[state];
    const double later = power.later_joules.data()[state];
    const double share = power.later_share.data()[state];
    gather(points, [&](std::size_t i) { return power.per_request.data()[points.size[i]]; }, each);
    for (std::size_t i = 0; i < points.count; ++i) {
      const double busy = work.busy[i], full = work.requests[i] / busy;
      const double active = lanes::least(base + beside + full * each[i], limit);
      const double awake = lanes::most(lanes::least(base, active), idle);
      const double gap = rest * idle + (1.0 - rest) * awake;
      const double written = work.requests[i] * writes * bytes[i];
      work.active[i] = active;
      work.gap[i] = gap;
      work.device[i] = busy * active + (1.0 - busy) * gap + later * (written * share);
    }
  }
  if (!power.host) return;
  const Host& host = task.host;
  Lane request_ns, wakeup_ns, polled, polling, always, factor, active, deep;
  const auto by_route = [&](const Table& table, Lane& out) {
    gather(points, [&](std::size_t i) { return table.data()[points.route[i]]; }, out);
  };
  by_route(host.wakeup_ns, wakeup_ns);
  by_route(host.polled, polled);
  by_route(host.polling, polling);
  by_route(host.always, always);
  by_route(host.factor, factor);
  gather(points,
         [&](std::size_t i) {
           return host.core_ns.data()[points.route[i]] + host.byte_ns.data()[points.size[i]];
         },
         request_ns);
  gather(points, [&](std::size_t i) { return host.active_cores.data()[points.job[i]]; }, active);
  gather(points, [&](std::size_t i) { return task.axes.queue_depth.data()[points.depth[i]]; },
         deep);
  const double idle = power.cpu[0], uncore = power.cpu[1], core = power.cpu[2];
  const double job = power.cpu[3], wakeup = power.cpu[4];
  for (std::size_t i = 0; i < points.count; ++i) {
    const double full = work.requests[i] / work.busy[i];
    const double rate = full * kNs / active[i];
    const double depth = lanes::least(deep[i] - 1.0, 1.0);
    const double part = lanes::least(
        rate * (request_ns[i] + wakeup_ns[i]) / (1.0 + rate * wakeup_ns[i] * depth), 1.0);
    const double spent = active[i] * part;
    const double serving = polled[i] > 0.0 ? active[i] : spent;
    const double cores = lanes::least(serving + polling[i] * active[i], host.cores);
    const double woken = polled[i] > 0.0 ? 0.0 : full * (1.0 - part * depth);
    const double busy = always[i] > 0.0 ? 1.0 : work.busy[i];
    const auto dynamic = [&](double run) {
      const double awake = 1.0 - lanes::exp(-run / kWakeCores);
      return factor[i] * (uncore * awake + core * run + job * active[i]);
    };
    const double burst = busy * (dynamic(cores) + wakeup * woken);
    double mean = burst;
    if (rest < 1.0) {
      // evenly spread: who polls spins while anything is in flight
      const double spinning = lanes::least(1.0, work.busy[i] * deep[i]);
      const double share = always[i] > 0.0 ? 1.0 : polled[i] > 0.0 ? spinning : work.busy[i];
      mean = rest * burst + (1.0 - rest) * (dynamic(share * cores) + wakeup * (share * woken));
    }
    work.cpu[i] = idle + mean;
  }
  if (!power.wall || !power.device) return;
  for (std::size_t i = 0; i < points.count; ++i) {
    const double memory = power.dram_idle + power.dram_per_byte * (work.requests[i] * bytes[i]);
    const double parts = work.device[i] + work.cpu[i] + memory;
    const double law = power.wall_floor + power.wall_slope * parts + power.wall_bend * parts * parts;
    work.system[i] = lanes::most(law, power.wall_least * parts);
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
    if (bound.kind == Kind::Latency) {
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
      draw(task, state, *work);
      give(task, state, (at - out.first) * states, *work, out);
    }
  }
}

}  // namespace iojoule::recommender
