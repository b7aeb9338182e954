// SPDX-License-Identifier: Apache-2.0
// Engine: a software ConnectX. It consumes mlx5 rings that a program wrote, moves the bytes, and writes completions.
//
// One lock guards everything. The data path takes it with try_lock on the caller's own thread (drive), so posting,
// moving and completing happen without a thread switch; who finds it taken leaves a note for the holder and goes on.
//
//   engine.cpp     objects, passes, sleeping          requester.cpp  send queue -> messages, answers -> completions
//   connect.cpp    links to other engines             responder.cpp  messages -> memory, answers
//   lossy.cpp      messages lost on purpose
//   carrier.cpp    grant or packets                   packets*.cpp   RoCEv2
//   loans.cpp      memory that peers may map          small.cpp      the shortest way through both
//   keys.cpp       windows, keys that change          shared_receive.cpp  receives for many queue pairs
//   modify.cpp     the states of a queue pair         qp_rules.cpp   and what each needs
//   gone.cpp       a device that is removed
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fault_plan.hpp"
#include "base/spin_lock.hpp"
#include "soft/nic/link.hpp"
#include "soft/nic/memory.hpp"
#include "soft/nic/queue_pair.hpp"
#include "soft/nic/strict.hpp"
#include "soft/nic/verbs.hpp"
#include "strait/plugin.h"
#include "sys/event_set.hpp"
#include "sys/fork.hpp"
#include "sys/timer.hpp"

