// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/decode.hpp"

#include <algorithm>
#include <cstring>

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

// Segments are 16-byte aligned and rings are powers of two of at least 64 bytes: a segment never straddles the end.
template <class Segment>
Segment segment_at(const RingView& ring, std::uint64_t offset) {
  static_assert(sizeof(Segment) == m::kSegmentBytes);
  Segment segment;
  std::memcpy(&segment, ring.at(offset), sizeof segment);
  return segment;
}

constexpr DecodeFault malformed(const char* reason) {
  return {m::Syndrome::local_qp_operation, reason, 0};
}

// How the segments behind the control segment are laid out.
struct Shape {
  bool known = false;
  bool remote = false;  // a remote address segment follows
  std::uint32_t atomic_segments = 0;
  bool may_inline = false;
  bool has_data = true;
};

Shape shape_of(m::Opcode opcode, std::uint8_t opmod) {
  switch (opcode) {
    case m::Opcode::nop: return {.known = opmod == 0, .has_data = false};
    case m::Opcode::send:
    case m::Opcode::send_imm:
    case m::Opcode::send_inval: return {.known = opmod == 0, .may_inline = true};
    case m::Opcode::rdma_write:
    case m::Opcode::rdma_write_imm: return {.known = opmod == 0, .remote = true, .may_inline = true};
    case m::Opcode::rdma_read: return {.known = opmod == 0, .remote = true};
    case m::Opcode::atomic_cs:
    case m::Opcode::atomic_fa: return {.known = opmod == 0, .remote = true, .atomic_segments = 1};
    case m::Opcode::atomic_masked_fa:
      return {.known = opmod == m::kOpmodMasked4 || opmod == m::kOpmodMasked8, .remote = true, .atomic_segments = 1};
    case m::Opcode::atomic_masked_cs:
      return {.known = opmod == m::kOpmodMasked4 || opmod == m::kOpmodMasked8,
              .remote = true,
              .atomic_segments = opmod == m::kOpmodMasked8 ? 2u : 1u};
    default: return {};
  }
}

void read_atomic(const RingView& ring, std::uint64_t offset, m::Opcode opcode, std::uint8_t opmod, AtomicRequest& out) {
  out = AtomicRequest{};
  const bool narrow = opmod == m::kOpmodMasked4;
  out.width = narrow ? 4 : 8;
  if (opcode == m::Opcode::atomic_cs || opcode == m::Opcode::atomic_fa) {
    const auto plain = segment_at<m::AtomicSeg>(ring, offset);
    out.swap = opcode == m::Opcode::atomic_cs;
    out.operand = plain.swap_or_add.value();
    out.compare = out.swap ? plain.compare.value() : 0;
    if (!out.swap) out.compare_mask = 0;  // no field boundaries
  } else if (opcode == m::Opcode::atomic_masked_fa) {
    if (narrow) {
      const auto masked = segment_at<m::MaskedAdd4Seg>(ring, offset);
      out.operand = masked.add.value();
      out.compare_mask = masked.boundary.value();
    } else {
      const auto masked = segment_at<m::MaskedAdd8Seg>(ring, offset);
      out.operand = masked.add.value();
      out.compare_mask = masked.boundary.value();
    }
  } else if (narrow) {
    const auto masked = segment_at<m::MaskedSwap4Seg>(ring, offset);
    out.swap = true;
    out.operand = masked.swap.value();
    out.compare = masked.compare.value();
    out.swap_mask = masked.swap_mask.value();
    out.compare_mask = masked.compare_mask.value();
  } else {
    // Two segments of which the second may lie beyond the ring's end.
    const auto values = segment_at<m::AtomicSeg>(ring, offset);
    const auto masks = segment_at<m::AtomicSeg>(ring, offset + m::kSegmentBytes);
    out.swap = true;
    out.operand = values.swap_or_add.value();
    out.compare = values.compare.value();
    out.swap_mask = masks.swap_or_add.value();
    out.compare_mask = masks.compare.value();
  }
}

