// SPDX-License-Identifier: Apache-2.0
// Findings of a sanitizer leave the process: a text on stderr, a JSON line in a file, and the exit code.
#pragma once

#include <string>

namespace strait::sys {

struct Report {
  std::string text;
  std::string json;
  std::string file;   // the line is appended; empty: no file
  int exit_code = 0;  // of the process, whatever main() returns; 0: left alone
  bool quiet = false;
};
void deliver(const Report& report);

}  // namespace strait::sys
