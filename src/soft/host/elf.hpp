// SPDX-License-Identifier: Apache-2.0
// What a program file says about how it is started: enough to know whether a preloaded library will be in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"

namespace strait::soft::host {

// Bytes of the file from `offset` on; how many there were.
using ReadAt = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> into)>;

struct ElfFacts {
  bool wide = false;          // 64 bits
  bool little = false;        // endian
  std::uint16_t machine = 0;  // EM_X86_64 is 62, EM_AARCH64 is 183
  bool executable = false;    // a program, with a fixed place or without
  std::string interpreter;    // the loader; empty: none, the program is static
  bool go = false;            // built by the Go compiler, whose programs make system calls without the C library
};

// nullopt: no ELF file. Code::invalid: one that is damaged.
[[nodiscard]] Result<std::optional<ElfFacts>> read_elf(const ReadAt& read_at);

// The machine this was built for.
[[nodiscard]] std::uint16_t own_machine();

// The interpreter of a script ("#!/bin/sh -e": "/bin/sh"); nullopt: no script.
[[nodiscard]] std::optional<std::string> script_interpreter(const ReadAt& read_at);

}  // namespace strait::soft::host
