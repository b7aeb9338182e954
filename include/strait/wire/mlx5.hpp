// SPDX-License-Identifier: Apache-2.0
// mlx5 queue formats for RC: send and receive WQEs, CQEs, doorbell records and doorbells. Layout only, no behaviour.
// Words follow the hardware's: DS = 16-byte segment, WQEBB = 64-byte block, "index" counts blocks modulo 65536.
// docs/wire-mlx5.md explains the page; every offset below is asserted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/endian.hpp"

namespace strait::wire::mlx5 {

inline constexpr std::uint32_t kBlockBytes = 64;
inline constexpr std::uint32_t kSegmentBytes = 16;
inline constexpr std::uint32_t kSegmentsPerBlock = kBlockBytes / kSegmentBytes;
inline constexpr std::uint32_t kMaxSegments = 63;   // ds is a byte, but devices look at 6 bits of it
inline constexpr std::uint32_t kMaxLogBlocks = 15;  // 32768: at 65536 full and empty would look alike
inline constexpr std::uint32_t kMaxBlocks = 1u << kMaxLogBlocks;
inline constexpr std::uint32_t kInlineFlag = 0x80000000u;    // in byte_count: the payload follows
inline constexpr std::uint32_t kTerminatorLkey = 0x100;      // ends a receive list shorter than its stride
inline constexpr std::uint32_t kMaxMessageBytes = 1u << 30;  // RC message limit
inline constexpr std::uint32_t kMaxQpn = 0x00ffffffu;
inline constexpr std::uint32_t kIndexMask = 0xffff;          // queue counters on the wire
inline constexpr std::uint32_t kConsumerMask = 0x00ffffffu;  // CQ consumer index on the wire

enum class Opcode : std::uint8_t {
  nop = 0x00,
  send_inval = 0x01,
  rdma_write = 0x08,
  rdma_write_imm = 0x09,
  send = 0x0a,
  send_imm = 0x0b,
  tso = 0x0e,
  wait = 0x0f,
  rdma_read = 0x10,
  atomic_cs = 0x11,
  atomic_fa = 0x12,
  atomic_masked_cs = 0x14,
  atomic_masked_fa = 0x15,
  fmr = 0x19,
  local_inval = 0x1b,
  set_psv = 0x20,
  dump = 0x23,
  umr = 0x25,
  tag_matching = 0x28,
  mmo = 0x2f,
};

// opmod byte of the masked atomics; 0 for every other operation.
inline constexpr std::uint8_t kOpmodPlain = 0x00;
inline constexpr std::uint8_t kOpmodMasked4 = 0x08;
inline constexpr std::uint8_t kOpmodMasked8 = 0x09;

// fm_ce_se: fence mode (bits 7..5), completion mode (bits 3..2), solicited event (bit 1).
inline constexpr std::uint8_t kSolicited = 0x02;
inline constexpr std::uint8_t kCompletionMask = 0x0c;
inline constexpr std::uint8_t kCompletionOnError = 0x00;
inline constexpr std::uint8_t kCompletionFirstError = 0x04;
inline constexpr std::uint8_t kCompletionAlways = 0x08;
inline constexpr std::uint8_t kCompletionAndEvent = 0x0c;
inline constexpr std::uint8_t kFenceMask = 0xe0;
inline constexpr std::uint8_t kFenceNone = 0x00;
inline constexpr std::uint8_t kFenceInitiatorSmall = 0x20;
inline constexpr std::uint8_t kFence = 0x40;
inline constexpr std::uint8_t kFenceStrongOrder = 0x60;
inline constexpr std::uint8_t kFenceAndInitiatorSmall = 0x80;  // what the verbs fence flag becomes

// ---- Send WQE -----------------------------------------------------------------------------------------------------

STRAIT_HD constexpr std::uint32_t control_word0(std::uint8_t opmod, std::uint64_t index, Opcode op) {
  return static_cast<std::uint32_t>(opmod) << 24 | static_cast<std::uint32_t>(index & kIndexMask) << 8 |
         static_cast<std::uint32_t>(op);
}
STRAIT_HD constexpr std::uint32_t control_word1(std::uint32_t qpn, std::uint32_t ds) {
  return qpn << 8 | ds;
}

struct CtrlSeg {
  be32 opmod_idx_opcode;
  be32 qpn_ds;
  std::uint8_t signature;
  std::uint8_t dci_stream[2];
  std::uint8_t fm_ce_se;
  be32 imm;  // opaque for the immediate forms; an rkey for send_inval

