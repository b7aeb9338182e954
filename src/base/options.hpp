// SPDX-License-Identifier: Apache-2.0
// Options: one table row each. Values come from the caller, then the environment (STRAIT_NAME), then the row's default;
// each keeps its origin so that `strait info --options` can say why it has the value it has.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace strait {

enum class OptionType { text, flag, integer, bytes, duration, choice };

struct OptionRow {
  const char* name;      // "listen": the environment variable is STRAIT_LISTEN, dots and dashes become underscores
  const char* fallback;  // default, as text
  OptionType type;
  const char* help;        // one sentence
  const char* choices;     // "thread|caller|eventfd" for OptionType::choice, else nullptr
  bool secret = false;     // never printed
  std::int64_t least = 0;  // numbers outside least..most are refused; durations count in nanoseconds
  std::int64_t most = INT64_MAX;
};

// Every option of the library, in the order `strait info --options` prints them.
std::span<const OptionRow> option_table();

enum class Origin { fallback, environment, caller };

class Options {
 public:
  using Pair = std::pair<std::string, std::string>;

  // `environment` lists NAME=VALUE strings (environ). Refuses values of the wrong type and unknown names given by the
  // caller; unknown STRAIT_* variables become warnings(), with the nearest name that exists.
  [[nodiscard]] static Result<Options> read(std::span<const Pair> caller, std::span<const char* const> environment,
                                            std::span<const OptionRow> table = option_table());
  // The environment of this process.
  [[nodiscard]] static Result<Options> read(std::span<const Pair> caller = {});

  // Asking for a name that is not in the table is a bug in strait: returns the empty value.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;      // also bytes ("64K", "1M", "2G")
  [[nodiscard]] std::int64_t duration_ns(std::string_view name) const;  // "250us", "5s", "1.5s", "2m"
  [[nodiscard]] Origin origin(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  [[nodiscard]] std::span<const OptionRow> table() const { return table_; }

 private:
  struct Value {
    std::string text;
    std::int64_t number = 0;
    Origin origin = Origin::fallback;
  };
  [[nodiscard]] const Value& find(std::string_view name) const;
  std::span<const OptionRow> table_;
  std::vector<Value> values_;  // same order as table_
  std::vector<std::string> warnings_;
};

// Parsers, also used by the tool's command line. Bytes: 4096, 64K, 1MiB (powers of 1024). Durations need a unit (ns,
// us, ms, s, m, h) unless they are 0; digits below a nanosecond are dropped. Neither takes a sign.
[[nodiscard]] Result<std::int64_t> parse_bytes(std::string_view text);
[[nodiscard]] Result<std::int64_t> parse_duration_ns(std::string_view text);
[[nodiscard]] const char* origin_name(Origin origin);
// "STRAIT_ACK_TIMEOUT" for "ack_timeout".
[[nodiscard]] std::string environment_name(std::string_view option);

}  // namespace strait
