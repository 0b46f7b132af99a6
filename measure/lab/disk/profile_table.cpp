#include "profile_table.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace iojoule::lab {

namespace {

// The words of the text, one after the other.
class Words {
 public:
  explicit Words(const std::string& text) : text_(text) {}

  void expect(const char* word) {
    std::string found;
    if (!(text_ >> found) || found != word) {
      throw std::runtime_error(std::string("not a profile's table: needs ") + word + ", has " +
                               (found.empty() ? "nothing" : found));
    }
  }
  template <class Value>
  Value value(const char* word) {
    Value found{};
    if (!(text_ >> found)) {
      throw std::runtime_error(std::string("not a profile's table: no number after ") + word);
    }
    return found;
  }
  template <class Value>
  Value named(const char* word) {
    expect(word);
    return value<Value>(word);
  }
  std::vector<double> values(const char* word, std::size_t count) {
    expect(word);
    std::vector<double> found(count);
    for (double& each : found) each = value<double>(word);
    return found;
  }
  std::vector<double> counted(const char* word) {
    const auto count = named<std::size_t>(word);
    if (count < 2 || count > 65536) throw std::runtime_error(std::string(word) + ": needs two");
    std::vector<double> found(count);
    for (double& each : found) each = value<double>(word);
    return found;
  }

 private:
  std::istringstream text_;
};

void take_log2(std::vector<double>& values) {
  for (double& value : values) value = std::log2(value);
}

double between(double low, double high, double part) { return low + (high - low) * part; }

}  // namespace

ProfileTable ProfileTable::read(const std::string& text) {
  Words words(text);
  if (words.named<int>(first_word) != 1) {
    throw std::runtime_error("the profile's table is of another version of iojoule");
  }
  ProfileTable table;
  table.sectors = words.named<std::uint64_t>("sectors");
  table.kept_bytes = words.named<std::uint64_t>("kept_bytes");
  table.other_ns = words.named<std::uint64_t>("other_ns");
  table.busy_base_watts = words.named<double>("busy_base_watts");
  words.expect("mixed_factors");
  for (double& factor : table.mixed_) factor = words.value<double>("mixed_factors");
  const auto states = words.named<std::size_t>("states");
  if (states < 1 || states > 32) throw std::runtime_error("NVMe has 1 to 32 power states");
  for (std::size_t i = 0; i < states; ++i) {
    State state;
    state.operational = words.named<int>("state") != 0;
    state.entry_ns = words.value<std::uint64_t>("state");
    state.exit_ns = words.value<std::uint64_t>("state");
    state.idle_watts = words.value<double>("state");
    table.states.push_back(state);
  }
  table.in_flight_ = words.counted("in_flight");
  table.bytes_ = words.counted("bytes");
  table.spread_in_flight_ = words.counted("spread_in_flight");
  table.quantiles_ = words.counted("quantiles");
  table.largest_bytes = static_cast<std::uint64_t>(table.bytes_.back());
  take_log2(table.in_flight_);
  take_log2(table.bytes_);
  take_log2(table.spread_in_flight_);
  const std::size_t points = table.bytes_.size() * table.in_flight_.size();
  const std::size_t spreads =
      table.bytes_.size() * table.spread_in_flight_.size() * table.quantiles_.size();
  for (std::size_t state = 0; state < states; ++state) {
    for (int surface = 0; surface < 4; ++surface) {
      Surface& made = table.surfaces_.emplace_back();
      if (!table.states[state].operational) continue;
      made.log_latency_ns = words.values("latency_ns", points);
      for (double& each : made.log_latency_ns) each = std::log(each);
      made.watts = words.values("watts", points);
      made.spread = words.values("spread", spreads);
    }
  }
  return table;
}

ProfileTable::Place ProfileTable::find(const std::vector<double>& logs, double value) {
  const auto above = std::upper_bound(logs.begin() + 1, logs.end() - 1, value);
  const auto entry = static_cast<std::size_t>(above - logs.begin()) - 1;
  const double part = (value - logs[entry]) / (logs[entry + 1] - logs[entry]);
  return {entry, std::clamp(part, 0.0, 1.0)};
}

ProfileTable::Place ProfileTable::place(double requests) const {
  return find(in_flight_, std::log2(requests));
}

ProfileLine ProfileTable::line(RequestKind kind, Pattern pattern, std::uint32_t state,
                               double bytes) const {
  const Surface& all = surface(kind, pattern, state);
  const Place size = find(bytes_, std::log2(bytes));
  const std::size_t count = in_flight_.size();
  ProfileLine line;
  for (std::size_t i = size.entry * count; i < (size.entry + 1) * count; ++i) {
    line.log_latency_ns.push_back(
        between(all.log_latency_ns[i], all.log_latency_ns[i + count], size.part));
    line.watts.push_back(between(all.watts[i], all.watts[i + count], size.part));
  }
  return line;
}

double ProfileTable::spread(RequestKind kind, Pattern pattern, std::uint32_t state, double bytes,
                            double requests, double quantile) const {
  const Surface& all = surface(kind, pattern, state);
  const Place size = find(bytes_, std::log2(bytes));
  const Place load = find(spread_in_flight_, std::log2(requests));
  const Place at = find(quantiles_, quantile);
  const auto value = [&](std::size_t row, std::size_t column) {
    const std::size_t from =
        ((size.entry + row) * spread_in_flight_.size() + load.entry + column) * quantiles_.size() +
        at.entry;
    return between(all.spread[from], all.spread[from + 1], at.part);
  };
  return between(between(value(0, 0), value(0, 1), load.part),
                 between(value(1, 0), value(1, 1), load.part), size.part);
}

}  // namespace iojoule::lab
