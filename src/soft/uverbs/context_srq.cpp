// SPDX-License-Identifier: Apache-2.0
// Shared receive queues.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/limits.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

namespace {

enum : std::uint32_t { kMaxWr = 1, kLimit = 2 };  // IB_SRQ_*

constexpr std::uint32_t kSegmentBytes = 16;

}  // namespace

int Context::create_srq(Request& request) {
  if (const int failed = need_engine()) return failed;
  const std::uint64_t type = request.word(UVERBS_ATTR_CREATE_SRQ_TYPE);
  if (type != IB_UVERBS_SRQT_BASIC && type != IB_UVERBS_SRQT_XRC) return -EOPNOTSUPP;
  auto srq = std::make_unique<Srq>();
  srq->pd = objects_.find<Pd>(request.word(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE));
  if (srq->pd == nullptr) return -ENOENT;
  if (type == IB_UVERBS_SRQT_XRC) {
    srq->xrcd = objects_.find<Xrcd>(request.word(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE));
    srq->cq = objects_.find<Cq>(request.word(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE));
    if (srq->xrcd == nullptr || srq->cq == nullptr) return -ENOENT;
  }
  std::uint32_t limit = 0;
  if (const int failed = request.get(UVERBS_ATTR_CREATE_SRQ_MAX_WR, srq->max_wr)) return failed;
  if (const int failed = request.get(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, srq->max_sge)) return failed;
  if (const int failed = request.get(UVERBS_ATTR_CREATE_SRQ_LIMIT, limit)) return failed;
  if (srq->max_wr >= limits::kWorkRequests || srq->max_sge > limits::kReceivePieces - 1) return -EINVAL;
  mlx5_ib_create_srq driver{};
  if (request.length(UVERBS_ATTR_UHW_IN) < offsetof(mlx5_ib_create_srq, reserved0)) return -EINVAL;
  if (const int failed = request.get(UVERBS_ATTR_UHW_IN, driver)) return failed;
  if (driver.flags != 0) return -EOPNOTSUPP;  // signatures
  if (driver.reserved0 != 0 || driver.reserved1 != 0) return -EINVAL;
  srq->events.element = request.word(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE);
  srq->events.async = async_;

  // As libmlx5 lays it out: one entry more than asked for, each a link and the pieces, powers of two.
  nic::SrqRequest wanted;
  wanted.pd = srq->pd->number;
  if (srq->xrcd != nullptr) {
    wanted.xrcd = srq->xrcd->domain->number;
    wanted.cqn = srq->cq->number;
    wanted.user_index = driver.uidx & 0xffffff;
    wanted.says_srqn = cqe_version_ == 0;
  }
  wanted.entries = std::bit_ceil(srq->max_wr + 1);
  const std::uint32_t stride = std::max(32u, std::bit_ceil(kSegmentBytes + srq->max_sge * kSegmentBytes));
  wanted.stride_log2 = static_cast<std::uint32_t>(std::countr_zero(stride));
  wanted.ring = device_->memory().lasting(driver.buf_addr, std::uint64_t{wanted.entries} * stride, true);
  wanted.record = device_->memory().lasting(driver.db_addr, 4, true);
  wanted.user = reinterpret_cast<std::uintptr_t>(&srq->events);
  if (wanted.ring == nullptr || wanted.record == nullptr) return -EFAULT;
  const auto made = engine_->create_srq(wanted);
  if (!made) return -errno_of(made.error());
  srq->number = *made;
  srq->max_wr = wanted.entries - 1;
  srq->max_sge = stride / kSegmentBytes - 1;
  if (limit != 0) (void)engine_->arm_srq(*made, limit);

  Srq& kept = *srq;
  const std::uint32_t handle = objects_.add(std::move(srq));
  mlx5_ib_create_srq_resp out{};
  out.srqn = kept.number;
  int failed = request.put(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, kept.max_wr);
  if (failed == 0) failed = request.put(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, kept.max_sge);
  if (failed == 0) failed = request.put(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, kept.number);
  if (failed == 0) failed = request.put(UVERBS_ATTR_UHW_OUT, out);
  if (failed == 0) failed = request.put_word(UVERBS_ATTR_CREATE_SRQ_HANDLE, handle);
  if (failed != 0) {
    (void)engine_->destroy_srq(kept.number);
    objects_.remove(handle);
    return failed;
  }
  ++kept.pd->users;
  if (kept.xrcd != nullptr) ++kept.xrcd->users;
  if (kept.cq != nullptr) ++kept.cq->users;
  return 0;
}

int Context::destroy_srq(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_DESTROY_SRQ_HANDLE);
  Srq* const srq = objects_.find<Srq>(handle);
  if (srq == nullptr) return -ENOENT;
  if (srq->users != 0) return -EBUSY;
  if (const Status destroyed = engine_->destroy_srq(srq->number); !destroyed) return -errno_of(destroyed.error());
  ib_uverbs_destroy_srq_resp out{};
  out.events_reported = srq->events.async_read();
  --srq->pd->users;
  if (srq->xrcd != nullptr) --srq->xrcd->users;
  if (srq->cq != nullptr) --srq->cq->users;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return request.put(UVERBS_ATTR_DESTROY_SRQ_RESP, out);
}

int Context::modify_srq(WriteCall& call) {
  ib_uverbs_modify_srq wanted{};
  if (const int failed = call.get(wanted)) return failed;
  const Srq* const srq = objects_.find<Srq>(wanted.srq_handle);
  if (srq == nullptr) return -EINVAL;
  if ((wanted.attr_mask & kMaxWr) != 0) return -EINVAL;  // as mlx5: it cannot be resized
  if ((wanted.attr_mask & kLimit) == 0) return 0;
  if (wanted.srq_limit >= srq->max_wr) return -EINVAL;
  const Status armed = engine_->arm_srq(srq->number, wanted.srq_limit);
  return armed ? 0 : -errno_of(armed.error());
}

int Context::query_srq(WriteCall& call) {
  ib_uverbs_query_srq asked{};
  if (const int failed = call.get(asked)) return failed;
  const Srq* const srq = objects_.find<Srq>(asked.srq_handle);
  if (srq == nullptr) return -EINVAL;
  const auto limit = engine_->srq_limit(srq->number);
  if (!limit) return -errno_of(limit.error());
  ib_uverbs_query_srq_resp out{};
  out.max_wr = srq->max_wr;
  out.max_sge = srq->max_sge;
  out.srq_limit = *limit;
  return call.put(out);
}

}  // namespace strait::soft::uverbs
