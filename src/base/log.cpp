// SPDX-License-Identifier: Apache-2.0
// The names of the log levels, as options and the tool spell them.
#include "base/log.hpp"

namespace strait {

const char* level_name(Level level) {
  switch (level) {
    case Level::error: return "error";
    case Level::warn: return "warn";
    case Level::info: return "info";
    case Level::debug: return "debug";
  }
  return "unknown";
}

std::optional<Level> level_by_name(std::string_view name) {
  for (const Level level : {Level::error, Level::warn, Level::info, Level::debug}) {
    if (name == level_name(level)) return level;
  }
  return std::nullopt;
}

}  // namespace strait