  STRAIT_HD constexpr std::uint8_t opmod() const { return static_cast<std::uint8_t>(opmod_idx_opcode.value() >> 24); }
  STRAIT_HD constexpr std::uint16_t index() const { return static_cast<std::uint16_t>(opmod_idx_opcode.value() >> 8); }
  STRAIT_HD constexpr Opcode opcode() const { return static_cast<Opcode>(opmod_idx_opcode.value() & 0xff); }
  STRAIT_HD constexpr std::uint32_t qpn() const { return qpn_ds.value() >> 8; }
  STRAIT_HD constexpr std::uint32_t ds() const { return qpn_ds.value() & 0x3f; }
};
static_assert(sizeof(CtrlSeg) == 16 && std::is_trivial_v<CtrlSeg>);
static_assert(offsetof(CtrlSeg, opmod_idx_opcode) == 0 && offsetof(CtrlSeg, qpn_ds) == 4);
static_assert(offsetof(CtrlSeg, signature) == 8 && offsetof(CtrlSeg, dci_stream) == 9);
static_assert(offsetof(CtrlSeg, fm_ce_se) == 11 && offsetof(CtrlSeg, imm) == 12);

struct RaddrSeg {
  be64 raddr;
  be32 rkey;
  be32 reserved;
};
static_assert(sizeof(RaddrSeg) == 16 && std::is_trivial_v<RaddrSeg>);
static_assert(offsetof(RaddrSeg, raddr) == 0 && offsetof(RaddrSeg, rkey) == 8 && offsetof(RaddrSeg, reserved) == 12);

// Where a datagram goes. Three segments behind the control segment.
struct DatagramSeg {
  be32 qkey;
  be32 reserved;
  be32 dqp;  // top bit: the fields from rmac on are valid
  std::uint8_t stat_rate_sl;
  std::uint8_t fl_mlid;
  be16 rlid;
  std::uint8_t reserved16[4];
  std::uint8_t rmac[6];
  std::uint8_t tclass;
  std::uint8_t hop_limit;
  be32 grh_gid_fl;  // bit 30: there is a GRH; 27..20: index of the source GID; 19..0: flow label
  std::uint8_t rgid[16];

  STRAIT_HD constexpr std::uint32_t qpn() const { return dqp.value() & 0xffffff; }
  STRAIT_HD constexpr std::uint8_t sgid_index() const { return static_cast<std::uint8_t>(grh_gid_fl.value() >> 20); }
};
inline constexpr std::uint32_t kDatagramSegments = 3;
static_assert(sizeof(DatagramSeg) == kDatagramSegments * kSegmentBytes && std::is_trivial_v<DatagramSeg>);
static_assert(offsetof(DatagramSeg, qkey) == 0 && offsetof(DatagramSeg, reserved) == 4);
static_assert(offsetof(DatagramSeg, dqp) == 8 && offsetof(DatagramSeg, stat_rate_sl) == 12);
static_assert(offsetof(DatagramSeg, fl_mlid) == 13 && offsetof(DatagramSeg, rlid) == 14);
static_assert(offsetof(DatagramSeg, reserved16) == 16 && offsetof(DatagramSeg, rmac) == 20);
static_assert(offsetof(DatagramSeg, tclass) == 26 && offsetof(DatagramSeg, hop_limit) == 27);
static_assert(offsetof(DatagramSeg, grh_gid_fl) == 28 && offsetof(DatagramSeg, rgid) == 32);

// A byte_count of 0 is not "nothing" to the device: empty pieces are left out, never written.
struct DataSeg {
  be32 byte_count;
  be32 lkey;
  be64 addr;
};
static_assert(sizeof(DataSeg) == 16 && std::is_trivial_v<DataSeg>);
static_assert(offsetof(DataSeg, byte_count) == 0 && offsetof(DataSeg, lkey) == 4 && offsetof(DataSeg, addr) == 8);

// The payload begins right behind this header and is padded to a whole segment.
struct InlineHeader {
  be32 byte_count;  // kInlineFlag | length

