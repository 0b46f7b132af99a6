// iojoule.recommender._kernel: what the recommender does to every candidate, compiled.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "pareto.hpp"
#include "screen.hpp"

namespace iojoule::recommender {
namespace {

using namespace nb::literals;

template <class Value>
using Array = nb::ndarray<nb::numpy, Value, nb::ndim<1>>;

template <class Value>
Array<Value> array(std::vector<Value> values) {
  auto* owned = new std::vector<Value>(std::move(values));
  const nb::capsule owner(owned, [](void* held) noexcept {
    delete static_cast<std::vector<Value>*>(held);
  });
  return Array<Value>(owned->data(), {owned->size()}, owner);
}

using Points = nb::ndarray<nb::numpy, const double, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

Array<std::uint8_t> mark_non_dominated(const Points& costs, bool copies) {
  static_assert(sizeof(Point) == 3 * sizeof(double));
  const std::span points(reinterpret_cast<const Point*>(costs.data()), costs.shape(0));
  std::vector<std::uint8_t> kept;
  {
    const nb::gil_scoped_release no_gil;
    kept = non_dominated(points, copies);
  }
  return array(std::move(kept));
}

// --- screening -----------------------------------------------------------------------------------

void expect(std::size_t found, std::size_t wanted, const char* what) {
  if (found != wanted) {
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(found) +
                                " values where the axes make " + std::to_string(wanted));
  }
}

void expect_below(const Places& places, std::size_t limit, const char* what) {
  const std::span values(places.data(), places.size());
  const auto inside = [limit](std::int64_t at) {
    return at >= 0 && static_cast<std::size_t>(at) < limit;
  };
  if (!std::all_of(values.begin(), values.end(), inside)) {
    throw std::invalid_argument(std::string(what) + ": a place beyond its axis");
  }
}

void check(const Direction& told, const Task& task, std::size_t classes) {
  const Axes& axes = task.axes;
  const std::size_t sizes = axes.request_bytes.size(), routes = axes.route_class.size();
  const std::size_t flown = routes * axes.log_in_flight.size() * sizes;
  const std::size_t placed = classes * axes.flight.size() * sizes;
  expect(told.device.size(), flown, "device");
  expect(told.log_unloaded.size(), routes * sizes, "log_unloaded");
  expect(told.learned.size(), placed, "learned");
  expect(told.half.size(), placed, "half");
  expect(told.path_half.size(), routes, "path_half");
  for (std::size_t q = kP50; q < kQuantities; ++q) {
    if ((task.asked.built >> q & 1) == 0) continue;
    const Tail& tail = told.tails[q];
    if (tail.collides) expect(tail.excess.size(), flown, "excess");
    expect(tail.learned.size(), placed, "learned of a tail");
    expect(tail.half.size(), placed, "half of a tail");
  }
  if (told.log_request_ns.size() > 0) {
    expect(told.log_request_ns.size(), axes.states * sizes, "log_request_ns");
    for (const Table* each : {&told.deep, &told.deep_half, &told.ceiling_half, &told.factor,
                              &told.factor_half, &told.tail, &told.tail_half}) {
      expect(each->size(), axes.states, "effect of power states");
    }
  }
  if (!told.collects) return;
  for (const Table* each : {&told.slowed, &told.unsure, &told.log_rate, &told.rate_half,
                            &told.heavier, &told.heavier_half}) {
    expect(each->size(), axes.states, "collecting");
  }
}

void check(const Task& task, std::size_t classes) {
  const Axes& axes = task.axes;
  const std::size_t sizes = axes.request_bytes.size(), routes = axes.route_class.size();
  const std::size_t depths = axes.queue_depth.size(), jobs = axes.log_jobs.size();
  expect(axes.place.size(), axes.route.size(), "place");
  expect_below(axes.route, routes, "route");
  expect_below(axes.place, depths * jobs, "place");
  expect(axes.flight.size(), depths * jobs, "flight");
  expect_below(axes.flight, axes.log_in_flight.size(), "flight");
  expect_below(axes.route_class, classes, "route_class");
  for (const Table* each : {&axes.log_bytes, &axes.useful_bytes, &axes.log_split,
                            &axes.log_fastest, &task.host.byte_ns}) {
    expect(each->size(), sizes, "table by size");
  }
  expect(task.host.log_core.size(), routes * depths, "log_core");
  expect(task.host.log_cores.size(), routes * depths, "log_cores");
  for (const Table* each : {&task.host.added_ns, &task.host.core_ns, &task.host.wakeup_ns,
                            &task.host.polled, &task.host.polling, &task.host.always,
                            &task.host.factor}) {
    expect(each->size(), routes, "table by route");
  }
  expect(task.host.active_cores.size(), jobs, "active_cores");
  if (task.asked.read_fraction > 0.0) check(task.read, task, classes);
  if (task.asked.read_fraction < 1.0) check(task.write, task, classes);
  for (const Bound& bound : task.asked.bounds) {
    expect(bound.quantity < kQuantities, 1, "quantity of a bound");
    if (bound.kind != Kind::Power) continue;
    const std::size_t scope = bound.quantity;
    const bool drawn = (scope == kOfCpu || task.power.device) &&
                       (scope == kOfDevice || task.power.host) &&
                       (scope != kOfSystem || task.power.wall) && !task.doubt.rests.empty();
    expect(drawn, 1, "power that a bound is held against");
    if (scope != kOfDevice) expect(task.doubt.path.size(), routes, "doubt by route");
    if (scope == kOfCpu) continue;
    for (const Table* each : {&task.doubt.rate, &task.doubt.rate_base, &task.doubt.rate_beside}) {
      expect(each->size(), sizes, "doubt by size");
    }
    for (const Table* each : {&task.doubt.idle, &task.doubt.later_sd, &task.doubt.capped}) {
      expect(each->size(), axes.states, "doubt by power state");
    }
  }
  if (!task.power.device) return;
  expect(task.power.per_request.size(), sizes, "per_request");
  for (const Table* each : {&task.power.beside, &task.power.limit, &task.power.idle,
                            &task.power.later_joules, &task.power.later_share}) {
    expect(each->size(), axes.states, "watts by power state");
  }
}

// Rows are independent of each other, so the number of threads changes nothing but the time.
void run(const Task& task, std::size_t classes, std::size_t first, std::size_t last,
         const Grid& columns, const Flags& feasible, const Grid& reached, const Grid& violations,
         std::size_t threads) {
  check(task, classes);
  const std::size_t sizes = task.axes.request_bytes.size(), states = task.axes.states;
  const std::size_t rows = (last - first) * sizes * states;
  if (first > last || last > task.axes.route.size()) {
    throw std::invalid_argument("combinations beyond their number");
  }
  expect(columns.shape(0), kColumns, "columns");
  expect(columns.shape(1), rows, "rows of columns");
  expect(feasible.size(), rows, "feasible");
  for (const Grid* each : {&reached, &violations}) {
    expect(each->shape(0), task.asked.bounds.size(), "bounds");
    expect(each->shape(1), rows, "rows of bounds");
  }
  const Out out = {first * sizes,     rows,           columns.data(),
                   feasible.data(), reached.data(), violations.data()};
  const nb::gil_scoped_release no_gil;
  const std::size_t begin = first * sizes, points = (last - first) * sizes;
  std::vector<std::thread> others;
  for (std::size_t each = 1; each < threads; ++each) {
    others.emplace_back(screen, std::cref(task), begin + points * each / threads,
                        begin + points * (each + 1) / threads, out);
  }
  screen(task, begin, begin + points / std::max<std::size_t>(threads, 1), out);
  for (std::thread& other : others) other.join();
}

void bind_axes(nb::module_& module) {
  nb::class_<Axes>(module, "Axes", "The axes of the product, and where on them each row lies.")
      .def_rw("route", &Axes::route)
      .def_rw("place", &Axes::place)
      .def_rw("flight", &Axes::flight)
      .def_rw("route_class", &Axes::route_class)
      .def_rw("log_in_flight", &Axes::log_in_flight)
      .def_rw("log_jobs", &Axes::log_jobs)
      .def_rw("queue_depth", &Axes::queue_depth)
      .def_rw("request_bytes", &Axes::request_bytes)
      .def_rw("log_bytes", &Axes::log_bytes)
      .def_rw("useful_bytes", &Axes::useful_bytes)
      .def_rw("log_split", &Axes::log_split)
      .def_rw("log_fastest", &Axes::log_fastest)
      .def_rw("states", &Axes::states);
  nb::class_<Host>(module, "Host", "What requests cost the host, by route and size.")
      .def_rw("log_core", &Host::log_core)
      .def_rw("log_cores", &Host::log_cores)
      .def_rw("added_ns", &Host::added_ns)
      .def_rw("core_ns", &Host::core_ns)
      .def_rw("wakeup_ns", &Host::wakeup_ns)
      .def_rw("polled", &Host::polled)
      .def_rw("polling", &Host::polling)
      .def_rw("always", &Host::always)
      .def_rw("factor", &Host::factor)
      .def_rw("byte_ns", &Host::byte_ns)
      .def_rw("active_cores", &Host::active_cores)
      .def_rw("cores", &Host::cores)
      .def_rw("sharpness", &Host::sharpness);
}

void bind_direction(nb::module_& module) {
  nb::class_<Tail>(module, "Tail", "One percentile over the mean latency.")
      .def_rw("collides", &Tail::collides)
      .def_rw("constant", &Tail::constant)
      .def_rw("damping", &Tail::damping)
      .def_rw("excess", &Tail::excess)
      .def_rw("learned", &Tail::learned)
      .def_rw("half", &Tail::half);
  nb::class_<Direction>(module, "Direction", "The surfaces of reads or of writes on the axes.")
      .def_rw("device", &Direction::device)
      .def_rw("log_unloaded", &Direction::log_unloaded)
      .def_rw("learned", &Direction::learned)
      .def_rw("half", &Direction::half)
      .def_rw("path_half", &Direction::path_half)
      .def("tail", [](Direction& told, std::size_t quantity) -> Tail& {
        return told.tails.at(quantity);
      }, "quantity"_a, nb::rv_policy::reference_internal)
      .def_rw("log_request_ns", &Direction::log_request_ns)
      .def_rw("deep", &Direction::deep)
      .def_rw("deep_half", &Direction::deep_half)
      .def_rw("ceiling_half", &Direction::ceiling_half)
      .def_rw("factor", &Direction::factor)
      .def_rw("factor_half", &Direction::factor_half)
      .def_rw("heavy", &Direction::tail)
      .def_rw("heavy_half", &Direction::tail_half)
      .def_rw("collects", &Direction::collects)
      .def_rw("slowed", &Direction::slowed)
      .def_rw("unsure", &Direction::unsure)
      .def_rw("log_rate", &Direction::log_rate)
      .def_rw("rate_half", &Direction::rate_half)
      .def_rw("heavier", &Direction::heavier)
      .def_rw("heavier_half", &Direction::heavier_half);
}

void bind_question(nb::module_& module) {
  nb::class_<Power>(module, "Power", "The laws of power, by size and power state.")
      .def_rw("base", &Power::base)
      .def_rw("per_request", &Power::per_request)
      .def_rw("beside", &Power::beside)
      .def_rw("limit", &Power::limit)
      .def_rw("idle", &Power::idle)
      .def_rw("later_joules", &Power::later_joules)
      .def_rw("later_share", &Power::later_share)
      .def_rw("cpu", &Power::cpu)
      .def_rw("dram_idle", &Power::dram_idle)
      .def_rw("dram_per_byte", &Power::dram_per_byte)
      .def_rw("wall_floor", &Power::wall_floor)
      .def_rw("wall_slope", &Power::wall_slope)
      .def_rw("wall_bend", &Power::wall_bend)
      .def_rw("wall_least", &Power::wall_least)
      .def_rw("device", &Power::device)
      .def_rw("host", &Power::host)
      .def_rw("wall", &Power::wall);
  nb::class_<Doubt>(module, "Doubt", "How sure watts are, by the parameters of their laws.")
      .def_rw("base", &Doubt::base)
      .def_rw("base_beside", &Doubt::base_beside)
      .def_rw("beside", &Doubt::beside)
      .def_rw("rate", &Doubt::rate)
      .def_rw("rate_base", &Doubt::rate_base)
      .def_rw("rate_beside", &Doubt::rate_beside)
      .def_rw("idle", &Doubt::idle)
      .def_rw("later_sd", &Doubt::later_sd)
      .def_rw("capped", &Doubt::capped)
      .def_rw("specimen", &Doubt::specimen)
      .def_rw("device_lack", &Doubt::device_lack)
      .def_rw("cpu", &Doubt::cpu)
      .def_rw("path", &Doubt::path)
      .def_rw("cpu_lack", &Doubt::cpu_lack)
      .def_rw("wall", &Doubt::wall)
      .def_rw("wall_lack", &Doubt::wall_lack)
      .def_rw("most", &Doubt::most)
      .def_rw("normal", &Doubt::normal)
      .def_rw("rests", &Doubt::rests);
  nb::enum_<Kind>(module, "Kind", "What a bound is held against.")
      .value("CAPACITY", Kind::Capacity)
      .value("OPERATIONS", Kind::Operations)
      .value("LATENCY", Kind::Latency)
      .value("ENDURANCE", Kind::Endurance)
      .value("POWER", Kind::Power);
  nb::class_<Bound>(module, "Bound", "A limit, and the margin that its confidence asks for.")
      .def(nb::init<Kind, std::size_t, double, double, bool>(), "kind"_a, "quantity"_a, "limit"_a,
           "scale"_a, "soft"_a);
  nb::class_<Asked>(module, "Asked", "The question.")
      .def_rw("read_fraction", &Asked::read_fraction)
      .def_rw("between_half", &Asked::between_half)
      .def_rw("slower", &Asked::slower)
      .def_rw("slower_half", &Asked::slower_half)
      .def_rw("heavier", &Asked::heavier)
      .def_rw("heavier_half", &Asked::heavier_half)
      .def_rw("demand", &Asked::demand)
      .def_rw("rest", &Asked::rest)
      .def_rw("useful_bytes", &Asked::useful_bytes)
      .def_rw("tail", &Asked::tail)
      .def_rw("built", &Asked::built)
      .def_rw("wanted", &Asked::wanted)
      .def_rw("years_bytes", &Asked::years_bytes)
      .def_rw("bounds", &Asked::bounds);
  nb::class_<Task>(module, "Task", "Everything that a screening needs to know.")
      .def(nb::init<>())
      .def_rw("axes", &Task::axes)
      .def_rw("host", &Task::host)
      .def_rw("read", &Task::read)
      .def_rw("write", &Task::write)
      .def_rw("power", &Task::power)
      .def_rw("doubt", &Task::doubt)
      .def_rw("asked", &Task::asked)
      .def("run", &run, "classes"_a, "first"_a, "last"_a, "columns"_a, "feasible"_a,
           "reached"_a, "violations"_a, "threads"_a,
           "Evaluate some combinations: fill the columns and, by bound, what is reached and by how "
           "much it is missed; mark the rows that hold every bound that is not only preferred.");
}

// mallopt(3): the threshold above which memory is mapped and unmapped, and how much of what was freed
// at the end of the heap is kept.
void keep_freed_memory(int bytes) {
#if defined(__GLIBC__)
  constexpr int largest = 32 << 20;  // what glibc takes at most, DEFAULT_MMAP_THRESHOLD_MAX
  mallopt(M_MMAP_THRESHOLD, std::min(bytes, largest));
  mallopt(M_TRIM_THRESHOLD, bytes);
  mallopt(M_TOP_PAD, bytes / 4);
#else
  static_cast<void>(bytes);
#endif
}

}  // namespace

NB_MODULE(_kernel, module) {
  module.doc() = "What the recommender does to every candidate, compiled.";
  module.def("non_dominated", &mark_non_dominated, "costs"_a, "copies"_a,
             "1 for each row of the Pareto set, all three columns to be minimised; the first of "
             "equal rows stands for all of them, or all are told with `copies`.");
  module.def("keep_freed_memory", &keep_freed_memory, "bytes"_a,
             "Keep so much freed memory instead of giving it back to the operating system.");
  bind_axes(module);
  bind_direction(module);
  bind_question(module);
}

}  // namespace iojoule::recommender
