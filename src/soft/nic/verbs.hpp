// SPDX-License-Identifier: Apache-2.0
// What kernel verbs ask of the engine beyond the plug-in interface: queue pairs of every type with all their states and
// attributes. Numbers are those of the kernel's uAPI wherever it has any, so that a caller passes them through.
//
//   qp_rules.cpp   which attributes a change of state needs and allows      modify.cpp   Engine::modify_qp, query_qp
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"

namespace strait::soft::nic {

using Gid = std::array<std::uint8_t, 16>;

enum class QpType : std::uint8_t { rc, uc, ud, xrc_ini, xrc_tgt };
[[nodiscard]] const char* type_name(QpType type);  // "RC"

// IB_QPS_*. `ready` is what verbs calls RTS. The order counts: see QueuePair::receiving().
enum class QpState : std::uint8_t { reset = 0, init = 1, rtr = 2, ready = 3, sqd = 4, sqe = 5, error = 6 };
[[nodiscard]] const char* state_name(QpState state);  // "RTS"

// IB_QP_*: which members of QpAttributes a call of modify_qp means.
enum QpMask : std::uint32_t {
  kQpState = 1u << 0,
  kQpCurState = 1u << 1,
  kQpSqdNotify = 1u << 2,
  kQpAccess = 1u << 3,
  kQpPkeyIndex = 1u << 4,
  kQpPort = 1u << 5,
  kQpQkey = 1u << 6,
  kQpPath = 1u << 7,
  kQpPathMtu = 1u << 8,
  kQpTimeout = 1u << 9,
  kQpRetries = 1u << 10,
  kQpRnrRetries = 1u << 11,
  kQpRqPsn = 1u << 12,
  kQpMaxReads = 1u << 13,
  kQpAltPath = 1u << 14,
  kQpMinRnrTimer = 1u << 15,
  kQpSqPsn = 1u << 16,
  kQpMaxDestReads = 1u << 17,
  kQpMigration = 1u << 18,
  kQpCap = 1u << 19,
  kQpDestQpn = 1u << 20,
  kQpRateLimit = 1u << 25,
};

// An address vector. On Ethernet only the addresses, traffic class and hop limit mean anything.
struct PathAttributes {
  Gid dgid{};
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t sl = 0;
  std::uint8_t static_rate = 0;
  std::uint8_t port = 1;
  std::uint32_t flow_label = 0;
  bool is_global = false;
};

struct QpAttributes {
  QpState state = QpState::reset;
  QpState cur_state = QpState::reset;
  std::uint32_t access = 0;  // STRAIT_NIC_REMOTE_*, the same bits as IB_ACCESS_*
  std::uint16_t pkey_index = 0;
  std::uint8_t port = 0;
  std::uint32_t qkey = 0;
  PathAttributes path;
  std::uint8_t path_mtu = 0;  // code: 1 is 256 bytes, 5 is 4096
  std::uint8_t timeout = 0;   // 4.096 us * 2^timeout; 0: for ever
  std::uint8_t retries = 0;
  std::uint8_t rnr_retries = 0;  // 7: for ever
  std::uint32_t rq_psn = 0;
  std::uint32_t sq_psn = 0;
  std::uint8_t max_reads = 0;       // max_rd_atomic: ours under way
  std::uint8_t max_dest_reads = 0;  // max_dest_rd_atomic: the peer's under way
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t dest_qpn = 0;
  PathAttributes alt_path;
  std::uint16_t alt_pkey_index = 0;
  std::uint8_t alt_timeout = 0;
  std::uint8_t migration = 0;  // IB_MIG_*: accepted and given back, nothing migrates
  bool sqd_notify = false;     // SQD: tell when the send queue has drained
  bool sq_draining = false;    // query: SQD, and it has not
};

// IB_EVENT_*. The number says of what: a queue pair, completion queue, shared receive queue, or the port.
enum class AsyncKind : std::uint8_t {
  cq_error = 0,
  qp_fatal = 1,
  qp_request_error = 2,
  qp_access_error = 3,
  communication_established = 4,
  sq_drained = 5,
  device_fatal = 8,
  port_active = 9,
  port_error = 10,
  srq_error = 14,
  srq_limit_reached = 15,
  last_wqe_reached = 16,
  gid_change = 18,
};
struct AsyncEvent {
  AsyncKind kind;
  std::uint32_t number;
  std::uint64_t user;  // what the object's request said
};

// Hears of everything a program may wait for. Called with the engine's lock held, from whatever thread drives it: it
// may not call the engine, nor take a lock that is held while the engine is called. After destroy_*() has returned
// there are no more events of that object.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // A completion queue that was armed has something new.
  virtual void on_completion(std::uint32_t cqn, std::uint64_t user) = 0;
  virtual void on_async(const AsyncEvent& event) = 0;
};