  STRAIT_HD constexpr bool is_inline() const { return (byte_count.value() & kInlineFlag) != 0; }
  STRAIT_HD constexpr std::uint32_t length() const { return byte_count.value() & ~kInlineFlag; }
};
static_assert(sizeof(InlineHeader) == 4 && offsetof(InlineHeader, byte_count) == 0);

STRAIT_HD constexpr std::uint32_t inline_segments(std::uint32_t length) {
  return length == 0 ? 0
                     : (static_cast<std::uint32_t>(sizeof(InlineHeader)) + length + kSegmentBytes - 1) / kSegmentBytes;
}

struct AtomicSeg {
  be64 swap_or_add;
  be64 compare;  // ignored by fetch-and-add
};
static_assert(sizeof(AtomicSeg) == 16 && std::is_trivial_v<AtomicSeg>);
static_assert(offsetof(AtomicSeg, swap_or_add) == 0 && offsetof(AtomicSeg, compare) == 8);

// A set bit in boundary stops the carry out of that bit: 0 adds as usual, all ones is XOR.
struct MaskedAdd4Seg {
  be32 add;
  be32 boundary;
  std::uint8_t reserved[8];
};
struct MaskedAdd8Seg {
  be64 add;
  be64 boundary;
};
struct MaskedSwap4Seg {
  be32 swap;
  be32 compare;
  be32 swap_mask;
  be32 compare_mask;
};
// The 8-byte masked swap takes two segments.
struct MaskedSwap8Seg {
  be64 swap;
  be64 compare;
  be64 swap_mask;
  be64 compare_mask;
};
static_assert(sizeof(MaskedAdd4Seg) == 16 && offsetof(MaskedAdd4Seg, add) == 0 &&
              offsetof(MaskedAdd4Seg, boundary) == 4);
static_assert(offsetof(MaskedAdd4Seg, reserved) == 8);
static_assert(sizeof(MaskedAdd8Seg) == 16 && offsetof(MaskedAdd8Seg, add) == 0 &&
              offsetof(MaskedAdd8Seg, boundary) == 8);
static_assert(sizeof(MaskedSwap4Seg) == 16 && offsetof(MaskedSwap4Seg, swap) == 0);
static_assert(offsetof(MaskedSwap4Seg, compare) == 4 && offsetof(MaskedSwap4Seg, swap_mask) == 8);
static_assert(offsetof(MaskedSwap4Seg, compare_mask) == 12);
static_assert(sizeof(MaskedSwap8Seg) == 32 && offsetof(MaskedSwap8Seg, swap) == 0);
static_assert(offsetof(MaskedSwap8Seg, compare) == 8 && offsetof(MaskedSwap8Seg, swap_mask) == 16);
static_assert(offsetof(MaskedSwap8Seg, compare_mask) == 24);

// Behind the control segment on the sending side of an extended reliable connection.
struct XrcSeg {
  be32 srqn;
  std::uint8_t reserved[12];
};
static_assert(sizeof(XrcSeg) == 16 && offsetof(XrcSeg, srqn) == 0 && offsetof(XrcSeg, reserved) == 4);

// Changes a memory key: three segments of what to do, four of what the key becomes, and with inline translation entries
// what it maps. The control segment's immediate is the key as it is now.
struct UmrControlSeg {
  std::uint8_t flags;
  std::uint8_t reserved1[3];
  be16 klm_octowords;
  be16 translation_offset;
  be64 mkey_mask;
  std::uint8_t reserved16[32];
};
inline constexpr std::uint8_t kUmrInline = 0x80;
inline constexpr std::uint8_t kUmrCheckFree = 0x20;   // fails unless the key is free
inline constexpr std::uint8_t kUmrPartOfList = 0x10;  // translation_offset counts; otherwise it is BSF octowords
inline constexpr std::uint8_t kUmrCheckQpn = 0x08;    // fails unless the key is this queue pair's
// mkey_mask: what of the MkeySeg counts.
inline constexpr std::uint64_t kUmrMaskLength = 1u << 0;
inline constexpr std::uint64_t kUmrMaskStart = 1u << 6;
inline constexpr std::uint64_t kUmrMaskSignatureError = 1u << 9;
inline constexpr std::uint64_t kUmrMaskBsf = 1u << 12;
inline constexpr std::uint64_t kUmrMaskVariant = 1u << 13;
inline constexpr std::uint64_t kUmrMaskQpn = 1u << 14;
inline constexpr std::uint64_t kUmrMaskLocalWrite = 1u << 18;
inline constexpr std::uint64_t kUmrMaskRemoteRead = 1u << 19;
inline constexpr std::uint64_t kUmrMaskRemoteWrite = 1u << 20;
inline constexpr std::uint64_t kUmrMaskAtomic = 1u << 21;
inline constexpr std::uint64_t kUmrMaskFree = 1u << 29;
inline constexpr std::uint32_t kUmrControlSegments = 3;
static_assert(sizeof(UmrControlSeg) == kUmrControlSegments * kSegmentBytes);
static_assert(offsetof(UmrControlSeg, flags) == 0 && offsetof(UmrControlSeg, reserved1) == 1);
static_assert(offsetof(UmrControlSeg, klm_octowords) == 4 && offsetof(UmrControlSeg, translation_offset) == 6);
static_assert(offsetof(UmrControlSeg, mkey_mask) == 8 && offsetof(UmrControlSeg, reserved16) == 16);

struct MkeySeg {
  std::uint8_t free;
  std::uint8_t reserved1;
  std::uint8_t access;
  std::uint8_t reserved3;
  be32 qpn_mkey;  // queue pair in the high 24 bits, all ones: any; the key's new low byte
  be32 reserved8;
  be32 flags_pd;
  be64 start_addr;
  be64 len;
  std::uint8_t reserved32[32];
};
inline constexpr std::uint8_t kMkeyFree = 0x40;
inline constexpr std::uint8_t kMkeyAtomic = 0x40;
inline constexpr std::uint8_t kMkeyRemoteWrite = 0x20;
inline constexpr std::uint8_t kMkeyRemoteRead = 0x10;
inline constexpr std::uint8_t kMkeyLocalWrite = 0x08;
inline constexpr std::uint32_t kMkeySegments = 4;
static_assert(sizeof(MkeySeg) == kMkeySegments * kSegmentBytes);
static_assert(offsetof(MkeySeg, free) == 0 && offsetof(MkeySeg, reserved1) == 1 && offsetof(MkeySeg, access) == 2);
static_assert(offsetof(MkeySeg, reserved3) == 3 && offsetof(MkeySeg, qpn_mkey) == 4);
static_assert(offsetof(MkeySeg, reserved8) == 8 && offsetof(MkeySeg, flags_pd) == 12);
static_assert(offsetof(MkeySeg, start_addr) == 16 && offsetof(MkeySeg, len) == 24);
static_assert(offsetof(MkeySeg, reserved32) == 32);

// What a key is made of follows, in whole blocks, filled up with zeros: either data segments, each a range of another
// key; or a repeat block and its entries. Those take turns, `repeat_count` times: each gives `byte_count` bytes of
// another key, the next time those `stride` bytes further on.
struct RepeatBlockSeg {
  be32 byte_count;  // of all entries, once
  be32 op;          // kRepeatOp, where a data segment has its key
  be32 repeat_count;
  be16 reserved12;
  be16 entries;
};
inline constexpr std::uint32_t kRepeatOp = 0x400;
static_assert(sizeof(RepeatBlockSeg) == kSegmentBytes);
static_assert(offsetof(RepeatBlockSeg, byte_count) == 0 && offsetof(RepeatBlockSeg, op) == 4);
static_assert(offsetof(RepeatBlockSeg, repeat_count) == 8 && offsetof(RepeatBlockSeg, reserved12) == 12);
static_assert(offsetof(RepeatBlockSeg, entries) == 14);

struct RepeatEntrySeg {
  be16 stride;
  be16 byte_count;
  be32 key;
  be64 addr;
};
static_assert(sizeof(RepeatEntrySeg) == kSegmentBytes);
static_assert(offsetof(RepeatEntrySeg, stride) == 0 && offsetof(RepeatEntrySeg, byte_count) == 2);
static_assert(offsetof(RepeatEntrySeg, key) == 4 && offsetof(RepeatEntrySeg, addr) == 8);

struct WaitSeg {
  std::uint8_t reserved[8];
  be32 max_index;
  be32 number;  // of the CQ or QP waited for
};
static_assert(sizeof(WaitSeg) == 16 && offsetof(WaitSeg, reserved) == 0);
static_assert(offsetof(WaitSeg, max_index) == 8 && offsetof(WaitSeg, number) == 12);

// First segment of a shared receive queue's WQE.
struct SrqNextSeg {
  std::uint8_t reserved0[2];
  be16 next_wqe_index;
  std::uint8_t signature;
  std::uint8_t reserved5[11];
};
static_assert(sizeof(SrqNextSeg) == 16 && offsetof(SrqNextSeg, reserved0) == 0);
static_assert(offsetof(SrqNextSeg, next_wqe_index) == 2 && offsetof(SrqNextSeg, signature) == 4);
static_assert(offsetof(SrqNextSeg, reserved5) == 5);

STRAIT_HD constexpr std::uint32_t blocks_of(std::uint32_t segments) {
  return (segments + kSegmentsPerBlock - 1) / kSegmentsPerBlock;
}

// ---- Completion queue entry ---------------------------------------------------------------------------------------

enum class CqeOpcode : std::uint8_t {
  requester = 0,
  responder_write_imm = 1,
  responder_send = 2,
  responder_send_imm = 3,
  responder_send_inval = 4,
  resize = 5,
  no_packet = 6,
  signature_error = 12,
  requester_error = 13,
  responder_error = 14,
  invalid = 15,
};

inline constexpr std::uint8_t kCqeInvalid = 0xf0;  // op_own of an entry never written
inline constexpr std::uint8_t kCqeOwnerMask = 0x01;
inline constexpr std::uint8_t kCqeSolicited = 0x02;
inline constexpr std::uint8_t kCqeFormatMask = 0x0c;
inline constexpr std::uint8_t kCqeFormatPlain = 0x00;
inline constexpr std::uint8_t kCqeFormatInline32 = 0x04;  // payload in bytes 0..31
inline constexpr std::uint8_t kCqeFormatInline64 = 0x08;  // payload in the 64 bytes before (128-byte form)
inline constexpr std::uint8_t kCqeFormatCompressed = 0x0c;

STRAIT_HD constexpr std::uint8_t make_op_own(CqeOpcode op, unsigned owner, std::uint8_t format_and_solicited = 0) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(op) << 4 | format_and_solicited | (owner & kCqeOwnerMask));
}

