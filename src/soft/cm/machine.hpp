// SPDX-License-Identifier: Apache-2.0
// Machine: the state of all connections and listeners of a process, driven by calls, messages and time.
//
// It sends through a MadPort, reports through a Sink, and asks nobody for the time but its clock: tests lose, double
// and reorder messages and let hours pass. One thread at a time; Sink and MadPort must not call back into it.
//
//   machine.cpp          what a program asks for         machine_receive.cpp  what a peer says
//   machine_service.cpp  datagram services (SIDR)        machine_time.cpp     sending, repeating, giving up
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "soft/cm/message.hpp"

namespace strait::soft::cm {

// Where messages leave. Best effort, as the network is.
class MadPort {
 public:
  virtual ~MadPort() = default;
  virtual void send(const IpAddress& from, const IpAddress& to, const Mad& mad) = 0;
};

using Id = std::uint32_t;  // a connection's local communication id, or a listener; 0 is nobody

// What two ends tell each other about their queue pairs.
struct QueueParameters {
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  bool srq = false;
  std::uint8_t responder_resources = 0;  // reads and atomics this end serves at a time
  std::uint8_t initiator_depth = 0;      // and begins at a time
  bool flow_control = false;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::vector<std::byte> private_data;
};

struct ConnectRequest {
  std::uint64_t service_id = 0;
  IpAddress source;
  IpAddress destination;
  wire::mad::Transport transport = wire::mad::Transport::rc;
  std::uint8_t extended_transport = 0;
  std::uint8_t mtu_code = 5;
  std::uint8_t ack_timeout = 18;
  std::uint8_t traffic_class = 0;
  std::uint16_t pkey = 0xffff;
  QueueParameters queue;  // its private data begins with the addresses, if the service wants them
};

enum class EventKind : std::uint8_t {
  request,          // to a listener; `id` is new
  response,         // to connect()
  established,      // to accept(); of a datagram service: to resolve()
  rejected,         // status: the reason
  unreachable,      // status: -ETIMEDOUT, or what a datagram service answered
  disconnected,     // by either side
  timewait_exit,    // the queue pair's number may be used again
  service_request,  // a datagram service is asked for, to a listener; `id` is new
};

struct Event {
  EventKind kind = EventKind::request;
  Id id = 0;
  Id listener = 0;
  int status = 0;
  QueueParameters peer;  // from the receiver's point of view: what it may begin, and must serve
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_event(Event event) = 0;
};

enum class State : std::uint8_t {
  req_sent,
  req_received,
  rep_sent,
  rep_received,
  established,
  dreq_sent,
  dreq_received,
  timewait,
  sidr_sent,
  sidr_received,
  sidr_answered,
  ended,  // no message will come of it any more
};
[[nodiscard]] const char* state_name(State state);

// What the two ends know of each other; for the attributes of a queue pair.
struct Connection {
  Id id = 0;
  State state = State::req_sent;
  bool passive = false;
  bool refused = false;   // by this end, and `answer` says so
  bool released = false;  // by its owner: no more events, and gone when it ends
  std::uint32_t remote_comm_id = 0;
  std::uint32_t asked_to_wait_by = 0;  // the peer's id, before its answer makes it the remote one
  std::uint64_t remote_guid = 0;
  std::uint64_t tid = 0;
  std::uint64_t service_id = 0;
  IpAddress local;
  IpAddress remote;
  std::uint16_t pkey = 0xffff;
  wire::mad::Transport transport = wire::mad::Transport::rc;
  std::uint8_t extended_transport = 0;
  std::uint32_t local_qpn = 0;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t receive_psn = 0;  // where the peer begins
  std::uint32_t send_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t mtu_code = 5;
  std::uint8_t ack_timeout = 18;
  std::uint8_t traffic_class = 0;
  Id listener = 0;
  bool waiting = false;  // counts against the listener's backlog

  // The message that is repeated until it is answered, and the answer that is given again.
  std::optional<Mad> repeat;
  std::optional<Mad> answer;
  std::int64_t due_ns = 0;  // 0: no timer
  std::int64_t wait_ns = 0;
  int tries_left = 0;
};

// What a message calls the receiver's end; 0: it does not know it yet.
[[nodiscard]] std::uint32_t addressee(const Message& message);
// What REQ and SIDR_REQ ask for. The address is in the private data; a service without one has the packet's, `to`.
struct Asked {
  std::uint64_t service_id = 0;
  IpAddress address;
};
[[nodiscard]] std::optional<Asked> asked(const IpAddress& to, const Message& message);

struct MachineConfig {
  std::uint64_t node_guid = 0;
  // Of the NIC that has a local address; empty: node_guid is.
  std::function<std::uint64_t(const IpAddress& local)> guid_at;
  std::uint8_t range = 1;             // top byte of all ids: how messages find one of several processes
  std::uint32_t seed = 0;             // of sequence numbers and the first id
  std::int64_t first_wait_ns = 0;     // before a message is repeated; doubles up to the longest. 0: 100 ms
  std::int64_t longest_wait_ns = 0;   // 0: 4.096 us << 20, what is announced to peers
  std::int64_t timewait_ns = 0;       // 0: 4.096 us << 18
  std::function<std::int64_t()> now;  // null: the monotonic clock
};

struct MachineCounts {
  std::uint64_t sent = 0, received = 0, repeated = 0, duplicates = 0, strangers = 0, refused = 0, gave_up = 0;
  std::uint64_t garbage[kRefusals] = {};
};

class Machine {
 public:
  Machine(MachineConfig config, MadPort& port, Sink& sink);
  ~Machine();  // tells peers of connections that are open
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // `address` any: all of the host's; :: takes IPv4 too, unless `one_family`. Code::again when somebody listens there.
  [[nodiscard]] Result<Id> listen(std::uint64_t service_id, const IpAddress& address, std::uint32_t backlog,
                                  bool one_family = false);
  [[nodiscard]] Result<Id> connect(const ConnectRequest& request);
  // For UD: asks who serves.
  [[nodiscard]] Result<Id> resolve(const ConnectRequest& request);

