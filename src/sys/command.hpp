// SPDX-License-Identifier: Apache-2.0
// Another program, run in place of a shell's: standard streams, terminal and signals are its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sys/open_watch.hpp"

namespace strait::sys {

struct Command {
  std::string program;                                           // a path
  std::vector<std::string> arguments;                            // the first is the name it sees
  std::vector<std::pair<std::string, std::string>> environment;  // in addition, or instead of what is there
  OpenWatch::Heard heard = {};  // hears of every file that it opens; see OpenWatch for the price
};

// Waits until it ends: its exit status, or 128 + the signal that ended it. Signals that ask this process to end are
// passed on to it; those from the terminal reach it by themselves. It gets SIGTERM if this process dies.
// An error when it could not be started.
[[nodiscard]] Result<int> run_command(const Command& command);

// The path of a program as a shell would find it: in PATH if it has no slash. Code::gone: there is none; Code::denied:
// it may not be executed.
[[nodiscard]] Result<std::string> find_program(const std::string& name);

}  // namespace strait::sys