DecodeFault read_pieces(const RingView& ring, std::uint64_t offset, std::uint32_t segments, bool may_inline,
                        SendWork& out) {
  std::uint64_t total = 0;
  while (segments > 0) {
    const auto data = segment_at<m::DataSeg>(ring, offset);
    const std::uint32_t count = data.byte_count.value();
    LocalPiece& piece = out.pieces[out.n_pieces];
    std::uint32_t used = 1;
    if ((count & m::kInlineFlag) != 0) {
      if (!may_inline) return malformed("inline data in an operation that cannot carry any");
      const std::uint32_t length = count & ~m::kInlineFlag;
      if (length > m::kMaxSegments * m::kSegmentBytes)
        return malformed("inline data longer than a work request can be");
      used = std::max(1u, m::inline_segments(length));
      if (used > segments) return malformed("inline data runs past the end of its work request");
      piece = {offset + sizeof(m::InlineHeader), length, 0, true};
    } else {
      // To hardware a count of 0 means 2^31 bytes: no driver writes it, so it is refused rather than guessed at.
      if (count == 0) return malformed("a data segment of 0 bytes");
      piece = {data.addr.value(), count, data.lkey.value(), false};
    }
    total += piece.length_bytes;
    if (total > m::kMaxMessageBytes) return {m::Syndrome::local_length, "the message is longer than 2^30 bytes", 0};
    if (piece.length_bytes != 0) ++out.n_pieces;
    offset += std::uint64_t{used} * m::kSegmentBytes;
    segments -= used;
  }
  out.total_bytes = static_cast<std::uint32_t>(total);
  return {};
}

// What every work request begins with. `segments` is its length, checked against what was published.
DecodeFault read_control(const RingView& ring, std::uint64_t index, std::uint32_t available, std::uint32_t qpn,
                         SendWork& out, m::CtrlSeg& control, std::uint32_t& segments) {
  out.n_pieces = 0;
  out.total_bytes = 0;
  out.raddr = 0;
  out.rkey = 0;
  out.blocks = 1;
  if (available == 0) return malformed("no block was published");
  control = segment_at<m::CtrlSeg>(ring, index * m::kBlockBytes);
  out.opcode = control.opcode();
  // The flags count even when the rest is garbage: an error completion is written either way.
  out.signaled = (control.fm_ce_se & m::kCompletionAlways) != 0;
  out.fence = (control.fm_ce_se & m::kFenceMask) != 0;
  out.solicited = (control.fm_ce_se & m::kSolicited) != 0;
  out.imm_raw = control.imm.raw();
  if (control.qpn() != qpn) return malformed("the control segment names another queue pair");
  if (control.index() != (index & m::kIndexMask)) return malformed("the control segment names another index");
  segments = control.ds();
  if (segments == 0) return malformed("a work request of 0 segments");
  out.blocks = m::blocks_of(segments);
  if (out.blocks > available) {
    out.blocks = available;
    return malformed("the work request is longer than what the doorbell published");
  }
  if (std::uint64_t{out.blocks} * m::kBlockBytes > ring.bytes)
    return malformed("the work request is longer than its ring");
  return {};
}

