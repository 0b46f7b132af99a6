#include "control.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "error.hpp"

namespace iojoule::lab {

namespace {

using Words = std::istringstream;

std::uint64_t number(Words& words, const char* what) {
  std::uint64_t value = 0;
  if (!(words >> value)) throw std::invalid_argument(std::string("needs ") + what);
  return value;
}

// An object whose values are numbers, without the closing brace, so that bytes may follow it.
class Json {
 public:
  template <class Value>
  Json& put(const char* name, Value value) {
    text_ << (first_ ? "{\"" : ",\"") << name << "\":" << value;
    first_ = false;
    return *this;
  }
  std::string line() const { return text_.str() + "}\n"; }

 private:
  std::ostringstream text_ = [] {
    std::ostringstream made;
    made.precision(17);
    return made;
  }();
  bool first_ = true;
};

template <class Value>
std::string with_bytes(Json& json, const std::vector<Value>& values) {
  const std::size_t bytes = values.size() * sizeof(Value);
  std::string answer = json.put("bytes", bytes).line();
  const std::size_t head = answer.size();
  answer.resize(head + bytes);
  if (bytes > 0) std::memcpy(answer.data() + head, values.data(), bytes);
  return answer;
}

std::string status(Drive& drive) {
  const Totals totals = drive.totals();
  return Json()
      .put("now_ns", monotonic_ns())
      .put("capacity_bytes", drive.bytes())
      .put("power_state", drive.power_state())
      .put("active", drive.active() ? "true" : "false")
      .put("vanished", drive.vanished() ? "true" : "false")
      .put("outstanding", drive.outstanding())
      .put("joules", drive.power().joules())
      .put("temperature_celsius", drive.temperature_celsius())
      .put("read_commands", totals.read_commands)
      .put("write_commands", totals.write_commands)
      .put("other_commands", totals.other_commands)
      .put("failed_commands", totals.failed_commands)
      .put("read_bytes", totals.read_bytes)
      .put("written_bytes", totals.written_bytes)
      .put("busy_ns", totals.busy_ns)
      .put("programmed_pages", totals.programmed_pages)
      .put("erased_blocks", totals.erased_blocks)
      .put("throttled_ns", totals.throttled_ns)
      .put("dropped_bytes", drive.store().dropped_bytes())
      .put("blocks", drive.blocks())
      .put("erase_cycles_limit", drive.erase_cycles_limit())
      .line();
}

std::string watts(Drive& drive, Words& words) {
  std::vector<float> values;
  const PowerRecord& power = drive.power();
  const std::uint64_t from_ns = power.watts_from(number(words, "a time in ns"), values);
  return with_bytes(Json().put("start_ns", from_ns).put("step_ns", power.step_ns()), values);
}

// The first completion not before a time; they are in order of time.
std::uint64_t find(const Ring<Entry>& entries, std::uint64_t at_ns) {
  std::size_t low = 0, high = entries.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    (entries[middle].done_ns < at_ns ? low : high) = entries[middle].done_ns < at_ns ? middle + 1 : middle;
  }
  return low;
}

// At most so many completions, so that the drive is not kept waiting.
constexpr std::size_t entries_at_once = 16384;

std::string completions(Drive& drive, Words& words) {
  const Ring<Entry>& entries = drive.entries();
  const std::uint64_t begin_ns = number(words, "two times in ns");
  const std::uint64_t end_ns = number(words, "two times in ns");
  std::uint64_t skip = 0;
  words >> skip;
  const std::size_t first = find(entries, begin_ns) + skip;
  const std::size_t last = find(entries, end_ns);
  std::vector<Entry> found;
  for (std::size_t i = first; i < last && found.size() < entries_at_once; ++i) {
    found.push_back(entries[i]);
  }
  const std::uint64_t oldest_ns = entries.dropped() > 0 ? entries[0].done_ns : 0;
  return with_bytes(Json()
                        .put("oldest_ns", oldest_ns)
                        .put("more", first + found.size() < last ? "true" : "false"),
                    found);
}

std::string joules(Drive& drive, Words& words) {
  const PowerRecord& power = drive.power();
  const std::uint64_t begin_ns = number(words, "two times in ns");
  const std::uint64_t end_ns = number(words, "two times in ns");
  return Json()
      .put("joules", power.joules_at(end_ns) - power.joules_at(begin_ns))
      .put("oldest_ns", power.oldest_ns())
      .put("newest_ns", power.end_ns())
      .line();
}

// moves FROM TO IDLE_NS ...
std::string moves(Drive& drive, Words& words) {
  std::vector<sim::PowerTransition> all;
  sim::PowerTransition move;
  while (words >> move.from_state >> move.to_state >> move.idle_ns) all.push_back(move);
  drive.set_transitions(all);
  return "{}\n";
}

std::string fault(Drive& drive, Words& words) {
  std::string kind;
  words >> kind;
  if (kind == "eio") {
    drive.fail_next(number(words, "how many requests fail"));
  } else if (kind == "stall") {
    drive.stall(monotonic_ns() + number(words, "how many ns"));
  } else if (kind == "vanish") {
    drive.vanish();
  } else if (kind == "none") {
    drive.end_faults();
  } else {
    throw std::invalid_argument("knows the faults eio, stall, vanish and none");
  }
  return "{}\n";
}

using Command = std::function<std::string(Drive&, Words&)>;

const std::map<std::string, Command>& commands() {
  static const std::map<std::string, Command> known = {
      {"status", [](Drive& drive, Words&) { return status(drive); }},
      {"state",
       [](Drive& drive, Words& words) {
         drive.set_power_state(static_cast<std::uint32_t>(number(words, "a power state")));
         return Json().put("power_state", drive.power_state()).line();
       }},
      {"cache",
       [](Drive& drive, Words& words) {
         drive.set_write_cache(number(words, "0 or 1") != 0);
         return std::string("{}\n");
       }},
      {"format",
       [](Drive& drive, Words&) {
         drive.format();
         return std::string("{}\n");
       }},
      {"moves", moves},
      {"watts", watts},
      {"completions", completions},
      {"joules", joules},
      {"fault", fault},
  };
  return known;
}

std::string refusal(const std::string& why) {
  std::string text = "{\"error\":\"";
  for (const char c : why) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"}\n";
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Control::Control(const std::string& path, Drive& drive, int epoll_fd)
    : path_(path),
      drive_(drive),
      epoll_fd_(epoll_fd),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    throw std::invalid_argument(path + ": is too long for a socket; choose a shorter folder");
  }
  path.copy(address.sun_path, path.size());
  unlink(path.c_str());
  if (listener_ < 0 ||
      bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, 16) != 0) {
    fail(path.c_str());
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener_;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, listener_, &event) != 0) fail("epoll_ctl");
}

