// SPDX-License-Identifier: Apache-2.0
// QueuePair: the state of one reliable connection, requester and responder.
//
// Counters are 64 bits wide and only their low 16 (ring indices) or 32 bits (message numbers) ever leave the engine.
//
//   blocks   done ... next ... producer           send ring, in 64-byte blocks
//   work     seq_done ... seq_next                work requests that were started and are not complete
//   messages msn_acked ... msn_next               what the peer has executed, what was sent
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "soft/nic/completion.hpp"
#include "soft/nic/decode.hpp"
#include "soft/nic/link.hpp"
#include "soft/nic/packets.hpp"
#include "soft/nic/port_pieces.hpp"
#include "soft/nic/shared_receive.hpp"
#include "soft/nic/verbs.hpp"

namespace strait::soft::nic {

// Message numbers are compared modulo 2^32.
[[nodiscard]] constexpr bool before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

inline constexpr std::size_t kLine = 64;                 // of cache: payloads land and are looked at in these
inline constexpr std::size_t kHotQueuePair = 4 * kLine;  // of a QueuePair: what messages touch

// Asks for lines that are going to be needed. The address may be anything.
inline void fetch(const void* at, std::size_t bytes = 1) {
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(reinterpret_cast<const void*>(first + i));
}

// A work request that was started. Kept until it completes, in order.
struct Sent {
  std::uint64_t index;      // first block
  std::uint32_t msn_after;  // complete when the peer has executed everything below
  std::uint32_t bytes;      // for the completion
  wire::mlx5::Opcode opcode;
  bool signaled;
  bool awaits_answer;          // a read or atomic whose answer has not landed
  std::uint8_t pins;           // registrations held for a cross copy
  wire::mlx5::Syndrome fault;  // it failed; earlier ones complete first
  std::uint8_t vendor;         // why, in the engine's own numbers (kVendorKey + KeyFault)
  std::uint32_t landed = 0;    // read: bytes of the answer that have arrived, in order
};

// As many as blocks, each written before it is read: what is never used is never touched.
class SentRing {
 public:
  SentRing() = default;
  // `entries`: a power of two.
  explicit SentRing(std::uint32_t entries)
      : memory_(static_cast<Sent*>(::operator new(entries * sizeof(Sent)))), size_(entries) {}
  [[nodiscard]] Sent& at(std::uint64_t seq) const { return memory_.get()[seq & (size_ - 1)]; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

 private:
  struct Free {
    void operator()(Sent* memory) const { ::operator delete(memory); }
  };
  std::unique_ptr<Sent, Free> memory_;
  std::uint32_t size_ = 0;
};

inline constexpr std::uint8_t kVendorKey = 0x80;
inline constexpr std::uint8_t kVendorMalformed = 0x90;
inline constexpr std::uint8_t kVendorPeerLost = 0xa0;
inline constexpr std::uint8_t kVendorNoAnswer = 0xa1;
inline constexpr std::uint8_t kVendorCopyFailed = 0xa2;
inline constexpr std::uint8_t kVendorDeviceGone = 0xa3;

inline constexpr std::int64_t kResendNow = 1;  // a time long past

// Strict: where bytes go that must not be seen yet.
struct LandingPlace {
  enum class What : std::uint8_t { write, receive, answer };
  What what;
  std::uint32_t key;  // as the message, the receive or the read names it
  std::uint64_t address;
  std::uint32_t length;
  std::uint64_t wqe = 0;  // answer: of the read
};

// What has arrived of it. A peer's payload and the answer to a read may come at the same time; only one of them waits.
struct Landing {
  LandingPlace place;
  std::vector<std::byte> bytes;
  Registration shadow;         // takes the bytes in place of the real one
  std::byte* where = nullptr;  // the program would see them; nullptr: it cannot, or the memory is its own again
  bool guarded = false;
  bool waiting = false;       // all of it is here
  std::int64_t heard_ns = 0;  // when the last of it came
  std::uint64_t since_pass = 0;
  std::uint64_t due_pass = 0;
  std::int64_t due_ns = 0;
};

// What is fixed at creation, and survives a reset.
struct QueueShape {
  std::uint32_t qpn = 0;
  QpType type = QpType::rc;
  std::uint32_t pd = 0;
  std::uint32_t user_index = 0;
  bool all_signaled = false;
  bool verbs = false;  // made for verbs: it begins in RESET, and only modify_qp moves it
  RingView sq;
  std::uint32_t sq_blocks = 0;
  RingView rq;
  std::uint32_t rq_entries = 0;
  std::uint32_t rq_stride_bytes = 0;
  const std::uint32_t* record = nullptr;  // be32: receive, send
  std::uint64_t* doorbell = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  SharedReceive* srq = nullptr;  // XRC target: that of the message which arrives
  bool says_srqn = false;
  std::uint32_t xrcd = 0;
  std::uint64_t user = 0;  // for events
};

// What every message needs comes first: with very many queue pairs each line of cache that is looked at has to be
// fetched.
struct alignas(kLine) QueuePair : QueueShape {
  std::uint32_t access = 0;

