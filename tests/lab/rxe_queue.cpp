// SPDX-License-Identifier: Apache-2.0
#include "rxe_queue.hpp"

#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace strait::lab {
namespace {

constexpr std::uint32_t kDepth = 256;
constexpr std::uint32_t kSges = 8;
constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

Result<ibv_mtu> mtu_of(std::uint32_t bytes) {
  switch (bytes) {
    case 256: return IBV_MTU_256;
    case 512: return IBV_MTU_512;
    case 1024: return IBV_MTU_1024;
    case 2048: return IBV_MTU_2048;
    case 4096: return IBV_MTU_4096;
    default: return fail(Code::invalid, "{} is no path MTU (256, 512, 1024, 2048, 4096)", bytes);
  }
}

bool is_ipv4(const ibv_gid& gid) {
  static constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped.data(), kMapped.size()) == 0;
}
bool is_link_local(const ibv_gid& gid) {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

ibv_ah_attr way_to(const Port& port, const ibv_gid& gid) {
  ibv_ah_attr way{};
  way.is_global = 1;
  way.port_num = 1;
  way.grh.dgid = gid;
  way.grh.sgid_index = port.gid_index;
  way.grh.hop_limit = 64;
  return way;
}

}  // namespace

Result<Port> Port::open(std::string_view device, bool ipv6, std::uint32_t pmtu_bytes) {
  Port port;
  STRAIT_TRY(port.pmtu, mtu_of(pmtu_bytes));
  const Owner<ibv_device*, ibv_free_device_list> list(ibv_get_device_list(nullptr));
  for (ibv_device** at = list.get(); at != nullptr && *at != nullptr; ++at)
    if (device == ibv_get_device_name(*at)) port.context.reset(ibv_open_device(*at));
  if (!port.context) return fail(Code::invalid, "there is no verbs device {}", device);
  port.domain.reset(ibv_alloc_pd(port.context.get()));
  if (!port.domain) return fail_errno(errno, "no protection domain");
  ibv_port_attr attributes{};
  if (const int error = ibv_query_port(port.context.get(), 1, &attributes); error != 0)
    return fail_errno(error, "port 1 cannot be asked");
  if (attributes.active_mtu < port.pmtu) return fail(Code::limit, "the port's own MTU is smaller than {}", pmtu_bytes);
  for (std::uint8_t i = 0; i < std::min(attributes.gid_tbl_len, 255); ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(port.context.get(), 1, i, &gid) != 0 || gid.global.interface_id == 0) continue;
    if (is_ipv4(gid) == ipv6 || is_link_local(gid)) continue;
    port.gid = gid;
    port.gid_index = i;
    return port;
  }
  return fail(Code::invalid, "{} has no {} address", device, ipv6 ? "IPv6" : "IPv4");
}

Result<std::unique_ptr<Queue>> Queue::make(const Port& port, ibv_qp_type type, std::uint64_t memory_bytes) {
  if (memory_bytes == 0 || memory_bytes > 64u << 20) return strait::fail(Code::invalid, "memory of 1 byte to 64 MiB");
  std::unique_ptr<Queue> queue(new Queue(port, type));
  STRAIT_TRY(queue->memory_, sys::map_anonymous(sys::round_up(memory_bytes, 4096), sys::Protect::read_write));
  queue->region_.reset(ibv_reg_mr(port.domain.get(), queue->memory_.data(), queue->memory_.size(), kAccess));
  if (!queue->region_) return fail_errno(errno, "the memory was not registered");
  queue->completions_.reset(ibv_create_cq(port.context.get(), 2 * kDepth, nullptr, nullptr, 0));
  if (!queue->completions_) return fail_errno(errno, "no completion queue");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = queue->completions_.get();
  wanted.recv_cq = queue->completions_.get();
  wanted.qp_type = type;
  wanted.cap = {
      .max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = kSges, .max_recv_sge = 1, .max_inline_data = 0};
  queue->qp_.reset(ibv_create_qp(port.domain.get(), &wanted));
  if (!queue->qp_) return fail_errno(errno, "no queue pair");
  // Near the wrap for every third queue pair, so that tests cross it.
  queue->psn_ = (queue->qpn() * 0x5bd1e9u + 0xfffff8u) & 0xffffffu;
  if (queue->qpn() % 3 == 0) queue->psn_ = 0xfffffcu;
  STRAIT_CHECK(queue->to_init());
  return queue;
}

Status Queue::to_init() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (datagram()) {
    attributes.qkey = kQkey;
    mask |= IBV_QP_QKEY;
  } else {
    attributes.qp_access_flags = kAccess;
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (const int error = ibv_modify_qp(qp_.get(), &attributes, mask); error != 0) return fail_errno(error, "to INIT");
  return {};
}

