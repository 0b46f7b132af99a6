// iojoule-lab-nbd.so: the same drive behind nbdkit, where there is no FUSE or no root. nbdkit's
// threads put their requests into a list; the one thread that the drive belongs to serves it.
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "drive.hpp"
#include "error.hpp"
#include "reactor.hpp"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

namespace iojoule::lab {
namespace {

struct Job {
  RequestKind kind;
  std::uint64_t offset, bytes;
  int error = 0;
  std::binary_semaphore done{0};
};

class Service {
 public:
  Service(const std::string& drive_file, const std::string& control_path)
      : drive_(drive_file),
        reactor_(drive_, control_path),
        wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        thread_([this] { serve(); }) {}

  ~Service() {
    ending_ = true;
    wake();
    thread_.join();
    close(wake_fd_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Store& store() { return drive_.store(); }
  std::uint64_t bytes() const { return drive_.bytes(); }

  // Waits until the drive has done it; an errno, or 0.
  int run(RequestKind kind, std::uint64_t offset, std::uint64_t bytes) {
    Job job{kind, offset, bytes};
    {
      const std::lock_guard lock(mutex_);
      come_.push_back(&job);
    }
    wake();
    job.done.acquire();
    return job.error;
  }

 private:
  void wake() {
    const std::uint64_t one = 1;
    if (write(wake_fd_, &one, sizeof(one)) < 0) return;  // it is awake already
  }

  void serve() {
    reactor_.add(wake_fd_);
    be_prompt();
    while (!ending_ && !reactor_.quit()) {
      reactor_.wait([&](int) { take(); });
      reply();
    }
  }

  void take() {
    std::uint64_t count = 0;
    if (read(wake_fd_, &count, sizeof(count)) < 0) return;
    const std::lock_guard lock(mutex_);
    for (Job* job : come_) {
      const std::uint32_t ticket = drive_.submit(job->kind, job->offset, job->bytes);
      if (ticket >= jobs_.size()) jobs_.resize(ticket + 1);
      jobs_[ticket] = job;
    }
    come_.clear();
  }

  void reply() {
    replies_.clear();
    drive_.advance(replies_);
    for (const Drive::Reply& each : replies_) {
      drive_.answered(each);
      jobs_[each.ticket]->error = each.error;
      jobs_[each.ticket]->done.release();  // and with that it may be gone
    }
  }

  Drive drive_;
  Reactor reactor_;
  int wake_fd_;
  std::mutex mutex_;
  std::vector<Job*> come_;
  std::vector<Job*> jobs_;  // by ticket
  std::vector<Drive::Reply> replies_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

std::string drive_file, control_path;
std::unique_ptr<Service> service;

int on_config(const char* key, const char* value) {
  if (std::strcmp(key, "drive") == 0) {
    drive_file = value;
  } else if (std::strcmp(key, "control") == 0) {
    control_path = value;
  } else {
    nbdkit_error("knows drive=FILE and control=SOCKET, not %s", key);
    return -1;
  }
  return 0;
}

// After nbdkit has forked, if it does.
int on_after_fork() {
  try {
    service = std::make_unique<Service>(drive_file, control_path);
    return 0;
  } catch (const sim::ConfigError& error) {
    nbdkit_error("%s: %s: %s", drive_file.c_str(), error.field.c_str(), error.what());
  } catch (const std::exception& error) {
    nbdkit_error("%s", error.what());
  }
  return -1;
}

void on_cleanup() { service.reset(); }
void* on_open(int) { return NBDKIT_HANDLE_NOT_NEEDED; }
std::int64_t on_get_size(void*) { return static_cast<std::int64_t>(service->bytes()); }
int yes(void*) { return 1; }

int told(int error) {
  if (error == 0) return 0;
  nbdkit_set_error(error);
  return -1;
}

int on_pread(void*, void* buffer, std::uint32_t bytes, std::uint64_t offset, std::uint32_t) {
  const int error = service->run(RequestKind::read, offset, bytes);
  if (error == 0) std::memcpy(buffer, service->store().at(offset, bytes), bytes);
  return told(error);
}

int on_pwrite(void*, const void* buffer, std::uint32_t bytes, std::uint64_t offset, std::uint32_t) {
  service->store().write(offset, static_cast<const char*>(buffer), bytes);
  return told(service->run(RequestKind::write, offset, bytes));
}

int on_flush(void*, std::uint32_t) { return told(service->run(RequestKind::flush, 0, 0)); }

int on_trim(void*, std::uint32_t bytes, std::uint64_t offset, std::uint32_t) {
  service->store().discard(offset, bytes);
  return told(service->run(RequestKind::trim, offset, bytes));
}

nbdkit_plugin the_plugin() {
  nbdkit_plugin made{};
  made.name = "iojoule-lab";
  made.description = "a simulated NVMe drive in slow motion";
  made.config = on_config;
  made.after_fork = on_after_fork;
  made.cleanup = on_cleanup;
  made.open = on_open;
  made.get_size = on_get_size;
  made.pread = on_pread;
  made.pwrite = on_pwrite;
  made.can_write = yes;
  made.can_flush = yes;
  made.flush = on_flush;
  made.can_trim = yes;
  made.trim = on_trim;
  made.can_multi_conn = yes;
  return made;
}

nbdkit_plugin plugin = the_plugin();

}  // namespace
}  // namespace iojoule::lab

using iojoule::lab::plugin;
NBDKIT_REGISTER_PLUGIN(plugin)
