// Random numbers as MQSim draws them, so that both modes see the same requests.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace iojoule::sim {

// MRG32k3a (L'Ecuyer, Operations Research 47(1), 1999): two linear recurrences of order three,
// combined. A seed selects a stream: the state after (seed / 200 + 1) * 2^(seed % 200) steps.
//
// MQSim computes that jump in wrapping 64-bit integers with C's signed remainder, so its streams
// are not the disjoint ones of the paper. They are reproduced as they are (mqsim.md, 3.10).
class RandomStream {
 public:
  explicit RandomStream(std::int64_t seed) {
    constexpr Matrix step1 = {{0, 1, 0}, {0, 0, 1}, {m1 - a13, a12, 0}};
    constexpr Matrix step2 = {{0, 1, 0}, {0, 0, 1}, {m2 - a23, 0, a21}};
    const auto multiple = static_cast<std::uint64_t>(seed / 200 + 1);
    const auto exponent = static_cast<int>(seed % 200);
    std::int64_t start1[3], start2[3];
    jump(step1, m1, multiple, exponent, start1);
    jump(step2, m2, multiple, exponent, start2);
    begin(start1, {-a13, a12, 0}, m1, first_);
    begin(start2, {-a23, 0, a21}, m2, second_);
  }

  // Uniform in (0, 1].
  double uniform() {
    const std::uint64_t x = first_[0], y = second_[0];
    advance(first_, reduced<m1>(a12 * first_[1] + a13 * (m1 - first_[0])));
    advance(second_, reduced<m2>(a21 * second_[2] + a23 * (m2 - second_[0])));
    constexpr double norm = 2.328306549295728e-10;  // 1 / (m1 + 1)
    const std::uint64_t difference = x <= y ? x + m1 - y : x - y;
    return static_cast<double>(static_cast<std::int64_t>(difference + 1)) * norm;
  }

  // Uniform over the integers low..high. 1 comes out as high + 1 once in 2^32 draws, as in MQSim.
  std::uint64_t uniform(std::uint64_t low, std::uint64_t high) {
    return low + static_cast<std::uint64_t>(uniform() * static_cast<double>(high - low + 1));
  }

  double exponential(double mean) { return -mean * std::log(uniform()); }

 private:
  using Matrix = std::int64_t[3][3];
  static constexpr std::int64_t m1 = 4294967087, m2 = 4294944443;
  static constexpr std::int64_t a12 = 1403580, a13 = 810728, a21 = 527612, a23 = 1370589;

  static std::int64_t wrapping_product(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }

  static std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }

  static void square(Matrix& a, std::int64_t m) {
    Matrix product;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        std::int64_t sum = 0;
        for (int k = 0; k < 3; ++k) {
          sum = wrapping_sum(sum, wrapping_product(a[i][k], a[k][j])) % m;
        }
        product[i][j] = sum;
      }
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) a[i][j] = product[i][j];
    }
  }

  static void apply(const Matrix& a, std::int64_t m, std::int64_t (&state)[3]) {
    std::int64_t moved[3];
    for (int i = 0; i < 3; ++i) {
      std::int64_t sum = 0;
      for (int k = 0; k < 3; ++k) sum = wrapping_sum(sum, wrapping_product(a[i][k], state[k])) % m;
      moved[i] = sum;
    }
    for (int i = 0; i < 3; ++i) state[i] = moved[i];
  }

  static void jump(const Matrix& step, std::int64_t m, std::uint64_t multiple, int exponent,
                   std::int64_t (&state)[3]) {
    Matrix power;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) power[i][j] = step[i][j];
    }
    for (int i = 0; i < exponent; ++i) square(power, m);
    for (std::int64_t& element : state) element = 1;
    for (; multiple != 0; multiple >>= 1U) {
      if ((multiple & 1U) != 0) apply(power, m, state);
      square(power, m);
    }
  }

  // The first three numbers of a recurrence, which are all it needs to go on. A start may hold
  // negative numbers; then MQSim's doubles round, and so do these. From here on all is in 0..m-1.
  static void begin(const std::int64_t (&start)[3], const std::array<double, 3>& factors, std::uint64_t modulus,
                    std::uint64_t (&out)[3]) {
    const auto m = static_cast<double>(modulus);
    double state[3];
    for (int i = 0; i < 3; ++i) state[i] = static_cast<double>(start[i]);
    for (std::uint64_t& number : out) {
      double value = factors[2] * state[2] + factors[1] * state[1] + factors[0] * state[0];
      value -= std::trunc(value / m) * m;
      if (value < 0) value += m;
      state[0] = state[1];
      state[1] = state[2];
      state[2] = value;
      number = static_cast<std::uint64_t>(value);
    }
  }

  // value % m for an m slightly below 2^32: what is above 32 bits counts 2^32 - m times.
  template <std::uint64_t m>
  static std::uint64_t reduced(std::uint64_t value) {
    constexpr std::uint64_t rest = (std::uint64_t{1} << 32U) - m;
    value = (value >> 32U) * rest + (value & UINT32_MAX);  // below 2^38
    value = (value >> 32U) * rest + (value & UINT32_MAX);  // below 2 m
    return value >= m ? value - m : value;
  }

  static void advance(std::uint64_t (&state)[3], std::uint64_t next) {
    state[0] = state[1];
    state[1] = state[2];
    state[2] = next;
  }

  // The next three numbers of each recurrence, the next one first.
  std::uint64_t first_[3];
  std::uint64_t second_[3];
};

}  // namespace iojoule::sim
