// iojoule-lab-disk: a FUSE file system of one file, `drive`, whose requests complete when the
// simulated drive says so. One thread does everything.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <string>
#include <sys/statvfs.h>
#include <unistd.h>
#include <vector>

#include "drive.hpp"
#include "error.hpp"
#include "reactor.hpp"

namespace iojoule::lab {
namespace {

constexpr fuse_ino_t file_ino = 2;
constexpr const char* file_name = "drive";
constexpr double forever_seconds = 86400;

volatile std::sig_atomic_t signalled = 0;
void on_signal(int) { signalled = 1; }

// What a request needs to be answered, by its ticket.
struct Waiting {
  fuse_req_t request = nullptr;
  RequestKind kind = RequestKind::read;
  std::uint64_t offset = 0, bytes = 0;
};

class Server {
 public:
  explicit Server(Drive& drive) : drive_(drive) {}

  void take(fuse_req_t request, RequestKind kind, std::uint64_t offset, std::uint64_t bytes) {
    const std::uint32_t ticket = drive_.submit(kind, offset, bytes);
    if (ticket >= waiting_.size()) waiting_.resize(ticket + 1);
    waiting_[ticket] = {request, kind, offset, bytes};
  }

  void reply() {
    replies_.clear();
    drive_.advance(replies_);
    for (const Drive::Reply& each : replies_) {
      const Waiting& waiting = waiting_[each.ticket];
      if (each.error != 0) {
        fuse_reply_err(waiting.request, each.error);
      } else if (waiting.kind == RequestKind::read) {
        const char* data = drive_.store().at(waiting.offset, waiting.bytes);
        fuse_reply_buf(waiting.request, data, waiting.bytes);
      } else if (waiting.kind == RequestKind::write) {
        fuse_reply_write(waiting.request, waiting.bytes);
      } else {
        fuse_reply_err(waiting.request, 0);
      }
      drive_.answered(each);
    }
  }

  Drive& drive() { return drive_; }

 private:
  Drive& drive_;
  std::vector<Waiting> waiting_;
  std::vector<Drive::Reply> replies_;
};

Server& server_of(fuse_req_t request) { return *static_cast<Server*>(fuse_req_userdata(request)); }

struct stat attributes(fuse_ino_t ino, std::uint64_t bytes) {
  struct stat st {};
  st.st_ino = ino;
  st.st_uid = getuid();
  st.st_gid = getgid();
  st.st_blksize = 4096;
  if (ino == FUSE_ROOT_ID) {
    st.st_mode = S_IFDIR | 0755;
    st.st_nlink = 2;
  } else {
    st.st_mode = S_IFREG | 0600;
    st.st_nlink = 1;
    st.st_size = static_cast<off_t>(bytes);
    st.st_blocks = static_cast<blkcnt_t>(bytes / 512);
  }
  return st;
}

void on_init(void*, fuse_conn_info* connection) {
  connection->max_background = 1024;
  connection->congestion_threshold = 1024;
  connection->want |= connection->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_ASYNC_READ);
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                                             FUSE_CAP_SPLICE_MOVE | FUSE_CAP_WRITEBACK_CACHE);
}

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (parent != FUSE_ROOT_ID || std::strcmp(name, file_name) != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = file_ino;
  entry.attr = attributes(file_ino, server_of(request).drive().bytes());
  entry.attr_timeout = entry.entry_timeout = forever_seconds;
  fuse_reply_entry(request, &entry);
}

void on_getattr(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
  const struct stat st = attributes(ino, server_of(request).drive().bytes());
  fuse_reply_attr(request, &st, forever_seconds);
}

// Times may be set, the size may not.
void on_setattr(fuse_req_t request, fuse_ino_t ino, struct stat*, int to_set, fuse_file_info* file) {
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    fuse_reply_err(request, EPERM);
    return;
  }
  on_getattr(request, ino, file);
}

void on_readdir(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info*) {
  if (offset > 0) {
    fuse_reply_buf(request, nullptr, 0);
    return;
  }
  std::vector<char> buffer(size);
  const struct stat st = attributes(file_ino, 0);
  const std::size_t used =
      fuse_add_direntry(request, buffer.data(), buffer.size(), file_name, &st, 1);
  fuse_reply_buf(request, buffer.data(), std::min(used, size));
}

