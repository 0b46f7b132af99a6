// iojoule.recommender._kernel: what the recommender does to every candidate, compiled.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pareto.hpp"

namespace iojoule::recommender {
namespace {

namespace nb = nanobind;
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

Array<std::uint8_t> mark_non_dominated(const Points& costs) {
  static_assert(sizeof(Point) == 3 * sizeof(double));
  const std::span points(reinterpret_cast<const Point*>(costs.data()), costs.shape(0));
  std::vector<std::uint8_t> kept;
  {
    const nb::gil_scoped_release no_gil;
    kept = non_dominated(points);
  }
  return array(std::move(kept));
}

}  // namespace

NB_MODULE(_kernel, module) {
  module.doc() = "What the recommender does to every candidate, compiled.";
  module.def("non_dominated", &mark_non_dominated, "costs"_a,
             "1 for each row of the Pareto set, all three columns to be minimised; the first of "
             "equal rows stands for all of them.");
}

}  // namespace iojoule::recommender
