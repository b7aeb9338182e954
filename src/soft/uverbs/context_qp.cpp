// SPDX-License-Identifier: Apache-2.0
// Queue pairs: the rings are the program's memory, where libmlx5 writes and the engine reads.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/hooks.hpp"
#include "soft/uverbs/limits.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::uint32_t kStandardBits = (1u << 21) - 1;  // IB_QP_ATTR_STANDARD_BITS
constexpr std::uint32_t kBlockBytes = 64;

std::optional<nic::QpType> type_of(std::uint64_t uverbs_type) {
  switch (uverbs_type) {
    case IB_UVERBS_QPT_RC: return nic::QpType::rc;
    case IB_UVERBS_QPT_UC: return nic::QpType::uc;
    case IB_UVERBS_QPT_UD: return nic::QpType::ud;
    case IB_UVERBS_QPT_XRC_INI: return nic::QpType::xrc_ini;
    case IB_UVERBS_QPT_XRC_TGT: return nic::QpType::xrc_tgt;
    default: return {};  // raw packets, dynamically connected
  }
}

// Registers that libmlx5 shares between queue pairs under a lock. What is written there is not looked at: the doorbell
// record says the same.
std::uint32_t doorbell_of(std::uint32_t qpn) {
  static constexpr std::array<std::uint32_t, 5> kShared = {1, 4, 5, 8, 9};
  return kShared[qpn % kShared.size()];
}

nic::PathAttributes path_of(const ib_uverbs_qp_dest& dest) {
  nic::PathAttributes out;
  std::memcpy(out.dgid.data(), dest.dgid, out.dgid.size());
  out.sgid_index = dest.sgid_index;
  out.hop_limit = dest.hop_limit;
  out.traffic_class = dest.traffic_class;
  out.sl = dest.sl;
  out.static_rate = dest.static_rate;
  out.port = dest.port_num;
  out.flow_label = dest.flow_label;
  out.is_global = dest.is_global != 0;
  return out;
}

void put_path(const nic::PathAttributes& path, ib_uverbs_qp_dest& out) {
  std::memcpy(out.dgid, path.dgid.data(), path.dgid.size());
  out.sgid_index = path.sgid_index;
  out.hop_limit = path.hop_limit;
  out.traffic_class = path.traffic_class;
  out.sl = path.sl;
  out.static_rate = path.static_rate;
  out.port_num = path.port;
  out.flow_label = path.flow_label;
  out.is_global = path.is_global ? 1 : 0;
}

nic::QpAttributes attributes_of(const ib_uverbs_modify_qp& from) {
  nic::QpAttributes out;
  out.state = static_cast<nic::QpState>(from.qp_state);
  out.cur_state = static_cast<nic::QpState>(from.cur_qp_state);
  out.access = from.qp_access_flags;
  out.pkey_index = from.pkey_index;
  out.port = from.port_num;
  out.qkey = from.qkey;
  out.path = path_of(from.dest);
  out.path_mtu = from.path_mtu;
  out.timeout = from.timeout;
  out.retries = from.retry_cnt;
  out.rnr_retries = from.rnr_retry;
  out.rq_psn = from.rq_psn;
  out.sq_psn = from.sq_psn;
  out.max_reads = from.max_rd_atomic;
  out.max_dest_reads = from.max_dest_rd_atomic;
  out.min_rnr_timer = from.min_rnr_timer;
  out.dest_qpn = from.dest_qp_num;
  out.alt_path = path_of(from.alt_dest);
  out.alt_pkey_index = from.alt_pkey_index;
  out.alt_timeout = from.alt_timeout;
  out.migration = from.path_mig_state;
  out.sqd_notify = from.en_sqd_async_notify != 0;
  return out;
}

}  // namespace

