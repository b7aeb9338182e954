// SPDX-License-Identifier: Apache-2.0
// A second reading of the WQE format, byte by byte and without wire/ or device/: if both shared a mistake in a struct,
// encoding and decoding would agree on it.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace paper {

struct Pointer {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t key;
  bool operator==(const Pointer&) const = default;
};

struct Wqe {
  bool well_formed = false;
  unsigned opmod = 0, index = 0, opcode = 0, qpn = 0, ds = 0, flags = 0, signature = 0, stream = 0;
  std::uint8_t imm[4] = {};
  std::uint64_t raddr = 0;
  std::uint32_t rkey = 0, raddr_reserved = 0;
  std::vector<std::uint64_t> operands;  // atomics, in the order they are laid out
  std::vector<Pointer> pointers;
  bool has_inline = false;
  std::vector<std::uint8_t> payload;

  unsigned blocks() const { return (ds + 3) / 4; }
};

inline std::uint64_t big(const std::uint8_t* p, unsigned bytes) {
  std::uint64_t v = 0;
  for (unsigned i = 0; i < bytes; ++i) v = v << 8 | p[i];
  return v;
}

// The WQE at block `slot` of a ring with `blocks` blocks.
inline Wqe decode(const std::uint8_t* ring, std::uint32_t blocks, std::uint64_t slot) {
  Wqe w;
  const std::uint32_t ring_bytes = blocks * 64;
  const auto first = static_cast<std::uint32_t>(slot % blocks) * 64;
  const auto segment = [&](unsigned i) { return ring + (first + 16 * i) % ring_bytes; };
  const std::uint8_t* c = segment(0);
  w.opmod = c[0];
  w.index = static_cast<unsigned>(big(c + 1, 2));
  w.opcode = c[3];
  w.qpn = static_cast<unsigned>(big(c + 4, 3));
  w.ds = c[7];
  w.signature = c[8];
  w.stream = static_cast<unsigned>(big(c + 9, 2));
  w.flags = c[11];
  std::memcpy(w.imm, c + 12, 4);
  if (w.ds == 0 || w.ds > 63 || w.blocks() > blocks) return w;

  unsigned at = 1;
  const bool rdma = w.opcode == 0x08 || w.opcode == 0x09 || w.opcode == 0x10;
  const bool atomic = w.opcode == 0x11 || w.opcode == 0x12 || w.opcode == 0x14 || w.opcode == 0x15;
  if (rdma || atomic) {
    if (w.ds < 2) return w;
    w.raddr = big(segment(at), 8);
    w.rkey = static_cast<std::uint32_t>(big(segment(at) + 8, 4));
    w.raddr_reserved = static_cast<std::uint32_t>(big(segment(at) + 12, 4));
    ++at;
  }
  if (atomic) {
    const unsigned segments = w.opcode == 0x14 && w.opmod == 9 ? 2 : 1;
    if (w.ds != 3 + segments) return w;
    const unsigned width = w.opmod == 8 ? 4 : 8;
    for (unsigned i = 0; i < 16 * segments / width; ++i)
      w.operands.push_back(big(segment(at + i * width / 16) + i * width % 16, width));
    at += segments;
  }
  while (at < w.ds) {
    const std::uint8_t* s = segment(at);
    const auto count = static_cast<std::uint32_t>(big(s, 4));
    if ((count & 0x80000000u) == 0) {
      w.pointers.push_back({big(s + 8, 8), count, static_cast<std::uint32_t>(big(s + 4, 4))});
      ++at;
      continue;
    }
    w.has_inline = true;
    const std::uint32_t length = count & 0x7fffffffu;
    const std::uint32_t offset = first + 16 * at + 4;
    if ((4 + length + 15) / 16 > w.ds - at) return w;
    for (std::uint32_t i = 0; i < length; ++i) w.payload.push_back(ring[(offset + i) % ring_bytes]);
    at += (4 + length + 15) / 16;
  }
  w.well_formed = at == w.ds;
  return w;
}

}  // namespace paper
