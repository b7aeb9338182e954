// SPDX-License-Identifier: Apache-2.0
// Reading work requests out of ring memory that somebody else wrote, possibly garbage.
//
// Nothing here trusts the ring: every count is checked against what the doorbell published and what the format allows,
// and the caller gets a syndrome and a reason instead of a wild pointer. Keys and bounds are checked later, by the
// engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "soft/nic/memory.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::soft::nic {

// A queue's ring as the engine sees it. `bytes` is a power of two.
struct RingView {
  const std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  [[nodiscard]] const std::byte* at(std::uint64_t offset) const { return base + (offset & (bytes - 1)); }
  void read(std::uint64_t offset, void* into, std::uint64_t length_bytes) const;  // wraps at the end
};

struct LocalPiece {
  std::uint64_t address;  // inline: offset of the payload in the ring
  std::uint32_t length_bytes;
  std::uint32_t lkey;
  bool in_ring;
};

inline constexpr std::uint32_t kMaxPieces = wire::mlx5::kMaxSegments;

// What a UMR work request does to a memory window, or to a key that is made of others.
struct KeyChange {
  std::uint32_t old_key;
  std::uint8_t new_variant;  // low byte of its key from now on
  bool frees;                // it maps nothing any more
  bool check_free;
  bool check_qpn;
  bool any_qp;  // every queue pair of its domain may use it
  std::uint32_t access;
  std::uint64_t start;
  std::uint64_t length_bytes;
  LocalPiece target;  // what a window maps: a piece of a registration. 0 bytes: none is given
  // Of keys that are made of others.
  std::uint64_t mask;           // wire::mlx5::kUmrMask*: what changes
  std::uint64_t list_offset;    // in the ring
  std::uint32_t list_segments;  // 0: it stays made of what it is
  bool inlined;                 // the list lies in the work request
  bool part_of_list;
  bool signature;
};

struct SendWork {
  wire::mlx5::Opcode opcode;
  bool signaled;
  bool fence;
  bool solicited;
  std::uint32_t imm_raw;  // as it lies in memory: opaque, or the rkey to invalidate
  std::uint32_t blocks;
  std::uint64_t raddr;
  std::uint32_t rkey;
  std::uint32_t total_bytes;
  AtomicRequest atomic;
  wire::mlx5::DatagramSeg datagram;  // unreliable datagrams only
  std::uint32_t xrc_srqn;            // extended reliable connections only
  KeyChange key;                     // Opcode::umr only
  std::uint64_t index;               // of its first block, counted for ever
  std::uint32_t n_pieces;
  LocalPiece pieces[kMaxPieces];  // the first n_pieces are valid
};

// Done by this side alone: the peer does not hear of it.
[[nodiscard]] constexpr bool is_local(wire::mlx5::Opcode opcode) {
  return opcode == wire::mlx5::Opcode::nop || opcode == wire::mlx5::Opcode::umr;
}

struct DecodeFault {
  wire::mlx5::Syndrome syndrome = wire::mlx5::Syndrome::none;
  const char* reason = nullptr;  // static text
  std::uint8_t vendor = 0;       // detail for the vendor byte of the completion
  explicit operator bool() const { return reason != nullptr; }
};

// The work request that starts at block `index` of queue pair `qpn`; the doorbell published `available` blocks from
// there.
[[nodiscard]] DecodeFault decode_send(const RingView& ring, std::uint64_t index, std::uint32_t available,
                                      std::uint32_t qpn, SendWork& out);
// The same on the sending side of an extended reliable connection: each says which shared receive queue it is for.
[[nodiscard]] DecodeFault decode_xrc(const RingView& ring, std::uint64_t index, std::uint32_t available,
                                     std::uint32_t qpn, SendWork& out);
// The same on a queue pair for unreliable datagrams: sends only, each with the place it goes to.
[[nodiscard]] DecodeFault decode_datagram(const RingView& ring, std::uint64_t index, std::uint32_t available,
                                          std::uint32_t qpn, SendWork& out);

struct ReceiveWork {
  std::uint32_t total_bytes;
  std::uint32_t n_pieces;
  LocalPiece pieces[kMaxPieces];
};
[[nodiscard]] DecodeFault decode_receive(const RingView& ring, std::uint64_t index, std::uint32_t stride_bytes,
                                         ReceiveWork& out);
// The same for `room_bytes` of data segments at `offset` of the ring.
[[nodiscard]] DecodeFault decode_receive_at(const RingView& ring, std::uint64_t offset, std::uint32_t room_bytes,
                                            ReceiveWork& out);

}  // namespace strait::soft::nic
