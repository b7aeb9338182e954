// SPDX-License-Identifier: Apache-2.0
// RDMaxcel's calls over the ring code of strait/device: same names, same signatures, names in the global namespace.
// docs/rdmaxcel.md has the table of calls and of RDMaxcel's 15 defects; in short, what a call does about them:
//
//   send_wqe    finds the ring by (buf, qp_num), reserves its slot itself (wr_id is the caller's name, not an index),
//   64
//               bits count, 16 go to the wire [1, 14]; SEND has no remote segment [3]; lengths beyond a message, and
//               operations the parameters cannot say, are refused, zero length has no data segment [3, 4]; signaled is
//               not solicited [5]; whole segments [6]; a full ring is refused [7]; any number of posters [8].
//   recv_wqe    the same, to the next slot, with its terminator, and shows it [1, 2].
//   db_ring     record, then 8 bytes of doorbell, each behind its fence, for everything posted so far on the queue that
//               owns `src`; never 64 bytes to a register [6, 8, 9].
//   cqe_poll    acquires, knows every opcode, writes -1 (empty), -2 (error or refused) or the byte count whatever the
//               result held before [10]; takes only the index that is next by its own 64 bits [15].
//   launch_*    one kernel of one thread each, no device-wide wait, no allocation; errors are answered [11].
//   register_cuda_memory, create_qp: whole pages, counted, all or nothing, with an undo [12, 13].
//
// A refusal changes nothing and is told by rdmaxcel_last_status(), or at once by the rdmaxcel_*() form of the call.
// Beyond the parameters (immediates, inline, atomics, fences, lists): post with strait/device on rdmaxcel_send_ring(),
// many_threads, and ring with db_ring().
//
// With a CUDA compiler cu_* are kernels and statuses cudaError_t. Without, cu_* and launch_* run on this CPU, as the
// one thread of their grid, and statuses are int. Link libibverbs and libmlx5.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "strait/rdmaxcel/queues.hpp"
#include "strait/rdmaxcel/registry.hpp"
#include "strait/rdmaxcel/types.hpp"
#if defined(__CUDACC__)
#include "strait/rdmaxcel/cuda.hpp"
typedef cudaError_t rdmaxcel_cuda_status_t;
#define STRAIT_RDMAXCEL_KERNEL [[maybe_unused]] static __global__
// Whatever the grid, one thread posts: the parameters are those of one work request.
#define STRAIT_RDMAXCEL_ONE_THREAD \
  (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0 && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0)
#define STRAIT_RDMAXCEL_LAUNCH(status, kernel, ...)                 \
  kernel<<<1, 1, 0, strait::rdmaxcel::cuda::stream>>>(__VA_ARGS__); \
  status = static_cast<int>(cudaGetLastError())
#else
typedef int rdmaxcel_cuda_status_t;
#define STRAIT_RDMAXCEL_KERNEL inline
#define STRAIT_RDMAXCEL_ONE_THREAD true
#define STRAIT_RDMAXCEL_LAUNCH(status, kernel, ...)      \
  status = strait::rdmaxcel::registry.runtime.started(); \
  if (status == 0) kernel(__VA_ARGS__)
#endif

// ---- Queue pairs --------------------------------------------------------------------------------------------------

// A reliable connection with two completion queues of its own, or null and errno; then nothing is left behind.
inline ibv_qp* create_qp(ibv_context* context, ibv_pd* pd, int cq_entries, int max_send_wr, int max_recv_wr,
                         int max_send_sge, int max_recv_sge, rdma_qp_type_t qp_type);
// The same on completion queues of the caller's, which several queue pairs may share.
inline ibv_qp* rdmaxcel_create_qp_on(ibv_context* context, ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq,
                                     int max_send_wr, int max_recv_wr, int max_send_sge, int max_recv_sge,
                                     rdma_qp_type_t qp_type);
// Of create_qp(): the queue pair and its completion queues. 0 or an errno.
inline int destroy_qp(ibv_qp* qp);

