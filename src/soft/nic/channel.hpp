// SPDX-License-Identifier: Apache-2.0
// The ring grant's carrier: one piece of shared memory between two engines, with a ring of 64-byte slots each way.
//
// A message is one header slot, followed by as many slots of payload as it says. The header's `sequence` is stored
// last, with release order: a reader that finds the number it expects may read the rest. Nothing else signals arrival,
// so a small message costs one cache line. The reader zeroes the first word of every payload slot it is done with, so
// that old payload can never look like a header. Everything read from here was written by another process and is
// checked.
//
// docs/grant-ring.md has the layout.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sys/mapping.hpp"

namespace strait::soft::nic {

enum class Kind : std::uint8_t {
  none = 0,
  write = 1,          // payload or where to fetch it; raddr, rkey, length
  send = 2,           // payload or where to fetch it; length
  read = 3,           // raddr, rkey, length; where to put the bytes if the owner may
  atomic = 4,         // raddr, rkey, length (4 or 8), operand and compare in data, masks in a second slot
  more = 5,           // continues the payload of the message `msn` at offset raddr
  ack = 6,            // nothing but the ack field
  read_data = 7,      // answer: bytes at offset raddr of the read `msn`
  atomic_result = 8,  // answer: the old value in data
  nak = 9,            // answer: the syndrome in length
  rnr = 10,           // answer: no receive was posted, try `msn` again after raddr nanoseconds
  no_queue = 11,      // answer: there is no such queue pair here (any more)
  again = 12,         // answer, where messages are lost on purpose: everything from `msn` on is missing
};
inline constexpr std::uint8_t kLastKind = 12;
inline constexpr std::uint32_t kNotYet = 1;  // Kind::rnr, imm: the queue pair itself is not ready to receive

enum MessageFlag : std::uint8_t {
  kHasImm = 1 << 0,
  kInvalidate = 1 << 1,
  kSolicited = 1 << 2,
  kCross = 1 << 3,  // the owner's engine moves the bytes itself, between the two processes
  kMore = 1 << 4,   // Kind::more messages follow
  kSwap = 1 << 5,
  kMasked = 1 << 6,
};

struct alignas(64) Slot {
  std::uint64_t sequence;  // position in the stream + 1; anything else: not written yet. Top 16 bits: see checksum()
  std::uint8_t kind;
  std::uint8_t flags;
  std::uint8_t slots;   // of the whole message, header included
  std::uint8_t pieces;  // kCross: entries of the address list
  std::uint32_t to_qpn;
  std::uint32_t from_qpn;
  std::uint32_t msn;
  std::uint32_t ack;  // the sending queue pair has executed everything below this message number
  std::uint32_t rkey;
  std::uint64_t raddr;
  std::uint32_t length;
  std::uint32_t imm_raw;
  std::byte data[16];  // payload of up to 16 bytes; an old value; operand and compare; one entry of an address list
};
static_assert(sizeof(Slot) == 64 && offsetof(Slot, to_qpn) == 12 && offsetof(Slot, raddr) == 32 &&
              offsetof(Slot, data) == 48);

inline constexpr std::uint32_t kSlotBytes = sizeof(Slot);
inline constexpr std::uint32_t kSlots = 2048;             // per direction
inline constexpr std::uint32_t kInSlotBytes = 16;         // payload that fits the header
inline constexpr std::uint32_t kRingPayloadBytes = 8192;  // payload of one message; longer ones continue in Kind::more
inline constexpr std::uint32_t kMaxMessageSlots = 1 + kRingPayloadBytes / kSlotBytes;
inline constexpr std::uint64_t kChannelMagic = 0x31676e6972727473;  // "strring1"

inline constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << 48) - 1;

// One entry of a cross copy's address list.
struct ListEntry {
  std::uint64_t address;  // in the requester's process
  std::uint32_t length_bytes;
  std::uint32_t key;  // of the loan it lies in; 0: none
};
static_assert(sizeof(ListEntry) == 16);

// Slots of a message whose header is followed by n bytes.
[[nodiscard]] constexpr std::uint32_t slots_with(std::uint32_t n) {
  return 1 + (n + kSlotBytes - 1) / kSlotBytes;
}

// A message that is one slot and has no immediate, before it is written.
struct SmallMessage {
  Kind kind = Kind::none;
  std::uint8_t flags = 0;
  std::uint32_t to_qpn = 0;
  std::uint32_t from_qpn = 0;
  std::uint32_t msn = 0;
  std::uint32_t ack = 0;
  std::uint32_t rkey = 0;
  std::uint64_t raddr = 0;
  std::uint32_t length = 0;
  std::uint64_t data[2] = {};  // as they lie in memory
};

// What one side says about itself. Each field has one writer and a cache line of its own.
struct ChannelSide {
  alignas(64) std::atomic<std::uint64_t> consumed;      // slots this side has read from the other's ring
  alignas(64) std::atomic<std::uint32_t> sleeping;      // raise this side's event after sending
  alignas(64) std::atomic<std::uint32_t> reaches_peer;  // this side can copy to and from the other process
};

struct ChannelMemory {
  std::uint64_t magic;
  std::uint32_t slots;
  std::uint32_t slot_bytes;
  ChannelSide sides[2];
  alignas(4096) Slot rings[2][kSlots];  // rings[i] is written by side i
};

// Writes messages into this side's ring. Not thread safe: the engine's lock is held.
class ChannelWriter {
 public:
  ChannelWriter(ChannelMemory* memory, unsigned side)
      : ring_(memory->rings[side]), consumed_(&memory->sides[1 - side].consumed) {}

