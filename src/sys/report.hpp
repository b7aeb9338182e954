// SPDX-License-Identifier: Apache-2.0
// Findings of a sanitizer leave the process: a text on stderr, a JSON line in a file, and the exit code.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace strait::sys {

struct Report {
  std::string text;
  std::string json;
  std::string file;  // the line is appended; empty: no file
  // Of the process that calls exit() or returns from main(), whatever it says there; 0: left alone. Everything the
  // program does at exit is done before.
  int exit_code = 0;
  bool quiet = false;
};
void deliver(const Report& report);
// Makes the file if it is not there: better said before there is anything to report.
[[nodiscard]] Status check_report_file(const std::string& file);

// With its quotes, and everything escaped that JSON wants escaped. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace strait::sys
