// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/own_memory.hpp"

#include <cstring>

#include "sys/host.hpp"
#include "sys/process.hpp"

namespace strait::soft::cassini {
namespace {

void* own_pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

bool OwnMemory::reaches(std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (bytes == 0 || address + bytes < address) return false;
  const auto kind = space_.look(address, bytes).kind;
  return kind == sys::RangeAccess::Kind::read_write || (!writable && kind == sys::RangeAccess::Kind::read_only);
}

std::uint32_t OwnMemory::huge_shift(std::uint64_t address, std::uint64_t bytes) {
  return space_.huge_shift(address, bytes);
}

bool OwnMemory::read(std::uint64_t address, void* into, std::size_t bytes) {
  if (bytes == 0) return true;
  const iovec to{into, bytes};
  const iovec from{own_pointer(address), bytes};
  const Status copied = sys::read_process(sys::process_id(), {&to, 1}, {&from, 1});
  if (copied) return true;
  if (copied.error().code != Code::denied || !reaches(address, bytes, false)) return false;
  std::memcpy(into, own_pointer(address), bytes);  // a sandbox without the call: looked at, then touched
  return true;
}

bool OwnMemory::write(std::uint64_t address, const void* from, std::size_t bytes) {
  if (bytes == 0) return true;
  const iovec source{const_cast<void*>(from), bytes};
  const iovec to{own_pointer(address), bytes};
  const Status copied = sys::write_process(sys::process_id(), {&source, 1}, {&to, 1});
  if (copied) return true;
  if (copied.error().code != Code::denied || !reaches(address, bytes, true)) return false;
  std::memcpy(own_pointer(address), from, bytes);
  return true;
}

}  // namespace strait::soft::cassini
