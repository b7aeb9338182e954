// SPDX-License-Identifier: Apache-2.0
// Packets: the carrier that reaches other hosts and other people's stacks. RoCEv2, reliable and unreliable connections
// and datagrams, over a port that moves packets.
//
// Runs under the engine's lock, on whatever thread drives the engine. Packets may be lost, doubled, late, or made up by
// strangers; what a queue pair's program sees is the same as over the ring grant.
//
//   packets.cpp          queue pairs, passes, timers       packets_requester.cpp  work requests -> packets, answers
//   packets_responder.cpp  requests -> memory, answers     packets_datagram.cpp   unreliable datagrams
//   packets_gsi.cpp      queue pair 1
//   packets_wire.cpp     the last step out: captures, faults on purpose
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fault_plan.hpp"
#include "soft/nic/decode.hpp"
#include "soft/nic/memory.hpp"
#include "soft/roce/capture.hpp"
#include "soft/roce/packet.hpp"
#include "soft/roce/port.hpp"

namespace strait::soft::nic {

[[nodiscard]] inline std::uint32_t packets_of(std::uint32_t bytes, std::uint32_t pmtu) {
  return bytes == 0 ? 1 : (bytes - 1) / pmtu + 1;
}

class Engine;
struct QueuePair;
struct Sent;
struct Completion;

// The other end of a connection and how to treat it. Both ends must agree on the PMTU and, crosswise, on the PSNs.
struct PacketPath {
  wire::roce::Transport transport = wire::roce::Transport::rc;
  std::uint8_t port = 0;  // of this side: which of its addresses it speaks from
  roce::IpAddress to;
  std::uint32_t remote_qpn = 0;
  std::uint32_t send_psn = 0;
  std::uint32_t receive_psn = 0;
  std::uint32_t pmtu_bytes = 1024;
  std::int64_t ack_timeout_ns = 0;  // 0: waits for ever
  std::uint32_t retries = 7;
  std::uint32_t rnr_retries = 7;
  std::uint8_t rnr_timer = 1;        // what this side tells a sender when no receive is posted
  std::uint32_t max_reads_out = 16;  // reads and atomics of ours under way
  std::uint32_t max_reads_in = 16;   // of the peer's, remembered for duplicates
  std::uint32_t qkey = 0;            // datagrams: what must arrive
  [[nodiscard]] bool reliable() const {
    return transport == wire::roce::Transport::rc || transport == wire::roce::Transport::xrc;
  }
};

// The packet sequence numbers of one started work request.
struct PsnRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t landed = 0;  // read: response packets that have arrived, in order
};

// An answer that waits for its turn: answers leave in the order of the requests.
struct PacketAnswer {
  enum class What : std::uint8_t { ack, read, atomic };
  What what = What::ack;
  std::uint8_t syndrome = wire::roce::kSyndromeAckNoCredits;
  std::uint32_t psn = 0;
  std::uint32_t last_psn = 0;  // read
  std::uint32_t msn = 0;
  std::uint64_t va = 0;  // read
  std::uint32_t pd = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint32_t offset = 0;    // read: bytes that have left
  std::uint64_t original = 0;  // atomic
};

// A read or atomic that was executed, for the case that it is asked for again.
struct Replay {
  PacketAnswer answer;
  bool used = false;
};

// A queue pair's state on this carrier; the rest is in QueuePair. What every packet needs comes first: with very many
// queue pairs each line of cache that is looked at has to be fetched.
struct alignas(64) PacketState {
  PacketPath path;
  std::uint16_t source_port = 0;
  bool listed = false;    // in Packets::busy_
  bool timed = false;     // in Packets::timed_
  bool awaiting = false;  // something is on its way and not acknowledged

  // Responder
  bool nak_sent = false;  // for the gap before epsn; silence until it is filled
  bool ack_due = false;
  bool dropping = false;                                    // unreliable: the rest of a broken message
  wire::roce::Kind in_message = wire::roce::Kind::unknown;  // send or write whose last packet has not come
  std::uint32_t epsn = 0;
  std::uint32_t msn = 0;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;  // write: of the message
  std::uint32_t landed = 0;

