// SPDX-License-Identifier: Apache-2.0
// Device nodes and their descriptors.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "devices.hpp"
#include "probe.hpp"

using namespace strait::testing;

namespace {

bool works(int fd) {
  int value = 41;
  return ioctl(fd, kAdd, &value) == 0 && value == 42;
}

template <class Stat>
bool is_node(const Stat& is) {
  return S_ISCHR(is.st_mode) && is.st_rdev == makedev(kMajor, kMinor);
}

int open_one() {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  EXPECT(fd >= 0);
  return fd;
}

}  // namespace

void probe::open_and_use() {
  const int fd = open_one();
  EXPECT(fcntl(fd, F_GETFD) == FD_CLOEXEC);
  EXPECT(works(fd));
  EXPECT(write(fd, "hello", 5) == 5);
  char text[8] = {};
  EXPECT(read(fd, text, sizeof text) == 5 && strcmp(text, "hello") == 0);
  static char much[4096];
  EXPECT(write(fd, much, sizeof much) == -1 && errno == EINVAL);
  EXPECT(ioctl(fd, kRefuse, nullptr) == -1 && errno == EPROTO);
  EXPECT(ioctl(fd, 0x1234, nullptr) == -1 && errno == ENOTTY);
  int on = 1;
  EXPECT(ioctl(fd, FIONBIO, &on) == 0);
  // Real memory, by real offsets.
  char* page = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192));
  EXPECT(page != MAP_FAILED);
  page[0] = 1;
  EXPECT(pread(fd, text, 2, 1) == 2 && memcmp(text, "el", 2) == 0);
  EXPECT(open_files() == 1);
  EXPECT(close(fd) == 0);
  EXPECT(open_files() == 0);
  EXPECT(close(fd) == -1 && errno == EBADF);
  const int other = open64(kNode, O_RDWR);
  EXPECT(other >= 0 && fcntl(other, F_GETFD) == 0);
  EXPECT(works(other));
  // What succeeds leaves errno alone.
  errno = 77;
  int value = 0;
  struct stat is;
  const bool all_done = ioctl(other, kAdd, &value) == 0 && stat(kNode, &is) == 0 && close(other) == 0;
  const bool untouched = errno == 77;
  EXPECT(all_done && untouched);
}

void probe::mapped_nodes() {
  const int fd = open_one();
  const auto mapped = [&] {
    int bytes = -1;
    EXPECT(ioctl(fd, kMapped, &bytes) == 0);
    return bytes;
  };
  EXPECT(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, kCounted + 4096) == MAP_FAILED && errno == EACCES);
  char* pages = static_cast<char*>(mmap(nullptr, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, kCounted));
  EXPECT(pages != MAP_FAILED && mapped() == 16384);
  // In parts, and by putting something else there.
  EXPECT(munmap(pages + 4096, 4096) == 0 && mapped() == 12288);
  EXPECT(mmap(pages, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == pages && mapped() == 8192);
  // A child's munmap is the child's.
  const pid_t child = fork();
  if (child == 0) _exit(munmap(pages + 8192, 8192) == 0 ? 0 : 1);
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0 && mapped() == 8192);
  // What is mapped keeps the file.
  EXPECT(close(fd) == 0 && open_files() == 1);
  EXPECT(munmap(pages, 16384) == 0);  // also what was none of it
  EXPECT(open_files() == 0);
}

void probe::look_at_nodes() {
  struct stat is;
  EXPECT(stat(kNode, &is) == 0 && is_node(is));
  EXPECT(lstat(kNode, &is) == 0 && is_node(is));
  EXPECT(fstatat(AT_FDCWD, kNode, &is, 0) == 0 && is_node(is));
  struct stat64 is64;
  EXPECT(stat64(kNode, &is64) == 0 && is_node(is64));
  const int fd = open_one();
  EXPECT(fstat(fd, &is) == 0 && is_node(is));
  EXPECT(fstat64(fd, &is64) == 0 && is_node(is64));
  EXPECT(fstatat(fd, "", &is, AT_EMPTY_PATH) == 0 && is_node(is));
  struct statx isx;
  EXPECT(statx(AT_FDCWD, kNode, 0, STATX_BASIC_STATS, &isx) == 0 && S_ISCHR(isx.stx_mode));
  EXPECT(isx.stx_rdev_major == kMajor && isx.stx_rdev_minor == kMinor);
  EXPECT(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &isx) == 0 && S_ISCHR(isx.stx_mode));
  // As programs call them that were built long ago.
  auto* old_stat = reinterpret_cast<int (*)(int, const char*, struct stat*)>(dlsym(RTLD_DEFAULT, "__xstat"));
  auto* old_fstat = reinterpret_cast<int (*)(int, int, struct stat*)>(dlsym(RTLD_DEFAULT, "__fxstat"));
  EXPECT(old_stat(1, kNode, &is) == 0 && is_node(is));
  EXPECT(old_fstat(1, fd, &is) == 0 && is_node(is));
  EXPECT(access(kNode, R_OK | W_OK) == 0);
  EXPECT(faccessat(AT_FDCWD, kNode, R_OK, AT_EACCESS) == 0);
  EXPECT(access("/dev/strait-test/nobody", F_OK) == -1 && errno == ENOENT);
  EXPECT(stat("/dev/strait-test", &is) == 0 && S_ISDIR(is.st_mode));
  EXPECT(stat("/dev/null", &is) == 0 && S_ISCHR(is.st_mode) && is.st_rdev == makedev(1, 3));
  close(fd);
}

