// In lexicographic order nothing that comes later can beat what came before, so a sweep keeps a
// point unless one before it is no worse in the other two objectives. The least third objective
// over all points so far with a second one up to some value is a prefix minimum, which a binary
// indexed tree answers and updates in O(log n). (Kung, Luccio and Preparata, "On finding the maxima
// of a set of vectors", JACM 22(4), 1975, for the sweep; Fenwick, Software: Practice and Experience
// 24(3), 1994, for the tree.)
#include "pareto.hpp"

#include <algorithm>
#include <limits>

namespace iojoule::recommender {
namespace {

struct Placed {
  Point point;
  std::uint32_t place;
};

bool before(const Placed& a, const Placed& b) {
  if (a.point.first != b.point.first) return a.point.first < b.point.first;
  if (a.point.second != b.point.second) return a.point.second < b.point.second;
  if (a.point.third != b.point.third) return a.point.third < b.point.third;
  return a.place < b.place;
}

bool equal(const Point& a, const Point& b) {
  return a.first == b.first && a.second == b.second && a.third == b.third;
}

bool beats(const Point& a, const Point& b) {
  const bool no_worse = (a.first <= b.first) & (a.second <= b.second) & (a.third <= b.third);
  return no_worse & ((a.first < b.first) | (a.second < b.second) | (a.third < b.third));
}

// A few points that are good by different weights: whatever one of them beats needs no sorting.
// Objectives are weighed by their range, so that none of them counts for nothing.
std::vector<Point> strong(std::span<const Point> points) {
  constexpr double kWeights[][3] = {{1, 1, 1},   {8, 1, 1},   {1, 8, 1},   {1, 1, 8},
                                    {8, 8, 1},   {8, 1, 8},   {1, 8, 8},   {64, 8, 1},
                                    {64, 1, 8},  {8, 64, 1},  {1, 64, 8},  {8, 1, 64},
                                    {1, 8, 64},  {64, 64, 1}, {64, 1, 64}, {1, 64, 64}};
  Point low = points.front(), high = points.front();
  for (const Point& each : points) {
    low = {std::min(low.first, each.first), std::min(low.second, each.second),
           std::min(low.third, each.third)};
    high = {std::max(high.first, each.first), std::max(high.second, each.second),
            std::max(high.third, each.third)};
  }
  const auto per = [](double from, double to) { return to > from ? 1.0 / (to - from) : 0.0; };
  const Point scale = {per(low.first, high.first), per(low.second, high.second),
                       per(low.third, high.third)};
  // Every so many points are as good as all of them for choosing, and cost next to nothing.
  const std::size_t step = 1 + points.size() / 8192;
  std::vector<Point> found;
  for (const auto& weight : kWeights) {
    const Point by = {weight[0] * scale.first, weight[1] * scale.second, weight[2] * scale.third};
    double least = std::numeric_limits<double>::infinity();
    const Point* best = nullptr;
    for (std::size_t place = 0; place < points.size(); place += step) {
      const Point& each = points[place];
      const double sum = by.first * each.first + by.second * each.second + by.third * each.third;
      if (sum < least) least = sum, best = &each;
    }
    if (best != nullptr) found.push_back(*best);
  }
  return found;
}

std::vector<Placed> contenders(std::span<const Point> points) {
  const std::vector<Point> known = strong(points);
  std::vector<Placed> left;
  for (std::size_t place = 0; place < points.size(); ++place) {
    const Point& point = points[place];
    if (std::none_of(known.begin(), known.end(),
                     [&](const Point& other) { return beats(other, point); })) {
      left.push_back({point, static_cast<std::uint32_t>(place)});
    }
  }
  return left;
}

// The rank of each point's second objective; equal ones share a rank, ranks begin at 1.
std::vector<std::uint32_t> second_ranks(const std::vector<Placed>& sorted) {
  struct Second {
    double value;
    std::uint32_t at;
  };
  std::vector<Second> seconds(sorted.size());
  for (std::size_t at = 0; at < sorted.size(); ++at) {
    seconds[at] = {sorted[at].point.second, static_cast<std::uint32_t>(at)};
  }
  std::sort(seconds.begin(), seconds.end(),
            [](const Second& a, const Second& b) { return a.value < b.value; });
  std::vector<std::uint32_t> ranks(sorted.size());
  std::uint32_t rank = 0;
  for (std::size_t at = 0; at < seconds.size(); ++at) {
    if (at == 0 || seconds[at - 1].value < seconds[at].value) ++rank;
    ranks[seconds[at].at] = rank;
  }
  return ranks;
}

}  // namespace

std::vector<std::uint8_t> non_dominated(std::span<const Point> points, bool copies) {
  std::vector<std::uint8_t> kept(points.size(), 0);
  if (points.empty()) return kept;
  std::vector<Placed> sorted = contenders(points);
  std::sort(sorted.begin(), sorted.end(), before);
  const std::vector<std::uint32_t> ranks = second_ranks(sorted);
  std::vector<double> least(sorted.size() + 1, std::numeric_limits<double>::infinity());
  for (std::size_t at = 0; at < sorted.size(); ++at) {
    if (at > 0 && equal(sorted[at - 1].point, sorted[at].point)) {
      if (copies) kept[sorted[at].place] = kept[sorted[at - 1].place];
      continue;
    }
    const double third = sorted[at].point.third;
    bool beaten = false;
    for (std::size_t node = ranks[at]; node > 0 && !beaten; node &= node - 1) {
      beaten = least[node] <= third;
    }
    if (beaten) continue;
    kept[sorted[at].place] = 1;
    for (std::size_t node = ranks[at]; node < least.size(); node += node & (~node + 1)) {
      least[node] = std::min(least[node], third);
    }
  }
  return kept;
}

}  // namespace iojoule::recommender
