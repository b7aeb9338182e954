// SPDX-License-Identifier: Apache-2.0
// The queues rdmaxcel.h knows, as CPU and GPU see them, and what its calls do to them. registry.hpp makes them known.
//
// What the document's signatures cannot carry is kept here: 64-bit counters, completed work, who posts at the same
// time, the caller's wr_id of every slot. A call finds its queue by the address of the ring and the QP number; the
// addresses are those of the host on either side, and never followed: the pointers to follow are in the state.
#pragma once

#include <cstdint>

#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/rdmaxcel/types.hpp"

namespace strait::rdmaxcel {

inline constexpr auto kMany = device::Sharing::many_threads;
inline constexpr auto kScope = device::kScope<kMany>;

// What a slot's work request is called by its poster. Written between reservation and commit, read by the poller.
struct Label {
  std::uint64_t end;  // index + 1; 0 or another index: the slot was posted by other means
  std::uint64_t wr_id;
};

// In memory that CPU and GPU reach by one address. The pointers inside the rings are those of the side it is on.
struct alignas(64) QueueState {
  device::SendRing send;
  device::ReceiveRing receive;  // entries is null: there is none
  Label* send_labels;
  Label* receive_labels;
  // What the record's words hold if nobody but us has posted. Only for the thread that holds the slots' requests.
  std::uint32_t shown_send;
  std::uint32_t shown_receive;
  std::uint64_t on_device;
  std::uint64_t mixed;    // not 0: somebody else has posted
  std::uint64_t refusal;  // the newest one, as its negated code
};

struct alignas(64) CqState {
  device::CompletionRing ring;
  std::uint64_t on_device;
  std::uint64_t busy;   // one poller at a time
  std::uint64_t mixed;  // not 0: somebody else has taken completions
};

inline constexpr std::uint32_t kMostQueues = 512;
inline constexpr std::uint32_t kMostCqs = 2 * kMostQueues;

// Words, because a reader may pass an entry that is just being replaced: `life` is odd while the entry holds.
struct QueueEntry {
  std::uint64_t life;
  std::uint64_t qpn;
  std::uint64_t send_begin, send_end;
  std::uint64_t receive_begin;
  std::uint64_t doorbell, doorbell_bytes;
  std::uint64_t send_cq, receive_cq;  // the address of their entries
  std::uint64_t record;
  std::uint64_t send_count, receive_count;
  QueueState* state;
};

struct CqEntry {
  std::uint64_t life;
  std::uint64_t begin;
  std::uint64_t count, bytes;
  std::uint64_t record;
  CqState* state;
};

struct Table {
  std::uint64_t queues_used, cqs_used;  // as many entries have ever been in use
  std::uint64_t nobodys_refusal;        // where calls that named no known queue leave it; 0: nowhere
  QueueEntry queues[kMostQueues];
  CqEntry cqs[kMostCqs];
};

inline Table host_table{};
inline std::uint64_t host_refusal = 0;

#if defined(__CUDACC__)
// One for each source that includes this, since device variables are not shared without relocatable device code;
// cuda.hpp keeps all of them alike.
[[maybe_unused]] static __device__ Table device_table;
#endif

STRAIT_HD inline const Table& table() {
#if defined(STRAIT_TARGET_CUDA)
  return device_table;
#else
  return host_table;
#endif
}

// ---- Finding ------------------------------------------------------------------------------------------------------

template <class Entry, class Is>
STRAIT_HD inline const Entry* find_entry(const Entry* entries, const std::uint64_t& used, Is&& is) {
  const std::uint64_t count = device::load_acquire<kScope>(&used);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t life = device::load_acquire<kScope>(&entries[i].life);
    if ((life & 1) == 0 || !is(entries[i])) continue;
    if (device::load_acquire<kScope>(&entries[i].life) == life) return &entries[i];
  }
  return nullptr;
}