void probe::duplicates() {
  const int fd = open_one();
  const int copies[] = {dup(fd), dup2(fd, 100), dup3(fd, 101, O_CLOEXEC), fcntl(fd, F_DUPFD, 50),
                        fcntl(fd, F_DUPFD_CLOEXEC, 200)};
  EXPECT(open_files() == 1);
  close(fd);
  for (const int copy : copies) {
    EXPECT(copy >= 0 && works(copy));
    EXPECT(open_files() == 1);
    struct stat is;
    EXPECT(fstat(copy, &is) == 0 && is_node(is));
    if (copy != copies[4]) close(copy);
  }
  EXPECT(dup2(copies[4], copies[4]) == copies[4] && works(copies[4]));
  // Another file in its place ends it.
  const int null = open("/dev/null", O_RDWR);
  EXPECT(dup2(null, copies[4]) == copies[4]);
  EXPECT(open_files() == 0);
  EXPECT(!works(copies[4]));
  const int again = open_one();
  EXPECT(dup2(again, null) == null && works(null));
  close(again);
  close(null);
  EXPECT(open_files() == 0);
}

void probe::high_numbers() {
  rlimit limit{};
  EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  EXPECT(limit.rlim_cur > 1100);
  const int fd = open_one();
  for (int number = 1030; number < 600'000 && static_cast<rlim_t>(number) < limit.rlim_cur; number = number * 2 + 1) {
    EXPECT(dup2(fd, number) == number && works(number));
    struct stat is;
    EXPECT(fstat(number, &is) == 0 && is_node(is));
    EXPECT(close(number) == 0 && !works(number));
  }
  close(fd);
  EXPECT(open_files() == 0);
}

void probe::ranges() {
  for (const int number : {900, 901}) {
    const int fd = open_one();
    EXPECT(dup2(fd, number) == number);
    close(fd);
  }
  EXPECT(open_files() == 2);
  EXPECT(close_range(901, 5000, 0) == 0);
  EXPECT(works(900) && !works(901));
  EXPECT(open_files() == 1);
  EXPECT(close_range(900, 900, 4 /* CLOSE_RANGE_CLOEXEC */) == 0 && works(900));
  closefrom(900);
  EXPECT(open_files() == 0);
}

void probe::behind_our_back() {
  // fclose() closes inside the C library.
  int fd = open_one();
  FILE* stream = fdopen(fd, "r+");
  EXPECT(stream != nullptr);
  fclose(stream);
  EXPECT(open("/dev/null", O_RDWR) == fd);
  EXPECT(!works(fd));
  struct stat is;
  EXPECT(fstat(fd, &is) == 0 && is.st_rdev == makedev(1, 3));
  EXPECT(write(fd, "x", 1) == 1);
  EXPECT(open_files() == 0);
  close(fd);
  fd = open_one();
  EXPECT(syscall(SYS_close, fd) == 0);
  EXPECT(eventfd(0, 0) == fd);
  const unsigned long one = 1;
  EXPECT(write(fd, &one, sizeof one) == sizeof one);
  EXPECT(open_files() == 0);
}

void probe::refusals() {
  EXPECT(open(kBusy, O_RDWR) == -1 && errno == EBUSY);
  EXPECT(open("/dev/strait-test/nobody", O_RDWR) == -1 && errno == ENOENT);
  EXPECT(open(kNode, O_RDWR | O_DIRECTORY) == -1 && errno == ENOTDIR);
  EXPECT(open(kNode, O_RDWR | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
  EXPECT(open("/dev/strait-test/node0/x", O_RDWR) == -1 && errno == ENOTDIR);
  EXPECT(open("/dev/strait-test/node0/", O_RDWR) == -1 && errno == ENOTDIR);
  const char* volatile nowhere = nullptr;
  EXPECT(open(nowhere, O_RDWR) == -1 && errno == EFAULT);
  EXPECT(open("", O_RDWR) == -1 && errno == ENOENT);
  EXPECT(ioctl(-1, kAdd, nullptr) == -1 && errno == EBADF);
  EXPECT(read(-1, nullptr, 0) == -1 && errno == EBADF);
  EXPECT(close(-1) == -1 && errno == EBADF);
  EXPECT(dup(-1) == -1 && errno == EBADF);
  EXPECT(ioctl(1 << 28, kAdd, nullptr) == -1 && errno == EBADF);
  // The kernel's own devices are not listed; other sockets are what they were.
  EXPECT(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA) == -1 && errno == EPROTONOSUPPORT);
  const int route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  EXPECT(route >= 0 && close(route) == 0);
}