namespace strait::soft::nic {

inline constexpr std::uint32_t kMaxQueuePairs = 1u << 16;

enum class Carrier : std::uint8_t {
  any,      // the ring grant where it works, packets otherwise
  grant,    // the ring grant or nothing
  packets,  // packets, also between processes of one host
};

struct EngineConfig {
  std::string name = "strait0";
  bool cross_copies = true;
  Carrier carrier = Carrier::any;
  std::string packet_address;  // of this host, for RoCEv2; "loopback": one in 127/8 of its own; empty: no packets
  std::vector<std::string> more_addresses;  // of this host: the source GIDs 1, 2, ...; packet_address is number 0
  std::uint32_t packet_bytes = 0;           // path MTU; 0: the largest that fits
  std::string capture;                      // file for a pcapng capture; empty: none
  std::optional<StrictConfig> strict;       // report what a program may not do
  std::optional<FaultPlan> faults;          // what to do wrong
  const sys::Calls* calls = &sys::real_calls();
};

// Counted under the engine's lock.
struct EngineCounts {
  std::uint64_t passes = 0, doorbells = 0, work_requests = 0, completions = 0, error_completions = 0, flushed = 0;
  std::uint64_t messages_sent = 0, messages_received = 0, acks_sent = 0, acks_carried = 0;
  std::uint64_t bytes_landed = 0, bytes_read = 0, cross_copies = 0, mapped_copies = 0, port_copies = 0;
  std::uint64_t atomics = 0;
  std::uint64_t naks_sent = 0, rnr_sent = 0, rnr_resent = 0, out_of_sequence = 0, no_queue = 0, garbage = 0;
  std::uint64_t timeouts = 0, links_opened = 0, links_lost = 0, links_bounced = 0, wakeups = 0, completion_overruns = 0;
  std::uint64_t faults_injected = 0, damaged = 0, resends = 0, ports_private = 0;
};

class Engine {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Engine>> open(const EngineConfig& config);
  // Gives it a port for packets, before any queue pair is connected. The n-th is source GID n.
  [[nodiscard]] Status attach_port(std::unique_ptr<roce::Port> port, std::uint8_t qpn_range = 0);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Objects (control path; each takes the lock)
  [[nodiscard]] std::uint32_t alloc_pd();
  [[nodiscard]] Status free_pd(std::uint32_t pd);
  [[nodiscard]] Result<strait_nic_mr> register_memory(const strait_nic_mr_request& request);
  [[nodiscard]] Status deregister_memory(std::uint32_t key);
  // Its bytes cannot be mapped and go through a port.
  [[nodiscard]] bool reached_by_port(std::uint32_t key);
  // Another key for peers (MemoryTable::AliasRequest). It maps nothing any more when the registration has gone.
  [[nodiscard]] Result<std::uint32_t> add_alias(const MemoryTable::AliasRequest& request);
  [[nodiscard]] Result<std::uint32_t> add_indirect(IndirectRequest request);
  [[nodiscard]] Status remove_alias(std::uint32_t key);  // or an indirect key, whatever its low byte is by now
  // Gives a key that nobody was told of yet the low byte that its owner chose. The key it then has.
  [[nodiscard]] Result<std::uint32_t> name_key(std::uint32_t key, std::uint8_t low_byte);
  // `what`: kRereg*. The key stays the same; after a failure so does everything else.
  [[nodiscard]] Status rereg_memory(std::uint32_t key, std::uint32_t what, const strait_nic_mr_request& request);
  // A memory window of type 1 or 2, bound by work requests. Its key's low byte changes with every bind; any of the keys
  // it had names it here.
  [[nodiscard]] Result<std::uint32_t> alloc_window(std::uint32_t pd, int type);
  [[nodiscard]] Status free_window(std::uint32_t key);
  // Domains of XRC: shared receive queues and targets.
  [[nodiscard]] std::uint32_t alloc_xrcd();
  [[nodiscard]] Status free_xrcd(std::uint32_t xrcd);
  [[nodiscard]] Result<std::uint32_t> create_cq(const strait_nic_cq_request& request);
  [[nodiscard]] Result<std::uint32_t> create_cq(const CqRequest& request);
  // See CompletionQueue::resize. An error is EINVAL to a program.
  [[nodiscard]] Status resize_cq(std::uint32_t cqn, void* ring, std::uint32_t entries, std::uint32_t cqe_bytes);
  [[nodiscard]] Status destroy_cq(std::uint32_t cqn);
  [[nodiscard]] Result<std::uint32_t> create_srq(const SrqRequest& request);
  [[nodiscard]] Status destroy_srq(std::uint32_t srqn);
  // One event when fewer than `limit` receives are left; 0: none.
  [[nodiscard]] Status arm_srq(std::uint32_t srqn, std::uint32_t limit);
  [[nodiscard]] Result<std::uint32_t> srq_limit(std::uint32_t srqn);
  [[nodiscard]] Result<strait_nic_qp> create_qp(const strait_nic_qp_request& request);  // begins in INIT
  [[nodiscard]] Result<std::uint32_t> create_qp(const QpRequest& request);              // begins in RESET
  [[nodiscard]] Status modify_qp(std::uint32_t qpn, const QpAttributes& wanted, std::uint32_t mask);
  [[nodiscard]] Result<QpAttributes> query_qp(std::uint32_t qpn);
  [[nodiscard]] Status connect_qp(std::uint32_t qpn, const strait_nic_connect_request& request);
  // Over packets, to whoever is there.
  [[nodiscard]] Status connect_packets(std::uint32_t qpn, const PacketPath& path);
  [[nodiscard]] Status fail_qp(std::uint32_t qpn);
  [[nodiscard]] Status destroy_qp(std::uint32_t qpn);
  [[nodiscard]] Result<std::string> describe_qp(std::uint32_t qpn);

  // Not owned; outlives the engine or is taken away before. Null: nobody listens.
  void set_event_sink(EventSink* sink);

  // Queue pair 1, which all processes on an address share.
  void set_gsi_sink(GsiSink* sink);
  // Code::again: the port is full for now.
  [[nodiscard]] Status send_gsi(std::uint8_t sgid_index, const Gid& to, std::span<const std::byte> payload,
                                std::uint32_t to_qpn = kGsiQpn);
  // The addresses of this NIC, in the order of their indices.
  [[nodiscard]] std::vector<Gid> gids() const;
  // Payload of a packet: the most that any of the addresses takes, or that one does. 0: there is no such port.
  [[nodiscard]] std::uint32_t path_mtu() const { return packets_ ? config_.packet_bytes : 0; }
  [[nodiscard]] std::uint32_t path_mtu(std::uint8_t sgid_index) const;

