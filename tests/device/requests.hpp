// SPDX-License-Identifier: Apache-2.0
// Random requests of every kind: how to post one, and what an independent decoder must find in the ring afterwards.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "rig.hpp"

namespace paper {

enum class Kind : std::uint32_t {
  send,
  send_imm,
  send_invalidate,
  send_inline,
  send_imm_inline,
  write,
  write_imm,
  write_inline,
  write_imm_inline,
  read,
  compare_swap,
  fetch_add,
  masked_add4,
  masked_add8,
  masked_swap4,
  masked_swap8,
  nop,
  count,
};

struct Request {
  Kind kind;
  sd::Flags flags;
  std::uint32_t imm;  // or rkey to invalidate
  sd::Remote remote;
  std::vector<sd::Piece> pieces;
  std::vector<std::uint8_t> payload;
  std::uint64_t operand[4];
};

inline bool is_inline(Kind k) {
  return k == Kind::send_inline || k == Kind::send_imm_inline || k == Kind::write_inline || k == Kind::write_imm_inline;
}
inline bool has_remote(Kind k) {
  return k >= Kind::write && k != Kind::nop;
}
inline bool is_atomic(Kind k) {
  return k >= Kind::compare_swap && k != Kind::nop;
}
inline std::uint32_t width_of(Kind k) {
  return k == Kind::masked_add4 || k == Kind::masked_swap4 ? 4 : 8;
}

// `most` bounds the number of pieces; `length` is that of an inline payload.
inline Request make_request(Random& random, Kind kind, std::uint32_t pieces, std::uint32_t length) {
  static constexpr sd::Flags kFlags[] = {sd::kNoFlags, sd::kSignaled, sd::kSignaled | sd::kSolicited, sd::kFenced,
                                         sd::kFenced | sd::kSignaled};
  Request r{};
  r.kind = kind;
  r.flags = kFlags[random.below(5)];
  r.imm = static_cast<std::uint32_t>(random.next());
  r.remote = {random.next(), static_cast<std::uint32_t>(random.next())};
  for (auto& o : r.operand) o = random.next();
  if (is_atomic(kind)) {
    r.remote.addr &= ~std::uint64_t{7};
    r.pieces = {{random.next(), width_of(kind), static_cast<std::uint32_t>(random.next())}};
  } else if (is_inline(kind)) {
    for (std::uint32_t i = 0; i < length; ++i) r.payload.push_back(static_cast<std::uint8_t>(random.next()));
  } else if (kind != Kind::nop) {
    for (std::uint32_t i = 0; i < pieces; ++i)  // about every fifth is empty and must be left out
      r.pieces.push_back({random.next(), random.below(5) == 0 ? 0 : 1 + random.below(1u << 20),
                          static_cast<std::uint32_t>(random.next())});
  }
  return r;
}

// A request without vectors, as a kernel may be given it.
struct Asked {
  Kind kind;
  sd::Flags flags;
  std::uint32_t imm;
  sd::Remote remote;
  const sd::Piece* pieces;
  std::uint32_t count;
  const std::uint8_t* payload;
  std::uint64_t length;
  std::uint64_t operand[4];
};
inline Asked asked(const Request& r) {
  return {r.kind,           r.flags,          r.imm,
          r.remote,         r.pieces.data(),  static_cast<std::uint32_t>(r.pieces.size()),
          r.payload.data(), r.payload.size(), {r.operand[0], r.operand[1], r.operand[2], r.operand[3]}};
}

template <sd::Sharing S>
STRAIT_HD inline sd::Pending post(sd::SendRing& ring, const Asked& r) {
  const sw::be32 imm{r.imm};
  const auto u32 = [&](int i) { return static_cast<std::uint32_t>(r.operand[i]); };
  switch (r.kind) {
    case Kind::send: return sd::post_send<S>(ring, r.pieces, r.count, r.flags);
    case Kind::send_imm: return sd::post_send_imm<S>(ring, r.pieces, r.count, imm, r.flags);
    case Kind::send_invalidate: return sd::post_send_invalidate<S>(ring, r.pieces, r.count, r.imm, r.flags);
    case Kind::send_inline: return sd::post_send_inline<S>(ring, r.payload, r.length, r.flags);
    case Kind::send_imm_inline: return sd::post_send_imm_inline<S>(ring, r.payload, r.length, imm, r.flags);
    case Kind::write: return sd::post_write<S>(ring, r.remote, r.pieces, r.count, r.flags);
    case Kind::write_imm: return sd::post_write_imm<S>(ring, r.remote, r.pieces, r.count, imm, r.flags);
    case Kind::write_inline: return sd::post_write_inline<S>(ring, r.remote, r.payload, r.length, r.flags);
    case Kind::write_imm_inline: return sd::post_write_imm_inline<S>(ring, r.remote, r.payload, r.length, imm, r.flags);
    case Kind::read: return sd::post_read<S>(ring, r.remote, r.pieces, r.count, r.flags);
    case Kind::compare_swap:
      return sd::post_compare_swap<S>(ring, r.remote, r.operand[1], r.operand[0], r.pieces[0], r.flags);
    case Kind::fetch_add: return sd::post_fetch_add<S>(ring, r.remote, r.operand[0], r.pieces[0], r.flags);
    case Kind::masked_add4: return sd::post_masked_fetch_add4<S>(ring, r.remote, u32(0), u32(1), r.pieces[0], r.flags);
    case Kind::masked_add8:
      return sd::post_masked_fetch_add8<S>(ring, r.remote, r.operand[0], r.operand[1], r.pieces[0], r.flags);
    case Kind::masked_swap4:
      return sd::post_masked_compare_swap4<S>(ring, r.remote, {u32(0), u32(1), u32(2), u32(3)}, r.pieces[0], r.flags);
    case Kind::masked_swap8:
      return sd::post_masked_compare_swap8<S>(ring, r.remote, {r.operand[0], r.operand[1], r.operand[2], r.operand[3]},
                                              r.pieces[0], r.flags);
    default: return sd::post_nop<S>(ring, r.flags);
  }
}
template <sd::Sharing S>
sd::Pending post(sd::SendRing& ring, const Request& r) {
  return post<S>(ring, asked(r));
}

// The same thousand everywhere: what a ring of 64 blocks that begins there holds of each, one after another.
inline constexpr std::uint64_t kThousandFirst = 65536 - 100;
inline constexpr std::uint32_t kThousandQpn = 0xa1b2;
inline constexpr std::uint64_t kDigestOfAThousand = 0x45d8ec61e8e2540e;
inline std::vector<Request> a_thousand_requests() {
  Random random{0x9e3779b97f4a7c15};
  std::vector<Request> out;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto kind = static_cast<Kind>(i % static_cast<std::uint32_t>(Kind::count));
    const std::uint32_t pieces = random.below(20);
    const std::uint32_t length = random.below(sd::kMaxInlineWrite + 1);
    out.push_back(make_request(random, kind, pieces, length));
  }
  return out;
}
struct Digest {
  std::uint64_t value = 0xcbf29ce484222325;
  void add(const std::uint8_t* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) value = (value ^ bytes[i]) * 0x100000001b3;
  }
};

