// SPDX-License-Identifier: Apache-2.0
// Complaints and settings.
#include "tool/tool.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <cstdio>

#include "tool/command.hpp"
#include "tool/text.hpp"

namespace strait::tool {

int exit_for(const Error& error) {
  // What can never succeed as it stands was asked for on the command line: a bad address, an unknown setting.
  if (error.code == Code::invalid) return kWrongUse;
  return error.code == Code::unsupported ? kNotPossible : kFailed;
}

int complain(const Error& error, std::string_view doing) {
  std::fflush(stdout);  // what was said before must stand before the complaint
  const std::string cause = doing.empty() ? error.text : fmt::format("{}: {}", doing, error.text);
  fmt::print(stderr, "{}", wrap("strait: " + cause, 0, 2));
  if (!error.remedy.empty()) fmt::print(stderr, "{}", wrap(error.remedy, 2, 2));
  return exit_for(error);
}

void add_settings(Command& command, std::vector<std::string>& pairs) {
  command.many(
      "--set", pairs,
      {.type = "NAME=VALUE",
       .help = "Set an option of the library for this run, as often as wanted. `strait info --options` lists them.",
       .fallback = {},
       .check = [](const std::string& text) {
         const std::size_t equals = text.find('=');
         return equals == std::string::npos || equals == 0 ? "'" + text + "' is not NAME=VALUE" : std::string();
       }});
}

Settings parse_settings(const std::vector<std::string>& pairs) {
  Settings settings;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    settings.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return settings;
}

void replace_setting(Settings& settings, std::string_view name, std::string value) {
  std::erase_if(settings, [&](const auto& pair) { return pair.first == name; });
  settings.emplace_back(name, std::move(value));
}

bool has_setting(const Settings& settings, std::string_view name) {
  return std::ranges::any_of(settings, [&](const auto& pair) { return pair.first == name; });
}

const char* carrier_of(std::string_view path) {
  const auto says = [&](std::string_view words) { return path.find(words) != std::string_view::npos; };
  if (says("-> verbs ")) return "verbs";  // first: a path over verbs may be RoCEv2 too
  if (says("-> cxi ")) return "cxi";
  if (says("ring grant")) return "grant";
  return says("RoCEv2") ? "roce" : "unknown";
}

}  // namespace strait::tool
