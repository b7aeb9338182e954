// SPDX-License-Identifier: Apache-2.0
// What all sub-commands share: exit codes, complaints, and how a sub-command joins the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace strait::tool {

enum Exit : int { kDone = 0, kFailed = 1, kWrongUse = 2, kNotPossible = 3, kFindings = 66 };

// What the parsed command line asks for; the sub-command that was named puts itself here.
using Run = std::function<int()>;

void add_demo(CLI::App& root, Run& run);
void add_info(CLI::App& root, Run& run);
void add_perf(CLI::App& root, Run& run);

// Prints "strait: cause" and the remedy to stderr, within 80 columns, and gives the exit code that fits the error.
int complain(const Error& error, std::string_view doing = {});
[[nodiscard]] int exit_for(const Error& error);

// --set NAME=VALUE, as often as wanted: rows of `strait info --options`.
using Settings = std::vector<std::pair<std::string, std::string>>;
void add_settings(CLI::App& command, std::vector<std::string>& pairs);
[[nodiscard]] Settings parse_settings(const std::vector<std::string>& pairs);

}  // namespace strait::tool
