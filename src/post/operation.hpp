// SPDX-License-Identifier: Apache-2.0
// What an operation is while it is under way, and the table that holds a lane's operations.
//
// Invariants
// - The owner of the lane alone writes a table. Another thread may only ask holds(), through `holder`.
// - A record leaves `in_flight` or `detached` only when the NIC said so: a deadline never frees one. `holder` names the
//   region from before the doorbell until then, so that whoever drops the region can see that it is in use.
// - Records finish in the order they were queued; a batch is a chain of records of which only the last is visible.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace strait::post {

enum class State : std::uint8_t { free, in_flight, done, failed, detached };
enum class Kind : std::uint8_t { put, get, fetch_add, compare_swap, send, receive, batch };

[[nodiscard]] const char* kind_name(Kind kind);

inline constexpr std::uint32_t kNone = 0xffffffffu;
inline constexpr std::uint8_t kHasImm = 1;   // imm is valid
inline constexpr std::uint8_t kUnstage = 2;  // a get whose bytes still have to be copied out of the staging buffer
inline constexpr std::uint8_t kUnstageFailed = 4;  // ... and that could not be done
inline constexpr std::uint8_t kBatch = 8;          // batch_bytes counts for all items

struct alignas(64) Record {
  std::atomic<const void*> holder{nullptr};  // region in use; see above
  std::uint64_t id = 0;                      // generation, table, slot
  std::uint64_t end = 0;                     // ring counter one past its last block (receives: one past its entry)
  // `bytes` and `value` are stored together, and not side by side: a compiler would make one store of them, and for
  // that one load of two arguments that were just stored one by one, which a CPU has to wait for.
  std::uint64_t bytes = 0;
  std::uint64_t batch_bytes = 0;
  std::uint64_t value = 0;  // atomics: what was there before; staged: the offset in the region
  std::uint32_t imm = 0;
  std::uint32_t next = kNone;   // queue order while under way, free list otherwise
  std::uint32_t owner = kNone;  // part of a batch: slot of the record that stands for it
  State state = State::free;
  Kind kind = Kind::put;
  std::uint8_t flags = 0;
  std::uint8_t syndrome = 0;
};
static_assert(sizeof(Record) == 64);

class OpTable {
 public:
  // `tag` tells tables of one lane apart in an id; depth is a power of two up to 32768.
  OpTable(std::uint32_t depth, std::uint64_t tag);

  // Null when every place is taken.
  [[nodiscard]] Record* take() {
    if (free_ == kNone && !make_one()) return nullptr;
    Record& record = at(free_);
    free_ = record.next;
    ++used_;
    record.next = kNone;
    record.owner = kNone;
    record.flags = 0;
    record.syndrome = 0;
    record.state = State::in_flight;
    return &record;
  }
  // Puts a taken record at the end of the queue order.
  void queue(Record& record) {
    const std::uint32_t slot = slot_of(record);
    if (tail_ == kNone) {
      head_ = slot;
    } else {
      at(tail_).next = slot;
    }
    tail_ = slot;
  }
  [[nodiscard]] Record* first() { return head_ == kNone ? nullptr : &at(head_); }
  void pop() {
    Record& record = at(head_);
    head_ = record.next;
    if (head_ == kNone) tail_ = kNone;
    record.holder.store(nullptr, std::memory_order_release);
  }
  // A new generation makes every id that was handed out for this place unknown.
  void give_back(Record& record) {
    record.id += kGeneration;
    record.state = State::free;
    record.next = free_;
    free_ = slot_of(record);
    --used_;
  }
  [[nodiscard]] Record* find(std::uint64_t id) {
    const auto slot = static_cast<std::uint32_t>(id & mask_);
    if (slot >= made_.load(std::memory_order_relaxed)) return nullptr;
    Record& record = at(slot);
    return record.id == id && record.state != State::free ? &record : nullptr;
  }
  [[nodiscard]] std::uint32_t slot_of(const Record& record) const {
    return static_cast<std::uint32_t>(&record - reinterpret_cast<const Record*>(memory_.get()));
  }
  [[nodiscard]] Record& at(std::uint32_t slot) const {
    return *std::launder(reinterpret_cast<Record*>(memory_.get()) + slot);
  }
  [[nodiscard]] std::uint32_t depth() const { return mask_ + 1; }
  [[nodiscard]] std::uint32_t used() const { return used_; }
  [[nodiscard]] std::uint32_t room() const { return depth() - used_; }

  // Any thread: does an operation of this table still use the region?
  [[nodiscard]] bool holds(const void* region) const;

 private:
  static constexpr std::uint64_t kGeneration = std::uint64_t{1} << 17;  // above 15 bits of slot and the tag
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{alignof(Record)}); }
  };
  // Another place becomes the free one; false: all there are exist. They are made when they are needed: a lane that has
  // few operations under way touches little of its table.
  bool make_one();

  std::unique_ptr<std::byte, Free> memory_;
  std::atomic<std::uint32_t> made_{0};
  std::uint64_t tag_;
  std::uint32_t mask_;
  std::uint32_t free_ = kNone;
  std::uint32_t head_ = kNone;
  std::uint32_t tail_ = kNone;
  std::uint32_t used_ = 0;
};

inline constexpr std::uint64_t kReceiveTag = std::uint64_t{1} << 15;  // set in ids of the receive table

}  // namespace strait::post
