// SPDX-License-Identifier: Apache-2.0
#include "sys/command.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "sys/exec_lists.hpp"
#include "sys/fd.hpp"

namespace strait::sys {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};

// Between fork and exec: only calls that are safe in a copy of a process.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment, const sigset_t& mask,
                         pid_t parent, int report, const OpenWatch* watch) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  int error = watch != nullptr ? watch->begin_in_child() : 0;
  if (error == 0 && ::getppid() == parent) {
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execve(program, arguments, environment);
    error = errno;
  }
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

// Until the child is gone; signals come in one after the other, so no handler is needed.
int wait_for(pid_t child, const sigset_t& set) {
  for (;;) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child)
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    siginfo_t what{};
    const int number = ::sigwaitinfo(&set, &what);
    // From the keyboard it goes to the whole foreground group, of which the child is part.
    if (number > 0 && number != SIGCHLD && what.si_code <= 0) ::kill(child, number);
  }
}

}  // namespace

Result<int> run_command(const Command& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.environment);
  const std::vector<char*> argument_list = pointers(arguments);
  const std::vector<char*> environment_list = pointers(environment);

  std::unique_ptr<OpenWatch> watch;
  if (command.heard) {
    STRAIT_TRY(watch, OpenWatch::prepare(command.heard));
  }

  sigset_t set, before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  for (const int number : kPassedOn) ::sigaddset(&set, number);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    become(command.program.c_str(), argument_list.data(), environment_list.data(), before, parent, write_end.get(),
           watch.get());
  }
  const int fork_error = errno;
  write_end.reset();
  // Before anything is waited for: it opens nothing while nobody listens.
  const Status heard = watch && child > 0 ? watch->listen() : Status();
  int exec_error = 0;
  const bool started = child > 0 && ::read(read_end.get(), &exec_error, sizeof exec_error) <= 0;
  const int status = child > 0 ? wait_for(child, set) : 0;
  // What came too late to be passed on is for a process that is gone.
  const timespec now{};
  while (::sigtimedwait(&set, nullptr, &now) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return fail_errno(fork_error, "starting a process");
  if (!heard && exec_error == 0) return heard.error();
  if (!started) return fail_errno(exec_error, fmt::format("starting {}", command.program));
  return status;
}

Result<std::string> find_program(const std::string& name) {
  struct stat is;
  const auto is_file = [&](const std::string& path) { return ::stat(path.c_str(), &is) == 0 && S_ISREG(is.st_mode); };
  if (name.find('/') != std::string::npos) {
    if (!is_file(name)) return fail(Code::gone, "there is no program {}", name);
    if (::access(name.c_str(), X_OK) != 0) return fail(Code::denied, "{} may not be executed", name);
    return name;
  }
  const char* given = ::getenv("PATH");
  std::string_view left = given != nullptr ? given : "/usr/local/bin:/usr/bin:/bin";
  bool denied = false;
  for (;;) {
    const std::size_t colon = left.find(':');
    const std::string folder(left.substr(0, colon));
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_file(path)) {
      if (::access(path.c_str(), X_OK) == 0) return path;
      denied = true;
    }
    if (colon == std::string_view::npos) break;
    left.remove_prefix(colon + 1);
  }
  if (denied) return fail(Code::denied, "{} was found in PATH, but may not be executed", name);
  return fail(Code::gone, "there is no program {} in PATH", name);
}

}  // namespace strait::sys