  // Progress
  int drive(std::uint32_t qpn_hint);
  // Sends what was posted to one queue pair and does nothing else: an engine that sleeps goes on sleeping, and its
  // owner is woken by what comes back. False: somebody has to drive() it.
  [[nodiscard]] bool post(std::uint32_t qpn);
  [[nodiscard]] bool arm();
  [[nodiscard]] int event_fd() const { return poller_.fd(); }

  [[nodiscard]] const EngineConfig& config() const { return config_; }
  [[nodiscard]] strait_nic_address address() const;
  // Of the port for packets; empty: there is none.
  [[nodiscard]] std::string packet_address() const { return packets_ ? packets_->port(0).address().text() : ""; }
  [[nodiscard]] std::string counters_text();
  // Strict: how many causes of this kind were found and reported.
  [[nodiscard]] std::uint64_t findings(Rule rule);
  [[nodiscard]] EngineCounts counts();
  [[nodiscard]] bool has_sent_packets();
  // Whether its lock can be had within this time. At the end of a program it may be that of a call which a signal
  // interrupted and never returns to: who waits for it then waits for himself.
  [[nodiscard]] bool free_within(std::int64_t ns);

 private:
  explicit Engine(EngineConfig config) : config_(std::move(config)) {}
  friend struct EngineTestPeer;
  friend class Packets;

  // engine.cpp
  [[nodiscard]] QueuePair* find_qp(std::uint32_t qpn) {
    const std::uint32_t index = qpn & (kMaxQueuePairs - 1);
    if (index >= qps_.size()) return nullptr;
    QueuePair* const qp = qps_[index].get();
    return qp != nullptr && qp->qpn == qpn ? qp : nullptr;
  }
  // Whatever is at that place of the table.
  [[nodiscard]] QueuePair* qp_at(std::uint32_t qpn) {
    const std::uint32_t index = qpn & (kMaxQueuePairs - 1);
    return index < qps_.size() ? qps_[index].get() : nullptr;
  }
  int pass(std::uint32_t qpn_hint);
  int look_around(std::uint32_t qpn_hint);
  [[nodiscard]] LinkPolicy link_policy() const {
    LinkPolicy policy;
    policy.cross_copies = config_.cross_copies;
    policy.lossy = config_.faults && (config_.faults->touches_messages() || config_.faults->down_until_ns != 0);
    policy.calls = config_.calls;
    if (!doors_.empty()) {
      policy.range = qpn_range_;
      policy.gids = gids();
    }
    return policy;
  }
  [[nodiscard]] const FaultPlan* faults() const { return config_.faults ? &*config_.faults : nullptr; }
  // The plan has the port down now: nothing leaves and nothing arrives.
  [[nodiscard]] bool is_down() const;
  [[nodiscard]] bool fails_on_purpose(QueuePair& qp, DecodeFault& fault);
  [[nodiscard]] bool overlooks_receive(QueuePair& qp);
  int service_all();
  void fetch_ahead();
  int check_timers();
  void check_sockets();
  [[nodiscard]] bool work_waits();
  void set_sleeping(std::uint32_t value);
  void wake_up();
  [[nodiscard]] std::int64_t sleep_limit_ns();
  [[nodiscard]] Status check_queue_request(const QpRequest& request);
  [[nodiscard]] Result<QueuePair*> make_qp(const QpRequest& request);
  void forget_qp(QueuePair& qp);
  void detach_qp(QueuePair& qp);

  int tell_events();
  bool tell(CompletionQueue& cq) {
    if (!cq.take_event()) return false;
    if (sink_ != nullptr) sink_->on_completion(cq.number(), cq.user());
    return true;
  }

  // keys.cpp
  [[nodiscard]] bool change_key(QueuePair& qp, const KeyChange& change, DecodeFault& fault);
  [[nodiscard]] bool change_indirect(QueuePair& qp, Registration& key, const KeyChange& change, DecodeFault& fault);
  [[nodiscard]] bool invalidate_key(QueuePair& qp, std::uint32_t key);
  [[nodiscard]] Registration* check_remote(const QueuePair& qp, std::uint32_t key, std::uint64_t address,
                                           std::uint64_t length_bytes, std::uint32_t access, KeyFault& fault) {
    return memory_.check_remote(key, qp.target_pd(), qp.qpn, address, length_bytes, access, fault);
  }