// Where the rings of a queue pair are. They become known here, in the state they are in: nothing may be in flight. From
// then on verbs calls neither post nor poll on them. Null and errno if it fails; each has its destroy.
inline mlx5dv_qp* create_mlx5dv_qp(ibv_qp* qp);
inline mlx5dv_cq* create_mlx5dv_cq(ibv_qp* qp);  // RDMaxcel's: the receiving one
inline mlx5dv_cq* create_mlx5dv_send_cq(ibv_qp* qp);
inline mlx5dv_cq* create_mlx5dv_recv_cq(ibv_qp* qp);
inline void destroy_mlx5dv_qp(mlx5dv_qp* dv_qp);
inline void destroy_mlx5dv_cq(mlx5dv_cq* dv_cq);

// For queues that are not of verbs: what create_mlx5dv_qp() and create_mlx5dv_*_cq() do with what they found. 0 or an
// errno. The parameters are read, not kept.
inline int rdmaxcel_register_qp(uint32_t qp_num, const mlx5dv_qp* dv_qp, const mlx5dv_cq* dv_recv_cq,
                                const mlx5dv_cq* dv_send_cq);
inline void rdmaxcel_unregister_qp(const mlx5dv_qp* dv_qp);
inline int rdmaxcel_register_cq(const mlx5dv_cq* dv_cq);
inline void rdmaxcel_unregister_cq(const mlx5dv_cq* dv_cq);

// ---- With the GPU -------------------------------------------------------------------------------------------------

// Makes rings, receive ring included, records and doorbell reachable from kernels and takes the queue there. A failure
// leaves nothing registered. As many unregister as register.
static inline rdmaxcel_cuda_status_t register_cuda_memory(mlx5dv_qp* dv_qp, mlx5dv_cq* dv_recv_cq,
                                                          mlx5dv_cq* dv_send_cq);
static inline rdmaxcel_cuda_status_t unregister_cuda_memory(mlx5dv_qp* dv_qp, mlx5dv_cq* dv_recv_cq,
                                                            mlx5dv_cq* dv_send_cq);
// True: the runtime refused the doorbell as I/O memory and took it as plain memory, which is right for a NIC in
// software and for no other. Why: the runtime's answer to it as I/O memory (a cudaError_t, as a number), 0 if it took
// it.
inline bool rdmaxcel_doorbell_is_plain(const mlx5dv_qp* dv_qp);
inline int rdmaxcel_why_doorbell_is_plain(const mlx5dv_qp* dv_qp);

// ---- Answers ------------------------------------------------------------------------------------------------------

// The newest refusal on the queues of that number, once; 0: of calls that named no known queue. RDMAXCEL_SUCCESS: none.
inline int rdmaxcel_last_status(uint32_t qp_num);
// What the newest launch_*() of this thread was answered by CUDA.
inline int rdmaxcel_last_launch_status() {
  return strait::rdmaxcel::last_launch_status;
}
// The ring itself, on the CPU, for what wqe_params_t cannot say. Null: not known.
inline strait::device::SendRing* rdmaxcel_send_ring(uint32_t qp_num, const void* buf);

// ---- On CPU and GPU -----------------------------------------------------------------------------------------------

STRAIT_HD inline int32_t rdmaxcel_send_wqe(const wqe_params_t& params);
STRAIT_HD inline int32_t rdmaxcel_recv_wqe(const wqe_params_t& params);
STRAIT_HD inline int32_t rdmaxcel_db_ring(void* dst, void* src);
STRAIT_HD inline cqe_poll_result_t rdmaxcel_cqe_poll(const cqe_poll_params_t& params);

STRAIT_HD inline void send_wqe(wqe_params_t params) {
  (void)rdmaxcel_send_wqe(params);
}
STRAIT_HD inline void recv_wqe(wqe_params_t params) {
  (void)rdmaxcel_recv_wqe(params);
}
STRAIT_HD inline void db_ring(void* dst, void* src) {
  (void)rdmaxcel_db_ring(dst, src);
}
STRAIT_HD inline void cqe_poll(int32_t* result, cqe_poll_params_t params) {
  const cqe_poll_result_t polled = rdmaxcel_cqe_poll(params);
  if (result != nullptr) *result = strait::rdmaxcel::in_one_word(polled);
}