DecodeFault read_key_change(const RingView& ring, std::uint64_t offset, std::uint32_t segments,
                            const m::CtrlSeg& control, KeyChange& out) {
  constexpr std::uint32_t fixed = 1 + m::kUmrControlSegments + m::kMkeySegments;
  if (segments < fixed) return malformed("the change of a key is too short");
  m::UmrControlSeg umr;
  m::MkeySeg mkey;
  ring.read(offset + m::kSegmentBytes, &umr, sizeof umr);
  ring.read(offset + (1 + m::kUmrControlSegments) * m::kSegmentBytes, &mkey, sizeof mkey);
  out = {};
  out.old_key = control.imm.value();
  out.new_variant = static_cast<std::uint8_t>(mkey.qpn_mkey.value());
  out.any_qp = mkey.qpn_mkey.value() >> 8 == m::kMaxQpn;
  out.frees = (mkey.free & m::kMkeyFree) != 0;
  out.check_free = (umr.flags & m::kUmrCheckFree) != 0;
  out.check_qpn = (umr.flags & m::kUmrCheckQpn) != 0;
  out.mask = umr.mkey_mask.value();
  out.list_segments = umr.klm_octowords.value();
  out.list_offset = offset + fixed * m::kSegmentBytes;
  out.inlined = (umr.flags & m::kUmrInline) != 0;
  out.part_of_list = (umr.flags & m::kUmrPartOfList) != 0;
  out.signature = !out.part_of_list && umr.translation_offset.value() != 0;
  if (out.frees) return {};
  const auto right = [&](std::uint8_t bit, std::uint32_t means) { return (mkey.access & bit) != 0 ? means : 0u; };
  out.access = right(m::kMkeyRemoteWrite, STRAIT_NIC_REMOTE_WRITE) | right(m::kMkeyRemoteRead, STRAIT_NIC_REMOTE_READ) |
               right(m::kMkeyAtomic, STRAIT_NIC_REMOTE_ATOMIC) | right(m::kMkeyLocalWrite, STRAIT_NIC_LOCAL_WRITE);
  out.start = mkey.start_addr.value();
  out.length_bytes = mkey.len.value();
  if (!out.inlined) return {};
  if (out.list_segments > segments - fixed) return malformed("a key's parts run past the end of its work request");
  if (segments == fixed) return {};
  const auto target = segment_at<m::DataSeg>(ring, offset + fixed * m::kSegmentBytes);
  out.target = {target.addr.value(), target.byte_count.value(), target.lkey.value(), false};
  return {};
}

// Everything behind the control segment at `offset`, of which the caller has read `before` segments.
DecodeFault read_rest(const RingView& ring, std::uint64_t offset, std::uint32_t before, std::uint32_t segments,
                      const m::CtrlSeg& control, SendWork& out) {
  if (out.opcode == m::Opcode::umr && control.opmod() == 0)
    return read_key_change(ring, offset, segments, control, out.key);
  const Shape shape = shape_of(out.opcode, control.opmod());
  if (!shape.known) return malformed("this opcode is not served on a reliable connection");
  const std::uint32_t fixed = 1 + before + (shape.remote ? 1 : 0) + shape.atomic_segments;
  if (segments < fixed) return malformed("the work request is too short for its opcode");
  offset += m::kSegmentBytes;
  if (shape.remote) {
    const auto remote = segment_at<m::RaddrSeg>(ring, offset);
    out.raddr = remote.raddr.value();
    out.rkey = remote.rkey.value();
    offset += m::kSegmentBytes;
  }
  if (shape.atomic_segments != 0) {
    read_atomic(ring, offset, out.opcode, control.opmod(), out.atomic);
    offset += std::uint64_t{shape.atomic_segments} * m::kSegmentBytes;
  }
  if (!shape.has_data) return {};
  if (const DecodeFault fault = read_pieces(ring, offset, segments - fixed, shape.may_inline, out)) return fault;
  if (shape.atomic_segments != 0 && out.total_bytes != out.atomic.width) {
    return {m::Syndrome::local_length, "the result of an atomic needs exactly its width", 0};
  }
  return {};
}

}  // namespace

void RingView::read(std::uint64_t offset, void* into, std::uint64_t length_bytes) const {
  const std::uint64_t start = offset & (bytes - 1);
  const std::uint64_t before_end = std::min(length_bytes, bytes - start);
  std::memcpy(into, base + start, before_end);
  if (before_end < length_bytes)
    std::memcpy(static_cast<std::byte*>(into) + before_end, base, length_bytes - before_end);
}