  // shared_receive.cpp
  [[nodiscard]] bool aim_at(QueuePair& qp, std::uint32_t srqn);
  void check_limit(SharedReceive& srq);
  [[nodiscard]] DecodeFault take_receive(QueuePair& qp);
  [[nodiscard]] bool take_entry(QueuePair& qp);

  // modify.cpp
  [[nodiscard]] Status begin_receiving(QueuePair& qp, const QpAttributes& attributes, Link* link);
  void begin_sending(QueuePair& qp);
  void update_path(QueuePair& qp);
  void settle(QueuePair& qp);
  void reset_qp(QueuePair& qp);
  void fail_sends(QueuePair& qp);
  void check_drained(QueuePair& qp);
  void raise(AsyncKind kind, const QueuePair& qp) {
    if (sink_ != nullptr) sink_->on_async({kind, qp.qpn, qp.user});
  }
  // Something came while the queue pair was not told yet that the other side is ready.
  void heard_of(QueuePair& qp) {
    if (qp.heard || qp.state != QpState::rtr) [[likely]]
      return;
    qp.heard = true;
    raise(AsyncKind::communication_established, qp);
  }

  // carrier.cpp
  [[nodiscard]] Status open_port();
  [[nodiscard]] PacketPath path_to(const QueuePair& qp, const Address& to,
                                   const strait_nic_connect_request& request) const;
  [[nodiscard]] Status connect_over_packets(QueuePair& qp, const Address& to, const strait_nic_connect_request& request,
                                            std::string reason);

  // connect.cpp
  [[nodiscard]] Result<Link*> link_to(const Address& to, sys::Deadline deadline, std::unique_lock<SpinLock>& lock);
  [[nodiscard]] Result<Link*> link_by_gid(const Gid& gid, std::uint32_t qpn, std::unique_lock<SpinLock>& lock);
  [[nodiscard]] Status open_doors();
  void accept_strangers();
  void drop_dead_links();
  [[nodiscard]] Status adopt(std::unique_ptr<Link> link);
  void lose_link(Link& link);
  void nobody_answers(QueuePair& qp);

  // loans.cpp
  void offer_loan(std::uint32_t key, const strait_nic_mr_request& request);
  [[nodiscard]] std::uint32_t lend(Link& link, std::uint32_t key);
  void end_loans(std::uint32_t key);
  void read_loans(Link& link);
  [[nodiscard]] PiecePool* pool_of(Link& link);  // null: payload for this peer goes without
  void let_go_of_ports();                        // that nothing is registered behind any more
  [[nodiscard]] bool find_borrowed(Link& link, std::span<const ListEntry> far, std::span<iovec> out);

  // small.cpp
  void read_doorbell(QueuePair& qp);
  int service_send(QueuePair& qp);
  [[nodiscard]] bool send_small(QueuePair& qp);
  [[nodiscard]] bool land_small(Link& link, const Slot& message);
  [[nodiscard]] bool land_small_write(QueuePair& qp, const Slot& message);
  [[nodiscard]] bool land_small_send(QueuePair& qp, const Slot& message);
  [[nodiscard]] bool answer_small_read(QueuePair& qp, Link& link, const Slot& message);
  [[nodiscard]] bool land_small_answer(QueuePair& qp, const Slot& message);