namespace strait::rdmaxcel {

// What a kernel does: the queue must be with the GPU already, since only the host can take it there.
STRAIT_HD inline std::int32_t send_there(const wqe_params_t& p) {
  std::int32_t status = 0;
  const QueueEntry* const e = sender_of(table(), p, status);
  if (status == RDMAXCEL_SUCCESS) status = e->state->on_device == 0 ? RDMAXCEL_NOT_REGISTERED : post_send(*e->state, p);
  return refuse(table(), e, status);
}
STRAIT_HD inline std::int32_t receive_there(const wqe_params_t& p) {
  std::int32_t status = 0;
  const QueueEntry* const e = receiver_of(table(), p, status);
  if (status == RDMAXCEL_SUCCESS)
    status = e->state->on_device == 0 ? RDMAXCEL_NOT_REGISTERED : post_receive(*e->state, p);
  return refuse(table(), e, status);
}
STRAIT_HD inline std::int32_t ring_there(void* dst, void* src) {
  std::int32_t status = 0;
  const QueueEntry* const e = rung_by(table(), dst, src, status);
  if (status == RDMAXCEL_SUCCESS) status = e->state->on_device == 0 ? RDMAXCEL_NOT_REGISTERED : show_sends(*e->state);
  return refuse(table(), e, status);
}
STRAIT_HD inline cqe_poll_result_t poll_there(const cqe_poll_params_t& p) {
  std::int32_t status = 0;
  const CqEntry* const e = polled_by(table(), p, status);
  if (status == RDMAXCEL_SUCCESS && e->state->on_device == 0) status = RDMAXCEL_NOT_REGISTERED;
  return status == RDMAXCEL_SUCCESS ? poll_cq(table(), *e, p.consumer_index) : refused_poll(status);
}

}  // namespace strait::rdmaxcel

STRAIT_HD inline int32_t rdmaxcel_send_wqe(const wqe_params_t& params) {
  using namespace strait::rdmaxcel;
#if defined(STRAIT_TARGET_CUDA)
  return send_there(params);
#else
  int32_t status = 0;
  const QueueEntry* const e = sender_of(host_table, params, status);
  if (status == RDMAXCEL_SUCCESS && move_to(*e, false)) status = post_send(*e->state, params);
  return refuse(host_table, e, status);
#endif
}
STRAIT_HD inline int32_t rdmaxcel_recv_wqe(const wqe_params_t& params) {
  using namespace strait::rdmaxcel;
#if defined(STRAIT_TARGET_CUDA)
  return receive_there(params);
#else
  int32_t status = 0;
  const QueueEntry* const e = receiver_of(host_table, params, status);
  if (status == RDMAXCEL_SUCCESS && move_to(*e, false)) status = post_receive(*e->state, params);
  return refuse(host_table, e, status);
#endif
}
STRAIT_HD inline int32_t rdmaxcel_db_ring(void* dst, void* src) {
  using namespace strait::rdmaxcel;
#if defined(STRAIT_TARGET_CUDA)
  return ring_there(dst, src);
#else
  int32_t status = 0;
  const QueueEntry* const e = rung_by(host_table, dst, src, status);
  if (status == RDMAXCEL_SUCCESS && move_to(*e, false)) status = show_sends(*e->state);
  return refuse(host_table, e, status);
#endif
}
STRAIT_HD inline cqe_poll_result_t rdmaxcel_cqe_poll(const cqe_poll_params_t& params) {
  using namespace strait::rdmaxcel;
#if defined(STRAIT_TARGET_CUDA)
  return poll_there(params);
#else
  int32_t status = 0;
  const CqEntry* const e = polled_by(host_table, params, status);
  if (status != RDMAXCEL_SUCCESS) return refused_poll(status);
  move_to(*e, false);
  return poll_cq(host_table, *e, params.consumer_index);
#endif
}

// ---- Kernels, and launching them ----------------------------------------------------------------------------------