void on_open(fuse_req_t request, fuse_ino_t ino, fuse_file_info* file) {
  if (ino != file_ino) {
    fuse_reply_err(request, EISDIR);
    return;
  }
  file->direct_io = 1;
  fuse_reply_open(request, file);
}

// A request past the end is cut there, as in any file.
std::uint64_t cut(const Drive& drive, off_t offset, std::uint64_t bytes) {
  const auto from = static_cast<std::uint64_t>(offset);
  return from >= drive.bytes() ? 0 : std::min(bytes, drive.bytes() - from);
}

void on_read(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info*) {
  Server& server = server_of(request);
  const std::uint64_t bytes = cut(server.drive(), offset, size);
  if (bytes == 0) {
    fuse_reply_buf(request, nullptr, 0);
    return;
  }
  server.take(request, RequestKind::read, static_cast<std::uint64_t>(offset), bytes);
}

void on_write(fuse_req_t request, fuse_ino_t, const char* data, std::size_t size, off_t offset,
              fuse_file_info*) {
  Server& server = server_of(request);
  const auto from = static_cast<std::uint64_t>(offset);
  const std::uint64_t bytes = cut(server.drive(), offset, size);
  if (bytes == 0) {
    fuse_reply_err(request, ENOSPC);
    return;
  }
  server.drive().store().write(from, data, bytes);
  server.take(request, RequestKind::write, from, bytes);
}

void on_fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  server_of(request).take(request, RequestKind::flush, 0, 0);
}

void on_fallocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t length,
                  fuse_file_info*) {
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) == 0) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  Server& server = server_of(request);
  const auto from = static_cast<std::uint64_t>(offset);
  const std::uint64_t bytes = cut(server.drive(), offset, static_cast<std::uint64_t>(length));
  if (bytes == 0) {
    fuse_reply_err(request, 0);
    return;
  }
  server.drive().store().discard(from, bytes);
  server.take(request, RequestKind::trim, from, bytes);
}

void on_statfs(fuse_req_t request, fuse_ino_t) {
  struct statvfs st {};
  st.f_bsize = st.f_frsize = 4096;
  st.f_blocks = server_of(request).drive().bytes() / 4096;
  st.f_namemax = 255;
  fuse_reply_statfs(request, &st);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  ops.lookup = on_lookup;
  ops.getattr = on_getattr;
  ops.setattr = on_setattr;
  ops.readdir = on_readdir;
  ops.open = on_open;
  ops.read = on_read;
  ops.write = on_write;
  ops.fsync = on_fsync;
  ops.fallocate = on_fallocate;
  ops.statfs = on_statfs;
  return ops;
}

void serve(fuse_session* session, Server& server, Reactor& reactor) {
  const int fd = fuse_session_fd(session);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  reactor.add(fd);
  fuse_buf buffer{};
  while (!fuse_session_exited(session) && !reactor.quit() && signalled == 0) {
    reactor.wait([&](int) {
      while (fuse_session_receive_buf(session, &buffer) > 0) {
        fuse_session_process_buf(session, &buffer);
      }
    });
    server.reply();
  }
  std::free(buffer.mem);
}

int run(const std::string& drive_file, const std::string& mount_point,
        const std::string& control_path) {
  Drive drive(drive_file);
  Server server(drive);
  const fuse_lowlevel_ops ops = operations();
  std::vector<std::string> words = {"iojoule-lab-disk", "-o", "fsname=iojoule-lab,subtype=iojoule"};
  if (getuid() == 0) words.back() += ",allow_other";
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  fuse_args args = FUSE_ARGS_INIT(static_cast<int>(argv.size()), argv.data());
  fuse_session* session = fuse_session_new(&args, &ops, sizeof(ops), &server);
  if (session == nullptr || fuse_session_mount(session, mount_point.c_str()) != 0) return 1;
  {
    Reactor reactor(drive, control_path);
    be_prompt();
    serve(session, server, reactor);
  }
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  fuse_opt_free_args(&args);
  return 0;
}

}  // namespace
}  // namespace iojoule::lab

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: iojoule-lab-disk DRIVE_FILE MOUNT_POINT CONTROL_SOCKET\n", stderr);
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = iojoule::lab::on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  try {
    return iojoule::lab::run(argv[1], argv[2], argv[3]);
  } catch (const iojoule::sim::ConfigError& error) {
    std::fprintf(stderr, "%s: %s: %s\n", argv[1], error.field.c_str(), error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
