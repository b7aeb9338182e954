// SPDX-License-Identifier: Apache-2.0
// Numbers as people write them: "64K", "1.5s". All arithmetic is checked; nothing wraps.
#include <array>
#include <charconv>

#include "base/options.hpp"

namespace strait {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<Unit, 13> kByteUnits = {{{"", 1},
                                              {"B", 1},
                                              {"K", std::int64_t{1} << 10},
                                              {"k", std::int64_t{1} << 10},
                                              {"KiB", std::int64_t{1} << 10},
                                              {"M", std::int64_t{1} << 20},
                                              {"m", std::int64_t{1} << 20},
                                              {"MiB", std::int64_t{1} << 20},
                                              {"G", std::int64_t{1} << 30},
                                              {"g", std::int64_t{1} << 30},
                                              {"GiB", std::int64_t{1} << 30},
                                              {"T", std::int64_t{1} << 40},
                                              {"TiB", std::int64_t{1} << 40}}};

constexpr std::array<Unit, 6> kTimeUnits = {{{"ns", 1},
                                             {"us", 1'000},
                                             {"ms", 1'000'000},
                                             {"s", 1'000'000'000},
                                             {"m", 60'000'000'000},
                                             {"h", 3'600'000'000'000}}};

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Takes the digits off the front of `rest`; false when there are none or they do not fit.
bool take_digits(std::string_view& rest, std::int64_t* value) {
  if (rest.empty() || !is_digit(rest.front())) return false;  // from_chars would take a minus sign
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *value);
  if (error != std::errc{}) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
  std::string_view rest = text;
  std::int64_t count = 0;
  const Unit* unit = take_digits(rest, &count) ? find_unit(kByteUnits, rest) : nullptr;
  std::int64_t total = 0;
  if (unit == nullptr || __builtin_mul_overflow(count, unit->factor, &total)) {
    return fail(Code::invalid, "\"{}\" is not a number of bytes such as 4096, 64K, 256M or 2G", text);
  }
  return total;
}

Result<std::int64_t> parse_duration_ns(std::string_view text) {
  const auto refuse = [text] {
    return fail(Code::invalid, "\"{}\" is not a duration such as 20us, 500ms, 1.5s, 2m or 1h", text);
  };
  std::string_view rest = text;
  std::int64_t whole = 0;
  if (!take_digits(rest, &whole)) return refuse();
  if (whole == 0 && rest.empty()) return std::int64_t{0};

  std::string_view fraction;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    std::size_t digits = 0;
    while (digits < rest.size() && is_digit(rest[digits])) ++digits;
    if (digits == 0) return refuse();
    fraction = rest.substr(0, digits);
    rest.remove_prefix(digits);
  }
  const Unit* unit = find_unit(kTimeUnits, rest);
  std::int64_t total = 0;
  if (unit == nullptr || __builtin_mul_overflow(whole, unit->factor, &total)) return refuse();

  // Each digit is worth a tenth of the one before it, in whole nanoseconds: exact without floating point.
  std::int64_t worth = unit->factor;
  for (const char digit : fraction) {
    worth /= 10;
    if (__builtin_add_overflow(total, worth * (digit - '0'), &total)) return refuse();
  }
  return total;
}

}  // namespace strait
