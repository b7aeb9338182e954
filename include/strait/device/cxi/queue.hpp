// SPDX-License-Identifier: Apache-2.0
// What a kernel is given that posts to a CXI device: handles that the host prepares and passes by value, and the state
// behind a queue. lane.hpp is what a kernel does with them.
//
// A queue is two command queues, because counter and triggered commands have one of their own; counters, each with its
// write-back word; places for signalled puts; and the event queue in which the device says why something failed.
// Addresses are those of the side that posts; IOVAs are the device's.
#pragma once

#include <cstdint>

#include "strait/device/cxi/counter.hpp"
#include "strait/device/cxi/ring.hpp"
#include "strait/device/queue.hpp"
#include "strait/device/space.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::device::cxi {

// Memory of this process under a memory descriptor of the queue's device.
struct LocalMemory {
  HandleHead head;
  std::uint64_t iova;
  std::uint64_t length_bytes;
  std::uint32_t lac;
  std::uint32_t reserved;
};

// Memory of a peer: a portal table entry of its device that takes everything into one list entry.
struct RemoteMemory {
  HandleHead head;
  std::uint64_t offset;  // of the memory in the list entry
  std::uint64_t length_bytes;
  std::uint64_t signal_offset;  // of signal 0 in the list entry of the signals
  std::uint32_t dfa;
  std::uint32_t index_ext;
  std::uint32_t signal_dfa;
  std::uint32_t signal_index_ext;
  std::uint32_t signals;  // how many 64-bit words; 0: none
  std::uint32_t reserved;
};

struct CounterState {
  Counter counter;
  std::uint64_t posted;  // operations that were told to count on it, since it was 0
  std::uint64_t armed;   // the newest threshold a TRIG_EVENT was posted for, + 1; 0: none
};

// A signalled put needs a counter to itself, because a counter says how many have ended and not which: the put counts 1
// on it and starts the addition, the addition counts 1 and makes the place free. The operand of an addition is read
// from memory: it lies here too.
struct SignalPlace {
  Counter counter;
  std::uint64_t* operand;
  std::uint64_t operand_iova;
  std::uint32_t operand_lac;
  std::uint32_t reserved;
};

// Shared by everybody who posts to one queue, in memory that all of them reach.
struct QueueState {
  HandleHead head;
  Sharing sharing;
  std::uint32_t counters;
  CounterState* counter;
  SignalPlace* places;
  std::uint32_t log_places;
  std::uint32_t has_places;
  const std::uint32_t* abort;   // the host raises it to end every wait; null: it cannot
  const std::uint64_t* events;  // the event queue's buffer, or null: causes are not looked up
  std::uint32_t event_bytes;
  std::uint32_t event_queue;  // as commands name it; 0: none
  std::uint32_t initiator;    // who we are, for those who match on it
  std::uint32_t reserved;
  alignas(64) CommandRing transmit;
  alignas(64) CommandRing triggered;
  alignas(64) std::uint64_t signalled;  // puts, so far
};

struct Queue {
  HandleHead head;
  Sharing sharing;
  std::uint32_t reserved;
  QueueState* state;
};

struct QueueMemory {
  Sharing sharing = Sharing::one_thread;
  CommandRingMemory transmit;
  CommandRingMemory triggered;
  CounterState* counter = nullptr;
  std::uint32_t counters = 0;
  SignalPlace* places = nullptr;
  std::uint32_t count_of_places = 0;  // a power of two, or 0: no signalled puts
  const std::uint32_t* abort = nullptr;
  const void* events = nullptr;
  std::uint32_t event_bytes = 0;
  std::uint32_t event_queue = 0;
  std::uint32_t initiator = 0;
};

// Only addresses are looked at, not what lies there: the host may prepare the state of a queue that it cannot reach.
[[nodiscard]] STRAIT_HD inline bool open_queue(QueueState& state, const QueueMemory& m) {
  if (m.counters == 0 || m.counter == nullptr) return false;
  const bool shared = m.sharing != Sharing::one_thread;
  if (shared && (m.transmit.marks == nullptr || m.triggered.marks == nullptr)) return false;
  if (m.count_of_places != 0 && (m.places == nullptr || (m.count_of_places & (m.count_of_places - 1)) != 0))
    return false;
  if (m.transmit.kind != RingKind::transmit || m.triggered.kind != RingKind::triggered) return false;
  state = QueueState{};
  if (!open_command_ring(state.transmit, m.transmit) || !open_command_ring(state.triggered, m.triggered)) return false;
  state.head = head_of<QueueState>();
  state.sharing = m.sharing;
  state.counters = m.counters;
  state.counter = m.counter;
  state.places = m.places;
  state.has_places = m.count_of_places != 0 ? 1 : 0;
  for (std::uint32_t n = m.count_of_places; n > 1; n >>= 1) ++state.log_places;
  state.abort = m.abort;
  state.events = static_cast<const std::uint64_t*>(m.events);
  state.event_bytes = m.event_bytes;
  state.event_queue = m.event_queue;
  state.initiator = m.initiator;
  return true;
}

// Why the device said no: the first event that tells of a failure. Only such come to the queue of a Lane, and nobody
// takes them away while posters run. Reads one lap at most; ok: there is none yet.
struct Cause {
  wire::cxi::ReturnCode code;
  std::uint64_t user_ptr;
};
STRAIT_HD inline Cause first_cause(const std::uint64_t* events, std::uint32_t bytes) {
  Cause none{wire::cxi::ReturnCode::ok, 0};
  if (events == nullptr) return none;
  std::uint32_t at = wire::cxi::kEventBlockBytes;
  for (std::uint32_t looked = 0; looked < bytes / 16 && at < bytes; ++looked) {
    const std::uint64_t second = peek(&events[at / 8 + 1]);
    const auto size = static_cast<wire::cxi::EventSize>(wire::cxi::bits<48, 2>(second));
    const std::uint32_t length = wire::cxi::bytes_of(size);
    if (length == 0 || length > bytes - at) return none;
    // The last byte is written last.
    const std::uint64_t last = peek(&events[(at + length) / 8 - 1]);
    const auto code = static_cast<wire::cxi::ReturnCode>(wire::cxi::bits<56, 6>(last));
    if (code == wire::cxi::ReturnCode::no_event) return none;
    order_cqe_reads();
    const auto type = static_cast<wire::cxi::EventType>(wire::cxi::bits<50, 5>(second));
    if (type != wire::cxi::EventType::null_event && code != wire::cxi::ReturnCode::ok)
      return {code, peek(&events[at / 8])};
    at += length;
  }
  return none;
}

}  // namespace strait::device::cxi
