// A library to be preloaded: lets the `nvme` command, and whatever else sends NVMe ioctls, talk to
// the lab's controller. Files of the lab stand in for device nodes; everything else passes through.
//
// IOJOULE_LAB_NODES names the nodes, separated by colons: controller (character device), namespace
// (block device), and the drive that the data go through, which is a block device already.
// IOJOULE_LAB_CONTROLLER names the socket that answers: struct question, then the data that go to the
// controller; back come struct answer and as many bytes of data as it says.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONTROLLER, NAMESPACE, DRIVE, NODES };

static struct {
  int known;
  dev_t device, rdev;
  ino_t inode;
} nodes[NODES];
static struct sockaddr_un server;

struct question {
  uint32_t request, data_bytes;
  struct nvme_passthru_cmd command;
};

struct answer {
  int32_t status;  // of the ioctl: 0, an NVMe status, or minus an errno
  uint32_t data_bytes;
  uint64_t result;
};

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
  const char *paths = getenv("IOJOULE_LAB_NODES"), *socket_path = getenv("IOJOULE_LAB_CONTROLLER");
  if (paths == NULL || socket_path == NULL || strlen(socket_path) >= sizeof(server.sun_path)) return;
  server.sun_family = AF_UNIX;
  strcpy(server.sun_path, socket_path);
  char *copy = strdup(paths), *rest = copy;
  for (int i = 0; i < NODES; ++i) {
    const char *path = strsep(&rest, ":");
    struct stat st;
    if (path == NULL || *path == '\0' || REAL(stat)(path, &st) != 0) continue;
    nodes[i].known = 1;
    nodes[i].device = st.st_dev;
    nodes[i].inode = st.st_ino;
    nodes[i].rdev = S_ISBLK(st.st_mode) ? st.st_rdev : 0;
  }
  free(copy);
}

// Of a device node only the number counts: there may be several nodes of one device.
static int node_of(dev_t device, ino_t inode, dev_t rdev, int is_block) {
  for (int i = 0; i < NODES; ++i) {
    if (!nodes[i].known) continue;
    if (nodes[i].rdev != 0 ? is_block && nodes[i].rdev == rdev
                           : nodes[i].device == device && nodes[i].inode == inode) {
      return i;
    }
  }
  return NODES;
}

// --- what the nodes look like ----------------------------------------------------------------------

#define DISGUISE(st)                                                                       \
  do {                                                                                     \
    if (!S_ISREG((st)->st_mode)) break;                                                    \
    const int node = node_of((st)->st_dev, (st)->st_ino, 0, 0);                            \
    if (node > NAMESPACE) break;                                                           \
    (st)->st_mode = ((st)->st_mode & 07777) | (node == CONTROLLER ? S_IFCHR : S_IFBLK);    \
    (st)->st_rdev = node == CONTROLLER ? makedev(240, 0) : makedev(259, 0);                \
  } while (0)

#define STAT(name, type, parameters, arguments) \
  int name parameters {                         \
    const int status = REAL(name) arguments;    \
    if (status == 0) DISGUISE(st);              \
    return status;                              \
  }

STAT(stat, struct stat, (const char *restrict path, struct stat *restrict st), (path, st))
STAT(lstat, struct stat, (const char *restrict path, struct stat *restrict st), (path, st))
STAT(fstat, struct stat, (int fd, struct stat *st), (fd, st))
STAT(fstatat, struct stat,
     (int fd, const char *restrict path, struct stat *restrict st, int flags),
     (fd, path, st, flags))
STAT(stat64, struct stat64, (const char *restrict path, struct stat64 *restrict st), (path, st))
STAT(lstat64, struct stat64, (const char *restrict path, struct stat64 *restrict st), (path, st))
STAT(fstat64, struct stat64, (int fd, struct stat64 *st), (fd, st))
STAT(fstatat64, struct stat64,
     (int fd, const char *restrict path, struct stat64 *restrict st, int flags),
     (fd, path, st, flags))

// Of programs that were linked before glibc 2.33.
int __fxstat(int version, int fd, struct stat *st);
STAT(__fxstat, struct stat, (int version, int fd, struct stat *st), (version, fd, st))
int __xstat(int version, const char *path, struct stat *st);
STAT(__xstat, struct stat, (int version, const char *path, struct stat *st), (version, path, st))

