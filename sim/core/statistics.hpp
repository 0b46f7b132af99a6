// Latencies to means and percentiles, completions to a time series.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"
#include "result.hpp"

namespace iojoule::sim {

// Counts of latencies in bins that are exact below 2^(mantissa_bits + 1) ns and 2^-mantissa_bits of their value wide above: the
// layout of HdrHistogram (G. Tene) with a power of two for the number of bins per octave.
template <int mantissa_bits>
class LogLinearBins {
 public:
  // A bin answers with its middle, half a width from its ends.
  static constexpr double relative_error = 0.5 / (1U << mantissa_bits);

  LogLinearBins() : counts_(bin_of(UINT64_MAX) + 1) {}

  void record(std::uint64_t value) { ++counts_[bin_of(value)]; }

  void clear() { std::fill(counts_.begin(), counts_.end(), 0); }

  void merge(const LogLinearBins& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }

  // The middle of the bin that holds the value of that rank (from 1) among all recorded.
  std::uint64_t at_rank(std::uint64_t rank) const {
    std::uint64_t seen = 0;
    std::size_t bin = 0;
    while (bin + 1 < counts_.size() && (seen += counts_[bin]) < rank) ++bin;
    return middle_of(bin);
  }

 private:
  static constexpr std::size_t bins_per_octave = std::size_t{1} << mantissa_bits;

  static constexpr std::size_t bin_of(std::uint64_t value) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - (mantissa_bits + 1));
    return static_cast<std::size_t>(shift) * bins_per_octave +
           static_cast<std::size_t>(value >> shift);
  }

  static constexpr std::uint64_t middle_of(std::size_t bin) {
    if (bin < 2 * bins_per_octave) return bin;
    const std::size_t shift = bin / bins_per_octave - 1;
    const std::uint64_t lower = static_cast<std::uint64_t>(bin - shift * bins_per_octave) << shift;
    return lower + (std::uint64_t{1} << shift) / 2;
  }

  std::vector<std::uint64_t> counts_;
};

using LogLinearHistogram = LogLinearBins<10>;

// Takes one latency at a time and answers once, at the end. The percentile p of n values is the one
// at index p (n - 1), rounded, of the sorted values, as in MQSim's reference results. Percentiles are
// exact up to `exact_samples` and come from a histogram beyond that, whose error the summary states;
// count, mean, minimum and maximum are always exact.
class LatencyRecorder {
 public:
  static constexpr std::size_t exact_samples = std::size_t{1} << 22;  // 32 MiB

  // With 0 samples memory does not grow.
  explicit LatencyRecorder(std::size_t samples_max = exact_samples) : samples_max_(samples_max) {}

  void record(std::uint64_t latency_ns) {
    if (histogram_.empty()) [[likely]] {
      if (samples_.size() < samples_max_) [[likely]] {
        samples_.push_back(latency_ns);
        return;
      }
      fold();
    }
    folded_.add(latency_ns);
    histogram_.front().record(latency_ns);
  }

  std::uint64_t count() const { return folded_.count + samples_.size(); }

  // As if every latency of `other` had been recorded here too.
  void merge(const LatencyRecorder& other) {
    if (count() + other.count() > samples_max_ && histogram_.empty()) fold();
    if (histogram_.empty()) {
      samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
      return;
    }
    for (const std::uint64_t sample : other.samples_) {
      folded_.add(sample);
      histogram_.front().record(sample);
    }
    if (other.histogram_.empty()) return;
    folded_.merge(other.folded_);
    histogram_.front().merge(other.histogram_.front());
  }

  // Reorders the samples, hence not const; recording may go on afterwards.
  LatencySummary summary() {
    LatencySummary summary;
    Totals all = folded_;
    for (const std::uint64_t sample : samples_) all.add(sample);
    if (all.count == 0) return summary;
    summary.count = all.count;
    summary.mean_ns = (static_cast<double>(all.sum_high) * 0x1p64 + static_cast<double>(all.sum_low)) /
                      static_cast<double>(all.count);
    summary.min_ns = all.min_ns;
    summary.max_ns = all.max_ns;
    if (!histogram_.empty()) summary.percentile_relative_error = LogLinearHistogram::relative_error;
    // In ascending order, so that each selection leaves the next a much shorter range.
    std::size_t begin = 0;
    for (const auto& [value, per_ten_thousand] : {std::pair{&summary.p50_ns, 5000U},
                                                  {&summary.p90_ns, 9000U},
                                                  {&summary.p99_ns, 9900U},
                                                  {&summary.p999_ns, 9990U},
                                                  {&summary.p9999_ns, 9999U}}) {
      *value = percentile(rank_of(per_ten_thousand, all.count), all, begin);
    }
    return summary;
  }

 private:
  struct Totals {
    std::uint64_t count = 0;
    std::uint64_t sum_low = 0, sum_high = 0;  // together 128 bits
    std::uint64_t min_ns = UINT64_MAX, max_ns = 0;

