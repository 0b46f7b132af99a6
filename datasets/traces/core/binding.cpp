// iojoule.datasets.traces._native: rows of traces and synthetic days as arrays for numpy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "day.hpp"
#include "rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace iojoule::traces {
namespace {

template <class Value>
using Column = nb::ndarray<nb::numpy, Value, nb::ndim<1>>;

// The vector as an array that owns it.
template <class Value>
Column<Value> column(std::vector<Value>&& values) {
  auto* kept = new std::vector<Value>(std::move(values));
  const nb::capsule owner(kept,
                          [](void* held) noexcept { delete static_cast<std::vector<Value>*>(held); });
  return Column<Value>(kept->data(), {kept->size()}, owner);
}

using Columns = std::tuple<Column<std::int64_t>, Column<std::int64_t>, Column<std::int64_t>,
                           Column<std::uint8_t>, Column<std::uint32_t>, Column<std::uint64_t>>;

Columns feed(RowParser& parser, const nb::bytes& text) {
  Rows rows;
  {
    const std::string_view view(text.c_str(), text.size());
    const nb::gil_scoped_release no_gil;
    parser.feed(view, rows);
  }
  return {column(std::move(rows.arrival_ns)), column(std::move(rows.offset_bytes)),
          column(std::move(rows.size_bytes)), column(std::move(rows.is_write)),
          column(std::move(rows.volume)),     column(std::move(rows.line))};
}

void bind_rows(nb::module_& module) {
  nb::enum_<Dialect>(module, "Dialect", "How lines are read.")
      .value("TABLE", Dialect::table)
      .value("BLKPARSE", Dialect::blkparse)
      .value("FIO_IOLOG_2", Dialect::fio_iolog_2)
      .value("FIO_IOLOG_3", Dialect::fio_iolog_3);
  nb::class_<Layout>(module, "Layout", "Where the values of a row stand and in which units.")
      .def(nb::init<>())
      .def_rw("dialect", &Layout::dialect)
      .def_rw("separator", &Layout::separator)
      .def_rw("columns_min", &Layout::columns_min)
      .def_rw("columns_max", &Layout::columns_max)
      .def_rw("elastic", &Layout::elastic)
      .def_rw("time", &Layout::time)
      .def_rw("offset", &Layout::offset)
      .def_rw("size", &Layout::size)
      .def_rw("op", &Layout::op)
      .def_rw("volume", &Layout::volume)
      .def_rw("volume_2", &Layout::volume_2)
      .def_rw("volume_joint", &Layout::volume_joint)
      .def_rw("time_origin", &Layout::time_origin)
      .def_rw("time_unit_ps", &Layout::time_unit_ps)
      .def_rw("time_fraction", &Layout::time_fraction)
      .def_rw("offset_unit", &Layout::offset_unit)
      .def_rw("size_unit", &Layout::size_unit)
      .def_rw("reads", &Layout::reads)
      .def_rw("writes", &Layout::writes)
      .def_rw("ignored", &Layout::ignored)
      .def_rw("comment", &Layout::comment)
      .def_rw("action", &Layout::action);
  static constexpr std::array defects = {"", "columns", "time", "offset", "size", "operation"};
  static constexpr std::array oddities = {"empty", "ignored", "discard", "flush"};
  nb::class_<RowParser>(module, "RowParser", "Reads whole lines of one trace, one block at a time.")
      .def(nb::init<Layout>(), "layout"_a)
      .def("feed", &feed, "text"_a,
           "Arrival in ns, offset, size, whether it writes, volume and line of each request.")
      .def_prop_ro("defect",
                   [](const RowParser& parser) {
                     return defects[static_cast<std::size_t>(parser.defect())];
                   })
      .def_prop_ro("lines", &RowParser::lines)
      .def_prop_ro("defect_text",
                   [](const RowParser& parser) {
                     const std::string& text = parser.defect_text();
                     return nb::bytes(text.data(), text.size());
                   })
      .def_prop_ro("ended", &RowParser::ended)
      .def_prop_ro("volumes",
                   [](const RowParser& parser) {
                     std::vector<nb::bytes> names;
                     for (const std::string& name : parser.volumes()) {
                       names.emplace_back(name.data(), name.size());
                     }
                     return names;
                   })
      .def_prop_ro("odd", [](const RowParser& parser) {
        std::map<std::string, std::tuple<std::uint64_t, std::uint64_t>> counted;
        for (std::size_t i = 0; i < oddities.size(); ++i) {
          const auto kind = static_cast<Oddity>(i);
          if (parser.odd(kind)) counted[oddities[i]] = {parser.odd(kind), parser.odd_line(kind)};
        }
        return counted;
      });
}

template <class Value>
using Written = nb::ndarray<Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Value>
std::span<Value> span_of(const Written<Value>& array) {
  return {array.data(), array.size()};
}

void bind_day(nb::module_& module) {
  nb::class_<DayConfig>(module, "DayConfig", "What a synthetic day is made of; see day.py.")
      .def(nb::init<>())
      .def_rw("seed", &DayConfig::seed)
      .def_rw("slots", &DayConfig::slots)
      .def_rw("slots_per_minute", &DayConfig::slots_per_minute)
      .def_rw("steady_share", &DayConfig::steady_share)
      .def_rw("burst_slots", &DayConfig::burst_slots)
      .def_rw("sequential_share", &DayConfig::sequential_share)
      .def_rw("gap_cv", &DayConfig::gap_cv)
      .def_rw("minutes", &DayConfig::minutes)
      .def_rw("rate", &DayConfig::rate)
      .def_rw("burst_time", &DayConfig::burst_time)
      .def_rw("write_share", &DayConfig::write_share)
      .def_rw("blocks", &DayConfig::blocks)
      .def_rw("sizes", &DayConfig::sizes)
      .def_rw("read_odds", &DayConfig::read_odds)
      .def_rw("write_odds", &DayConfig::write_odds);
  nb::class_<Day>(module, "Day", "The requests of a synthetic day, in order.")
      .def(nb::init<DayConfig>(), "config"_a)
      .def("busiest_second", &Day::busiest_second, nb::call_guard<nb::gil_scoped_release>(),
           "Expected requests in the busiest second. No request can be drawn afterwards.")
      .def(
          "next",
          [](Day& day, const Written<std::int64_t>& arrival_ns,
             const Written<std::int64_t>& offset_bytes, const Written<std::int64_t>& size_bytes,
             const Written<std::uint8_t>& is_write, const Written<std::uint32_t>& volume) {
            const Requests into{span_of(arrival_ns), span_of(offset_bytes), span_of(size_bytes),
                                span_of(is_write), span_of(volume)};
            const std::size_t asked = into.arrival_ns.size();
            if (into.offset_bytes.size() != asked || into.size_bytes.size() != asked ||
                into.is_write.size() != asked || into.volume.size() != asked) {
              throw nb::value_error("the arrays differ in length");
            }
            const nb::gil_scoped_release no_gil;
            return day.next(into);
          },
          "arrival_ns"_a, "offset_bytes"_a, "size_bytes"_a, "is_write"_a, "volume"_a,
          "Fill the arrays and return how many requests there are; fewer only at the day's end.");
}

}  // namespace
}  // namespace iojoule::traces

NB_MODULE(_native, module) {
  module.doc() = "Rows of block traces and synthetic days.";
  iojoule::traces::bind_rows(module);
  iojoule::traces::bind_day(module);
}
