// SPDX-License-Identifier: Apache-2.0
// On the host: a guest of the lab for a C++ test. Boots it, holds the control stream, ends it with the test.
//
// STRAIT_LAB (a definition of the build) is the folder that lab.guest has filled, STRAIT_LAB_RUN the script `run`.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"
#include "sys/socket.hpp"

extern char** environ;

namespace strait::lab {

struct GuestOptions {
  std::string name{};                      // of its share below STRAIT_LAB
  std::string script = "rxe_peer rxe0\n";  // what it runs
  std::vector<std::string> more{};         // options of `run`: --carrier dgram --local A --remote B, ...
  std::int64_t boot_ns = 240'000'000'000;  // until it has opened the control port, on a busy machine
  std::int64_t limit_s = 800;              // for its whole life
};

class Guest {
 public:
  // Returns when the guest's program has said "ready".
  [[nodiscard]] static Result<std::unique_ptr<Guest>> boot(const GuestOptions& options);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() {
    control_.reset();  // the guest's program ends when its orders do
    if (pid_ > 0 && !wait_for_end(sys::Deadline::after_ns(20'000'000'000))) {
      ::kill(-pid_, SIGTERM);  // `run` and qemu: a process group of their own
      if (!wait_for_end(sys::Deadline::after_ns(10'000'000'000))) {
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
      }
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // One request, one answer, without "ok". An "error" answer is an Error with its sentence.
  [[nodiscard]] Result<std::string> ask(std::string line, std::int64_t within_ns = 60'000'000'000) {
    const std::string asked = line;
    line += '\n';
    const sys::Deadline deadline = sys::Deadline::after_ns(within_ns);
    STRAIT_CHECK(sys::send_all(control_.get(), std::as_bytes(std::span(line)), deadline));
    STRAIT_TRY(std::string answer, read_line(deadline));
    if (answer.starts_with("ok")) return answer.substr(std::min<std::size_t>(3, answer.size()));
    return fail(Code::device, "the guest answers '{}' with: {}", asked, answer);
  }

  // Asks it to end, and waits: the status of `run`.
  [[nodiscard]] Result<int> finish() {
    STRAIT_CHECK(ask("quit"));
    if (!wait_for_end(sys::Deadline::after_ns(60'000'000'000)))
      return fail(Code::timeout, "the guest did not end when it was asked to");
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

  // What the guest printed so far.
  [[nodiscard]] std::string said() const {
    std::ifstream file(said_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  Guest() = default;

  Result<std::string> read_line(const sys::Deadline& deadline) {
    for (;;) {
      if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return line;
      }
      if (!sys::wait_ready(control_.get(), false, deadline))
        return fail(Code::timeout, "the guest is silent; it has printed:\n{}", said());
      char piece[4096];
      const ssize_t n = ::recv(control_.get(), piece, sizeof piece, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return fail(Code::gone, "the guest is gone; it has printed:\n{}", said());
      pending_.append(piece, static_cast<std::size_t>(n));
    }
  }

  bool wait_for_end(const sys::Deadline& deadline) {
    while (pid_ > 0) {
      if (::waitpid(pid_, &status_, WNOHANG) == pid_) {
        pid_ = -1;
      } else if (deadline.passed()) {
        return false;
      } else {
        ::usleep(20'000);
      }
    }
    return true;
  }

  std::string folder_;  // of the control socket: in /tmp, since the name of a socket may have 107 bytes only
  std::string said_;
  sys::Fd control_;
  std::string pending_;
  pid_t pid_ = -1;
  int status_ = 0;
};

inline Result<std::unique_ptr<Guest>> Guest::boot(const GuestOptions& options) {
  std::unique_ptr<Guest> guest(new Guest);
  std::string folder = (std::filesystem::temp_directory_path() / "strait-lab.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return fail_errno(errno, "cannot make " + folder);
  guest->folder_ = folder;

  const std::string socket = folder + "/control";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return fail(Code::limit, "{} is too long for a socket", socket);
  std::memcpy(address.sun_path, socket.c_str(), socket.size());
  const sys::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid() || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 1) != 0)
    return fail_errno(errno, "cannot listen at " + socket);

  const std::string lab = STRAIT_LAB;
  const std::string share = lab + "/" + options.name;
  std::filesystem::create_directories(share);
  guest->said_ = share + "/said.txt";
  std::ofstream(share + "/script.sh") << options.script;
  std::vector<std::string> words = {
      STRAIT_LAB_RUN, "--kernel",  lab + "/kernel", "--guest", lab + "/guest.cpio.gz",         "--share",
      share,          "--control", socket,          "--limit", std::to_string(options.limit_s)};
  words.insert(words.end(), options.more.begin(), options.more.end());
  words.push_back(share + "/script.sh");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, 1, guest->said_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = ::posix_spawn(&guest->pid_, STRAIT_LAB_RUN, &files, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    guest->pid_ = -1;
    return fail_errno(error, "cannot start " STRAIT_LAB_RUN);
  }

  const sys::Deadline deadline = sys::Deadline::after_ns(options.boot_ns);
  // In slices, so that a qemu that never starts is noticed before the whole time is gone.
  for (;;) {
    if (sys::wait_ready(listener.get(), false, sys::Deadline::after_ns(200'000'000))) break;
    if (guest->wait_for_end(sys::Deadline::after_ns(0)) || deadline.passed())
      return fail(Code::gone, "no guest came up; it has printed:\n{}", guest->said());
  }
  guest->control_ = sys::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!guest->control_.valid()) return fail_errno(errno, "cannot accept qemu's connection");
  STRAIT_TRY(const std::string hello, guest->read_line(deadline));
  if (hello != "ready") return fail(Code::device, "the guest began with '{}', not 'ready'", hello);
  return guest;
}

}  // namespace strait::lab
