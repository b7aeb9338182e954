// SPDX-License-Identifier: Apache-2.0
#include "rail/proxy/wqe.hpp"

#include <algorithm>
#include <cstring>

namespace strait::rail::proxy {
namespace m = wire::mlx5;
using m::Opcode;

template <class Segment>
Segment Ring::segment(std::uint64_t offset) const {
  static_assert(sizeof(Segment) == m::kSegmentBytes);
  Segment copy;
  std::memcpy(&copy, at(offset), sizeof copy);
  return copy;
}

namespace {

enum Needs : unsigned { kNothing = 0, kRemote = 1, kAtomic = 2, kData = 4, kMayInline = 8, kUnknown = 128 };

// What the devices behind a proxy can express.
unsigned needs_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::nop: return kNothing;
    case Opcode::send:
    case Opcode::send_imm:
    case Opcode::send_inval: return kData | kMayInline;
    case Opcode::rdma_write:
    case Opcode::rdma_write_imm: return kRemote | kData | kMayInline;
    case Opcode::rdma_read: return kRemote | kData;
    case Opcode::atomic_cs:
    case Opcode::atomic_fa:
    case Opcode::atomic_masked_cs:
    case Opcode::atomic_masked_fa: return kRemote | kAtomic | kData;
    default: return kUnknown;
  }
}

void add(Work& out, const Part& part) {
  if (part.length_bytes != 0) out.parts[out.count++] = part;
}

// An inline payload of `length` bytes behind its header at `offset`: one part, or two across the ring's end.
void add_inline(const Ring& ring, std::uint64_t offset, std::uint32_t length, Work& out) {
  const auto address = [&](std::uint64_t at) { return reinterpret_cast<std::uintptr_t>(ring.at(at)); };
  const std::uint64_t begin = offset + sizeof(m::InlineHeader);
  const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, ring.until_end(begin)));
  add(out, {address(begin), first, 0, true});
  add(out, {address(begin + first), length - first, 0, true});
}

const char* read_data(const Ring& ring, std::uint64_t offset, std::uint32_t segments, bool may_inline, Work& out) {
  std::uint64_t total = 0;
  bool inlined = false;
  while (segments != 0) {
    const auto data = ring.segment<m::DataSeg>(offset);
    const std::uint32_t count = data.byte_count.value();
    std::uint32_t used = 1;
    if ((count & m::kInlineFlag) != 0) {
      const std::uint32_t length = count & ~m::kInlineFlag;
      if (!may_inline) return "inline data in an operation that cannot carry any";
      // Two of them could need more parts than there are places; no driver writes that.
      if (inlined) return "two inline payloads in one work request";
      inlined = true;
      if (length > m::kMaxSegments * m::kSegmentBytes) return "inline data longer than a work request can be";
      used = std::max(1u, m::inline_segments(length));
      if (used > segments) return "inline data runs past the end of its work request";
      add_inline(ring, offset, length, out);
      total += length;
    } else {
      if (count == 0) return "a data segment of 0 bytes, which to hardware is 2^31";
      add(out, {data.addr.value(), count, data.lkey.value(), false});
      total += count;
    }
    if (total > m::kMaxMessageBytes) return kTooLong;
    offset += std::uint64_t{used} * m::kSegmentBytes;
    segments -= used;
  }
  out.total_bytes = static_cast<std::uint32_t>(total);
  return nullptr;
}

// The operands of an atomic at `offset`: how many segments they take.
std::uint32_t read_operands(const Ring& ring, std::uint64_t offset, std::uint8_t opmod, Work& out) {
  out.width = opmod == m::kOpmodMasked4 ? 4 : 8;
  if (out.opcode == Opcode::atomic_masked_fa && out.width == 4) {
    const auto add = ring.segment<m::MaskedAdd4Seg>(offset);
    out.operand = add.add.value();
    out.boundary = add.boundary.value();
  } else if (out.opcode == Opcode::atomic_masked_fa) {
    const auto add = ring.segment<m::MaskedAdd8Seg>(offset);
    out.operand = add.add.value();
    out.boundary = add.boundary.value();
  } else if (out.opcode == Opcode::atomic_masked_cs && out.width == 4) {
    const auto swap = ring.segment<m::MaskedSwap4Seg>(offset);
    out.operand = swap.swap.value();
    out.compare = swap.compare.value();
    out.swap_mask = swap.swap_mask.value();
    out.compare_mask = swap.compare_mask.value();
  } else {
    const auto values = ring.segment<m::AtomicSeg>(offset);
    out.operand = values.swap_or_add.value();
    out.compare = values.compare.value();
    if (out.opcode == Opcode::atomic_masked_cs) {
      const auto masks = ring.segment<m::AtomicSeg>(offset + m::kSegmentBytes);
      out.swap_mask = masks.swap_or_add.value();
      out.compare_mask = masks.compare.value();
      return 2;
    }
  }
  return 1;
}

}  // namespace