  // Room for a message of n slots?
  [[nodiscard]] bool has_room(std::uint32_t n) {
    if (next_ + n - seen_consumed_ <= kSlots) return true;
    const std::uint64_t consumed = consumed_->load(std::memory_order_acquire);
    // Another process wrote this: believe it only if it moves forward and not past what was sent.
    if (consumed - seen_consumed_ <= next_ - seen_consumed_) seen_consumed_ = consumed;
    return next_ + n - seen_consumed_ <= kSlots;
  }
  // The header slot of the next message; fill everything but `sequence`, then publish.
  [[nodiscard]] Slot& header() { return ring_[next_ & (kSlots - 1)]; }
  // Where byte `offset` of the payload behind the header goes, and how many bytes are contiguous from there.
  [[nodiscard]] std::byte* payload(std::uint32_t offset, std::uint64_t& contiguous) {
    const std::uint64_t start = ((next_ + 1) & (kSlots - 1)) * kSlotBytes;
    const std::uint64_t at = (start + offset) & (kSlots * kSlotBytes - 1);
    contiguous = kSlots * kSlotBytes - at;
    return reinterpret_cast<std::byte*>(ring_) + at;
  }
  void publish(std::uint32_t slots, std::uint64_t check = 0) {
    Slot& slot = header();
    slot.slots = static_cast<std::uint8_t>(slots);
    const std::uint64_t sequence = (next_ + 1) | check;
    next_ += slots;
    __atomic_store_n(&slot.sequence, sequence, __ATOMIC_RELEASE);
  }
  // A message that is one slot, made in registers: the line changes hands once, not store by store, and nothing is
  // read back in larger units than it was stored in.
  [[gnu::always_inline]] void publish_slot(const SmallMessage& made) {
    static_assert(std::endian::native == std::endian::little && offsetof(Slot, kind) == 8);
    Slot& slot = header();
    const auto put = [&](std::size_t word, std::uint64_t value) {
      std::memcpy(reinterpret_cast<std::byte*>(&slot) + word * sizeof value, &value, sizeof value);
    };
    constexpr std::uint64_t one_slot = 1;
    put(1, static_cast<std::uint64_t>(made.kind) | std::uint64_t{made.flags} << 8 | one_slot << 16 |
               std::uint64_t{made.to_qpn} << 32);
    put(2, made.from_qpn | std::uint64_t{made.msn} << 32);
    put(3, made.ack | std::uint64_t{made.rkey} << 32);
    put(4, made.raddr);
    put(5, made.length);
    put(6, made.data[0]);
    put(7, made.data[1]);
    __atomic_store_n(&slot.sequence, ++next_, __ATOMIC_RELEASE);
  }
  // Slot i of the message that is being made.
  [[nodiscard]] Slot& slot(std::uint32_t i) { return ring_[(next_ + i) & (kSlots - 1)]; }
  [[nodiscard]] std::uint64_t sent() const { return next_; }
  [[nodiscard]] bool drained() const { return consumed_->load(std::memory_order_acquire) == next_; }

 private:
  Slot* ring_;
  const std::atomic<std::uint64_t>* consumed_;
  std::uint64_t next_ = 0;
  std::uint64_t seen_consumed_ = 0;
};

// Reads messages from the other side's ring. Not thread safe: the engine's lock is held.
class ChannelReader {
 public:
  ChannelReader(ChannelMemory* memory, unsigned side)
      : ring_(memory->rings[1 - side]), consumed_(&memory->sides[side].consumed) {}

  [[nodiscard]] bool has_message() const {
    const std::uint64_t sequence = __atomic_load_n(&ring_[next_ & (kSlots - 1)].sequence, __ATOMIC_ACQUIRE);
    return (sequence & kSequenceMask) == next_ + 1;
  }
  // A private copy of the header: the other process may change its own while we look.
  void read_header(Slot& out) const { std::memcpy(&out, &ring_[next_ & (kSlots - 1)], sizeof out); }
  [[nodiscard]] const std::byte* payload(std::uint32_t offset, std::uint64_t& contiguous) const {
    const std::uint64_t start = ((next_ + 1) & (kSlots - 1)) * kSlotBytes;
    const std::uint64_t at = (start + offset) & (kSlots * kSlotBytes - 1);
    contiguous = kSlots * kSlotBytes - at;
    return reinterpret_cast<const std::byte*>(ring_) + at;
  }
  void copy_payload(std::uint32_t offset, void* into, std::uint64_t length_bytes) const {
    std::uint64_t contiguous = 0;
    const std::byte* from = payload(offset, contiguous);
    const std::uint64_t first = length_bytes < contiguous ? length_bytes : contiguous;
    std::memcpy(into, from, first);
    if (first < length_bytes) std::memcpy(static_cast<std::byte*>(into) + first, ring_, length_bytes - first);
  }
  [[nodiscard]] const Slot& slot(std::uint32_t i) const { return ring_[(next_ + i) & (kSlots - 1)]; }
  void consume(std::uint32_t slots) {
    for (std::uint32_t i = 1; i < slots; ++i) {
      __atomic_store_n(&ring_[(next_ + i) & (kSlots - 1)].sequence, 0, __ATOMIC_RELAXED);
    }
    next_ += slots;
  }
  // Tells the writer how far we are; once per pass, not once per message.
  void publish_progress() { consumed_->store(next_, std::memory_order_release); }

 private:
  Slot* ring_;
  std::atomic<std::uint64_t>* consumed_;
  std::uint64_t next_ = 0;
};

}  // namespace strait::soft::nic