STRAIT_RDMAXCEL_KERNEL void cu_send_wqe(wqe_params_t params) {
  if (STRAIT_RDMAXCEL_ONE_THREAD) (void)strait::rdmaxcel::send_there(params);
}
STRAIT_RDMAXCEL_KERNEL void cu_recv_wqe(wqe_params_t params) {
  if (STRAIT_RDMAXCEL_ONE_THREAD) (void)strait::rdmaxcel::receive_there(params);
}
STRAIT_RDMAXCEL_KERNEL void cu_db_ring(void* dst, void* src) {
  if (STRAIT_RDMAXCEL_ONE_THREAD) (void)strait::rdmaxcel::ring_there(dst, src);
}
STRAIT_RDMAXCEL_KERNEL void cu_cqe_poll(int32_t* result, cqe_poll_params_t params) {
  if (STRAIT_RDMAXCEL_ONE_THREAD) *result = strait::rdmaxcel::in_one_word(strait::rdmaxcel::poll_there(params));
}
// Of launch_*(), which has found the queue on the host: looking for it again would be half of what the kernel does.
STRAIT_RDMAXCEL_KERNEL void rdmaxcel_cu_send(strait::rdmaxcel::QueueState* state, wqe_params_t params) {
  if (STRAIT_RDMAXCEL_ONE_THREAD)
    strait::rdmaxcel::refuse(&state->refusal, strait::rdmaxcel::post_send(*state, params));
}
STRAIT_RDMAXCEL_KERNEL void rdmaxcel_cu_receive(strait::rdmaxcel::QueueState* state, wqe_params_t params) {
  if (STRAIT_RDMAXCEL_ONE_THREAD)
    strait::rdmaxcel::refuse(&state->refusal, strait::rdmaxcel::post_receive(*state, params));
}
STRAIT_RDMAXCEL_KERNEL void rdmaxcel_cu_ring(strait::rdmaxcel::QueueState* state) {
  if (STRAIT_RDMAXCEL_ONE_THREAD) strait::rdmaxcel::refuse(&state->refusal, strait::rdmaxcel::show_sends(*state));
}
STRAIT_RDMAXCEL_KERNEL void rdmaxcel_cu_cqe_poll(cqe_poll_result_t* result, cqe_poll_params_t params) {
  if (STRAIT_RDMAXCEL_ONE_THREAD) *result = strait::rdmaxcel::poll_there(params);
}

namespace strait::rdmaxcel {

// Takes the queue to the GPU if it is not there. False: it cannot be, and that has been said.
inline bool ready_to_launch(const QueueEntry* e, std::int32_t status) {
  if (status == RDMAXCEL_SUCCESS && !move_to(*e, true)) status = RDMAXCEL_NOT_REGISTERED;
  return refuse(host_table, e, status) == RDMAXCEL_SUCCESS;
}
inline void launched(const QueueEntry* e) {
  if (last_launch_status != 0) refuse(host_table, e, RDMAXCEL_LAUNCH_FAILED);
}

}  // namespace strait::rdmaxcel

