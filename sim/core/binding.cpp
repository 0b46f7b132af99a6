// iojoule.sim._core: traces, runs and errors; the module itself.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "binding.hpp"
#include "config.hpp"
#include "control.hpp"
#include "error.hpp"
#include "result.hpp"
#include "simulate.hpp"
#include "trace.hpp"

namespace iojoule::sim {
namespace {

// --- traces --------------------------------------------------------------------------------------

struct Trace {
  std::vector<TraceRecord> records;
};

template <class Value>
void bind_trace_column(nb::class_<Trace>& bound, const char* name, Value TraceRecord::* member) {
  static_assert(sizeof(TraceRecord) % sizeof(Value) == 0);
  bound.def_prop_ro(name, [member](nb::handle_t<Trace> self) {
    const std::vector<TraceRecord>& records = nb::cast<const Trace&>(self).records;
    const Value* first = records.empty() ? nullptr : &(records.front().*member);
    return column(self, first, records.size(), sizeof(TraceRecord) / sizeof(Value));
  });
}

void bind_trace(nb::module_& module) {
  nb::class_<Trace> bound(module, "Trace", "The requests of a trace, a column each.");
  bound.def("__len__", [](const Trace& trace) { return trace.records.size(); });
  bind_trace_column(bound, "arrival_ns", &TraceRecord::arrival_ns);
  bind_trace_column(bound, "start_sector", &TraceRecord::start_sector);
  bind_trace_column(bound, "sectors", &TraceRecord::sectors);
  bind_trace_column(bound, "is_read", &TraceRecord::is_read);
  const auto read = [](const std::string& path, const Limits& limits) {
    const Limits copied = limits;
    const nb::gil_scoped_release no_gil;
    return Trace{read_trace(path, copied)};
  };
  module.def("read_trace", read, "path"_a, "limits"_a,
             "Read a trace in MQSim's text form, or raise TraceError or LimitError.");
}

// --- running -------------------------------------------------------------------------------------

using ProgressFunction = nb::typed<nb::callable, void(double)>;

// Python's side of a Control: what one thread sets to stop a run that another thread waits for.
// One may serve several runs at once; cancelling it stops them all.
struct CancelSwitch {
  std::atomic<bool> cancelled{false};
};

void bind_control(nb::module_& module) {
  nb::class_<CancelSwitch>(module, "Control", "Stops the runs it was given to, from any thread.")
      .def(nb::init<>())
      .def("cancel", [](CancelSwitch& control) { control.cancelled = true; },
           "Make the runs raise CancelledError within about 0.1 s.")
      .def_prop_ro("cancelled",
                   [](const CancelSwitch& control) { return control.cancelled.load(); });
}

RunResult run(DeviceConfig device, std::vector<FlowConfig> flows, Limits limits,
              CancelSwitch* cancel_switch, const std::optional<ProgressFunction>& progress,
              std::uint64_t series_step_ns, bool with_queues, bool ahead) {
  Control control;
  // The core calls this about ten times a second. Errors of Python, Ctrl-C among them, pass through
  // the core like its own.
  control.progress = [&](double share_done) {
    if (cancel_switch != nullptr && cancel_switch->cancelled) throw Cancelled();
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (progress) (*progress)(share_done);
  };
  if (cancel_switch != nullptr && cancel_switch->cancelled) throw Cancelled();
  const nb::gil_scoped_release no_gil;
  return simulate(device, flows, limits, control, series_step_ns, with_queues, ahead);
}

// The classes of iojoule.sim.errors of the same names.
void raise_named(const char* name, const char* message, const nb::dict& fields) {
  const nb::object kind = nb::module_::import_("iojoule.sim.errors").attr(name);
  PyErr_SetObject(kind.ptr(), kind(message, **fields).ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  nb::dict fields;
  try {
    std::rethrow_exception(thrown);
  } catch (const ConfigError& error) {
    fields["field"] = error.field;
    raise_named("ConfigError", (error.field + ": " + error.what()).c_str(), fields);
  } catch (const TraceError& error) {
    fields["path"] = error.path;
    fields["line"] = error.line;
    raise_named("TraceError", error.what(), fields);
  } catch (const LimitError& error) {
    fields["limit"] = error.limit;
    raise_named("LimitError", error.what(), fields);
  } catch (const ModelError& error) {
    raise_named("ModelError", error.what(), fields);
  } catch (const Cancelled& error) {
    raise_named("CancelledError", error.what(), fields);
  }
}

}  // namespace
}  // namespace iojoule::sim

NB_MODULE(_core, module) {
  using namespace iojoule::sim;
  module.doc() = "The simulator's native core. Errors are those of iojoule.sim.errors.";
  nb::register_exception_translator(translate);
  Choices choices;
  bind_physical_options(module, choices);
  bind_config(module, choices);
  module.def("choices", [choices] { return choices; },
             "The words that each field with a choice takes.");
  bind_result(module);
  bind_trace(module);
  bind_control(module);
  bind_live(module);
  bind_fast(module);
  module.def("simulate", &run, "device"_a, "flows"_a, "limits"_a,
             "control"_a = nb::none(), "progress"_a = nb::none(), "series_step_ns"_a = 0,
             "with_queues"_a = false, "ahead"_a = false,
             "Run the flows against the drive. Other Python threads go on meanwhile. `progress` is\n"
             "called about ten times a second with the share of simulated time done, 0..1.\n"
             "`with_queues` asks for the queues of transactions, which compat mode has; `ahead` for\n"
             "the fast engine, which physical mode has.");
}
