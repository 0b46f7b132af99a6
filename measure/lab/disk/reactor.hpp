// What both servers of the lab's drive share: one thread that waits for the next event of the model,
// for control clients and for what the server itself adds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control.hpp"
#include "drive.hpp"

namespace iojoule::lab {

// Real-time priority where the system lets us, else the best nice value; timers without slack.
void be_prompt();

class Reactor {
 public:
  Reactor(Drive& drive, const std::string& control_path);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // Something of the server's own to wait for.
  void add(int fd);
  // Waits until something is to be done. `ready` is called for each of the server's descriptors that
  // is ready; then the caller lets the drive advance.
  void wait(const std::function<void(int fd)>& ready);
  bool quit() const { return control_.quit(); }
  int epoll_fd() const { return epoll_fd_; }

 private:
  Drive& drive_;
  int epoll_fd_, timer_fd_;
  std::uint64_t armed_ns_ = 0;
  Control control_;
};

}  // namespace iojoule::lab
