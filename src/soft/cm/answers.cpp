// SPDX-License-Identifier: Apache-2.0
// What a program may ask about an Ident: addresses, route, and how to set up its queue pair.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/cm/service.hpp"
#include "soft/cm/take.hpp"
#include "strait/wire/endian.hpp"

namespace strait::soft::cm {
namespace {

constexpr std::uint16_t kPkey = 0xffff;
constexpr std::uint32_t kNoIndex = 0xffffffff;  // devices are told apart by their GUID
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kLifetime = 17;  // half of the local ACK timeout
constexpr std::uint8_t kRate = 3;       // IB_RATE_10_GBPS... of a path that knows none

std::uint64_t guid_of(const Device& device, const Ident& ident) {
  const std::uint64_t own = device.gids()[ident.sgid_index].node_guid;
  return wire::be64{own != 0 ? own : device.node_guid()}.raw();
}

// IB_QPS_* and IB_QP_*
constexpr std::uint32_t kInit = 1, kReceive = 2, kSend = 3;
constexpr std::uint32_t kMaskState = 1u << 0, kMaskAccess = 1u << 3, kMaskPkey = 1u << 4, kMaskPort = 1u << 5,
                        kMaskQkey = 1u << 6, kMaskAv = 1u << 7, kMaskMtu = 1u << 8, kMaskTimeout = 1u << 9,
                        kMaskRetries = 1u << 10, kMaskRnrRetries = 1u << 11, kMaskRqPsn = 1u << 12,
                        kMaskReads = 1u << 13, kMaskRnrTimer = 1u << 15, kMaskSqPsn = 1u << 16,
                        kMaskDestReads = 1u << 17, kMaskDestQpn = 1u << 20;
constexpr std::uint32_t kRemoteWrite = 2, kRemoteRead = 4, kRemoteAtomic = 8;

bool has_path(const Ident& ident) {
  return ident.has_device && (ident.phase == Phase::route_resolved || ident.phase == Phase::connecting);
}

// A path record as subnet managers send it: 64 bytes, big-endian.
struct PathRecord {
  wire::packed_be64 service_id;
  std::uint8_t dgid[16];
  std::uint8_t sgid[16];
  wire::packed_be16 dlid;
  wire::packed_be16 slid;
  wire::packed_be32 flow_hops;  // flow label << 8 | hop limit
  std::uint8_t traffic_class;
  std::uint8_t reversible_count;
  wire::packed_be16 pkey;
  wire::packed_be16 qos_sl;
  std::uint8_t mtu;       // selector << 6 | code
  std::uint8_t rate;      // selector << 6 | code
  std::uint8_t lifetime;  // selector << 6 | code
  std::uint8_t preference;
  std::uint8_t reserved[6];
};
static_assert(sizeof(PathRecord) == sizeof(ib_path_rec_data::path_rec));

}  // namespace

long Service::query(const Call& call) {
  const auto cmd = take<rdma_ucm_query>(call.in);
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  switch (cmd.option) {
    case RDMA_USER_CM_QUERY_ADDR: return query_address(*ident, cmd.response, call.out_bytes, false);
    case RDMA_USER_CM_QUERY_GID: return query_address(*ident, cmd.response, call.out_bytes, true);
    case RDMA_USER_CM_QUERY_PATH: return query_path(*ident, cmd.response, call.out_bytes);
    default: return -ENOSYS;
  }
}

long Service::query_address(const Ident& ident, std::uint64_t to, std::size_t room, bool gids) {
  rdma_ucm_query_addr_resp resp{};
  if (room < offsetof(rdma_ucm_query_addr_resp, ibdev_index)) return -ENOSPC;
  resp.ibdev_index = kNoIndex;
  if (ident.has_device) {
    resp.node_guid = guid_of(*settings_.device, ident);
    resp.port_num = 1;
    resp.pkey = wire::be16{kPkey}.raw();
  }
  SocketAddress source = ident.source;
  SocketAddress destination = ident.destination;
  if (gids) {
    const auto as_gid = [&](SocketAddress& a) {
      if (a.family == kFamilyIb) return;
      a.service_id = service_of(ident, a);
      a.pkey = ident.has_device ? kPkey : 0;
      a.family = kFamilyIb;
      a.scope = a.flow_info = 0;
    };
    if (ident.has_device) source.address = settings_.device->gids()[ident.sgid_index].address;
    as_gid(source);
    as_gid(destination);
  }
  resp.src_size =
      static_cast<std::uint16_t>(write_socket_address(source, std::as_writable_bytes(std::span(&resp.src_addr, 1))));
  resp.dst_size = static_cast<std::uint16_t>(
      write_socket_address(destination, std::as_writable_bytes(std::span(&resp.dst_addr, 1))));
  return answer(to, resp, std::min(room, sizeof resp));
}

long Service::query_path(const Ident& ident, std::uint64_t to, std::size_t room) {
  struct {
    std::uint32_t num_paths = 0;
    std::uint32_t reserved = 0;
    ib_path_rec_data path{};
  } resp;
  constexpr std::size_t kHead = sizeof(rdma_ucm_query_path_resp);
  static_assert(sizeof resp == kHead + sizeof(ib_path_rec_data));
  if (room < kHead) return -ENOSPC;
  if (!has_path(ident)) return answer(to, resp, kHead);
  resp.num_paths = 1;
  if (room < sizeof resp) return answer(to, resp, kHead);
  const GidInfo& gid = settings_.device->gids()[ident.sgid_index];
  PathRecord path{};
  std::copy(ident.destination.address.gid.begin(), ident.destination.address.gid.end(), path.dgid);
  std::copy(gid.address.gid.begin(), gid.address.gid.end(), path.sgid);
  path.flow_hops = wire::packed_be32{kHopLimit};
  path.traffic_class = ident.traffic_class;
  path.reversible_count = 0x81;
  path.pkey = wire::packed_be16{kPkey};
  constexpr unsigned kExactly = 2u << 6;
  path.mtu = static_cast<std::uint8_t>(kExactly | gid.mtu_code);
  path.rate = static_cast<std::uint8_t>(kExactly | kRate);
  path.lifetime = static_cast<std::uint8_t>(kExactly | kLifetime);
  resp.path.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  std::memcpy(resp.path.path_rec, &path, sizeof path);
  return answer(to, resp);
}

long Service::query_route(const Call& call) {
  const auto cmd = take<rdma_ucm_query>(call.in);
  rdma_ucm_query_route_resp resp{};
  if (call.out_bytes < offsetof(rdma_ucm_query_route_resp, ibdev_index)) return -ENOSPC;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  resp.ibdev_index = kNoIndex;
  // There is room for IP addresses only, as long as this command has existed.
  const auto put = [](const SocketAddress& address, auto& into) {
    std::byte bytes[kLargestSocketAddress] = {};
    const std::size_t size = write_socket_address(address, bytes);
    std::memcpy(&into, bytes, std::min(size, sizeof into));
  };
  put(ident->source, resp.src_addr);
  put(ident->destination, resp.dst_addr);
  if (ident->has_device) {
    const GidInfo& gid = settings_.device->gids()[ident->sgid_index];
    resp.node_guid = guid_of(*settings_.device, *ident);
    resp.port_num = 1;
    auto& path = resp.ib_route[0];
    std::copy(ident->destination.address.gid.begin(), ident->destination.address.gid.end(), path.dgid);
    std::copy(gid.address.gid.begin(), gid.address.gid.end(), path.sgid);
    path.pkey = wire::be16{kPkey}.raw();
    if (has_path(*ident)) {
      resp.num_paths = 1;
      path.reversible = 1;
      path.hop_limit = kHopLimit;
      path.traffic_class = ident->traffic_class;
      path.numb_path = 1;
      path.mtu_selector = path.rate_selector = path.packet_life_time_selector = 2;
      path.mtu = gid.mtu_code;
      path.rate = kRate;
      path.packet_life_time = kLifetime;
    }
  }
  return answer(cmd.response, resp, std::min<std::size_t>(call.out_bytes, sizeof resp));
}

// As the kernel's CM fills it: librdmacm passes all of it to ibv_modify_qp.
long Service::init_qp_attr(const Call& call) {
  const auto cmd = take<rdma_ucm_init_qp_attr>(call.in);
  ib_uverbs_qp_attr resp{};
  if (call.out_bytes < sizeof resp) return -ENOSPC;
  if (cmd.qp_state > 6) return -EINVAL;
  Ident* ident = nullptr;
  if (const long error = find(call.channel, cmd.id, ident); error < 0) return error;
  if (!ident->has_device) return -EINVAL;
  resp.qp_state = static_cast<std::uint8_t>(cmd.qp_state);
  const Connection* const c = ident->cm != 0 && machine_ ? machine_->find(ident->cm) : nullptr;
  if (ident->qp_type == kQpUd || c == nullptr) {
    if (ident->qp_type != kQpUd && cmd.qp_state != kInit) return -EINVAL;
    resp.port_num = 1;
    resp.qp_attr_mask = kMaskState | kMaskPkey | kMaskPort;
    if (ident->qp_type == kQpUd) {
      resp.qkey = c != nullptr && c->remote_qkey != 0 ? c->remote_qkey : kUdpQkey;
      resp.qp_attr_mask |= kMaskQkey;
    } else {
      resp.qp_attr_mask |= kMaskAccess;
    }
    return answer(cmd.response, resp);
  }
  const bool told = c->state == State::req_received || c->state == State::rep_sent || c->state == State::rep_received ||
                    c->state == State::established;
  const bool reads_served = ident->qp_type == kQpRc || ident->qp_type == kQpXrcRecv;
  const bool reads_begun = ident->qp_type == kQpRc || ident->qp_type == kQpXrcSend;
  switch (cmd.qp_state) {
    case kInit:
      if (!told && c->state != State::req_sent) return -EINVAL;
      resp.qp_attr_mask = kMaskState | kMaskAccess | kMaskPkey | kMaskPort;
      resp.port_num = 1;
      resp.qp_access_flags = kRemoteWrite | (c->responder_resources != 0 ? kRemoteRead | kRemoteAtomic : 0);
      break;
    case kReceive:
      if (!told) return -EINVAL;
      resp.qp_attr_mask = kMaskState | kMaskAv | kMaskMtu | kMaskDestQpn | kMaskRqPsn;
      fill_ah(resp.ah_attr, *ident, c);
      resp.path_mtu = std::min(c->mtu_code, settings_.device->gids()[ident->sgid_index].mtu_code);
      resp.dest_qp_num = c->remote_qpn;
      resp.rq_psn = c->receive_psn;
      if (reads_served) {
        resp.qp_attr_mask |= kMaskDestReads | kMaskRnrTimer;
        resp.max_dest_rd_atomic = c->responder_resources;
      }
      break;
    case kSend:
      if (!told) return -EINVAL;
      resp.qp_attr_mask = kMaskState | kMaskSqPsn;
      resp.sq_psn = c->send_psn;
      if (reads_begun) {
        resp.qp_attr_mask |= kMaskTimeout | kMaskRetries | kMaskRnrRetries | kMaskReads;
        resp.timeout = c->ack_timeout;
        resp.retry_cnt = c->retry_count;
        resp.rnr_retry = c->rnr_retry_count;
        resp.max_rd_atomic = c->initiator_depth;
      }
      break;
    default: return -EINVAL;
  }
  return answer(cmd.response, resp);
}

}  // namespace strait::soft::cm