enum class Syndrome : std::uint8_t {
  none = 0x00,
  local_length = 0x01,
  local_qp_operation = 0x02,
  local_protection = 0x04,
  flushed = 0x05,
  memory_window_bind = 0x06,
  bad_response = 0x10,
  local_access = 0x11,
  remote_invalid_request = 0x12,
  remote_access = 0x13,
  remote_operation = 0x14,
  transport_retry_exceeded = 0x15,
  rnr_retry_exceeded = 0x16,
  remote_aborted = 0x22,
};

STRAIT_HD constexpr const char* sentence(Syndrome s) {
  switch (s) {
    case Syndrome::none: return "the operation succeeded";
    case Syndrome::local_length: return "the message does not fit the posted buffer; post a larger receive";
    case Syndrome::local_qp_operation: return "the queue entry is malformed or not allowed on this queue pair";
    case Syndrome::local_protection: return "a local address is outside its memory key, or the key is not valid here";
    case Syndrome::flushed:
      return "dropped because an earlier operation on this queue failed; look for the first error";
    case Syndrome::memory_window_bind: return "binding the memory window failed; check its key and access rights";
    case Syndrome::bad_response: return "the peer answered with a packet that does not belong to this operation";
    case Syndrome::local_access: return "the local key does not allow writing; register with local write access";
    case Syndrome::remote_invalid_request:
      return "the peer refused the request as malformed or too long for its receive buffer";
    case Syndrome::remote_access:
      return "the peer refused the key: wrong key, out of bounds, revoked, or right missing";
    case Syndrome::remote_operation: return "the peer failed while executing the request; look for its own error";
    case Syndrome::transport_retry_exceeded: return "the peer did not answer; it is gone, unreachable or reset";
    case Syndrome::rnr_retry_exceeded: return "the peer had no receive posted in time; post receives before sending";
    case Syndrome::remote_aborted: return "the peer aborted the operation";
  }
  return "the device reported a syndrome that is not known to this version";
}