// They return when the kernel is queued. The order is that of the calls.
static inline void launch_send_wqe(wqe_params_t params) {
  using namespace strait::rdmaxcel;
  int32_t status = 0;
  const QueueEntry* const e = sender_of(host_table, params, status);
  if (!ready_to_launch(e, status)) return;
  STRAIT_RDMAXCEL_LAUNCH(last_launch_status, rdmaxcel_cu_send, e->state, params);
  launched(e);
}
static inline void launch_recv_wqe(wqe_params_t params) {
  using namespace strait::rdmaxcel;
  int32_t status = 0;
  const QueueEntry* const e = receiver_of(host_table, params, status);
  if (!ready_to_launch(e, status)) return;
  STRAIT_RDMAXCEL_LAUNCH(last_launch_status, rdmaxcel_cu_receive, e->state, params);
  launched(e);
}
static inline void launch_db_ring(void* dst, void* src) {
  using namespace strait::rdmaxcel;
  int32_t status = 0;
  const QueueEntry* const e = rung_by(host_table, dst, src, status);
  if (!ready_to_launch(e, status)) return;
  STRAIT_RDMAXCEL_LAUNCH(last_launch_status, rdmaxcel_cu_ring, e->state);
  launched(e);
}
// Waits for its own stream, and for nothing else of the device.
static inline cqe_poll_result_t launch_cqe_poll(void* mlx5dv_cq_, int32_t cqe_idx) {
  using namespace strait::rdmaxcel;
  if (mlx5dv_cq_ == nullptr) return refused_poll(RDMAXCEL_NULL_ARG);
  const auto& dv = *static_cast<const mlx5dv_cq*>(mlx5dv_cq_);
  const cqe_poll_params_t params{static_cast<uint8_t*>(dv.buf), dv.cqe_size, static_cast<uint32_t>(cqe_idx), dv.cqe_cnt,
                                 dv.dbrec};
  int32_t status = 0;
  const CqEntry* const e = polled_by(host_table, params, status);
  if (status == RDMAXCEL_SUCCESS && !move_to(*e, true)) status = RDMAXCEL_NOT_REGISTERED;
  if (status != RDMAXCEL_SUCCESS) return refused_poll(status);
  CqHome& home = home_of(*e);
  const std::lock_guard one_answer(home.polling);
  STRAIT_RDMAXCEL_LAUNCH(last_launch_status, rdmaxcel_cu_cqe_poll, home.slot_there, params);
  if (last_launch_status == 0) last_launch_status = registry.runtime.settle();
  return last_launch_status == 0 ? *home.slot : refused_poll(RDMAXCEL_LAUNCH_FAILED);
}
static inline cqe_poll_result_t launch_send_cqe_poll(void* mlx5dv_cq_, int32_t cqe_idx) {
  return launch_cqe_poll(mlx5dv_cq_, cqe_idx);
}
static inline cqe_poll_result_t launch_recv_cqe_poll(void* mlx5dv_cq_, int32_t cqe_idx) {
  return launch_cqe_poll(mlx5dv_cq_, cqe_idx);
}
#if defined(__CUDACC__)
// For all launches from now on; the earlier ones are waited for.
static inline rdmaxcel_cuda_status_t rdmaxcel_use_stream(cudaStream_t stream) {
  const auto status = static_cast<cudaError_t>(strait::rdmaxcel::cuda::settle());
  strait::rdmaxcel::cuda::stream = stream;
  return status;
}
#endif

// ---- The host's part ----------------------------------------------------------------------------------------------

static inline rdmaxcel_cuda_status_t register_cuda_memory(mlx5dv_qp* dv_qp, mlx5dv_cq* dv_recv_cq,
                                                          mlx5dv_cq* dv_send_cq) {
  using namespace strait::rdmaxcel;
  const QueueEntry* const queue = find_ring(dv_qp);
  const CqEntry* const receive = find_ring(dv_recv_cq);
  const CqEntry* const send = find_ring(dv_send_cq);
  if (queue == nullptr || receive == nullptr || send == nullptr)
    return static_cast<rdmaxcel_cuda_status_t>(Runtime::kInvalid);
  return static_cast<rdmaxcel_cuda_status_t>(reach_all(*queue, *receive, *send));
}
static inline rdmaxcel_cuda_status_t unregister_cuda_memory(mlx5dv_qp* dv_qp, mlx5dv_cq* dv_recv_cq,
                                                            mlx5dv_cq* dv_send_cq) {
  using namespace strait::rdmaxcel;
  const QueueEntry* const queue = find_ring(dv_qp);
  if (queue == nullptr || home_of(*queue).registered == 0)
    return static_cast<rdmaxcel_cuda_status_t>(Runtime::kInvalid);
  leave_all(*queue, find_ring(dv_recv_cq), find_ring(dv_send_cq));
  return static_cast<rdmaxcel_cuda_status_t>(0);
}
inline bool rdmaxcel_doorbell_is_plain(const mlx5dv_qp* dv_qp) {
  return rdmaxcel_why_doorbell_is_plain(dv_qp) != 0;
}
inline int rdmaxcel_why_doorbell_is_plain(const mlx5dv_qp* dv_qp) {
  const strait::rdmaxcel::QueueEntry* const e = strait::rdmaxcel::find_ring(dv_qp);
  return e == nullptr ? 0 : strait::rdmaxcel::home_of(*e).why_plain_doorbell;
}

