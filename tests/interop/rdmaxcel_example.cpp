// SPDX-License-Identifier: Apache-2.0
// The usage example of RDMaxcel's document, completed: the cast, the doorbell and the poll that it leaves out. Queues
// of libmlx5, both ends in this process. One source: a C++ compiler runs launch_*() on this CPU, nvcc on the GPU.
//
//   rdmaxcel_example GID         over the address of that GID
//   rdmaxcel_example GID TIMES   besides, how long launch_send_wqe() and launch_db_ring() take, so many times
#include "strait/rdmaxcel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "strait/device/clock.hpp"
#include "strait/device/cpu_grid.hpp"
#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;
constexpr std::size_t kBytes = 3 * 4096;
constexpr std::uint64_t kRounds = 150;  // of three work requests: more than any ring here has entries
constexpr int kCqEntries = 63;

// One end: its queues as the document makes them, and how many completions it has taken.
struct End {
  ibv_qp* qp = nullptr;
  mlx5dv_qp* dv_qp = nullptr;
  mlx5dv_cq* dv_send_cq = nullptr;
  mlx5dv_cq* dv_recv_cq = nullptr;
  int32_t sent = 0;
  int32_t received = 0;
};

// Used by verbs before: the rings are taken over where they are then.
void write_by_verbs(End& end, const Registered& from, const Registered& to) {
  ibv_sge piece{from.at(), kBytes, from.mr->lkey};
  ibv_send_wr work{};
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma = {to.at(), to.mr->rkey};
  ibv_send_wr* bad = nullptr;
  require(ibv_post_send(end.qp, &work, &bad) == 0, "ibv_post_send");
  ibv_wc done{};
  const auto deadline = strait::device::Deadline::after_ns(kPatienceNs);
  int n = 0;
  while ((n = ibv_poll_cq(end.qp->send_cq, 1, &done)) == 0) require(!deadline.passed(), "verbs completes in time");
  require(n == 1 && done.status == IBV_WC_SUCCESS && to.bytes == from.bytes, "verbs writes");
  end.sent = 1;
}

void show(End& end) {
  end.dv_qp = create_mlx5dv_qp(end.qp);
  end.dv_send_cq = create_mlx5dv_send_cq(end.qp);
  end.dv_recv_cq = create_mlx5dv_recv_cq(end.qp);
  require(end.dv_qp != nullptr && end.dv_send_cq != nullptr && end.dv_recv_cq != nullptr, "the rings are shown");
  const auto status = register_cuda_memory(end.dv_qp, end.dv_recv_cq, end.dv_send_cq);
  require(static_cast<int>(status) == 0, "the queues are registered with the GPU");
}

void hide(End& end) {
  require(static_cast<int>(unregister_cuda_memory(end.dv_qp, end.dv_recv_cq, end.dv_send_cq)) == 0,
          "the queues are taken from the GPU");
  destroy_mlx5dv_cq(end.dv_recv_cq);
  destroy_mlx5dv_cq(end.dv_send_cq);
  destroy_mlx5dv_qp(end.dv_qp);
  require(destroy_qp(end.qp) == 0, "the queue pair goes");
}

wqe_params_t send_params(const End& end, uint32_t op_type, uint64_t work_id, const Registered& local,
                         const Registered& remote) {
  wqe_params_t params = {
      .laddr = local.at(),
      .lkey = local.mr->lkey,
      .length = kBytes,
      .wr_id = work_id,
      .signaled = true,
      .op_type = op_type,
      .raddr = remote.at(),
      .rkey = remote.mr->rkey,
      .qp_num = end.qp->qp_num,
      .buf = static_cast<uint8_t*>(end.dv_qp->sq.buf),
      .dbrec = end.dv_qp->dbrec,
      .wqe_cnt = end.dv_qp->sq.wqe_cnt,
  };
  return params;
}

void settled(const End& end, const char* what) {
  const int status = rdmaxcel_last_status(end.qp->qp_num);
  if (status != RDMAXCEL_SUCCESS) std::fprintf(stderr, "%s\n", rdmaxcel_error_string(status));
  require(status == RDMAXCEL_SUCCESS, what);
}

void post(End& end, const wqe_params_t& params, bool launched) {
  if (launched) {
    launch_send_wqe(params);
    launch_db_ring(end.dv_qp->bf.reg, end.dv_qp->sq.buf);
  } else {
    send_wqe(params);
    db_ring(end.dv_qp->bf.reg, end.dv_qp->sq.buf);
  }
}