// Bytes 0..31 double as payload when the format bits say inline.
inline constexpr std::uint32_t kCqeGrh = 1u << 28;  // in flags_rqpn: a global routing header came with it

struct Cqe {
  std::uint8_t reserved0[2];
  be16 wqe_id;
  std::uint8_t reserved4[13];
  std::uint8_t ml_path;
  std::uint8_t reserved18[4];
  be16 slid;
  be32 flags_rqpn;
  std::uint8_t hds_ip_ext;
  std::uint8_t l4_header_type;
  be16 vlan_info;
  be32 srqn_uidx;
  be32 imm_inval_pkey;  // opaque immediate, or the invalidated rkey
  std::uint8_t app;
  std::uint8_t app_op;
  be16 app_info;
  be32 byte_cnt;
  be64 timestamp;  // error form: four syndrome bytes in its low half
  be32 sop_qpn;    // requester: opcode of the WQE in the high byte
  be16 wqe_counter;
  std::uint8_t signature;
  std::uint8_t op_own;  // written last; tells valid from stale

  STRAIT_HD constexpr CqeOpcode opcode() const { return static_cast<CqeOpcode>(op_own >> 4); }
  STRAIT_HD constexpr unsigned owner() const { return op_own & kCqeOwnerMask; }
  STRAIT_HD constexpr std::uint8_t format() const { return op_own & kCqeFormatMask; }
  STRAIT_HD constexpr bool solicited() const { return (op_own & kCqeSolicited) != 0; }
  STRAIT_HD constexpr std::uint32_t qpn() const { return sop_qpn.value() & kMaxQpn; }
  STRAIT_HD constexpr Opcode send_opcode() const { return static_cast<Opcode>(sop_qpn.value() >> 24); }
  STRAIT_HD constexpr std::uint32_t user_index() const { return srqn_uidx.value() & kMaxQpn; }
  STRAIT_HD constexpr std::uint32_t source_qpn() const { return flags_rqpn.value() & kMaxQpn; }
  STRAIT_HD constexpr bool is_error() const {
    return opcode() == CqeOpcode::requester_error || opcode() == CqeOpcode::responder_error ||
           opcode() == CqeOpcode::signature_error;
  }
  // Meaningful in the error form only.
  STRAIT_HD constexpr Syndrome syndrome() const { return static_cast<Syndrome>(timestamp.value() & 0xff); }
  STRAIT_HD constexpr std::uint8_t vendor_syndrome() const { return static_cast<std::uint8_t>(timestamp.value() >> 8); }
  STRAIT_HD constexpr std::uint8_t hw_syndrome_type() const {
    return static_cast<std::uint8_t>(timestamp.value() >> 16);
  }
  STRAIT_HD constexpr std::uint8_t hw_syndrome() const { return static_cast<std::uint8_t>(timestamp.value() >> 24); }
};
static_assert(sizeof(Cqe) == 64 && std::is_trivial_v<Cqe>);
static_assert(offsetof(Cqe, reserved0) == 0 && offsetof(Cqe, wqe_id) == 2 && offsetof(Cqe, reserved4) == 4);
static_assert(offsetof(Cqe, ml_path) == 17 && offsetof(Cqe, reserved18) == 18 && offsetof(Cqe, slid) == 22);
static_assert(offsetof(Cqe, flags_rqpn) == 24 && offsetof(Cqe, hds_ip_ext) == 28 &&
              offsetof(Cqe, l4_header_type) == 29);