inline int rdmaxcel_last_status(uint32_t qp_num) {
  using namespace strait::rdmaxcel;
  const auto take = [](std::uint64_t* word) {
    return -static_cast<int>(__atomic_exchange_n(word, 0, __ATOMIC_RELAXED));
  };
  if (qp_num == 0) {
    const int here = take(&host_refusal);
    auto* const shared = reinterpret_cast<std::uint64_t*>(word_of(host_table.nobodys_refusal));
    const int there = shared == nullptr ? 0 : take(shared);
    return there != 0 ? there : here;
  }
  for (const QueueEntry& e : host_table.queues) {
    if ((strait::device::load_acquire<kScope>(&e.life) & 1) == 0 || word_of(e.qpn) != qp_num) continue;
    // A launch may not have run yet.
    if (__atomic_load_n(&home_of(e).on_device, __ATOMIC_ACQUIRE)) last_launch_status = registry.runtime.settle();
    if (const int status = take(&e.state->refusal)) return status;
  }
  return RDMAXCEL_SUCCESS;
}
inline strait::device::SendRing* rdmaxcel_send_ring(uint32_t qp_num, const void* buf) {
  using namespace strait::rdmaxcel;
  const QueueEntry* const e = find_sender(host_table, buf, qp_num);
  return e != nullptr && move_to(*e, false) ? &e->state->send : nullptr;
}

inline int rdmaxcel_register_cq(const mlx5dv_cq* dv_cq) {
  return dv_cq == nullptr ? EINVAL : strait::rdmaxcel::add_cq(*dv_cq);
}
inline void rdmaxcel_unregister_cq(const mlx5dv_cq* dv_cq) {
  strait::rdmaxcel::drop_user(strait::rdmaxcel::find_ring(dv_cq));
}
inline int rdmaxcel_register_qp(uint32_t qp_num, const mlx5dv_qp* dv_qp, const mlx5dv_cq* dv_recv_cq,
                                const mlx5dv_cq* dv_send_cq) {
  if (dv_qp == nullptr || dv_recv_cq == nullptr || dv_send_cq == nullptr) return EINVAL;
  return strait::rdmaxcel::add_queue(qp_num, *dv_qp, dv_send_cq->buf, dv_recv_cq->buf);
}
inline void rdmaxcel_unregister_qp(const mlx5dv_qp* dv_qp) {
  strait::rdmaxcel::drop_user(strait::rdmaxcel::find_ring(dv_qp));
}

namespace strait::rdmaxcel {

// calloc, since programs of RDMaxcel free() what they get.
template <class Dv>
inline Dv* keep(const Dv& dv) {
  auto* const kept = static_cast<Dv*>(std::calloc(1, sizeof(Dv)));
  if (kept != nullptr) *kept = dv;
  return kept;
}
inline int look_at(ibv_cq* cq, mlx5dv_cq& dv) {
  mlx5dv_obj object{};
  object.cq.in = cq;
  object.cq.out = &dv;
  return cq == nullptr ? EINVAL : mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ);
}
inline mlx5dv_cq* show_cq(ibv_cq* cq) {
  mlx5dv_cq dv{};
  errno = look_at(cq, dv);
  if (errno == 0) errno = add_cq(dv);
  if (errno != 0) return nullptr;
  mlx5dv_cq* const kept = keep(dv);
  if (kept == nullptr) rdmaxcel_unregister_cq(&dv);
  return kept;
}

}  // namespace strait::rdmaxcel

