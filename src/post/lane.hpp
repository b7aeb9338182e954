// SPDX-License-Identifier: Apache-2.0
// Lane: operations on one queue. Posts, reaps, and keeps the book of what is under way.
//
// Threads: one at a time; the owner sees to that. No call blocks, locks or allocates (batches of staged memory
// excepted); only holds() may be called from anywhere. Errors are small enums: who asked makes the sentence.
//
// Invariants
// - An operation is complete when a completion covers its last WQE; completions are cumulative, so most WQEs may be
//   unsignaled. Every `signal_every`-th operation is signaled, and wait() asks for a completion where none is due.
// - All WQEs of an operation are posted or none is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "post/operation.hpp"
#include "rail/mlx5/queue.hpp"

namespace strait::post {

inline constexpr std::uint32_t kMaxDepth = 16384;
inline constexpr std::uint64_t kMaxPiece = std::uint64_t{1} << 30;  // one RC message
// What long transfers are cut into where the ring has room for that: a NIC acknowledges messages, and one of a gibibyte
// may take longer than the other side waits for a sign of life.
inline constexpr std::uint64_t kGoodPiece = std::uint64_t{1} << 26;
// Two blocks of the ring: beyond, a data pointer costs the NIC less than the bytes in the ring.
inline constexpr std::uint32_t kInlineLimit = 92;

struct Local {
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint32_t lkey = 0;
  bool cpu_accessible = false;   // small payloads may be read by this CPU and travel in the ring
  bool unstage = false;          // get: copy out of the bounce buffer when the bytes have arrived
  const void* holder = nullptr;  // the region
  std::uint64_t offset = 0;      // in the region, for unstaging
};

struct Extras {
  bool fence = false;
  bool with_imm = false;
  bool with_signal = false;
  std::uint32_t imm = 0;
  device::Remote signal{};
  std::uint64_t signal_add = 0;
};

struct BatchItem {
  Kind kind = Kind::put;  // put or get
  Local local;
  device::Remote remote{};
};

enum class Posted : std::uint8_t {
  ok,
  no_place,   // as many operations are under way as the lane takes
  ring_full,  // the ring has no room for it now
  too_long,   // it would not fit an empty ring
  broken,     // the queue failed earlier
};

// What became of an operation.
struct Outcome {
  Kind kind = Kind::put;
  bool failed = false;
  bool has_imm = false;
  bool unstaging_failed = false;
  std::uint8_t syndrome = 0;
  std::uint32_t imm = 0;
  std::uint64_t bytes = 0;
  std::uint64_t value = 0;
};

enum class Asked : std::uint8_t { unknown, pending, finished };

// The first failure of a queue: later operations are only flushed, and their sentence leads back to this one.
struct FirstError {
  std::uint8_t syndrome = 0;
  std::uint8_t vendor = 0;
  Kind kind = Kind::put;
};

// Copies arrived bytes out of a bounce buffer; false when that failed.
using Unstage = bool (*)(const void* holder, std::uint64_t offset, std::uint64_t length_bytes);

class Lane {
 public:
  [[nodiscard]] static Result<Lane> make(const rail::Nic& nic, std::uint32_t depth, std::uint32_t signal_every);
  Lane(Lane&&) noexcept = default;

  [[nodiscard]] Posted put(const Local& from, const device::Remote& to, const Extras& extras, std::uint64_t& id);
  // The same for 8 bytes that this CPU can read, with nothing asked for beside; posts_words() says whether it is
  // served.
  [[nodiscard]] Posted put_word(const void* from, const void* holder, std::uint64_t offset, device::Remote to,
                                std::uint64_t& id);
  [[nodiscard]] bool posts_words() const { return inline_limit_ >= sizeof(std::uint64_t); }
  [[nodiscard]] Posted get(const Local& into, const device::Remote& from, const Extras& extras, std::uint64_t& id);
  // kind: fetch_add (operand added) or compare_swap (operand stored if `compare` was there). The place is 8-byte
  // aligned.
  [[nodiscard]] Posted atomic(Kind kind, const device::Remote& at, std::uint64_t operand, std::uint64_t compare,
                              bool fence, std::uint64_t& id);
  [[nodiscard]] Posted send(const Local& from, const Extras& extras, std::uint64_t& id);
  // A length of 0 receives only the immediate of a put, or an empty message.
  [[nodiscard]] Posted receive(const Local& into, std::uint64_t& id);
  // One doorbell for all; the extras belong to the last item, the fence to the first.
  [[nodiscard]] Posted batch(std::span<const BatchItem> items, const Extras& extras, std::uint64_t& id);