Control::~Control() {
  for (const Client& client : clients_) close(client.fd);
  close(listener_);
  unlink(path_.c_str());
}

bool Control::serve(int fd, std::uint32_t events) {
  if (fd == listener_) {
    accept_client();
    return true;
  }
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].fd != fd) continue;
    if (!converse(clients_[i], events)) {
      close(fd);  // and with that out of the epoll set
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return true;
  }
  return false;
}

void Control::accept_client() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
  clients_.push_back({fd, {}, {}});
}

bool Control::converse(Client& client, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !send(client)) return false;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return true;
  std::array<char, 4096> buffer{};
  const ssize_t got = read(client.fd, buffer.data(), buffer.size());
  if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
  if (got > 0) client.asked.append(buffer.data(), static_cast<std::size_t>(got));
  if (client.asked.size() > 65536) return false;
  for (std::size_t end = 0; (end = client.asked.find('\n')) != std::string::npos;) {
    client.answer += answer(client.asked.substr(0, end));
    client.asked.erase(0, end + 1);
  }
  return send(client);
}

bool Control::send(Client& client) {
  while (client.sent < client.answer.size()) {
    const ssize_t sent = ::send(client.fd, client.answer.data() + client.sent,
                                client.answer.size() - client.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) break;
    client.sent += static_cast<std::size_t>(sent);
  }
  const bool all = client.sent == client.answer.size();
  if (all) {
    client.answer.clear();
    client.sent = 0;
  }
  epoll_event event{};
  event.events = EPOLLIN | (all ? 0U : static_cast<std::uint32_t>(EPOLLOUT));
  event.data.fd = client.fd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, client.fd, &event);
  return true;
}

std::string Control::answer(const std::string& line) {
  Words words(line);
  std::string name;
  words >> name;
  if (name == "quit") {
    quit_ = true;
    return "{}\n";
  }
  drive_.catch_up();  // so that no answer is of an earlier time than its request
  const auto found = commands().find(name);
  if (found == commands().end()) return refusal("unknown command: " + name);
  try {
    return found->second(drive_, words);
  } catch (const std::invalid_argument& error) {
    return refusal(name + " " + error.what());
  } catch (const sim::ConfigError& error) {
    return refusal(error.field + ": " + error.what());
  }
}

}  // namespace iojoule::lab
