// SPDX-License-Identifier: Apache-2.0
// RoCEv2 as it lies on the wire, from the base transport header to the invariant CRC. docs/wire-roce.md is the same in
// words. Everything here has alignment 1: a packet may begin at any address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/wire/endian.hpp"

namespace strait::wire::roce {

inline constexpr std::uint16_t kUdpPort = 4791;
inline constexpr std::uint16_t kDefaultPkey = 0xffff;
inline constexpr std::uint16_t kLimitedPkey = 0x7fff;  // the default key held by a limited member
inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kCnpReservedBytes = 16;
inline constexpr std::uint32_t kQpnMask = 0xffffff;
inline constexpr std::uint32_t kMaxMessageBytes = 0x80000000;

// ---- headers -------------------------------------------------------------------------------------------------------

struct Bth {
  std::uint8_t opcode;
  std::uint8_t flags;  // kSolicited, kMigReq, pad count, version
  packed_be16 pkey;
  std::uint8_t congestion;  // kFecn, kBecn; the rest reserved. The iCRC takes this byte for 0xff
  packed_be24 dest_qpn;
  std::uint8_t ack;  // kAckReq; the rest reserved
  packed_be24 psn;

  static constexpr std::uint8_t kSolicited = 0x80;
  static constexpr std::uint8_t kMigReq = 0x40;
  static constexpr std::uint8_t kPadShift = 4;
  static constexpr std::uint8_t kPadMask = 3;
  static constexpr std::uint8_t kVersionMask = 0x0f;
  static constexpr std::uint8_t kFecn = 0x80;
  static constexpr std::uint8_t kBecn = 0x40;
  static constexpr std::uint8_t kAckReq = 0x80;
};
static_assert(sizeof(Bth) == 12 && alignof(Bth) == 1);
static_assert(offsetof(Bth, pkey) == 2 && offsetof(Bth, dest_qpn) == 5 && offsetof(Bth, psn) == 9);
static_assert(offsetof(Bth, opcode) == 0 && offsetof(Bth, flags) == 1 && offsetof(Bth, congestion) == 4);
static_assert(offsetof(Bth, ack) == 8);

struct Reth {
  packed_be64 va;
  packed_be32 rkey;
  packed_be32 dma_length;
};
static_assert(sizeof(Reth) == 16 && offsetof(Reth, rkey) == 8 && offsetof(Reth, dma_length) == 12);
static_assert(offsetof(Reth, va) == 0);

struct Aeth {
  std::uint8_t syndrome;
  packed_be24 msn;
};
static_assert(sizeof(Aeth) == 4 && offsetof(Aeth, msn) == 1);
static_assert(offsetof(Aeth, syndrome) == 0);

struct AtomicEth {
  packed_be64 va;
  packed_be32 rkey;
  packed_be64 swap_or_add;
  packed_be64 compare;  // present, and 0, in fetch-add too
};
static_assert(sizeof(AtomicEth) == 28 && offsetof(AtomicEth, swap_or_add) == 12 && offsetof(AtomicEth, compare) == 20);
static_assert(offsetof(AtomicEth, va) == 0 && offsetof(AtomicEth, rkey) == 8);

struct AtomicAckEth {
  packed_be64 original;
};
static_assert(sizeof(AtomicAckEth) == 8);
static_assert(offsetof(AtomicAckEth, original) == 0);

// Four bytes that nobody interprets: they are copied as they lie in memory.
struct ImmDt {
  std::uint8_t bytes[4];
};
static_assert(sizeof(ImmDt) == 4);
static_assert(offsetof(ImmDt, bytes) == 0);

struct Ieth {
  packed_be32 rkey;
};
static_assert(sizeof(Ieth) == 4);
static_assert(offsetof(Ieth, rkey) == 0);

struct Deth {
  packed_be32 qkey;
  std::uint8_t reserved;
  packed_be24 src_qpn;
};
static_assert(sizeof(Deth) == 8 && offsetof(Deth, src_qpn) == 5);
static_assert(offsetof(Deth, qkey) == 0 && offsetof(Deth, reserved) == 4);

// In every request of an extended reliable connection: the shared receive queue it is for.
struct XrcEth {
  std::uint8_t reserved;
  packed_be24 srqn;
};
static_assert(sizeof(XrcEth) == 4 && offsetof(XrcEth, srqn) == 1);
static_assert(offsetof(XrcEth, reserved) == 0);

// The most that can precede a payload: BTH, XRCETH and AtomicETH.
inline constexpr std::size_t kMaxHeaderBytes = sizeof(Bth) + sizeof(XrcEth) + sizeof(AtomicEth);

// ---- opcodes -------------------------------------------------------------------------------------------------------

enum class Opcode : std::uint8_t {
  rc_send_first = 0x00,
  rc_send_middle = 0x01,
  rc_send_last = 0x02,
  rc_send_last_imm = 0x03,
  rc_send_only = 0x04,
  rc_send_only_imm = 0x05,
  rc_write_first = 0x06,
  rc_write_middle = 0x07,
  rc_write_last = 0x08,
  rc_write_last_imm = 0x09,
  rc_write_only = 0x0a,
  rc_write_only_imm = 0x0b,
  rc_read_request = 0x0c,
  rc_read_response_first = 0x0d,
  rc_read_response_middle = 0x0e,
  rc_read_response_last = 0x0f,
  rc_read_response_only = 0x10,
  rc_ack = 0x11,
  rc_atomic_ack = 0x12,
  rc_compare_swap = 0x13,
  rc_fetch_add = 0x14,
  rc_send_last_inval = 0x16,
  rc_send_only_inval = 0x17,