  // landing.cpp
  [[nodiscard]] Registration* stage(QueuePair& qp, Registration* real, const LandingPlace& place);
  [[nodiscard]] Registration* stage_receive(QueuePair& qp, std::uint32_t length);
  [[nodiscard]] Registration* stage_answer(QueuePair& qp, const Sent& sent, const SendWork& work);
  [[nodiscard]] bool land_later(QueuePair& qp, std::uint32_t length);
  [[nodiscard]] bool answer_later(QueuePair& qp);
  void wait_to_land(QueuePair& qp, Landing& landing);
  int finish_landings();
  void finish_landing(QueuePair& qp);
  void finish_answer(QueuePair& qp);
  void finish_landings_of(const EngineId& peer);
  [[nodiscard]] bool land_staged(QueuePair& qp, std::unique_ptr<Landing> landing);
  void abandon_landing(QueuePair& qp);
  void abandon_answer(QueuePair& qp);
  void abandon(QueuePair& qp, std::unique_ptr<Landing> landing);
  void show_last_line(const Landing& landing);
  void raise_guard(const QueuePair& qp, Landing& landing);
  void lower_guard(Landing& landing);
  void lower_silent_guards(std::int64_t now);
  [[nodiscard]] std::int64_t silence_left_ns(const Landing* landing, std::int64_t now) const;
  void give_back_landings(const std::byte* bytes, std::uint64_t length);
  // Before the NIC itself touches memory: what peers do there while another writes it is their own affair.
  void open_guards(const Registration& memory, std::uint64_t address, std::uint64_t length) const {
    if (strict_ && memory.bytes != nullptr) [[unlikely]]
      Strict::open(memory.at(address), length);
  }

  // port_copies.cpp
  [[nodiscard]] bool begin_copy(PortCopy& copy, Registration& registration, std::uint64_t address,
                                std::uint64_t length_bytes, bool into_pool);
  [[nodiscard]] bool look_at(PortCopy& copy);
  void leave_behind(PortCopy& copy);
  [[nodiscard]] bool goes_through_pool(QueuePair& qp, const SendWork& work);
  void read_ahead(QueuePair& qp);
  void forget_ahead(QueuePair& qp);
  void take_back(QueuePair& qp, std::uint32_t msn);
  [[nodiscard]] bool must_wait(Link& link, const Slot& message);
  [[nodiscard]] Registration* writes_by_itself(QueuePair& qp, std::uint32_t rkey, std::uint64_t raddr,
                                               std::uint32_t length);
  [[nodiscard]] bool land_piece(QueuePair& qp, Link& link, const Slot& message, Registration* into,
                                const ReceiveWork* receive);
  [[nodiscard]] bool finish_pieces(QueuePair& qp);
  void note_copying(QueuePair& qp);
  int finish_copies();
  void abandon_pieces(QueuePair& qp);
  void await_copies();
  // Nobody wakes us when a copy ends, and most take some microseconds: who drives the engine is to go on.
  [[nodiscard]] bool copies_end_soon() const;
  [[nodiscard]] bool copies_under_way() const { return !copying_.empty() || !left_behind_.empty(); }

  // gone.cpp
  // A work request is about to begin; false: it does.
  [[nodiscard]] bool leaves_now() {
    if (gone_at_ == 0) [[likely]]
      return false;
    leaving_ = leaving_ || begun_ + 1 >= gone_at_;
    return leaving_;
  }
  int pass_without_device();
  void vanish();
  [[nodiscard]] Status there() const;  // Code::gone: it was removed

  // lossy.cpp
  void publish(Link& link, QueuePair* qp, std::uint32_t slots) {
    if (!link.lossy) [[likely]]
      return link.writer.publish(slots);
    publish_lossy(link, qp, slots);
  }
  void publish_lossy(Link& link, QueuePair* qp, std::uint32_t slots);
  void release_held(Link& link);
  [[nodiscard]] bool arrives(const Link& link, const Slot& message);
  void straighten(QueuePair& qp, Link& link, const Slot& message);
  void ask_again(QueuePair& qp, Link& link);
  void on_again(QueuePair& qp, const Slot& message);
  static void remember(QueuePair& qp, const PendingAnswer& answer);
  int resend(QueuePair& qp);

