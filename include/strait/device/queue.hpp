// SPDX-License-Identifier: Apache-2.0
// What a kernel is given: handles that the host prepares and passes by value, and the state behind a queue.
//
// Each begins with its version and size, because a user's kernel compiles the layout in; fits() compares them.
// Addresses in a handle are those of the side that posts. lane.hpp is what a kernel does with them.
#pragma once

#include <cstdint>

#include "strait/device/completion_ring.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/space.hpp"

namespace strait::device {

struct HandleHead {
  std::uint32_t abi_version;
  std::uint32_t struct_size;
};
template <class Handle>
STRAIT_HD_INLINE constexpr HandleHead head_of() {
  return {kDeviceAbiVersion, sizeof(Handle)};
}
template <class Handle>
STRAIT_HD_INLINE constexpr bool fits(const Handle& handle) {
  return handle.head.abi_version == kDeviceAbiVersion && handle.head.struct_size == sizeof(Handle);
}

// Memory of this process under a key of the queue's NIC.
struct LocalRegion {
  HandleHead head;
  std::uint64_t address;
  std::uint64_t length_bytes;
  std::uint32_t lkey;
  std::uint32_t reserved;
};

// Memory of the peer. It grants nothing once the owner revoked it: operations then end with a syndrome.
struct RemoteRegion {
  HandleHead head;
  std::uint64_t address;
  std::uint64_t length_bytes;
  std::uint64_t signal_address;  // of signal 0; 0: the region has none
  std::uint32_t rkey;
  std::uint32_t signal_rkey;
  std::uint32_t signals;  // how many 64-bit words
  std::uint32_t reserved;
};

// A word of a region of this process, which a peer raises behind its data.
struct Signal {
  HandleHead head;
  const std::uint64_t* word;
};

// How many operations that named this counter have ended, by how.
struct CounterWords {
  std::uint64_t succeeded;
  std::uint64_t failed;
};

// Shared by everybody who posts to one queue, in memory that all of them reach. Lanes alone post to it: they count on
// every WQE being one block. Only the first line and the ring
// structs' constants stay as they are; the rest is written by posters and reapers.
struct QueueState {
  HandleHead head;
  Sharing sharing;
  std::uint32_t counters;  // how many
  CounterWords* counter_words;
  std::uint32_t* counter_of;   // one word per block of the send ring: 0, or the number of the WQE's counter + 1
  const std::uint32_t* abort;  // the host raises it to end every wait; null: it cannot
  std::uint64_t sink_address;  // 8 bytes that take what signals held before; nobody reads them
  std::uint32_t sink_lkey;
  std::uint32_t reserved;
  alignas(64) SendRing send;
  alignas(64) CompletionRing sends;
  alignas(64) ReceiveRing receive;
  alignas(64) CompletionRing receives;
  // Where threads share: 1 while one of them takes completions. Nobody waits for it.
  alignas(64) std::uint64_t send_reaper;
  std::uint64_t receive_reaper;
  std::uint64_t failure;  // the first one of the send queue, packed; 0: none
};

struct Queue {
  HandleHead head;
  Sharing sharing;
  std::uint32_t reserved;
  QueueState* state;
};

struct QueueMemory {
  Sharing sharing = Sharing::one_thread;
  SendRingMemory send;
  CompletionRingMemory sends;
  ReceiveRingMemory receive;  // entries null: no receives
  CompletionRingMemory receives;
  CounterWords* counter_words = nullptr;
  std::uint32_t* counter_of = nullptr;
  std::uint32_t counters = 0;
  const std::uint32_t* abort = nullptr;
  std::uint64_t sink_address = 0;
  std::uint32_t sink_lkey = 0;
};

// Only addresses are looked at, not what lies there: the host may prepare the state of a queue that it cannot reach.
// The completion rings must be large enough for everything their queues hold, so that they cannot overrun: they are
// read without telling the NIC how far.
[[nodiscard]] STRAIT_HD inline bool open_queue(QueueState& state, const QueueMemory& m) {
  if (m.sharing != Sharing::one_thread && m.send.marks == nullptr) return false;
  if (m.counters != 0 && (m.counter_words == nullptr || m.counter_of == nullptr)) return false;
  if (m.sends.log_entries < m.send.log_blocks) return false;
  state = QueueState{};
  if (!open_send_ring(state.send, m.send) || !open_completion_ring(state.sends, m.sends)) return false;
  if (m.receive.entries != nullptr) {
    if (m.sharing != Sharing::one_thread && m.receive.marks == nullptr) return false;
    if (m.receives.log_entries < m.receive.log_entries) return false;
    if (!open_receive_ring(state.receive, m.receive)) return false;
    if (!open_completion_ring(state.receives, m.receives)) return false;
  }
  state.head = head_of<QueueState>();
  state.sharing = m.sharing;
  state.counters = m.counters;
  state.counter_words = m.counter_words;
  state.counter_of = m.counters == 0 ? nullptr : m.counter_of;
  state.abort = m.abort;
  state.sink_address = m.sink_address;
  state.sink_lkey = m.sink_lkey;
  return true;
}

// Why a send queue failed: packed into one word, so that whoever sees it sees all of it.
struct Failure {
  std::uint64_t index;  // of the WQE, 40 bits of it
  wire::mlx5::Syndrome syndrome;
  std::uint8_t vendor_syndrome;
};
inline constexpr std::uint64_t kFailureIndexMask = (std::uint64_t{1} << 40) - 1;

STRAIT_HD_INLINE std::uint64_t pack(const Failure& f) {
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(f.vendor_syndrome) << 48 |
         static_cast<std::uint64_t>(f.syndrome) << 40 | (f.index & kFailureIndexMask);
}
STRAIT_HD_INLINE Failure unpack(std::uint64_t packed) {
  return {packed & kFailureIndexMask, static_cast<wire::mlx5::Syndrome>(packed >> 40 & 0xff),
          static_cast<std::uint8_t>(packed >> 48 & 0xff)};
}

}  // namespace strait::device
