// SPDX-License-Identifier: Apache-2.0
// --help as a manual page. The options come from the parser itself, so that none can be forgotten.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace strait::tool {

struct Manual {
  std::string name;         // "strait perf - measure latency and bandwidth between two processes"
  std::string synopsis;     // one use a line
  std::string description;  // paragraphs; lines are filled, a line that begins with two blanks stays as it is
  std::string examples;     // as it is
  std::string environment;  // "NAME  text" a line; added to what every command has
};

class ManualPage : public CLI::FormatterBase {
 public:
  explicit ManualPage(Manual manual) : manual_(std::move(manual)) {}
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  Manual manual_;
};

}  // namespace strait::tool