  // requester.cpp
  int service_queue(QueuePair& qp);
  enum class Sending { sent, blocked, fault };
  [[nodiscard]] Sending start_work(QueuePair& qp, const SendWork& work, DecodeFault& fault);
  [[nodiscard]] Sending send_payload_request(QueuePair& qp, const SendWork& work, Sent& sent, DecodeFault& fault);
  [[nodiscard]] Sending send_read(QueuePair& qp, const SendWork& work, Sent& sent, DecodeFault& fault);
  [[nodiscard]] Sending send_atomic(QueuePair& qp, const SendWork& work, Sent& sent, DecodeFault& fault);
  [[nodiscard]] bool check_pieces(QueuePair& qp, const SendWork& work, std::uint32_t access, DecodeFault& fault);
  [[nodiscard]] bool gather(QueuePair& qp, const SendWork& work, std::uint32_t skip, std::byte* into,
                            std::uint32_t length);
  // Why a port refused to be read.
  [[nodiscard]] wire::mlx5::Syndrome unreadable(const SendWork& work);
  [[nodiscard]] Sending send_pieces(QueuePair& qp, const SendWork& work, DecodeFault& fault);
  void write_address_list(QueuePair& qp, const SendWork& work, Slot& header);
  void pin_pieces(QueuePair& qp, const SendWork& work, Sent& sent);
  void unpin(QueuePair& qp, const Sent& sent, bool newest);
  void on_ack(QueuePair& qp, std::uint32_t ack);
  void on_answer(QueuePair& qp, const Slot& message, Link& link);
  void on_read_data(QueuePair& qp, const Slot& message, Link& link);
  void on_rnr(QueuePair& qp, const Slot& message);
  void answered(QueuePair& qp, Sent& sent, std::uint32_t msn);
  void go_back(QueuePair& qp, std::uint32_t msn);
  [[nodiscard]] Sent* find_sent(QueuePair& qp, std::uint32_t msn);
  [[nodiscard]] bool land_answer(QueuePair& qp, const Sent& sent, std::uint32_t offset, const std::byte* from,
                                 std::uint32_t length);
  void advance(QueuePair& qp);
  void fail_message(QueuePair& qp, std::uint32_t msn, wire::mlx5::Syndrome syndrome, std::uint8_t vendor);
  void fail_oldest(QueuePair& qp, wire::mlx5::Syndrome syndrome, std::uint8_t vendor);
  void complete(QueuePair& qp, const Sent& sent, wire::mlx5::Syndrome syndrome);
  void push_fault(QueuePair& qp, const SendWork& work, const DecodeFault& fault);
  void fail_queue(QueuePair& qp);
  void flush_queue(QueuePair& qp);
  void flush_sends(QueuePair& qp);

  // Memory behind a port, in large pieces.
  [[nodiscard]] static PortPieces& port_of(QueuePair& qp) {
    if (!qp.port) qp.port = std::make_unique<PortPieces>();
    return *qp.port;
  }
  // Payload of a peer: the first of its message, or the last when there is no `more`.
  [[nodiscard]] bool put_bytes(QueuePair& qp, const Registration& into, std::uint64_t address, const std::byte* from,
                               std::uint64_t length, bool first, bool more) {
    open_guards(into, address, length);
    if (into.bytes != nullptr)
      return write_bytes(into, address, from, length) && (more || !qp.port || qp.port->landing.finish(memory_));
    WriteBehind& landing = port_of(qp).landing;
    if (first) landing.forget();
    return landing.write(memory_, into, address, from, length, more);
  }
  // Of what a peer reads, at `offset`; `left` bytes of it follow.
  [[nodiscard]] bool get_bytes(QueuePair& qp, const Registration& from, std::uint64_t tag, std::uint64_t address,
                               std::byte* into, std::uint64_t length, std::uint32_t offset, std::uint64_t left) const {
    open_guards(from, address, length);
    if (from.bytes != nullptr) return read_bytes(from, address, into, length);
    ReadAhead& answered = port_of(qp).answered;
    if (offset == 0) answered.forget();
    return answered.read(from, tag, address, into, length, left);
  }

