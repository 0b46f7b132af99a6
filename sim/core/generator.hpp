// The requests a synthetic flow makes, drawn in MQSim's order (mqsim.md, 3.10).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "config.hpp"
#include "divisor.hpp"
#include "geometry.hpp"
#include "random.hpp"

namespace iojoule::sim {

struct Request {
  std::uint64_t start_sector;  // of the device
  std::uint32_t sectors;
  bool is_read;
};

class RequestGenerator {
 public:
  // The last sector that a synthetic flow starts a request in.
  static std::uint64_t working_set_end(const FlowConfig& flow, const FlowSpace& space) {
    const double share = static_cast<double>(flow.working_set_percent) / 100.0;
    return space.first_sector +
           static_cast<std::uint64_t>(static_cast<double>(space.sectors - 1) * share);
  }

  // What the stream is drawn for. MQSim's preconditioning replays a flow with slips: the working set ends
  // one sector sooner, a sequential stream begins where it was drawn, not aligned, and hot and cold regions
  // are those of `want_pages` or none.
  enum class Purpose : std::uint8_t { flow, preconditioning };

  RequestGenerator(const FlowConfig& flow, const FlowSpace& space, Purpose purpose = Purpose::flow)
      : flow_(flow),
        purpose_(purpose),
        alignment_(flow.alignment_sectors),
        first_(space.first_sector),
        last_(working_set_end(flow, space) - (purpose == Purpose::preconditioning ? 1 : 0)),
        hot_last_(first_ + static_cast<std::uint64_t>(static_cast<double>(last_ - first_) * hot_share(flow))),
        type_(flow.seed),
        address_(flow.seed + 1),
        hot_address_(flow.seed + 2),
        hot_choice_(flow.seed + 3),
        size_(flow.seed + 2 + 2 * is_hot_cold(flow)),
        interval_(flow.seed + 2 + 2 * is_hot_cold(flow) + (flow.size_distribution == SizeDistribution::normal)),
        interval_mean_ns_(mean_interval_ns(flow)) {
    if (flow.address_distribution == AddressDistribution::streaming) {
      next_streamed_ = address_.uniform(first_, last_);
      if (purpose == Purpose::flow) next_streamed_ = aligned(next_streamed_);
    }
  }

  // Of a hot region of at most 30 % MQSim preconditions the whole in sequence, then the cold rest at
  // random, where at least as many pages are wanted as there are from the page of the drive that the flow
  // begins in to that before the region's last: the region begins `offset` sectors behind that page's start.
  void want_pages(std::uint64_t pages, std::uint32_t page_sectors, std::uint64_t offset) {
    hot_then_cold_ = has_small_hot_region(flow_) && pages >= (hot_last_ - first_ + offset) / page_sectors;
    if (hot_then_cold_) next_streamed_ = first_;
  }

  static std::uint64_t mean_interval_ns(const FlowConfig& flow) {
    const std::uint64_t requests = flow.bandwidth_bytes_per_second / sector_bytes / flow.size_mean_sectors;
    return requests == 0 ? 0 : 1'000'000'000ULL / requests;
  }

  // Whether the last request was one to the hot region.
  bool was_hot() const { return was_hot_; }

  static bool has_small_hot_region(const FlowConfig& flow) {
    return is_hot_cold(flow) && flow.hot_region_percent > 0 && flow.hot_region_percent <= 30;
  }

  Request next() {
    Request request{};
    request.is_read = purpose_ == Purpose::preconditioning || next_is_read();  // there nobody asks
    request.sectors = next_size();
    request.start_sector = next_address(request.sectors);
    return request;
  }

  // Bandwidth generator: ns to the next arrival, exponentially distributed.
  std::uint64_t next_interval_ns() {
    return static_cast<std::uint64_t>(interval_.exponential(static_cast<double>(interval_mean_ns_)));
  }

 private:
  static bool is_hot_cold(const FlowConfig& flow) {
    return flow.address_distribution == AddressDistribution::random_hotcold;
  }
  static double hot_share(const FlowConfig& flow) {
    return static_cast<double>(flow.hot_region_percent) / 100.0;
  }
  std::uint64_t aligned(std::uint64_t sector) const {
    return flow_.aligned ? sector - alignment_.remainder(sector) : sector;
  }