int statx(int fd, const char *restrict path, int flags, unsigned mask, struct statx *restrict st) {
  const int status = REAL(statx)(fd, path, flags, mask, st);
  if (status != 0 || !S_ISREG(st->stx_mode)) return status;
  const int node = node_of(makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino, 0, 0);
  if (node > NAMESPACE) return status;
  st->stx_mode = (uint16_t)((st->stx_mode & 07777) | (node == CONTROLLER ? S_IFCHR : S_IFBLK));
  st->stx_rdev_major = node == CONTROLLER ? 240 : 259;
  st->stx_rdev_minor = 0;
  return status;
}

// --- what the controller answers -------------------------------------------------------------------

static int move_all(int fd, void *data, size_t bytes, int sends) {
  char *at = data;
  while (bytes > 0) {
    const ssize_t moved = sends ? send(fd, at, bytes, MSG_NOSIGNAL) : read(fd, at, bytes);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return -1;
    at += moved;
    bytes -= (size_t)moved;
  }
  return 0;
}

static int vanished(void) {
  errno = ENODEV;
  return -1;
}

// A status below zero is minus an errno, as the driver has it.
static int submit(uint32_t request, const struct nvme_passthru_cmd *command, uint64_t *result) {
  struct question question = {request, command->data_len, *command};
  struct answer answer;
  void *data = (void *)(uintptr_t)command->addr;
  const int to_controller = (command->opcode & 3) == 1;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int failed = connect(fd, (struct sockaddr *)&server, sizeof(server)) != 0 ||
               move_all(fd, &question, sizeof(question), 1) != 0 ||
               (to_controller && move_all(fd, data, command->data_len, 1) != 0) ||
               move_all(fd, &answer, sizeof(answer), 0) != 0 ||
               answer.data_bytes > command->data_len ||
               move_all(fd, data, answer.data_bytes, 0) != 0;
  close(fd);
  if (failed) return vanished();
  *result = answer.result;
  if (answer.status >= 0) return answer.status;
  errno = -answer.status;
  return -1;
}

static int answer_ioctl(int node, unsigned long request, void *argument) {
  struct nvme_passthru_cmd command;
  uint64_t result = 0;
  int status = 0;
  switch (request) {
    case NVME_IOCTL_ID:
      if (node != CONTROLLER) return 1;
      errno = ENOTTY;
      return -1;
    case NVME_IOCTL_RESET:
    case NVME_IOCTL_SUBSYS_RESET:
    case NVME_IOCTL_RESCAN: return 0;
    case NVME_IOCTL_ADMIN_CMD:
    case NVME_IOCTL_IO_CMD:
      memcpy(&command, argument, sizeof(command));
      status = submit((uint32_t)request, &command, &result);
      ((struct nvme_passthru_cmd *)argument)->result = (uint32_t)result;
      return status;
    case NVME_IOCTL_ADMIN64_CMD:
    case NVME_IOCTL_IO64_CMD: {
      // The same up to the result, which is wider.
      struct nvme_passthru_cmd64 *wide = argument;
      memcpy(&command, wide, offsetof(struct nvme_passthru_cmd, result));
      status = submit(request == NVME_IOCTL_ADMIN64_CMD ? (uint32_t)NVME_IOCTL_ADMIN_CMD
                                                        : (uint32_t)NVME_IOCTL_IO_CMD,
                      &command, &result);
      wide->result = result;
      return status;
    }
    default: errno = ENOTTY; return -1;
  }
}

int ioctl(int fd, unsigned long request, ...) {
  va_list more;
  va_start(more, request);
  void *argument = va_arg(more, void *);
  va_end(more);
  struct stat st;
  // Python and others pass the number through an int, which may have put bits before it.
  request = (uint32_t)request;
  if (_IOC_TYPE(request) == 'N' && REAL(fstat)(fd, &st) == 0) {
    const int node = node_of(st.st_dev, st.st_ino, st.st_rdev, S_ISBLK(st.st_mode));
    if (node != NODES) return answer_ioctl(node, request, argument);
  }
  return REAL(ioctl)(fd, request, argument);
}