  // responder.cpp
  int receive(Link& link);
  void on_message(Link& link, const Slot& message);
  void on_request(QueuePair& qp, Link& link, const Slot& message);
  void on_payload(QueuePair& qp, Link& link, const Slot& message);
  void on_more(QueuePair& qp, Link& link, const Slot& message);
  void on_read(QueuePair& qp, Link& link, const Slot& message);
  void on_atomic(QueuePair& qp, Link& link, const Slot& message);
  // Bytes into the pieces of a receive, from `skip` on. False: a key is not valid any more.
  [[nodiscard]] bool scatter(QueuePair& qp, const ReceiveWork& receive, std::uint32_t skip, const std::byte* from,
                             std::uint32_t length, bool more);
  void fail_receive(QueuePair& qp, wire::mlx5::Syndrome syndrome);
  void deliver(QueuePair& qp, const Arriving& what);
  [[nodiscard]] bool land(QueuePair& qp, Link& link, const Slot& message, Registration* into,
                          const ReceiveWork* receive, std::uint32_t offset, std::uint32_t length);
  [[nodiscard]] bool land_cross(QueuePair& qp, Link& link, const Slot& message, Registration* into,
                                const ReceiveWork* receive);
  [[nodiscard]] Status fetch_through_port(Link& link, const Slot& message, Registration* into,
                                          const ReceiveWork* receive, std::span<const iovec> far);
  void finish_payload(QueuePair& qp, const Arriving& what);
  void executed(QueuePair& qp) {
    ++qp.msn_expected;
    if (qp.ack_due) return;
    qp.ack_due = true;
    ack_due_.push_back(&qp);
  }
  void refuse(QueuePair& qp, Link& link, std::uint32_t msn, wire::mlx5::Syndrome to_peer,
              wire::mlx5::Syndrome for_receive, std::uint8_t vendor = 0);
  void refused(QueuePair& qp, wire::mlx5::Syndrome to_peer, wire::mlx5::Syndrome for_receive);
  void answer(Link& link, const PendingAnswer& answer);
  [[nodiscard]] bool try_answer(Link& link, PendingAnswer& answer);
  void flush_answers(Link& link);
  int flush_acks();
  // Addresses, and the acknowledgement it carries.
  void stamp(QueuePair& qp, Slot& header) {
    header.to_qpn = qp.remote_qpn;
    header.from_qpn = qp.qpn;
    header.ack = carried_ack(qp);
  }
  [[nodiscard]] std::uint32_t carried_ack(QueuePair& qp) {
    counts_.acks_carried += qp.ack_due ? 1 : 0;
    qp.ack_due = false;
    return qp.msn_expected;
  }
  // After an entry was written, or found no room.
  void wrote(CompletionQueue& cq, bool written, std::uint32_t qpn, std::uint64_t wqe) {
    ++(written ? counts_.completions : counts_.completion_overruns);
    if (!written) report_overrun(cq, qpn, wqe);
    if (cq.events()) (void)tell(cq);
  }
  void write_receive_completion(QueuePair& qp, const Completion& completion);
  void post_completion(CompletionQueue& cq, const Completion& completion);
  // A block belongs to its work request until that is complete: after a loss it is read again.
  void report_overrun(QueuePair& qp, std::uint64_t producer) {
    const std::uint64_t oldest = qp.seq_done != qp.seq_next ? qp.sent_at(qp.seq_done).index : qp.next;
    if (producer - oldest <= qp.sq_blocks) return;
    strict_->found(Rule::send_queue_overrun, qp.qpn, oldest,
                   fmt::format("it is not complete, and {} blocks were posted from it on; the queue has {}",
                               producer - oldest, qp.sq_blocks));
  }
  void report_overrun(CompletionQueue& cq, std::uint32_t qpn, std::uint64_t wqe) {
    if (sink_ != nullptr && !std::exchange(cq.error_told, true))
      sink_->on_async({AsyncKind::cq_error, cq.number(), cq.user()});
    if (!strict_ || (faults() && faults()->overrun != 0)) return;  // on purpose: not the program's doing
    strict_->found(
        Rule::completion_queue_overrun, qpn, wqe,
        fmt::format("completion queue {} has no free entry, and loses this and all later ones", cq.number()));
  }
  void overrun_on_purpose(CompletionQueue& cq) {
    if (faults() && faults()->overrun != 0 && counts_.completions + 1 == faults()->overrun) [[unlikely]]
      cq.overrun_now();
  }

