// fast::Simulation in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>

#include "binding.hpp"
#include "fast/simulation.hpp"

namespace iojoule::sim {
namespace {

using fast::Interval;
using fast::Simulation;

template <class Value>
using Input = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void feed(Simulation& simulation, const Input<std::int64_t>& arrival_ns,
          const Input<std::int64_t>& offset_bytes, const Input<std::int64_t>& size_bytes,
          const Input<std::uint8_t>& is_write) {
  const std::size_t count = arrival_ns.size();
  if (offset_bytes.size() != count || size_bytes.size() != count || is_write.size() != count) {
    throw ConfigError("feed", "got columns of different lengths");
  }
  const nb::gil_scoped_release no_gil;
  simulation.feed(arrival_ns.data(), offset_bytes.data(), size_bytes.data(), is_write.data(), count);
}

void bind_interval(nb::module_& module) {
  nb::class_<Interval> bound(module, "FastInterval", "What came and was spent in one interval.");
#define FIELD(name) bound.def_ro(#name, &Interval::name)
  FIELD(joules);
  FIELD(reads);
  FIELD(writes);
  FIELD(bytes_read);
  FIELD(bytes_written);
  FIELD(latency_mean_ns);
  FIELD(latency_p99_ns);
  FIELD(slc_pages_programmed);
  FIELD(pages_programmed);
  FIELD(units_moved);
#undef FIELD
}

}  // namespace

void bind_fast(nb::module_& module) {
  bind_interval(module);
  nb::class_<Simulation>(module, "FastSimulation",
                         "The fast engine for traces; see sim/core/fast/simulation.hpp.")
      .def("__init__",
           [](Simulation* made, const DeviceConfig& device, std::uint32_t occupancy_percent,
              std::uint64_t interval_ns, const Limits& limits) {
             const DeviceConfig copied = device;
             const fast::Options options{occupancy_percent, interval_ns, limits};
             const nb::gil_scoped_release no_gil;
             new (made) Simulation(copied, options);
           },
           "device"_a, "occupancy_percent"_a = 0, "interval_ns"_a = 0, "limits"_a = Limits())
      .def_prop_ro("bytes", &Simulation::bytes)
      .def_prop_ro("fed", &Simulation::fed)
      .def_prop_ro("intervals", &Simulation::intervals)
      .def("feed", &feed, "arrival_ns"_a, "offset_bytes"_a, "size_bytes"_a, "is_write"_a,
           "Requests in the order of arrival. Other Python threads go on meanwhile.")
      .def("finish", &Simulation::finish, nb::rv_policy::copy, nb::call_guard<nb::gil_scoped_release>(),
           "Let the drive come to rest; what all requests did.");
}

}  // namespace iojoule::sim