  uc_send_first = 0x20,
  uc_send_middle = 0x21,
  uc_send_last = 0x22,
  uc_send_last_imm = 0x23,
  uc_send_only = 0x24,
  uc_send_only_imm = 0x25,
  uc_write_first = 0x26,
  uc_write_middle = 0x27,
  uc_write_last = 0x28,
  uc_write_last_imm = 0x29,
  uc_write_only = 0x2a,
  uc_write_only_imm = 0x2b,

  ud_send_only = 0x64,
  ud_send_only_imm = 0x65,

  cnp = 0x81,

  // 0xa0 and more: extended reliable connections (XRC), numbered as RC from 0x00 on.
};
inline constexpr std::uint8_t kXrcOpcodes = 0xa0;

enum class Transport : std::uint8_t { unknown, rc, uc, ud, cnp, xrc };

// What an RC opcode is called on another transport that has it.
constexpr Opcode on_transport(Opcode rc, Transport transport) {
  const auto code = static_cast<std::uint8_t>(rc);
  if (code >= 0x20) return rc;
  const unsigned base = transport == Transport::uc ? 0x20u : transport == Transport::xrc ? unsigned{kXrcOpcodes} : 0u;
  return static_cast<Opcode>(base + code);
}
enum class Kind : std::uint8_t { unknown, send, write, read_request, read_response, ack, atomic_ack, atomic, cnp };

// What an opcode means for a parser and a state machine. Of first, middle, last and only exactly one is set in a known
// shape: acknowledgements, read requests, atomics and congestion notifications are `only`.
struct Shape {
  Transport transport = Transport::unknown;
  Kind kind = Kind::unknown;
  bool first = false;
  bool middle = false;
  bool last = false;
  bool only = false;
  bool has_reth = false;
  bool has_aeth = false;
  bool has_atomic = false;
  bool has_atomic_ack = false;
  bool has_imm = false;
  bool has_ieth = false;
  bool has_deth = false;
  bool has_xrceth = false;
  bool known = false;
  std::uint8_t header_bytes = 0;  // BTH and all extended headers (of a CNP: and its 16 reserved bytes)

