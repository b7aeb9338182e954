// SPDX-License-Identifier: Apache-2.0
// The same 8-byte inline write on the same kind of queue pair, built, rung and reaped twice: by strait/device in rings
// that libmlx5 made, and by libmlx5 itself (ibv_wr_*, extended completion queue). Runs under `strait run`;
// count_verbs_ring.sh counts the instructions of the functions called count_*.
//
//   verbs_ring ours|verbs COUNT
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdlib>
#include <cstring>

#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/wait.hpp"
#include "verbs_objects.hpp"

namespace {

using namespace strait;
using interop::require;
constexpr auto kOwner = device::Sharing::one_thread;

ibv_qp_ex* g_qp = nullptr;
ibv_cq_ex* g_cq = nullptr;
device::SendRing g_send{};
device::CompletionRing g_completions{};

}  // namespace

extern "C" {

[[gnu::noinline]] bool count_ours_post(std::uint64_t address, std::uint32_t rkey, std::uint64_t value) {
  const device::Pending pending =
      device::post_write_inline<kOwner>(g_send, {address, rkey}, &value, sizeof value, device::kSignaled);
  device::ring_doorbell<kOwner>(g_send);
  return pending.ok();
}

[[gnu::noinline]] bool count_ours_reap() {
  device::Completion completion;
  bool other = false;
  const auto polled = device::reap<kOwner, device::CompletionMode::normal>(g_send, g_completions, completion, other);
  return polled == device::Polled::done && !other;
}

[[gnu::noinline]] bool count_verbs_post(std::uint64_t address, std::uint32_t rkey, std::uint64_t value) {
  ibv_wr_start(g_qp);
  g_qp->wr_id = address;
  g_qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(g_qp, rkey, address);
  ibv_wr_set_inline_data(g_qp, &value, sizeof value);
  return ibv_wr_complete(g_qp) == 0;
}

[[gnu::noinline]] bool count_verbs_reap() {
  ibv_poll_cq_attr attributes{};
  if (ibv_start_poll(g_cq, &attributes) != 0) return false;
  const bool done = g_cq->status == IBV_WC_SUCCESS;
  ibv_end_poll(g_cq);
  return done;
}
}

namespace {

ibv_qp* make_qp(const interop::Host& host, ibv_cq* cq) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {64, 1, 1, 1, 64};
  init.pd = host.pd;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  ibv_qp* const qp = ibv_create_qp_ex(host.context, &init);
  require(qp != nullptr, "a queue pair");
  return qp;
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 3, "called as verbs_ring ours|verbs COUNT");
  const bool ours = std::strcmp(argv[1], "ours") == 0;
  const long count = std::atol(argv[2]);
  interop::Host host = interop::open_host(0, false);
  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 255;
  g_cq = ibv_create_cq_ex(host.context, &cq_init);
  require(g_cq != nullptr, "an extended completion queue");
  ibv_qp* const qp = make_qp(host, ibv_cq_ex_to_cq(g_cq));
  ibv_qp* const peer = make_qp(host, ibv_cq_ex_to_cq(g_cq));
  g_qp = ibv_qp_to_qp_ex(qp);
  interop::connect(host, qp, peer->qp_num, host.gid);
  interop::connect(host, peer, qp->qp_num, host.gid);
  mlx5dv_qp dv_qp{};
  mlx5dv_cq dv_cq{};
  mlx5dv_obj objects{};
  objects.qp = {qp, &dv_qp};
  objects.cq = {ibv_cq_ex_to_cq(g_cq), &dv_cq};
  require(mlx5dv_init_obj(&objects, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) == 0, "mlx5dv_init_obj");
  const auto log2_of = [](std::uint32_t n) { return static_cast<std::uint32_t>(__builtin_ctz(n)); };
  require(device::open_send_ring(g_send,
                                 {dv_qp.sq.buf, log2_of(dv_qp.sq.wqe_cnt), qp->qp_num,
                                  reinterpret_cast<wire::mlx5::QueueRecord*>(dv_qp.dbrec), dv_qp.bf.reg, nullptr, 0}) &&
              device::open_completion_ring(g_completions, {dv_cq.buf, log2_of(dv_cq.cqe_cnt), dv_cq.cqe_size,
                                                           reinterpret_cast<wire::mlx5::CqRecord*>(dv_cq.dbrec), 0}),
          "rings");
  alignas(8) static std::uint64_t target = 0;
  ibv_mr* const mr = ibv_reg_mr(host.pd, &target, sizeof target, interop::kAccess);
  require(mr != nullptr, "memory");
  const auto address = reinterpret_cast<std::uintptr_t>(&target);
  device::CompletionRing look = g_completions;  // sees the entry come, before anything is counted
  for (long i = 1; i <= count; ++i) {
    const auto value = static_cast<std::uint64_t>(i);
    require(ours ? count_ours_post(address, mr->rkey, value) : count_verbs_post(address, mr->rkey, value), "a post");
    const auto deadline = device::Deadline::after_ns(interop::kPatienceNs);
    while (device::next_entry(look).cqe == nullptr) require(!deadline.passed(), "a completion in time");
    ++look.consumed;
    require(ours ? count_ours_reap() : count_verbs_reap(), "a completion");
    require(target == value, "the bytes");
  }
  return 0;
}
