// SPDX-License-Identifier: Apache-2.0
// A second process for flow tests: forked before it or its parent opens a Node, with a line of text each way.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace strait::flow {

class Process {
 public:
  // Lines, seen from either side. An empty line is the end, or nothing within ten seconds.
  class Wire {
   public:
    Wire(int in, int out) : in_(in), out_(out) {}
    void say(const std::string& line) const {
      const std::string text = line + "\n";
      if (::write(out_, text.data(), text.size()) < 0) return;
    }
    [[nodiscard]] std::string hear() const {
      std::string line;
      for (char c = 0;;) {
        pollfd ready{in_, POLLIN, 0};
        if (::poll(&ready, 1, 10'000) <= 0 || ::read(in_, &c, 1) != 1 || c == '\n') return line;
        line += c;
      }
    }

   private:
    int in_;
    int out_;
  };

  explicit Process(const std::function<void(Wire)>& body) {
    ::signal(SIGPIPE, SIG_IGN);  // a child that died is a failed expectation, not the end of the test
    int down[2];
    int up[2];
    if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(down[1]);
      ::close(up[0]);
      int code = 0;
      try {
        body(Wire(down[0], up[1]));
      } catch (const std::exception& e) {
        std::fprintf(stderr, "child: %s\n", e.what());
        code = 3;
      }
      ::_exit(testing::Test::HasFailure() ? 2 : code);
    }
    ::close(down[0]);
    ::close(up[1]);
    in_ = up[0];
    out_ = down[1];
  }
  ~Process() {
    if (pid_ > 0) kill_now();
    ::close(in_);
    ::close(out_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] Wire wire() const { return Wire(in_, out_); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  void kill_now() {
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  // Tells it to end (any line) and gives its exit code; -1 when a signal ended it.
  int finish() {
    wire().say("end");
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
};

}  // namespace strait::flow
