// SPDX-License-Identifier: Apache-2.0
// Command mailboxes of mlx5 devices, as DevX programs write them: big-endian fields of any width, counted in bits from
// the first byte's highest. Layout only; docs/wire-prm.md is the same in words.
//
// A command begins with opcode, uid and op_mod, its answer with status and syndrome. What is behind is the command's
// own, and may hold a context (queue pair, completion queue, work queue, key) at a place of its own: at(place, field).
#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/wire/target.hpp"

namespace strait::wire::prm {

struct Field {
  std::uint32_t bit;
  std::uint32_t width;  // up to 64
};

STRAIT_HD constexpr Field at(std::uint32_t place_bit, Field field) {
  return {place_bit + field.bit, field.width};
}
// Bytes a mailbox must have for this field to be in it.
STRAIT_HD constexpr std::size_t end_of(Field field) {
  return (field.bit + field.width + 7) / 8;
}

STRAIT_HD constexpr std::uint64_t get(const std::uint8_t* mailbox, Field field) {
  std::uint64_t value = 0;
  std::uint32_t bit = field.bit;
  const std::uint32_t end = field.bit + field.width;
  while (bit < end) {
    const std::uint32_t in_byte = 8 - bit % 8;
    const std::uint32_t take = end - bit < in_byte ? end - bit : in_byte;
    const std::uint32_t piece = (mailbox[bit / 8] >> (in_byte - take)) & ((1u << take) - 1);
    value = value << take | piece;
    bit += take;
  }
  return value;
}

STRAIT_HD constexpr void put(std::uint8_t* mailbox, Field field, std::uint64_t value) {
  std::uint32_t bit = field.bit;
  std::uint32_t left = field.width;
  while (left != 0) {
    const std::uint32_t in_byte = 8 - bit % 8;
    const std::uint32_t take = left < in_byte ? left : in_byte;
    const std::uint32_t mask = ((1u << take) - 1) << (in_byte - take);
    const auto piece = static_cast<std::uint32_t>(value >> (left - take)) << (in_byte - take) & mask;
    mailbox[bit / 8] = static_cast<std::uint8_t>((mailbox[bit / 8] & ~mask) | piece);
    bit += take;
    left -= take;
  }
}

enum class Command : std::uint16_t {
  query_hca_cap = 0x100,
  create_mkey = 0x200,
  query_mkey = 0x201,
  destroy_mkey = 0x202,
  create_cq = 0x400,
  destroy_cq = 0x401,
  query_cq = 0x402,
  create_qp = 0x500,
  destroy_qp = 0x501,
  rst2init_qp = 0x502,
  init2rtr_qp = 0x503,
  rtr2rts_qp = 0x504,
  rts2rts_qp = 0x505,
  sqerr2rts_qp = 0x506,
  to_err_qp = 0x507,
  to_rst_qp = 0x50a,
  query_qp = 0x50b,
  init2init_qp = 0x50e,
  alloc_pd = 0x800,
  dealloc_pd = 0x801,
  query_lag = 0x842,
  create_rmp = 0x90c,
  destroy_rmp = 0x90e,
  query_rmp = 0x90f,
};

enum class Status : std::uint8_t {
  ok = 0x0,
  internal_error = 0x1,
  bad_opcode = 0x2,
  bad_parameter = 0x3,
  bad_system_state = 0x4,
  bad_resource = 0x5,  // the number names nothing of this program's
  busy = 0x6,
  over_limit = 0x8,
  bad_resource_state = 0x9,
  bad_index = 0xa,
  no_resources = 0xf,
  bad_qp_state = 0x10,
  bad_input_length = 0x50,
  bad_output_length = 0x51,
};

// ---- Every command and every answer ---------------------------------------------------------------------------------

inline constexpr std::size_t kHeaderBytes = 16;  // the least of a command, and of an answer
inline constexpr Field kOpcode{0x00, 16};
inline constexpr Field kUid{0x10, 16};  // who asks; the kernel writes it, whatever the program wrote
inline constexpr Field kOpMod{0x30, 16};
inline constexpr Field kNumber{0x48, 24};  // of commands about an object, and of the answer that made it
inline constexpr Field kStatus{0x00, 8};
inline constexpr Field kSyndrome{0x20, 32};

// ---- Capabilities ---------------------------------------------------------------------------------------------------

// op_mod of query_hca_cap: the group << 1, and 1 for what is in force, 0 for the most there could be.
enum class CapGroup : std::uint16_t {
  general = 0,
  odp = 2,
  atomic = 3,
  roce = 4,
  flow_table = 7,
  qos = 0xc,
  device_memory = 0xf
};
inline constexpr std::uint32_t kCapGroups = 0x40;   // no device has as many
inline constexpr std::uint32_t kCapability = 0x80;  // where the group begins in the answer
inline constexpr std::size_t kCapabilityBytes = 0x1000;

namespace cap {
inline constexpr Field kLogMaxSrqSize{0x80, 8};
inline constexpr Field kLogMaxQpSize{0x88, 8};
inline constexpr Field kLogMaxQp{0x9b, 5};
inline constexpr Field kLogMaxSrq{0xab, 5};
inline constexpr Field kLogMaxCqSize{0xc8, 8};
inline constexpr Field kLogMaxCq{0xdb, 5};
inline constexpr Field kLogMaxMkey{0xea, 6};
inline constexpr Field kFixedBufferSize{0x108, 1};  // keys made of equal parts of others
inline constexpr Field kLogMaxReadsOut{0x14a, 6};   // log_max_ra_req_qp
inline constexpr Field kLogMaxReadsIn{0x15a, 6};    // log_max_ra_res_qp
inline constexpr Field kPortType{0x1b6, 2};
inline constexpr Field kNumPorts{0x1b8, 8};
inline constexpr Field kLogMaxMessage{0x1c3, 5};
inline constexpr Field kCqeVersion{0x1fc, 4};
inline constexpr Field kCompactAddressVector{0x200, 1};
inline constexpr Field kUmrModifyAtomicDisabled{0x208, 1};
inline constexpr Field kRoce{0x21d, 1};
inline constexpr Field kAtomic{0x21e, 1};
inline constexpr Field kUar4k{0x240, 1};
inline constexpr Field kLogPageSize{0x258, 8};
inline constexpr Field kBlueFlame{0x260, 1};
inline constexpr Field kLogBlueFlameBytes{0x26b, 5};
inline constexpr Field kMaxSendWqeBytes{0x290, 16};
inline constexpr Field kMaxReceiveWqeBytes{0x2b0, 16};
inline constexpr Field kLogMaxPd{0x32b, 5};
inline constexpr Field kLogMaxRmp{0x383, 5};
inline constexpr std::uint32_t kPortTypeEthernet = 1;
}  // namespace cap

namespace atomic_cap {
inline constexpr Field kEndianMode{0x40, 2};  // 8-byte operands: 0 big-endian, 1 as the host has them
inline constexpr Field kOperations{0x90, 16};
inline constexpr Field kSizes{0xb0, 16};  // bit n: operands of 2^n bytes
inline constexpr std::uint32_t kCompareSwap = 1;
inline constexpr std::uint32_t kFetchAdd = 2;
inline constexpr std::uint32_t kMaskedCompareSwap = 4;
inline constexpr std::uint32_t kMaskedFetchAdd = 8;
}  // namespace atomic_cap

namespace lag {
inline constexpr Field kState{0x5d, 3};  // in the answer; 0: there is one port
}

// ---- Completion queue -----------------------------------------------------------------------------------------------

namespace create_cq {
inline constexpr std::size_t kBytes = 272;
inline constexpr std::uint32_t kContext = 0x80;
inline constexpr Field kUmemOffset{0x280, 64};
inline constexpr Field kUmemId{0x2c0, 32};
}  // namespace create_cq

namespace cqc {
inline constexpr Field kStatus{0x00, 4};
inline constexpr Field kEntrySize{0x08, 3};  // 0: 64 bytes, 1: 128
inline constexpr Field kCollapsed{0x0b, 1};
inline constexpr Field kIgnoreOverrun{0x0e, 1};
inline constexpr Field kCompression{0x11, 1};
inline constexpr Field kState{0x14, 4};
inline constexpr Field kRecordUmemId{0x20, 32};
inline constexpr Field kPageOffset{0x54, 6};
inline constexpr Field kLogSize{0x63, 5};
inline constexpr Field kUarPage{0x68, 24};
inline constexpr Field kEventQueue{0xb8, 8};
inline constexpr Field kRecordAddress{0x1c0, 64};  // offset in its umem
inline constexpr std::size_t kBytes = 64;
}  // namespace cqc

// ---- Queue pair -----------------------------------------------------------------------------------------------------

namespace create_qp {
inline constexpr std::size_t kBytes = 272;
inline constexpr std::uint32_t kContext = 0xc0;
inline constexpr Field kUmemOffset{0x800, 64};
inline constexpr Field kUmemId{0x840, 32};
}  // namespace create_qp

namespace modify_qp {
inline constexpr std::size_t kBytes = 272;
inline constexpr Field kOptional{0x80, 32};
inline constexpr std::uint32_t kContext = 0xc0;
}  // namespace modify_qp

namespace query_qp {
inline constexpr std::size_t kAnswerBytes = 272;
inline constexpr std::uint32_t kContext = 0xc0;  // in the answer
}  // namespace query_qp

// Bits of opt_param_mask: attributes that a change of state allows and does not need.
inline constexpr std::uint32_t kOptionalRemoteRead = 1u << 1;
inline constexpr std::uint32_t kOptionalRemoteAtomic = 1u << 2;
inline constexpr std::uint32_t kOptionalRemoteWrite = 1u << 3;
inline constexpr std::uint32_t kOptionalPkeyIndex = 1u << 4;
inline constexpr std::uint32_t kOptionalQkey = 1u << 5;
inline constexpr std::uint32_t kOptionalRnrTimer = 1u << 6;
inline constexpr std::uint32_t kOptionalPath = 1u << 7;
inline constexpr std::uint32_t kOptionalReadsOut = 1u << 8;
inline constexpr std::uint32_t kOptionalReadsIn = 1u << 9;
inline constexpr std::uint32_t kOptionalRetries = 1u << 12;
inline constexpr std::uint32_t kOptionalRnrRetries = 1u << 13;
inline constexpr std::uint32_t kOptionalTimeout = 1u << 14;
inline constexpr std::uint32_t kOptionalPort = 1u << 16;

enum class QpService : std::uint8_t { rc = 0, uc = 1, ud = 2, xrc = 3, dci = 5 };
enum class RqType : std::uint8_t { own = 0, shared = 1, cross_channel = 2, none = 3 };

// An address path.
namespace ads {
inline constexpr Field kPkeyIndex{0x10, 16};
inline constexpr Field kAckTimeout{0x40, 5};
inline constexpr Field kSourceIndex{0x48, 8};
inline constexpr Field kStaticRate{0x54, 4};
inline constexpr Field kHopLimit{0x58, 8};
inline constexpr Field kTrafficClass{0x64, 8};
inline constexpr Field kFlowLabel{0x6c, 20};
inline constexpr Field kRemoteGidHigh{0x80, 64};
inline constexpr Field kRemoteGidLow{0xc0, 64};
inline constexpr Field kEcn{0x108, 2};
inline constexpr Field kDscp{0x10a, 6};
inline constexpr Field kUdpSourcePort{0x110, 16};
inline constexpr Field kEthernetPriority{0x121, 3};
inline constexpr Field kServiceLevel{0x124, 4};
inline constexpr Field kPort{0x128, 8};
inline constexpr Field kRemoteMac{0x130, 48};
}  // namespace ads

namespace qpc {
inline constexpr Field kState{0x00, 4};
inline constexpr Field kService{0x08, 8};
inline constexpr Field kMigration{0x13, 2};
inline constexpr Field kSignature{0x20, 1};
inline constexpr Field kPd{0x28, 24};
inline constexpr Field kMtu{0x40, 3};
inline constexpr Field kLogMaxMessage{0x43, 5};
inline constexpr Field kLogRqSize{0x49, 4};
inline constexpr Field kLogRqStride{0x4d, 3};  // 0: 16 bytes
inline constexpr Field kNoSq{0x50, 1};
inline constexpr Field kLogSqSize{0x51, 4};
inline constexpr Field kUarPage{0x68, 24};
inline constexpr Field kUserIndex{0x88, 24};
inline constexpr Field kRemoteQpn{0xa8, 24};
inline constexpr std::uint32_t kPath = 0xc0;  // ads
inline constexpr Field kLogReadsOut{0x388, 3};
inline constexpr Field kRetries{0x38d, 3};
inline constexpr Field kRnrRetries{0x390, 3};
inline constexpr Field kNextSendPsn{0x3c8, 24};
inline constexpr Field kSendCqn{0x3e8, 24};
inline constexpr Field kLogReadsIn{0x488, 3};
inline constexpr Field kAtomicMode{0x48c, 4};
inline constexpr Field kRemoteRead{0x490, 1};
inline constexpr Field kRemoteWrite{0x491, 1};
inline constexpr Field kRemoteAtomic{0x492, 1};
inline constexpr Field kPageOffset{0x494, 6};
inline constexpr Field kMinRnrTimer{0x4a3, 5};
inline constexpr Field kNextReceivePsn{0x4a8, 24};
inline constexpr Field kReceiveCqn{0x4e8, 24};
inline constexpr Field kRecordAddress{0x500, 64};  // offset in its umem
inline constexpr Field kQkey{0x540, 32};
inline constexpr Field kRqType{0x565, 3};
inline constexpr Field kSharedNumber{0x568, 24};
inline constexpr Field kHwSqCounter{0x5a0, 16};
inline constexpr Field kSwSqCounter{0x5b0, 16};
inline constexpr Field kRecordUmemId{0x720, 32};
inline constexpr std::uint32_t kMigrated = 3;
}  // namespace qpc

// ---- Receives that many queue pairs share (RMP) ---------------------------------------------------------------------

namespace create_rmp {
inline constexpr std::uint32_t kContext = 0x100;
inline constexpr std::uint32_t kWq = kContext + 0x180;
inline constexpr Field kState{kContext + 0x08, 4};
inline constexpr Field kBasicWqe{kContext + 0x20, 1};  // entries without a link
inline constexpr std::uint32_t kStateReady = 1;
inline constexpr std::size_t kBytes = (kWq + 0x180) / 8;  // as far as anything is said there
}  // namespace create_rmp

enum class WqType : std::uint8_t { linked_list = 0, cyclic = 1 };

namespace wq {
inline constexpr Field kType{0x00, 4};
inline constexpr Field kSignature{0x04, 1};
inline constexpr Field kLowWater{0x30, 16};
inline constexpr Field kPd{0x48, 24};
inline constexpr Field kRecordAddress{0x80, 64};
inline constexpr Field kLogStride{0x10c, 4};
inline constexpr Field kLogSize{0x11b, 5};
inline constexpr Field kRecordUmemId{0x140, 32};
inline constexpr Field kUmemId{0x160, 32};
}  // namespace wq

// ---- Memory key -----------------------------------------------------------------------------------------------------

namespace create_mkey {
inline constexpr std::uint32_t kContext = 0x80;
inline constexpr Field kEntries{0x300, 32};  // of the list behind the mailbox
inline constexpr Field kUmemId{0x320, 32};
inline constexpr Field kUmemOffset{0x340, 64};
inline constexpr std::size_t kBytes = 272;
}  // namespace create_mkey

// A part of a key that is made of others.
namespace klm {
inline constexpr Field kByteCount{0x00, 32};
inline constexpr Field kKey{0x20, 32};
inline constexpr Field kAddress{0x40, 64};
inline constexpr std::size_t kBytes = 16;
}  // namespace klm

enum class AccessMode : std::uint8_t { physical = 0, pages = 1, list = 2, fixed_list = 3 };

namespace mkc {
inline constexpr Field kFree{0x01, 1};
inline constexpr Field kAccessModeHigh{0x03, 3};
inline constexpr Field kUmr{0x10, 1};
inline constexpr Field kAtomic{0x11, 1};
inline constexpr Field kRemoteWrite{0x12, 1};
inline constexpr Field kRemoteRead{0x13, 1};
inline constexpr Field kLocalWrite{0x14, 1};
inline constexpr Field kLocalRead{0x15, 1};
inline constexpr Field kAccessMode{0x16, 2};
inline constexpr Field kQpn{0x20, 24};  // all ones: any
inline constexpr Field kVariant{0x38, 8};
inline constexpr Field kWholeMemory{0x60, 1};  // length64
inline constexpr Field kSignature{0x61, 1};    // bsf_en
inline constexpr Field kRemoteInvalidate{0x67, 1};
inline constexpr Field kPd{0x68, 24};
inline constexpr Field kStart{0x80, 64};
inline constexpr Field kLength{0xc0, 64};
inline constexpr Field kTranslations{0x1a0, 32};  // room for this many parts
inline constexpr Field kLogPageSize{0x1db, 5};
inline constexpr Field kCrypto{0x1e3, 2};
}  // namespace mkc

// ---- Events ---------------------------------------------------------------------------------------------------------

enum class EventType : std::uint16_t {
  completion = 0x00,
  communication_established = 0x02,
  sq_drained = 0x03,
  qp_fatal = 0x05,
  qp_request_error = 0x10,
  qp_access_error = 0x11,
  srq_error = 0x12,
  last_wqe_reached = 0x13,
  srq_limit_reached = 0x14,
  cq_error = 0x04,
};

}  // namespace strait::wire::prm
