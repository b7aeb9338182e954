// SPDX-License-Identifier: Apache-2.0
// Stores to pages that cannot be written: who knows what they mean gets them, everything else goes where it would have
// gone. Process-wide, like the signal handler behind it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strait::sys {

// What the processor had when it made the access: for x86-64 the sixteen registers in the order of their numbers in
// instructions (rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8...) and the low halves of xmm0 to xmm15; for arm64 x0 to
// x30, sp as number 31, and the low halves of v0 to v31.
struct ProcessorState {
  std::uint64_t registers[32] = {};
  std::uint64_t vectors[32] = {};
  std::uint64_t at = 0;  // the instruction
};

// In a signal handler, on any thread: no locks, no allocation. True: done, and the program goes on with `state`, where
// `at` and registers may have been changed (vectors may not). False: not ours.
using StoreFault = bool (*)(std::uint64_t address, ProcessorState& state);

// Puts a handler in front of the one that the program has now, if ours is not the foremost. Up to four functions per
// process are asked, in the order in which they came.
void catch_store_faults(StoreFault call);

// Whether the handler runs on a stack that the program set aside for signals: there may be little of it.
[[nodiscard]] bool on_alternate_stack();

// The bytes of an instruction, read so that a bad address is an answer: how many there are.
[[nodiscard]] std::size_t read_instruction(std::uint64_t at, std::uint8_t* into, std::size_t bytes);

// A sentence on stderr, from where nothing may be formatted or locked.
void say_in_handler(const char* text);

}  // namespace strait::sys
