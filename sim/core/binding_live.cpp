// physical::Live in Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "config_text.hpp"
#include "physical/live.hpp"

namespace iojoule::sim {
namespace {

using physical::Live;
using physical::RequestKind;

RequestKind kind_of(std::string_view word) {
  if (word == "read") return RequestKind::read;
  if (word == "write") return RequestKind::write;
  if (word == "trim") return RequestKind::trim;
  if (word == "flush") return RequestKind::flush;
  throw ConfigError("kind", "unknown word '" + std::string(word) +
                                "'; one of read write trim flush");
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> advance(Live& live, std::uint64_t until_ns) {
  std::vector<Live::Done> done;
  live.advance(until_ns, done);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
  for (const Live::Done& each : done) pairs.emplace_back(each.cookie, each.done_ns);
  return pairs;
}

std::pair<std::uint64_t, std::vector<double>> take_steps(Live& live) {
  std::vector<double> joules;
  const std::uint64_t first_ns = live.take_steps(joules);
  return {first_ns, std::move(joules)};
}

}  // namespace

void bind_live(nb::module_& module) {
  nb::class_<Live>(module, "LiveDrive",
                   "A drive whose requests come from outside; see sim/core/physical/live.hpp.")
      .def(nb::init<const DeviceConfig&, const Limits&>(), "device"_a, "limits"_a = Limits())
      .def_prop_ro("sectors", &Live::sectors)
      .def_prop_ro("now_ns", &Live::now_ns)
      .def_prop_ro("outstanding", &Live::outstanding)
      .def_prop_ro("active", &Live::active)
      .def_prop_ro("power_state", &Live::power_state)
      .def_prop_ro("next_event_ns", &Live::next_event_ns)
      .def_prop_ro("due_ns", &Live::due_ns)
      .def("submit",
           [](Live& live, std::string_view kind, std::uint64_t sector, std::uint32_t sectors,
              std::uint64_t cookie, std::uint64_t at_ns) {
             live.submit(kind_of(kind), sector, sectors, cookie, at_ns);
           },
           "kind"_a, "sector"_a, "sectors"_a, "cookie"_a, "at_ns"_a)
      .def("advance", &advance, "until_ns"_a, "What was completed: (cookie, time) in order.")
      .def("set_power_state", &Live::set_power_state, "state"_a, "at_ns"_a)
      .def("set_write_cache", &Live::set_write_cache, "on"_a)
      .def("take_steps", &take_steps,
           "When the first step began, and joules of each whole step since the last call.");
  module.def("drive_text", &write_drive_text, "device"_a,
             "The drive as text for programs without Python; see sim/core/config_text.hpp.");
  module.def("read_drive_text", &read_drive_text, "text"_a);
}

}  // namespace iojoule::sim
