// Watts of the demanded work, and how sure they are (recommender.equal_work and .sensitivity).
#pragma once

#include <cmath>

#include "points.hpp"

namespace iojoule::recommender {

// Mean power of the drive at the demanded work (recommender.equal_work).
IOJOULE_INLINE void draw_drive(const Task& task, std::size_t state, double rest, Work& work) {
  const Points& points = work.points;
  const Power& power = task.power;
  const double writes = 1.0 - task.asked.read_fraction;
  Lane each, bytes;
  gather(points, [&](std::size_t i) { return task.axes.request_bytes.data()[points.size[i]]; },
         bytes);
  gather(points, [&](std::size_t i) { return power.per_request.data()[points.size[i]]; }, each);
  const double base = power.base, beside = power.beside.data()[state];
  const double limit = power.limit.data()[state], idle = power.idle.data()[state];
  const double later = power.later_joules.data()[state];
  const double share = power.later_share.data()[state];
  for (std::size_t i = 0; i < points.count; ++i) {
    const double busy = work.busy[i];
    const double free = base + beside + work.requests[i] / busy * each[i];
    const double active = lanes::least(free, limit);
    const double awake = lanes::most(lanes::least(base, active), idle);
    const double gap = rest * idle + (1.0 - rest) * awake;
    const double background = work.requests[i] * writes * bytes[i] * share;
    work.free[i] = free;
    work.active[i] = active;
    work.gap[i] = gap;
    work.background[i] = background;
    work.device[i] = busy * active + (1.0 - busy) * gap + later * background;
  }
}

// Mean power of the CPU likewise: the law is linear, so its regressors are averaged.
IOJOULE_INLINE void draw_cpu(const Task& task, double rest, Work& work) {
  const Points& points = work.points;
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
  const std::array<double, 5>& law = task.power.cpu;
  for (std::size_t i = 0; i < points.count; ++i) {
    const double full = work.requests[i] / work.busy[i];
    const double rate = full * kNs / active[i];
    const double depth = lanes::least(deep[i] - 1.0, 1.0);
    const double part = lanes::least(
        rate * (request_ns[i] + wakeup_ns[i]) / (1.0 + rate * wakeup_ns[i] * depth), 1.0);
    const double serving = polled[i] > 0.0 ? active[i] : active[i] * part;
    const double cores = lanes::least(serving + polling[i] * active[i], host.cores);
    const double woken = polled[i] > 0.0 ? 0.0 : full * (1.0 - part * depth);
    const double busy = rest * (always[i] > 0.0 ? 1.0 : work.busy[i]);
    work.cores[i] = cores;
    work.woken[i] = woken;
    work.awake_x[i] = busy * factor[i] * (1.0 - lanes::exp(-cores / kWakeCores));
    work.core_x[i] = busy * factor[i] * cores;
    work.job_x[i] = busy * factor[i] * active[i];
    work.wakeup_x[i] = busy * woken;
  }
  if (rest < 1.0) {
    for (std::size_t i = 0; i < points.count; ++i) {
      // evenly spread: the average load; who polls spins while anything is in flight
      const double spinning = lanes::least(1.0, work.busy[i] * deep[i]);
      const double share = always[i] > 0.0 ? 1.0 : polled[i] > 0.0 ? spinning : work.busy[i];
      const double run = share * work.cores[i], spread = (1.0 - rest) * factor[i];
      work.awake_x[i] += spread * (1.0 - lanes::exp(-run / kWakeCores));
      work.core_x[i] += spread * run;
      work.job_x[i] += spread * active[i];
      work.wakeup_x[i] += (1.0 - rest) * share * work.woken[i];
    }
  }
  for (std::size_t i = 0; i < points.count; ++i) {
    work.cpu[i] = law[0] + law[1] * work.awake_x[i] + law[2] * work.core_x[i] +
                  law[3] * work.job_x[i] + law[4] * work.wakeup_x[i];
  }
}

IOJOULE_INLINE void draw(const Task& task, std::size_t state, double rest, Work& work) {
  const Points& points = work.points;
  const Power& power = task.power;
  if (power.device) draw_drive(task, state, rest, work);
  if (power.host) draw_cpu(task, rest, work);
  if (!power.wall || !power.device || !power.host) return;
  for (std::size_t i = 0; i < points.count; ++i) {
    const double bytes = task.axes.request_bytes.data()[points.size[i]];
    const double memory = power.dram_idle + power.dram_per_byte * (work.requests[i] * bytes);
    const double parts = work.device[i] + work.cpu[i] + memory;
    const double law = power.wall_floor + power.wall_slope * parts + power.wall_bend * parts * parts;
    work.system[i] = lanes::most(law, power.wall_least * parts);
  }
}

// Upper bounds of the powers by the sds of their parameters, over the rests so far.
IOJOULE_INLINE void doubt(const Task& task, std::size_t state, double rest, double scale,
                          Scope scope, bool first, Work& work) {
  const Points& points = work.points;
  const Power& power = task.power;
  const Doubt& known = task.doubt;
  const bool of_device = scope != kOfCpu, of_cpu = scope != kOfDevice;
  Lane variance, by_speed, lack, watts;
  for (std::size_t i = 0; i < points.count; ++i) {
    variance[i] = by_speed[i] = lack[i] = watts[i] = 0.0;
  }
  const auto served_by_drive = [&](std::size_t i) {
    return task.asked.demand > 0.0 && work.served[i] < work.capacity[i] ? 0.0 : 1.0;
  };
  if (of_device) {
    const double beside = power.beside.data()[state], x5 = 1.0 - power.later_share.data()[state];
    const double idle = known.idle.data()[state], later_sd = known.later_sd.data()[state];
    const double later = power.later_joules.data()[state], cap = known.capped.data()[state];
    const double relative = cap * cap + known.specimen * known.specimen;
    Lane rate, rate_base, rate_beside;
    gather(points, [&](std::size_t i) { return known.rate.data()[points.size[i]]; }, rate);
    gather(points, [&](std::size_t i) { return known.rate_base.data()[points.size[i]]; },
           rate_base);
    gather(points, [&](std::size_t i) { return known.rate_beside.data()[points.size[i]]; },
           rate_beside);
    for (std::size_t i = 0; i < points.count; ++i) {
      const double u = work.busy[i], s = served_by_drive(i), active = work.active[i];
      const double a = u + (1.0 - u) * (1.0 - rest), b = work.requests[i], c = u * x5;
      const double law = a * a * known.base + b * b * rate[i] + c * c * known.beside +
                         2.0 * (a * b * rate_base[i] + a * c * known.base_beside +
                                b * c * rate_beside[i]);
      const double resting = (1.0 - u) * rest, background = work.background[i] * later_sd;
      const double serving = u * active;
      const bool capped = work.free[i] > active * (1.0 + 1e-9);
      const double fixed = capped ? active : power.base + beside;
      variance[i] += law + resting * resting * idle + serving * serving * relative +
                     background * background;
      by_speed[i] += u * (s - 1.0) * (fixed - work.gap[i]) + s * u * (active - fixed) +
                     s * later * work.background[i];
      lack[i] += known.device_lack * serving * (known.device_lack * serving);
      watts[i] += work.device[i];
    }
  }
  if (of_cpu) {
    const std::array<double, 5>& law = power.cpu;
    Lane path, factor, always, spins, active;
    const auto by_route = [&](const Table& table, Lane& out) {
      gather(points, [&](std::size_t i) { return table.data()[points.route[i]]; }, out);
    };
    by_route(known.path, path);
    by_route(task.host.factor, factor);
    by_route(task.host.always, always);
    gather(points,
           [&](std::size_t i) {
             return task.host.polled.data()[points.route[i]] +
                    task.host.polling.data()[points.route[i]];
           },
           spins);
    gather(points, [&](std::size_t i) { return task.host.active_cores.data()[points.job[i]]; },
           active);
    for (std::size_t i = 0; i < points.count; ++i) {
      const double x[5] = {1.0, work.awake_x[i], work.core_x[i], work.job_x[i], work.wakeup_x[i]};
      double sum = 0.0;
      for (std::size_t row = 0; row < 5; ++row) {
        for (std::size_t column = 0; column < 5; ++column) {
          sum += x[row] * known.cpu[row * 5 + column] * x[column];
        }
      }
      const double dynamic = law[1] * x[1] + law[2] * x[2] + law[3] * x[3];
      const double u = work.busy[i], s = served_by_drive(i);
      const double shrink = always[i] > 0.0 ? 0.0 : u * (s - 1.0);
      const double growing = spins[i] > 0.0 ? 0.0 : u;
      const double ratio = work.cores[i] / kWakeCores, falls = lanes::exp(-ratio);
      const double core = law[2] * factor[i] * work.cores[i] + law[4] * work.woken[i];
      const double full = law[1] * factor[i] * (1.0 - falls) + core + law[3] * factor[i] * active[i];
      const double more = law[1] * factor[i] * ratio * falls + core;
      const double unsure = known.cpu_lack * work.cpu[i];
      variance[i] += sum + dynamic * dynamic * path[i];
      by_speed[i] += rest * (shrink * full + growing * more);
      lack[i] += unsure * unsure;
      watts[i] += work.cpu[i];
    }
  }
  Lane& high = work.high[scope];
  for (std::size_t i = 0; i < points.count; ++i) {
    const double own = work.half[kMean][i] / known.normal;
    const double speed = lanes::most(own * own, known.specimen * known.specimen);
    double total = variance[i] + by_speed[i] * by_speed[i] * speed + lack[i], value = watts[i];
    if (scope == kOfSystem) {
      const double parts = watts[i], slope = power.wall_slope + 2.0 * power.wall_bend * parts;
      const double x[3] = {1.0, parts, parts * parts};
      double sum = 0.0;
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 3; ++column) {
          sum += x[row] * known.wall[row * 3 + column] * x[column];
        }
      }
      value = work.system[i];
      const double unsure = known.wall_lack * value;
      total = slope * slope * total + sum + unsure * unsure;
    }
    const double sd = lanes::least(std::sqrt(lanes::most(total, 0.0)), known.most * value);
    const double reached = value + scale * known.normal * sd;
    high[i] = first ? reached : lanes::most(high[i], reached);
  }
}

// Every power bound, over all shares of restful gaps that are possible; then the watts as asked.
IOJOULE_INLINE void power(const Task& task, std::size_t state, Work& work) {
  bool first = true;
  for (const double rest : task.doubt.rests) {
    draw(task, state, rest, work);
    for (const Bound& bound : task.asked.bounds) {
      if (bound.kind != Kind::Power) continue;
      doubt(task, state, rest, bound.scale, static_cast<Scope>(bound.quantity), first, work);
    }
    first = false;
  }
  draw(task, state, task.asked.rest, work);
}

}  // namespace iojoule::recommender
