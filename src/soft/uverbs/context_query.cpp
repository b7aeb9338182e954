// SPDX-License-Identifier: Apache-2.0
// Questions about the device, its port and its GIDs.
#include <endian.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/limits.hpp"
#include "soft/uverbs/tree.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::uint8_t kActive = 4;
constexpr std::uint8_t kLinkUp = 5;
constexpr std::uint8_t kEthernet = 2;
constexpr std::uint8_t kWidth4x = 2;
constexpr std::uint8_t kSpeedEdr = 32;
constexpr std::uint32_t kIpBasedGids = 1u << 26;
constexpr std::uint32_t kGidTypeRoceV2 = 2;  // IB_UVERBS_GID_TYPE_ROCE_V2

// IB_DEVICE_*
constexpr std::uint32_t kCurrentStateModify = 1u << 7;
constexpr std::uint32_t kPortActiveEvent = 1u << 10;
constexpr std::uint32_t kSystemImageGuid = 1u << 11;
constexpr std::uint32_t kRnrNakGeneration = 1u << 12;
constexpr std::uint32_t kMemoryWindow = 1u << 17;
constexpr std::uint32_t kXrc = 1u << 20;
constexpr std::uint32_t kMemoryWindowType2B = 1u << 24;

ib_uverbs_query_device_resp device_attributes(unsigned index) {
  ib_uverbs_query_device_resp out{};
  out.fw_ver = kFirmwareNumber;
  out.node_guid = htobe64(node_guid(index));
  out.sys_image_guid = out.node_guid;
  out.max_mr_size = ~std::uint64_t{0};
  out.page_size_cap = 0xfffffffffffff000;
  out.vendor_id = 0x02c9;
  out.vendor_part_id = kVendorPart;
  out.max_qp = limits::kQueuePairs - 1;
  out.max_qp_wr = limits::kWorkRequests;
  out.device_cap_flags = kCurrentStateModify | kPortActiveEvent | kSystemImageGuid | kRnrNakGeneration | kMemoryWindow |
                         kXrc | kMemoryWindowType2B;
  out.max_sge = limits::kPieces;
  out.max_sge_rd = limits::kPieces;
  out.max_cq = limits::kCompletionQueues;
  out.max_cqe = limits::kCompletionEntries;
  out.max_mr = limits::kRegistrations;
  out.max_mw = limits::kRegistrations;
  out.max_pd = limits::kDomains;
  out.max_qp_rd_atom = limits::kReads;
  out.max_res_rd_atom = limits::kReads * (limits::kQueuePairs - 1);
  out.max_qp_init_rd_atom = limits::kReads;
  out.atomic_cap = 1;  // atomic among the operations of this device
  out.max_ah = limits::kAddresses;
  out.max_srq = limits::kSharedQueues;
  out.max_srq_wr = limits::kWorkRequests - 1;
  out.max_srq_sge = limits::kReceivePieces - 1;
  out.max_pkeys = 1;
  out.local_ca_ack_delay = 16;
  out.phys_port_cnt = 1;
  return out;
}

// IB_ODP_SUPPORT_*: memory need not be there when it is registered, nor be named at all.
void put_paging(ib_uverbs_ex_query_device_resp& out) {
  constexpr std::uint32_t kSupport = 1, kImplicit = 2;
  constexpr std::uint32_t kSend = 1, kReceive = 2, kWrite = 4, kRead = 8, kAtomic = 16, kSharedReceive = 32;
  out.odp_caps.general_caps = kSupport | kImplicit;
  out.odp_caps.per_transport_caps.rc_odp_caps = kSend | kReceive | kWrite | kRead | kAtomic | kSharedReceive;
  out.odp_caps.per_transport_caps.uc_odp_caps = kSend | kReceive | kWrite;
  out.odp_caps.per_transport_caps.ud_odp_caps = kSend | kReceive | kSharedReceive;
  out.xrc_odp_caps = kSend | kWrite | kRead | kAtomic | kSharedReceive;
  out.device_cap_flags_ex |= std::uint64_t{1} << 31;  // IB_DEVICE_ON_DEMAND_PAGING
}

// A host may have more addresses than a ConnectX has room for.
std::uint32_t table_entries(std::size_t gids) {
  return std::max(limits::kGids, static_cast<std::uint32_t>(gids));
}

