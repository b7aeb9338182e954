// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/piece_pool.hpp"

namespace strait::soft::nic {
namespace {

bool prepares(const strait_memory_port& port) {
  return port.struct_size >= offsetof(strait_memory_port, release) + sizeof port.release && port.prepare != nullptr &&
         port.release != nullptr;
}

}  // namespace

PieceMemory::~PieceMemory() {
  for (const Hold& hold : holds_) release(hold);
}

std::optional<std::uint32_t> PieceMemory::piece_at(std::uint64_t offset, std::uint64_t length_bytes) {
  if (offset < kPoolHeaderBytes || offset >= kPoolBytes || (offset - kPoolHeaderBytes) % kPortPieceBytes != 0 ||
      length_bytes == 0 || length_bytes > kPortPieceBytes)
    return std::nullopt;
  return static_cast<std::uint32_t>((offset - kPoolHeaderBytes) / kPortPieceBytes);
}

void PieceMemory::prepare_for(const strait_memory_port& port) {
  for (const Hold& hold : holds_) {
    if (hold.port == &port) return;
  }
  const bool pinned = prepares(port) && port.prepare(port.context, mapping_.data(), kPoolBytes) == 0;
  holds_.push_back({&port, pinned});
}

void PieceMemory::release(const Hold& hold) {
  if (hold.pinned) hold.port->release(hold.port->context, mapping_.data());
}

std::optional<PiecePool::Taken> PiecePool::take() {
  for (std::uint32_t i = 0; i < kPoolPieces; ++i) {
    const std::uint32_t piece = next_;
    next_ = (next_ + 1) % kPoolPieces;
    PieceMemory::Words& words = memory_->words(piece);
    if (state_[piece] == State::lent && words.done.load(std::memory_order_acquire) == use_[piece])
      state_[piece] = State::free;
    if (state_[piece] != State::free) continue;
    state_[piece] = State::ours;
    words.use.store(++use_[piece], std::memory_order_relaxed);  // the message that names it is a release
    return Taken{piece, use_[piece]};
  }
  return std::nullopt;
}

void PiecePool::give_back(const Taken& taken) {
  if (use_[taken.piece] == taken.use) state_[taken.piece] = State::free;
}

}  // namespace strait::soft::nic
