// SPDX-License-Identifier: Apache-2.0
// Wrapping, units and colour.
#include "tool/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "plot/units.hpp"
#include "sys/terminal.hpp"

namespace strait::tool {
namespace {

void wrap_line(std::string_view line, std::size_t indent, std::size_t hanging, std::size_t columns, std::string& out) {
  out.append(indent, ' ');
  std::size_t column = indent;
  bool first = true;
  while (!line.empty()) {
    const std::size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    std::string_view word = line.substr(0, line.find(' '));
    // A list without blanks that no line can hold breaks behind a comma.
    if (const std::size_t room = columns - (first ? indent : hanging); word.size() > room) {
      if (const std::size_t comma = word.substr(0, room).rfind(','); comma != std::string_view::npos)
        word = word.substr(0, comma + 1);
    }
    line.remove_prefix(word.size());
    if (!first && column + 1 + word.size() > columns) {
      out.push_back('\n');
      out.append(hanging, ' ');
      column = hanging;
    } else if (!first) {
      out.push_back(' ');
      ++column;
    }
    out.append(word);
    column += word.size();
    first = false;
  }
  out.push_back('\n');
}

}  // namespace

std::string wrap(std::string_view text, std::size_t indent, std::size_t hanging, std::size_t columns) {
  std::string out;
  bool first = true;
  do {
    const std::size_t end = text.find('\n');
    wrap_line(text.substr(0, end), first ? indent : hanging, hanging, columns, out);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    first = false;
  } while (!text.empty());
  return out;
}

std::string size_text(std::uint64_t bytes) {
  return plot::size_text(bytes);
}

std::string rate_text(double bytes_per_second) {
  if (bytes_per_second >= 1e8) return fmt::format("{:.1f} GB/s", bytes_per_second / 1e9);
  return fmt::format("{:.1f} MB/s", bytes_per_second / 1e6);
}

std::string time_text(double seconds) {
  if (seconds < 100e-9) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

std::string address_text(std::uint64_t address) {
  const std::string digits = fmt::format("{:x}", address);
  std::string out = "0x";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 4 == 0) out.push_back('_');
    out.push_back(digits[i]);
  }
  return out;
}

std::string tinted(std::string_view text, Tint tint) {
  static const bool colour = sys::wants_colour(STDOUT_FILENO);
  if (!colour || tint == Tint::plain) return std::string(text);
  const char* code = tint == Tint::strong ? "1" : tint == Tint::good ? "32" : tint == Tint::bad ? "1;31" : "2";
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

}  // namespace strait::tool