  // The connection
  QpState state = QpState::reset;
  bool heard = false;                    // of the peer, before RTS
  bool drain_told = false;               // SQD: nobody waits for the send queue to drain any more
  Link* link = nullptr;                  // over the ring grant
  std::unique_ptr<PacketState> packets;  // or over packets; neither: not connected
  std::uint32_t remote_qpn = 0;
  std::uint32_t posted_after = 0;    // index of the queue pair that was posted to after this one, the last time
  std::unique_ptr<Landing> landing;  // strict only: a write, or a message
  std::unique_ptr<Landing> answer;   // the same for what this side reads

  // Requester
  std::uint64_t producer = 0;
  std::uint64_t next = 0;
  std::uint64_t seq_next = 0;
  std::uint64_t seq_done = 0;
  std::uint32_t msn_next = 0;
  std::uint32_t msn_acked = 0;
  std::uint32_t answers_awaited = 0;
  std::uint64_t last_doorbell = 0;
  std::uint64_t keys_changed = 0;    // blocks before this one: what changes keys there is not done again
  std::uint32_t streamed_bytes = 0;  // of the message at `next`, when it goes out in pieces
  bool streaming = false;
  bool stopped = false;  // a local fault waits for earlier work to complete
  bool flushing = false;
  std::uint32_t rnr_tries = 0;
  std::int64_t resume_at_ns = 0;      // after "receiver not ready"; 0: go on
  std::int64_t not_yet_since_ns = 0;  // the peer's queue pair is not ready to receive; 0: it is
  std::int64_t progress_at_ns = 0;    // when the peer last got on with our work; 0: the timer has not looked yet
  SentRing sent;
  std::deque<std::uint32_t> pinned;  // lkeys, in order of `sent`

  std::unique_ptr<PortPieces> port;  // once it has touched memory behind one
  std::int64_t answer_limit_ns = 0;  // 0: none
  std::uint32_t rnr_retries = 7;
  std::int64_t rnr_wait_ns = 0;
  std::int64_t resend_at_ns = 0;  // where messages are lost on purpose; 0: the timer has not looked yet
  std::int64_t resend_after_ns = 0;
  std::uint32_t reading_from = 0;  // the next read goes on from there
  bool reread = false;             // a piece of an answer was missed, and asked for again

  // Responder
  std::uint32_t msn_expected = 0;
  bool again_sent = false;             // for the gap before msn_expected
  std::vector<PendingAnswer> replays;  // atomics that were executed, where their answers may be lost
  std::size_t next_replay = 0;
  bool ack_due = false;
  std::uint64_t receives_taken = 0;
  std::optional<std::uint16_t> srq_entry;  // taken from the shared receive queue, not yet complete
  Arriving arriving;
  std::unique_ptr<ReceiveWork> arriving_into;  // Kind::send in several messages
  QpAttributes attributes;                     // as modify_qp was told; the ones in force are elsewhere

  // For the plan of faults: what this connection is called, and how often it was asked. The same in every run.
  std::uint64_t message_rolls = 0, receive_rolls = 0;
  [[nodiscard]] std::uint64_t flow() const { return std::uint64_t{qpn & 0xffff} << 16 | (remote_qpn & 0xffff); }

