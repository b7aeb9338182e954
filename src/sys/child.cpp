// SPDX-License-Identifier: Apache-2.0
// fork, exec and wait, with lines over a socket pair.
#include "sys/child.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "sys/socket.hpp"

namespace strait::sys {
namespace {

constexpr std::size_t kMaxLineBytes = 1u << 20;  // a peer that never ends its line must not eat all memory

// Between fork and exec: only calls that are safe in a copy of a process.
[[noreturn]] void become(const char* program, char* const* arguments, int socket, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above took effect
  if (::dup2(socket, STDIN_FILENO) < 0 || ::dup2(socket, STDOUT_FILENO) < 0) ::_exit(127);
  ::execv(program, arguments);
  ::_exit(127);
}

}  // namespace

std::string own_program() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

Result<std::string> Lines::read(const Deadline& deadline) {
  for (;;) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    if (pending_.size() > kMaxLineBytes) return fail(Code::invalid, "a line of over {} bytes came in", kMaxLineBytes);
    if (!wait_ready(in_, false, deadline)) return fail(Code::timeout, "no line came before the deadline");
    char bytes[4096];
    const ssize_t got = ::read(in_, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0 && errno != ECONNRESET) return fail_errno(errno, "reading a line");
    if (got <= 0) return fail(Code::gone, "the other end closed its stream");
    pending_.append(bytes, static_cast<std::size_t>(got));
  }
}

Status Lines::write(std::string_view line) const {
  std::string text(line);
  text.push_back('\n');
  std::string_view left = text;
  while (!left.empty()) {
    ssize_t sent = ::send(out_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK) sent = ::write(out_, left.data(), left.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return fail(Code::gone, "the other end closed its stream");
    if (sent < 0) return fail_errno(errno, "writing a line");
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<Child> Child::start_self(const std::vector<std::string>& arguments) {
  const std::string program = own_program();
  if (program.empty()) {
    return with_remedy(fail_errno(errno, "finding this program in /proc/self/exe"), "Is /proc mounted?");
  }
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return fail_errno(errno, "making a socket pair");
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, "starting a second process");
  if (pid == 0) become(program.c_str(), argv.data(), theirs.get(), parent);
  return Child(pid, std::move(ours));
}

Child::Child(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)), lines_(socket_.get(), socket_.get()) {}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(other.reaped_),
      wait_status_(other.wait_status_),
      socket_(std::move(other.socket_)),
      lines_(std::move(other.lines_)) {}

Child::~Child() {
  if (pid_ < 0 || reaped_) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Child::reap(const Deadline& deadline) {
  while (!reaped_) {
    const pid_t got = ::waitpid(pid_, &wait_status_, WNOHANG);
    if (got == pid_ || (got < 0 && errno == ECHILD)) reaped_ = true;
    if (reaped_ || deadline.passed()) break;
    ::usleep(500);
  }
  return reaped_;
}

Error Child::ended() {
  // Its stream closed a moment before the kernel can say how it ended.
  if (!reap(Deadline::after_ns(1'000'000'000))) {
    return fail(Code::gone, "process {} closed its stream but still runs", pid_);
  }
  if (WIFSIGNALED(wait_status_))
    return fail(Code::gone, "process {} was killed by signal {}", pid_, WTERMSIG(wait_status_));
  return fail(Code::gone, "process {} ended with status {}", pid_, WEXITSTATUS(wait_status_));
}

Result<std::string> Child::read(const Deadline& deadline) {
  auto line = lines_.read(deadline);
  if (!line && line.error().code == Code::gone) return ended();
  return line;
}

Status Child::write(std::string_view line) {
  auto written = lines_.write(line);
  if (!written && written.error().code == Code::gone) return ended();
  return written;
}

Result<int> Child::finish(const Deadline& deadline) {
  ::shutdown(socket_.get(), SHUT_WR);
  if (!reap(deadline)) {
    ::kill(pid_, SIGKILL);
    (void)reap(Deadline::after_ns(1'000'000'000));
    return fail(Code::timeout, "process {} did not end in time and was killed", pid_);
  }
  if (WIFSIGNALED(wait_status_)) return ended();
  return WEXITSTATUS(wait_status_);
}

}  // namespace strait::sys
