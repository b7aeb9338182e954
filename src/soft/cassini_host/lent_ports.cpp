// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/lent_ports.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace strait::soft::cassini {

LentPort::LentPort(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* behind)
    : address_(address), bytes_(bytes), behind_(behind) {
  port_.abi_version = STRAIT_PLUGIN_ABI;
  port_.struct_size = sizeof port_;
  port_.context = this;
  port_.read = [](void* self, std::uint64_t offset, void* into, std::uint64_t n) {
    return static_cast<LentPort*>(self)->access(offset, n, [&](const strait_memory_port& port, std::uint64_t at) {
      return port.read(port.context, at, into, n);
    });
  };
  port_.write = [](void* self, std::uint64_t offset, const void* from, std::uint64_t n) {
    return static_cast<LentPort*>(self)->access(offset, n, [&](const strait_memory_port& port, std::uint64_t at) {
      return port.write(port.context, at, from, n);
    });
  };
}

template <class Use>
std::int32_t LentPort::access(std::uint64_t offset, std::uint64_t bytes, Use use) {
  const std::shared_lock lock(mutex_);
  if (taken_ || bytes > bytes_ || offset > bytes_ - bytes) return EFAULT;
  return use(*behind_, address_ + offset);
}

void LentPort::take_back() {
  const std::unique_lock lock(mutex_);
  taken_ = true;
}

int LentPorts::add(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* port) {
  if (port == nullptr || port->read == nullptr || port->write == nullptr) return -EINVAL;
  if (bytes == 0 || address + bytes < address) return -EINVAL;
  const bool others = std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& each) {
    const LentPort& there = *each.second;
    return there.behind() != port && there.address() < address + bytes && address < there.address() + there.bytes();
  });
  if (others) return -EEXIST;
  ranges_.emplace(address, std::make_shared<LentPort>(address, bytes, port));
  return 0;
}

std::shared_ptr<LentPort> LentPorts::remove(std::uint64_t address) {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin() || std::prev(after)->first != address) return nullptr;
  auto out = std::move(std::prev(after)->second);
  ranges_.erase(std::prev(after));
  return out;
}

std::shared_ptr<LentPort> LentPorts::find(std::uint64_t address, std::uint64_t bytes) const {
  for (auto at = ranges_.upper_bound(address); at != ranges_.begin();) {
    const LentPort& there = *(--at)->second;
    if (bytes <= there.bytes() && address - there.address() <= there.bytes() - bytes) return at->second;
  }
  return nullptr;
}

}  // namespace strait::soft::cassini
