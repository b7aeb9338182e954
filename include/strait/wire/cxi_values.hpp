// SPDX-License-Identifier: Apache-2.0
// Numbers that CXI commands, events and kernel calls have in common: states, operations, event types, return codes and
// what one device has of everything. docs/wire-cxi.md explains them.
#pragma once

#include <cstdint>

#include "strait/wire/target.hpp"

namespace strait::wire::cxi {

// ---- What one device has ------------------------------------------------------------------------------------------

// Number 0 of counters, event queues and portal entries means "none" and is never handed out.
inline constexpr std::uint32_t kNumCts = 2048;
inline constexpr std::uint32_t kNumEqs = 2048;
inline constexpr std::uint32_t kNumPtes = 2048;
inline constexpr std::uint32_t kUsableCts = kNumCts - 1;
inline constexpr std::uint32_t kUsableEqs = kNumEqs - 1;
inline constexpr std::uint32_t kUsablePtes = kNumPtes - 1;
inline constexpr std::uint32_t kCtNone = 0;
inline constexpr std::uint32_t kEqNone = 0;
inline constexpr std::uint32_t kNumTransmitCqs = 1024;
inline constexpr std::uint32_t kNumTargetCqs = 512;
inline constexpr std::uint32_t kFirstTargetCq = kNumTransmitCqs;  // handles: transmit queues, then target queues
inline constexpr std::uint32_t kNumAcs = 1024;
inline constexpr std::uint32_t kUsableAcs = 1022;
inline constexpr std::uint32_t kLacsPerRgid = 8;
inline constexpr std::uint32_t kNumRgids = 256;
inline constexpr std::uint32_t kReservedRgid = 0;
inline constexpr std::uint32_t kLcidsPerRgid = 16;
inline constexpr std::uint32_t kTriggeredLcid = 0;  // the only one a triggered queue may have
inline constexpr std::uint32_t kNumTles = 2048;
inline constexpr std::uint32_t kMinTlePool = 8;
inline constexpr std::uint32_t kProcessingElements = 4;
inline constexpr std::uint32_t kLesPerProcessingElement = 16384;
inline constexpr std::uint32_t kNumLes = kProcessingElements * kLesPerProcessingElement;
inline constexpr std::uint32_t kNumPteMappings = 2560;
inline constexpr std::uint32_t kNumVfs = 64;

// ---- Commands -----------------------------------------------------------------------------------------------------

enum class CmdType : std::uint8_t { idc = 0, dma = 1, ct = 2, cq = 3 };  // cq: target commands too
enum class CmdSize : std::uint8_t { b32 = 0, b64 = 1, b128 = 2, b256 = 3 };

STRAIT_HD constexpr std::uint32_t bytes_of(CmdSize s) {
  return 32u << static_cast<unsigned>(s);
}

enum class DmaOp : std::uint8_t {  // of DMA and immediate commands
  noop = 0,
  put = 1,
  get = 2,
  rendezvous_put = 3,
  atomic = 4,
  fetching_atomic = 5,
  ethernet_tx = 6,
  small_message = 7,
  nomatch_put = 8,
  nomatch_get = 9,
  cstate = 10,
  close = 11,
  clear = 12,
  reduction = 13,
};

enum class CtOp : std::uint8_t {
  noop = 0,
  set = 1,
  get = 2,
  inc = 3,
  cancel = 4,
  trig_dma = 5,
  trig_set = 6,
  trig_inc = 7,
  trig_event = 8,
};

enum class CqOp : std::uint8_t { noop = 0, fence = 1, lcid = 2 };

enum class TargetOp : std::uint8_t { append = 8, search = 9, search_and_delete = 10, unlink = 11, set_state = 12 };

enum class PtlList : std::uint8_t { priority = 0, overflow = 1, request = 2, unexpected = 3 };

enum class PteState : std::uint8_t { reset = 0, disabled = 1, enabled = 2, software_managed = 3, ethernet = 4 };

enum class AtomicOp : std::uint8_t {
  min = 0,
  max = 1,
  sum = 2,
  lor = 4,
  land = 5,
  bor = 6,
  band = 7,
  lxor = 8,
  bxor = 9,
  swap = 10,
  cswap = 11,
  axor = 12,
};

enum class CswapOp : std::uint8_t { eq = 0, ne = 1, le = 2, lt = 3, ge = 4, gt = 5 };

enum class AtomicType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int16 = 2,
  uint16 = 3,
  int32 = 4,
  uint32 = 5,
  int64 = 6,
  uint64 = 7,
  float32 = 8,
  complex_float32 = 9,
  float64 = 10,
  complex_float64 = 11,
  uint128 = 12,
};

