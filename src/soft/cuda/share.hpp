// SPDX-License-Identifier: Apache-2.0
// What goes from one process to another in 64 opaque bytes: where memory is, in whose process. Whoever gets it opens
// that process's descriptor; bytes that make no sense are refused.
#pragma once

#include <cstdint>
#include <memory>

#include "soft/accel/bank.hpp"

namespace strait::soft::cuda {

enum class TokenKind : std::uint32_t { memory = 1, pool = 2, pool_memory = 3 };

struct Token {
  std::uint32_t magic;
  TokenKind kind;
  std::uint32_t process;
  std::int32_t file;
  std::uint64_t inode;
  std::uint64_t offset;  // in the block
  std::uint64_t length_bytes;
  std::uint64_t number;  // buffer id of memory, id of a pool
  std::uint32_t device;  // in the machine
  std::uint32_t check;   // over the rest
  std::uint64_t reserved;
};
static_assert(sizeof(Token) == 64);

[[nodiscard]] Token make_token(TokenKind kind);
void seal_token(Token& token);
// False: these bytes were not made by make_token() and seal_token(), or are of another kind.
[[nodiscard]] bool valid_token(const Token& token, TokenKind kind);
// The block that the token speaks of, of another process. Null: it is gone, or not what the token says.
[[nodiscard]] std::shared_ptr<accel::Block> open_token(const Token& token);

}  // namespace strait::soft::cuda
