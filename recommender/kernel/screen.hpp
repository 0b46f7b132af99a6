// Evaluates every candidate of a product of axes, from tables that the model fills by axis.
//
// What depends on few axes is in the tables, worked out by the model's own code; what is left here
// is to put them together for each row: the host's bend, the power state, the mix, the bands, the
// watts of the demanded work and the bounds. iojoule.recommender.screen does the same row by row,
// and the tests hold the two against each other.
//
// Axes: routes R, sizes S, power states P, queue depths D, jobs J; places G = D x J; flights N, the
// distinct numbers of requests in flight; classes K of routes that share hull and residual. A point
// is a combination of route and place with a size; a row is a point in a power state, which varies
// fastest. Logs are natural, latencies in ns.
#pragma once

#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace iojoule::recommender {

namespace nb = nanobind;

using Table = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Grid = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

enum Quantity : std::size_t { kMean, kP50, kP99, kP999, kQuantities };

struct Axes {
  Places route, place;  // of each combination
  Places flight;        // G
  Places route_class;   // R
  Table log_in_flight;  // N
  Table log_jobs;       // J
  Table queue_depth;    // D
  Table request_bytes, log_bytes, useful_bytes, log_split, log_fastest;  // S
  std::size_t states = 1;
};

struct Host {
  Table log_core, log_cores;               // R x D
  Table added_ns, core_ns, wakeup_ns;      // R
  Table polled, polling, always, factor;   // R
  Table byte_ns;                           // S
  Table active_cores;                      // J
  double cores = 1.0, sharpness = 1.0;
};

// One percentile: log(percentile / mean) is log1p of the damped excess, or a constant.
struct Tail {
  bool collides = false;
  double constant = 0.0, damping = 0.0;
  Table excess;         // R x N x S
  Table learned, half;  // K x G x S; 90 % half width before that of the path
};

struct Direction {
  Table device;         // R x N x S
  Table log_unloaded;   // R x S
  Table learned, half;  // K x G x S
  Table path_half;      // R
  std::array<Tail, kQuantities> tails;
  // by power state; half widths of 90 %
  Table log_request_ns;                                               // P x S
  Table deep, deep_half, ceiling_half, factor, factor_half, tail, tail_half;  // P
  bool collects = false;
  Table slowed, unsure, log_rate, rate_half, heavier, heavier_half;  // P
};

struct Power {
  double base = 0.0;
  Table per_request;                                      // S
  Table beside, limit, idle, later_joules, later_share;  // P
  std::array<double, 5> cpu{};
  double dram_idle = 0.0, dram_per_byte = 0.0;
  double wall_floor = 0.0, wall_slope = 0.0, wall_bend = 0.0, wall_least = 0.0;
  bool device = false, host = false, wall = false;
};

// How sure watts are: variances by the parameters of the laws (recommender.sensitivity).
struct Doubt {
  double base = 0.0, base_beside = 0.0, beside = 0.0;  // covariance of the device law's constants
  Table rate, rate_base, rate_beside;                  // S: with a request a second, W^2
  Table idle, later_sd, capped;                        // P
  double specimen = 0.0, device_lack = 0.0;
  std::array<double, 25> cpu{};
  Table path;  // R
  double cpu_lack = 0.0;
  std::array<double, 9> wall{};
  double wall_lack = 0.0;
  double most = 1.0;          // relative sd beyond which nothing is doubted
  double normal = 1.0;        // half widths of 90 % in an sd
  std::vector<double> rests;  // shares of restful gaps that are possible
};

enum class Kind : std::uint8_t { Capacity, Operations, Latency, Endurance, Power };
enum Scope : std::size_t { kOfDevice, kOfCpu, kOfBoth, kOfSystem, kScopes };

struct Bound {
  Kind kind = Kind::Capacity;
  std::size_t quantity = 0;
  double limit = 0.0, scale = 0.0;
  bool soft = false;  // only preferred
};

struct Asked {
  double read_fraction = 1.0;
  double between_half = 0.0;
  double slower = 0.0, slower_half = 0.0, heavier = 0.0, heavier_half = 0.0;  // of mixing
  double demand = 0.0, rest = 1.0;  // bytes a second, 0 for none
  double useful_bytes = 1.0;
  std::size_t tail = 0;
  std::size_t built = 1, wanted = 1;  // quantities, a bit each: to work out, and to answer
  double years_bytes = 0.0;  // rated bytes left, over the seconds of a year
  std::vector<Bound> bounds;
};

// Columns of what comes out, shape (columns, rows).
enum Column : std::size_t { kCapacity, kServed, kLatency, kTail, kDevice, kCpu, kSystem, kColumns };

struct Task {
  Axes axes;
  Host host;
  Direction read, write;
  Power power;
  Doubt doubt;
  Asked asked;
};

// Where the answers go: rows of the points from `first` on.
struct Out {
  std::size_t first = 0, rows = 0;
  double* columns = nullptr;                        // kColumns x rows
  std::uint8_t* feasible = nullptr;                 // rows: whether every bound holds, soft apart
  double *reached = nullptr, *violations = nullptr;  // bounds x rows, as in screen.Judged
};

// Evaluate points `first` to `last`.
void screen(const Task& task, std::size_t first, std::size_t last, Out out);

}  // namespace iojoule::recommender
