// SPDX-License-Identifier: Apache-2.0
// QueuePair: a reliable connection made of CXI commands, behind mlx5 rings. The CPU reads work requests out of the
// caller's ring, emits what they consist of, and writes completions back in order.
//
// Order. A Cassini keeps puts in order among each other, and nothing else. A reliable connection promises more, so work
// of one class waits for the answers to all work of another: see may_begin(). docs/rail-cxi.md has the table.
//
//   ring     ... next_ ... producer_          blocks: begun, published
//   begun_   front = oldest                   emitted, or in the middle of it (the last)
//
// Used under the rail's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rail/cxi/memory.hpp"
#include "rail/cxi/port.hpp"
#include "rail/proxy/cqe.hpp"
#include "rail/proxy/wqe.hpp"

namespace strait::rail::cxi {

struct QueueCounts {
  std::uint64_t work_requests = 0, commands = 0, immediate = 0, lookups = 0, receives = 0, completions = 0,
                error_completions = 0, flushed = 0, overruns = 0, not_ready = 0, timeouts = 0;
};

class QueuePair {
 public:
  [[nodiscard]] static Result<std::unique_ptr<QueuePair>> make(Port& port, Registrations& memory, std::uint32_t serial,
                                                               const strait_nic_qp_request& request,
                                                               proxy::CompletionWriter& sends,
                                                               proxy::CompletionWriter& receives, QueueCounts& counts);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair();

  [[nodiscard]] Status connect(const strait_nic_connect_request& request);
  // To the error state: everything outstanding completes as flushed before this returns.
  void fail();
  // Emits what was published. How much that was.
  int service();
  // True: there is nothing that service() could do now.
  [[nodiscard]] bool idle();
  // When service() has to be called although nothing happens; INT64_MAX: never.
  [[nodiscard]] std::int64_t due_ns() const;

  // What user_ptr says: which queue pair, and what of it. See user().
  enum class What : std::uint8_t { work = 0, message = 1, lookup = 2, probe = 3 };
  struct User {
    std::uint32_t serial;
    What what;
    std::uint64_t number;
    [[nodiscard]] std::uint64_t word() const {
      return std::uint64_t{serial} << 40 | static_cast<std::uint64_t>(what) << 38 | (number & kNumberMask);
    }
    [[nodiscard]] static User of(std::uint64_t word) {
      return {static_cast<std::uint32_t>(word >> 40), static_cast<What>(word >> 38 & 3), word & kNumberMask};
    }
    static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 38) - 1;
  };
  void on_answer(const User& user, w::ReturnCode code, std::uint32_t moved_bytes);
  void on_message(const w::TargetLong& event, w::ReturnCode code);
  void on_unlinked(std::uint32_t id, w::ReturnCode code);
  void on_append_failed(std::uint32_t id);

  [[nodiscard]] std::uint32_t qpn() const { return qpn_; }
  [[nodiscard]] std::uint32_t serial() const { return serial_; }
  [[nodiscard]] std::uint32_t pd() const { return pd_; }
  [[nodiscard]] std::string describe() const;
  bool noted = false;  // by the rail: it is to be served in this pass

 private:
  enum class State { made, ready, error };
  enum class Class : std::uint8_t { write, read, atomic, message };
  enum class Step { done, blocked, refused };
  // A work request that was begun.
  struct Begun {
    std::uint64_t index = 0;  // in the ring, in blocks
    wire::mlx5::Opcode opcode = wire::mlx5::Opcode::nop;
    std::uint32_t bytes = 0;
    std::uint32_t outstanding = 0;  // commands without an answer
    std::uint32_t moved = 0;        // bytes of those with one
    bool signaled = false;
    bool emitted = false;  // all of it
    bool local = false;    // it reaches nobody
    wire::mlx5::Syndrome fault = wire::mlx5::Syndrome::none;
    std::uint8_t vendor = 0;
  };
  struct Bounce {  // for messages that do not lie in one piece
    sys::Mapping pages;
    Memory memory;
  };
  struct Receive {
    std::uint32_t id = 0;
    std::uint32_t bytes = 0;
    std::vector<proxy::Part> parts;  // when they are several
    std::unique_ptr<Bounce> bounce;
    bool unlinking = false;
    bool unlinked = false;
  };
  // The one message that is on its way, as often as it takes.
  struct Message {
    enum class At : std::uint8_t { none, to_emit, sent, to_probe, probing, waiting } at = At::none;
    alignas(8) std::byte command[256];
    std::uint32_t bytes = 0;  // of the command
    w::CmdSize size = w::CmdSize::b64;
    bool immediate = false;
    std::uint32_t payload_bytes = 0;
    std::uint32_t tries = 0;
    std::int64_t waited_ns = 0, wait_ns = 0, until_ns = 0;
  };
  struct Lookup {
    enum class At : std::uint8_t { none, asked, failed } at = At::none;
    std::uint32_t key = 0;
    w::ReturnCode code = w::ReturnCode::ok;
    bool unread = false;
  };

