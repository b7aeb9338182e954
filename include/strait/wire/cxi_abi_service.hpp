// SPDX-License-Identifier: Apache-2.0
// Services of a CXI device: who may use which networks and how much of the device, and the commands that say so.
// Most of them are for the administrator; a client asks for its own service's description and use. Layout only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/cxi_abi_client.hpp"

namespace strait::wire::cxi {

enum class Resource : std::uint32_t { pte = 0, txq = 1, tgq = 2, eq = 3, ct = 4, le = 5, tle = 6, ac = 7 };
inline constexpr std::uint32_t kResources = 8;
enum class MemberType : std::uint32_t { ignore = 0, uid = 1, gid = 2, net_ns = 3 };
inline constexpr std::uint32_t kMemberTypes = 4;
inline constexpr std::uint32_t kMaxServiceMembers = 2;
inline constexpr std::uint32_t kMaxServiceVnis = 4;

// SvcDesc::flags; the top two bits are the counter pool.
inline constexpr std::uint8_t kSvcRestrictedMembers = 1u << 0;
inline constexpr std::uint8_t kSvcRestrictedVnis = 1u << 1;
inline constexpr std::uint8_t kSvcRestrictedTcs = 1u << 2;
inline constexpr std::uint8_t kSvcResourceLimits = 1u << 3;
inline constexpr std::uint8_t kSvcEnable = 1u << 4;
inline constexpr std::uint8_t kSvcIsSystem = 1u << 5;
inline constexpr unsigned kSvcCntrPoolShift = 6;

struct Limits {
  std::uint16_t max;
  std::uint16_t res;  // reserved for this service
};
static_assert(sizeof(Limits) == 4 && std::is_trivial_v<Limits>);
static_assert(offsetof(Limits, max) == 0 && offsetof(Limits, res) == 2);

struct SvcMember {
  std::uint32_t id;  // uid or gid
  MemberType type;
};
static_assert(sizeof(SvcMember) == 8 && std::is_trivial_v<SvcMember>);
static_assert(offsetof(SvcMember, id) == 0 && offsetof(SvcMember, type) == 4);

struct SvcDesc {
  std::uint8_t flags;
  std::uint8_t num_vld_vnis;
  std::uint16_t vnis[4];
  std::uint8_t tcs[5];  // a boolean per TrafficClass
  std::uint8_t reserved15;
  SvcMember members[2];
  Limits limits[8];  // by Resource
  std::uint32_t svc_id;
};
static_assert(sizeof(SvcDesc) == 68 && std::is_trivial_v<SvcDesc>);
static_assert(offsetof(SvcDesc, flags) == 0 && offsetof(SvcDesc, num_vld_vnis) == 1 && offsetof(SvcDesc, vnis) == 2 &&
              offsetof(SvcDesc, tcs) == 10 && offsetof(SvcDesc, members) == 16 && offsetof(SvcDesc, limits) == 32 &&
              offsetof(SvcDesc, svc_id) == 64);
static_assert(offsetof(SvcDesc, reserved15) == 15);

// What there would have been, when a reservation does not succeed.
struct SvcFailInfo {
  std::uint16_t rsrc_avail[8];
  std::uint8_t no_le_pools;
  std::uint8_t no_tle_pools;
  std::uint8_t no_cntr_pools;
  std::uint8_t reserved19;
};
static_assert(sizeof(SvcFailInfo) == 20 && std::is_trivial_v<SvcFailInfo>);
static_assert(offsetof(SvcFailInfo, rsrc_avail) == 0 && offsetof(SvcFailInfo, no_le_pools) == 16 &&
              offsetof(SvcFailInfo, no_tle_pools) == 17 && offsetof(SvcFailInfo, no_cntr_pools) == 18);
static_assert(offsetof(SvcFailInfo, reserved19) == 19);

struct RsrcUse {
  std::uint32_t svc_id;  // 0: of the whole device
  std::uint32_t tle_pool_id;
  std::uint16_t in_use[8];
};
static_assert(sizeof(RsrcUse) == 24 && std::is_trivial_v<RsrcUse>);
static_assert(offsetof(RsrcUse, svc_id) == 0 && offsetof(RsrcUse, tle_pool_id) == 4 && offsetof(RsrcUse, in_use) == 8);

struct SvcAllocCmd {
  static constexpr Op kOp = Op::svc_alloc;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  SvcDesc svc_desc;
  std::uint32_t reserved84;
};
static_assert(sizeof(SvcAllocCmd) == 88 && std::is_trivial_v<SvcAllocCmd>);
static_assert(offsetof(SvcAllocCmd, op) == 0 && offsetof(SvcAllocCmd, resp) == 8 &&
              offsetof(SvcAllocCmd, svc_desc) == 16);
static_assert(offsetof(SvcAllocCmd, reserved4) == 4 && offsetof(SvcAllocCmd, reserved84) == 84);

struct SvcAllocResp {
  std::uint32_t svc_id;
  SvcFailInfo fail_info;
};
static_assert(sizeof(SvcAllocResp) == 24 && std::is_trivial_v<SvcAllocResp>);
static_assert(offsetof(SvcAllocResp, svc_id) == 0 && offsetof(SvcAllocResp, fail_info) == 4);

struct SvcUpdateCmd {
  static constexpr Op kOp = Op::svc_update;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  SvcDesc svc_desc;
  std::uint32_t reserved84;
};
static_assert(sizeof(SvcUpdateCmd) == 88 && std::is_trivial_v<SvcUpdateCmd>);
static_assert(offsetof(SvcUpdateCmd, op) == 0 && offsetof(SvcUpdateCmd, resp) == 8 &&
              offsetof(SvcUpdateCmd, svc_desc) == 16);
static_assert(offsetof(SvcUpdateCmd, reserved4) == 4 && offsetof(SvcUpdateCmd, reserved84) == 84);

struct SvcUpdateResp {
  SvcFailInfo fail_info;
};
static_assert(sizeof(SvcUpdateResp) == 20 && std::is_trivial_v<SvcUpdateResp>);
static_assert(offsetof(SvcUpdateResp, fail_info) == 0);

struct SvcDestroyCmd {
  static constexpr Op kOp = Op::svc_destroy;
  Op op;
  std::uint32_t svc_id;
};
static_assert(sizeof(SvcDestroyCmd) == 8 && std::is_trivial_v<SvcDestroyCmd>);
static_assert(offsetof(SvcDestroyCmd, op) == 0 && offsetof(SvcDestroyCmd, svc_id) == 4);

struct SvcGetCmd {
  static constexpr Op kOp = Op::svc_get;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint32_t reserved20;
};
static_assert(sizeof(SvcGetCmd) == 24 && std::is_trivial_v<SvcGetCmd>);
static_assert(offsetof(SvcGetCmd, op) == 0 && offsetof(SvcGetCmd, resp) == 8 && offsetof(SvcGetCmd, svc_id) == 16);
static_assert(offsetof(SvcGetCmd, reserved4) == 4 && offsetof(SvcGetCmd, reserved20) == 20);

struct SvcGetResp {
  SvcDesc svc_desc;
};
static_assert(sizeof(SvcGetResp) == 68 && std::is_trivial_v<SvcGetResp>);
static_assert(offsetof(SvcGetResp, svc_desc) == 0);

// The list is filled only if count is large enough for all; the answer says how many there are.
struct SvcListGetCmd {
  static constexpr Op kOp = Op::svc_list_get;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t count;
  std::uint32_t reserved20;
  std::uint64_t svc_list;
};
static_assert(sizeof(SvcListGetCmd) == 32 && std::is_trivial_v<SvcListGetCmd>);
static_assert(offsetof(SvcListGetCmd, op) == 0 && offsetof(SvcListGetCmd, resp) == 8 &&
              offsetof(SvcListGetCmd, count) == 16 && offsetof(SvcListGetCmd, svc_list) == 24);
static_assert(offsetof(SvcListGetCmd, reserved4) == 4 && offsetof(SvcListGetCmd, reserved20) == 20);

struct SvcListGetResp {
  std::uint32_t count;
};
static_assert(sizeof(SvcListGetResp) == 4 && std::is_trivial_v<SvcListGetResp>);
static_assert(offsetof(SvcListGetResp, count) == 0);

struct SvcRsrcGetCmd {
  static constexpr Op kOp = Op::svc_rsrc_get;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint32_t reserved20;
};
static_assert(sizeof(SvcRsrcGetCmd) == 24 && std::is_trivial_v<SvcRsrcGetCmd>);
static_assert(offsetof(SvcRsrcGetCmd, op) == 0 && offsetof(SvcRsrcGetCmd, resp) == 8 &&
              offsetof(SvcRsrcGetCmd, svc_id) == 16);
static_assert(offsetof(SvcRsrcGetCmd, reserved4) == 4 && offsetof(SvcRsrcGetCmd, reserved20) == 20);

struct SvcRsrcGetResp {
  RsrcUse rsrcs;
};
static_assert(sizeof(SvcRsrcGetResp) == 24 && std::is_trivial_v<SvcRsrcGetResp>);
static_assert(offsetof(SvcRsrcGetResp, rsrcs) == 0);

struct SvcRsrcListGetCmd {
  static constexpr Op kOp = Op::svc_rsrc_list_get;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t count;
  std::uint32_t reserved20;
  std::uint64_t rsrc_list;
};
static_assert(sizeof(SvcRsrcListGetCmd) == 32 && std::is_trivial_v<SvcRsrcListGetCmd>);
static_assert(offsetof(SvcRsrcListGetCmd, op) == 0 && offsetof(SvcRsrcListGetCmd, resp) == 8 &&
              offsetof(SvcRsrcListGetCmd, count) == 16 && offsetof(SvcRsrcListGetCmd, rsrc_list) == 24);
static_assert(offsetof(SvcRsrcListGetCmd, reserved4) == 4 && offsetof(SvcRsrcListGetCmd, reserved20) == 20);

struct SvcRsrcListGetResp {
  std::uint32_t count;
};
static_assert(sizeof(SvcRsrcListGetResp) == 4 && std::is_trivial_v<SvcRsrcListGetResp>);
static_assert(offsetof(SvcRsrcListGetResp, count) == 0);

struct SvcEnableCmd {
  static constexpr Op kOp = Op::svc_enable;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint8_t enable;
  std::uint8_t reserved21[3];
};
static_assert(sizeof(SvcEnableCmd) == 24 && std::is_trivial_v<SvcEnableCmd>);
static_assert(offsetof(SvcEnableCmd, op) == 0 && offsetof(SvcEnableCmd, resp) == 8 &&
              offsetof(SvcEnableCmd, svc_id) == 16 && offsetof(SvcEnableCmd, enable) == 20);
static_assert(offsetof(SvcEnableCmd, reserved4) == 4 && offsetof(SvcEnableCmd, reserved21) == 21);

// SVC_SET_LPR and SVC_GET_LPR; this and SVC_GET_NETNS are answered with a SvcGetValueResp.
struct SvcLprCmd {
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint32_t lnis_per_rgid;
};
static_assert(sizeof(SvcLprCmd) == 24 && std::is_trivial_v<SvcLprCmd>);
static_assert(offsetof(SvcLprCmd, op) == 0 && offsetof(SvcLprCmd, resp) == 8 && offsetof(SvcLprCmd, svc_id) == 16 &&
              offsetof(SvcLprCmd, lnis_per_rgid) == 20);
static_assert(offsetof(SvcLprCmd, reserved4) == 4);

struct SvcSetExclusiveCpCmd {
  static constexpr Op kOp = Op::svc_set_exclusive_cp;
  Op op;
  std::uint32_t svc_id;
  std::uint8_t exclusive_cp;
  std::uint8_t reserved9[3];
};
static_assert(sizeof(SvcSetExclusiveCpCmd) == 12 && std::is_trivial_v<SvcSetExclusiveCpCmd>);
static_assert(offsetof(SvcSetExclusiveCpCmd, op) == 0 && offsetof(SvcSetExclusiveCpCmd, svc_id) == 4 &&
              offsetof(SvcSetExclusiveCpCmd, exclusive_cp) == 8);
static_assert(offsetof(SvcSetExclusiveCpCmd, reserved9) == 9);

struct SvcGetExclusiveCpCmd {
  static constexpr Op kOp = Op::svc_get_exclusive_cp;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint32_t reserved20;
};
static_assert(sizeof(SvcGetExclusiveCpCmd) == 24 && std::is_trivial_v<SvcGetExclusiveCpCmd>);
static_assert(offsetof(SvcGetExclusiveCpCmd, op) == 0 && offsetof(SvcGetExclusiveCpCmd, resp) == 8 &&
              offsetof(SvcGetExclusiveCpCmd, svc_id) == 16);
static_assert(offsetof(SvcGetExclusiveCpCmd, reserved4) == 4 && offsetof(SvcGetExclusiveCpCmd, reserved20) == 20);

struct SvcGetExclusiveCpResp {
  std::uint8_t exclusive_cp;
};
static_assert(sizeof(SvcGetExclusiveCpResp) == 1 && std::is_trivial_v<SvcGetExclusiveCpResp>);
static_assert(offsetof(SvcGetExclusiveCpResp, exclusive_cp) == 0);

// SVC_SET_VNI_RANGE and SVC_GET_VNI_RANGE.
struct SvcVniRangeCmd {
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint32_t vni_min;
  std::uint32_t vni_max;
  std::uint32_t reserved28;
};
static_assert(sizeof(SvcVniRangeCmd) == 32 && std::is_trivial_v<SvcVniRangeCmd>);
static_assert(offsetof(SvcVniRangeCmd, op) == 0 && offsetof(SvcVniRangeCmd, resp) == 8 &&
              offsetof(SvcVniRangeCmd, svc_id) == 16 && offsetof(SvcVniRangeCmd, vni_min) == 20 &&
              offsetof(SvcVniRangeCmd, vni_max) == 24);
static_assert(offsetof(SvcVniRangeCmd, reserved4) == 4 && offsetof(SvcVniRangeCmd, reserved28) == 28);

struct SvcGetVniRangeResp {
  std::uint32_t vni_min;
  std::uint32_t vni_max;
};
static_assert(sizeof(SvcGetVniRangeResp) == 8 && std::is_trivial_v<SvcGetVniRangeResp>);
static_assert(offsetof(SvcGetVniRangeResp, vni_min) == 0 && offsetof(SvcGetVniRangeResp, vni_max) == 4);

struct SvcSetNetnsCmd {
  static constexpr Op kOp = Op::svc_set_netns;
  Op op;
  std::uint32_t svc_id;
  std::uint32_t netns;
};
static_assert(sizeof(SvcSetNetnsCmd) == 12 && std::is_trivial_v<SvcSetNetnsCmd>);
static_assert(offsetof(SvcSetNetnsCmd, op) == 0 && offsetof(SvcSetNetnsCmd, svc_id) == 4 &&
              offsetof(SvcSetNetnsCmd, netns) == 8);

struct SvcGetNetnsCmd {
  static constexpr Op kOp = Op::svc_get_netns;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
  std::uint32_t svc_id;
  std::uint32_t reserved20;
};
static_assert(sizeof(SvcGetNetnsCmd) == 24 && std::is_trivial_v<SvcGetNetnsCmd>);
static_assert(offsetof(SvcGetNetnsCmd, op) == 0 && offsetof(SvcGetNetnsCmd, resp) == 8 &&
              offsetof(SvcGetNetnsCmd, svc_id) == 16);
static_assert(offsetof(SvcGetNetnsCmd, reserved4) == 4 && offsetof(SvcGetNetnsCmd, reserved20) == 20);

struct SvcGetValueResp {
  std::uint32_t value;
};
static_assert(sizeof(SvcGetValueResp) == 4 && std::is_trivial_v<SvcGetValueResp>);
static_assert(offsetof(SvcGetValueResp, value) == 0);

struct GetDevPropertiesCmd {
  static constexpr Op kOp = Op::get_dev_properties;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
};
static_assert(sizeof(GetDevPropertiesCmd) == 16 && std::is_trivial_v<GetDevPropertiesCmd>);
static_assert(offsetof(GetDevPropertiesCmd, op) == 0 && offsetof(GetDevPropertiesCmd, resp) == 8);
static_assert(offsetof(GetDevPropertiesCmd, reserved4) == 4);

// The answer to GET_DEV_PROPERTIES.
struct DevProperties {
  std::uint32_t nid;
  std::uint8_t nid_configured;
  std::uint8_t reserved5[3];
  std::uint32_t pid_bits;
  std::uint32_t pid_count;
  std::uint32_t pid_granule;
  std::uint32_t min_free_shift;
  std::uint32_t rdzv_get_idx;
  Limits rsrcs[8];  // by Resource
  std::uint32_t device_rev;
  std::uint32_t device_proto;
  Platform device_platform;
  CassiniVersion cassini_version;
  std::uint8_t rdzv_get_en;
  std::uint8_t reserved77[3];
  std::int32_t amo_remap_to_pcie_fadd;  // an AtomicOp, or -1
};
static_assert(sizeof(DevProperties) == 84 && std::is_trivial_v<DevProperties>);
static_assert(offsetof(DevProperties, nid) == 0 && offsetof(DevProperties, nid_configured) == 4 &&
              offsetof(DevProperties, pid_bits) == 8 && offsetof(DevProperties, pid_count) == 12 &&
              offsetof(DevProperties, pid_granule) == 16 && offsetof(DevProperties, min_free_shift) == 20 &&
              offsetof(DevProperties, rdzv_get_idx) == 24 && offsetof(DevProperties, rsrcs) == 28 &&
              offsetof(DevProperties, device_rev) == 60 && offsetof(DevProperties, device_proto) == 64 &&
              offsetof(DevProperties, device_platform) == 68 && offsetof(DevProperties, cassini_version) == 72 &&
              offsetof(DevProperties, rdzv_get_en) == 76 && offsetof(DevProperties, amo_remap_to_pcie_fadd) == 80);
static_assert(offsetof(DevProperties, reserved5) == 5 && offsetof(DevProperties, reserved77) == 77);

}  // namespace strait::wire::cxi
