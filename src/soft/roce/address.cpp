// SPDX-License-Identifier: Apache-2.0
// Text of addresses. Written here and not taken from the resolver: no system call, and no name is ever looked up.
#include "soft/roce/address.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace strait::soft::roce {
namespace {

std::optional<unsigned> number(std::string_view digits, int base, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || value > most) return {};
  return value;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::array<std::uint8_t, 4>> parse_v4(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) return {};
  std::array<std::uint8_t, 4> out{};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto value = number(parts[i], 10, 255);
    // A leading zero means octal to some and decimal to others.
    if (!value || parts[i].size() > 3 || (parts[i].size() > 1 && parts[i][0] == '0')) return {};
    out[i] = static_cast<std::uint8_t>(*value);
  }
  return out;
}

// The 16-bit groups of one side of "::"; a dotted quad may be the last.
bool parse_groups(std::string_view text, bool may_end_in_v4, std::vector<std::uint16_t>& out) {
  if (text.empty()) return true;
  const auto parts = split(text, ':');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (may_end_in_v4 && i + 1 == parts.size() && parts[i].find('.') != std::string_view::npos) {
      const auto v4 = parse_v4(parts[i]);
      if (!v4) return false;
      out.push_back(static_cast<std::uint16_t>((*v4)[0] << 8 | (*v4)[1]));
      out.push_back(static_cast<std::uint16_t>((*v4)[2] << 8 | (*v4)[3]));
      continue;
    }
    const auto value = parts[i].size() <= 4 ? number(parts[i], 16, 0xffff) : std::nullopt;
    if (!value) return false;
    out.push_back(static_cast<std::uint16_t>(*value));
  }
  return true;
}

std::optional<IpAddress> parse_v6(std::string_view text) {
  std::vector<std::uint16_t> head;
  std::vector<std::uint16_t> tail;
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) {
    if (!parse_groups(text, true, head) || head.size() != 8) return {};
  } else {
    if (!parse_groups(text.substr(0, gap), false, head)) return {};
    if (!parse_groups(text.substr(gap + 2), true, tail) || head.size() + tail.size() > 7) return {};
    head.resize(8 - tail.size());
  }
  head.insert(head.end(), tail.begin(), tail.end());
  IpAddress out;
  for (std::size_t i = 0; i < 8; ++i) {
    out.gid[2 * i] = static_cast<std::uint8_t>(head[i] >> 8);
    out.gid[2 * i + 1] = static_cast<std::uint8_t>(head[i] & 0xff);
  }
  return out;
}

}  // namespace

bool IpAddress::is_any() const {
  const auto from = is_v4() ? gid.begin() + 12 : gid.begin();
  return std::all_of(from, gid.end(), [](std::uint8_t byte) { return byte == 0; });
}

std::string IpAddress::text() const {
  if (is_v4()) return fmt::format("{}.{}.{}.{}", gid[12], gid[13], gid[14], gid[15]);
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) groups[i] = static_cast<unsigned>(gid[2 * i] << 8 | gid[2 * i + 1]);
  std::size_t best = 8;  // the longest run of zeros, of two at least, becomes "::"
  std::size_t best_length = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t length = 0;
    while (i + length < 8 && groups[i + length] == 0) ++length;
    if (length > best_length) {
      best = i;
      best_length = length;
    }
  }
  std::string out;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_length - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    out += fmt::format("{:x}", groups[i]);
  }
  return out;
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
  if (const auto v4 = parse_v4(text)) return IpAddress::v4((*v4)[0], (*v4)[1], (*v4)[2], (*v4)[3]);
  if (const auto v6 = parse_v6(text)) return *v6;
  return with_remedy(fail(Code::invalid, "'{}' is not an IP address", text),
                     "write it in numbers, for example 10.0.0.1 or fd00::7; names are not looked up");
}

}  // namespace strait::soft::roce
