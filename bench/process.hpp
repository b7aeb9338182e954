// SPDX-License-Identifier: Apache-2.0
// Runs other programs with a deadline and reads what they print.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace bench {

struct Ran {
  bool ok = false;  // ended by itself with status 0
  std::string out;
  std::string problem;  // what it printed to stderr, or why it did not end well
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// A child that is ended, by its id, when this goes out of scope.
class Child {
 public:
  Child(const std::vector<std::string>& command, const Environment& environment);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();
  // Reads until both outputs are closed or the deadline passed, then collects the exit status.
  Ran finish(double deadline_s);

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
};

Ran run(const std::vector<std::string>& command, double deadline_s, const Environment& environment = {});
// The full path of a program in PATH; empty when there is none.
std::string which(const std::string& name);

}  // namespace bench
