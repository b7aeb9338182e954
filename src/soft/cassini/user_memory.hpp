// SPDX-License-Identifier: Apache-2.0
// Memory as the device reaches it: a client's address space, a file that client and device map, an accelerator's.
// Addresses come from strangers: a bad one is an answer, never a crash.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strait::soft::cassini {

class UserMemory {
 public:
  UserMemory() = default;
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;
  virtual ~UserMemory() = default;

  // All of it, or false; then part of it may have moved.
  [[nodiscard]] virtual bool read(std::uint64_t address, void* into, std::size_t bytes) = 0;
  [[nodiscard]] virtual bool write(std::uint64_t address, const void* from, std::size_t bytes) = 0;
  // Could all of it be pinned: is it mapped for reading, or for writing too?
  [[nodiscard]] virtual bool reaches(std::uint64_t address, std::uint64_t bytes, bool writable) = 0;
  // As sys::AddressSpace has it: log2 of the huge pages that it begins on, 21 when it leaves them, 0 for others.
  [[nodiscard]] virtual std::uint32_t huge_shift(std::uint64_t address, std::uint64_t bytes) {
    (void)address, (void)bytes;
    return 0;
  }
  // It cannot be reached at all any more, whoever's fault that is: what fails then says nothing about an address.
  [[nodiscard]] virtual bool lost() const { return false; }
  // Where the device itself loads and stores these bytes; null: nowhere, read() and write() have to do.
  [[nodiscard]] virtual std::byte* direct(std::uint64_t address, std::uint64_t bytes) = 0;
};

}  // namespace strait::soft::cassini
