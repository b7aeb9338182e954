// SPDX-License-Identifier: Apache-2.0
// The memory of this process, reached so that a bad address is an answer, never a crash.
#pragma once

#include <cstdint>

#include "soft/cassini/user_memory.hpp"
#include "sys/address_space.hpp"

namespace strait::soft::cassini {

class OwnMemory : public UserMemory {
 public:
  OwnMemory() : space_(sys::AddressSpace::open()) {}
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) override;
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) override;
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  [[nodiscard]] std::uint32_t huge_shift(std::uint64_t address, std::uint64_t bytes) override;
  [[nodiscard]] std::byte* direct(std::uint64_t /*address*/, std::uint64_t /*bytes*/) override { return nullptr; }

 private:
  sys::AddressSpace space_;
};

}  // namespace strait::soft::cassini