  // Requester. Packets [una, sent_end) are on their way; the cursor is what goes next, and goes back after a loss.
  std::uint32_t una = 0;
  std::vector<PacketAnswer> answers;  // few, in the order in which they leave
  std::uint32_t sent_end = 0;
  std::uint32_t psn_end = 0;  // of the started work requests
  std::uint64_t cursor_seq = 0;
  std::uint32_t cursor_packet = 0;
  std::uint32_t window = 0;  // packets
  std::uint32_t window_credit = 0;
  bool retrying = false;  // went back, and has not heard of progress since
  std::uint32_t retries_used = 0;
  std::uint32_t rnr_used = 0;
  std::int64_t resume_at_ns = 0;  // after "receiver not ready"; 0: go on
  std::int64_t resend_at_ns = 0;  // 0: the timer has not looked yet
  std::vector<PsnRange> ranges;   // beside QueuePair::sent
  std::int64_t timed_at_ns = 0;   // 0: none
  std::uint32_t timed_psn = 0;    // a packet sent once whose acknowledgement is awaited
  std::int64_t resend_after_ns = 0;
  std::int64_t retry_at_ns = 0;
  std::int64_t round_trip_ns = 0;  // smoothed; 0: none was measured yet
  std::int64_t round_trip_varies_ns = 0;

  std::vector<Replay> replays;
  std::size_t next_replay = 0;
  std::int64_t cnp_at_ns = 0;
  roce::Packet late;  // strict: the last packet of a payload that waits
  struct Waiting {
    roce::Flow flow;
    bool ecn_ce;
    bool id_unknown;
    std::uint16_t ip_id;
    std::vector<std::byte> bytes;
  };
  std::deque<Waiting> inbox;  // strict: what came behind it
  std::string reason;         // why packets, for people

  [[nodiscard]] PsnRange& range_at(std::uint64_t seq) { return ranges[seq & (ranges.size() - 1)]; }
};

struct PacketCounts {
  std::uint64_t packets_sent = 0, packets_received = 0, packets_resent = 0, acks_sent = 0, acks_received = 0;
  std::uint64_t naks_received = 0, rnr_received = 0, duplicates = 0;
  std::uint64_t resends = 0, cnp_sent = 0, cnp_received = 0, reads_replayed = 0, atomics_replayed = 0;
  std::array<std::uint64_t, roce::kDropReasons> drops{};
};

class Packets final : public roce::Sink {
 public:
  Packets(Engine& engine, std::unique_ptr<roce::Port> port) : engine_(engine) { add_port(std::move(port)); }

  // After sleeping: something may have arrived, for another process on this address if nobody is connected here.
  void look_soon() { look_everywhere_ = true; }
  // Somebody is going to sleep until a port's descriptor is readable. False: one cannot be relied on.
  [[nodiscard]] bool watch();
  void add_port(std::unique_ptr<roce::Port> port) { ports_.push_back({std::move(port)}); }
  [[nodiscard]] std::size_t port_count() const { return ports_.size(); }
  [[nodiscard]] roce::Port& port(std::size_t i) { return *ports_[i].port; }
  [[nodiscard]] const roce::Port& port(std::size_t i) const { return *ports_[i].port; }
  [[nodiscard]] const PacketCounts& counts() const { return counts_; }
  // ",packets_sent=1,...,drops_bad_icrc=2": to be appended to the engine's own.
  [[nodiscard]] std::string counters_text() const;
  // Everything that is sent and received from now on is written to a pcapng file.
  [[nodiscard]] Status capture_to(const std::string& file);

  [[nodiscard]] Status connect(QueuePair& qp, const PacketPath& path);
  void settle(QueuePair& qp);
  void forget(QueuePair& qp);
  // Before the first packet that asks for something.
  static void begin_sending(QueuePair& qp, std::uint32_t psn);
  // Work was posted: sends what may be sent.
  int serve(QueuePair& qp);
  // Takes what has arrived, answers, and gets on with queue pairs that wait for room or acknowledgements.
  int pass();
  int check_timers(std::int64_t now_ns);
  // Nanoseconds until a timer fires; INT64_MAX: none runs.
  [[nodiscard]] std::int64_t timer_limit_ns(std::int64_t now_ns) const;
  // There is something to do that no descriptor tells of.
  [[nodiscard]] bool work_waits() const;