static_assert(offsetof(Cqe, vlan_info) == 30 && offsetof(Cqe, srqn_uidx) == 32 && offsetof(Cqe, imm_inval_pkey) == 36);
static_assert(offsetof(Cqe, app) == 40 && offsetof(Cqe, app_op) == 41 && offsetof(Cqe, app_info) == 42);
static_assert(offsetof(Cqe, byte_cnt) == 44 && offsetof(Cqe, timestamp) == 48 && offsetof(Cqe, sop_qpn) == 56);
static_assert(offsetof(Cqe, wqe_counter) == 60 && offsetof(Cqe, signature) == 62 && offsetof(Cqe, op_own) == 63);

struct ErrorCqe {
  std::uint8_t reserved0[32];
  be32 srqn_uidx;
  std::uint8_t reserved36[16];
  std::uint8_t hw_err_synd;
  std::uint8_t hw_synd_type;
  std::uint8_t vendor_err_synd;
  Syndrome syndrome;
  be32 sop_qpn;
  be16 wqe_counter;
  std::uint8_t signature;
  std::uint8_t op_own;
};
static_assert(sizeof(ErrorCqe) == 64 && std::is_trivial_v<ErrorCqe>);
static_assert(offsetof(ErrorCqe, reserved0) == 0 && offsetof(ErrorCqe, srqn_uidx) == 32);
static_assert(offsetof(ErrorCqe, reserved36) == 36 && offsetof(ErrorCqe, hw_err_synd) == 52);
static_assert(offsetof(ErrorCqe, hw_synd_type) == 53 && offsetof(ErrorCqe, vendor_err_synd) == 54);
static_assert(offsetof(ErrorCqe, syndrome) == 55 && offsetof(ErrorCqe, sop_qpn) == 56);
static_assert(offsetof(ErrorCqe, wqe_counter) == 60 && offsetof(ErrorCqe, signature) == 62);
static_assert(offsetof(ErrorCqe, op_own) == 63);