// 0 for a number that is no type.
STRAIT_HD constexpr std::uint32_t bytes_of(AtomicType t) {
  switch (t) {
    case AtomicType::int8:
    case AtomicType::uint8: return 1;
    case AtomicType::int16:
    case AtomicType::uint16: return 2;
    case AtomicType::int32:
    case AtomicType::uint32:
    case AtomicType::float32: return 4;
    case AtomicType::int64:
    case AtomicType::uint64:
    case AtomicType::complex_float32:
    case AtomicType::float64: return 8;
    case AtomicType::complex_float64:
    case AtomicType::uint128: return 16;
  }
  return 0;
}

// ---- Events -------------------------------------------------------------------------------------------------------

enum class EventSize : std::uint8_t { none = 0, b16 = 1, b32 = 2, b64 = 3 };

STRAIT_HD constexpr std::uint32_t bytes_of(EventSize s) {
  return s == EventSize::none ? 0 : 8u << static_cast<unsigned>(s);
}

enum class EventType : std::uint8_t {
  put = 0,
  get = 1,
  atomic = 2,
  fetch_atomic = 3,
  put_overflow = 4,
  get_overflow = 5,
  atomic_overflow = 6,
  fetch_atomic_overflow = 7,
  send = 8,
  ack = 9,
  reply = 10,
  link = 11,
  search = 12,
  state_change = 13,
  unlink = 14,
  rendezvous = 15,
  ethernet = 16,
  command_failure = 17,
  triggered_op = 18,
  ethernet_fgfc = 19,
  pct = 20,
  match = 21,
  error = 28,
  timestamp = 29,
  eq_switch = 30,
  null_event = 31,
};

// Why a portal entry changed state: flow control (it is disabled), software management, or a memory error.
enum class StateChangeReason : std::uint8_t {
  flow_eq_full = 0,
  flow_no_match = 1,
  flow_unexpected_fail = 2,
  flow_request_full = 3,
  managed_unexpected_fail = 4,
  managed_append_fail = 5,
  uncorrectable = 6,
};

enum class PctEventType : std::uint8_t {
  request_nack = 0,
  request_timeout = 1,
  sct_timeout = 2,
  tct_timeout = 3,
  accel_close_complete = 4,
  retry_complete = 5,
};

enum class ReturnCode : std::uint8_t {
  no_event = 0,
  ok = 1,
  undeliverable = 2,
  pt_disabled = 3,
  dropped = 4,
  perm_violation = 5,
  op_violation = 6,
  no_match = 8,
  uncor = 9,
  uncor_transient = 10,
  no_space = 16,
  entry_not_found = 18,
  no_target_conn = 19,
  no_target_mst = 20,
  no_target_trs = 21,
  sequence_error = 22,
  no_matching_conn = 23,
  invalid_dfa_format = 24,
  vni_not_found = 25,
  ptlte_not_found = 26,
  ptlte_sw_managed = 27,
  src_error = 28,
  mst_cancelled = 29,
  hrp_config_error = 30,
  hrp_rsp_error = 31,
  hrp_rsp_discard = 32,
  invalid_ac = 33,
  page_perm_error = 34,
  ats_error = 35,
  no_translation = 36,
  page_req_error = 37,
  pcie_error_poisoned = 38,
  pcie_unsuccess_cmpl = 39,
  amo_inval_op_error = 40,
  amo_align_error = 41,
  amo_fp_invalid = 42,
  amo_fp_underflow = 43,
  amo_fp_overflow = 44,
  amo_fp_inexact = 45,
  illegal_op = 46,
  invalid_endpoint = 47,
  restricted_unicast = 48,
  cmd_align_error = 49,
  cmd_invalid_arg = 50,
  invalid_event = 51,
  addr_out_of_range = 52,
  conn_closed = 53,
  canceled = 54,
  no_matching_trs = 55,
  no_matching_mst = 56,
  delayed = 57,
  amo_length_error = 58,
  pktbuf_error = 59,
  resource_busy = 60,
  flush_translation = 61,
  trs_pend_rsp = 62,
};

}  // namespace strait::wire::cxi