int Context::create_qp(Request& request) {
  if (const int failed = need_engine()) return failed;
  const auto type = type_of(request.word(UVERBS_ATTR_CREATE_QP_TYPE));
  if (!type) return -EOPNOTSUPP;
  if (request.has(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE) || request.has(UVERBS_ATTR_CREATE_QP_SOURCE_QPN))
    return -EOPNOTSUPP;
  const std::uint64_t flags = request.word(UVERBS_ATTR_CREATE_QP_FLAGS);
  if ((flags & ~std::uint64_t{IB_UVERBS_QP_CREATE_SQ_SIG_ALL | IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK}) != 0)
    return -EOPNOTSUPP;
  if (*type == nic::QpType::xrc_tgt) return create_target(request);
  auto qp = std::make_unique<Qp>();
  qp->type = *type;
  qp->all_signaled = (flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL) != 0;
  qp->pd = objects_.find<Pd>(request.word(UVERBS_ATTR_CREATE_QP_PD_HANDLE));
  qp->send_cq = objects_.find<Cq>(request.word(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE));
  if (qp->pd == nullptr || qp->send_cq == nullptr) return -ENOENT;
  const bool receives = *type != nic::QpType::xrc_ini;
  if (receives) qp->recv_cq = objects_.find<Cq>(request.word(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE));
  if (receives && qp->recv_cq == nullptr) return -ENOENT;
  if (receives && request.has(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE)) {
    qp->srq = objects_.find<Srq>(request.word(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE));
    if (qp->srq == nullptr) return -ENOENT;
  }
  if (const int failed = request.get(UVERBS_ATTR_CREATE_QP_CAP, qp->cap)) return failed;
  if (qp->cap.max_send_wr > limits::kWorkRequests || qp->cap.max_recv_wr > limits::kWorkRequests ||
      qp->cap.max_send_sge > limits::kPieces + 2 || qp->cap.max_recv_sge > limits::kReceivePieces)
    return -EINVAL;
  qp->events.element = request.word(UVERBS_ATTR_CREATE_QP_USER_HANDLE);
  qp->events.async = async_;

  mlx5_ib_create_qp driver{};
  if (request.length(UVERBS_ATTR_UHW_IN) < offsetof(mlx5_ib_create_qp, uidx)) return -EINVAL;
  if (const int failed = request.get(UVERBS_ATTR_UHW_IN, driver)) return failed;
  constexpr std::uint32_t kHarmless = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
                                      MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE | MLX5_QP_FLAG_BFREG_INDEX |
                                      MLX5_QP_FLAG_UAR_PAGE_INDEX;
  if ((driver.flags & ~kHarmless) != 0) return -EOPNOTSUPP;
  if ((driver.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) != 0) {
    qp->uar = objects_.find_uar(driver.bfreg_index);
    if (qp->uar == nullptr) return -EINVAL;
  }
  if (driver.rq_wqe_count > limits::kWorkRequests || driver.rq_wqe_shift > 10 ||
      driver.sq_wqe_count > limits::kSendBlocks)
    return -EINVAL;

  qp->cap.max_recv_wr = driver.rq_wqe_count;  // as many as the ring has, which may be more than was asked for

  nic::QpRequest wanted;
  wanted.type = *type;
  wanted.pd = qp->pd->number;
  wanted.send_cqn = qp->send_cq->number;
  if (qp->recv_cq != nullptr) wanted.recv_cqn = qp->recv_cq->number;
  if (qp->srq != nullptr) wanted.srqn = qp->srq->number;
  // In the older form of completions this field names a shared receive queue, or none.
  wanted.user_index = cqe_version_ == 1 ? driver.uidx & 0xffffff : 0;
  wanted.says_srqn = cqe_version_ == 0;
  wanted.all_signaled = qp->all_signaled;
  wanted.user = reinterpret_cast<std::uintptr_t>(&qp->events);
  const std::uint64_t rq_bytes = std::uint64_t{driver.rq_wqe_count} << driver.rq_wqe_shift;
  const std::uint64_t sq_bytes = std::uint64_t{driver.sq_wqe_count} * kBlockBytes;
  if (rq_bytes + sq_bytes != 0) {
    std::byte* const ring = device_->memory().lasting(driver.buf_addr, rq_bytes + sq_bytes, true);
    if (ring == nullptr) return -EFAULT;
    if (rq_bytes != 0) wanted.rq = ring;
    if (sq_bytes != 0) wanted.sq = ring + rq_bytes;
  }
  wanted.rq_entries = driver.rq_wqe_count;
  wanted.rq_stride_log2 = driver.rq_wqe_shift;
  wanted.sq_blocks = driver.sq_wqe_count;
  wanted.record = device_->memory().lasting(driver.db_addr, 8, true);
  if (wanted.record == nullptr) return -EFAULT;
  const auto made = engine_->create_qp(wanted);
  if (!made) return -errno_of(made.error());
  qp->number = *made;

  Qp& kept = *qp;
  const std::uint32_t handle = objects_.add(std::move(qp));
  mlx5_ib_create_qp_resp out{};
  out.bfreg_index = kept.uar != nullptr ? kept.uar->page : doorbell_of(kept.number);
  int failed = request.put(UVERBS_ATTR_CREATE_QP_RESP_CAP, kept.cap);
  if (failed == 0) failed = request.put(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, kept.number);
  if (failed == 0) failed = request.put(UVERBS_ATTR_UHW_OUT, out);
  if (failed == 0) failed = request.put_word(UVERBS_ATTR_CREATE_QP_HANDLE, handle);
  if (failed != 0) {
    (void)engine_->destroy_qp(kept.number);
    objects_.remove(handle);
    return failed;
  }
  ++kept.pd->users;
  ++kept.send_cq->users;
  if (kept.recv_cq != nullptr) ++kept.recv_cq->users;
  if (kept.srq != nullptr) ++kept.srq->users;
  if (kept.uar != nullptr) ++kept.uar->users;
  if (Progress* const progress = device_->progress()) hook_qp(device_->memory(), kept.events.element, *progress);
  trap_pages();
  return 0;
}

