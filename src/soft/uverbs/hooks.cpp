// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/hooks.hpp"

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "soft/uverbs/doorbell_trap.hpp"

namespace strait::soft::uverbs {

namespace {

// For every function of libmlx5 that is hooked a function of our own is needed, since a function pointer carries
// nothing else. libmlx5 has a few of each kind, and of start_poll some twenty.
constexpr std::size_t kSlots = 48;

std::mutex g_slots;

// In a forked child libmlx5 would wait for ever for a lock of its own that another thread of the parent had.
bool left_behind(const Progress* progress) {
  return progress != nullptr && progress->in_child();
}

template <class What, class Result, class... Arguments>
struct Pool {
  using Function = Result (*)(Arguments...);
  struct Slot {
    std::atomic<Function> real{nullptr};
    std::atomic<Progress*> progress{nullptr};
  };
  static inline std::array<Slot, kSlots> slots;

  template <std::size_t I>
  static Result thunk(Arguments... arguments) {
    return What::run(slots[I].progress.load(std::memory_order_acquire), slots[I].real.load(std::memory_order_relaxed),
                     arguments...);
  }
  template <std::size_t... I>
  static constexpr std::array<Function, kSlots> make_thunks(std::index_sequence<I...>) {
    return {&thunk<I>...};
  }
  static constexpr std::array<Function, kSlots> thunks = make_thunks(std::make_index_sequence<kSlots>());

  // What to put in place of `real`; `real` itself when it is ours already, or no slot is left.
  static Function wrap(Function real, Progress& progress) {
    const std::scoped_lock lock(g_slots);
    if (real == nullptr) return real;
    for (const Function ours : thunks) {
      if (real == ours) return real;
    }
    for (std::size_t i = 0; i < kSlots; ++i) {
      Slot& slot = slots[i];
      const Function held = slot.real.load(std::memory_order_relaxed);
      if (held == real && slot.progress.load(std::memory_order_relaxed) == &progress) return thunks[i];
      // A slot whose device has gone is its again who comes with the same function.
      const bool vacant = held == nullptr || (held == real && slot.progress.load(std::memory_order_relaxed) == nullptr);
      if (!vacant) continue;
      slot.real.store(real, std::memory_order_relaxed);
      slot.progress.store(&progress, std::memory_order_release);
      return thunks[i];
    }
    return real;
  }
  static void release(Progress& progress) {
    for (Slot& slot : slots) {
      Progress* mine = &progress;
      slot.progress.compare_exchange_strong(mine, nullptr);
    }
  }
};

struct PollCq : Pool<PollCq, int, ibv_cq*, int, ibv_wc*> {
  static int run(Progress* progress, Function real, ibv_cq* cq, int n, ibv_wc* wc) {
    if (left_behind(progress)) return -1;
    // What is there already is taken first: the engine has the time until the program finds nothing.
    const int found = real(cq, n, wc);
    if (progress == nullptr || !progress->polled(found != 0)) return found;
    return real(cq, n, wc);
  }
};
struct StartPoll : Pool<StartPoll, int, ibv_cq_ex*, ibv_poll_cq_attr*> {
  static int run(Progress* progress, Function real, ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
    if (left_behind(progress)) return EIO;
    const int error = real(cq, attributes);
    if (progress == nullptr || !progress->polled(error != ENOENT)) return error;
    return real(cq, attributes);
  }
};
struct RequestNotify : Pool<RequestNotify, int, ibv_cq*, int> {
  static int run(Progress* progress, Function real, ibv_cq* cq, int solicited) {
    if (left_behind(progress)) return EIO;
    const RingsItself rings(progress);
    const int result = real(cq, solicited);
    if (progress != nullptr) progress->wake();
    return result;
  }
};
struct PostSend : Pool<PostSend, int, ibv_qp*, ibv_send_wr*, ibv_send_wr**> {
  static int run(Progress* progress, Function real, ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    if (left_behind(progress)) {
      *bad = wr;
      return EIO;
    }
    const RingsItself rings(progress);
    const int result = real(qp, wr, bad);
    if (progress != nullptr) progress->posted(qp->qp_num);
    return result;
  }
};
struct WrComplete : Pool<WrComplete, int, ibv_qp_ex*> {
  static int run(Progress* progress, Function real, ibv_qp_ex* qp) {
    if (left_behind(progress)) return EIO;
    const RingsItself rings(progress);
    const int result = real(qp);
    if (progress != nullptr) progress->posted(qp->qp_base.qp_num);
    return result;
  }
};

template <class P>
void replace(typename P::Function* at, Progress& progress) {
  const auto real = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  const auto ours = P::wrap(real, progress);
  if (ours != real) __atomic_store_n(at, ours, __ATOMIC_RELEASE);
}

// A struct of the program's that is all there and may be written.
template <class T>
T* reach(const UserMemory& memory, std::uint64_t address) {
  if (address == 0 || address % alignof(T) != 0) return nullptr;
  return reinterpret_cast<T*>(memory.lasting(address, sizeof(T), true));
}

}  // namespace

void hook_cq(const UserMemory& memory, std::uint64_t user_handle, Progress& progress) {
  auto* const cq = reach<ibv_cq>(memory, user_handle);
  if (cq == nullptr) return;
  auto* const context = reach<ibv_context>(memory, reinterpret_cast<std::uintptr_t>(cq->context));
  // Contexts that have the newer calls say so here; all that libibverbs makes do.
  if (context == nullptr || context->abi_compat != __VERBS_ABI_IS_EXTENDED) return;
  replace<PollCq>(&context->ops.poll_cq, progress);
  replace<RequestNotify>(&context->ops.req_notify_cq, progress);
  replace<PostSend>(&context->ops.post_send, progress);
  if (auto* const extended = reach<ibv_cq_ex>(memory, user_handle)) replace<StartPoll>(&extended->start_poll, progress);
}

bool wants_timestamps(const UserMemory& memory, std::uint64_t user_handle) {
  const auto* const cq = reach<ibv_cq_ex>(memory, user_handle);
  return cq != nullptr && (cq->read_completion_ts != nullptr || cq->read_completion_wallclock_ns != nullptr);
}

void hook_qp(const UserMemory& memory, std::uint64_t user_handle, Progress& progress) {
  auto* const qp = reach<ibv_qp_ex>(memory, user_handle);
  if (qp == nullptr) return;
  auto* const context = reach<ibv_context>(memory, reinterpret_cast<std::uintptr_t>(qp->qp_base.context));
  if (context == nullptr || context->abi_compat != __VERBS_ABI_IS_EXTENDED) return;
  replace<WrComplete>(&qp->wr_complete, progress);
}

void unhook(Progress& progress) {
  PollCq::release(progress);
  StartPoll::release(progress);
  RequestNotify::release(progress);
  PostSend::release(progress);
  WrComplete::release(progress);
}

}  // namespace strait::soft::uverbs
