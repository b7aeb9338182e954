// SPDX-License-Identifier: Apache-2.0
// XRC domains, and targets: queue pairs that have no queues, only a domain whose shared receive queues they serve.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

int Context::open_xrcd(WriteCall& call) {
  ib_uverbs_open_xrcd wanted{};
  if (const int failed = call.get(wanted)) return failed;
  if (const int failed = need_engine()) return failed;
  auto xrcd = std::make_unique<Xrcd>();
  // -1, and nothing else, means no file.
  const int fd = static_cast<int>(wanted.fd);
  if (fd < -1) return -EBADF;
  if (const int failed = device_->xrc().open(*engine_, fd, wanted.oflags, xrcd->domain)) return failed;
  XrcDomain& domain = *xrcd->domain;
  ib_uverbs_open_xrcd_resp out{};
  out.xrcd_handle = objects_.add(std::move(xrcd));
  if (const int failed = call.put(out)) {
    objects_.remove(out.xrcd_handle);
    (void)device_->xrc().close(*engine_, domain);
    return failed;
  }
  return 0;
}

int Context::destroy_xrcd(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_DESTROY_XRCD_HANDLE);
  const Xrcd* const xrcd = objects_.find<Xrcd>(handle);
  if (xrcd == nullptr) return -ENOENT;
  if (xrcd->users != 0) return -EBUSY;
  if (const int failed = device_->xrc().close(*engine_, *xrcd->domain)) return failed;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

int Context::create_target(Request& request) {
  auto qp = std::make_unique<Qp>();
  qp->type = nic::QpType::xrc_tgt;
  qp->xrcd = objects_.find<Xrcd>(request.word(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE));
  if (qp->xrcd == nullptr) return -ENOENT;
  if (const int failed = request.get(UVERBS_ATTR_CREATE_QP_CAP, qp->cap)) return failed;
  qp->events.element = request.word(UVERBS_ATTR_CREATE_QP_USER_HANDLE);
  qp->events.async = async_;
  if (const int failed = device_->xrc().make_target(*engine_, *qp->xrcd->domain, qp->events, qp->target)) return failed;
  qp->number = qp->target->number;

  Qp& kept = *qp;
  const std::uint32_t handle = objects_.add(std::move(qp));
  const mlx5_ib_create_qp_resp out{};
  int failed = request.put(UVERBS_ATTR_CREATE_QP_RESP_CAP, kept.cap);
  if (failed == 0) failed = request.put(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, kept.number);
  if (failed == 0) failed = request.put(UVERBS_ATTR_UHW_OUT, out);
  if (failed == 0) failed = request.put_word(UVERBS_ATTR_CREATE_QP_HANDLE, handle);
  if (failed != 0) {
    (void)destroy(kept);
    objects_.remove(handle);
    return failed;
  }
  ++kept.xrcd->users;
  return 0;
}

int Context::open_qp(WriteCall& call) {
  ib_uverbs_open_qp wanted{};
  if (const int failed = call.get(wanted)) return failed;
  if (wanted.qp_type != IB_UVERBS_QPT_XRC_TGT) return -EINVAL;
  auto qp = std::make_unique<Qp>();
  qp->type = nic::QpType::xrc_tgt;
  qp->xrcd = objects_.find<Xrcd>(wanted.pd_handle);  // the field is older than XRC
  if (qp->xrcd == nullptr) return -EINVAL;
  qp->events.element = wanted.user_handle;
  qp->events.async = async_;
  XrcDomain& domain = *qp->xrcd->domain;
  if (const int failed = device_->xrc().open_target(domain, wanted.qpn, qp->events, qp->target)) return failed;
  qp->number = wanted.qpn;

  Qp& kept = *qp;
  ib_uverbs_create_qp_resp out{};
  out.qpn = kept.number;
  out.qp_handle = objects_.add(std::move(qp));
  if (const int failed = call.put(out)) {
    (void)destroy(kept);
    objects_.remove(out.qp_handle);
    return failed;
  }
  ++kept.xrcd->users;
  return 0;
}

}  // namespace strait::soft::uverbs
