// SPDX-License-Identifier: Apache-2.0
#include "soft/cuda/share.hpp"

#include <array>
#include <cstring>

#include "soft/cuda/identity.hpp"
#include "sys/clock.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"
#include "sys/host.hpp"
#include "sys/note.hpp"
#include "sys/pause.hpp"

namespace strait::soft::cuda {
namespace {

constexpr std::uint32_t kTokenMagic = 0x31'75'63'73;  // "scu1"

std::uint32_t check_of(Token token) {
  token.check = 0;
  std::array<unsigned char, sizeof token> bytes{};
  std::memcpy(bytes.data(), &token, sizeof token);
  std::uint32_t sum = 2166136261u;
  for (const unsigned char byte : bytes) sum = (sum ^ byte) * 16777619u;
  return sum;
}

}  // namespace

Token make_token(TokenKind kind) {
  Token token{};
  token.magic = kTokenMagic;
  token.kind = kind;
  token.process = static_cast<std::uint32_t>(sys::process_id());
  return token;
}

void seal_token(Token& token) {
  token.check = check_of(token);
}

bool valid_token(const Token& token, TokenKind kind) {
  return token.magic == kTokenMagic && token.kind == kind && token.check == check_of(token);
}

std::shared_ptr<accel::Block> open_token(const Token& token) {
  auto file = sys::open_of_process(static_cast<pid_t>(token.process), token.file);
  if (!file) return nullptr;
  const auto id = sys::file_id(file->get());
  if (!id || id->inode != token.inode || device_by_memory_name(sys::memfd_name(file->get())) != token.device)
    return nullptr;
  // Its owner may be asking at this very moment whether somebody holds it.
  const sys::Deadline deadline = sys::Deadline::after_ns(1'000'000'000);
  for (std::uint32_t turn = 0; !sys::hold_file(file->get()); ++turn) {
    if (deadline.passed()) return nullptr;
    sys::pause_turn(turn);
  }
  auto block = accel::Bank::adopt(std::move(*file));
  return block ? std::move(*block) : nullptr;
}

}  // namespace strait::soft::cuda
