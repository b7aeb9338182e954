// SPDX-License-Identifier: Apache-2.0
// Kernel calls for what a CXI client is and has: its LNI, domains, profiles, memory and waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/cxi_abi_values.hpp"

namespace strait::wire::cxi {

// ---- Beginnings ---------------------------------------------------------------------------------------------------

// What every command begins with that has an answer; one without goes on with its first number at byte 4.
struct CmdHead {
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
};
static_assert(sizeof(CmdHead) == 16 && std::is_trivial_v<CmdHead>);
static_assert(offsetof(CmdHead, op) == 0 && offsetof(CmdHead, resp) == 8);
static_assert(offsetof(CmdHead, reserved4) == 4);

struct MmInfo {
  std::uint64_t offset;  // a cookie for mmap, good for one mapping of exactly that size
  std::uint64_t size;
};
static_assert(sizeof(MmInfo) == 16 && std::is_trivial_v<MmInfo>);
static_assert(offsetof(MmInfo, offset) == 0 && offsetof(MmInfo, size) == 8);

// ---- Clients, domains, communication profiles ---------------------------------------------------------------------

struct LniAllocCmd {
  static constexpr Op kOp = Op::lni_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint32_t reserved20;
};
static_assert(sizeof(LniAllocCmd) == 24 && std::is_trivial_v<LniAllocCmd>);
static_assert(offsetof(LniAllocCmd, op) == 0 && offsetof(LniAllocCmd, resp) == 8 &&
              offsetof(LniAllocCmd, svc_id) == 16);
static_assert(offsetof(LniAllocCmd, reserved4) == 4 && offsetof(LniAllocCmd, reserved20) == 20);

struct LniAllocResp {
  std::uint32_t lni;
};
static_assert(sizeof(LniAllocResp) == 4 && std::is_trivial_v<LniAllocResp>);
static_assert(offsetof(LniAllocResp, lni) == 0);

struct LniFreeCmd {
  static constexpr Op kOp = Op::lni_free;
  Op op;
  std::uint32_t lni;
};
static_assert(sizeof(LniFreeCmd) == 8 && std::is_trivial_v<LniFreeCmd>);
static_assert(offsetof(LniFreeCmd, op) == 0 && offsetof(LniFreeCmd, lni) == 4);

struct DomainReserveCmd {
  static constexpr Op kOp = Op::domain_reserve;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t vni;
  std::uint32_t pid;
  std::uint32_t count;
};
static_assert(sizeof(DomainReserveCmd) == 32 && std::is_trivial_v<DomainReserveCmd>);
static_assert(offsetof(DomainReserveCmd, op) == 0 && offsetof(DomainReserveCmd, resp) == 8 &&
              offsetof(DomainReserveCmd, lni) == 16 && offsetof(DomainReserveCmd, vni) == 20 &&
              offsetof(DomainReserveCmd, pid) == 24 && offsetof(DomainReserveCmd, count) == 28);
static_assert(offsetof(DomainReserveCmd, reserved4) == 4);

struct DomainReserveResp {
  std::uint32_t pid;
};
static_assert(sizeof(DomainReserveResp) == 4 && std::is_trivial_v<DomainReserveResp>);
static_assert(offsetof(DomainReserveResp, pid) == 0);

struct DomainAllocCmd {
  static constexpr Op kOp = Op::domain_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t vni;
  std::uint32_t pid;
  std::uint32_t reserved28;
};
static_assert(sizeof(DomainAllocCmd) == 32 && std::is_trivial_v<DomainAllocCmd>);
static_assert(offsetof(DomainAllocCmd, op) == 0 && offsetof(DomainAllocCmd, resp) == 8 &&
              offsetof(DomainAllocCmd, lni) == 16 && offsetof(DomainAllocCmd, vni) == 20 &&
              offsetof(DomainAllocCmd, pid) == 24);
static_assert(offsetof(DomainAllocCmd, reserved4) == 4 && offsetof(DomainAllocCmd, reserved28) == 28);

struct DomainAllocResp {
  std::uint32_t domain;
  std::uint32_t vni;
  std::uint32_t pid;
};
static_assert(sizeof(DomainAllocResp) == 12 && std::is_trivial_v<DomainAllocResp>);
static_assert(offsetof(DomainAllocResp, domain) == 0 && offsetof(DomainAllocResp, vni) == 4 &&
              offsetof(DomainAllocResp, pid) == 8);

struct DomainFreeCmd {
  static constexpr Op kOp = Op::domain_free;
  Op op;
  std::uint32_t domain;
};
static_assert(sizeof(DomainFreeCmd) == 8 && std::is_trivial_v<DomainFreeCmd>);
static_assert(offsetof(DomainFreeCmd, op) == 0 && offsetof(DomainFreeCmd, domain) == 4);

struct CpAllocCmd {
  static constexpr Op kOp = Op::cp_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t vni;
  TrafficClass tc;
  TrafficClassType tc_type;
};
static_assert(sizeof(CpAllocCmd) == 32 && std::is_trivial_v<CpAllocCmd>);
static_assert(offsetof(CpAllocCmd, op) == 0 && offsetof(CpAllocCmd, resp) == 8 && offsetof(CpAllocCmd, lni) == 16 &&
              offsetof(CpAllocCmd, vni) == 20 && offsetof(CpAllocCmd, tc) == 24 && offsetof(CpAllocCmd, tc_type) == 28);
static_assert(offsetof(CpAllocCmd, reserved4) == 4);

struct TrigCpAllocCmd {
  static constexpr Op kOp = Op::trig_cp_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t vni;
  TrafficClass tc;
  TrafficClassType tc_type;
  CpType cp_type;
  std::uint32_t reserved36;
};
static_assert(sizeof(TrigCpAllocCmd) == 40 && std::is_trivial_v<TrigCpAllocCmd>);
static_assert(offsetof(TrigCpAllocCmd, op) == 0 && offsetof(TrigCpAllocCmd, resp) == 8 &&
              offsetof(TrigCpAllocCmd, lni) == 16 && offsetof(TrigCpAllocCmd, vni) == 20 &&
              offsetof(TrigCpAllocCmd, tc) == 24 && offsetof(TrigCpAllocCmd, tc_type) == 28 &&
              offsetof(TrigCpAllocCmd, cp_type) == 32);
static_assert(offsetof(TrigCpAllocCmd, reserved4) == 4 && offsetof(TrigCpAllocCmd, reserved36) == 36);

// Of both.
struct CpAllocResp {
  std::uint32_t cp_hndl;
  std::uint32_t lcid;
};
static_assert(sizeof(CpAllocResp) == 8 && std::is_trivial_v<CpAllocResp>);
static_assert(offsetof(CpAllocResp, cp_hndl) == 0 && offsetof(CpAllocResp, lcid) == 4);

struct CpFreeCmd {
  static constexpr Op kOp = Op::cp_free;
  Op op;
  std::uint32_t cp_hndl;
};
static_assert(sizeof(CpFreeCmd) == 8 && std::is_trivial_v<CpFreeCmd>);
static_assert(offsetof(CpFreeCmd, op) == 0 && offsetof(CpFreeCmd, cp_hndl) == 4);

struct CpModifyCmd {
  static constexpr Op kOp = Op::cp_modify;
  Op op;
  std::uint32_t cp_hndl;
  std::uint32_t vni;
};
static_assert(sizeof(CpModifyCmd) == 12 && std::is_trivial_v<CpModifyCmd>);
static_assert(offsetof(CpModifyCmd, op) == 0 && offsetof(CpModifyCmd, cp_hndl) == 4 && offsetof(CpModifyCmd, vni) == 8);

// ---- Memory -------------------------------------------------------------------------------------------------------

struct MdHints {
  std::int32_t page_shift;
  std::int32_t huge_shift;
  std::int32_t ptg_mode;
  std::uint8_t ptg_mode_valid;
  std::uint8_t reserved13[3];
  std::int32_t dmabuf_fd;
  std::uint32_t reserved20;
  std::uint64_t dmabuf_offset;
  std::uint8_t dmabuf_valid;
  std::uint8_t reserved33[7];
};
static_assert(sizeof(MdHints) == 40 && std::is_trivial_v<MdHints>);
static_assert(offsetof(MdHints, page_shift) == 0 && offsetof(MdHints, huge_shift) == 4 &&
              offsetof(MdHints, ptg_mode) == 8 && offsetof(MdHints, ptg_mode_valid) == 12 &&
              offsetof(MdHints, dmabuf_fd) == 16 && offsetof(MdHints, dmabuf_offset) == 24 &&
              offsetof(MdHints, dmabuf_valid) == 32);
static_assert(offsetof(MdHints, reserved13) == 13 && offsetof(MdHints, reserved20) == 20);
static_assert(offsetof(MdHints, reserved33) == 33);

struct Md {
  std::uint64_t iova;
  std::uint64_t va;
  std::uint64_t len;
  std::uint8_t lac;
  std::uint8_t reserved25[3];
  std::int32_t page_shift;
  std::int32_t huge_shift;
  std::uint32_t id;
};
static_assert(sizeof(Md) == 40 && std::is_trivial_v<Md>);
static_assert(offsetof(Md, iova) == 0 && offsetof(Md, va) == 8 && offsetof(Md, len) == 16 && offsetof(Md, lac) == 24 &&
              offsetof(Md, page_shift) == 28 && offsetof(Md, huge_shift) == 32 && offsetof(Md, id) == 36);
static_assert(offsetof(Md, reserved25) == 25);

struct AtuMapCmd {
  static constexpr Op kOp = Op::atu_map;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t reserved20;
  std::uint64_t va;
  std::uint64_t len;
  std::uint32_t flags;
  std::uint32_t reserved44;
  MdHints hints;
};
static_assert(sizeof(AtuMapCmd) == 88 && std::is_trivial_v<AtuMapCmd>);
static_assert(offsetof(AtuMapCmd, op) == 0 && offsetof(AtuMapCmd, resp) == 8 && offsetof(AtuMapCmd, lni) == 16 &&
              offsetof(AtuMapCmd, va) == 24 && offsetof(AtuMapCmd, len) == 32 && offsetof(AtuMapCmd, flags) == 40 &&
              offsetof(AtuMapCmd, hints) == 48);
static_assert(offsetof(AtuMapCmd, reserved4) == 4 && offsetof(AtuMapCmd, reserved20) == 20);
static_assert(offsetof(AtuMapCmd, reserved44) == 44);

struct AtuMapResp {
  std::uint32_t id;
  std::uint32_t reserved4;
  Md md;
};
static_assert(sizeof(AtuMapResp) == 48 && std::is_trivial_v<AtuMapResp>);
static_assert(offsetof(AtuMapResp, id) == 0 && offsetof(AtuMapResp, md) == 8);
static_assert(offsetof(AtuMapResp, reserved4) == 4);

struct AtuUnmapCmd {
  static constexpr Op kOp = Op::atu_unmap;
  Op op;
  std::uint32_t id;
};
static_assert(sizeof(AtuUnmapCmd) == 8 && std::is_trivial_v<AtuUnmapCmd>);
static_assert(offsetof(AtuUnmapCmd, op) == 0 && offsetof(AtuUnmapCmd, id) == 4);

struct AtuUpdateMdCmd {
  static constexpr Op kOp = Op::atu_update_md;
  Op op;
  std::uint32_t id;
  std::uint64_t va;
  std::uint64_t len;
  std::uint32_t flags;
  std::uint32_t reserved28;
};
static_assert(sizeof(AtuUpdateMdCmd) == 32 && std::is_trivial_v<AtuUpdateMdCmd>);
static_assert(offsetof(AtuUpdateMdCmd, op) == 0 && offsetof(AtuUpdateMdCmd, id) == 4 &&
              offsetof(AtuUpdateMdCmd, va) == 8 && offsetof(AtuUpdateMdCmd, len) == 16 &&
              offsetof(AtuUpdateMdCmd, flags) == 24);
static_assert(offsetof(AtuUpdateMdCmd, reserved28) == 28);

struct PhysLacAllocCmd {
  static constexpr Op kOp = Op::phys_lac_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t reserved20;
};
static_assert(sizeof(PhysLacAllocCmd) == 24 && std::is_trivial_v<PhysLacAllocCmd>);
static_assert(offsetof(PhysLacAllocCmd, op) == 0 && offsetof(PhysLacAllocCmd, resp) == 8 &&
              offsetof(PhysLacAllocCmd, lni) == 16);
static_assert(offsetof(PhysLacAllocCmd, reserved4) == 4 && offsetof(PhysLacAllocCmd, reserved20) == 20);

struct PhysLacAllocResp {
  std::uint32_t lac;
};
static_assert(sizeof(PhysLacAllocResp) == 4 && std::is_trivial_v<PhysLacAllocResp>);
static_assert(offsetof(PhysLacAllocResp, lac) == 0);

struct PhysLacFreeCmd {
  static constexpr Op kOp = Op::phys_lac_free;
  Op op;
  std::uint32_t lni;
  std::uint32_t lac;
};
static_assert(sizeof(PhysLacFreeCmd) == 12 && std::is_trivial_v<PhysLacFreeCmd>);
static_assert(offsetof(PhysLacFreeCmd, op) == 0 && offsetof(PhysLacFreeCmd, lni) == 4 &&
              offsetof(PhysLacFreeCmd, lac) == 8);

// ---- Waiting ------------------------------------------------------------------------------------------------------

struct WaitAllocCmd {
  static constexpr Op kOp = Op::wait_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t lni;
  std::uint32_t reserved20;
};
static_assert(sizeof(WaitAllocCmd) == 24 && std::is_trivial_v<WaitAllocCmd>);
static_assert(offsetof(WaitAllocCmd, op) == 0 && offsetof(WaitAllocCmd, resp) == 8 &&
              offsetof(WaitAllocCmd, lni) == 16);
static_assert(offsetof(WaitAllocCmd, reserved4) == 4 && offsetof(WaitAllocCmd, reserved20) == 20);

struct WaitAllocResp {
  std::uint32_t client_id;
  std::uint32_t wait;
};
static_assert(sizeof(WaitAllocResp) == 8 && std::is_trivial_v<WaitAllocResp>);
static_assert(offsetof(WaitAllocResp, client_id) == 0 && offsetof(WaitAllocResp, wait) == 4);

struct WaitFreeCmd {
  static constexpr Op kOp = Op::wait_free;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t wait;
  std::uint32_t reserved20;
};
static_assert(sizeof(WaitFreeCmd) == 24 && std::is_trivial_v<WaitFreeCmd>);
static_assert(offsetof(WaitFreeCmd, op) == 0 && offsetof(WaitFreeCmd, resp) == 8 && offsetof(WaitFreeCmd, wait) == 16);
static_assert(offsetof(WaitFreeCmd, reserved4) == 4 && offsetof(WaitFreeCmd, reserved20) == 20);

struct InboundWaitCmd {
  static constexpr Op kOp = Op::inbound_wait;
  Op op;
};
static_assert(sizeof(InboundWaitCmd) == 4 && std::is_trivial_v<InboundWaitCmd>);
static_assert(offsetof(InboundWaitCmd, op) == 0);

}  // namespace strait::wire::cxi
