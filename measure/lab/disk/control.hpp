// The daemon's control socket: one line asks, one line of JSON answers, followed by so many raw
// bytes as its field `bytes` says. docs/lab.md lists the commands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "drive.hpp"

namespace iojoule::lab {

class Control {
 public:
  // Listens at `path`; throws std::system_error where it cannot.
  Control(const std::string& path, Drive& drive, int epoll_fd);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Whether a ready file descriptor of the epoll set is its own; then it was served.
  bool serve(int fd, std::uint32_t events);
  bool quit() const { return quit_; }

 private:
  struct Client {
    int fd;
    std::string asked, answer;
    std::size_t sent = 0;
  };

  void accept_client();
  bool converse(Client& client, std::uint32_t events);  // false: it has gone
  bool send(Client& client);
  std::string answer(const std::string& line);

  std::string path_;
  Drive& drive_;
  int epoll_fd_, listener_;
  std::vector<Client> clients_;
  bool quit_ = false;
};

}  // namespace iojoule::lab
