// SPDX-License-Identifier: Apache-2.0
// posix_spawn, pipes and /proc.
#include "program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

extern char** environ;

namespace strait::testing {
namespace {

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// One read; false at the end of the stream.
bool append(int& fd, std::string& text) {
  char bytes[8192];
  const ssize_t got = ::read(fd, bytes, sizeof bytes);
  if (got > 0) {
    text.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  ::close(fd);
  fd = -1;
  return false;
}

}  // namespace

Program::Program(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& env,
                 By by)
    : start_(now()) {
  const bool talk = by == By::talk;
  int in[2] = {-1, -1};
  int out[2] = {-1, -1};
  int err[2] = {-1, -1};
  // A socket, so that writing to one that has ended can be told not to raise a signal.
  if (talk && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0) throw std::runtime_error("no socket");
  if (by == By::terminal) {
    const winsize size{24, 80, 0, 0};
    if (::openpty(&out[0], &out[1], nullptr, nullptr, &size) != 0) throw std::runtime_error("no terminal");
    for (const int fd : {out[0], out[1]}) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  } else if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (talk)
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  else
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, by == By::terminal ? out[1] : err[1], 2);

  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<std::string> settings;
  for (const auto& [name, value] : env) settings.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (std::string& setting : settings) environment.push_back(setting.data());
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);

  const int failed = ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  if (err[1] >= 0) ::close(err[1]);
  if (talk) ::close(in[0]);
  in_fd_ = in[1];
  out_fd_ = out[0];
  err_fd_ = err[0];
  if (failed != 0) throw std::runtime_error("cannot start " + command[0]);
}

Program::~Program() {
  if (in_fd_ >= 0) ::close(in_fd_);
  if (out_fd_ >= 0) ::close(out_fd_);
  if (err_fd_ >= 0) ::close(err_fd_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Program::pump(double until) {
  if (out_fd_ < 0 && err_fd_ < 0) return false;
  pollfd fds[2] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
  const double left = until - now();
  if (left <= 0) return false;
  if (::poll(fds, 2, static_cast<int>(left * 1000) + 1) <= 0) return now() < until;
  if (fds[0].revents != 0) (void)append(out_fd_, out_);
  if (fds[1].revents != 0) (void)append(err_fd_, err_);
  return true;
}

std::string Program::read_line(double seconds) {
  const double until = now() + seconds;
  for (;;) {
    if (const std::size_t end = out_.find('\n', read_); end != std::string::npos) {
      std::string line = out_.substr(read_, end - read_);
      read_ = end + 1;
      return line;
    }
    if (!pump(until)) return {};
  }
}

std::string Program::read_until(const std::string& words, int times, double seconds) {
  const double until = now() + seconds;
  for (;;) {
    int found = 0;
    for (std::size_t at = 0; (at = out_.find(words, at)) != std::string::npos; at += words.size()) ++found;
    if (found >= times) return out_;
    if (!pump(until)) return {};
  }
}

bool Program::write_line(const std::string& line) const {
  const std::string whole = line + "\n";
  return ::send(in_fd_, whole.data(), whole.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(whole.size());
}

Outcome Program::finish(double seconds) {
  const double until = now() + seconds;
  while (pump(until)) {
  }
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(pid_, &status, WNOHANG)) == 0 && now() < until) ::usleep(1000);
  if (got == 0) {
    err_ += "\n(killed by the test: it ran too long)";
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out_, err_, now() - start_};
}

void Program::signal(int number) const {
  ::kill(pid_, number);
}

Outcome run(const std::vector<std::string>& command, double seconds,
            const std::vector<std::pair<std::string, std::string>>& env) {
  return Program(command, env).finish(seconds);
}

std::vector<std::string> strait_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), STRAIT_TOOL);
  return arguments;
}

Outcome strait(std::vector<std::string> arguments, double seconds,
               const std::vector<std::pair<std::string, std::string>>& env) {
  return run(strait_command(std::move(arguments)), seconds, env);
}

std::string unwrapped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || out.empty() || out.back() != ' ') out.push_back(blank ? ' ' : c);
  }
  return out;
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    width = std::max(width, end - start);
    start = end + 1;
  }
  return width;
}

namespace {

// State and parent of a process, from /proc/PID/stat; the name in it may hold blanks and brackets.
std::pair<char, pid_t> state_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos || bracket + 4 > text.size()) return {'X', -1};
  return {text[bracket + 2], static_cast<pid_t>(std::atoi(text.c_str() + bracket + 4))};
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (state_of(name).second == parent) children.push_back(static_cast<pid_t>(std::atoi(name.c_str())));
  }
  return children;
}

bool runs(pid_t pid) {
  const char state = state_of(std::to_string(pid)).first;
  return state != 'X' && state != 'Z';
}

}  // namespace strait::testing
