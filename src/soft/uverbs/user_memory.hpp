// SPDX-License-Identifier: Apache-2.0
// The program's memory as a kernel would reach it: a bad pointer is an answer (EFAULT), never a crash.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sys/address_space.hpp"

namespace strait::soft::uverbs {

class UserMemory {
 public:
  virtual ~UserMemory() = default;
  // All of it, or false; then part of it may have moved.
  [[nodiscard]] virtual bool copy_in(std::uint64_t from, void* into, std::size_t bytes) const = 0;
  [[nodiscard]] virtual bool copy_out(std::uint64_t to, const void* from, std::size_t bytes) const = 0;
  // Where the NIC finds a range that stays in use (rings, records, registered memory); null: it is not all there, or
  // may not be written although that was asked for.
  [[nodiscard]] virtual std::byte* lasting(std::uint64_t address, std::uint64_t bytes, bool writable) const = 0;
};

// Of this process.
class OwnMemory final : public UserMemory {
 public:
  OwnMemory() : space_(sys::AddressSpace::open()) {}
  [[nodiscard]] bool copy_in(std::uint64_t from, void* into, std::size_t bytes) const override;
  [[nodiscard]] bool copy_out(std::uint64_t to, const void* from, std::size_t bytes) const override;
  [[nodiscard]] std::byte* lasting(std::uint64_t address, std::uint64_t bytes, bool writable) const override;

 private:
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool writable) const;
  sys::AddressSpace space_;
};

}  // namespace strait::soft::uverbs
