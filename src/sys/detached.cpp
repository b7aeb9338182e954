// SPDX-License-Identifier: Apache-2.0
#include "sys/detached.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/fd.hpp"

namespace strait::sys {
namespace {

// A copy of a process with threads: system calls only, as they are. Those of the C library may be another library's,
// and run handlers of fork.
long fork_plainly() {
#ifdef SYS_fork
  return ::syscall(SYS_fork);
#else
  return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

void close_all_but(int kept) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, 3, kept - 1, 0) == 0 || kept == 3) {
    if (::syscall(SYS_close_range, kept + 1, ~0u, 0) == 0) return;
  }
#endif
  for (int fd = 3; fd < 4096; ++fd) {
    if (fd != kept) ::syscall(SYS_close, fd);
  }
}

[[noreturn]] void become_detached(const char* program, char* const* arguments, char* const* environment, int report) {
  ::syscall(SYS_setsid);
  const long child = fork_plainly();
  if (child != 0) ::syscall(SYS_exit_group, 0);
  int error = 0;
  const int null = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0));
  if (null >= 0) {
    for (int fd = 0; fd < 3; ++fd) {
      if (fd != null) ::syscall(SYS_dup3, null, fd, 0);
    }
  }
  close_all_but(report);
  (void)!::chdir("/");
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < 32; ++number) (void)::sigaction(number, &usual, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(program, arguments, environment);
  error = errno;
  (void)!::syscall(SYS_write, report, &error, sizeof error);
  ::syscall(SYS_exit_group, 127);
  __builtin_unreachable();
}

}  // namespace

Status start_detached(const std::string& program, std::vector<std::string> arguments,
                      const EnvironmentChanges& changes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  // The descriptors 0 to 2 become others' below.
  if (write_end.get() < 3) {
    Fd higher(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, 3));
    if (!higher.valid()) return fail_errno(errno, "making a pipe");
    write_end = std::move(higher);
  }
  std::vector<std::string> environment = environment_with(changes);
  std::erase_if(environment, [&](const std::string& line) {
    for (const auto& [name, value] : changes) {
      if (value.empty() && line == name + "=") return true;
    }
    return false;
  });
  arguments.insert(arguments.begin(), program);
  const std::vector<char*> argument_list = pointers(arguments);
  const std::vector<char*> environment_list = pointers(environment);

  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);  // a handler of the program has no place in the copy
  const long child = fork_plainly();
  if (child == 0) become_detached(program.c_str(), argument_list.data(), environment_list.data(), write_end.get());
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  write_end.reset();
  if (child < 0) return fail_errno(fork_error, "starting a process");
  int status = 0;
  while (::waitpid(static_cast<pid_t>(child), &status, 0) < 0 && errno == EINTR) {
  }
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof error)) return fail_errno(error, fmt::format("starting {}", program));
  return {};
}

}  // namespace strait::sys