inline mlx5dv_qp* create_mlx5dv_qp(ibv_qp* qp) {
  using namespace strait::rdmaxcel;
  mlx5dv_qp dv{};
  mlx5dv_cq send{}, receive{};
  mlx5dv_obj object{};
  object.qp.in = qp;
  object.qp.out = &dv;
  errno = qp == nullptr ? EINVAL : mlx5dv_init_obj(&object, MLX5DV_OBJ_QP);
  if (errno == 0) errno = look_at(qp->send_cq, send);
  if (errno == 0) errno = look_at(qp->recv_cq, receive);
  if (errno == 0) errno = rdmaxcel_register_qp(qp->qp_num, &dv, &receive, &send);
  if (errno != 0) return nullptr;
  mlx5dv_qp* const kept = keep(dv);
  if (kept == nullptr) rdmaxcel_unregister_qp(&dv);
  return kept;
}
inline mlx5dv_cq* create_mlx5dv_send_cq(ibv_qp* qp) {
  return strait::rdmaxcel::show_cq(qp == nullptr ? nullptr : qp->send_cq);
}
inline mlx5dv_cq* create_mlx5dv_recv_cq(ibv_qp* qp) {
  return strait::rdmaxcel::show_cq(qp == nullptr ? nullptr : qp->recv_cq);
}
inline mlx5dv_cq* create_mlx5dv_cq(ibv_qp* qp) {
  return create_mlx5dv_recv_cq(qp);
}
inline void destroy_mlx5dv_qp(mlx5dv_qp* dv_qp) {
  rdmaxcel_unregister_qp(dv_qp);
  std::free(dv_qp);
}
inline void destroy_mlx5dv_cq(mlx5dv_cq* dv_cq) {
  rdmaxcel_unregister_cq(dv_cq);
  std::free(dv_cq);
}

inline ibv_qp* rdmaxcel_create_qp_on(ibv_context* context, ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq,
                                     int max_send_wr, int max_recv_wr, int max_send_sge, int max_recv_sge,
                                     rdma_qp_type_t qp_type) {
  if (context == nullptr || pd == nullptr || send_cq == nullptr || recv_cq == nullptr || max_send_wr < 0 ||
      max_recv_wr < 0 || max_send_sge < 0 || max_recv_sge < 0) {
    errno = EINVAL;
    return nullptr;
  }
  const ibv_qp_cap cap{static_cast<uint32_t>(max_send_wr), static_cast<uint32_t>(max_recv_wr),
                       static_cast<uint32_t>(max_send_sge), static_cast<uint32_t>(max_recv_sge), 0};
  if (qp_type == RDMA_QP_TYPE_STANDARD) {
    ibv_qp_init_attr init{};
    init.send_cq = send_cq;
    init.recv_cq = recv_cq;
    init.cap = cap;
    init.qp_type = IBV_QPT_RC;
    return ibv_create_qp(pd, &init);
  }
  if (qp_type == RDMA_QP_TYPE_MLX5DV) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = send_cq;
    init.recv_cq = recv_cq;
    init.cap = cap;
    init.qp_type = IBV_QPT_RC;
    init.pd = pd;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND;
    mlx5dv_qp_init_attr more{};
    more.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
    more.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MR_LIST;
    return mlx5dv_create_qp(context, &init, &more);
  }
  errno = qp_type == RDMA_QP_TYPE_EFA ? EOPNOTSUPP : EINVAL;
  return nullptr;
}
inline ibv_qp* create_qp(ibv_context* context, ibv_pd* pd, int cq_entries, int max_send_wr, int max_recv_wr,
                         int max_send_sge, int max_recv_sge, rdma_qp_type_t qp_type) {
  if (context == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_cq* const send_cq = ibv_create_cq(context, cq_entries, nullptr, nullptr, 0);
  ibv_cq* const recv_cq = send_cq == nullptr ? nullptr : ibv_create_cq(context, cq_entries, nullptr, nullptr, 0);
  ibv_qp* const qp = recv_cq == nullptr ? nullptr
                                        : rdmaxcel_create_qp_on(context, pd, send_cq, recv_cq, max_send_wr, max_recv_wr,
                                                                max_send_sge, max_recv_sge, qp_type);
  if (qp != nullptr) return qp;
  const int why = errno;
  if (recv_cq != nullptr) ibv_destroy_cq(recv_cq);
  if (send_cq != nullptr) ibv_destroy_cq(send_cq);
  errno = why;
  return nullptr;
}
inline int destroy_qp(ibv_qp* qp) {
  if (qp == nullptr) return EINVAL;
  ibv_cq* const send_cq = qp->send_cq;
  ibv_cq* const recv_cq = qp->recv_cq;
  if (const int status = ibv_destroy_qp(qp)) return status;
  const int status = recv_cq == send_cq ? 0 : ibv_destroy_cq(recv_cq);
  const int other = ibv_destroy_cq(send_cq);
  return status != 0 ? status : other;
}
