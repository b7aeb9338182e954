// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/gids.hpp"

#include <algorithm>
#include <charconv>

#include "strait/wire/roce.hpp"
#include "sys/interfaces.hpp"

namespace strait::soft::uverbs {

namespace {

// IPv6, UDP, the longest headers of a packet, iCRC.
constexpr std::uint32_t kOverheadBytes = 40 + 8 + wire::roce::kMaxHeaderBytes + wire::roce::kIcrcBytes;

int rank(const sys::HostAddress& entry) {
  const roce::IpAddress address{entry.address};
  return (entry.loopback ? 4 : 0) + (address.is_link_local() ? 2 : 0) + (address.is_v4() ? 0 : 1);
}

}  // namespace

Result<std::vector<GidEntry>> host_gids() {
  STRAIT_TRY(auto addresses, sys::host_addresses());
  std::stable_sort(addresses.begin(), addresses.end(), [](const auto& a, const auto& b) { return rank(a) < rank(b); });
  std::vector<GidEntry> out;
  for (const sys::HostAddress& entry : addresses) {
    // One address on two interfaces (link-local ones may be): a GID names it once.
    const bool seen =
        std::any_of(out.begin(), out.end(), [&](const GidEntry& e) { return e.address.gid == entry.address; });
    if (!seen) out.push_back({{entry.address}, entry.interface, entry.interface_index, entry.mtu_bytes});
  }
  if (out.empty()) {
    return with_remedy(fail(Code::unsupported, "this host has no network address at all, not even on loopback"),
                       "bring the loopback interface up: ip link set lo up");
  }
  return out;
}

std::string gid_text(const roce::IpAddress& address) {
  std::string out;
  for (std::size_t i = 0; i < 16; i += 2)
    out += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", address.gid[i], address.gid[i + 1]);
  return out;
}

Result<roce::IpAddress> parse_gid(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  roce::IpAddress out;
  const auto wrong = [&] { return fail(Code::invalid, "\"{}\" is no GID: eight groups of four digits are", text); };
  if (text.size() != 39) return wrong();
  for (std::size_t group = 0; group < 8; ++group) {
    const char* const at = text.data() + group * 5;
    unsigned value = 0;
    const auto parsed = std::from_chars(at, at + 4, value, 16);
    if (parsed.ec != std::errc() || parsed.ptr != at + 4 || (group < 7 && at[4] != ':')) return wrong();
    out.gid[2 * group] = static_cast<std::uint8_t>(value >> 8);
    out.gid[2 * group + 1] = static_cast<std::uint8_t>(value & 0xff);
  }
  return out;
}

std::uint8_t mtu_code(std::uint32_t interface_mtu_bytes) {
  std::uint8_t best = 1;
  for (std::uint8_t code = 1; code <= 5; ++code) {
    if (wire::roce::pmtu_bytes(code) + kOverheadBytes <= interface_mtu_bytes) best = code;
  }
  return best;
}

}  // namespace strait::soft::uverbs