  EngineConfig config_;
  EngineId id_{};
  sys::ForkMark mark_;
  SpinLock mutex_;                      // the data path only ever tries it
  std::atomic<std::uint32_t> note_{0};  // somebody found the lock taken and wants another pass

  EventSink* sink_ = nullptr;
  GsiSink* gsi_sink_ = nullptr;
  MemoryTable memory_;
  struct Loan {  // the file behind a local registration, to be mapped by owners who land or fetch its bytes
    sys::Fd file;
    std::uint64_t offset;
  };
  // Descriptors of this process, of which a NIC would need none: of the newest registrations only. The bytes of others
  // are copied by system calls.
  static constexpr std::size_t kMostLoans = 256;
  std::unordered_map<std::uint32_t, Loan> loans_;  // by lkey
  std::deque<std::uint32_t> loan_order_;           // their keys, oldest first
  std::uint32_t next_pd_ = 1;
  std::unordered_map<std::uint32_t, std::uint32_t> pds_;  // pd -> users
  std::unordered_map<std::uint32_t, std::unique_ptr<CompletionQueue>> cqs_;
  std::uint32_t next_cqn_ = 1;
  std::vector<CompletionQueue*> event_cqs_;  // that may be armed
  std::unordered_map<std::uint32_t, std::unique_ptr<SharedReceive>> srqs_;
  std::uint32_t next_srqn_ = 1;
  std::unordered_map<std::uint32_t, std::uint32_t> xrcds_;  // domain -> users
  std::uint32_t next_xrcd_ = 1;
  struct alignas(64) Nowhere {  // rings and records of queues that a queue pair does not have
    std::byte bytes[256] = {};
  };
  Nowhere nowhere_;
  std::unique_ptr<CompletionQueue> no_cq_;
  std::vector<std::unique_ptr<QueuePair>> qps_;  // index = low 16 bits of the qpn
  std::vector<std::uint8_t> qp_generation_;
  bool mtu_given_ = false;
  std::uint8_t qpn_range_ = 0;  // top byte of every queue pair's number; 0: the generation
  std::uint32_t next_qp_ = 1;   // numbers rest before they name another queue pair
  std::vector<QueuePair*> active_;
  std::size_t next_look_ = 0;         // in active_
  std::size_t queues_per_look_ = 64;  // of active_ in a pass
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<QueuePair*> ack_due_;
  std::vector<QueuePair*> ack_now_;
  std::unique_ptr<Strict> strict_;     // null: an ordinary NIC
  std::vector<QueuePair*> copying_;    // with copies of ports under way
  std::vector<PortCopy> left_behind_;  // under way, for nobody any more
  std::int64_t copies_moved_ns_ = 0;   // when one was last begun or ended
  std::vector<QueuePair*> landing_;    // with a payload that waits
  std::unique_ptr<Packets> packets_;   // null: this engine has no port
  sys::Mapping doorbells_;             // one cache line per queue pair
  std::vector<std::byte> bounce_;

  std::int64_t opened_ns_ = 0;
  std::int64_t now_ns_ = 0;  // of the last look around
  bool blocked_ = false;     // a queue pair waits for room in a ring, or for a fence
  bool leaving_ = false;     // with the next pass
  bool gone_ = false;
  std::uint64_t gone_at_ = 0;  // the work request that it does not begin any more; 0: none
  std::uint64_t begun_ = 0;    // counted only with that
  bool sleeping_ = false;
  bool barriers_ = false;

  sys::ProcessFd listener_;
  struct Greeting {  // accepted, hello not read yet
    sys::Fd socket;
    std::int64_t since_ns;
    bool at_door;  // found by an address and a range, not by this engine's own name
  };
  std::vector<sys::ProcessFd> doors_;                       // one for each address
  std::unordered_map<std::string, EngineId> behind_doors_;  // who answered there
  Shunned shunned_;                                         // did not answer in time: only packets with them
  std::vector<Greeting> greeting_;
  sys::Event wake_;
  sys::Timer timer_;
  sys::EventSet poller_;
  EngineCounts counts_;
};

}  // namespace strait::soft::nic
