// What the files of iojoule.sim._core share. Every field of config.hpp and result.hpp appears in
// Python under its own name; choices are strings (names.hpp), large arrays are views for numpy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.hpp"
#include "names.hpp"

namespace iojoule::sim {

namespace nb = nanobind;
using namespace nb::literals;

// Field name -> the words it takes; filled while the classes are bound.
using Choices = std::map<std::string, std::vector<std::string>>;

void bind_config(nb::module_& module, Choices& choices);
void bind_fast(nb::module_& module);
void bind_live(nb::module_& module);
void bind_physical_options(nb::module_& module, Choices& choices);
void bind_physical_result(nb::module_& module);
void bind_result(nb::module_& module);

template <class Owner, class Choice>
void bind_choice(nb::class_<Owner>& bound, Choices& choices, const char* name,
                 Choice Owner::* member) {
  const auto& words = names_of<Choice>;
  choices[name] = {words.begin(), words.end()};
  bound.def_prop_rw(
      name, [member](const Owner& owner) { return name_of(owner.*member); },
      [member, name](Owner& owner, std::string_view word) {
        const auto& known = names_of<Choice>;
        const auto* found = std::find(known.begin(), known.end(), word);
        if (found == known.end()) {
          std::string message = "unknown word '" + std::string(word) + "'; one of";
          for (const std::string_view each : known) message.append(" ").append(each);
          throw ConfigError(name, message);
        }
        owner.*member = static_cast<Choice>(found - known.begin());
      });
}

// The record as a Python class of the same fields; `about` is its docstring.
template <class Record>
void bind_record(nb::module_& module, Choices& choices, const char* name, const char* about) {
  nb::class_<Record> bound(module, name, about);
  bound.def(nb::init<>());
  Record::fields([&](const char* field, auto member, const auto&) {
    using Value = std::remove_reference_t<decltype(std::declval<Record&>().*member)>;
    if constexpr (std::is_enum_v<Value>) {
      bind_choice(bound, choices, field, member);
    } else {
      bound.def_rw(field, member);
    }
  });
}

template <class Value>
using Column = nb::ndarray<nb::numpy, const Value, nb::ndim<1>>;

// A view into `owner`, which stays alive as long as the view does; the stride is in values.
template <class Value>
Column<Value> column(nb::handle owner, const Value* first, std::size_t size, std::size_t stride) {
  const auto step = static_cast<std::int64_t>(stride);
  return Column<Value>(first, {size}, owner, {step});
}

template <class Owner, class Value>
void bind_array(nb::class_<Owner>& bound, const char* name, std::vector<Value> Owner::* member) {
  bound.def_prop_ro(name, [member](nb::handle_t<Owner> self) {
    const std::vector<Value>& values = nb::cast<const Owner&>(self).*member;
    return column(self, values.data(), values.size(), 1);
  });
}

}  // namespace iojoule::sim
