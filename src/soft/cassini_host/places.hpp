// SPDX-License-Identifier: Apache-2.0
// Where a card is in /dev and /sys, for who writes the tree and for who answers for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strait::soft::cassini {

inline constexpr std::uint32_t kMostShown = 8;  // cards of one run: nodes in /dev itself are claimed one by one

// "0000:c1:00.0"; a bus that no machine has, so that nothing of the real tree is hidden.
[[nodiscard]] std::string pci_slot(std::uint32_t card);
[[nodiscard]] std::string pci_bus();
[[nodiscard]] std::string pci_folder(std::uint32_t card);   // /sys/devices/pci.../<slot>
[[nodiscard]] std::string user_folder(std::uint32_t card);  // .../cxi_user/cxi0
[[nodiscard]] std::string wait_file(std::uint32_t card, std::uint32_t client, std::uint32_t wait);
[[nodiscard]] std::uint64_t cxi_device_number(std::uint32_t card);
[[nodiscard]] std::string interface_name(std::uint32_t card);  // hsn0
[[nodiscard]] std::uint32_t nid_of(std::uint32_t card);

struct LiveFile {
  enum class Kind { node, wait, telemetry, rgids };
  Kind kind = Kind::node;
  std::uint32_t card = 0;
  std::uint32_t client = 0, wait = 0;
  std::string_view name;  // of the telemetry
};
[[nodiscard]] std::optional<LiveFile> parse_live(std::string_view path);

}  // namespace strait::soft::cassini