  // "RoCEv2 from 10.0.0.1 to 10.0.0.2, packets of 1024 bytes"
  [[nodiscard]] std::string describe(const QueuePair& qp) const;

  void on_packet(const roce::Arrival& arrival) override;
  void expect(std::span<const std::byte> next, std::span<const std::byte> after) override;
  // While somebody listens to queue pair 1, the ports are looked at as if it were connected.
  void expect_gsi(bool on) { on ? ++connected_ : --connected_; }
  // A datagram of queue pair 1.
  [[nodiscard]] Status send_gsi(std::uint8_t from, const roce::IpAddress& to, std::uint32_t to_qpn,
                                std::span<const std::byte> payload);
  // Strict: a payload that waited may land.
  void finish_late(QueuePair& qp);

 private:
  friend struct PacketsTestPeer;
  static constexpr std::uint64_t kNoWqe = ~std::uint64_t{0};
  static constexpr std::int64_t kFirstResendNs = 1'000'000;
  static constexpr std::int64_t kLongestResendNs = 100'000'000;

  // packets.cpp
  void list(QueuePair& qp);
  void look_after(QueuePair& qp);
  void guess_next_post(QueuePair& qp);
  void answered(PacketState& state) {
    under_way_ -= state.awaiting ? 1 : 0;
    state.awaiting = false;
  }
  void send_acks();
  void handle(QueuePair& qp, const roce::Arrival& arrival, const roce::Packet& packet);
  [[nodiscard]] static bool has_work(const QueuePair& qp);
  void drop(roce::Drop why) { ++counts_.drops[static_cast<std::size_t>(why)]; }
  [[nodiscard]] roce::Headers reply_headers(const QueuePair& qp, wire::roce::Opcode opcode, std::uint32_t psn) const;

  // packets_wire.cpp
  // Room for a packet, or null: the port is full for now.
  [[nodiscard]] std::byte* open_packet(std::uint8_t from, const roce::IpAddress& to, std::uint16_t source_port,
                                       std::size_t payload_bytes);
  [[nodiscard]] std::byte* open_packet(const PacketState& state, std::size_t payload_bytes) {
    return open_packet(state.path.port, state.path.to, state.source_port, payload_bytes);
  }
  // Leaves as it is, or as the plan of faults has it.
  void close_packet(QueuePair& qp, std::byte* packet, std::size_t bytes);
  struct Leaving {
    std::uint64_t flow;  // whose packets the plan counts together, and which of them this is
    std::uint64_t roll;
    std::uint16_t source_port;
    std::uint32_t qpn;  // who sends it
  };
  void leave(const Leaving& what, std::byte* packet, std::size_t bytes);
  void commit(const Leaving& what, std::byte* packet, std::size_t bytes, Fault fault);
  [[nodiscard]] std::string comment_on(const Leaving& what, Fault fault) const;
  void hold(const Leaving& what, const std::byte* packet, std::size_t bytes, Fault fault);
  void release_held();
  void record_arrival(const roce::Arrival& arrival) {
    if (capture_) [[unlikely]]
      write_arrival(arrival);
  }
  void write_arrival(const roce::Arrival& arrival);
  [[nodiscard]] bool is_down() const;
  void flush();

  // packets_requester.cpp
  int transmit(QueuePair& qp, int budget);
  [[nodiscard]] bool start_next(QueuePair& qp);
  [[nodiscard]] bool send_one(QueuePair& qp);
  [[nodiscard]] bool decode_at(const QueuePair& qp, std::uint64_t seq);
  void seek(QueuePair& qp, std::uint32_t psn);
  void acknowledge(QueuePair& qp, std::uint32_t end_psn);
  void take_response(QueuePair& qp, std::uint64_t seq);
  void finish_response(QueuePair& qp);
  void retry(QueuePair& qp, std::uint32_t psn);
  static void time_packet(PacketState& state, std::uint32_t psn, bool again);
  static void measure_round_trip(PacketState& state);
  void on_ack(QueuePair& qp, const roce::Packet& packet);
  void on_nak(QueuePair& qp, const roce::Packet& packet);
  void on_response(QueuePair& qp, const roce::Packet& packet);
  void fail_at(QueuePair& qp, std::uint32_t psn, wire::mlx5::Syndrome syndrome, std::uint8_t vendor);
  static void slow_down(PacketState& state);

