// SPDX-License-Identifier: Apache-2.0
// What exec takes, made before the fork: a copy of a process may not allocate.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strait::sys {

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

// "NAME=value" of this process, with the changes.
[[nodiscard]] inline std::vector<std::string> environment_with(const EnvironmentChanges& changes) {
  std::vector<std::string> all;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view line = *at;
    const std::string_view name = line.substr(0, line.find('='));
    bool replaced = false;
    for (const auto& change : changes) replaced = replaced || change.first == name;
    if (!replaced) all.emplace_back(line);
  }
  for (const auto& [name, value] : changes) all.push_back(name + "=" + value);
  return all;
}

// They point into `texts`.
[[nodiscard]] inline std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace strait::sys
