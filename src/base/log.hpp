// SPDX-License-Identifier: Apache-2.0
// Log: a sink handed in by the caller. The library never prints by itself and has no global logger.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace strait {

// How much each level may say: error and warn at most once per cause, info once per object, debug once per slow-path
// step. Nothing is logged on the data path.
enum class Level { error = 0, warn = 1, info = 2, debug = 3 };

[[nodiscard]] const char* level_name(Level level);
// The level an option names; nothing when there is none of that name.
[[nodiscard]] std::optional<Level> level_by_name(std::string_view name);

class Log {
 public:
  using Sink = std::function<void(Level, std::string_view)>;
  Log() = default;
  Log(Level up_to, Sink sink) : up_to_(up_to), sink_(std::move(sink)) {}

  [[nodiscard]] bool wants(Level level) const { return sink_ && level <= up_to_; }
  template <class... Args>
  void write(Level level, fmt::format_string<Args...> text, Args&&... args) const {
    if (wants(level)) sink_(level, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  Level up_to_ = Level::warn;
  Sink sink_;
};

}  // namespace strait
