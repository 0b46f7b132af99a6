#include "drive.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>

namespace iojoule::lab {

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Drive::Drive(const std::string& path)
    : model_(read_model(path, power_step_ns)),
      model_from_ns_(monotonic_ns()),
      store_(model_->sectors() * sector_bytes, model_->kept_bytes()),
      power_(model_from_ns_, power_step_ns, watts_kept) {}

// --- commands --------------------------------------------------------------------------------------

std::uint32_t Drive::submit(RequestKind kind, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t now_ns = monotonic_ns();
  std::uint32_t ticket = 0;
  if (free_.empty()) {
    ticket = static_cast<std::uint32_t>(requests_.size());
    requests_.emplace_back();
  } else {
    ticket = free_.back();
    free_.pop_back();
  }
  const bool fails = vanished_ || to_fail_ > 0;
  requests_[ticket] = {now_ns, bytes, kind, !fails};
  if (under_way_++ == 0) busy_since_ns_ = now_ns;
  if (fails) {
    if (to_fail_ > 0) --to_fail_;
    due_.push_back({ticket, EIO});
    return ticket;
  }
  const bool flush = kind == RequestKind::flush;
  const std::uint64_t first = offset / sector_bytes;
  const std::uint64_t end = (offset + bytes + sector_bytes - 1) / sector_bytes;
  model_->submit(kind, flush ? 0 : first, flush ? 0 : static_cast<std::uint32_t>(end - first),
                ticket, model_ns(now_ns));
  return ticket;
}

void Drive::let_pass(std::uint64_t now_ns) {
  model_->advance(model_ns(now_ns), done_);
  for (const auto& each : done_) {
    const auto ticket = static_cast<std::uint32_t>(each.cookie);
    requests_[ticket].in_drive = false;
    due_.push_back({ticket, 0});
  }
  done_.clear();
}

void Drive::catch_up() {
  let_pass(monotonic_ns());
  take_power();
}

void Drive::take_power() {
  steps_.clear();
  model_->take_steps(steps_);
  if (steps_.empty()) return;
  double joules = 0;
  for (const double step : steps_) {
    power_.push(step);
    joules += step;
  }
  const double seconds = static_cast<double>(steps_.size() * power_step_ns) * 1e-9;
  const double towards = ambient_celsius + celsius_per_watt * joules / seconds;
  celsius_ += (towards - celsius_) * std::min(1.0, seconds / warming_seconds);
}

void Drive::advance(std::vector<Reply>& replies) {
  const std::uint64_t now_ns = monotonic_ns();
  let_pass(now_ns);
  if (now_ns >= power_.end_ns() + power_rest_ns) take_power();
  if (now_ns < stalled_until_ns_) return;
  for (const Reply& reply : due_) replies.push_back({reply.ticket, vanished_ ? EIO : reply.error});
  due_.clear();
}

void Drive::answered(const Reply& reply) {
  const std::uint64_t now_ns = monotonic_ns();
  const Request& request = requests_[reply.ticket];
  const bool failed = reply.error != 0;
  entries_.push(entry_of(request.arrived_ns, now_ns, request.bytes / sector_bytes, request.kind,
                         failed));
  free_.push_back(reply.ticket);
  if (--under_way_ == 0) totals_.busy_ns += now_ns - busy_since_ns_;
  if (failed) {
    ++totals_.failed_commands;
  } else if (request.kind == RequestKind::read) {
    ++totals_.read_commands;
    totals_.read_bytes += request.bytes;
  } else if (request.kind == RequestKind::write) {
    ++totals_.write_commands;
    totals_.written_bytes += request.bytes;
  } else {
    ++totals_.other_commands;
  }
}

std::uint64_t Drive::next_wake_ns() const {
  const std::uint64_t now_ns = model_->now_ns();
  if (!due_.empty()) return std::max(model_from_ns_ + now_ns, stalled_until_ns_);
  return model_from_ns_ + std::min(model_->due_ns(), now_ns + rest_ns);
}

Totals Drive::totals() const {
  Totals totals = totals_;
  if (under_way_ > 0) totals.busy_ns += monotonic_ns() - busy_since_ns_;
  const Model::Work work = model_->work();
  totals.programmed_pages += work.programmed_pages;
  totals.erased_blocks += work.erased_blocks;
  totals.throttled_ns += work.throttled_ns;
  return totals;
}

// --- the controller's side -------------------------------------------------------------------------

void Drive::set_power_state(std::uint32_t state) {
  model_->set_power_state(state, model_ns(monotonic_ns()));
}

void Drive::set_transitions(const std::vector<sim::PowerTransition>& moves) {
  model_->set_transitions(moves, model_ns(monotonic_ns()));
}

void Drive::set_write_cache(bool on) { model_->set_write_cache(on); }

void Drive::format() {
  catch_up();
  for (std::uint32_t ticket = 0; ticket < requests_.size(); ++ticket) {
    if (!requests_[ticket].in_drive) continue;
    requests_[ticket].in_drive = false;
    due_.push_back({ticket, EIO});
  }
  Totals totals = this->totals();
  totals.busy_ns = totals_.busy_ns;  // what is under way still counts from its beginning
  totals_ = totals;
  model_from_ns_ = power_.end_ns();  // where the power series goes on
  model_->format();
  store_.discard(0, store_.bytes());
}

void Drive::end_faults() {
  to_fail_ = stalled_until_ns_ = 0;
  vanished_ = false;
}

}  // namespace iojoule::lab
