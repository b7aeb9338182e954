// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/open_device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "soft/cassini_host/connection.hpp"
#include "soft/cassini_host/local.hpp"
#include "soft/cassini_host/server.hpp"
#include "soft/cassini_host/trap.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::size_t kHeadBytes = 16;  // the driver reads as many whatever the length is

}  // namespace

Result<std::unique_ptr<OpenDevice>> OpenDevice::open(OpenSettings settings) {
  const sys::Caller caller = sys::current_caller();
  std::unique_ptr<Channel> channel;
  if (settings.local) {
    STRAIT_TRY(const ClientOptions options, settings.trial.options());
    STRAIT_TRY(channel, LocalChannel::open(settings.device, caller, options));
  } else {
    if (settings.server.name.empty()) settings.server.name = server_name();
    STRAIT_TRY(channel, Connection::open(settings.server, settings.device, caller, settings.trial));
  }
  std::unique_ptr<OpenDevice> made(new OpenDevice(std::move(channel), std::move(settings.memory)));
  if (settings.trial.strict) {
    if (settings.trial.nic.empty()) settings.trial.nic = fmt::format("cxi{}", settings.device);
    STRAIT_TRY(made->watch_, StrictWatch::start(*made->channel_, std::move(settings.trial), std::move(settings.told)));
  }
  return made;
}

OpenDevice::~OpenDevice() {
  for (auto& [address, mapped] : mapped_) {
    if (mapped.alias.valid()) (void)drop_doorbell(reinterpret_cast<const void*>(address));
  }
  watch_.reset();     // asks once more
  channel_->close();  // before the memory goes that it uses
}

long OpenDevice::write(const void* command, std::size_t length) {
  const auto at = reinterpret_cast<std::uint64_t>(command);
  std::byte head[kHeadBytes];
  if (!memory_.read(at, head, sizeof head)) return -EFAULT;
  if (length > protocol::kMostCommand) return -EINVAL;
  std::vector<std::byte> bytes(length);
  if (length != 0 && !memory_.read(at, bytes.data(), length)) return -EFAULT;
  DeviceMemories::Found found = device_memory_.find(bytes);
  const long result = channel_->write(bytes, sys::current_caller(), found.memory);
  if (result < 0) return result;
  std::uint32_t made = 0;
  if (!found.holds.empty()) {
    // Every command that takes device memory and has an answer begins that with a number.
    std::uint64_t answer = 0;
    std::memcpy(&answer, head + 8, sizeof answer);
    (void)memory_.read(answer, &made, sizeof made);
  }
  device_memory_.done(bytes, std::move(found), made);
  return result;
}

std::int64_t OpenDevice::map(void* address, std::size_t length, int protect, int flags, std::uint64_t offset,
                             bool trap) {
  if ((flags & MAP_TYPE) != MAP_SHARED && (flags & MAP_TYPE) != MAP_SHARED_VALIDATE) return -EINVAL;
  Client::Page page = Client::Page::none;
  if (const int refused = channel_->map(offset, length, page)) return refused;
  const bool trapped = trap && page == Client::Page::doorbell && (protect & PROT_WRITE) != 0;
  Mapped mapped;
  mapped.offset = offset;
  mapped.length = mapped.left = length;
  std::int64_t at =
      sys::map_as_asked(address, length, trapped ? protect & ~PROT_WRITE : protect, flags, channel_->pages(), offset);
  if (at >= 0 && trapped) {
    auto alias = sys::map_file(channel_->pages(), offset, length, sys::Protect::read_write);
    Status added = alias ? add_doorbell(reinterpret_cast<const void*>(at), alias->data()) : Status(alias.error());
    if (added) {
      mapped.alias = std::move(*alias);
    } else {
      (void)sys::unmap_as_asked(reinterpret_cast<void*>(at), length);
      at = -ENOMEM;
    }
  }
  if (at < 0) {
    channel_->unmap(offset);
    return at;
  }
  const std::lock_guard lock(mutex_);
  mapped_.insert_or_assign(static_cast<std::uint64_t>(at), std::move(mapped));
  return at;
}

void OpenDevice::unmapped(void* address, std::size_t length) {
  const auto first = reinterpret_cast<std::uint64_t>(address);
  std::vector<std::pair<std::uint64_t, Mapped>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = mapped_.begin(); at != mapped_.end();) {
      const std::uint64_t begin = std::max(first, at->first);
      const std::uint64_t end = std::min(first + length, at->first + at->second.length);
      if (begin < end) at->second.left -= std::min<std::size_t>(at->second.left, end - begin);
      if (at->second.left != 0) {
        ++at;
        continue;
      }
      ended.emplace_back(at->first, std::move(at->second));
      at = mapped_.erase(at);
    }
  }
  for (auto& [at, mapped] : ended) {
    if (mapped.alias.valid()) (void)drop_doorbell(reinterpret_cast<const void*>(at));
    channel_->unmap(mapped.offset);
  }
}

}  // namespace strait::soft::cassini
