#include "mean_field.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace iojoule::sim::compat {

namespace {

// In every model the pages that blocks with i valid ones lose to new writes equal what victims with
// fewer than i bring back: rate * i * m(i) = C(i), C(i) being the share of victims with fewer than i,
// m(i) that of blocks, and rate the pages rewritten per victim over the number of valid pages.
// Where `too_low` turns false between two numbers.
double root(double low, double high, const std::function<bool(double)>& too_low) {
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (too_low(middle) ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double binomial(std::uint32_t n, std::uint32_t k, double p) {
  return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) + k * std::log(p) +
                  (n - k) * std::log1p(-p));
}

double power(double base, unsigned exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1U, base *= base) {
    if ((exponent & 1U) != 0) result *= base;
  }
  return result;
}

}  // namespace

std::vector<double> valid_pages_at_random(std::uint32_t pages, double used) {
  // Here victims look like blocks, so rate = (1 - used) / used and the recursion is explicit.
  const double rate = (1 - used) / used;
  std::vector<double> valid(pages + 1);
  valid[pages] = 1 / (1 + rate * pages);
  for (std::uint32_t i = pages; i-- > 0;) valid[i] = rate * (i + 1) * valid[i + 1] / (1 + rate * i);
  // MQSim has fewer nearly empty blocks: the share with fewer than i pages is divided by
  // 1 + (1 - used)^(i - 1) / used.
  double fewer = 0, kept = 0, rest = 1 / used;
  for (double& share : valid) {
    fewer += share;
    const double now = fewer / (1 + rest);
    share = now - kept;
    kept = now;
    rest *= 1 - used;
  }
  return valid;
}

std::vector<double> valid_pages_by_choice(std::uint32_t pages, double used, unsigned choices) {
  constexpr int steps = 10000;
  constexpr double step = 0.001, at_rest = 1e-7;
  // Share of blocks with at least so many valid pages; at first as if pages were valid by chance.
  std::vector<double> at_least(pages + 2, 0.0);
  for (std::uint32_t i = pages + 1; i-- > 0;) at_least[i] = at_least[i + 1] + binomial(pages, i, used);
  at_least[0] = 1;
  std::vector<double> victims(pages + 1);  // the same share among victims
  for (int n = 0; n < steps; ++n) {
    double mean = 0;
    for (std::uint32_t i = 1; i <= pages; ++i) mean += victims[i] = power(at_least[i], choices);
    const double rate = (pages - mean) / (pages * used);
    double fastest = 0;
    for (std::uint32_t i = 1; i < pages; ++i) {
      const double slope = 1 - victims[i] - rate * i * (at_least[i] - at_least[i + 1]);
      at_least[i] += step * slope;
      fastest = std::max(fastest, std::abs(slope));
    }
    at_least[pages] = 0;
    if (fastest < at_rest) break;
  }
  std::vector<double> valid(pages + 1);
  for (std::uint32_t i = 0; i <= pages; ++i) valid[i] = at_least[i] - at_least[i + 1];
  return valid;
}

std::vector<double> valid_pages_below(std::uint32_t pages, double used, double threshold) {
  const auto limit = static_cast<std::uint32_t>(threshold * pages) + 1;
  std::vector<double> valid(pages + 1);
  const auto mean_for = [&](double rate) {
    double kept = 1;  // share of blocks that are never victims, then of those that are
    for (std::uint32_t i = pages; i >= limit; --i) {
      valid[i] = 1 / (rate * i);
      kept -= valid[i];
    }
    double fewer = 1;
    for (std::uint32_t i = limit; i-- > 0;) {
      valid[i] = fewer / (rate * i + 1 / kept);
      fewer -= valid[i] / kept;
    }
    double mean = 0;
    for (std::uint32_t i = 0; i <= pages; ++i) mean += i * valid[i];
    return mean / pages;
  };
  // Below this rate the blocks above the limit would be more than all.
  double above = 0;
  for (std::uint32_t i = limit; i <= pages; ++i) above += 1.0 / i;
  const double rate = root(above * (1 + 1e-12), 1e6, [&](double guess) { return mean_for(guess) > used; });
  mean_for(rate);
  return valid;
}

}  // namespace iojoule::sim::compat