// Right of a registration: windows may be bound to it. IB_ACCESS_MW_BIND, beside STRAIT_NIC_*.
inline constexpr std::uint32_t kAccessBindWindow = 1u << 4;

// IB_MR_REREG_*: what Engine::rereg_memory changes.
inline constexpr std::uint32_t kReregTranslation = 1u << 0;
inline constexpr std::uint32_t kReregPd = 1u << 1;
inline constexpr std::uint32_t kReregAccess = 1u << 2;

// A management datagram: what queue pair 1 sends and receives. Every process on an address gets those that come in, and
// knows by what they say whether they are its own.
struct GsiMessage {
  Gid source{};
  Gid destination{};
  std::uint8_t sgid_index = 0;  // which address of this NIC it came to; what an answer is sent from
  std::uint32_t source_qpn = 0;
  std::span<const std::byte> payload;  // behind the header area: the MAD. Valid during the call only
};
// As EventSink: called with the engine's lock held.
class GsiSink {
 public:
  virtual ~GsiSink() = default;
  virtual void on_gsi(const GsiMessage& message) = 0;
};
inline constexpr std::uint32_t kGsiQpn = 1;
inline constexpr std::uint32_t kGsiQkey = 0x80010000;

struct CqRequest {
  std::uint32_t entries = 0;  // power of two: of the ring, which is one more than programs are told
  std::uint32_t cqe_bytes = 64;
  void* ring = nullptr;    // 64-byte aligned, every entry invalid
  void* record = nullptr;  // 8 bytes: consumer index, arm word
  // The arm word is looked at: 0xffffffff, which the engine stores now and after each event, means not armed.
  bool events = false;
  bool ignore_overrun = false;
  bool timestamps = false;  // entries of what succeeded say when, in nanoseconds of the monotonic clock
  bool collapsed = false;   // every entry is written to the first place
  std::uint64_t user = 0;   // for events
};

struct SrqRequest {
  std::uint32_t pd = 0;
  std::uint32_t entries = 0;  // power of two
  std::uint32_t stride_log2 = 5;
  void* ring = nullptr;    // entries with a link and data segments, linked 0, 1, 2, ...
  bool cyclic = false;     // links are not looked at: entries are taken one behind the other
  void* record = nullptr;  // 4 bytes: how many were ever posted
  std::uint64_t user = 0;  // for events
  // XRC only, where not the queue pair but this queue says where receives complete, and under which name.
  std::uint32_t xrcd = 0;
  std::uint32_t cqn = 0;
  std::uint32_t user_index = 0;
  bool says_srqn = true;
};

struct QpRequest {
  QpType type = QpType::rc;
  std::uint32_t pd = 0;
  std::uint32_t send_cqn = 0;
  std::uint32_t recv_cqn = 0;
  std::uint32_t srqn = 0;        // 0: it has receives of its own
  std::uint32_t xrcd = 0;        // XRC target, which has no domain, queues and record of its own
  std::uint32_t user_index = 0;  // what completions say in srqn_uidx
  // Completions of shared receives say the number of their queue (CQE version 0), not user_index (version 1).
  bool says_srqn = true;
  bool all_signaled = false;
  void* sq = nullptr;  // 64-byte aligned; null with 0 blocks
  std::uint32_t sq_blocks = 0;
  void* rq = nullptr;  // 16-byte aligned; null with 0 entries
  std::uint32_t rq_entries = 0;
  std::uint32_t rq_stride_log2 = 0;
  void* record = nullptr;  // 8 bytes. The truth about what was posted: a doorbell register is only a hint, and need not
                           // be rung at all as long as somebody calls drive()
  std::uint64_t user = 0;  // for events
};

// What ib_modify_qp_is_ok answers in the kernel. An error is EINVAL to a program.
[[nodiscard]] Status check_transition(QpType type, QpState from, QpState to, std::uint32_t mask);
// Whether the values named by the mask are in range.
[[nodiscard]] Status check_values(const QpAttributes& wanted, std::uint32_t mask);
void merge(QpAttributes& into, const QpAttributes& wanted, std::uint32_t mask);

}  // namespace strait::soft::nic