Status Queue::connect(const Remote& remote, const Timing& timing) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  int mask = IBV_QP_STATE;
  if (!datagram()) {
    attributes.path_mtu = port_.pmtu;
    attributes.dest_qp_num = remote.qpn;
    attributes.rq_psn = remote.psn;
    attributes.ah_attr = way_to(port_, remote.gid);
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  }
  if (reliable()) {
    attributes.max_dest_rd_atomic = timing.reads;
    attributes.min_rnr_timer = timing.rnr_timer;
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  if (const int error = ibv_modify_qp(qp_.get(), &attributes, mask); error != 0) return fail_errno(error, "to RTR");
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = psn_;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable()) {
    attributes.timeout = timing.timeout;
    attributes.retry_cnt = timing.retries;
    attributes.rnr_retry = timing.rnr_retries;
    attributes.max_rd_atomic = timing.reads;
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  if (const int error = ibv_modify_qp(qp_.get(), &attributes, mask); error != 0) return fail_errno(error, "to RTS");
  return {};
}

Status Queue::fail() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (const int error = ibv_modify_qp(qp_.get(), &attributes, IBV_QP_STATE); error != 0)
    return fail_errno(error, "to ERR");
  return {};
}

Status Queue::post(const Work& work) {
  STRAIT_TRY(const std::span<std::byte> bytes, memory(work.at, work.length_bytes));
  if (work.sges == 0 || work.sges > kSges) return strait::fail(Code::invalid, "1 to {} sges", kSges);
  std::array<ibv_sge, kSges> list{};
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::uint32_t done = 0;
  for (std::uint32_t i = 0; i < work.sges; ++i) {
    // Uneven on purpose when the length is no multiple: packets then cross the cuts.
    const std::uint32_t part = i + 1 == work.sges ? work.length_bytes - done : work.length_bytes / work.sges;
    list[i] = {.addr = begin + done, .length = part, .lkey = region_->lkey};
    done += part;
  }
  ibv_send_wr request{};
  request.wr_id = work.id;
  request.sg_list = list.data();
  request.num_sge = work.length_bytes == 0 ? 0 : static_cast<int>(work.sges);
  request.opcode = work.opcode;
  if (work.signaled) request.send_flags |= IBV_SEND_SIGNALED;
  if (work.fence) request.send_flags |= IBV_SEND_FENCE;
  request.imm_data = htonl(work.immediate);
  if (work.opcode == IBV_WR_SEND_WITH_INV) request.invalidate_rkey = work.rkey;
  if (work.to) {
    ibv_ah_attr way = way_to(port_, work.to->gid);
    addresses_.emplace_back(ibv_create_ah(port_.domain.get(), &way));
    if (!addresses_.back()) return fail_errno(errno, "no address handle");
    request.wr.ud.ah = addresses_.back().get();
    request.wr.ud.remote_qpn = work.to->qpn;
    request.wr.ud.remote_qkey = work.to->qkey;
  } else if (work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    request.wr.atomic.remote_addr = work.remote_address;
    request.wr.atomic.rkey = work.rkey;
    request.wr.atomic.compare_add = work.compare_add;
    request.wr.atomic.swap = work.swap;
  } else {
    request.wr.rdma.remote_addr = work.remote_address;
    request.wr.rdma.rkey = work.rkey;
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_.get(), &request, &bad); error != 0) return fail_errno(error, "not posted");
  return {};
}

Status Queue::receive(std::uint64_t id, std::uint64_t at, std::uint32_t length_bytes) {
  STRAIT_TRY(const std::span<std::byte> bytes, memory(at, length_bytes));
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(bytes.data()), .length = length_bytes, .lkey = region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &piece;
  request.num_sge = length_bytes == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(qp_.get(), &request, &bad); error != 0) return fail_errno(error, "not posted");
  return {};
}

Result<std::optional<ibv_wc>> Queue::wait(const sys::Deadline& deadline) {
  for (;;) {
    ibv_wc completion{};
    const int count = ibv_poll_cq(completions_.get(), 1, &completion);
    if (count < 0) return fail_errno(-count, "the completion queue cannot be polled");
    if (count == 1) return std::optional(completion);
    if (deadline.passed()) return std::optional<ibv_wc>();
    ::sched_yield();  // one processor: rxe's work runs on it too
  }
}

Result<std::span<std::byte>> Queue::memory(std::uint64_t at, std::uint64_t length_bytes) const {
  if (at > memory_.size() || length_bytes > memory_.size() - at)
    return strait::fail(Code::invalid, "[{}, +{}) is not in the memory of {} bytes", at, length_bytes, memory_.size());
  return std::span(memory_.data() + at, length_bytes);
}

Result<std::string> Queue::state() const {
  static constexpr std::array<const char*, 7> kNames = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  ibv_qp_attr attributes{};
  ibv_qp_init_attr made{};
  if (const int error = ibv_query_qp(qp_.get(), &attributes, IBV_QP_STATE, &made); error != 0)
    return fail_errno(error, "the queue pair cannot be asked");
  const auto index = static_cast<std::size_t>(attributes.qp_state);
  return std::string(index < kNames.size() ? kNames[index] : "UNKNOWN");
}

}  // namespace strait::lab
