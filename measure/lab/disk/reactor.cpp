#include "reactor.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace iojoule::lab {

void be_prompt() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  sched_param priority{};
  priority.sched_priority = 20;
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) setpriority(PRIO_PROCESS, 0, -20);
}

Reactor::Reactor(Drive& drive, const std::string& control_path)
    : drive_(drive),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      timer_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      control_(control_path, drive, epoll_fd_) {
  if (epoll_fd_ < 0 || timer_fd_ < 0) {
    throw std::system_error(errno, std::generic_category(), "epoll or timerfd");
  }
  add(timer_fd_);
}

Reactor::~Reactor() {
  close(timer_fd_);
  close(epoll_fd_);
}

void Reactor::add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void Reactor::wait(const std::function<void(int fd)>& ready) {
  const std::uint64_t wake_ns = drive_.next_wake_ns();
  if (wake_ns != armed_ns_) {
    armed_ns_ = wake_ns;
    itimerspec at{};
    at.it_value.tv_sec = static_cast<time_t>(wake_ns / 1'000'000'000U);
    at.it_value.tv_nsec = static_cast<long>(wake_ns % 1'000'000'000U);
    timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &at, nullptr);
  }
  std::array<epoll_event, 16> events{};
  const int count = epoll_wait(epoll_fd_, events.data(), events.size(), -1);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == timer_fd_) {
      std::uint64_t expirations = 0;
      armed_ns_ = 0;
      if (read(timer_fd_, &expirations, sizeof(expirations)) < 0) continue;  // it was set anew
    } else if (!control_.serve(event.data.fd, event.events)) {
      ready(event.data.fd);
    }
  }
}

}  // namespace iojoule::lab
