// SPDX-License-Identifier: Apache-2.0
// Kernel calls that ask what a CXI device is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strait/wire/cxi_abi_client.hpp"

namespace strait::wire::cxi {

struct MapCsrsCmd {
  static constexpr Op kOp = Op::map_csrs;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
};
static_assert(sizeof(MapCsrsCmd) == 16 && std::is_trivial_v<MapCsrsCmd>);
static_assert(offsetof(MapCsrsCmd, op) == 0 && offsetof(MapCsrsCmd, resp) == 8);
static_assert(offsetof(MapCsrsCmd, reserved4) == 4);

struct MapCsrsResp {
  MmInfo csr;
};
static_assert(sizeof(MapCsrsResp) == 16 && std::is_trivial_v<MapCsrsResp>);
static_assert(offsetof(MapCsrsResp, csr) == 0);

struct DevInfoGetCmd {
  static constexpr Op kOp = Op::dev_info_get;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
};
static_assert(sizeof(DevInfoGetCmd) == 16 && std::is_trivial_v<DevInfoGetCmd>);
static_assert(offsetof(DevInfoGetCmd, op) == 0 && offsetof(DevInfoGetCmd, resp) == 8);
static_assert(offsetof(DevInfoGetCmd, reserved4) == 4);

// The answer to DEV_INFO_GET.
struct DevInfo {
  std::uint32_t nid;
  std::uint32_t pid_bits;
  std::uint32_t pid_count;
  std::uint32_t pid_granule;
  std::uint32_t min_free_shift;
  std::uint32_t rdzv_get_idx;
  std::uint32_t vendor_id;
  std::uint32_t device_id;
  std::uint32_t device_rev;
  std::uint32_t device_proto;
  Platform device_platform;
  std::uint32_t pct_eq;
  std::int32_t uc_nic;
  std::uint32_t reserved52;
  std::uint64_t link_mtu;
  std::uint64_t link_speed;
  std::uint8_t link_state;
  std::uint8_t reserved73;
  std::uint16_t num_ptes;
  std::uint16_t num_txqs;
  std::uint16_t num_tgqs;
  std::uint16_t num_eqs;
  std::uint16_t num_cts;
  std::uint16_t num_acs;
  std::uint16_t num_tles;
  std::uint16_t num_les;
  char fru_description[16];
  std::uint16_t reserved106;
  CassiniVersion cassini_version;
  SystemType system_type_identifier;
  std::uint32_t reserved116;
};
static_assert(sizeof(DevInfo) == 120 && std::is_trivial_v<DevInfo>);
static_assert(offsetof(DevInfo, nid) == 0 && offsetof(DevInfo, pid_bits) == 4 && offsetof(DevInfo, pid_count) == 8 &&
              offsetof(DevInfo, pid_granule) == 12 && offsetof(DevInfo, min_free_shift) == 16 &&
              offsetof(DevInfo, rdzv_get_idx) == 20 && offsetof(DevInfo, vendor_id) == 24 &&
              offsetof(DevInfo, device_id) == 28 && offsetof(DevInfo, device_rev) == 32 &&
              offsetof(DevInfo, device_proto) == 36 && offsetof(DevInfo, device_platform) == 40 &&
              offsetof(DevInfo, pct_eq) == 44 && offsetof(DevInfo, uc_nic) == 48 && offsetof(DevInfo, link_mtu) == 56 &&
              offsetof(DevInfo, link_speed) == 64 && offsetof(DevInfo, link_state) == 72 &&
              offsetof(DevInfo, num_ptes) == 74 && offsetof(DevInfo, num_txqs) == 76 &&
              offsetof(DevInfo, num_tgqs) == 78 && offsetof(DevInfo, num_eqs) == 80 &&
              offsetof(DevInfo, num_cts) == 82 && offsetof(DevInfo, num_acs) == 84 &&
              offsetof(DevInfo, num_tles) == 86 && offsetof(DevInfo, num_les) == 88 &&
              offsetof(DevInfo, fru_description) == 90 && offsetof(DevInfo, cassini_version) == 108 &&
              offsetof(DevInfo, system_type_identifier) == 112);
static_assert(offsetof(DevInfo, reserved52) == 52 && offsetof(DevInfo, reserved73) == 73);
static_assert(offsetof(DevInfo, reserved106) == 106 && offsetof(DevInfo, reserved116) == 116);

struct RetryHandlerRunningCmd {
  static constexpr Op kOp = Op::retry_handler_running;
  Op op;
  std::uint32_t reserved4;
  std::uint64_t resp;
};
static_assert(sizeof(RetryHandlerRunningCmd) == 16 && std::is_trivial_v<RetryHandlerRunningCmd>);
static_assert(offsetof(RetryHandlerRunningCmd, op) == 0 && offsetof(RetryHandlerRunningCmd, resp) == 8);
static_assert(offsetof(RetryHandlerRunningCmd, reserved4) == 4);

struct RetryHandlerRunningResp {
  std::uint8_t running;
};
static_assert(sizeof(RetryHandlerRunningResp) == 1 && std::is_trivial_v<RetryHandlerRunningResp>);
static_assert(offsetof(RetryHandlerRunningResp, running) == 0);

}  // namespace strait::wire::cxi