  // Code::invalid when the connection is not in the state for it, or the private data is too long.
  [[nodiscard]] Status accept(Id id, const QueueParameters& queue);
  [[nodiscard]] Status reject(Id id, wire::mad::RejReason reason, std::span<const std::byte> private_data);
  [[nodiscard]] Status ready(Id id);       // after a response: the queue pair can take messages
  [[nodiscard]] Status seen_alive(Id id);  // a message arrived on the queue pair before the RTU did
  [[nodiscard]] Status disconnect(Id id);
  // The request was handed to the program: it counts no longer against the backlog.
  void taken(Id id);
  // No more events of it. Requests of a listener that nobody took are refused.
  void release(Id id);

  // Is a message about something that is here? Of requests: `exact` says whether a listener has that very address.
  enum class Concern : std::uint8_t { none, wildcard, exact };
  [[nodiscard]] Concern concern(const IpAddress& from, const IpAddress& to, const Message& message) const;
  // A message as it arrived. False: nobody here knows it, and it was answered as the rules say for strangers.
  bool on_mad(const IpAddress& from, const IpAddress& to, std::span<const std::byte> bytes);
  void on_time();
  // Peers that died say nothing. Of those that somebody here can see, `is_there` says whether they live: it is asked of
  // every connection that waits for its peer, or is open, and a dead peer's ends as if it had been refused.
  void look_for_peers(const std::function<bool(const IpAddress& remote, std::uint32_t comm_id)>& is_there);
  // When on_time() has something to do; INT64_MAX: never.
  [[nodiscard]] std::int64_t due_ns() const;

  [[nodiscard]] const Connection* find(Id id) const;
  [[nodiscard]] bool listens(std::uint64_t service_id, const IpAddress& address) const;
  [[nodiscard]] const MachineCounts& counts() const { return counts_; }
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }

 private:
  struct Listener {
    std::uint64_t service_id = 0;
    IpAddress address;
    std::uint32_t backlog = 0;
    std::uint32_t waiting = 0;
    bool one_family = false;
  };
  struct PeerKey {  // a peer names its connection by its own id
    IpAddress address;
    std::uint32_t comm_id = 0;
    bool service = false;
    friend auto operator<=>(const PeerKey&, const PeerKey&) = default;
  };

  // machine.cpp
  [[nodiscard]] Id new_id();
  [[nodiscard]] Connection& add(Id id);
  [[nodiscard]] Connection* lookup(Id id);
  [[nodiscard]] std::uint32_t random_psn();
  [[nodiscard]] const std::pair<const Id, Listener>* find_listener(std::uint64_t service_id,
                                                                   const IpAddress& address) const;
  void forget(Id id);
  void end(Connection& c);
  void emit(const Connection& c, EventKind kind, int status = 0, QueueParameters peer = {});
  void stop_waiting(Connection& c);
  [[nodiscard]] Rej rejection(const Connection& c, wire::mad::RejReason reason, std::uint8_t message) const;

  // machine_time.cpp
  void send(const Connection& c, const Body& body);
  void send_to(const IpAddress& from, const IpAddress& to, std::uint64_t tid, const Body& body);
  void send_until_answered(Connection& c, const Body& body);
  void stop_repeating(Connection& c);
  void give_up(Connection& c);
  void enter_timewait(Connection& c);
  void set_due(Connection& c, std::int64_t at_ns);

  // machine_receive.cpp; true: it was for somebody here
  struct From {
    IpAddress from;
    IpAddress to;
    std::uint64_t tid;
  };
  [[nodiscard]] Connection* partner(const From& where, std::uint32_t ours, std::uint32_t theirs);
  bool on(const From& where, const Req& m);
  bool on(const From& where, const Mra& m);
  bool on(const From& where, const Rej& m);
  bool on(const From& where, const Rep& m);
  bool on(const From& where, const Rtu& m);
  bool on(const From& where, const Dreq& m);
  bool on(const From& where, const Drep& m);
  bool on(const From& where, const Lap& m);
  bool on(const From& where, const Apr& m);
  void on_repeated_req(Connection& c, const From& where);
  // machine_service.cpp
  bool on(const From& where, const SidrReq& m);
  bool on(const From& where, const SidrRep& m);
  void answer_service(Connection& c, wire::mad::SidrStatus status, const QueueParameters& queue);

  MachineConfig config_;
  MadPort& port_;
  Sink& sink_;
  std::uint32_t next_id_;
  std::uint64_t next_tid_;
  std::uint64_t random_;
  std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
  std::map<PeerKey, Id> by_peer_;  // of passive connections: to recognize a request that comes twice
  std::map<Id, Listener> listeners_;
  std::multimap<std::int64_t, Id> timers_;
  MachineCounts counts_;
};

}  // namespace strait::soft::cm
