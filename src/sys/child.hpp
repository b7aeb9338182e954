// SPDX-License-Identifier: Apache-2.0
// A second process of the same program, and lines of text to and from it. It dies with the process that started it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

// The path of the program that this process runs; empty where /proc is not mounted.
[[nodiscard]] std::string own_program();

// Lines over a pair of descriptors that somebody else owns. One reader and one writer at a time.
class Lines {
 public:
  Lines(int in, int out) : in_(in), out_(out) {}
  // Without the newline. Code::gone at the end of the stream, Code::timeout at the deadline.
  [[nodiscard]] Result<std::string> read(const Deadline& deadline);
  // Appends the newline. A reader that is gone is an error, never a SIGPIPE.
  [[nodiscard]] Status write(std::string_view line) const;

 private:
  int in_;
  int out_;
  std::string pending_;
};

// Call start() before the process has threads or devices: the child begins as a copy of this process.
class Child {
 public:
  // Runs this very program again with `arguments`. Its standard input and output are the lines; stderr is shared.
  [[nodiscard]] static Result<Child> start_self(const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills it if it still runs, and reaps it

  // Code::gone says how the process ended ("was killed by signal 9").
  [[nodiscard]] Result<std::string> read(const Deadline& deadline);
  [[nodiscard]] Status write(std::string_view line);
  // Closes its input and waits; at the deadline it is killed. The exit status, or an error when a signal ended it.
  [[nodiscard]] Result<int> finish(const Deadline& deadline);
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  Child(pid_t pid, Fd socket);
  [[nodiscard]] bool reap(const Deadline& deadline);
  [[nodiscard]] Error ended();
  pid_t pid_ = -1;
  bool reaped_ = false;
  int wait_status_ = 0;
  Fd socket_;
  Lines lines_;
};

}  // namespace strait::sys