const char* read_send(const Ring& ring, std::uint64_t index, std::uint32_t published, std::uint32_t qpn, Work& out,
                      Masked masked) {
  out.count = 0;
  out.total_bytes = 0;
  out.blocks = 1;
  std::uint64_t offset = index * m::kBlockBytes;
  const auto control = ring.segment<m::CtrlSeg>(offset);
  out.opcode = control.opcode();
  const std::uint8_t completion = control.fm_ce_se & m::kCompletionMask;
  out.signaled = completion == m::kCompletionAlways || completion == m::kCompletionAndEvent;
  out.fence = (control.fm_ce_se & m::kFenceMask) != 0;
  out.solicited = (control.fm_ce_se & m::kSolicited) != 0;
  out.imm_raw = control.imm.raw();
  const std::uint32_t segments = control.ds();
  if (segments == 0) return "a work request of 0 segments";
  if (m::blocks_of(segments) > published) {
    out.blocks = std::max(1u, published);
    return "the work request is longer than what was published";
  }
  out.blocks = m::blocks_of(segments);
  if (control.qpn() != qpn) return "the control segment names another queue pair";
  if (control.index() != (index & m::kIndexMask)) return "the control segment names another index";
  if (std::uint64_t{out.blocks} * m::kBlockBytes > ring.bytes()) return "the work request is longer than its ring";
  const unsigned needs = needs_of(out.opcode);
  const bool has_masks = out.opcode == Opcode::atomic_masked_cs || out.opcode == Opcode::atomic_masked_fa;
  const bool plain = has_masks ? masked == Masked::understood &&
                                     (control.opmod() == m::kOpmodMasked4 || control.opmod() == m::kOpmodMasked8)
                               : control.opmod() == m::kOpmodPlain;
  if (needs == kUnknown || !plain) return "no such operation on a reliable connection";
  const bool two = out.opcode == Opcode::atomic_masked_cs && control.opmod() == m::kOpmodMasked8;
  const std::uint32_t fixed = 1u + ((needs & kRemote) != 0 ? 1 : 0) + ((needs & kAtomic) != 0 ? (two ? 2 : 1) : 0);
  if (segments < fixed) return "the work request is too short for its opcode";
  offset += m::kSegmentBytes;
  if ((needs & kRemote) != 0) {
    const auto remote = ring.segment<m::RaddrSeg>(offset);
    out.remote_address = remote.raddr.value();
    out.rkey = remote.rkey.value();
    offset += m::kSegmentBytes;
  }
  if ((needs & kAtomic) != 0) {
    offset += std::uint64_t{read_operands(ring, offset, control.opmod(), out)} * m::kSegmentBytes;
  }
  if ((needs & kData) == 0) return nullptr;
  if (const char* fault = read_data(ring, offset, segments - fixed, (needs & kMayInline) != 0, out)) return fault;
  if ((needs & kAtomic) != 0 && out.total_bytes != out.width)
    return "the result of an atomic needs as many bytes as it works on";
  return nullptr;
}

const char* read_receive(const Ring& ring, std::uint64_t index, std::uint32_t stride_bytes, Work& out) {
  out.count = 0;
  out.total_bytes = 0;
  std::uint64_t total = 0;
  const std::uint32_t most = std::min(stride_bytes / m::kSegmentBytes, m::kMaxSegments);
  for (std::uint32_t i = 0; i < most; ++i) {
    const auto data = ring.segment<m::DataSeg>(index * stride_bytes + std::uint64_t{i} * m::kSegmentBytes);
    const std::uint32_t count = data.byte_count.value();
    if (count == 0 && data.lkey.value() == m::kTerminatorLkey) break;
    if (count == 0) return "a receive segment of 0 bytes that is not the terminator";
    if ((count & m::kInlineFlag) != 0) return "a receive segment with the inline flag";
    add(out, {data.addr.value(), count, data.lkey.value(), false});
    total += count;
  }
  out.total_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(total, UINT32_MAX));
  return nullptr;
}

}  // namespace strait::rail::proxy
