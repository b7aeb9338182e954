// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/process_memory.hpp"

#include <cerrno>
#include <cstring>

#include "sys/process.hpp"

namespace strait::soft::cassini {
namespace {

// A client that shares and unshares for ever keeps its own device from growing, and nobody else's.
constexpr std::size_t kMostFiles = 4096;

iovec far(std::uint64_t address, std::size_t bytes) {
  return {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
}

}  // namespace

ProcessMemory::ProcessMemory(pid_t pid, std::uint64_t probe, std::uint64_t expected, std::shared_ptr<MemoryAsker> asker,
                             bool may_reach)
    : pid_(pid), asker_(std::move(asker)) {
  std::uint64_t seen = ~expected;
  const iovec into{&seen, sizeof seen};
  const iovec from = far(probe, sizeof seen);
  // Another process namespace: the number may be somebody else's, whose memory holds something else.
  reached_ = may_reach && sys::read_process(pid_, {&into, 1}, {&from, 1}) && seen == expected;
  if (!reached_) return;
  if (auto space = sys::AddressSpace::open_of(pid_)) space_ = std::move(*space);
}

std::byte* ProcessMemory::direct(std::uint64_t address, std::uint64_t bytes) {
  auto after = shares_.upper_bound(address);
  if (after == shares_.begin()) return nullptr;
  --after;
  const std::uint64_t skip = address - after->first;
  if (bytes > after->second.bytes || skip > after->second.bytes - bytes) return nullptr;
  return after->second.at + skip;
}

bool ProcessMemory::read(std::uint64_t address, void* into, std::size_t bytes) {
  if (bytes == 0) return true;
  if (const std::byte* here = direct(address, bytes)) {
    std::memcpy(into, here, bytes);
    return true;
  }
  if (!reached_) return asker_ && asker_->read(0, address, into, bytes);
  const iovec to{into, bytes};
  const iovec from = far(address, bytes);
  return static_cast<bool>(sys::read_process(pid_, {&to, 1}, {&from, 1}));
}

bool ProcessMemory::write(std::uint64_t address, const void* from, std::size_t bytes) {
  if (bytes == 0) return true;
  if (std::byte* here = direct(address, bytes)) {
    std::memcpy(here, from, bytes);
    return true;
  }
  if (!reached_) return asker_ && asker_->write(0, address, from, bytes);
  const iovec source{const_cast<void*>(from), bytes};
  const iovec to = far(address, bytes);
  return static_cast<bool>(sys::write_process(pid_, {&source, 1}, {&to, 1}));
}

bool ProcessMemory::reaches(std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (bytes == 0 || address + bytes < address) return false;
  if (!space_) return asker_ && asker_->reaches(0, address, bytes, writable);
  const auto kind = space_->look(address, bytes).kind;
  return kind == sys::RangeAccess::Kind::read_write || (!writable && kind == sys::RangeAccess::Kind::read_only);
}

std::uint32_t ProcessMemory::huge_shift(std::uint64_t address, std::uint64_t bytes) {
  return space_ ? space_->huge_shift(address, bytes) : 0;
}

int ProcessMemory::share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset) {
  if (bytes == 0 || address + bytes < address) return -EINVAL;
  const auto after = shares_.lower_bound(address);
  if (after != shares_.end() && after->first < address + bytes) return -EEXIST;
  if (after != shares_.begin() && std::prev(after)->first + std::prev(after)->second.bytes > address) return -EEXIST;
  const auto id = sys::file_id(fd);
  if (!id) return -EBADF;
  const FileKey key{*id, offset, bytes};
  auto known = files_.find(key);
  if (known == files_.end()) {
    if (files_.size() >= kMostFiles) return -ENOMEM;
    auto mapped = FileBytes::map(fd, offset, bytes);
    if (!mapped) return mapped.error().sys_errno == ENOMEM ? -ENOMEM : -EINVAL;
    known = files_.emplace(key, std::move(*mapped)).first;
  }
  shares_.emplace(address, Share{bytes, known->second.data()});
  return 0;
}

int ProcessMemory::unshare(std::uint64_t address) {
  return shares_.erase(address) == 1 ? 0 : -ENOENT;
}

}  // namespace strait::soft::cassini
