// SPDX-License-Identifier: Apache-2.0
#include "soft/hsa/visible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace strait::soft::hsa {
namespace {

std::uint32_t slot_named(std::string_view word, std::uint32_t devices) {
  std::uint32_t slot = devices;
  const auto [end, ec] = std::from_chars(word.data(), word.data() + word.size(), slot);
  if (ec == std::errc{} && end == word.data() + word.size()) return slot;
  for (slot = 0; slot < devices && uuid_of_slot(slot) != word; ++slot) continue;
  return slot;
}

}  // namespace

std::string uuid_of_slot(std::uint32_t slot) {
  return fmt::format("GPU-{:016x}", 0x5374726169740000u + slot);
}

std::vector<std::uint32_t> visible_slots(const char* chosen, std::uint32_t devices) {
  std::vector<std::uint32_t> slots;
  if (chosen == nullptr) {
    for (std::uint32_t slot = 0; slot < devices; ++slot) slots.push_back(slot);
    return slots;
  }
  std::string_view left = chosen;
  while (!left.empty()) {
    const std::string_view word = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), word.size() + 1));
    const std::uint32_t slot = slot_named(word, devices);
    if (slot >= devices || std::find(slots.begin(), slots.end(), slot) != slots.end()) break;
    slots.push_back(slot);
  }
  return slots;
}

}  // namespace strait::soft::hsa