    void add(std::uint64_t value) {
      ++count;
      sum_low += value;
      sum_high += sum_low < value ? 1 : 0;
      min_ns = std::min(min_ns, value);
      max_ns = std::max(max_ns, value);
    }
    void merge(const Totals& other) {
      count += other.count;
      sum_low += other.sum_low;
      sum_high += other.sum_high + (sum_low < other.sum_low ? 1 : 0);
      min_ns = std::min(min_ns, other.min_ns);
      max_ns = std::max(max_ns, other.max_ns);
    }
  };

  void fold() {
    histogram_.emplace_back();
    for (const std::uint64_t sample : samples_) {
      folded_.add(sample);
      histogram_.front().record(sample);
    }
    samples_.clear();
    samples_.shrink_to_fit();
  }

  // Whole numbers, because 0.999 has no exact double and a rank must not be off by one for it.
  static std::uint64_t rank_of(std::uint64_t per_ten_thousand, std::uint64_t count) {
    const std::uint64_t last = count - 1;
    return last / 10000 * per_ten_thousand + (last % 10000 * per_ten_thousand + 5000) / 10000 + 1;
  }

  // Samples before `begin` are in their places.
  std::uint64_t percentile(std::uint64_t rank, const Totals& all, std::size_t& begin) {
    if (!histogram_.empty()) {
      return std::clamp(histogram_.front().at_rank(rank), all.min_ns, all.max_ns);
    }
    const std::size_t index = rank - 1;
    if (index >= begin) {
      const auto at = [&](std::size_t i) { return samples_.begin() + static_cast<std::ptrdiff_t>(i); };
      std::nth_element(at(begin), at(index), samples_.end());
      begin = index + 1;
    }
    return samples_[index];
  }

  std::size_t samples_max_;
  std::vector<std::uint64_t> samples_;
  std::vector<LogLinearHistogram> histogram_;  // none, or one when there are too many samples
  Totals folded_;                              // of what went into the histogram
};

// Device and end-to-end latencies of a flow. The two are one as long as no request waited for a
// place in its queue, and then they are kept once.
class FlowLatencies {
 public:
  void record(bool is_read, std::uint64_t device_ns, std::uint64_t end_to_end_ns) {
    if (same_ && device_ns != end_to_end_ns) {
      same_ = false;
      end_to_end_ = device_;
    }
    device_.of(is_read).record(device_ns);
    if (!same_) end_to_end_.of(is_read).record(end_to_end_ns);
  }

  void summarise(FlowResult& into) {
    device_.summarise(into.device, into.device_read, into.device_write);
    if (same_) {
      into.end_to_end = into.device;
      into.end_to_end_read = into.device_read;
      into.end_to_end_write = into.device_write;
    } else {
      end_to_end_.summarise(into.end_to_end, into.end_to_end_read, into.end_to_end_write);
    }
  }

 private:
  struct ByKind {
    LatencyRecorder reads, writes;

    LatencyRecorder& of(bool is_read) { return is_read ? reads : writes; }

    void summarise(LatencySummary& all, LatencySummary& read, LatencySummary& write) {
      read = reads.summary();
      write = writes.summary();
      if (read.count == 0 || write.count == 0) {
        all = read.count == 0 ? write : read;
        return;
      }
      reads.merge(writes);
      all = reads.summary();
    }
  };

  ByKind device_, end_to_end_;
  bool same_ = true;
};

// What a flow completed in each step of simulated time. A step of 0 records nothing.
class FlowSeries {
 public:
  static constexpr std::size_t steps_max = std::size_t{1} << 22;  // 192 MiB a flow

  explicit FlowSeries(std::uint64_t step_ns = 0) : step_ns_(step_ns) {}

  void record(std::uint64_t completion_ns, bool is_read, std::uint64_t bytes,
              std::uint64_t latency_ns) {
    if (step_ns_ == 0) return;
    FlowStep& step = at(completion_ns);
    (is_read ? step.serviced_read : step.serviced_write) += 1;
    (is_read ? step.bytes_read : step.bytes_written) += bytes;
    step.latency_sum_ns += latency_ns;
    step.latency_max_ns = std::max(step.latency_max_ns, latency_ns);
  }

  // The steps up to the one that holds `end_ns`, those in which nothing completed included.
  std::vector<FlowStep> take(std::uint64_t end_ns) {
    if (step_ns_ != 0) at(end_ns);
    return std::move(steps_);
  }

 private:
  FlowStep& at(std::uint64_t time_ns) {
    const std::uint64_t index = time_ns / step_ns_;
    if (index >= steps_.size()) {
      if (index >= steps_max) {
        throw ConfigError("series_step_ns", "a step of " + std::to_string(step_ns_) +
                                                " ns needs more than " + std::to_string(steps_max) +
                                                " steps for this run; choose a longer one");
      }
      steps_.resize(index + 1);
    }
    return steps_[index];
  }

  std::uint64_t step_ns_;
  std::vector<FlowStep> steps_;
};

}  // namespace iojoule::sim
