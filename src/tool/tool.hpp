// SPDX-License-Identifier: Apache-2.0
// What all sub-commands share: exit codes, complaints, and how a sub-command joins the command line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace strait::tool {

enum Exit : int { kDone = 0, kFailed = 1, kWrongUse = 2, kNotPossible = 3, kFindings = 66 };

class Command;
class CommandLine;

void add_demo(CommandLine& line);
void add_explain(CommandLine& line);
void add_faults(CommandLine& line);
void add_info(CommandLine& line);
void add_perf(CommandLine& line);
void add_run(CommandLine& line);

// Prints "strait: cause" and the remedy to stderr, within 80 columns, and gives the exit code that fits the error.
int complain(const Error& error, std::string_view doing = {});
[[nodiscard]] int exit_for(const Error& error);

// --set NAME=VALUE, as often as wanted: rows of `strait info --options`.
using Settings = std::vector<std::pair<std::string, std::string>>;
void add_settings(Command& command, std::vector<std::string>& pairs);
[[nodiscard]] Settings parse_settings(const std::vector<std::string>& pairs);
// In place of what was there.
[[nodiscard]] bool has_setting(const Settings& settings, std::string_view name);
void replace_setting(Settings& settings, std::string_view name, std::string value);

// "grant", "roce" (both: the software NIC), "verbs", "cxi", or "unknown": what carries the bytes of a connection, from
// what it says about its path.
[[nodiscard]] const char* carrier_of(std::string_view path);

// For options that take a plan of faults: empty when the text is one.
[[nodiscard]] std::string check_faults(const std::string& text);

}  // namespace strait::tool
