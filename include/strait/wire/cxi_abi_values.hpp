// SPDX-License-Identifier: Apache-2.0
// Opcodes, flags and kinds of the calls a CXI client makes to the kernel.
#pragma once

#include <cstdint>

#include "strait/wire/cxi_values.hpp"

namespace strait::wire::cxi {

// Numbers are only ever added at the end.
enum class Op : std::uint32_t {
  invalid = 0,
  lni_alloc = 1,
  lni_free = 2,
  domain_reserve = 3,
  domain_alloc = 4,
  domain_free = 5,
  cp_alloc = 6,
  cp_free = 7,
  cq_alloc = 8,
  cq_free = 9,
  cq_ack_counter = 10,
  atu_map = 11,
  atu_unmap = 12,
  eq_alloc = 13,
  eq_free = 14,
  eq_resize = 15,
  eq_resize_complete = 16,
  pte_alloc = 17,
  pte_free = 18,
  pte_map = 19,
  pte_unmap = 20,
  pte_le_invalidate = 21,
  pte_status = 22,
  wait_alloc = 23,
  wait_free = 24,
  ct_alloc = 25,
  ct_free = 26,
  svc_list_get = 27,
  svc_alloc = 28,
  svc_destroy = 29,
  map_csrs = 30,
  sbus_op_reset = 31,
  sbus_op = 32,
  serdes_op = 33,
  get_dev_properties = 34,
  obsolete_map_telemetry = 35,
  obsolete_unmap_telemetry = 36,
  eq_adjust_reserved_fc = 37,
  ct_wb_update = 38,
  obsolete_reserve_cntr_pool_id = 39,
  obsolete_release_cntr_pool_id = 40,
  obsolete_get_telemetry_refresh_interval = 41,
  obsolete_set_telemetry_refresh_interval = 42,
  inbound_wait = 43,
  svc_update = 44,
  svc_get = 45,
  obsolete_start_telemetry = 46,
  obsolete_stop_telemetry = 47,
  pte_transition_sm = 48,
  svc_rsrc_list_get = 49,
  svc_rsrc_get = 50,
  atu_update_md = 51,
  dev_info_get = 52,
  svc_set_lpr = 53,
  svc_get_lpr = 54,
  dev_alloc_rx_profile = 55,
  dev_get_rx_profile_ids = 56,
  rx_profile_release = 57,
  rx_profile_revoke = 58,
  rx_profile_get_info = 59,
  rx_profile_add_ac_entry = 60,
  rx_profile_remove_ac_entry = 61,
  rx_profile_get_ac_entry_ids = 62,
  rx_profile_get_ac_entry_data_by_id = 63,
  rx_profile_get_ac_entry_id_by_data = 64,
  rx_profile_get_ac_entry_id_by_user = 65,
  dev_alloc_tx_profile = 66,
  dev_get_tx_profile_ids = 67,
  tx_profile_release = 68,
  tx_profile_revoke = 69,
  tx_profile_get_info = 70,
  tx_profile_add_ac_entry = 71,
  tx_profile_remove_ac_entry = 72,
  tx_profile_get_ac_entry_ids = 73,
  tx_profile_get_ac_entry_data_by_id = 74,
  tx_profile_get_ac_entry_id_by_data = 75,
  tx_profile_get_ac_entry_id_by_user = 76,
  cp_modify = 77,
  svc_set_exclusive_cp = 78,
  svc_get_exclusive_cp = 79,
  svc_enable = 80,
  svc_set_vni_range = 81,
  svc_get_vni_range = 82,
  trig_cp_alloc = 83,
  svc_set_netns = 84,
  svc_get_netns = 85,
  cq_alloc_buf = 86,
  vf_get_token = 87,
  phys_lac_alloc = 88,
  phys_lac_free = 89,
  atu_map_sgt = 90,
  atu_update_sgt = 91,
  atu_clear_md = 92,
  retry_handler_running = 93,
  eth_dev_info_get = 94,
  eth_tc_req_pcp_get = 95,
  eth_pause_get = 96,
  eth_max_rxsize_get = 97,
  eth_link_state_get = 98,
  rmu_eth_alloc = 99,
  rmu_eth_free = 100,
  rmu_eth_hash_key_get = 101,
  rmu_eth_add_mac_filter = 102,
  rmu_eth_remove_filter = 103,
  rmu_eth_add_promisc_filter = 104,
  rmu_eth_set_rss_queues = 105,
  rmu_eth_set_indir_table = 106,
  rmu_eth_add_all_mcast_filter = 107,
  eth_vf_mac_get = 108,
  eth_vf_mac_validate = 109,
};

// One more than the newest number of a release: from there on a driver answers EINVAL.
inline constexpr std::uint32_t kOpMaxRelease13_0 = 77;  // and 12.0
inline constexpr std::uint32_t kOpMaxRelease13_1 = 84;
inline constexpr std::uint32_t kOpMaxRelease14_0 = 86;
inline constexpr std::uint32_t kOpMax = 110;
inline constexpr std::uint32_t kMaxCommandBytes = 22432;
inline constexpr std::uint32_t kMinReadBytes = 16;  // the driver reads as much before it looks at the length

// Numbers that nothing serves any more: EOPNOTSUPP.
STRAIT_HD constexpr bool is_obsolete(Op op) {
  switch (op) {
    case Op::obsolete_map_telemetry:
    case Op::obsolete_unmap_telemetry:
    case Op::obsolete_reserve_cntr_pool_id:
    case Op::obsolete_release_cntr_pool_id:
    case Op::obsolete_get_telemetry_refresh_interval:
    case Op::obsolete_set_telemetry_refresh_interval:
    case Op::obsolete_start_telemetry:
    case Op::obsolete_stop_telemetry: return true;
    default: return false;
  }
}
// Numbers that belong to objects other than a client: EOPNOTSUPP as well.
STRAIT_HD constexpr bool is_profile_op(Op op) {
  return op >= Op::dev_alloc_rx_profile && op <= Op::tx_profile_get_ac_entry_id_by_user;
}

enum class TrafficClass : std::uint32_t {
  dedicated_access = 0,
  low_latency = 1,
  bulk_data = 2,
  best_effort = 3,
  ethernet = 4,
};
inline constexpr std::uint32_t kTrafficClasses = 5;
enum class TrafficClassType : std::uint32_t { standard = 0, hrp = 1, restricted = 2, coll_leaf = 3 };
inline constexpr std::uint32_t kTrafficClassTypes = 4;
// Which LCID a communication profile gets: 0, one of the others, or whichever is free.
enum class CpType : std::uint32_t { triggered = 0, non_triggered = 1, any = 2 };
// When a command queue's status word is refreshed.
enum class CqPolicy : std::uint32_t { always = 0, high_freq_empty = 1, low_freq_empty = 2, low_freq = 3 };

inline constexpr std::uint32_t kCqUser = 1u << 0;  // set by the driver
inline constexpr std::uint32_t kCqIsTx = 1u << 1;
inline constexpr std::uint32_t kCqTxEthernet = 1u << 2;
inline constexpr std::uint32_t kCqTxTriggered = 1u << 3;
inline constexpr std::uint32_t kMaxLpeThresholdId = 3;

inline constexpr std::uint64_t kEqUser = 1u << 0;  // set by the driver
inline constexpr std::uint64_t kEqPassthrough = 1u << 1;
inline constexpr std::uint64_t kEqInitLong = 1u << 2;
inline constexpr std::uint64_t kEqTargetLong = 1u << 3;
inline constexpr std::uint64_t kEqDropStatusDisable = 1u << 4;
inline constexpr std::uint64_t kEqTimestampEvents = 1u << 5;
inline constexpr std::uint64_t kEqCombiningDisable = 1u << 6;
inline constexpr std::uint64_t kEqRegisterPct = 1u << 7;
inline constexpr std::uint32_t kMaxReservedFc = 16383;
inline constexpr std::uint32_t kMaxEqThresholds = 4;

inline constexpr std::uint32_t kMapPin = 1u << 0;
inline constexpr std::uint32_t kMapAts = 1u << 1;
inline constexpr std::uint32_t kMapWrite = 1u << 2;
inline constexpr std::uint32_t kMapRead = 1u << 3;
inline constexpr std::uint32_t kMapFault = 1u << 4;
inline constexpr std::uint32_t kMapNocache = 1u << 5;
inline constexpr std::uint32_t kMapUserAddr = 1u << 6;  // set by the driver for a client
inline constexpr std::uint32_t kMapAtsPassthrough = 1u << 7;
inline constexpr std::uint32_t kMapAtsDynamic = 1u << 8;
inline constexpr std::uint32_t kMapDevice = 1u << 9;
inline constexpr std::uint32_t kMapUnused = 1u << 10;
inline constexpr std::uint32_t kMapAllocMd = 1u << 11;
inline constexpr std::uint32_t kMapPrefetch = 1u << 12;
inline constexpr std::uint32_t kDefaultPageShift = 12;
inline constexpr std::uint32_t kDefaultHugeShift = 21;
inline constexpr std::int32_t kNoDmabufFd = -1;

inline constexpr std::uint64_t kPteEnEventMatch = 1u << 0;  // MATCH events are made
inline constexpr std::uint64_t kPteClrRemoteOffset = 1u << 1;
inline constexpr std::uint64_t kPteEnFlowctrl = 1u << 2;
inline constexpr std::uint64_t kPteUseLongEvent = 1u << 3;
inline constexpr std::uint64_t kPteLossless = 1u << 4;
inline constexpr std::uint64_t kPteEnRestrictedUnicastLm = 1u << 5;
inline constexpr std::uint64_t kPteUseLogical = 1u << 6;
inline constexpr std::uint64_t kPteIsMatching = 1u << 7;
inline constexpr std::uint64_t kPteDoSpaceCheck = 1u << 8;
inline constexpr std::uint64_t kPteEnAlignLm = 1u << 9;
inline constexpr std::uint64_t kPteEnSwHwStChng = 1u << 10;
inline constexpr std::uint64_t kPteEthernet = 1u << 11;
inline constexpr std::uint64_t kPteSignalInvalid = 1u << 12;
inline constexpr std::uint64_t kPteSignalUnderflow = 1u << 13;
inline constexpr std::uint64_t kPteSignalOverflow = 1u << 14;
inline constexpr std::uint64_t kPteSignalInexact = 1u << 15;
inline constexpr std::uint64_t kPteEnMatchOnVni = 1u << 16;

inline constexpr std::uint32_t kMdNone = 0;
inline constexpr std::uint32_t kWaitNone = 0;
inline constexpr std::uint32_t kDefaultService = 1;

enum class Platform : std::uint32_t { asic = 0, netsim = 1, z1 = 2, fpga = 3 };
enum class CassiniVersion : std::uint32_t { v1_0 = 0x11, v1_1 = 0x12, v2_0 = 0x21 };
inline constexpr std::uint32_t kCassini1 = 0x10;  // the bit that both versions 1 have
inline constexpr std::uint32_t kCassini2 = 0x20;
enum class SystemType : std::uint32_t { mixed = 0, cassini_1_only = 1, cassini_2_only = 2 };
inline constexpr std::uint32_t kVendorId = 0x17db;
inline constexpr std::uint32_t kCassini1DeviceId = 0x0501;
inline constexpr std::uint32_t kCassini2DeviceId = 0x0371;

}  // namespace strait::wire::cxi