cqe_poll_result_t wait_for(mlx5dv_cq* dv_cq, int32_t index, bool launched) {
  const auto deadline = strait::device::Deadline::after_ns(kPatienceNs);
  for (;;) {
    const cqe_poll_params_t params{static_cast<uint8_t*>(dv_cq->buf), dv_cq->cqe_size, static_cast<uint32_t>(index),
                                   dv_cq->cqe_cnt, dv_cq->dbrec};
    const cqe_poll_result_t result = launched ? launch_cqe_poll(dv_cq, index) : rdmaxcel_cqe_poll(params);
    if (result != CQE_POLL_FALSE) return result;
    require(!deadline.passed(), "a completion comes in time");
  }
}

void complete(End& end, uint64_t work_id, bool launched) {
  const cqe_poll_result_t result = wait_for(end.dv_send_cq, end.sent++, launched);
  if (result != CQE_POLL_TRUE)
    std::fprintf(stderr, "%s, syndrome 0x%02x\n", rdmaxcel_error_string(result.status), result.syndrome);
  require(result == CQE_POLL_TRUE && result.wr_id_known && result.wr_id == work_id, "a work request completes");
  require(result.qp_num == end.qp->qp_num, "on its queue pair");
}

void write_read_send(End& a, End& b, Registered& local, Registered& remote, Registered& back, bool launched) {
  for (uint64_t i = 0; i < kRounds; ++i) {
    local.bytes[i] ^= 0x5a;
    post(a, send_params(a, MLX5_OPCODE_RDMA_WRITE, 3 * i, local, remote), launched);
    complete(a, 3 * i, launched);
    require(remote.bytes == local.bytes, "a write carries the bytes");
    post(a, send_params(a, MLX5_OPCODE_RDMA_READ, 3 * i + 1, back, remote), launched);
    complete(a, 3 * i + 1, launched);
    require(back.bytes == local.bytes, "a read brings them back");

    std::fill(remote.bytes.begin(), remote.bytes.end(), std::uint8_t{0});
    wqe_params_t receive = send_params(b, 0, 1000 + i, remote, remote);
    receive.buf = static_cast<uint8_t*>(b.dv_qp->rq.buf);
    receive.wqe_cnt = b.dv_qp->rq.wqe_cnt;
    if (launched)
      launch_recv_wqe(receive);
    else
      recv_wqe(receive);
    post(a, send_params(a, MLX5_OPCODE_SEND, 3 * i + 2, local, remote), launched);
    complete(a, 3 * i + 2, launched);
    const cqe_poll_result_t got = wait_for(b.dv_recv_cq, b.received++, launched);
    require(got == CQE_POLL_TRUE && got.wr_id == 1000 + i && got.byte_count == kBytes && got.opcode == 2,
            "the receive says what came");
    require(remote.bytes == local.bytes, "a message carries the bytes");
  }
  settled(a, "no call of the sender was refused");
  settled(b, "no call of the receiver was refused");
}

// A grid of one thread, until it has run.
template <class Kernel, class... Parameters>
void run_kernel(Kernel kernel, Parameters... parameters) {
#if defined(__CUDACC__)
  kernel<<<1, 1>>>(parameters...);
  require(cudaDeviceSynchronize() == cudaSuccess, "a kernel runs");
#else
  strait::device::run_on_cpu({}, [&](unsigned, unsigned) { kernel(parameters...); });
#endif
}

int32_t wait_by_kernels(mlx5dv_cq* dv_cq, int32_t index) {
  const strait::rdmaxcel::Runtime& runtime = strait::rdmaxcel::registry.runtime;
  auto* const result = static_cast<int32_t*>(runtime.allocate(sizeof(int32_t), true));
  require(result != nullptr, "there is room for an answer");
  const cqe_poll_params_t params{static_cast<uint8_t*>(dv_cq->buf), dv_cq->cqe_size, static_cast<uint32_t>(index),
                                 dv_cq->cqe_cnt, dv_cq->dbrec};
  const auto deadline = strait::device::Deadline::after_ns(kPatienceNs);
  do {
    require(!deadline.passed(), "a kernel sees a completion in time");
    *result = 12345;
    run_kernel(cu_cqe_poll, result, params);
  } while (*result == -1);
  const int32_t polled = *result;
  runtime.release(result, true);
  return polled;
}