  // Memory that was refused at the peer: has it gone, or has the peer?
  struct Doubt {
    enum class At : std::uint8_t { none, to_ask, asked } at = At::none;
    std::uint64_t number = 0;  // the work request that failed
  };

  QueuePair(Port& port, Registrations& memory, std::uint32_t serial, const strait_nic_qp_request& request,
            proxy::CompletionWriter& sends, proxy::CompletionWriter& receives, QueueCounts& counts);
  [[nodiscard]] Status create(const strait_nic_qp_request& request);

  // ---- sends (queue_send.cpp)
  void look_at_record();
  int post_sends();
  [[nodiscard]] static Class class_of(wire::mlx5::Opcode opcode);
  [[nodiscard]] bool may_begin(Class wanted, bool fence) const;
  Begun& begin(const proxy::Work& work);
  void refuse(wire::mlx5::Syndrome syndrome, std::uint8_t vendor);
  [[nodiscard]] Step step();
  [[nodiscard]] Step step_pieces(bool put);
  [[nodiscard]] Step step_atomic();
  [[nodiscard]] Step step_message();
  [[nodiscard]] Step resolve(std::uint64_t& offset);
  [[nodiscard]] bool emit(const void* command, std::uint32_t bytes, w::CmdSize size);
  struct Source {
    std::uint64_t iova = 0;
    std::uint32_t lac = 0;
  };
  [[nodiscard]] bool locate(const proxy::Part& part, bool written, Source& out) const;
  [[nodiscard]] bool compose_message();
  [[nodiscard]] bool gather(std::byte* into) const;
  [[nodiscard]] Status make_bounce(Bounce& out, std::uint64_t bytes) const;
  int drive_message();
  void message_answered(w::ReturnCode code, std::uint32_t moved_bytes);
  void check_time();

  void doubt(std::uint64_t number);
  void drive_doubt();
  [[nodiscard]] bool emit_probe(std::uint64_t number);

  // ---- receives (queue_receive.cpp)
  int post_receives();
  [[nodiscard]] bool append_receive(const proxy::Work& work);
  void complete_receive(proxy::Entry entry);
  void flush_receive();
  void unlink_receives();
  int flush_receives();

  // ---- completions (queue.cpp)
  void advance();
  void complete(const Begun& entry, wire::mlx5::Syndrome syndrome, std::uint8_t vendor);
  void write(proxy::CompletionWriter& to, const proxy::Entry& entry);
  void break_down();
  int flush_unread();
  [[nodiscard]] Begun* find(std::uint64_t number) {
    return number < first_ || number - first_ >= begun_.size() ? nullptr : &begun_[number - first_];
  }

  Port& port_;
  Registrations& memory_;
  QueueCounts& counts_;
  proxy::CompletionWriter& sends_;
  proxy::CompletionWriter& receives_;
  const std::uint32_t serial_;
  const std::uint32_t pd_;
  const std::uint32_t user_index_;
  const bool all_signaled_;
  const proxy::Ring sq_;
  const std::uint32_t sq_blocks_;
  const proxy::Ring rq_;
  const std::uint32_t rq_entries_;
  const std::uint32_t rq_stride_bytes_;
  const std::uint32_t* record_;  // be32: receive, send

  State state_ = State::made;
  std::uint32_t qpn_ = 0;
  Address remote_;
  std::uint32_t remote_qpn_ = 0;
  Way to_memory_, to_messages_;
  std::int64_t patience_ns_ = 0;
  std::uint32_t rnr_retries_ = 0;
  std::int64_t rnr_wait_ns_ = 0;

  std::uint64_t next_ = 0, producer_ = 0;
  proxy::Work work_;          // at next_, when in_work_
  bool in_work_ = false;      // begun_.back() is not emitted whole
  bool pieces_done_ = false;  // of a write with immediate: its message is what is left
  std::size_t part_ = 0;
  std::uint32_t part_offset_ = 0;  // of the message's bytes
  bool stopped_ = false;           // something failed: nothing behind it is emitted
  std::deque<Begun> begun_;
  std::uint64_t first_ = 0;  // number of begun_.front()
  std::uint32_t outstanding_ = 0;
  std::uint64_t outstanding_bytes_ = 0;
  Class class_ = Class::write;
  std::int64_t answered_ns_ = 0;  // when the last answer came, or the first command went
  Message message_;
  Lookup lookup_;
  Doubt doubt_;
  std::unordered_map<std::uint32_t, std::uint64_t> bases_;  // of the peer's memory, by key
  std::uint32_t last_key_ = 0;
  std::uint64_t last_base_ = 0;

  std::deque<Receive> posted_;
  std::vector<Receive> consumed_;  // by a message, while they were being unlinked
  std::uint64_t receive_next_ = 0, receive_done_ = 0;

  sys::Mapping scratch_;  // operands of atomics, and what lookups read
  Memory scratch_memory_;
  Memory ring_memory_;  // inline payloads are read where they lie
  Bounce bounce_;
};

}  // namespace strait::rail::cxi