  constexpr bool starts_message() const { return first || only; }
  constexpr bool ends_message() const { return last || only; }
  // May payload follow the headers?
  constexpr bool may_carry_payload() const {
    return kind == Kind::send || kind == Kind::write || kind == Kind::read_response;
  }
  // Sent by a requester (and so takes PSNs of its own), not an answer.
  constexpr bool is_request() const {
    return kind == Kind::send || kind == Kind::write || kind == Kind::read_request || kind == Kind::atomic;
  }
};

namespace detail {

// Position of the low five bits in the order in which the specification numbers sends and writes.
constexpr Shape send_or_write(unsigned low) {
  Shape s;
  s.kind = low < 6 ? Kind::send : Kind::write;
  const unsigned step = low < 6 ? low : low - 6;  // first, middle, last, last imm, only, only imm
  s.first = step == 0;
  s.middle = step == 1;
  s.last = step == 2 || step == 3;
  s.only = step >= 4;
  s.has_imm = step == 3 || step == 5;
  s.has_reth = s.kind == Kind::write && (s.first || s.only);
  s.known = true;
  return s;
}

constexpr Shape rc_only(unsigned low) {
  Shape s;
  s.known = true;
  switch (low) {
    case 0x0c: s.kind = Kind::read_request; break;
    case 0x0d:
    case 0x0e:
    case 0x0f:
    case 0x10: s.kind = Kind::read_response; break;
    case 0x11: s.kind = Kind::ack; break;
    case 0x12: s.kind = Kind::atomic_ack; break;
    case 0x13:
    case 0x14: s.kind = Kind::atomic; break;
    case 0x16:
    case 0x17: s.kind = Kind::send; break;
    default: return Shape{};
  }
  s.first = low == 0x0d;
  s.middle = low == 0x0e;
  s.last = low == 0x0f || low == 0x16;
  s.only = !s.first && !s.middle && !s.last;
  s.has_reth = s.kind == Kind::read_request;
  s.has_aeth = (s.kind == Kind::read_response && !s.middle) || s.kind == Kind::ack || s.kind == Kind::atomic_ack;
  s.has_atomic = s.kind == Kind::atomic;
  s.has_atomic_ack = s.kind == Kind::atomic_ack;
  s.has_ieth = s.kind == Kind::send;
  return s;
}

constexpr Shape make_shape(unsigned opcode) {
  const unsigned low = opcode & 0x1f;
  Shape s;
  if (opcode < 0x20) {
    s = low < 0x0c ? send_or_write(low) : rc_only(low);
    s.transport = Transport::rc;
  } else if (opcode >= 0x20 && opcode <= 0x2b) {
    s = send_or_write(low);
    s.transport = Transport::uc;
  } else if (opcode == 0x64 || opcode == 0x65) {
    s = send_or_write(low);
    s.transport = Transport::ud;
    s.has_deth = true;
  } else if ((opcode & 0xe0) == kXrcOpcodes) {
    s = low < 0x0c ? send_or_write(low) : rc_only(low);
    s.transport = Transport::xrc;
    s.has_xrceth = s.is_request();
  } else if (opcode == 0x81) {
    s.transport = Transport::cnp;
    s.kind = Kind::cnp;
    s.only = true;
    s.known = true;
  }
  if (!s.known) return Shape{};
  std::size_t bytes = sizeof(Bth);
  if (s.has_xrceth) bytes += sizeof(XrcEth);
  if (s.has_deth) bytes += sizeof(Deth);
  if (s.has_reth) bytes += sizeof(Reth);
  if (s.has_atomic) bytes += sizeof(AtomicEth);
  if (s.has_aeth) bytes += sizeof(Aeth);
  if (s.has_atomic_ack) bytes += sizeof(AtomicAckEth);
  if (s.has_imm) bytes += sizeof(ImmDt);
  if (s.has_ieth) bytes += sizeof(Ieth);
  if (s.kind == Kind::cnp) bytes += kCnpReservedBytes;
  s.header_bytes = static_cast<std::uint8_t>(bytes);
  return s;
}

struct ShapeTable {
  Shape at[256];
};
constexpr ShapeTable make_shapes() {
  ShapeTable table{};
  for (unsigned i = 0; i < 256; ++i) table.at[i] = make_shape(i);
  return table;
}
inline constexpr ShapeTable kShapes = make_shapes();

}  // namespace detail

// One lookup. `known` is false for everything that is not in Opcode.
constexpr const Shape& shape_of(std::uint8_t opcode) {
  return detail::kShapes.at[opcode];
}
constexpr const Shape& shape_of(Opcode opcode) {
  return shape_of(static_cast<std::uint8_t>(opcode));
}

// "RC SEND first"; "unknown" for what is not in Opcode.
constexpr const char* opcode_name(Opcode opcode) {
  switch (opcode) {
    case Opcode::rc_send_first: return "RC SEND first";
    case Opcode::rc_send_middle: return "RC SEND middle";
    case Opcode::rc_send_last: return "RC SEND last";
    case Opcode::rc_send_last_imm: return "RC SEND last with immediate";
    case Opcode::rc_send_only: return "RC SEND only";
    case Opcode::rc_send_only_imm: return "RC SEND only with immediate";
    case Opcode::rc_write_first: return "RC WRITE first";
    case Opcode::rc_write_middle: return "RC WRITE middle";
    case Opcode::rc_write_last: return "RC WRITE last";
    case Opcode::rc_write_last_imm: return "RC WRITE last with immediate";
    case Opcode::rc_write_only: return "RC WRITE only";
    case Opcode::rc_write_only_imm: return "RC WRITE only with immediate";
    case Opcode::rc_read_request: return "RC READ request";
    case Opcode::rc_read_response_first: return "RC READ response first";
    case Opcode::rc_read_response_middle: return "RC READ response middle";
    case Opcode::rc_read_response_last: return "RC READ response last";
    case Opcode::rc_read_response_only: return "RC READ response only";
    case Opcode::rc_ack: return "RC acknowledge";
    case Opcode::rc_atomic_ack: return "RC atomic acknowledge";
    case Opcode::rc_compare_swap: return "RC compare and swap";
    case Opcode::rc_fetch_add: return "RC fetch and add";
    case Opcode::rc_send_last_inval: return "RC SEND last with invalidate";
    case Opcode::rc_send_only_inval: return "RC SEND only with invalidate";
    case Opcode::uc_send_first: return "UC SEND first";
    case Opcode::uc_send_middle: return "UC SEND middle";
    case Opcode::uc_send_last: return "UC SEND last";
    case Opcode::uc_send_last_imm: return "UC SEND last with immediate";
    case Opcode::uc_send_only: return "UC SEND only";
    case Opcode::uc_send_only_imm: return "UC SEND only with immediate";
    case Opcode::uc_write_first: return "UC WRITE first";
    case Opcode::uc_write_middle: return "UC WRITE middle";
    case Opcode::uc_write_last: return "UC WRITE last";
    case Opcode::uc_write_last_imm: return "UC WRITE last with immediate";
    case Opcode::uc_write_only: return "UC WRITE only";
    case Opcode::uc_write_only_imm: return "UC WRITE only with immediate";
    case Opcode::ud_send_only: return "UD SEND only";
    case Opcode::ud_send_only_imm: return "UD SEND only with immediate";
    case Opcode::cnp: return "congestion notification";
  }
  const Shape& shape = shape_of(opcode);
  if (shape.transport != Transport::xrc) return "unknown";
  switch (shape.kind) {
    case Kind::send: return "XRC SEND";
    case Kind::write: return "XRC WRITE";
    case Kind::read_request: return "XRC READ request";
    case Kind::read_response: return "XRC READ response";
    case Kind::atomic: return "XRC atomic";
    case Kind::atomic_ack: return "XRC atomic acknowledge";
    default: return "XRC acknowledge";
  }
}

// ---- PSN, MSN ------------------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kPsnMask = 0xffffff;

constexpr std::uint32_t psn_add(std::uint32_t psn, std::uint32_t count) {
  return (psn + count) & kPsnMask;
}
// How far `a` is after `b`, -2^23 to 2^23 - 1: PSNs more than half the circle apart count as earlier.
constexpr std::int32_t psn_diff(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}

// ---- acknowledgement -----------------------------------------------------------------------------------------------

inline constexpr std::uint8_t kSyndromeAckNoCredits = 0x1f;  // an ACK that says nothing about receive credits
inline constexpr std::uint8_t kSyndromeRnr = 0x20;           // | timer code
inline constexpr std::uint8_t kSyndromeNakSequence = 0x60;
inline constexpr std::uint8_t kSyndromeNakInvalidRequest = 0x61;
inline constexpr std::uint8_t kSyndromeNakRemoteAccess = 0x62;
inline constexpr std::uint8_t kSyndromeNakRemoteOperation = 0x63;

constexpr bool is_ack(std::uint8_t syndrome) {
  return (syndrome & 0xe0) == 0x00;
}
constexpr bool is_rnr(std::uint8_t syndrome) {
  return (syndrome & 0xe0) == kSyndromeRnr;
}
constexpr bool is_nak(std::uint8_t syndrome) {
  return (syndrome & 0xe0) == 0x60;
}

// How long the timer code of an RNR NAK asks to wait. Code 0 is the longest, 655.36 ms.
constexpr std::uint64_t rnr_timer_ns(std::uint8_t code) {
  constexpr std::uint16_t kTenMicroseconds[32] = {0,    1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                                  48,   64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                                  2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  const std::uint32_t units = (code & 31) == 0 ? 65536U : kTenMicroseconds[code & 31];
  return std::uint64_t{units} * 10'000;
}
// The code of the shortest wait that is at least `ns`; of the longest one when none is.
constexpr std::uint8_t rnr_timer_code(std::uint64_t ns) {
  for (std::uint8_t code = 1; code < 32; ++code) {
    if (rnr_timer_ns(code) >= ns) return code;
  }
  return 0;
}

// Local ACK timeout: 4.096 us * 2^t; 0 stands for "wait for ever".
constexpr std::uint64_t ack_timeout_ns(std::uint8_t t) {
  return (t & 31) == 0 ? 0 : std::uint64_t{4096} << (t & 31);
}

// ---- path MTU ------------------------------------------------------------------------------------------------------

// Codes 1 to 5 are 256 to 4096 bytes of payload; 0 for anything else, both ways.
constexpr std::uint32_t pmtu_bytes(std::uint8_t code) {
  return code >= 1 && code <= 5 ? 128U << code : 0;
}
constexpr std::uint8_t pmtu_code(std::uint32_t bytes) {
  for (std::uint8_t code = 1; code <= 5; ++code) {
    if (pmtu_bytes(code) == bytes) return code;
  }
  return 0;
}
// The largest path MTU that fits a link whose packets (IP header and all) have at most `link_mtu_bytes`; 0 if none
// does.
constexpr std::uint32_t largest_pmtu(std::uint32_t link_mtu_bytes) {
  for (std::uint8_t code = 5; code >= 1; --code) {
    // 80 bytes for all headers is what rdma_rxe reserves, so that both ends of a link come to the same number.
    if (pmtu_bytes(code) + 80 <= link_mtu_bytes) return pmtu_bytes(code);
  }
  return 0;
}

constexpr std::uint8_t pad_of(std::uint64_t length_bytes) {
  return static_cast<std::uint8_t>((0 - length_bytes) & 3);
}

static_assert(psn_diff(0, kPsnMask) == 1 && psn_diff(kPsnMask, 0) == -1 && psn_diff(0x800000, 0) == -0x800000);
static_assert(rnr_timer_ns(0) == 655'360'000 && rnr_timer_ns(12) == 640'000 && rnr_timer_ns(25) == 61'440'000);
static_assert(rnr_timer_code(640'001) == 13 && rnr_timer_code(0) == 1 && rnr_timer_code(491'520'001) == 0);
static_assert(ack_timeout_ns(14) == 67'108'864 && pmtu_bytes(5) == 4096 && pmtu_code(1024) == 3);
static_assert(shape_of(Opcode::rc_write_only_imm).header_bytes == 32 &&
              shape_of(Opcode::rc_fetch_add).header_bytes == 40);
static_assert(!shape_of(std::uint8_t{0x15}).known && !shape_of(std::uint8_t{0x2c}).known);

}  // namespace strait::wire::roce
