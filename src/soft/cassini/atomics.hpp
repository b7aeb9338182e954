// SPDX-License-Identifier: Apache-2.0
// Atomic operations of the device: what they compute, and how they land in memory that others use too.
#pragma once

#include <cstdint>

#include "soft/cassini/extents.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::soft::cassini {

namespace wire = strait::wire::cxi;

struct AtomicCommand {
  wire::AtomicOp op{};
  wire::AtomicType type{};
  wire::CswapOp cswap{};           // for AtomicOp::cswap
  std::uint64_t operand1[2] = {};  // low bytes count, as many as the type has
  std::uint64_t operand2[2] = {};  // compare value or mask
};

// Does the hardware have the operation for the type?
[[nodiscard]] bool has_atomic(const AtomicCommand& command);

// What floating point ran into: bits in the order of the portal options that signal them (invalid is the first).
inline constexpr std::uint32_t kFpInvalid = 1u << 0;
inline constexpr std::uint32_t kFpUnderflow = 1u << 1;
inline constexpr std::uint32_t kFpOverflow = 1u << 2;
inline constexpr std::uint32_t kFpInexact = 1u << 3;

struct Applied {
  wire::ReturnCode code = wire::ReturnCode::ok;  // or amo_inval_op_error
  bool stores = false;                           // a compare that does not hold leaves memory alone
  std::uint64_t value[2] = {};                   // what memory becomes
  std::uint32_t floating = 0;                    // kFp*
};

// Pure. cswap compares "operand 2 <op> memory" and stores operand 1; axor stores (memory & ~operand 2) ^ operand 1;
// min and max of a number and a NaN are the number.
[[nodiscard]] Applied apply(const AtomicCommand& command, const std::uint64_t (&memory)[2]);

struct Landed {
  wire::ReturnCode code = wire::ReturnCode::ok;
  std::uint64_t fetched[2] = {};  // what was there before
  std::uint32_t floating = 0;
};

// On memory. Where the device reaches the bytes itself this is one atomic operation for processors too: their own
// atomics on the same word are not lost. Elsewhere it is read, then written; only the device's own are then exclusive.
// amo_inval_op_error, amo_align_error (the address is no multiple of the type's size), no_translation. A flag that is
// in `refuse` (kFp*) leaves memory as it was and is the code.
[[nodiscard]] Landed land(const AtomicCommand& command, const Extents& at, std::uint32_t refuse = 0);

}  // namespace strait::soft::cassini
