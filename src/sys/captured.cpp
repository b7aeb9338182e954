// SPDX-License-Identifier: Apache-2.0
#include "sys/captured.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "sys/command.hpp"

namespace strait::sys {
namespace {

constexpr std::size_t kMostCaptured = std::size_t{4} << 20;  // a program gone mad must not take all memory

// Between fork and exec: only calls that are safe in a copy of a process.
[[noreturn]] void become_captured(const char* program, char* const* arguments, char* const* environment, int out,
                                  int err, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above took effect
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(127);
  ::execve(program, arguments, environment);
  ::_exit(127);
}

// One read; false at the end of the stream.
bool take_some(int fd, std::string& into) {
  char piece[4096];
  const ssize_t got = ::read(fd, piece, sizeof piece);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (into.size() < kMostCaptured) into.append(piece, static_cast<std::size_t>(got));
  return got > 0;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("it was ended by signal {}", WTERMSIG(status));
  return fmt::format("it ended with status {}", WEXITSTATUS(status));
}

}  // namespace

Result<Captured> Captured::start(std::vector<std::string> command, const EnvironmentChanges& changes) {
  if (command.empty()) return fail(Code::invalid, "no program was named");
  STRAIT_TRY(const std::string program, find_program(command.front()));
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  Fd out_read(out[0]);
  Fd out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  Fd err_read(err[0]);
  Fd err_write(err[1]);
  std::vector<std::string> environment = environment_with(changes);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, fmt::format("starting {}", program));
  if (pid == 0)
    become_captured(program.c_str(), arguments.data(), variables.data(), out_write.get(), err_write.get(), parent);
  ::setpgid(pid, pid);  // both sides say so: neither knows who comes first
  return Captured(pid, std::move(out_read), std::move(err_read));
}

Captured::Captured(Captured&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), out_(std::move(other.out_)), err_(std::move(other.err_)) {}

Captured::~Captured() {
  kill_and_reap();
}

void Captured::kill_and_reap() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool Captured::ended() const {
  if (pid_ <= 0) return true;
  siginfo_t what{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &what, WEXITED | WNOHANG | WNOWAIT) != 0 || what.si_pid == pid_;
}

Ran Captured::finish(const Deadline& deadline) {
  Ran ran;
  pollfd waits[2] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
  std::string* texts[2] = {&ran.out, &ran.problem};
  int status = 0;
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    if (deadline.passed()) break;
    if (::poll(waits, 2, deadline.left_ms()) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (waits[i].fd >= 0 && waits[i].revents != 0 && !take_some(waits[i].fd, *texts[i])) waits[i].fd = -1;
    }
  }
  // Its streams close a moment before the kernel can say how it ended.
  while (pid_ > 0) {
    if (ended()) {
      ::kill(-pid_, SIGKILL);  // what it left behind; while it is not collected nobody else has the number
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
      pid_ = -1;
    } else if (deadline.passed()) {
      kill_and_reap();
      ran.timeout = true;
      ran.problem += "it did not end in time";
      return ran;
    } else {
      ::usleep(500);
    }
  }
  ran.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!ran.ok && ran.problem.empty()) ran.problem = how_it_ended(status);
  return ran;
}

Ran run_captured(const std::vector<std::string>& command, const Deadline& deadline, const EnvironmentChanges& changes) {
  auto started = Captured::start(command, changes);
  if (started) return started->finish(deadline);
  Ran ran;
  ran.problem = started.error().text;
  return ran;
}

}  // namespace strait::sys