  // packets_gsi.cpp
  void on_gsi(const roce::Arrival& arrival, const roce::Packet& packet);
  [[nodiscard]] std::size_t port_of(const roce::IpAddress& address) const;

  // packets_datagram.cpp
  [[nodiscard]] bool send_datagram(QueuePair& qp, const SendWork& work, std::uint32_t psn);
  void on_datagram(QueuePair& qp, const roce::Packet& packet);

  // packets_responder.cpp
  void on_request(QueuePair& qp, const roce::Packet& packet);
  void on_duplicate(QueuePair& qp, const roce::Packet& packet);
  void on_payload(QueuePair& qp, const roce::Packet& packet);
  void on_read(QueuePair& qp, const roce::Packet& packet);
  void on_atomic(QueuePair& qp, const roce::Packet& packet);
  [[nodiscard]] static bool fits_sequence(const PacketState& state, const wire::roce::Shape& shape);
  [[nodiscard]] bool right_length(const QueuePair& qp, const roce::Packet& packet,
                                  const wire::roce::Shape& shape) const;
  [[nodiscard]] bool land(QueuePair& qp, const roce::Packet& packet);
  void finish_message(QueuePair& qp, const roce::Packet& packet);
  void refuse(QueuePair& qp, std::uint32_t psn, std::uint8_t syndrome, wire::mlx5::Syndrome for_receive);
  void not_ready(QueuePair& qp, std::uint32_t psn);
  void owe_ack(QueuePair& qp);
  void queue_answer(QueuePair& qp, const PacketAnswer& answer);
  void queue_again(QueuePair& qp, const PacketAnswer& answer);
  void remember(QueuePair& qp, const PacketAnswer& answer);
  int send_answers(QueuePair& qp, int budget);
  [[nodiscard]] bool send_answer(QueuePair& qp, PacketAnswer& answer);
  [[nodiscard]] bool send_response(QueuePair& qp, PacketAnswer& answer);

  Engine& engine_;
  static constexpr unsigned kQuietAfter = 256;
  struct OwnPort {
    std::unique_ptr<roce::Port> port;
    unsigned quiet_passes = kQuietAfter;  // since something came; from kQuietAfter on it is looked at now and then
    bool unflushed = false;
  };
  std::vector<OwnPort> ports_;
  std::vector<QueuePair*> busy_;  // have something to send
  std::size_t next_busy_ = 0;
  std::vector<QueuePair*> timed_;  // wait for answers, or did when a timer last looked
  QueuePair* posted_last_ = nullptr;
  std::size_t under_way_ = 0;  // of those, the ones that were not answered yet
  std::vector<QueuePair*> ack_due_;
  unsigned ack_age_ = 0;                    // passes since the first of them came due
  const roce::Arrival* arrival_ = nullptr;  // while on_packet runs
  bool unflushed_ = false;
  std::uint64_t unflushed_packets_ = 0;  // by posts alone
  std::size_t connected_ = 0;
  unsigned passes_ = 0;
  bool look_everywhere_ = false;
  std::unique_ptr<roce::Capture> capture_;
  SendWork work_{};                     // the work request last looked at, decoded
  const QueuePair* work_of_ = nullptr;  // null: none is
  std::uint64_t work_seq_ = 0;
  bool work_checked_ = false;         // just now, its pieces too
  std::uint64_t about_wqe_ = kNoWqe;  // what the packet being made belongs to, for the capture
  std::uint8_t going_from_ = 0;       // port of the packet being made
  roce::IpAddress going_to_;          // a datagram's destination is its own, not the queue pair's
  struct Held {                       // late on purpose
    std::int64_t due_ns;
    std::uint64_t due_packet;
    std::uint8_t from;
    roce::IpAddress to;
    std::uint16_t source_port;
    std::string comment;  // for the capture, of when it was made
    std::vector<std::byte> bytes;
  };
  std::vector<Held> held_;
  std::uint32_t gsi_psn_ = 0;
  std::uint64_t gsi_rolls_ = 0;
  PacketCounts counts_;
};

}  // namespace strait::soft::nic
