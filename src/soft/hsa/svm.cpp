// SPDX-License-Identifier: Apache-2.0
// Advice about the program's own memory: remembered per range and told back; nothing moves in software.
#include "soft/hsa/runtime.hpp"

namespace strait::soft::hsa {
namespace {

constexpr std::uint64_t kGlobalFlag = 0, kReadOnly = 1, kHiveLocal = 2, kGranularity = 3, kPreferred = 4,
                        kPrefetched = 5, kReadMostly = 6, kGpuExec = 7, kAccessible = 0x200,  // 0x201: in place

    kNoAccess = 0x202, kQuery = 0x203;

bool is_place(std::uint64_t attribute) {
  return attribute == kPreferred || attribute == kPrefetched;
}
bool is_agent_list(std::uint64_t attribute) {
  return attribute >= kAccessible && attribute <= kNoAccess;
}
bool is_setting(std::uint64_t attribute) {
  return attribute == kGlobalFlag || attribute == kReadOnly || attribute == kHiveLocal || attribute == kGranularity ||
         attribute == kReadMostly || attribute == kGpuExec;
}

}  // namespace

Answer Runtime::advise(std::uint64_t address, std::uint64_t length_bytes, const SvmPair* list, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const SvmPair& each = list[i];
    std::uint32_t node = 0;
    if (is_agent_list(each.attribute) || each.attribute == kPreferred) {
      if (each.value != 0 && !node_of(Agent{each.value}, node)) return kInvalidAgent;
    } else if (!is_setting(each.attribute)) {
      return kInvalidArgument;
    }
  }
  const std::lock_guard lock(mutex_);
  if (ranges_.overlaps(address, length_bytes)) return kInvalidArgument;  // device memory does not migrate
  auto& known = advice_[{address, length_bytes}];
  for (std::size_t i = 0; i < n; ++i) {
    if (is_agent_list(list[i].attribute))
      known[list[i].value] = list[i].attribute;  // what this agent may do
    else
      known[list[i].attribute] = list[i].value;
  }
  return kSuccess;
}

Answer Runtime::advice(std::uint64_t address, std::uint64_t length_bytes, SvmPair* list, std::size_t n) {
  const std::lock_guard lock(mutex_);
  if (ranges_.overlaps(address, length_bytes)) return kInvalidArgument;
  const auto found = advice_.find({address, length_bytes});
  for (std::size_t i = 0; i < n; ++i) {
    SvmPair& each = list[i];
    const std::uint64_t key = each.attribute == kQuery ? each.value : each.attribute;
    std::uint32_t node = 0;
    if (each.attribute == kQuery && !node_of(Agent{each.value}, node)) return kInvalidAgent;
    if (each.attribute != kQuery && !is_setting(each.attribute) && !is_place(each.attribute)) return kInvalidArgument;
    const bool told = found != advice_.end() && found->second.contains(key);
    if (each.attribute == kQuery)
      each.attribute = told ? found->second.at(key) : kNoAccess;
    else
      each.value = told ? found->second.at(key) : 0;
  }
  return kSuccess;
}

}  // namespace strait::soft::hsa
