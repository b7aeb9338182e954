// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/user_memory.hpp"

#include <cstring>

#include "sys/host.hpp"
#include "sys/process.hpp"

namespace strait::soft::uverbs {

namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

bool OwnMemory::reaches(std::uint64_t address, std::uint64_t bytes, bool writable) const {
  if (bytes == 0 || address + bytes < address) return false;
  const auto kind = space_.look(address, bytes).kind;
  return kind == sys::RangeAccess::Kind::read_write || (!writable && kind == sys::RangeAccess::Kind::read_only);
}

bool OwnMemory::copy_in(std::uint64_t from, void* into, std::size_t bytes) const {
  if (bytes == 0) return true;
  const iovec to{into, bytes};
  const iovec source{pointer(from), bytes};
  const Status copied = sys::read_process(sys::process_id(), {&to, 1}, {&source, 1});
  if (copied) return true;
  if (copied.error().code != Code::denied || !reaches(from, bytes, false)) return false;
  std::memcpy(into, pointer(from), bytes);  // a sandbox without process_vm_readv: looked at, then touched
  return true;
}

bool OwnMemory::copy_out(std::uint64_t to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return true;
  const iovec source{const_cast<void*>(from), bytes};
  const iovec into{pointer(to), bytes};
  const Status copied = sys::write_process(sys::process_id(), {&source, 1}, {&into, 1});
  if (copied) return true;
  if (copied.error().code != Code::denied || !reaches(to, bytes, true)) return false;
  std::memcpy(pointer(to), from, bytes);
  return true;
}

std::byte* OwnMemory::lasting(std::uint64_t address, std::uint64_t bytes, bool writable) const {
  return reaches(address, bytes, writable) ? static_cast<std::byte*>(pointer(address)) : nullptr;
}

}  // namespace strait::soft::uverbs
