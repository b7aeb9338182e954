// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/context.hpp"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "soft/uverbs/doorbell_trap.hpp"
#include "soft/uverbs/limits.hpp"
#include "soft/uverbs/methods.hpp"
#include "soft/uverbs/pages.hpp"
#include "sys/clock.hpp"

namespace strait::soft::uverbs {

int errno_of(const Error& error) {
  if (error.sys_errno != 0) return error.sys_errno;
  switch (error.code) {
    case Code::invalid: return EINVAL;
    case Code::again: return EBUSY;
    case Code::limit: return ENOMEM;
    case Code::unsupported: return EOPNOTSUPP;
    case Code::denied: return EACCES;
    case Code::timeout: return ETIMEDOUT;
    default: return EIO;
  }
}

long Context::ioctl(unsigned long request, void* argument) {
  if (request != RDMA_VERBS_IOCTL) return -ENOTTY;
  try {
    return call(reinterpret_cast<std::uintptr_t>(argument));
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::exception&) {
    return -EIO;
  }
}

int Context::call(std::uint64_t argument) {
  const std::scoped_lock lock(mutex_);
  Request request(device_->memory());
  if (const int failed = request.read(argument, RDMA_DRIVER_MLX5)) return failed;
  const Method* const method = Tables::find(request.method());
  if (method == nullptr) return -EPROTONOSUPPORT;
  if (const int failed = request.check(method->attributes)) return failed;
  if (!opened_ && !method->before_context) return -EINVAL;
  return (this->*method->handler)(request);
}

mlx5_ib_alloc_ucontext_resp Context::describe(std::uint32_t doorbells) const {
  mlx5_ib_alloc_ucontext_resp out{};
  out.qp_tab_size = limits::kQueuePairs;
  out.bf_reg_size = 512;
  out.tot_bfregs = doorbells;
  out.cache_line_size = 64;
  out.max_sq_desc_sz = limits::kSendDescriptorBytes;
  out.max_rq_desc_sz = limits::kReceiveDescriptorBytes;
  out.max_send_wqebb = limits::kSendBlocks;
  out.max_recv_wr = limits::kWorkRequests;
  out.max_srq_recv_wr = limits::kWorkRequests;
  out.num_ports = 1;
  out.response_length = sizeof out;
  out.cqe_version = cqe_version_;
  out.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
  out.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
  if (clock_.valid()) out.clock_info_versions = 1u << MLX5_IB_CLOCK_INFO_V1;
  out.log_uar_size = 12;
  out.num_uars_per_page = 1;
  return out;
}

// Timestamps are in nanoseconds of the monotonic clock. The page says what time of day that is.
void Context::write_clock() {
  if (!pages_.valid()) return;
  const std::size_t page = sys::page_bytes();
  auto mapped = sys::map_file(pages_.get(), pages::kClock * page, page, sys::Protect::read_write);
  if (!mapped) return;  // no clock then
  mlx5_ib_clock_info info{};
  info.cycles = static_cast<std::uint64_t>(sys::now_ns());
  info.nsec = static_cast<std::uint64_t>(sys::wall_ns());
  info.mult = 1;
  info.mask = ~std::uint64_t{0};
  info.overflow_period = std::uint64_t{1} << 62;
  std::memcpy(mapped->data(), &info, sizeof info);
  clock_ = std::move(*mapped);
}

int Context::get_context(Request& request) {
  if (opened_) return -EINVAL;
  mlx5_ib_alloc_ucontext_req_v2 asked{};
  if (const int failed = request.get(UVERBS_ATTR_UHW_IN, asked)) return failed;
  if (request.length(UVERBS_ATTR_UHW_IN) < sizeof(mlx5_ib_alloc_ucontext_req)) return -EINVAL;
  if ((asked.flags & ~std::uint32_t{MLX5_IB_ALLOC_UCTX_DEVX}) != 0) return -EINVAL;
  if (asked.comp_mask != 0 || asked.reserved0 != 0 || asked.reserved1 != 0 || asked.reserved2 != 0) return -EOPNOTSUPP;
  cqe_version_ = std::min<std::uint8_t>(asked.max_cqe_version, 1);

  write_clock();
  // A library that knows how gets doorbell pages one by one (UAR_OBJ_ALLOC).
  const auto out = describe((asked.lib_caps & MLX5_LIB_CAP_DYN_UAR) != 0 ? 0 : limits::kDoorbells);
  if (const int failed = request.put(UVERBS_ATTR_UHW_OUT, out)) return failed;
  if (const int failed = query_context(request)) return failed;
  opened_ = true;
  devx_ = (asked.flags & MLX5_IB_ALLOC_UCTX_DEVX) != 0;
  return 0;
}

int Context::query_context(Request& request) {
  static_assert(int{UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS} == int{UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS} &&
                int{UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT} == int{UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT});
  const std::uint32_t vectors = limits::kCompletionVectors;
  const std::uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
  if (const int failed = request.put(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors)) return failed;
  // Another part of the program has got this descriptor. It finds no doorbells shared out by number, and asks for
  // pages.
  if (request.has(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX)) {
    if (const int failed = request.put(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, describe(0))) return failed;
  }
  return request.put(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, support);
}

int Context::alloc_async(Request& request) {
  auto made = sys::EventPipe::make();
  if (!made) return -errno_of(made.error());
  if (const int failed =
          request.put_word(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, static_cast<std::uint64_t>(made->reader.get())))
    return failed;
  (void)made->reader.release();  // the program's from now on
  async_ = std::make_shared<Channel>(std::move(made->pipe));
  device_->events().listen(async_);
  return 0;
}

int Context::need_engine() {
  if (engine_ != nullptr) return 0;
  auto engine = device_->engine();
  if (!engine) return -errno_of(engine.error());
  engine_ = *engine;
  return 0;
}

// Who makes a queue pair has mapped its doorbell by then, and rings it only afterwards.
void Context::trap_pages() {
  Progress* const progress = device_->progress();
  if (progress == nullptr || !progress->traps() || !pages_.valid()) return;
  trap_doorbells(pages_.get(), *progress, this);
}

// From what uses others to what is used.
Context::~Context() {
  if (device_->in_child()) return;
  const std::scoped_lock lock(mutex_);
  if (pages_.valid()) release_doorbells(pages_.get(), this);
  objects_.each<Qp>([&](std::uint32_t, Qp& qp) { (void)destroy(qp); });
  objects_.each<Srq>([&](std::uint32_t, Srq& srq) { (void)engine_->destroy_srq(srq.number); });
  objects_.each<Xrcd>([&](std::uint32_t, Xrcd& xrcd) { (void)device_->xrc().close(*engine_, *xrcd.domain); });
  objects_.each<Cq>([&](std::uint32_t, Cq& cq) { (void)engine_->destroy_cq(cq.number); });
  objects_.each<Mw>([&](std::uint32_t, Mw& mw) { (void)engine_->free_window(mw.key); });
  objects_.each<Mr>([&](std::uint32_t, Mr& mr) { (void)drop_mr(mr); });
  objects_.each<Pd>([&](std::uint32_t, Pd& pd) { (void)engine_->free_pd(pd.number); });
}

}  // namespace strait::soft::uverbs