// The decoded WQE says exactly what was asked.
inline void expect_same(const Request& r, const Wqe& w, std::uint64_t index, std::uint32_t qpn) {
  static constexpr unsigned kOpcodes[] = {0x0a, 0x0b, 0x01, 0x0a, 0x0b, 0x08, 0x09, 0x08, 0x09,
                                          0x10, 0x11, 0x12, 0x15, 0x15, 0x14, 0x14, 0x00};
  ASSERT_TRUE(w.well_formed);
  ASSERT_EQ(w.opcode, kOpcodes[static_cast<unsigned>(r.kind)]);
  const bool four = r.kind == Kind::masked_add4 || r.kind == Kind::masked_swap4;
  const bool eight = r.kind == Kind::masked_add8 || r.kind == Kind::masked_swap8;
  ASSERT_EQ(w.opmod, four ? 8u : eight ? 9u : 0u);
  ASSERT_EQ(w.index, index % 65536);
  ASSERT_EQ(w.qpn, qpn);
  ASSERT_EQ(w.flags, r.flags);
  ASSERT_EQ(w.signature, 0u);
  ASSERT_EQ(w.stream, 0u);
  const bool carries = r.kind == Kind::send_imm || r.kind == Kind::send_invalidate || r.kind == Kind::send_imm_inline ||
                       r.kind == Kind::write_imm || r.kind == Kind::write_imm_inline;
  ASSERT_EQ(big(w.imm, 4), carries ? r.imm : 0u);
  if (has_remote(r.kind)) {
    ASSERT_EQ(w.raddr, r.remote.addr);
    ASSERT_EQ(w.rkey, r.remote.rkey);
    ASSERT_EQ(w.raddr_reserved, 0u);
  }
  std::vector<Pointer> pointers;
  for (const auto& p : r.pieces)
    if (p.length != 0) pointers.push_back({p.addr, p.length, p.lkey});
  ASSERT_EQ(w.pointers, pointers);
  ASSERT_EQ(w.payload, r.payload);
  ASSERT_EQ(w.has_inline, !r.payload.empty());
  if (!is_atomic(r.kind)) return;
  // Operands that the operation ignores are not compared.
  const std::size_t used = r.kind == Kind::fetch_add ? 1 : r.kind >= Kind::masked_swap4 ? 4 : 2;
  ASSERT_GE(w.operands.size(), used);
  for (std::size_t i = 0; i < used; ++i)
    ASSERT_EQ(w.operands[i], four ? static_cast<std::uint32_t>(r.operand[i]) : r.operand[i]);
}

}  // namespace paper