void let_go(const Qp& qp) {
  if (qp.xrcd != nullptr) --qp.xrcd->users;
  if (qp.pd != nullptr) --qp.pd->users;
  if (qp.send_cq != nullptr) --qp.send_cq->users;
  if (qp.recv_cq != nullptr) --qp.recv_cq->users;
  if (qp.srq != nullptr) --qp.srq->users;
  if (qp.uar != nullptr) --qp.uar->users;
}

// A target lives until all who have opened it are gone.
int Context::destroy(Qp& qp) {
  if (qp.target != nullptr) return device_->xrc().release(*engine_, *qp.xrcd->domain, *qp.target, qp.events);
  const Status destroyed = engine_->destroy_qp(qp.number);
  return destroyed ? 0 : -errno_of(destroyed.error());
}

int Context::destroy_qp(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_DESTROY_QP_HANDLE);
  Qp* const qp = objects_.find<Qp>(handle);
  if (qp == nullptr) return -ENOENT;
  if (const int failed = destroy(*qp)) return failed;
  ib_uverbs_destroy_qp_resp out{};
  out.events_reported = qp->events.async_read();
  let_go(*qp);
  objects_.remove(static_cast<std::uint32_t>(handle));
  return request.put(UVERBS_ATTR_DESTROY_QP_RESP, out);
}