// The kernels themselves, as a program with a grid of its own calls them. The queues are with the GPU.
void by_kernels(End& a, End& b, Registered& local, Registered& remote) {
  for (uint64_t i = 0; i < 8; ++i) {
    local.bytes[i] ^= 0xa5;
    run_kernel(cu_send_wqe, send_params(a, MLX5_OPCODE_RDMA_WRITE, i, local, remote));
    run_kernel(cu_db_ring, a.dv_qp->bf.reg, a.dv_qp->sq.buf);
    require(wait_by_kernels(a.dv_send_cq, a.sent++) >= 0, "a kernel's write completes");
    require(remote.bytes == local.bytes, "a kernel's write carries the bytes");

    std::fill(remote.bytes.begin(), remote.bytes.end(), std::uint8_t{0});
    wqe_params_t receive = send_params(b, 0, 1000 + i, remote, remote);
    receive.buf = static_cast<uint8_t*>(b.dv_qp->rq.buf);
    receive.wqe_cnt = b.dv_qp->rq.wqe_cnt;
    run_kernel(cu_recv_wqe, receive);
    run_kernel(cu_send_wqe, send_params(a, MLX5_OPCODE_SEND, 100 + i, local, remote));
    run_kernel(cu_db_ring, a.dv_qp->bf.reg, a.dv_qp->sq.buf);
    require(wait_by_kernels(a.dv_send_cq, a.sent++) >= 0, "a kernel's message completes");
    require(wait_by_kernels(b.dv_recv_cq, b.received++) == static_cast<int32_t>(kBytes), "a kernel's receive is used");
    require(remote.bytes == local.bytes, "a kernel's message carries the bytes");
  }
  settled(a, "no kernel of the sender was refused");
  settled(b, "no kernel of the receiver was refused");
}

// Both launches together, as their caller sees them: when they return, and when they have run.
void time_launches(End& a, Registered& local, Registered& remote, uint64_t times) {
  constexpr uint64_t kBatch = 8;
  uint64_t returned_ns = 0, run_ns = 0, pairs = 0;
  for (uint64_t i = 0; i < times; i += kBatch) {
    wqe_params_t params = send_params(a, MLX5_OPCODE_RDMA_WRITE, i, local, remote);
    params.length = 8;
    const uint64_t start = strait::device::now_ns();
    for (uint64_t k = 0; k < kBatch; ++k, ++pairs) {
      params.signaled = k + 1 == kBatch;
      post(a, params, true);
    }
    returned_ns += strait::device::now_ns() - start;
    require(strait::rdmaxcel::registry.runtime.settle() == 0, "the launches run");
    run_ns += strait::device::now_ns() - start;
    complete(a, i, true);
  }
  if (pairs == 0) return;
  std::printf("launch_send_wqe and launch_db_ring: %.2f us until they return, %.2f us until they have run\n",
              static_cast<double>(returned_ns) / 1e3 / static_cast<double>(pairs),
              static_cast<double>(run_ns) / 1e3 / static_cast<double>(pairs));
}

// A key that is none: the error comes with its syndrome, and is no "nothing there".
void fail_visibly(End& a, Registered& local, Registered& remote) {
  wqe_params_t params = send_params(a, MLX5_OPCODE_RDMA_WRITE, 77, local, remote);
  params.rkey ^= 0x5500;
  post(a, params, true);
  const cqe_poll_result_t result = wait_for(a.dv_send_cq, a.sent++, true);
  require(result == CQE_POLL_ERROR && result.status == RDMAXCEL_COMPLETION_FAILED, "a failure is an error");
  require(result.syndrome == 0x13 && result.wr_id_known && result.wr_id == 77, "it says remote access, and whose");
}

void run(const Host& host, rdma_qp_type_t type, uint64_t times) {
  End a, b;
  a.qp = create_qp(host.context, host.pd, kCqEntries, 16, 16, 1, 1, type);
  b.qp = create_qp(host.context, host.pd, kCqEntries, 16, 16, 1, 1, type);
  require(a.qp != nullptr && b.qp != nullptr, "create_qp makes queue pairs");
  connect(host, a.qp, b.qp->qp_num, host.gid);
  connect(host, b.qp, a.qp->qp_num, host.gid);
  {
    Registered local(host.pd, kBytes, 1);
    Registered remote(host.pd, kBytes, 2);
    Registered back(host.pd, kBytes, 3);
    if (type == RDMA_QP_TYPE_STANDARD) write_by_verbs(a, local, remote);
    show(a);
    show(b);
    write_read_send(a, b, local, remote, back, false);
    write_read_send(a, b, local, remote, back, true);
    by_kernels(a, b, local, remote);
    write_read_send(a, b, local, remote, back, false);  // and home again
    time_launches(a, local, remote, times);
    fail_visibly(a, local, remote);
    hide(a);
    hide(b);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Host host = open_host(argc > 1 ? std::atoi(argv[1]) : 0, false);
  require(
      create_qp(host.context, host.pd, kCqEntries, 16, 16, 1, 1, RDMA_QP_TYPE_EFA) == nullptr && errno == EOPNOTSUPP,
      "EFA is refused");
  const uint64_t times = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  run(host, RDMA_QP_TYPE_STANDARD, times);
  run(host, RDMA_QP_TYPE_MLX5DV, times);
  close_host(host);
  std::puts("rdmaxcel: the example runs");
  return 0;
}
