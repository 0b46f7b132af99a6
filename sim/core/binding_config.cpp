// DeviceConfig, FlowConfig and Limits in Python.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"
#include "config.hpp"

namespace iojoule::sim {
namespace {

void bind_limits(nb::module_& module) {
  nb::class_<Limits>(module, "Limits", "What a run may use before it is stopped with a LimitError.")
      .def(nb::init<>())
      .def_rw("memory_bytes", &Limits::memory_bytes)
      .def_rw("simulated_ns", &Limits::simulated_ns)
      .def_rw("wall_seconds", &Limits::wall_seconds)
      .def_rw("events", &Limits::events);
}

}  // namespace

void bind_config(nb::module_& module, Choices& choices) {
  bind_record<DeviceConfig>(module, choices, "DeviceConfig", "A drive; see sim/core/config.hpp.");
  bind_record<FlowConfig>(module, choices, "FlowConfig", "A stream of requests; see sim/core/config.hpp.");
  bind_limits(module);
}

}  // namespace iojoule::sim
