// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/places.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <charconv>

namespace strait::soft::cassini {
namespace {

constexpr unsigned kPciDomain = 0x5355;
constexpr unsigned kMajor = 511;  // of those that the kernel gives to whoever comes

// Takes `prefix` and a number off the front.
bool take_number(std::string_view& text, std::string_view prefix, std::uint32_t& out) {
  if (!text.starts_with(prefix)) return false;
  const char* const first = text.data() + prefix.size();
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(first, end, out);
  if (parsed.ec != std::errc() || parsed.ptr == first) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return true;
}

}  // namespace

std::string pci_slot(std::uint32_t card) {
  return fmt::format("{:04x}:{:02x}:00.0", kPciDomain, card + 1);
}
std::string pci_bus() {
  return fmt::format("/sys/devices/pci{:04x}:00", kPciDomain);
}
std::string pci_folder(std::uint32_t card) {
  return pci_bus() + "/" + pci_slot(card);
}
std::string user_folder(std::uint32_t card) {
  return fmt::format("{}/cxi_user/cxi{}", pci_folder(card), card);
}
std::string wait_file(std::uint32_t card, std::uint32_t client, std::uint32_t wait) {
  return fmt::format("{}/clients/{}/wait/{}/intr", user_folder(card), client, wait);
}
std::uint64_t cxi_device_number(std::uint32_t card) {
  return makedev(kMajor, card);
}
std::string interface_name(std::uint32_t card) {
  return fmt::format("hsn{}", card);
}
std::uint32_t nid_of(std::uint32_t card) {
  return 0x100 + card;
}

std::optional<LiveFile> parse_live(std::string_view path) {
  LiveFile out;
  if (take_number(path, "/dev/cxi", out.card)) {
    if (!path.empty() || out.card >= kMostShown) return std::nullopt;
    return out;
  }
  for (out.card = 0; out.card < kMostShown; ++out.card) {
    const std::string user = user_folder(out.card), pci = pci_folder(out.card);
    std::string_view rest = path;
    if (take_number(rest, user + "/clients/", out.client) && take_number(rest, "/wait/", out.wait) && rest == "/intr") {
      out.kind = LiveFile::Kind::wait;
      return out;
    }
    if (path == pci + "/properties/rgids_avail") {
      out.kind = LiveFile::Kind::rgids;
      return out;
    }
    if (path.starts_with(pci + "/telemetry/")) {
      out.kind = LiveFile::Kind::telemetry;
      out.name = path.substr(pci.size() + 11);
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace strait::soft::cassini
