// SPDX-License-Identifier: Apache-2.0
// The packet codec. Which headers follow the BTH comes from one table, so that writing and parsing cannot disagree.
#include "soft/roce/packet.hpp"

#include <cstring>

namespace strait::soft::roce {
namespace {

using namespace wire::roce;
using wire::packed_be16;
using wire::packed_be24;
using wire::packed_be32;
using wire::packed_be64;

template <class Header>
void put(std::byte*& at, const Header& header) {
  std::memcpy(at, &header, sizeof header);
  at += sizeof header;
}

template <class Header>
Header take(const std::byte*& at) {
  Header header;
  std::memcpy(&header, at, sizeof header);
  at += sizeof header;
  return header;
}

std::uint8_t bit(bool set, std::uint8_t mask) {
  return set ? mask : std::uint8_t{0};
}

}  // namespace

std::size_t write_headers(const Headers& h, std::byte* out) {
  const Shape& shape = shape_of(h.opcode);
  if (!shape.known) return 0;
  std::byte* at = out;
  Bth bth;
  bth.opcode = static_cast<std::uint8_t>(h.opcode);
  bth.flags = static_cast<std::uint8_t>(bit(h.solicited, Bth::kSolicited) | bit(h.mig_req, Bth::kMigReq) |
                                        (h.pad & Bth::kPadMask) << Bth::kPadShift);
  bth.pkey = packed_be16{h.pkey};
  bth.congestion = static_cast<std::uint8_t>(bit(h.fecn, Bth::kFecn) | bit(h.becn, Bth::kBecn));
  bth.dest_qpn = packed_be24{h.dest_qpn};
  bth.ack = bit(h.ack_req, Bth::kAckReq);
  bth.psn = packed_be24{h.psn};
  put(at, bth);
  if (shape.has_xrceth) put(at, XrcEth{0, packed_be24{h.xrc_srqn}});
  if (shape.has_deth) put(at, Deth{packed_be32{h.qkey}, 0, packed_be24{h.src_qpn}});
  if (shape.has_reth) put(at, Reth{packed_be64{h.va}, packed_be32{h.rkey}, packed_be32{h.dma_length}});
  if (shape.has_atomic) {
    put(at, AtomicEth{packed_be64{h.va}, packed_be32{h.rkey}, packed_be64{h.swap_or_add}, packed_be64{h.compare}});
  }
  if (shape.has_aeth) put(at, Aeth{h.syndrome, packed_be24{h.msn}});
  if (shape.has_atomic_ack) put(at, AtomicAckEth{packed_be64{h.original}});
  if (shape.has_imm) put(at, h.imm_raw);
  if (shape.has_ieth) put(at, Ieth{packed_be32{h.inval_rkey}});
  if (shape.kind == Kind::cnp) {
    std::memset(at, 0, kCnpReservedBytes);
    at += kCnpReservedBytes;
  }
  return static_cast<std::size_t>(at - out);
}

Drop parse(std::span<const std::byte> bytes, Packet& out) {
  if (bytes.size() < sizeof(Bth) + kIcrcBytes) return Drop::too_short;
  const std::byte* at = bytes.data();
  const auto bth = take<Bth>(at);
  if ((bth.flags & Bth::kVersionMask) != 0) return Drop::bad_version;
  const Shape& shape = shape_of(bth.opcode);
  if (!shape.known) return Drop::unknown_opcode;
  // Membership is the key's top bit: a limited member may talk to a full one, which this end is.
  if (bth.pkey.value() != kDefaultPkey && bth.pkey.value() != kLimitedPkey) return Drop::bad_pkey;
  if (bytes.size() < shape.header_bytes + kIcrcBytes) return Drop::too_short;
  const std::size_t body = bytes.size() - shape.header_bytes - kIcrcBytes;  // payload and pad
  const auto pad = static_cast<std::uint8_t>(bth.flags >> Bth::kPadShift & Bth::kPadMask);
  if (pad > body || (body & 3) != 0) return Drop::bad_pad;
  if (body != 0 && !shape.may_carry_payload()) return Drop::bad_length;

  static_cast<Headers&>(out) = Headers{};
  out.opcode = static_cast<Opcode>(bth.opcode);
  out.solicited = (bth.flags & Bth::kSolicited) != 0;
  out.mig_req = (bth.flags & Bth::kMigReq) != 0;
  out.pad = pad;
  out.pkey = bth.pkey.value();
  out.fecn = (bth.congestion & Bth::kFecn) != 0;
  out.becn = (bth.congestion & Bth::kBecn) != 0;
  out.dest_qpn = bth.dest_qpn.value();
  out.ack_req = (bth.ack & Bth::kAckReq) != 0;
  out.psn = bth.psn.value();
  if (shape.has_xrceth) out.xrc_srqn = take<XrcEth>(at).srqn.value();
  if (shape.has_deth) {
    const auto deth = take<Deth>(at);
    out.qkey = deth.qkey.value();
    out.src_qpn = deth.src_qpn.value();
  }
  if (shape.has_reth) {
    const auto reth = take<Reth>(at);
    out.va = reth.va.value();
    out.rkey = reth.rkey.value();
    out.dma_length = reth.dma_length.value();
  }
  if (shape.has_atomic) {
    const auto atomic = take<AtomicEth>(at);
    out.va = atomic.va.value();
    out.rkey = atomic.rkey.value();
    out.swap_or_add = atomic.swap_or_add.value();
    out.compare = atomic.compare.value();
  }
  if (shape.has_aeth) {
    const auto aeth = take<Aeth>(at);
    out.syndrome = aeth.syndrome;
    out.msn = aeth.msn.value();
  }
  if (shape.has_atomic_ack) out.original = take<AtomicAckEth>(at).original.value();
  if (shape.has_imm) out.imm_raw = take<std::uint32_t>(at);
  if (shape.has_ieth) out.inval_rkey = take<Ieth>(at).rkey.value();
  out.payload = bytes.subspan(shape.header_bytes, body - pad);
  return Drop::none;
}

const char* drop_text(Drop drop) {
  switch (drop) {
    case Drop::none: return "not dropped";
    case Drop::too_short: return "shorter than its headers";
    case Drop::bad_version: return "transport version is not 0";
    case Drop::unknown_opcode: return "unknown opcode";
    case Drop::bad_pkey: return "foreign partition key";
    case Drop::bad_pad: return "pad count does not fit the length";
    case Drop::bad_length: return "payload where the opcode has none";
    case Drop::bad_icrc: return "invariant CRC is wrong";
    case Drop::unknown_qpn: return "no such queue pair";
    case Drop::wrong_transport: return "opcode of another transport than the queue pair's";
    case Drop::wrong_state: return "queue pair is not in a state to receive it";
    case Drop::wrong_address: return "addresses are not those of the queue pair's path";
    case Drop::bad_qkey: return "wrong queue key";
    case Drop::stale_psn: return "sequence number of long ago";
    case Drop::unexpected_response: return "response that nothing asked for";
    case Drop::no_receiver: return "no receive was posted for it";
    case Drop::no_room: return "too many answers wait already";
    case Drop::injected: return "dropped on purpose by fault injection";
  }
  return "unknown reason";
}

const char* drop_name(Drop drop) {
  switch (drop) {
    case Drop::none: return "none";
    case Drop::too_short: return "too_short";
    case Drop::bad_version: return "bad_version";
    case Drop::unknown_opcode: return "unknown_opcode";
    case Drop::bad_pkey: return "bad_pkey";
    case Drop::bad_pad: return "bad_pad";
    case Drop::bad_length: return "bad_length";
    case Drop::bad_icrc: return "bad_icrc";
    case Drop::unknown_qpn: return "unknown_qpn";
    case Drop::wrong_transport: return "wrong_transport";
    case Drop::wrong_state: return "wrong_state";
    case Drop::wrong_address: return "wrong_address";
    case Drop::bad_qkey: return "bad_qkey";
    case Drop::stale_psn: return "stale_psn";
    case Drop::unexpected_response: return "unexpected_response";
    case Drop::no_receiver: return "no_receiver";
    case Drop::no_room: return "no_room";
    case Drop::injected: return "injected";
  }
  return "unknown";
}

}  // namespace strait::soft::roce
