// exp and log without branches or tables, so that a compiler evaluates several at a time.
//
// Both are within a few units of the last place of the exact value, and the same on every machine:
// every operation is one that IEEE 754 rounds correctly, and none is fused.
#pragma once

#include <bit>
#include <cstdint>

#define IOJOULE_INLINE [[gnu::always_inline]] inline

// One function, compiled for several kinds of processor; the loader picks. A sanitizer is not ready
// when it does.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define IOJOULE_CLONES [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define IOJOULE_CLONES
#endif

namespace iojoule::recommender::lanes {

// Added to a number below 2^51 it rounds it to a whole one, which then stands in the lowest bits.
constexpr double kRound = 0x1.8p52;
constexpr double kLn2High = 0x1.62e42fefa38p-1;
constexpr double kLn2Low = 0x1.ef35793c7673p-45;

IOJOULE_INLINE double least(double a, double b) { return b < a ? b : a; }
IOJOULE_INLINE double most(double a, double b) { return a < b ? b : a; }

// e^x; what is beyond the range of a double is taken to its end, which is 0 or 10^308 for us.
IOJOULE_INLINE double exp(double x) {
  x = least(most(x, -708.0), 709.0);
  const double shifted = x * 0x1.71547652b82fep0 + kRound;
  const double whole = shifted - kRound;
  const double r = (x - whole * kLn2High) - whole * kLn2Low;
  // Taylor to the 13th power: |r| <= ln(2) / 2, so what is left out is below 10^-17
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  const std::uint64_t power = std::bit_cast<std::uint64_t>(shifted) << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) + power);
}

// The natural logarithm of a positive normal number.
IOJOULE_INLINE double log(double x) {
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcdULL;  // sqrt(1/2)
  constexpr std::uint64_t kOne = 0x3ff0000000000000ULL;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t biased = (bits - kRootHalf + kOne) >> 52;  // exponent + 1023
  const std::uint64_t mantissa = bits - ((biased - 1023) << 52);
  constexpr std::uint64_t kWhole = 0x4330000000000000ULL;  // 2^52
  const double power = std::bit_cast<double>(kWhole | biased) - (0x1p52 + 1023.0);
  const double m = std::bit_cast<double>(mantissa);  // from sqrt(1/2) to sqrt(2)
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;  // at most 0.0295; log(m) = 2 atanh(s)
  double sum = 1.0 / 21.0;
  sum = sum * z + 1.0 / 19.0;
  sum = sum * z + 1.0 / 17.0;
  sum = sum * z + 1.0 / 15.0;
  sum = sum * z + 1.0 / 13.0;
  sum = sum * z + 1.0 / 11.0;
  sum = sum * z + 1.0 / 9.0;
  sum = sum * z + 1.0 / 7.0;
  sum = sum * z + 1.0 / 5.0;
  sum = sum * z + 1.0 / 3.0;
  sum = sum * z + 1.0;
  return (2.0 * s * sum + power * kLn2Low) + power * kLn2High;
}

// log(a^k + b^k) / k of logs, and the share of b in that sum: the model's smooth maximum.
struct Smooth {
  double value, share;
};

IOJOULE_INLINE Smooth smooth_max(double log_a, double log_b, double k) {
  const double high = most(log_a, log_b);
  const double rest = exp(-k * (high - least(log_a, log_b)));
  const double larger = 1.0 / (1.0 + rest);
  return {high + log(1.0 + rest) / k, log_b < log_a ? rest * larger : larger};
}

}  // namespace iojoule::recommender::lanes