ib_uverbs_gid_entry gid_entry(const GidEntry& entry, std::uint32_t index) {
  ib_uverbs_gid_entry out{};
  std::memcpy(out.gid, entry.address.gid.data(), sizeof out.gid);
  out.gid_index = index;
  out.port_num = 1;
  out.gid_type = kGidTypeRoceV2;
  out.netdev_ifindex = entry.interface_index;
  return out;
}

}  // namespace

int Context::query_port(Request& request) {
  if (request.word(UVERBS_ATTR_QUERY_PORT_PORT_NUM) != 1) return -EINVAL;
  ib_uverbs_query_port_resp_ex out{};
  out.legacy_resp.port_cap_flags = IB_UVERBS_PCF_CM_SUP | kIpBasedGids;
  out.legacy_resp.max_msg_sz = limits::kMessageBytes;
  out.legacy_resp.gid_tbl_len = table_entries(device_->gids().size());
  out.legacy_resp.pkey_tbl_len = 1;
  out.legacy_resp.state = kActive;
  out.legacy_resp.max_mtu = 5;
  out.legacy_resp.active_mtu = device_->mtu();
  out.legacy_resp.max_vl_num = 1;
  out.legacy_resp.active_width = kWidth4x;
  out.legacy_resp.active_speed = kSpeedEdr;
  out.legacy_resp.phys_state = kLinkUp;
  out.legacy_resp.link_layer = kEthernet;
  out.legacy_resp.flags = IB_UVERBS_QPF_GRH_REQUIRED;
  return request.put(UVERBS_ATTR_QUERY_PORT_RESP, out);
}

int Context::query_gid_entry(Request& request) {
  if (request.word(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS) != 0) return -EINVAL;
  if (request.word(UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != 1) return -EINVAL;
  const std::uint64_t index = request.word(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
  if (index >= table_entries(device_->gids().size())) return -EINVAL;
  if (index >= device_->gids().size()) return -ENODATA;  // libibverbs makes an empty GID of it
  const auto out = gid_entry(device_->gids()[index], static_cast<std::uint32_t>(index));
  return request.put(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, out);
}

int Context::query_gid_table(Request& request) {
  if (request.word(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS) != 0) return -EINVAL;
  const std::uint64_t stride = request.word(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
  if (stride == 0 || stride > 4096) return -EINVAL;
  const std::size_t room = request.length(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES) / stride;
  if (device_->gids().size() > room) return -EINVAL;
  std::vector<std::byte> out(device_->gids().size() * stride);
  for (std::size_t i = 0; i < device_->gids().size(); ++i) {
    const auto entry = gid_entry(device_->gids()[i], static_cast<std::uint32_t>(i));
    std::memcpy(out.data() + i * stride, &entry, std::min<std::size_t>(stride, sizeof entry));
  }
  const std::uint64_t count = device_->gids().size();
  if (const int failed = request.put(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, out.data(), out.size())) return failed;
  return request.put(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count);
}

int Context::query_device(WriteCall& call) {
  return call.put(device_attributes(device_->index()));
}

int Context::ex_query_device(WriteCall& call) {
  ib_uverbs_ex_query_device asked{};
  if (const int failed = call.get(asked)) return failed;
  if (asked.comp_mask != 0 || asked.reserved != 0) return -EINVAL;
  ib_uverbs_ex_query_device_resp out{};
  out.base = device_attributes(device_->index());
  out.response_length =
      static_cast<std::uint32_t>(std::min<std::size_t>(sizeof out, call.request().length(UVERBS_ATTR_CORE_OUT)));
  out.device_cap_flags_ex = out.base.device_cap_flags;
  put_paging(out);
  if (pages_.valid()) out.max_dm_size = limits::kDeviceMemoryBytes;
  out.timestamp_mask = ~std::uint64_t{0};
  out.hca_core_clock = 1'000'000;  // kHz
  if (const int failed = call.put(out)) return failed;
  mlx5_ib_query_device_resp driver{};
  driver.flags = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
  driver.response_length = static_cast<std::uint32_t>(std::min<std::size_t>(sizeof driver, call.driver_out_bytes()));
  return call.put_driver(driver);
}

}  // namespace strait::soft::uverbs
