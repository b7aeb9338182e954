// SPDX-License-Identifier: Apache-2.0
// The queue pair's life: made, connected, failed. What moves through it is in proxy.cpp.
#include "rail/verbs/queue.hpp"

#include <algorithm>
#include <cerrno>

namespace strait::rail::verbs {
namespace m = wire::mlx5;

namespace {

constexpr std::uint32_t kMostParts = 16;            // gather entries that are asked for; most work has one
constexpr std::int64_t kFlushWaitNs = 500'000'000;  // for the device to give back what it holds

int queue_access(std::uint32_t access) {
  int rights = IBV_ACCESS_LOCAL_WRITE;
  if (access & STRAIT_NIC_REMOTE_WRITE) rights |= IBV_ACCESS_REMOTE_WRITE;
  if (access & STRAIT_NIC_REMOTE_READ) rights |= IBV_ACCESS_REMOTE_READ;
  if (access & STRAIT_NIC_REMOTE_ATOMIC) rights |= IBV_ACCESS_REMOTE_ATOMIC;
  return rights;
}

}  // namespace

ProxyQueue::ProxyQueue(const Port& port, const strait_nic_qp_request& request, CompletionWriter& sends,
                       CompletionWriter& receives, ProxyCounts& counts, DeviceEvents& events)
    : port_(port),
      counts_(counts),
      events_(events),
      sends_(sends),
      receives_(receives),
      pd_(request.pd),
      user_index_(request.user_index),
      all_signaled_(request.all_signaled != 0),
      access_(request.access),
      sq_(request.sq, std::uint64_t{request.sq_blocks} * m::kBlockBytes),
      sq_blocks_(request.sq_blocks),
      rq_(request.rq, request.rq_entries == 0 ? 0 : std::uint64_t{request.rq_entries} << request.rq_stride_log2),
      rq_entries_(request.rq_entries),
      rq_stride_bytes_(request.rq_entries == 0 ? 0 : 1u << request.rq_stride_log2),
      record_(static_cast<const std::uint32_t*>(request.record)) {}

ProxyQueue::~ProxyQueue() {
  if (!qp_) return;
  --sends_.users;
  --receives_.users;
}

Result<std::unique_ptr<ProxyQueue>> ProxyQueue::make(const Port& port, ibv_pd* domain, ibv_comp_channel* channel,
                                                     const strait_nic_qp_request& request, CompletionWriter& sends,
                                                     CompletionWriter& receives, ProxyCounts& counts,
                                                     DeviceEvents& events) {
  std::unique_ptr<ProxyQueue> queue(new ProxyQueue(port, request, sends, receives, counts, events));
  STRAIT_CHECK(queue->create(domain, channel, request));
  return queue;
}

Status ProxyQueue::create(ibv_pd* domain, ibv_comp_channel* channel, const strait_nic_qp_request& request) {
  const auto& limits = port_.limits();
  ring_region_.reset(ibv_reg_mr(domain, request.sq, sq_.bytes(), 0));
  if (!ring_region_) return fail_errno(errno, "the send ring was not registered for its inline payloads");
  const auto most_wr = static_cast<std::uint32_t>(std::max(limits.max_qp_wr, 1));
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 0;
  wanted.cap.max_send_wr = std::min(sq_blocks_, most_wr);
  wanted.cap.max_recv_wr = std::clamp(rq_entries_, 1u, most_wr);
  wanted.cap.max_send_sge = std::min(kMostParts, static_cast<std::uint32_t>(std::max(limits.max_sge, 1)));
  wanted.cap.max_recv_sge = std::min(std::max(1u, rq_stride_bytes_ / m::kSegmentBytes), wanted.cap.max_send_sge);
  const auto entries = static_cast<int>(wanted.cap.max_send_wr + wanted.cap.max_recv_wr);
  if (entries > limits.max_cqe)
    return strait::fail(Code::limit, "{} completes at most {} work requests at a time, {} were asked for", port_.name(),
                        limits.max_cqe, entries);
  cq_.reset(ibv_create_cq(port_.context(), entries, this, channel, 0));
  if (!cq_) return fail_errno(errno, fmt::format("{} made no completion queue of {} entries", port_.name(), entries));
  wanted.send_cq = cq_.get();
  wanted.recv_cq = cq_.get();
  Owner<ibv_qp, ibv_destroy_qp> made(ibv_create_qp(domain, &wanted));
  if (!made) return fail_errno(errno, fmt::format("{} made no queue pair", port_.name()));
  // What was asked for, although the device may have rounded up: the completion queue has room for that many.
  max_on_device_ = std::min(sq_blocks_, most_wr);
  max_parts_ = wanted.cap.max_send_sge;
  qp_ = std::move(made);
  ++sends_.users;
  ++receives_.users;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPortNumber;
  attributes.qp_access_flags = static_cast<unsigned>(queue_access(access_));
  return modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

Status ProxyQueue::modify(ibv_qp_attr& attributes, int mask, const char* to) {
  const int error = ibv_modify_qp(qp_.get(), &attributes, mask);
  if (error == 0) return {};
  return fail_errno(error, fmt::format("{} did not take queue pair {:#x} to {}", port_.name(), qpn(), to));
}

Status ProxyQueue::connect(const strait_nic_connect_request& request) {
  if (state_ != State::made) return strait::fail(Code::invalid, "queue pair {:#x} was connected before", qpn());
  STRAIT_TRY(remote_, Address::parse(request.remote));
  if (remote_.ethernet != port_.address().ethernet)
    return strait::fail(Code::unsupported, "one end is on Ethernet, the other on InfiniBand: {} cannot reach it",
                        port_.name());
  remote_qpn_ = request.remote_qpn;
  path_mtu_ = std::min(port_.address().mtu, remote_.mtu);
  const auto starts = static_cast<std::uint32_t>(std::max(port_.limits().max_qp_init_rd_atom, 1));

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(path_mtu_);
  attributes.dest_qp_num = remote_qpn_;
  attributes.rq_psn = remote_.psn(remote_qpn_);
  attributes.max_dest_rd_atomic = port_.address().reads;
  attributes.min_rnr_timer = rnr_code(request.rnr_wait_ns);
  attributes.ah_attr = port_.way_to(remote_);
  if (const Status status = modify(attributes,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                                   "RTR");
      !status) {
    return with_remedy(status.error(), fmt::format("check that {} can be reached from here", gid_text(remote_.gid)));
  }
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = port_.address().psn(qpn());
  attributes.timeout = timeout_code(request.ack_timeout_ns);
  attributes.retry_cnt = static_cast<std::uint8_t>(std::min(request.retries, 7u));
  attributes.rnr_retry = static_cast<std::uint8_t>(std::min(request.rnr_retries, 7u));
  attributes.max_rd_atomic = static_cast<std::uint8_t>(std::min<std::uint32_t>(starts, remote_.reads));
  STRAIT_CHECK(modify(
      attributes,
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
      "RTS"));
  state_ = State::ready;
  return {};
}

void ProxyQueue::break_down() {
  if (state_ == State::error) return;
  state_ = State::error;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  (void)modify(attributes, IBV_QP_STATE, "ERR");  // a device that is gone flushes nothing; fail() does not rely on it
}

void ProxyQueue::fail() {
  break_down();
  (void)poll();
  // A device that is gone gives nothing more back.
  const sys::Deadline deadline = sys::Deadline::after_ns(events_.device_gone() ? 0 : kFlushWaitNs);
  while ((!posted_.empty() || receive_done_ != receive_next_) && !deadline.passed()) (void)poll();
  // What the device still has not given back is flushed without it; its answers will be too late and are known by their
  // numbers.
  for (Posted& entry : posted_) {
    if (entry.done) continue;
    entry.done = true;
    entry.fault = m::Syndrome::flushed;
  }
  advance();
  while (receive_done_ != receive_next_) flush_receive();
  (void)published();
  (void)flush_unread();
}

std::string ProxyQueue::describe() const {
  if (state_ == State::made) return fmt::format("verbs {}, not connected", port_.name());
  return fmt::format("verbs {}, {} from {} to {} queue pair {:#x}, path MTU {}, rings read by the CPU", port_.name(),
                     port_.address().ethernet ? "RoCE" : "InfiniBand", gid_text(port_.address().gid),
                     gid_text(remote_.gid), remote_qpn_, mtu_bytes(path_mtu_));
}

bool ProxyQueue::arm() {
  if (published()) return false;
  if (!armed_) {
    if (ibv_req_notify_cq(cq_.get(), 0) != 0) return false;
    armed_ = true;
  }
  // What completed before the request raises no event.
  return poll() == 0;
}

void ProxyQueue::on_event() {
  armed_ = false;
  ++counts_.events;
  ibv_ack_cq_events(cq_.get(), 1);
}

}  // namespace strait::rail::verbs
