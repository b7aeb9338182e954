// SPDX-License-Identifier: Apache-2.0
// PiecePool: host memory through which payload goes from memory behind one engine's port to memory behind another's.
//
// One sealed memfd per direction of a link, mapped by both engines. The requester's copies fill pieces, a message names
// the piece, the owner's copies empty it: no CPU touches a byte. Each side has its vendor pin its own mapping, once.
//
// A piece has two words: `use`, which the requester counts up when it takes the piece and says in the message, and
// `done`, into which the owner stores that number after its last look at the bytes. A piece whose words are equal is
// free again. A message of the past names an old number: it is refused, and an owner that is late frees nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strait/plugin.h"
#include "sys/mapping.hpp"

namespace strait::soft::nic {

inline constexpr std::uint64_t kPortPieceBytes = 1 << 20;
inline constexpr std::uint32_t kPoolPieces = 16;
inline constexpr std::uint64_t kPoolHeaderBytes = 4096;
inline constexpr std::uint64_t kPoolBytes = kPoolHeaderBytes + kPoolPieces * kPortPieceBytes;
inline constexpr std::uint32_t kPoolKey = 1;  // of its loan. Registrations have keys from 0x100 on

// One side's mapping of a pool. Shared: a copy under way keeps it, whatever happens to link and queue pair.
class PieceMemory {
 public:
  struct Words {
    alignas(64) std::atomic<std::uint32_t> use;
    alignas(64) std::atomic<std::uint32_t> done;
  };

  explicit PieceMemory(sys::Mapping mapping) : mapping_(std::move(mapping)) {}
  PieceMemory(const PieceMemory&) = delete;
  PieceMemory& operator=(const PieceMemory&) = delete;
  ~PieceMemory();

  [[nodiscard]] std::byte* bytes(std::uint32_t piece) const { return mapping_.data() + offset(piece); }
  [[nodiscard]] Words& words(std::uint32_t piece) const { return reinterpret_cast<Words*>(mapping_.data())[piece]; }
  [[nodiscard]] static constexpr std::uint64_t offset(std::uint32_t piece) {
    return kPoolHeaderBytes + piece * kPortPieceBytes;
  }
  // What an address list says of a piece: where it begins, and which use of it is meant.
  [[nodiscard]] static constexpr std::uint64_t name(std::uint32_t piece, std::uint32_t use) {
    return std::uint64_t{use} << 32 | offset(piece);
  }
  // The piece that begins there and holds so many bytes; none: there is no such thing.
  [[nodiscard]] static std::optional<std::uint32_t> piece_at(std::uint64_t offset, std::uint64_t length_bytes);

  // Pinned for this port's copies, if it can: asked once.
  void prepare_for(const strait_memory_port& port);
  // Before the port may go.
  template <class Unused>
  void let_go(Unused unused) {
    std::erase_if(holds_, [&](const Hold& hold) {
      if (!unused(hold.port)) return false;
      release(hold);
      return true;
    });
  }

 private:
  struct Hold {
    const strait_memory_port* port;
    bool pinned;  // false: the port would not
  };
  void release(const Hold& hold);

  sys::Mapping mapping_;
  std::vector<Hold> holds_;
};
static_assert(sizeof(PieceMemory::Words) * kPoolPieces <= kPoolHeaderBytes);

// The requester's end.
class PiecePool {
 public:
  explicit PiecePool(std::shared_ptr<PieceMemory> memory) : memory_(std::move(memory)) {}
  [[nodiscard]] const std::shared_ptr<PieceMemory>& memory() const { return memory_; }

  struct Taken {
    std::uint32_t piece = 0;
    std::uint32_t use = 0;
  };
  [[nodiscard]] std::optional<Taken> take();
  // The peer was told of it, and says when it is done.
  void lent(const Taken& taken) { state_[taken.piece] = State::lent; }
  // Nobody will look at it any more, or what he sees does not matter. A use of the past changes nothing.
  void give_back(const Taken& taken);
  [[nodiscard]] bool has(const Taken& taken) const {
    return state_[taken.piece] != State::free && use_[taken.piece] == taken.use;
  }

 private:
  enum class State : std::uint8_t { free, ours, lent };
  std::shared_ptr<PieceMemory> memory_;
  std::array<State, kPoolPieces> state_{};
  std::array<std::uint32_t, kPoolPieces> use_{};  // our own copy: the other process can write the shared one
  std::uint32_t next_ = 0;
};

}  // namespace strait::soft::nic
