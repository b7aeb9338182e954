// SPDX-License-Identifier: Apache-2.0
#include "sys/file_hold.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/file.h>

#include <cerrno>

#include "sys/pause.hpp"

namespace strait::sys {
namespace {

bool lock_description(int fd, int how) {
  int answer = -1;
  do {
    answer = ::flock(fd, how | LOCK_NB);
  } while (answer != 0 && errno == EINTR);
  return answer == 0;
}

}  // namespace

Result<Fd> open_path(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot open {}", path));
  return fd;
}

Result<Fd> open_again(int fd) {
  return open_path(fmt::format("/proc/self/fd/{}", fd));
}

Result<Fd> open_of_process(pid_t pid, int fd) {
  auto opened = open_path(fmt::format("/proc/{}/fd/{}", pid, fd));
  if (!opened && opened.error().sys_errno == ENOENT)
    return fail(Code::gone, "process {} has no descriptor {}: it ended, or closed it", pid, fd);
  return opened;
}

bool hold_file(int fd) {
  return lock_description(fd, LOCK_SH);
}

bool hold_file_before(int fd, const Deadline& deadline) {
  for (std::uint32_t turn = 0; !hold_file(fd); ++turn) {
    if (deadline.passed()) return false;
    pause_turn(turn);
  }
  return true;
}

bool take_file_alone(int fd) {
  return lock_description(fd, LOCK_EX);
}

void let_go_of_file(int fd) {
  (void)lock_description(fd, LOCK_UN);
}

bool is_held_elsewhere(int fd) {
  if (!take_file_alone(fd)) return true;
  let_go_of_file(fd);
  return false;
}

Status drop_file_pages(int fd, std::uint64_t offset, std::uint64_t length_bytes) {
  if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(length_bytes)) != 0)
    return fail_errno(errno, fmt::format("cannot give back {} bytes of fd {}", length_bytes, fd));
  return {};
}

}  // namespace strait::sys