  // Takes completions from the ring; returns how many.
  std::uint32_t reap();
  // finished: fills the outcome and frees the place, so the id is good once.
  [[nodiscard]] Asked ask(std::uint64_t id, Outcome& outcome);
  // The operation will complete by itself: makes sure that a completion is due.
  void expect(std::uint64_t id);
  // False: unknown id.
  bool detach(std::uint64_t id);
  // This operation is the last of several that were posted as one: it says how many bytes all of them moved.
  void stands_for(std::uint64_t id, std::uint64_t bytes);

  // Everything posted so far; flushed(mark) says whether all of it has completed.
  [[nodiscard]] std::uint64_t mark();
  [[nodiscard]] bool flushed(std::uint64_t mark) const { return queue_->send().slots.completed >= mark; }
  // The first failure of a detached operation since the last call, if any.
  [[nodiscard]] bool take_detached_failure(Outcome& outcome);

  [[nodiscard]] bool holds(const void* region) const { return sends_->holds(region) || receives_->holds(region); }
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] const FirstError& first_error() const { return first_error_; }
  [[nodiscard]] rail::Queue& queue() { return *queue_; }
  [[nodiscard]] const rail::Queue& queue() const { return *queue_; }
  [[nodiscard]] std::uint32_t depth() const { return sends_->depth(); }
  [[nodiscard]] std::uint32_t room() const { return sends_->room(); }
  // An operation that somebody else carried out, as one that ask() knows. There must be room.
  [[nodiscard]] std::uint64_t completed(Kind kind, std::uint64_t bytes, std::uint64_t value) {
    Record& record = *sends_->take();
    record.kind = kind;
    record.bytes = bytes;
    record.value = value;
    record.state = State::done;
    return record.id;
  }
  [[nodiscard]] std::uint32_t under_way() const { return sends_->used() + receives_->used(); }
  // The queue goes, the table stays: every operation has then failed with "flushed".
  void close();
  void set_unstage(Unstage unstage) { unstage_ = unstage; }

 private:
  Lane() = default;
  [[nodiscard]] Posted take(Record*& record, std::uint32_t blocks);
  [[nodiscard]] device::Flags last_flags(bool signaled);
  [[nodiscard]] std::uint64_t piece_for(std::uint64_t length_bytes) const;
  [[nodiscard]] std::uint32_t blocks_for(Kind kind, const Local& local, bool with_signal) const;
  void begin(Record& record, Kind kind, const Local& local);
  void finish_posting(Record& record, std::uint64_t& id);
  void write_pieces(const Local& from, const device::Remote& to, const Extras& extras, device::Flags first,
                    device::Flags last);
  void read_pieces(const Local& into, const device::Remote& from, device::Flags first, device::Flags last);
  void add_signal(Record& record, const Extras& extras, device::Flags last);
  [[nodiscard]] device::Piece result_piece(const Record& record) const;
  void reap_unusual(const device::Entry& entry);
  void finish_up_to(std::uint64_t end) {
    for (Record* record = sends_->first(); record != nullptr && record->end <= end; record = sends_->first())
      finish(*sends_, *record);
  }
  void finish(OpTable& table, Record& record);
  void on_error(const device::Completion& completion);
  void on_receive(const device::Completion& completion, bool failed);
  [[nodiscard]] static Outcome outcome_of(const Record& record);
  [[nodiscard]] OpTable& table_of(std::uint64_t id) { return (id & kReceiveTag) != 0 ? *receives_ : *sends_; }

  std::unique_ptr<OpTable> sends_;
  std::unique_ptr<OpTable> receives_;
  std::unique_ptr<std::uint64_t[]> results_;  // where atomics deliver, one word per place
  rail::MemoryKey results_key_;
  std::unique_ptr<rail::Queue> queue_;  // goes first: with it ends every use of the key
  Unstage unstage_ = nullptr;
  std::uint64_t signaled_end_ = 0;  // a completion is due for everything below
  std::uint32_t signal_every_ = 1;
  std::uint32_t unsignaled_ = 0;
  std::uint32_t inline_limit_ = 0;
  bool broken_ = false;
  bool detached_failed_ = false;
  FirstError first_error_{};
  Outcome detached_failure_{};
};

}  // namespace strait::post