// 128-byte form: the entry proper is the second half.
struct Cqe128 {
  std::uint8_t inline_payload[64];
  Cqe cqe;
};
static_assert(sizeof(Cqe128) == 128 && offsetof(Cqe128, inline_payload) == 0 && offsetof(Cqe128, cqe) == 64);

// ---- Doorbell records and doorbells -------------------------------------------------------------------------------

// Both words hold the next free index modulo 65536: receive counts WQEs, send counts blocks.
struct alignas(8) QueueRecord {
  be32 receive;
  be32 send;
};
static_assert(sizeof(QueueRecord) == 8 && alignof(QueueRecord) == 8);
static_assert(offsetof(QueueRecord, receive) == 0 && offsetof(QueueRecord, send) == 4);

struct alignas(8) CqRecord {
  be32 consumer;  // 24 bits
  be32 arm;
};
static_assert(sizeof(CqRecord) == 8 && alignof(CqRecord) == 8);
static_assert(offsetof(CqRecord, consumer) == 0 && offsetof(CqRecord, arm) == 4);

// The 8 bytes stored into the doorbell register: those of a control segment. Only qpn and index are looked at, and the
// index is either that of the last WQE (rdma-core) or the next free one (device libraries); a consumer takes both.
struct alignas(8) Doorbell {
  be32 opmod_idx_opcode;
  be32 qpn_ds;

  STRAIT_HD constexpr std::uint16_t index() const { return static_cast<std::uint16_t>(opmod_idx_opcode.value() >> 8); }
  STRAIT_HD constexpr std::uint32_t qpn() const { return qpn_ds.value() >> 8; }
};
static_assert(sizeof(Doorbell) == 8 && alignof(Doorbell) == 8);
static_assert(offsetof(Doorbell, opmod_idx_opcode) == 0 && offsetof(Doorbell, qpn_ds) == 4);

inline constexpr std::uint32_t kUarPageBytes = 4096;
inline constexpr std::uint32_t kCqArmOffset = 0x20;       // in the UAR page
inline constexpr std::uint32_t kBlueFlameOffset = 0x800;  // first send doorbell register in the UAR page
inline constexpr std::uint32_t kBlueFlameRegisterBytes = 512;
inline constexpr std::uint32_t kBlueFlameHalfBytes = 256;

enum class ArmCommand : std::uint8_t { next = 0, next_solicited = 1 };

// sn is the 2-bit arm sequence number, ci the consumer index.
STRAIT_HD constexpr std::uint32_t arm_word(std::uint32_t sn, ArmCommand cmd, std::uint32_t ci) {
  return (sn & 3) << 28 | static_cast<std::uint32_t>(cmd) << 24 | (ci & kConsumerMask);
}
STRAIT_HD constexpr std::uint64_t arm_doorbell(std::uint32_t word, std::uint32_t cqn) {
  return static_cast<std::uint64_t>(word) << 32 | cqn;
}

}  // namespace strait::wire::mlx5