int Context::apply(const ib_uverbs_modify_qp& wanted, std::uint32_t known) {
  if ((wanted.attr_mask & ~known) != 0) return -EOPNOTSUPP;
  const Qp* const qp = objects_.find<Qp>(wanted.qp_handle);
  if (qp == nullptr) return -EINVAL;
  const std::uint32_t mask = wanted.attr_mask;
  constexpr auto kHighest = static_cast<std::uint8_t>(nic::QpState::error);
  if ((mask & nic::kQpState) != 0 && wanted.qp_state > kHighest) return -EINVAL;
  if ((mask & nic::kQpCurState) != 0 && wanted.cur_qp_state > kHighest) return -EINVAL;
  if ((mask & nic::kQpPort) != 0 && wanted.port_num != 1) return -EINVAL;
  if ((mask & nic::kQpPkeyIndex) != 0 && wanted.pkey_index != 0) return -EINVAL;
  if ((mask & nic::kQpPath) != 0) {
    const ib_uverbs_qp_dest& dest = wanted.dest;
    if (const int failed = check_port_and_source(dest.port_num, dest.is_global != 0, dest.sgid_index)) return failed;
  }
  if ((mask & nic::kQpAltPath) != 0) {
    const ib_uverbs_qp_dest& dest = wanted.alt_dest;
    if (wanted.alt_port_num != 1) return -EINVAL;
    if (const int failed = check_port_and_source(dest.port_num, dest.is_global != 0, dest.sgid_index)) return failed;
  }
  if (const Status changed = engine_->modify_qp(qp->number, attributes_of(wanted), mask); !changed)
    return -errno_of(changed.error());
  if (Progress* const progress = device_->progress()) progress->wake();
  return 0;
}

int Context::modify_qp(WriteCall& call) {
  ib_uverbs_modify_qp wanted{};
  if (const int failed = call.get(wanted)) return failed;
  return apply(wanted, kStandardBits);
}

int Context::ex_modify_qp(WriteCall& call) {
  ib_uverbs_ex_modify_qp wanted{};
  if (const int failed = call.get(wanted)) return failed;
  if (wanted.reserved != 0) return -EOPNOTSUPP;
  if (const int failed = apply(wanted.base, kStandardBits)) return failed;
  ib_uverbs_ex_modify_qp_resp out{};
  out.response_length = sizeof out;
  if (const int failed = call.put(out)) return failed;
  mlx5_ib_modify_qp_resp driver{};
  driver.response_length = sizeof driver;
  return call.put_driver(driver);
}

int Context::query_qp(WriteCall& call) {
  ib_uverbs_query_qp asked{};
  if (const int failed = call.get(asked)) return failed;
  const Qp* const qp = objects_.find<Qp>(asked.qp_handle);
  if (qp == nullptr) return -EINVAL;
  const auto now = engine_->query_qp(qp->number);
  if (!now) return -errno_of(now.error());
  ib_uverbs_query_qp_resp out{};
  put_path(now->path, out.dest);
  put_path(now->alt_path, out.alt_dest);
  out.max_send_wr = qp->cap.max_send_wr;
  out.max_recv_wr = qp->cap.max_recv_wr;
  out.max_send_sge = qp->cap.max_send_sge;
  out.max_recv_sge = qp->cap.max_recv_sge;
  out.max_inline_data = qp->cap.max_inline_data;
  out.qkey = now->qkey;
  out.rq_psn = now->rq_psn;
  out.sq_psn = now->sq_psn;
  out.dest_qp_num = now->dest_qpn;
  out.qp_access_flags = now->access;
  out.pkey_index = now->pkey_index;
  out.alt_pkey_index = now->alt_pkey_index;
  out.qp_state = static_cast<std::uint8_t>(now->state);
  out.cur_qp_state = static_cast<std::uint8_t>(now->cur_state);
  out.path_mtu = now->path_mtu;
  out.path_mig_state = now->migration;
  out.sq_draining = now->sq_draining ? 1 : 0;
  out.max_rd_atomic = now->max_reads;
  out.max_dest_rd_atomic = now->max_dest_reads;
  out.min_rnr_timer = now->min_rnr_timer;
  out.port_num = now->port;
  out.timeout = now->timeout;
  out.retry_cnt = now->retries;
  out.rnr_retry = now->rnr_retries;
  out.alt_port_num = now->alt_path.port;
  out.alt_timeout = now->alt_timeout;
  out.sq_sig_all = qp->all_signaled ? 1 : 0;
  return call.put(out);
}

}  // namespace strait::soft::uverbs
