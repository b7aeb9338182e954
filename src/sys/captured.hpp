// SPDX-License-Identifier: Apache-2.0
// Another program whose output is read: run with a deadline, nothing to read from its standard input.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/exec_lists.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

struct Ran {
  bool ok = false;       // ended by itself with status 0
  std::string out;       // at most a few MiB; what comes after is dropped
  std::string problem;   // what it printed to stderr, or why it did not end well
  bool timeout = false;  // it was ended at the deadline
};

// A process group of its own: whatever the program starts ends with it, at the latest when this goes out of scope or
// this process dies.
class Captured {
 public:
  // The first word is the program; without a slash it is looked for in PATH.
  [[nodiscard]] static Result<Captured> start(std::vector<std::string> command, const EnvironmentChanges& changes = {});
  Captured(Captured&& other) noexcept;
  Captured& operator=(Captured&&) = delete;
  ~Captured();
  // Reads until both outputs are closed, then collects the exit status; at the deadline it is killed.
  [[nodiscard]] Ran finish(const Deadline& deadline);
  // It has ended; finish() then does not wait for long.
  [[nodiscard]] bool ended() const;

 private:
  Captured(pid_t pid, Fd out, Fd err) : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}
  void kill_and_reap();
  pid_t pid_ = -1;
  Fd out_;
  Fd err_;
};

// Start and finish. What could not be started is a problem like any other.
[[nodiscard]] Ran run_captured(const std::vector<std::string>& command, const Deadline& deadline,
                               const EnvironmentChanges& changes = {});

}  // namespace strait::sys
