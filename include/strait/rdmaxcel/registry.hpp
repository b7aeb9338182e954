// SPDX-License-Identifier: Apache-2.0
// Host side of queues.hpp: queues become known, move between CPU and GPU, and go.
//
// A queue is on one side at a time. register_cuda_memory() and launch_*() take it to the GPU, a call from the CPU
// brings it back once everything launched has run; only the pointers inside its rings change then, the counters stay.
// Threads: any may post, ring and poll; making known and forgetting a queue is ordered by its owner against its use, as
// ibv_create_qp and ibv_destroy_qp are.
#pragma once

#include <infiniband/mlx5dv.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "strait/rdmaxcel/pages.hpp"
#include "strait/rdmaxcel/queues.hpp"

namespace strait::rdmaxcel {

struct Views {
  std::uint8_t* blocks;
  std::uint32_t* send_record;
  std::uint64_t* doorbell;
  std::uint8_t* entries;  // of the receive ring
  std::uint32_t* receive_record;
};
struct CqViews {
  std::uint8_t* entries;
  std::uint32_t* record;
};

// What only the host needs of an entry; never in memory that moves between the sides.
struct QueueHome {
  unsigned users;       // dv objects handed out
  unsigned registered;  // with the GPU
  bool on_device;
  int why_plain_doorbell;  // what the runtime said to it as a register; 0: it took it
  Views host, device;
  Pages::Held held;
};
struct CqHome {
  unsigned users;
  unsigned registered;
  bool on_device;
  CqViews host, device;
  Pages::Held held;
  cqe_poll_result_t* slot;  // where a launched poll leaves its answer
  cqe_poll_result_t* slot_there;
  std::mutex polling;
};

inline void* allocate_here(std::size_t bytes, bool) {
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  void* const p = std::aligned_alloc(64, rounded);
  if (p != nullptr) std::memset(p, 0, rounded);
  return p;
}
inline void release_here(void* p, bool) {
  std::free(p);
}

struct Registry {
  std::mutex lock;
  Runtime runtime{.allocate = &allocate_here, .release = &release_here};
  Pages pages;
  QueueHome queues[kMostQueues]{};
  CqHome cqs[kMostCqs]{};
  std::uint64_t* shared_refusal = nullptr;
};
inline Registry registry;
inline thread_local int last_launch_status = 0;

inline QueueHome& home_of(const QueueEntry& e) {
  return registry.queues[&e - host_table.queues];
}
inline CqHome& home_of(const CqEntry& e) {
  return registry.cqs[&e - host_table.cqs];
}
inline QueueEntry& entry_of(const QueueEntry& e) {
  return host_table.queues[&e - host_table.queues];
}
inline CqEntry& entry_of(const CqEntry& e) {
  return host_table.cqs[&e - host_table.cqs];
}

// ---- From one side to the other -----------------------------------------------------------------------------------

inline void point(QueueState& q, const Views& to) {
  q.send.blocks = to.blocks;
  q.send.record = to.send_record;
  q.send.doorbell = to.doorbell;
  q.receive.entries = to.entries;
  q.receive.record = to.receive_record;
}
inline void point(CqState& cq, const CqViews& to) {
  cq.ring.entries = to.entries;
  cq.ring.record = to.record;
}

// Already there is the usual answer and costs one load: nothing of the state is touched, which may lie with the GPU.
template <class Entry>
inline bool move_to(const Entry& e, bool device) {
  auto& home = home_of(e);
  if (__atomic_load_n(&home.on_device, __ATOMIC_ACQUIRE) == device) return true;
  const std::lock_guard guard(registry.lock);
  if (home.on_device == device) return true;
  if (device && home.registered == 0) return false;
  if (!device) last_launch_status = registry.runtime.settle();
  point(*e.state, device ? home.device : home.host);
  e.state->on_device = device ? 1 : 0;
  __atomic_store_n(&home.on_device, device, __ATOMIC_RELEASE);
  return true;
}

// ---- Making known -------------------------------------------------------------------------------------------------

inline bool log2_of(std::uint64_t n, std::uint32_t& log) {
  if (n == 0 || (n & (n - 1)) != 0) return false;
  log = static_cast<std::uint32_t>(__builtin_ctzll(n));
  return true;
}

template <class Entry>
inline void end_life(Entry& e) {
  __atomic_store_n(&e.life, e.life + 1, __ATOMIC_RELEASE);
  registry.runtime.release(e.state, true);
  e.state = nullptr;
}
template <class Entry>
inline void begin_life(Entry& e) {
  __atomic_store_n(&e.life, e.life + 1, __ATOMIC_RELEASE);
}
inline void set(std::uint64_t& word, std::uint64_t value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}

// An entry that is free, or null.
template <class Entry, std::size_t N>
inline Entry* free_entry(Entry (&entries)[N], std::uint64_t& used) {
  for (std::size_t i = 0; i < N; ++i) {
    if ((entries[i].life & 1) != 0) continue;
    if (i >= used) __atomic_store_n(&used, i + 1, __ATOMIC_RELEASE);
    return &entries[i];
  }
  return nullptr;
}

// What the words of a record say; the queue may have been used by verbs before, and is taken over where it is.
inline std::uint64_t record_index(const __be32* word, std::uint32_t mask) {
  return wire::be32::from_raw(__atomic_load_n(word, __ATOMIC_ACQUIRE)).value() & mask;
}

inline bool open_queue(QueueState& q, const mlx5dv_qp& dv, std::uint32_t qpn) {
  std::uint32_t log_blocks = 0;
  if (dv.sq.stride != wire::mlx5::kBlockBytes || !log2_of(dv.sq.wqe_cnt, log_blocks)) return false;
  auto* const record = reinterpret_cast<wire::mlx5::QueueRecord*>(dv.dbrec);
  auto* const marks = reinterpret_cast<std::uint64_t*>(&q + 1);
  q.send_labels = reinterpret_cast<Label*>(marks + dv.sq.wqe_cnt + dv.rq.wqe_cnt);
  q.receive_labels = q.send_labels + dv.sq.wqe_cnt;
  device::SendRingMemory send;
  send.blocks = dv.sq.buf;
  send.log_blocks = log_blocks;
  send.qpn = qpn;
  send.record = record;
  send.doorbell = dv.bf.reg;
  send.marks = marks;
  send.first_index = record_index(&dv.dbrec[MLX5_SND_DBR], wire::mlx5::kIndexMask);
  if (!device::open_send_ring(q.send, send)) return false;
  q.shown_send = dv.dbrec[MLX5_SND_DBR];
  if (dv.rq.wqe_cnt == 0) return true;  // there is none, or it is shared
  device::ReceiveRingMemory receive;
  receive.entries = dv.rq.buf;
  receive.record = record;
  receive.marks = marks + dv.sq.wqe_cnt;
  receive.first_index = record_index(&dv.dbrec[MLX5_RCV_DBR], wire::mlx5::kIndexMask);
  if (!log2_of(dv.rq.wqe_cnt, receive.log_entries) || !log2_of(dv.rq.stride, receive.log_stride)) return false;
  q.shown_receive = dv.dbrec[MLX5_RCV_DBR];
  return device::open_receive_ring(q.receive, receive);
}

inline void forget(QueueEntry& e) {
  QueueHome& home = home_of(e);
  if (home.on_device) (void)registry.runtime.settle();
  registry.pages.drop(registry.runtime, home.held);
  const bool published = home.registered != 0;
  home = {};
  end_life(e);
  if (published) (void)registry.runtime.publish();
}
inline void forget(CqEntry& e) {
  CqHome& home = home_of(e);
  if (home.on_device) (void)registry.runtime.settle();
  registry.pages.drop(registry.runtime, home.held);
  if (home.slot != nullptr) registry.runtime.release(home.slot, false);
  const bool published = home.registered != 0;
  home.slot = home.slot_there = nullptr;
  home.users = home.registered = 0;
  home.on_device = false;
  end_life(e);
  if (published) (void)registry.runtime.publish();
}

// The QP we know. One that was reset, or made anew in the same place with the same number, has been found to be mixed
// by the first call on it, and is taken over again as its record says.
inline bool is_known(const QueueEntry& e, const mlx5dv_qp& dv) {
  return e.record == address_of(dv.dbrec) && e.send_count == dv.sq.wqe_cnt && e.receive_count == dv.rq.wqe_cnt &&
         e.doorbell == address_of(dv.bf.reg) && !is_mixed(*e.state);
}

inline int add_queue(std::uint32_t qpn, const mlx5dv_qp& dv, const void* send_cq, const void* receive_cq) {
  const std::uint64_t begin = address_of(dv.sq.buf);
  const std::uint64_t bytes = std::uint64_t{dv.sq.wqe_cnt} * dv.sq.stride;
  if (dv.dbrec == nullptr || dv.sq.wqe_cnt > wire::mlx5::kMaxBlocks || dv.rq.wqe_cnt > wire::mlx5::kMaxBlocks)
    return EINVAL;
  unsigned users = 0;
  const std::lock_guard guard(registry.lock);
  for (QueueEntry& e : host_table.queues) {
    if ((e.life & 1) == 0 || begin >= e.send_end || e.send_begin >= begin + bytes) continue;
    if (e.send_begin == begin && e.qpn == qpn && is_known(e, dv)) {
      ++home_of(e).users;
      return 0;
    }
    // The same queue from a new start keeps its users; any other is gone, and a new one lies where it was.
    if (e.send_begin == begin && e.qpn == qpn) users = home_of(e).users;
    forget(e);
  }
  QueueEntry* const e = free_entry(host_table.queues, host_table.queues_used);
  if (e == nullptr) return ENOSPC;
  const std::size_t slots = std::size_t{dv.sq.wqe_cnt} + dv.rq.wqe_cnt;
  void* const memory =
      registry.runtime.allocate(sizeof(QueueState) + slots * (sizeof(std::uint64_t) + sizeof(Label)), true);
  if (memory == nullptr) return ENOMEM;
  auto* const q = static_cast<QueueState*>(memory);
  if (!open_queue(*q, dv, qpn)) {
    registry.runtime.release(memory, true);
    return EINVAL;
  }
  set(e->qpn, qpn);
  set(e->send_begin, begin);
  set(e->send_end, begin + bytes);
  set(e->receive_begin, dv.rq.wqe_cnt == 0 ? 0 : address_of(dv.rq.buf));
  set(e->doorbell, address_of(dv.bf.reg));
  set(e->doorbell_bytes, dv.bf.size);
  set(e->send_cq, address_of(send_cq));
  set(e->receive_cq, address_of(receive_cq));
  set(e->record, address_of(dv.dbrec));
  set(e->send_count, dv.sq.wqe_cnt);
  set(e->receive_count, dv.rq.wqe_cnt);
  e->state = q;
  QueueHome& home = home_of(*e);
  home.users = users + 1;
  home.host = {q->send.blocks, q->send.record, q->send.doorbell, q->receive.entries, q->receive.record};
  begin_life(*e);
  return 0;
}

inline int add_cq(const mlx5dv_cq& dv) {
  const std::uint64_t begin = address_of(dv.buf);
  const std::uint64_t bytes = std::uint64_t{dv.cqe_cnt} * dv.cqe_size;
  device::CompletionRingMemory m;
  if (dv.dbrec == nullptr || !log2_of(dv.cqe_cnt, m.log_entries)) return EINVAL;
  unsigned users = 0;
  const std::lock_guard guard(registry.lock);
  for (CqEntry& e : host_table.cqs) {
    if ((e.life & 1) == 0 || begin >= e.begin + e.count * e.bytes || e.begin >= begin + bytes) continue;
    if (e.begin == begin && e.count == dv.cqe_cnt && e.bytes == dv.cqe_size && e.record == address_of(dv.dbrec) &&
        !is_mixed(*e.state)) {
      ++home_of(e).users;
      return 0;
    }
    if (e.begin == begin) users = home_of(e).users;
    forget(e);
  }
  CqEntry* const e = free_entry(host_table.cqs, host_table.cqs_used);
  if (e == nullptr) return ENOSPC;
  void* const memory = registry.runtime.allocate(sizeof(CqState), true);
  if (memory == nullptr) return ENOMEM;
  auto* const cq = static_cast<CqState*>(memory);
  m.entries = dv.buf;
  m.entry_bytes = dv.cqe_size;
  m.record = reinterpret_cast<wire::mlx5::CqRecord*>(dv.dbrec);
  m.first_index = record_index(dv.dbrec, wire::mlx5::kConsumerMask);
  if (!device::open_completion_ring(cq->ring, m)) {
    registry.runtime.release(memory, true);
    return EINVAL;
  }
  set(e->begin, begin);
  set(e->count, dv.cqe_cnt);
  set(e->bytes, dv.cqe_size);
  set(e->record, address_of(dv.dbrec));
  e->state = cq;
  CqHome& home = home_of(*e);
  home.users = users + 1;
  home.host = {cq->ring.entries, cq->ring.record};
  begin_life(*e);
  return 0;
}

// A user less; with the last one the queue is forgotten.
template <class Entry>
inline void drop_user(const Entry* e) {
  if (e == nullptr) return;
  const std::lock_guard guard(registry.lock);
  if (--home_of(*e).users == 0) forget(entry_of(*e));
}

inline const QueueEntry* find_ring(const mlx5dv_qp* dv) {
  return dv == nullptr ? nullptr : find_rung(host_table, dv->sq.buf);
}
inline const CqEntry* find_ring(const mlx5dv_cq* dv) {
  return dv == nullptr ? nullptr : find_cq(host_table, dv->buf);
}

// ---- With the GPU -------------------------------------------------------------------------------------------------

template <class T>
inline int hold_at(T* p, std::size_t bytes, bool io, Pages::Held& held, T*& there, int& why_plain) {
  void* seen = nullptr;
  const int status = registry.pages.hold(registry.runtime, p, bytes, io, held, seen, why_plain);
  there = static_cast<T*>(seen);
  return status;
}

inline int reach(const QueueEntry& e) {
  QueueHome& home = home_of(e);
  if (home.registered++ != 0) return 0;
  int ignored = 0;
  Views& v = home.device;
  home.why_plain_doorbell = 0;
  int status = hold_at(home.host.blocks, e.send_end - e.send_begin, false, home.held, v.blocks, ignored);
  if (status == 0 && home.host.entries != nullptr)
    status = hold_at(home.host.entries, e.receive_count << e.state->receive.log_stride, false, home.held, v.entries,
                     ignored);
  // The record is two words, receive before send.
  std::uint32_t* record = nullptr;
  if (status == 0)
    status = hold_at(reinterpret_cast<std::uint32_t*>(static_cast<std::uintptr_t>(e.record)), 8, false, home.held,
                     record, ignored);
  if (status == 0) status = hold_at(home.host.doorbell, 8, true, home.held, v.doorbell, home.why_plain_doorbell);
  if (status != 0) {
    registry.pages.drop(registry.runtime, home.held);
    home.registered = 0;
    return status;
  }
  v.send_record = record + MLX5_SND_DBR;
  v.receive_record = home.host.receive_record == nullptr ? nullptr : record + MLX5_RCV_DBR;
  return 0;
}

inline int reach(const CqEntry& e) {
  CqHome& home = home_of(e);
  if (home.registered++ != 0) return 0;
  int ignored = 0;
  int status = hold_at(home.host.entries, e.count * e.bytes, false, home.held, home.device.entries, ignored);
  if (status == 0) status = hold_at(home.host.record, 8, false, home.held, home.device.record, ignored);
  if (status == 0) {
    home.slot = static_cast<cqe_poll_result_t*>(registry.runtime.allocate(sizeof(cqe_poll_result_t), false));
    void* there = nullptr;
    status = home.slot == nullptr ? Runtime::kNoMemory : registry.runtime.view(&there, home.slot);
    home.slot_there = static_cast<cqe_poll_result_t*>(there);
  }
  if (status != 0) {
    if (home.slot != nullptr) registry.runtime.release(home.slot, false);
    home.slot = nullptr;
    registry.pages.drop(registry.runtime, home.held);
    home.registered = 0;
  }
  return status;
}

inline void leave_slot(QueueHome&) {}
inline void leave_slot(CqHome& home) {
  registry.runtime.release(home.slot, false);
  home.slot = home.slot_there = nullptr;
}

// The other way round; the queue comes home first.
template <class Entry>
inline void leave(const Entry& e) {
  auto& home = home_of(e);
  if (home.registered == 0 || --home.registered != 0) return;
  if (home.on_device) {
    (void)registry.runtime.settle();
    point(*e.state, home.host);
    e.state->on_device = 0;
    __atomic_store_n(&home.on_device, false, __ATOMIC_RELEASE);
  }
  leave_slot(home);
  registry.pages.drop(registry.runtime, home.held);
}

// All or nothing.
inline int reach_all(const QueueEntry& queue, const CqEntry& receive, const CqEntry& send) {
  {
    const std::lock_guard guard(registry.lock);
    int status = reach(queue);
    if (status != 0) return status;
    if ((status = reach(receive)) != 0) {
      leave(queue);
      return status;
    }
    if ((status = reach(send)) != 0) {
      leave(receive);
      leave(queue);
      return status;
    }
    if (registry.shared_refusal == nullptr) {
      registry.shared_refusal = static_cast<std::uint64_t*>(registry.runtime.allocate(sizeof(std::uint64_t), true));
      set(host_table.nobodys_refusal, address_of(registry.shared_refusal));
    }
    if ((status = registry.runtime.publish()) != 0) {
      leave(send);
      leave(receive);
      leave(queue);
      return status;
    }
  }
  move_to(queue, true);
  move_to(receive, true);
  move_to(send, true);
  return 0;
}

inline void leave_all(const QueueEntry& queue, const CqEntry* receive, const CqEntry* send) {
  const std::lock_guard guard(registry.lock);
  if (send != nullptr) leave(*send);
  if (receive != nullptr) leave(*receive);
  leave(queue);
  (void)registry.runtime.publish();
}

}  // namespace strait::rdmaxcel