DecodeFault decode_send(const RingView& ring, std::uint64_t index, std::uint32_t available, std::uint32_t qpn,
                        SendWork& out) {
  m::CtrlSeg control;
  std::uint32_t segments = 0;
  if (const DecodeFault fault = read_control(ring, index, available, qpn, out, control, segments)) return fault;
  std::uint64_t offset = index * m::kBlockBytes;

  // A write of one piece is most of all traffic: the general way below, with everything known folded in.
  if (out.opcode == m::Opcode::rdma_write && control.opmod() == 0 && segments == 3) {
    const auto remote = segment_at<m::RaddrSeg>(ring, offset + m::kSegmentBytes);
    out.raddr = remote.raddr.value();
    out.rkey = remote.rkey.value();
    return read_pieces(ring, offset + 2 * m::kSegmentBytes, 1, true, out);
  }

  return read_rest(ring, offset, 0, segments, control, out);
}

DecodeFault decode_xrc(const RingView& ring, std::uint64_t index, std::uint32_t available, std::uint32_t qpn,
                       SendWork& out) {
  m::CtrlSeg control;
  std::uint32_t segments = 0;
  if (const DecodeFault fault = read_control(ring, index, available, qpn, out, control, segments)) return fault;
  const std::uint64_t offset = index * m::kBlockBytes;
  if (out.opcode == m::Opcode::nop || out.opcode == m::Opcode::umr)
    return read_rest(ring, offset, 0, segments, control, out);
  if (segments < 2) return malformed("a work request that names no shared receive queue");
  out.xrc_srqn = segment_at<m::XrcSeg>(ring, offset + m::kSegmentBytes).srqn.value() & m::kMaxQpn;
  return read_rest(ring, offset + m::kSegmentBytes, 1, segments, control, out);
}
DecodeFault decode_datagram(const RingView& ring, std::uint64_t index, std::uint32_t available, std::uint32_t qpn,
                            SendWork& out) {
  m::CtrlSeg control;
  std::uint32_t segments = 0;
  if (const DecodeFault fault = read_control(ring, index, available, qpn, out, control, segments)) return fault;
  if (out.opcode == m::Opcode::nop) return {};
  if (out.opcode != m::Opcode::send && out.opcode != m::Opcode::send_imm)
    return malformed("this opcode is not served on unreliable datagrams");
  constexpr std::uint32_t fixed = 1 + m::kDatagramSegments;
  if (segments < fixed) return malformed("a datagram without an address");
  const std::uint64_t offset = index * m::kBlockBytes + m::kSegmentBytes;
  std::memcpy(&out.datagram, ring.at(offset), sizeof out.datagram);  // with the control segment: one block exactly
  return read_pieces(ring, index * m::kBlockBytes + fixed * m::kSegmentBytes, segments - fixed, true, out);
}

DecodeFault decode_receive(const RingView& ring, std::uint64_t index, std::uint32_t stride_bytes, ReceiveWork& out) {
  return decode_receive_at(ring, index * stride_bytes, stride_bytes, out);
}

DecodeFault decode_receive_at(const RingView& ring, std::uint64_t offset, std::uint32_t room_bytes, ReceiveWork& out) {
  out.n_pieces = 0;
  out.total_bytes = 0;
  std::uint64_t total = 0;
  const std::uint32_t most = std::min(room_bytes / m::kSegmentBytes, kMaxPieces);
  for (std::uint32_t i = 0; i < most; ++i, offset += m::kSegmentBytes) {
    const auto data = segment_at<m::DataSeg>(ring, offset);
    const std::uint32_t count = data.byte_count.value();
    if (count == 0) {
      if (data.lkey.value() == m::kTerminatorLkey) break;
      return malformed("a receive segment of 0 bytes that is not the terminator");
    }
    if ((count & m::kInlineFlag) != 0) return malformed("a receive segment with the inline flag");
    out.pieces[out.n_pieces++] = {data.addr.value(), count, data.lkey.value(), false};
    total += count;
  }
  // More room than a message can have is no fault; the sum only has to stay representable.
  out.total_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(total, 0xffffffffu));
  return {};
}

}  // namespace strait::soft::nic
