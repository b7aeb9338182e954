// SPDX-License-Identifier: Apache-2.0
// The other process: this program again, with a line to it. Lines are short texts, one a message; silence is an error.
#pragma once

#include <string>

namespace bench::gpu {

class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line();
  void say(const std::string& text) const;
  // Throws after a minute, when the other end is gone, or if what is heard begins with "failed".
  std::string hear() const;
  void expect(const std::string& text) const;

 private:
  int fd_;
};

// Memory that both processes map; a descriptor, which the far process inherits.
int make_shared_memory(std::size_t bytes);

class FarProcess {
 public:
  // Starts this program with `arguments` and, at the end, its end of the line as a number.
  FarProcess(int shared_memory, const std::string& near);
  FarProcess(const FarProcess&) = delete;
  FarProcess& operator=(const FarProcess&) = delete;
  ~FarProcess();  // says "quit" and waits; kills it if that does not help
  const Line& line() const { return line_; }

 private:
  struct Started {
    int pid, fd;
  };
  static Started start(int shared_memory, const std::string& near);
  Started started_;
  Line line_;
};

}  // namespace bench::gpu
