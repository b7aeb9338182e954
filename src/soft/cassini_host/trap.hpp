// SPDX-License-Identifier: Apache-2.0
// Doorbells of counters, for programs that do not know that theirs is memory. A register counts every store; a word of
// memory keeps the last one. So the program gets its page read-only: each store faults, is decoded, and becomes an
// addition on a page that can be written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace strait::soft::cassini {

// Where what is stored on a counter's page, in bytes.
inline constexpr std::uint64_t kAddSuccess = 0, kAddFailure = 64, kResetSuccess = 128, kResetFailure = 192;
// A reset word that nobody has touched.
inline constexpr std::uint64_t kResetAtRest = ~std::uint64_t{0};

// What a store of `value` at `offset` of a counter's page does: on `page`, the one that device and client share.
// Stores of one thread act in their order: a word of another kind is waited for until the device has taken it, though
// not for ever. Safe in a signal handler.
void store_doorbell(std::byte* page, std::uint64_t offset, std::uint64_t value);

// [shown, shown + 4096) is mapped for reading only; `page` is the same page of the file, for writing, and stays mapped
// until drop_doorbell. Code::limit: too many of them.
[[nodiscard]] Status add_doorbell(const void* shown, std::byte* page);
// No store through it is under way when it returns. Null: there is none.
[[nodiscard]] std::byte* drop_doorbell(const void* shown);

}  // namespace strait::soft::cassini
