// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/process_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/cassini/translation.hpp"
#include "sys/process.hpp"

namespace strait::soft::cassini {
namespace {

// A client that shares and unshares for ever keeps its own device from growing, and nobody else's.
constexpr std::size_t kMostFiles = 4096;

iovec far(std::uint64_t address, std::size_t bytes) {
  return {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
}

}  // namespace

ProcessMemory::ProcessMemory(sys::Relay& relay, pid_t pid, std::uint64_t probe, std::uint64_t expected,
                             std::shared_ptr<MemoryAsker> asker, std::shared_ptr<Patience> patience, bool may_reach)
    : relay_(relay), pid_(pid), patience_(std::move(patience)), asker_(std::move(asker)) {
  std::uint64_t seen = ~expected;
  // Another process namespace: the number may be somebody else's, whose memory holds something else.
  reached_ = may_reach && copy(Way::read, probe, reinterpret_cast<std::byte*>(&seen), sizeof seen) && seen == expected;
  if (!reached_) return;
  if (auto space = sys::AddressSpace::open_of(pid_)) space_ = std::make_shared<sys::AddressSpace>(std::move(*space));
}

template <class Call>
bool ProcessMemory::within_patience(const Call& call) {
  if (patience_->given_up()) return false;
  const auto end = relay_.call(static_cast<std::uint64_t>(pid_), call);
  if (end == sys::Relay::End::left_behind) patience_->give_up();
  return end == sys::Relay::End::yes;
}

template <class Look, class Answer>
Answer ProcessMemory::looked(const Look& look, Answer otherwise) {
  struct Shared {
    std::shared_ptr<sys::AddressSpace> space;
    Answer answer;
  };
  if (patience_->given_up()) return otherwise;
  auto shared = std::make_unique<Shared>(Shared{space_, otherwise});
  const bool done = within_patience([look, at = shared.get()] {
    at->answer = look(*at->space);
    return true;
  });
  if (done) return shared->answer;
  (void)shared.release();  // who was left behind has it, for good
  return otherwise;
}

bool ProcessMemory::copy_bounce(Way way, std::uint64_t address, std::byte* between, std::size_t bytes) {
  return within_patience([way, pid = pid_, address, between, bytes] {
    const iovec near{between, bytes};
    const iovec there = far(address, bytes);
    return way == Way::read ? static_cast<bool>(sys::read_process(pid, {&near, 1}, {&there, 1}))
                            : static_cast<bool>(sys::write_process(pid, {&near, 1}, {&there, 1}));
  });
}

bool ProcessMemory::copy(Way way, std::uint64_t address, std::byte* here, std::size_t bytes) {
  if (here == bounce()) return copy_bounce(way, address, here, bytes);
  for (std::size_t at = 0; at < bytes;) {
    std::byte* const between = bounce();
    const std::size_t n = std::min<std::size_t>(bytes - at, kBounceBytes);
    if (way == Way::write) std::memcpy(between, here + at, n);
    if (!copy_bounce(way, address + at, between, n)) return false;
    if (way == Way::read) std::memcpy(here + at, between, n);
    at += n;
  }
  return true;
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
  return copy(Way::read, address, static_cast<std::byte*>(into), bytes);
}

bool ProcessMemory::write(std::uint64_t address, const void* from, std::size_t bytes) {
  if (bytes == 0) return true;
  if (std::byte* here = direct(address, bytes)) {
    std::memcpy(here, from, bytes);
    return true;
  }
  if (!reached_) return asker_ && asker_->write(0, address, from, bytes);
  return copy(Way::write, address, static_cast<std::byte*>(const_cast<void*>(from)), bytes);
}

bool ProcessMemory::reaches(std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (bytes == 0 || address + bytes < address) return false;
  if (!space_) return asker_ && asker_->reaches(0, address, bytes, writable);
  const auto kind = looked([=](sys::AddressSpace& space) { return space.look(address, bytes).kind; },
                           sys::RangeAccess::Kind::unmapped);
  return kind == sys::RangeAccess::Kind::read_write || (!writable && kind == sys::RangeAccess::Kind::read_only);
}

std::uint32_t ProcessMemory::huge_shift(std::uint64_t address, std::uint64_t bytes) {
  return space_ ? looked([=](sys::AddressSpace& space) { return space.huge_shift(address, bytes); }, 0u) : 0;
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
