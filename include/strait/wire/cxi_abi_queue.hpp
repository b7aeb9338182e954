// SPDX-License-Identifier: Apache-2.0
// Kernel calls for command queues, event queues, counters and portal table entries of a CXI client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/cxi_abi_client.hpp"

namespace strait::wire::cxi {

// ---- Command queues -----------------------------------------------------------------------------------------------

struct CqAllocOpts {
  std::uint32_t count;  // blocks of 64 bytes
  CqPolicy policy;
  std::uint32_t stat_cnt_pool;
  std::uint32_t flags;
  std::uint32_t lcid;
  std::uint32_t lpe_cdt_thresh_id;
};
static_assert(sizeof(CqAllocOpts) == 24 && std::is_trivial_v<CqAllocOpts>);
static_assert(offsetof(CqAllocOpts, count) == 0 && offsetof(CqAllocOpts, policy) == 4 &&
              offsetof(CqAllocOpts, stat_cnt_pool) == 8 && offsetof(CqAllocOpts, flags) == 12 &&
              offsetof(CqAllocOpts, lcid) == 16 && offsetof(CqAllocOpts, lpe_cdt_thresh_id) == 20);

struct CqAllocOptsBuf {
  CqAllocOpts opts;
  std::uint64_t buf;  // 0: the kernel brings the ring
  std::uint8_t is_host_mem;
  std::uint8_t reserved33[3];
  std::int32_t dmabuf_fd;
  std::uint64_t dmabuf_offset;
};
static_assert(sizeof(CqAllocOptsBuf) == 48 && std::is_trivial_v<CqAllocOptsBuf>);
static_assert(offsetof(CqAllocOptsBuf, opts) == 0 && offsetof(CqAllocOptsBuf, buf) == 24 &&
              offsetof(CqAllocOptsBuf, is_host_mem) == 32 && offsetof(CqAllocOptsBuf, dmabuf_fd) == 36 &&
              offsetof(CqAllocOptsBuf, dmabuf_offset) == 40);
static_assert(offsetof(CqAllocOptsBuf, reserved33) == 33);

struct CqAllocCmd {
  static constexpr Op kOp = Op::cq_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t eq;
  CqAllocOpts opts;
};
static_assert(sizeof(CqAllocCmd) == 48 && std::is_trivial_v<CqAllocCmd>);
static_assert(offsetof(CqAllocCmd, op) == 0 && offsetof(CqAllocCmd, resp) == 8 && offsetof(CqAllocCmd, lni) == 16 &&
              offsetof(CqAllocCmd, eq) == 20 && offsetof(CqAllocCmd, opts) == 24);
static_assert(offsetof(CqAllocCmd, reserved4) == 4);

struct CqAllocBufCmd {
  static constexpr Op kOp = Op::cq_alloc_buf;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t eq;
  CqAllocOptsBuf opts;
};
static_assert(sizeof(CqAllocBufCmd) == 72 && std::is_trivial_v<CqAllocBufCmd>);
static_assert(offsetof(CqAllocBufCmd, op) == 0 && offsetof(CqAllocBufCmd, resp) == 8 &&
              offsetof(CqAllocBufCmd, lni) == 16 && offsetof(CqAllocBufCmd, eq) == 20 &&
              offsetof(CqAllocBufCmd, opts) == 24);
static_assert(offsetof(CqAllocBufCmd, reserved4) == 4);

// Of both.
struct CqAllocResp {
  std::uint32_t cq;
  std::uint32_t count;
  MmInfo cmds;  // zero when the client brought the ring
  MmInfo wp_addr;
};
static_assert(sizeof(CqAllocResp) == 40 && std::is_trivial_v<CqAllocResp>);
static_assert(offsetof(CqAllocResp, cq) == 0 && offsetof(CqAllocResp, count) == 4 && offsetof(CqAllocResp, cmds) == 8 &&
              offsetof(CqAllocResp, wp_addr) == 24);

struct CqFreeCmd {
  static constexpr Op kOp = Op::cq_free;
  Op op;
  std::uint32_t cq;
};
static_assert(sizeof(CqFreeCmd) == 8 && std::is_trivial_v<CqFreeCmd>);
static_assert(offsetof(CqFreeCmd, op) == 0 && offsetof(CqFreeCmd, cq) == 4);

struct CqAckCounterCmd {
  static constexpr Op kOp = Op::cq_ack_counter;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t cq;
  std::uint32_t reserved20;
};
static_assert(sizeof(CqAckCounterCmd) == 24 && std::is_trivial_v<CqAckCounterCmd>);
static_assert(offsetof(CqAckCounterCmd, op) == 0 && offsetof(CqAckCounterCmd, resp) == 8 &&
              offsetof(CqAckCounterCmd, cq) == 16);
static_assert(offsetof(CqAckCounterCmd, reserved4) == 4 && offsetof(CqAckCounterCmd, reserved20) == 20);

struct CqAckCounterResp {
  std::uint32_t ack_counter;
};
static_assert(sizeof(CqAckCounterResp) == 4 && std::is_trivial_v<CqAckCounterResp>);
static_assert(offsetof(CqAckCounterResp, ack_counter) == 0);

// ---- Event queues -------------------------------------------------------------------------------------------------

struct EqAttr {
  std::uint64_t queue;
  std::uint64_t queue_len;
  std::uint64_t flags;
  std::uint32_t status_thresh_base;
  std::uint32_t status_thresh_delta;
  std::uint32_t status_thresh_count;
  std::uint32_t ec_delay;
  std::uint32_t cpu_affinity;
  std::uint32_t reserved_slots;
};
static_assert(sizeof(EqAttr) == 48 && std::is_trivial_v<EqAttr>);
static_assert(offsetof(EqAttr, queue) == 0 && offsetof(EqAttr, queue_len) == 8 && offsetof(EqAttr, flags) == 16 &&
              offsetof(EqAttr, status_thresh_base) == 24 && offsetof(EqAttr, status_thresh_delta) == 28 &&
              offsetof(EqAttr, status_thresh_count) == 32 && offsetof(EqAttr, ec_delay) == 36 &&
              offsetof(EqAttr, cpu_affinity) == 40 && offsetof(EqAttr, reserved_slots) == 44);

struct EqAllocCmd {
  static constexpr Op kOp = Op::eq_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t queue_md;
  std::uint32_t event_wait;
  std::uint32_t status_wait;
  EqAttr attr;
};
static_assert(sizeof(EqAllocCmd) == 80 && std::is_trivial_v<EqAllocCmd>);
static_assert(offsetof(EqAllocCmd, op) == 0 && offsetof(EqAllocCmd, resp) == 8 && offsetof(EqAllocCmd, lni) == 16 &&
              offsetof(EqAllocCmd, queue_md) == 20 && offsetof(EqAllocCmd, event_wait) == 24 &&
              offsetof(EqAllocCmd, status_wait) == 28 && offsetof(EqAllocCmd, attr) == 32);
static_assert(offsetof(EqAllocCmd, reserved4) == 4);

struct EqAllocResp {
  std::uint32_t eq;
  std::uint32_t reserved4;
  MmInfo csr;
};
static_assert(sizeof(EqAllocResp) == 24 && std::is_trivial_v<EqAllocResp>);
static_assert(offsetof(EqAllocResp, eq) == 0 && offsetof(EqAllocResp, csr) == 8);
static_assert(offsetof(EqAllocResp, reserved4) == 4);

struct EqFreeCmd {
  static constexpr Op kOp = Op::eq_free;
  Op op;
  std::uint32_t eq;
};
static_assert(sizeof(EqFreeCmd) == 8 && std::is_trivial_v<EqFreeCmd>);
static_assert(offsetof(EqFreeCmd, op) == 0 && offsetof(EqFreeCmd, eq) == 4);

struct EqResizeCmd {
  static constexpr Op kOp = Op::eq_resize;
  Op op;
  std::uint32_t eq_hndl;
  std::uint64_t queue;
  std::uint64_t queue_len;
  std::uint32_t queue_md;
  std::uint32_t reserved28;
};
static_assert(sizeof(EqResizeCmd) == 32 && std::is_trivial_v<EqResizeCmd>);
static_assert(offsetof(EqResizeCmd, op) == 0 && offsetof(EqResizeCmd, eq_hndl) == 4 &&
              offsetof(EqResizeCmd, queue) == 8 && offsetof(EqResizeCmd, queue_len) == 16 &&
              offsetof(EqResizeCmd, queue_md) == 24);
static_assert(offsetof(EqResizeCmd, reserved28) == 28);

struct EqResizeCompleteCmd {
  static constexpr Op kOp = Op::eq_resize_complete;
  Op op;
  std::uint32_t eq_hndl;
};
static_assert(sizeof(EqResizeCompleteCmd) == 8 && std::is_trivial_v<EqResizeCompleteCmd>);
static_assert(offsetof(EqResizeCompleteCmd, op) == 0 && offsetof(EqResizeCompleteCmd, eq_hndl) == 4);

struct EqAdjustReservedFcCmd {
  static constexpr Op kOp = Op::eq_adjust_reserved_fc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t eq_hndl;
  std::int32_t value;
};
static_assert(sizeof(EqAdjustReservedFcCmd) == 24 && std::is_trivial_v<EqAdjustReservedFcCmd>);
static_assert(offsetof(EqAdjustReservedFcCmd, op) == 0 && offsetof(EqAdjustReservedFcCmd, resp) == 8 &&
              offsetof(EqAdjustReservedFcCmd, eq_hndl) == 16 && offsetof(EqAdjustReservedFcCmd, value) == 20);
static_assert(offsetof(EqAdjustReservedFcCmd, reserved4) == 4);

struct EqAdjustReservedFcResp {
  std::int32_t reserved_fc;
};
static_assert(sizeof(EqAdjustReservedFcResp) == 4 && std::is_trivial_v<EqAdjustReservedFcResp>);
static_assert(offsetof(EqAdjustReservedFcResp, reserved_fc) == 0);

// ---- Counters -----------------------------------------------------------------------------------------------------

struct CtAllocCmd {
  static constexpr Op kOp = Op::ct_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t reserved20;
  std::uint64_t wb;  // where the counter is written back; 0: nowhere
};
static_assert(sizeof(CtAllocCmd) == 32 && std::is_trivial_v<CtAllocCmd>);
static_assert(offsetof(CtAllocCmd, op) == 0 && offsetof(CtAllocCmd, resp) == 8 && offsetof(CtAllocCmd, lni) == 16 &&
              offsetof(CtAllocCmd, wb) == 24);
static_assert(offsetof(CtAllocCmd, reserved4) == 4 && offsetof(CtAllocCmd, reserved20) == 20);

struct CtAllocResp {
  std::uint32_t ctn;
  std::uint32_t reserved4;
  MmInfo doorbell;
};
static_assert(sizeof(CtAllocResp) == 24 && std::is_trivial_v<CtAllocResp>);
static_assert(offsetof(CtAllocResp, ctn) == 0 && offsetof(CtAllocResp, doorbell) == 8);
static_assert(offsetof(CtAllocResp, reserved4) == 4);

struct CtFreeCmd {
  static constexpr Op kOp = Op::ct_free;
  Op op;
  std::uint32_t ctn;
};
static_assert(sizeof(CtFreeCmd) == 8 && std::is_trivial_v<CtFreeCmd>);
static_assert(offsetof(CtFreeCmd, op) == 0 && offsetof(CtFreeCmd, ctn) == 4);

struct CtWbUpdateCmd {
  static constexpr Op kOp = Op::ct_wb_update;
  Op op;
  std::uint32_t ctn;
  std::uint64_t wb;
};
static_assert(sizeof(CtWbUpdateCmd) == 16 && std::is_trivial_v<CtWbUpdateCmd>);
static_assert(offsetof(CtWbUpdateCmd, op) == 0 && offsetof(CtWbUpdateCmd, ctn) == 4 &&
              offsetof(CtWbUpdateCmd, wb) == 8);

// ---- Portal table entries -----------------------------------------------------------------------------------------

struct PteAllocCmd {
  static constexpr Op kOp = Op::pte_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni_hndl;
  std::uint32_t evtq_hndl;
  std::uint64_t opts;  // kPte...
};
static_assert(sizeof(PteAllocCmd) == 32 && std::is_trivial_v<PteAllocCmd>);
static_assert(offsetof(PteAllocCmd, op) == 0 && offsetof(PteAllocCmd, resp) == 8 &&
              offsetof(PteAllocCmd, lni_hndl) == 16 && offsetof(PteAllocCmd, evtq_hndl) == 20 &&
              offsetof(PteAllocCmd, opts) == 24);
static_assert(offsetof(PteAllocCmd, reserved4) == 4);

struct PteAllocResp {
  std::uint32_t pte_number;
};
static_assert(sizeof(PteAllocResp) == 4 && std::is_trivial_v<PteAllocResp>);
static_assert(offsetof(PteAllocResp, pte_number) == 0);

struct PteFreeCmd {
  static constexpr Op kOp = Op::pte_free;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t pte_number;
  std::uint32_t reserved20;
};
static_assert(sizeof(PteFreeCmd) == 24 && std::is_trivial_v<PteFreeCmd>);
static_assert(offsetof(PteFreeCmd, op) == 0 && offsetof(PteFreeCmd, resp) == 8 &&
              offsetof(PteFreeCmd, pte_number) == 16);
static_assert(offsetof(PteFreeCmd, reserved4) == 4 && offsetof(PteFreeCmd, reserved20) == 20);

struct PteMapCmd {
  static constexpr Op kOp = Op::pte_map;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t pte_number;
  std::uint32_t domain_hndl;
  std::uint32_t pid_offset;
  std::uint8_t is_multicast;
  std::uint8_t reserved29[3];
};
static_assert(sizeof(PteMapCmd) == 32 && std::is_trivial_v<PteMapCmd>);
static_assert(offsetof(PteMapCmd, op) == 0 && offsetof(PteMapCmd, resp) == 8 && offsetof(PteMapCmd, pte_number) == 16 &&
              offsetof(PteMapCmd, domain_hndl) == 20 && offsetof(PteMapCmd, pid_offset) == 24 &&
              offsetof(PteMapCmd, is_multicast) == 28);
static_assert(offsetof(PteMapCmd, reserved4) == 4 && offsetof(PteMapCmd, reserved29) == 29);

struct PteMapResp {
  std::uint32_t pte_index;
};
static_assert(sizeof(PteMapResp) == 4 && std::is_trivial_v<PteMapResp>);
static_assert(offsetof(PteMapResp, pte_index) == 0);

struct PteUnmapCmd {
  static constexpr Op kOp = Op::pte_unmap;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t pte_index;
  std::uint32_t reserved20;
};
static_assert(sizeof(PteUnmapCmd) == 24 && std::is_trivial_v<PteUnmapCmd>);
static_assert(offsetof(PteUnmapCmd, op) == 0 && offsetof(PteUnmapCmd, resp) == 8 &&
              offsetof(PteUnmapCmd, pte_index) == 16);
static_assert(offsetof(PteUnmapCmd, reserved4) == 4 && offsetof(PteUnmapCmd, reserved20) == 20);

struct PteLeInvalidateCmd {
  static constexpr Op kOp = Op::pte_le_invalidate;
  Op op;
  std::uint32_t pte_index;
  std::uint32_t buffer_id;
  std::uint32_t list;  // a PtlList
};
static_assert(sizeof(PteLeInvalidateCmd) == 16 && std::is_trivial_v<PteLeInvalidateCmd>);
static_assert(offsetof(PteLeInvalidateCmd, op) == 0 && offsetof(PteLeInvalidateCmd, pte_index) == 4 &&
              offsetof(PteLeInvalidateCmd, buffer_id) == 8 && offsetof(PteLeInvalidateCmd, list) == 12);

struct PteStatusCmd {
  static constexpr Op kOp = Op::pte_status;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t pte_index;
  std::uint32_t reserved20;
};
static_assert(sizeof(PteStatusCmd) == 24 && std::is_trivial_v<PteStatusCmd>);
static_assert(offsetof(PteStatusCmd, op) == 0 && offsetof(PteStatusCmd, resp) == 8 &&
              offsetof(PteStatusCmd, pte_index) == 16);
static_assert(offsetof(PteStatusCmd, reserved4) == 4 && offsetof(PteStatusCmd, reserved20) == 20);

// The answer to PTE_STATUS, and a question: ule_offsets and ule_count say where offsets may go and how many.
struct PteStatus {
  std::uint32_t drop_count;
  std::uint8_t state;  // a PteState
  std::uint8_t reserved5;
  std::uint16_t les_reserved;
  std::uint16_t les_allocated;
  std::uint16_t les_max;
  std::uint32_t reserved12;
  std::uint64_t ule_offsets;
  std::uint16_t ule_count;
  std::uint8_t reserved26[6];
};
static_assert(sizeof(PteStatus) == 32 && std::is_trivial_v<PteStatus>);
static_assert(offsetof(PteStatus, drop_count) == 0 && offsetof(PteStatus, state) == 4 &&
              offsetof(PteStatus, les_reserved) == 6 && offsetof(PteStatus, les_allocated) == 8 &&
              offsetof(PteStatus, les_max) == 10 && offsetof(PteStatus, ule_offsets) == 16 &&
              offsetof(PteStatus, ule_count) == 24);
static_assert(offsetof(PteStatus, reserved5) == 5 && offsetof(PteStatus, reserved12) == 12);
static_assert(offsetof(PteStatus, reserved26) == 26);

struct PteTransitionSmCmd {
  static constexpr Op kOp = Op::pte_transition_sm;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t pte_index;
  std::uint32_t drop_count;
};
static_assert(sizeof(PteTransitionSmCmd) == 24 && std::is_trivial_v<PteTransitionSmCmd>);
static_assert(offsetof(PteTransitionSmCmd, op) == 0 && offsetof(PteTransitionSmCmd, resp) == 8 &&
              offsetof(PteTransitionSmCmd, pte_index) == 16 && offsetof(PteTransitionSmCmd, drop_count) == 20);
static_assert(offsetof(PteTransitionSmCmd, reserved4) == 4);

}  // namespace strait::wire::cxi
