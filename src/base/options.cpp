// SPDX-License-Identifier: Apache-2.0
// Reading options: caller, then environment, then default; every value is checked once, here, and never again.
#include "base/options.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

extern "C" char** environ;  // of the C library; its header belongs to sys/

namespace strait {
namespace {

constexpr std::string_view kPrefix = "STRAIT_";
constexpr std::string_view kRunPrefix = "STRAIT_HOST_";  // how `strait run` speaks to what it starts; no options
constexpr std::string_view kRunAccelerators = "STRAIT_SOFT_ACCELERATORS=";  // likewise

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

// Levenshtein distance with one row of memory; names are short.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The row whose name, as `spell` writes it, is nearest; null when nothing is near enough to be what was meant.
template <class Spell>
const OptionRow* nearest(std::string_view name, std::span<const OptionRow> table, Spell spell) {
  if (name.size() > 64) return nullptr;  // no option is that long, and the work grows with the length
  const OptionRow* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const OptionRow& row : table) {
    const std::size_t distance = edit_distance(name, spell(row.name));
    if (distance < best_distance) {
      best = &row;
      best_distance = distance;
    }
  }
  return best;
}

std::string expected(const OptionRow& row) {
  std::string range;
  if (row.least != 0 || row.most != INT64_MAX) {
    const std::string unit = row.type == OptionType::duration ? "ns" : row.type == OptionType::bytes ? " bytes" : "";
    range = row.most == INT64_MAX ? fmt::format(", at least {}{}", row.least, unit)
                                  : fmt::format(", from {} to {}{}", row.least, row.most, unit);
  }
  switch (row.type) {
    case OptionType::text: return "text";
    case OptionType::flag: return "1 or 0 (also yes, no, true, false, on, off)";
    case OptionType::integer: return fmt::format("a whole number{}", range);
    case OptionType::bytes: return fmt::format("a number of bytes such as 4096, 64K, 256M or 2G{}", range);
    case OptionType::duration: return fmt::format("a duration such as 20us, 500ms, 1.5s, 2m or 1h{}", range);
    case OptionType::choice: {
      std::string words = row.choices;
      for (std::size_t at = 0; (at = words.find('|', at)) != std::string::npos; at += 2) words.replace(at, 1, ", ");
      return fmt::format("one of {}", words);
    }
  }
  return "text";
}

bool is_choice(std::string_view choices, std::string_view value) {
  while (true) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

// The value as a number; false when it is not one of the row's type and range.
bool read_number(const OptionRow& row, std::string_view value, std::int64_t* number) {
  switch (row.type) {
    case OptionType::text: return true;
    case OptionType::choice: return is_choice(row.choices, value);
    case OptionType::flag:
      if (value == "1" || value == "yes" || value == "true" || value == "on") return *number = 1, true;
      return *number = 0, value == "0" || value == "no" || value == "false" || value == "off";
    case OptionType::integer: {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
      if (error != std::errc{} || end != value.data() + value.size()) return false;
      break;
    }
    case OptionType::bytes:
    case OptionType::duration: {
      const auto parsed = row.type == OptionType::bytes ? parse_bytes(value) : parse_duration_ns(value);
      if (!parsed) return false;
      *number = *parsed;
      break;
    }
  }
  return *number >= row.least && *number <= row.most;
}

Error refuse_value(const OptionRow& row, std::string_view value, Origin origin) {
  const std::string shown = row.secret ? "(not shown)" : fmt::format("\"{}\"", value);
  const std::string from = origin == Origin::environment
                               ? fmt::format("the environment variable {}", environment_name(row.name))
                           : origin == Origin::caller ? "the caller"
                                                      : "the table of defaults";
  return fail(Code::invalid, "option {} cannot be {}: {} is expected; the value came from {}", row.name, shown,
              expected(row), from);
}

}  // namespace

std::string environment_name(std::string_view option) {
  std::string name(kPrefix);
  for (const char c : option) name.push_back(c == '.' || c == '-' ? '_' : upper(c));
  return name;
}

Result<Options> Options::read(std::span<const Pair> caller, std::span<const char* const> environment,
                              std::span<const OptionRow> table) {
  Options options;
  options.table_ = table;
  for (const OptionRow& row : table) options.values_.push_back({row.fallback, 0, Origin::fallback});

  for (const char* entry : environment) {
    const std::string_view line = entry == nullptr ? "" : entry;
    if (!line.starts_with(kPrefix) || line.starts_with(kRunPrefix) || line.starts_with(kRunAccelerators)) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    const auto row =
        std::ranges::find_if(table, [&](const OptionRow& each) { return environment_name(each.name) == name; });
    if (row == table.end()) {
      const OptionRow* meant = nearest(name, table, environment_name);
      options.warnings_.push_back(
          meant == nullptr
              ? fmt::format("{} is set, but strait has no such option; `strait info --options` lists them", name)
              : fmt::format("{} is set, but strait has no such option; did you mean {}?", name,
                            environment_name(meant->name)));
      continue;
    }
    Value& value = options.values_[static_cast<std::size_t>(row - table.begin())];
    // Should a variable be there twice, the first counts, as for getenv.
    if (value.origin == Origin::fallback) value = {std::string(line.substr(equals + 1)), 0, Origin::environment};
  }

  for (const auto& [name, text] : caller) {
    const auto row = std::ranges::find_if(table, [&](const OptionRow& each) { return each.name == name; });
    if (row == table.end()) {
      Error error = fail(Code::invalid, "strait has no option \"{}\"", name);
      const OptionRow* meant = nearest(name, table, [](const char* each) { return std::string_view(each); });
      error.remedy =
          meant == nullptr ? "`strait info --options` lists them all." : fmt::format("Did you mean {}?", meant->name);
      return error;
    }
    options.values_[static_cast<std::size_t>(row - table.begin())] = {text, 0, Origin::caller};
  }

  for (std::size_t i = 0; i < table.size(); ++i) {
    Value& value = options.values_[i];
    if (!read_number(table[i], value.text, &value.number)) return refuse_value(table[i], value.text, value.origin);
  }
  return options;
}

Result<Options> Options::read(std::span<const Pair> caller) {
  std::size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  return read(caller, std::span<const char* const>(environ, count));
}

const Options::Value& Options::find(std::string_view name) const {
  static const Value nothing;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (table_[i].name == name) return values_[i];
  }
  return nothing;
}

const std::string& Options::text(std::string_view name) const {
  return find(name).text;
}
bool Options::flag(std::string_view name) const {
  return find(name).number != 0;
}
std::int64_t Options::integer(std::string_view name) const {
  return find(name).number;
}
std::int64_t Options::duration_ns(std::string_view name) const {
  return find(name).number;
}
Origin Options::origin(std::string_view name) const {
  return find(name).origin;
}

const char* origin_name(Origin origin) {
  switch (origin) {
    case Origin::fallback: return "default";
    case Origin::environment: return "environment";
    case Origin::caller: return "caller";
  }
  return "unknown";
}

}  // namespace strait