  // A flow of one kind needs no draws: nothing else is drawn from their stream.
  bool next_is_read() {
    if (flow_.read_percent == 0) return false;
    return flow_.read_percent >= 100 || type_.uniform() <= static_cast<double>(flow_.read_percent) / 100.0;
  }

  std::uint32_t next_size() {
    if (flow_.size_distribution == SizeDistribution::fixed) return flow_.size_mean_sectors;
    return size_.normal_sectors(flow_.size_mean_sectors, flow_.size_sd_sectors);
  }

  std::uint64_t next_address(std::uint32_t sectors) {
    switch (flow_.address_distribution) {
      case AddressDistribution::streaming: return next_streamed(sectors);
      case AddressDistribution::random_hotcold:
        if (purpose_ == Purpose::preconditioning && !has_small_hot_region(flow_)) return uniform_address(sectors);
        if (hot_then_cold_) return next_hot_then_cold(sectors);
        // (100 - h) % of the requests go to the first h % of the space; no check at the end of it
        was_hot_ = hot_choice_.uniform() >= hot_share(flow_);
        if (!was_hot_) {
          return aligned(hot_address_.uniform(hot_last_ + 1, last_));
        }
        return aligned(hot_address_.uniform(first_, hot_last_));
      default: return uniform_address(sectors);
    }
  }

  // A request that would pass the end of the working set starts at the flow's beginning instead.
  std::uint64_t uniform_address(std::uint32_t sectors) {
    std::uint64_t start = address_.uniform(first_, last_);
    if (start + sectors > last_) start = first_;
    return aligned(start);
  }

  // The walk goes on from where the request was drawn, not from where it was aligned to, and ends with the
  // first that is drawn behind the hot region.
  std::uint64_t next_hot_then_cold(std::uint32_t sectors) {
    was_hot_ = walking_;
    if (walking_) {
      const std::uint64_t start = next_streamed_;
      walking_ = start <= hot_last_;
      next_streamed_ = start + sectors;
      return aligned(start);
    }
    std::uint64_t start = hot_address_.uniform(hot_last_ + 1, last_);
    if (start + sectors > last_) start = hot_last_ + 1;
    return aligned(start);
  }

  std::uint64_t aligned_up(std::uint64_t sector) const {
    return flow_.aligned ? aligned(sector + flow_.alignment_sectors - 1) : sector;
  }

  std::uint64_t next_streamed(std::uint32_t sectors) {
    std::uint64_t start = next_streamed_;
    if (start + sectors > last_) start = first_;
    next_streamed_ += sectors;  // MQSim goes on from where the request would have begun
    if (next_streamed_ > last_) next_streamed_ = first_;
    next_streamed_ = aligned_up(next_streamed_);
    return aligned(start);
  }

  // MQSim's normal distribution of sizes: polar pairs, rounded up to whole sectors.
  class NormalStream : public RandomStream {
   public:
    using RandomStream::RandomStream;
    std::uint32_t normal_sectors(std::uint32_t mean, std::uint32_t sd) {
      const double x = mean + sd * standard_normal();
      return x < 1 ? 1 : static_cast<std::uint32_t>(std::ceil(x));
    }

   private:
    double standard_normal() {
      if (spare_) {
        const double x = *spare_;
        spare_.reset();
        return x;
      }
      while (true) {
        const double a = 2 * uniform() - 1;
        const double b = 2 * uniform() - 1;
        const double s = a * a + b * b;
        if (s >= 1 || s == 0) continue;
        const double scale = std::sqrt(-2 * std::log(s) / s);
        spare_ = b * scale;
        return a * scale;
      }
    }
    std::optional<double> spare_;
  };

  const FlowConfig flow_;
  const Purpose purpose_;
  const Divisor alignment_;
  std::uint64_t first_, last_, hot_last_;
  std::uint64_t next_streamed_ = 0;
  bool hot_then_cold_ = false, walking_ = true, was_hot_ = false;
  RandomStream type_, address_, hot_address_, hot_choice_;
  NormalStream size_;
  RandomStream interval_;
  std::uint64_t interval_mean_ns_;
};

}  // namespace iojoule::sim
