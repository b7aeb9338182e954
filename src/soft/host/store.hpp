// SPDX-License-Identifier: Apache-2.0
// Store: what a machine instruction writes to memory, told from its bytes and the registers it was run with.
//
// Only what compilers make of a store to a doorbell: plain stores of general registers, immediates and the low half of
// a vector register, up to 8 bytes, and pairs on arm64. Everything else is not decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sys/store_fault.hpp"

namespace strait::soft::host {

struct Store {
  std::uint64_t address = 0;
  std::uint32_t width = 0;  // of one value: 1, 2, 4 or 8 bytes
  std::uint32_t count = 1;  // 2: a pair, one behind the other
  std::uint64_t values[2] = {};
  std::uint32_t length = 0;  // of the instruction
  int base = -1;             // a register that the instruction changes as well; -1: none
  std::uint64_t base_after = 0;
};

[[nodiscard]] std::optional<Store> decode_store_x86(std::span<const std::uint8_t> code,
                                                    const sys::ProcessorState& state);
[[nodiscard]] std::optional<Store> decode_store_arm64(std::span<const std::uint8_t> code,
                                                      const sys::ProcessorState& state);
// Of the processor that this is built for.
[[nodiscard]] std::optional<Store> decode_store(std::span<const std::uint8_t> code, const sys::ProcessorState& state);

// How long a store of 16 bytes or more from vector registers is, which changes nothing but memory: what copies to
// write-combining pages are made of. What it writes is not told. Nullopt: it is none.
[[nodiscard]] std::optional<std::uint32_t> wide_store_x86(std::span<const std::uint8_t> code);
[[nodiscard]] std::optional<std::uint32_t> wide_store_arm64(std::span<const std::uint8_t> code);
[[nodiscard]] std::optional<std::uint32_t> wide_store(std::span<const std::uint8_t> code);

}  // namespace strait::soft::host