STRAIT_HD inline std::uint64_t word_of(const std::uint64_t& word) {
  return device::load_relaxed<kScope>(&word);
}
STRAIT_HD inline std::uint64_t address_of(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

STRAIT_HD inline const QueueEntry* find_sender(const Table& t, const void* ring, std::uint32_t qpn) {
  const std::uint64_t begin = address_of(ring);
  return find_entry(t.queues, t.queues_used, [begin, qpn](const QueueEntry& e) {
    return word_of(e.qpn) == qpn && word_of(e.send_begin) == begin;
  });
}
STRAIT_HD inline const QueueEntry* find_receiver(const Table& t, const void* ring, std::uint32_t qpn) {
  const std::uint64_t begin = address_of(ring);
  return find_entry(t.queues, t.queues_used, [begin, qpn](const QueueEntry& e) {
    return word_of(e.qpn) == qpn && word_of(e.receive_begin) == begin;
  });
}
// QP numbers are unique within a device only; which one it is, the completion queue tells.
STRAIT_HD inline const QueueEntry* find_completed(const Table& t, std::uint64_t cq, std::uint32_t qpn) {
  return find_entry(t.queues, t.queues_used, [cq, qpn](const QueueEntry& e) {
    return word_of(e.qpn) == qpn && (word_of(e.send_cq) == cq || word_of(e.receive_cq) == cq);
  });
}
STRAIT_HD inline const CqEntry* find_cq(const Table& t, const void* entries) {
  const std::uint64_t begin = address_of(entries);
  return find_entry(t.cqs, t.cqs_used, [begin](const CqEntry& e) { return word_of(e.begin) == begin; });
}
// The owner of the WQE at `src`. Queues share registers, so `dst` alone does not say whose it is.
STRAIT_HD inline const QueueEntry* find_rung(const Table& t, const void* src) {
  const std::uint64_t at = address_of(src);
  return find_entry(t.queues, t.queues_used,
                    [at](const QueueEntry& e) { return word_of(e.send_begin) <= at && at < word_of(e.send_end); });
}

// ---- What the calls do, on either side ----------------------------------------------------------------------------

STRAIT_HD inline std::int32_t refuse(std::uint64_t* word, std::int32_t status) {
  if (word != nullptr && status != RDMAXCEL_SUCCESS)
    device::store_relaxed<kScope>(word, static_cast<std::uint64_t>(-status));
  return status;
}
STRAIT_HD inline std::int32_t refuse(const Table& t, const QueueEntry* e, std::int32_t status) {
  if (e != nullptr) return refuse(&e->state->refusal, status);
  auto* word = reinterpret_cast<std::uint64_t*>(word_of(t.nobodys_refusal));
#if !defined(STRAIT_TARGET_CUDA)
  if (word == nullptr) word = &host_refusal;
#endif
  return refuse(word, status);
}

STRAIT_HD inline void write_label(Label* labels, std::uint64_t capacity, std::uint64_t index, std::uint64_t wr_id) {
  Label& label = labels[index & (capacity - 1)];
  device::store_relaxed<kScope>(&label.end, index + 1);
  device::store_relaxed<kScope>(&label.wr_id, wr_id);
}
STRAIT_HD inline bool read_label(const Label* labels, std::uint64_t capacity, std::uint64_t index,
                                 std::uint64_t& wr_id) {
  const Label& label = labels[index & (capacity - 1)];
  wr_id = device::load_relaxed<kScope>(&label.wr_id);
  return device::load_relaxed<kScope>(&label.end) == index + 1;
}

template <class State>
STRAIT_HD inline bool is_mixed(const State& s) {
  return device::load_relaxed<kScope>(&s.mixed) != 0;
}

STRAIT_HD inline std::int32_t code_of(device::Posted posted) {
  switch (posted) {
    case device::Posted::ok: return RDMAXCEL_SUCCESS;
    case device::Posted::full: return RDMAXCEL_QUEUE_FULL;
    case device::Posted::too_long: return RDMAXCEL_TOO_LONG;
    case device::Posted::invalid:
    case device::Posted::aborted: break;  // no post of these waits for room
  }
  return RDMAXCEL_INVALID_PARAMS;
}

STRAIT_HD inline std::int32_t post_send(QueueState& q, const wqe_params_t& p) {
  if (is_mixed(q)) return RDMAXCEL_MIXED_POSTING;
  const auto opcode = static_cast<wire::mlx5::Opcode>(p.op_type);
  if (p.op_type != static_cast<std::uint32_t>(wire::mlx5::Opcode::rdma_write) &&
      p.op_type != static_cast<std::uint32_t>(wire::mlx5::Opcode::rdma_read) &&
      p.op_type != static_cast<std::uint32_t>(wire::mlx5::Opcode::send))
    return RDMAXCEL_UNSUPPORTED_OP;
  if (p.length > wire::mlx5::kMaxMessageBytes) return RDMAXCEL_TOO_LONG;
  const bool remote = opcode != wire::mlx5::Opcode::send;
  const std::uint32_t fixed = remote ? 2 : 1;
  const device::Head head{opcode, 0, p.signaled ? device::kSignaled : device::kNoFlags, wire::be32{0}};
  const device::OpenWqe wqe = device::open_wqe<kMany>(q.send, head, fixed + (p.length != 0 ? 1 : 0));
  if (wqe.posted != device::Posted::ok) return code_of(wqe.posted);
  if (remote) device::store_remote(wqe.block + 16, {p.raddr, p.rkey});
  if (p.length != 0)
    device::store_data(wqe.block + std::size_t{16} * fixed, p.laddr, static_cast<std::uint32_t>(p.length), p.lkey);
  write_label(q.send_labels, q.send.slots.capacity, wqe.start, p.wr_id);
  return code_of(device::close_wqe<kMany>(q.send, wqe).posted);
}

// Everything ready, by record and doorbell in their order. A record that is not as we left it was written by another
// poster, whose entries then lie where ours do: the queue is refused from then on.
STRAIT_HD inline std::int32_t show_sends(QueueState& q) {
  device::show_ready<kMany>(q.send.slots, [&q](std::uint64_t ready) {
    if (device::peek(q.send.record) != q.shown_send) {
      device::store_relaxed<kScope>(&q.mixed, 1);
      return;
    }
    device::show_to_device(q.send, ready, device::doorbell_of_next(q.send, ready));
    q.shown_send = wire::be32{static_cast<std::uint32_t>(ready & wire::mlx5::kIndexMask)}.raw();
  });
  return is_mixed(q) ? RDMAXCEL_MIXED_POSTING : RDMAXCEL_SUCCESS;
}

// post_receive() with a label. There is no receive doorbell: the record follows at once.
STRAIT_HD inline std::int32_t post_receive(QueueState& q, const wqe_params_t& p) {
  if (is_mixed(q)) return RDMAXCEL_MIXED_POSTING;
  if (p.length >= wire::mlx5::kInlineFlag) return RDMAXCEL_TOO_LONG;
  device::Slots& slots = q.receive.slots;
  std::uint64_t index = 0;
  if (!device::reserve<kMany>(slots, 1, index)) return RDMAXCEL_QUEUE_FULL;
  std::uint8_t* at = q.receive.entries + ((index & (slots.capacity - 1)) << q.receive.log_stride);
  std::uint32_t used = 0;
  if (p.length != 0) {
    device::store_data(at, p.laddr, static_cast<std::uint32_t>(p.length), p.lkey);
    at += wire::mlx5::kSegmentBytes;
    used = 1;
  }
  if (used < 1u << (q.receive.log_stride - 4)) device::store_data(at, 0, 0, wire::mlx5::kTerminatorLkey);
  write_label(q.receive_labels, slots.capacity, index, p.wr_id);
  device::commit<kMany>(slots, index, 1);
  device::show_ready<kMany>(slots, [&q](std::uint64_t ready) {
    if (device::peek(q.receive.record) != q.shown_receive) {
      device::store_relaxed<kScope>(&q.mixed, 1);
      return;
    }
    device::show_to_device(q.receive, ready);
    q.shown_receive = wire::be32{static_cast<std::uint32_t>(ready & wire::mlx5::kIndexMask)}.raw();
  });
  return is_mixed(q) ? RDMAXCEL_MIXED_POSTING : RDMAXCEL_SUCCESS;
}

// Whose work request it was, and the room it leaves. The label is read first: after that the slot may be taken again.
STRAIT_HD inline void settle(const QueueEntry& e, const device::Completion& c, cqe_poll_result_t& out) {
  QueueState& q = *e.state;
  if (c.is_requester()) {
    const device::Slots& slots = q.send.slots;
    out.index = device::widen(device::completed_of<kMany>(slots), c.wqe_counter);
    out.wr_id_known = read_label(q.send_labels, slots.capacity, out.index, out.wr_id);
    if (!device::complete_up_to<kMany>(q.send, c.wqe_counter).known) out.wr_id_known = false;
  } else if (q.receive.entries != nullptr) {
    const device::Slots& slots = q.receive.slots;
    out.index = device::widen(device::completed_of<kMany>(slots), c.wqe_counter);
    out.wr_id_known = read_label(q.receive_labels, slots.capacity, out.index, out.wr_id);
    if (!device::take_receive<kMany>(q.receive, c.wqe_counter).known) out.wr_id_known = false;
  }
  if (!out.wr_id_known) out.wr_id = 0;
}

STRAIT_HD inline cqe_poll_result_t refused_poll(std::int32_t status) {
  cqe_poll_result_t out{};
  out.state = CQE_POLL_ERROR;
  out.status = status;
  return out;
}

STRAIT_HD inline cqe_poll_result_t take_one(const Table& t, const CqEntry& e, CqState& cq, std::uint32_t index) {
  if (static_cast<std::uint32_t>(cq.ring.consumed) != index) return refused_poll(RDMAXCEL_WRONG_INDEX);
  const auto left = static_cast<std::uint32_t>(cq.ring.consumed & wire::mlx5::kConsumerMask);
  if (device::peek(cq.ring.record) != wire::be32{left}.raw()) device::store_relaxed<kScope>(&cq.mixed, 1);
  if (is_mixed(cq)) return refused_poll(RDMAXCEL_MIXED_POSTING);
  cqe_poll_result_t out{};
  device::Completion c{};
  const device::Polled polled = device::poll(cq.ring, c);
  if (polled == device::Polled::empty) return out;
  out.state = polled == device::Polled::done ? CQE_POLL_TRUE : CQE_POLL_ERROR;
  out.status = polled == device::Polled::done ? RDMAXCEL_SUCCESS : RDMAXCEL_COMPLETION_FAILED;
  out.qp_num = c.qpn;
  out.byte_count = c.byte_count;
  out.imm = c.imm.raw();
  out.opcode = static_cast<std::uint8_t>(c.opcode);
  out.send_opcode = static_cast<std::uint8_t>(c.send_opcode);
  out.syndrome = static_cast<std::uint8_t>(c.syndrome);
  out.vendor_syndrome = c.vendor_syndrome;
  if (const QueueEntry* const owner = find_completed(t, e.begin, c.qpn)) settle(*owner, c, out);
  return out;
}

// One poller at a time; another one meanwhile finds nothing, and does not wait.
STRAIT_HD inline cqe_poll_result_t poll_cq(const Table& t, const CqEntry& e, std::uint32_t index) {
  CqState& cq = *e.state;
  std::uint64_t free = 0;
  if (!device::compare_exchange<kScope>(&cq.busy, free, 1)) return {};
  const cqe_poll_result_t out = take_one(t, e, cq, index);
  device::store_release<kScope>(&cq.busy, 0);
  return out;
}

// cqe_poll()'s result: the byte count, -1 for nothing there, -2 for an error. A count beyond what the word holds is as
// much as it holds, and never a negative number.
STRAIT_HD inline std::int32_t in_one_word(const cqe_poll_result_t& polled) {
  constexpr std::uint32_t most = 0x7fffffff;
  if (polled.state == CQE_POLL_TRUE)
    return static_cast<std::int32_t>(polled.byte_count < most ? polled.byte_count : most);
  return polled.state == CQE_POLL_FALSE ? -1 : -2;
}

// ---- The parameters of a call against the queue they name ---------------------------------------------------------

STRAIT_HD inline const QueueEntry* sender_of(const Table& t, const wqe_params_t& p, std::int32_t& status) {
  status = RDMAXCEL_QUEUE_UNKNOWN;
  const QueueEntry* const e = find_sender(t, p.buf, p.qp_num);
  if (e == nullptr) return nullptr;
  const bool same =
      (p.dbrec == nullptr || address_of(p.dbrec) == e->record) && (p.wqe_cnt == 0 || p.wqe_cnt == e->send_count);
  status = same ? RDMAXCEL_SUCCESS : RDMAXCEL_INVALID_PARAMS;
  return e;
}
STRAIT_HD inline const QueueEntry* receiver_of(const Table& t, const wqe_params_t& p, std::int32_t& status) {
  status = RDMAXCEL_QUEUE_UNKNOWN;
  const QueueEntry* const e = p.buf == nullptr ? nullptr : find_receiver(t, p.buf, p.qp_num);
  if (e == nullptr) return nullptr;
  const bool same =
      (p.dbrec == nullptr || address_of(p.dbrec) == e->record) && (p.wqe_cnt == 0 || p.wqe_cnt == e->receive_count);
  status = same ? RDMAXCEL_SUCCESS : RDMAXCEL_INVALID_PARAMS;
  return e;
}
STRAIT_HD inline const QueueEntry* rung_by(const Table& t, const void* dst, const void* src, std::int32_t& status) {
  status = RDMAXCEL_QUEUE_UNKNOWN;
  const QueueEntry* const e = find_rung(t, src);
  if (e == nullptr) return nullptr;
  // Either half of a BlueFlame register is the same register.
  const std::uint64_t at = address_of(dst);
  const bool same = at == e->doorbell || at == e->doorbell + e->doorbell_bytes;
  status = same ? RDMAXCEL_SUCCESS : RDMAXCEL_INVALID_PARAMS;
  return e;
}
STRAIT_HD inline const CqEntry* polled_by(const Table& t, const cqe_poll_params_t& p, std::int32_t& status) {
  status = RDMAXCEL_QUEUE_UNKNOWN;
  const CqEntry* const e = find_cq(t, p.cqe_buf);
  if (e == nullptr) return nullptr;
  const bool same =
      p.cqe_cnt == e->count && p.cqe_size == e->bytes && (p.dbrec == nullptr || address_of(p.dbrec) == e->record);
  status = same ? RDMAXCEL_SUCCESS : RDMAXCEL_INVALID_PARAMS;
  return e;
}

}  // namespace strait::rdmaxcel
