// The exact Pareto set of points in up to three objectives, all to be minimised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace iojoule::recommender {

struct Point {
  double first, second, third;
};

// Whether each point is beaten by no other one (all finite); the first of equal points stands for all of them.
// With `copies`, all of the equal ones are told. O(n log n) time whatever the points are, and O(n) memory.
std::vector<std::uint8_t> non_dominated(std::span<const Point> points, bool copies);

}  // namespace iojoule::recommender
