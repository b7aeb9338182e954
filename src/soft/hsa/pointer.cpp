// SPDX-License-Identifier: Apache-2.0
// Whose memory is this? And where are its bytes?
#include "soft/hsa/runtime.hpp"

namespace strait::soft::hsa {
namespace {

PointerInfo describe_range(const Range& range) {
  PointerInfo info{};
  info.type = range.type;
  info.agent_base = reinterpret_cast<void*>(range.base);
  info.host_base = range.host_access ? info.agent_base : nullptr;
  info.size_in_bytes = range.asked_bytes;
  info.user_data = range.user_data;
  info.global_flags = range.flags;
  info.registered = true;
  return info;
}

}  // namespace

Answer Runtime::pointer_info(const void* pointer, PointerInfo& out, std::vector<Agent>& accessible) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  out = {};
  std::uint64_t access = 0;
  const std::lock_guard lock(mutex_);
  if (const Range* range = ranges_.around(address); range != nullptr) {
    // What was cut off by rounding belongs to nobody.
    if (address - range->base >= range->asked_bytes) return kSuccess;
    out = describe_range(*range);
    std::uint32_t node = range->owner;
    // Memory of a GPU that this process does not see has no owner here.
    if (node_of(agent_of(node), node)) out.agent_owner = agent_of(node);
    access = range->access;
  } else if (const Locked* locked = locked_around(address, 1); locked != nullptr) {
    out.type = kPointerLocked;
    out.agent_base = reinterpret_cast<void*>(locked->base);
    out.host_base = out.agent_base;
    out.size_in_bytes = locked->length_bytes;
    out.user_data = locked->user_data;
    out.agent_owner = agent_of(0);
    out.global_flags = kFlagCoarseGrained;
    out.registered = true;
    access = locked->access;
  } else if (const Reservation* room = reservation_around(address, 1); room != nullptr) {
    out.type = kPointerReserved;
    out.host_base = reinterpret_cast<void*>(room->base);
    out.size_in_bytes = room->length_bytes;
    out.registered = true;
  }
  for (std::uint32_t node = 0; node < 64; ++node) {
    std::uint32_t known = 0;
    if ((access >> node & 1) != 0 && node_of(agent_of(node), known)) accessible.push_back(agent_of(node));
  }
  return kSuccess;
}

Answer Runtime::set_user_data(const void* pointer, void* data) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const std::lock_guard lock(mutex_);
  if (Range* range = ranges_.at(address); range != nullptr) {
    range->user_data = data;
    return kSuccess;
  }
  for (Locked& each : locked_) {
    if (each.base != address) continue;
    each.user_data = data;
    return kSuccess;
  }
  return kInvalidArgument;
}

bool Runtime::reach(const void* address, std::uint64_t length_bytes, Bytes& out) {
  const auto first = reinterpret_cast<std::uint64_t>(address);
  const std::lock_guard lock(mutex_);
  if (const Range* range = ranges_.around(first); range != nullptr) {
    const std::uint64_t from = first - range->base;
    if (length_bytes > range->room_bytes - from) return false;
    out = {range->pages->bytes() + range->offset + from, range->pages};
    return true;
  }
  if (locked_around(first, length_bytes) == nullptr) return false;
  out = {reinterpret_cast<std::byte*>(first), nullptr};
  return true;
}

}  // namespace strait::soft::hsa