  [[nodiscard]] bool payload_waits() const { return landing && landing->waiting; }
  [[nodiscard]] bool landing_waits() const { return payload_waits() || (answer && answer->waiting); }

  [[nodiscard]] Sent& sent_at(std::uint64_t seq) const { return sent.at(seq); }
  // Requests of the peer are served.
  [[nodiscard]] bool receiving() const { return state >= QpState::rtr && state <= QpState::sqe; }
  // Requests of ours are looked after; new ones start in `ready` only.
  [[nodiscard]] bool sending() const { return state == QpState::ready || state == QpState::sqd; }
  // What is posted to send completes with "flushed".
  [[nodiscard]] bool flushes_sends() const { return state == QpState::sqe || state == QpState::error; }
  [[nodiscard]] bool idle() const { return seq_done == seq_next && next == producer; }

  // Of the memory that peers may name.
  [[nodiscard]] std::uint32_t target_pd() const {
    if (type != QpType::xrc_tgt) [[likely]]
      return pd;
    return srq == nullptr ? 0 : srq->request.pd;
  }
  // Of the memory that receives name.
  [[nodiscard]] std::uint32_t receive_pd() const { return srq == nullptr ? pd : srq->request.pd; }

  // Nothing was posted or rung since the last look. Three loads, for passes over many queue pairs.
  [[nodiscard]] bool looks_idle() const {
    if (state == QpState::reset) return true;
    const std::uint32_t raw = __atomic_load_n(&record[1], __ATOMIC_RELAXED);
    return state != QpState::error && next == producer &&
           static_cast<std::uint16_t>(wire::be32::from_raw(raw).value()) == static_cast<std::uint16_t>(producer) &&
           __atomic_load_n(doorbell, __ATOMIC_RELAXED) == last_doorbell;
  }

  // Receives a message may go to.
  [[nodiscard]] std::uint32_t receives_waiting() const {
    if (srq == nullptr) return receives_posted();
    return srq_entry ? 1 : srq->waiting();
  }

  // Of its own, posted and not yet taken. The record holds 16 bits of a running count.
  [[nodiscard]] std::uint32_t receives_posted() const {
    if (rq_entries == 0) return 0;
    const std::uint32_t raw = __atomic_load_n(&record[0], __ATOMIC_ACQUIRE);
    const auto posted = static_cast<std::uint16_t>(wire::be32::from_raw(raw).value());
    const auto waiting = static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(receives_taken));
    return waiting <= rq_entries ? waiting : 0;  // a record that jumped too far is not believed
  }
};

[[nodiscard]] inline bool is_payload(wire::mlx5::Opcode opcode) {
  switch (opcode) {
    case wire::mlx5::Opcode::send:
    case wire::mlx5::Opcode::send_imm:
    case wire::mlx5::Opcode::send_inval:
    case wire::mlx5::Opcode::rdma_write:
    case wire::mlx5::Opcode::rdma_write_imm: return true;
    default: return false;
  }
}

[[nodiscard]] inline std::uint8_t payload_flags(const SendWork& work) {
  std::uint8_t flags = work.solicited ? kSolicited : 0;
  if (work.opcode == wire::mlx5::Opcode::rdma_write_imm || work.opcode == wire::mlx5::Opcode::send_imm)
    flags |= kHasImm;
  if (work.opcode == wire::mlx5::Opcode::send_inval) flags |= kInvalidate;
  return flags;
}

// The work request at block `index`, in the format of this queue pair's transport.
[[nodiscard]] inline DecodeFault decode_work(const QueuePair& qp, std::uint64_t index, SendWork& out) {
  out.index = index;
  const auto available = static_cast<std::uint32_t>(qp.producer - index);
  if (qp.packets) {
    using wire::roce::Transport;
    const Transport transport = qp.packets->path.transport;
    if (transport == Transport::ud) return decode_datagram(qp.sq, index, available, qp.qpn, out);
    if (transport == Transport::xrc) return decode_xrc(qp.sq, index, available, qp.qpn, out);
  }
  return decode_send(qp.sq, index, available, qp.qpn, out);
}

}  // namespace strait::soft::nic
