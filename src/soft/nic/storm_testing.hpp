// SPDX-License-Identifier: Apache-2.0
// For tests: two engines that do everything to each other at once, over a bad network, with every byte, completion and
// atomic checked. What it does follows from its seed alone.
#pragma once

#include <deque>
#include <random>
#include <string>

#include "soft/nic/testing.hpp"

namespace strait::soft::nic::testing {

struct StormConfig {
  PairConfig pair{Over::packets};
  std::uint64_t operations = 1000;  // each way
  std::uint64_t seed = 1;
  std::uint32_t largest_bytes = 12'000;
  std::int64_t patience_ns = 60'000'000'000;  // without any completion
};

// One direction: requests from `from` that `to` executes.
class StormSide {
 public:
  static constexpr std::uint32_t kSlots = 16;  // operations under way; each has memory of its own

  StormSide(Pair& pair, bool a_to_b, const StormConfig& config)
      : from_(a_to_b ? *pair.qa : *pair.qb),
        to_(a_to_b ? *pair.qb : *pair.qa),
        random_(config.seed * 2 + (a_to_b ? 1 : 0)),
        left_(config.operations),
        slot_bytes_(config.largest_bytes),
        local_(std::size_t{kSlots} * slot_bytes_),
        remote_(local_.size()),
        expected_(local_.size()),
        inbox_(local_.size()),
        pair_(pair),
        near_(a_to_b ? *pair.a : *pair.b),
        far_(a_to_b ? *pair.b : *pair.a),
        far_pd_(a_to_b ? pair.pd_b : pair.pd_a),
        masked_(!config.pair.packets) {
    const std::uint32_t near_pd = a_to_b ? pair.pd_a : pair.pd_b;
    local_key_ = pair.reg(near_, near_pd, local_.data(), local_.size());
    old_key_ = pair.reg(near_, near_pd, old_values_, sizeof old_values_);
    remote_key_ = pair.reg(far_, far_pd_, remote_.data(), remote_.size());
    word_key_ = pair.reg(far_, far_pd_, &word_, sizeof word_);
    inbox_key_ = pair.reg(far_, far_pd_, inbox_.data(), inbox_.size());
    for (std::uint32_t i = 0; i < kSlots; ++i) post_receive();
  }

  [[nodiscard]] bool done() const { return left_ == 0 && waiting_.empty() && arriving_.empty(); }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  // Posts while there is room.
  void post() {
    while (left_ != 0 && waiting_.size() < kSlots) post_one();
  }

  // A completion of one of our requests.
  void on_sent(const Event& event) {
    if (event.syndrome != m::Syndrome::none)
      return fail(fmt::format("operation {} failed: {}", first_waiting_, m::sentence(event.syndrome)));
    while (!waiting_.empty()) {
      const Operation operation = waiting_.front();
      waiting_.pop_front();
      check(operation);
      ++first_waiting_;
      if ((operation.index & 0xffff) == event.counter) return;
      if (operation.signaled) return fail(fmt::format("the completion of operation {} is missing", first_waiting_ - 1));
    }
    fail(fmt::format("a completion for index {} that nobody waits for", event.counter));
  }
  // A completion of a receive at the other end.
  void on_received(const Event& event) {
    if (event.syndrome != m::Syndrome::none)
      return fail(fmt::format("receive {} failed: {}", received_, m::sentence(event.syndrome)));
    if (arriving_.empty()) return fail(fmt::format("receive {} was completed by nothing", received_));
    const Arriving what = arriving_.front();
    arriving_.pop_front();
    const std::size_t at = std::size_t{static_cast<std::uint32_t>(received_ % kSlots)} * slot_bytes_;
    if (event.opcode != what.opcode || event.bytes != what.bytes || (what.has_imm && event.imm != what.imm))
      return fail(fmt::format("receive {}: {} bytes, opcode {}, where {} and {} were sent", received_, event.bytes,
                              static_cast<int>(event.opcode), what.bytes, static_cast<int>(what.opcode)));
    if (what.opcode != m::CqeOpcode::responder_write_imm) {
      const auto sent = pattern(what.bytes, what.seed);
      if (std::memcmp(inbox_.data() + at, sent.data(), sent.size()) != 0)
        return fail(fmt::format("receive {}: wrong bytes", received_));
    }
    if (what.opcode == m::CqeOpcode::responder_send_inval) {
      // Twice would have failed the queue pair. From here on it is the owner's to free.
      if (!EngineTestPeer::peers_may_not(far_, what.imm))
        return fail(fmt::format("receive {}: the key {:#x} still works for peers", received_, what.imm));
      if (const Status freed = far_.deregister_memory(what.imm); !freed)
        return fail(fmt::format("receive {}: {}", received_, freed.error().explain()));
    }
    ++received_;
    post_receive();
  }
  // After everything: memory is as it was written, in order, once; and nothing is left over on the requester's side:
  // no packet unacknowledged, no answer waiting, nobody on a list, no registration in use.
  void check_end() {
    if (remote_ != expected_) fail("the memory that was written to is not as it should be");
    if (word_ != expected_word_) fail(fmt::format("the counter is {} instead of {}", word_, expected_word_));
    const QueuePair& qp = EngineTestPeer::queue_pair(near_, from_.qpn);
    const auto busy = [&] {
      return qp.packets && (!qp.packets->answers.empty() || qp.packets->listed || qp.packets->awaiting);
    };
    const auto deadline = sys::Deadline::after_ns(20'000'000'000);
    while (busy() && !deadline.passed()) pair_.drive(1);
    if (busy()) fail("the queue pair is still on a list, or owes answers");
    if (!qp.idle()) fail("the send queue is not idle");
    if (qp.answers_awaited != 0) fail(fmt::format("{} answers are still awaited", qp.answers_awaited));
    if (qp.arriving.active) fail("a message is still arriving");
    if (!qp.pinned.empty()) fail(fmt::format("{} registrations are still held", qp.pinned.size()));
    if (qp.packets) {
      if (qp.packets->una != qp.packets->sent_end || qp.packets->sent_end != qp.packets->psn_end)
        fail(fmt::format("acknowledged {:#x}, sent {:#x}, numbered {:#x}", qp.packets->una, qp.packets->sent_end,
                         qp.packets->psn_end));
    } else if (qp.msn_acked != qp.msn_next) {
      fail(fmt::format("{} messages are not acknowledged", qp.msn_next - qp.msn_acked));
    }
    for (const auto& [engine, key] : {std::pair<Engine*, std::uint32_t>{&near_, local_key_},
                                      {&near_, old_key_},
                                      {&far_, remote_key_},
                                      {&far_, word_key_},
                                      {&far_, inbox_key_}}) {
      if (const Status freed = engine->deregister_memory(key); !freed) fail(freed.error().explain());
    }
  }
  // How many of each kind were posted, in the order of What.
  [[nodiscard]] const auto& posted() const { return posted_; }

  enum class What { write, write_imm, read, send, send_imm, send_inval, nop, add, swap, masked_add, masked_swap };
  static constexpr std::size_t kKinds = 11;

 private:
  struct Operation {
    What what;
    bool signaled;
    std::uint64_t index;
    std::uint32_t slot;
    std::uint32_t bytes;
    std::uint64_t old;  // atomics
    std::vector<std::byte> read;
  };
  struct Arriving {
    m::CqeOpcode opcode;
    std::uint32_t bytes;
    unsigned seed;
    bool has_imm;
    std::uint32_t imm;
  };

  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }
  std::uint32_t roll(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  static constexpr std::uint32_t kInlineBytes = 200;  // in four blocks with all that goes before

  [[nodiscard]] static bool is_atomic(What what) { return what >= What::add; }
  // A field ends at each bit of the boundary: nothing is carried past it.
  [[nodiscard]] static std::uint64_t add_in_fields(std::uint64_t a, std::uint64_t b, std::uint64_t boundary) {
    std::uint64_t sum = 0;
    unsigned carry = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
      const unsigned here = static_cast<unsigned>(a >> bit & 1) + static_cast<unsigned>(b >> bit & 1) + carry;
      sum |= std::uint64_t{here & 1} << bit;
      carry = (boundary >> bit & 1) != 0 ? 0 : here >> 1;
    }
    return sum;
  }
  std::uint32_t size() {
    // Small ones, ones about the path MTUs, and some of every size.
    switch (roll(4)) {
      case 0: return 1 + roll(64);
      case 1: return std::min(slot_bytes_, (256u << roll(5)) - 1 + roll(3));
      default: return 1 + roll(slot_bytes_);
    }
  }
  void post_receive() {
    const std::size_t at = std::size_t{static_cast<std::uint32_t>(receives_posted_++ % kSlots)} * slot_bytes_;
    to_.post_receive({{address_of(inbox_.data() + at), slot_bytes_, inbox_key_}});
  }
  void post_one() {
    const std::uint64_t number = number_++;
    --left_;
    Operation operation{};
    operation.what = static_cast<What>(roll(masked_ ? kKinds : kKinds - 2));  // the masked ones have no packets
    ++posted_[static_cast<std::size_t>(operation.what)];
    operation.slot = static_cast<std::uint32_t>(number % kSlots);
    operation.bytes = size();
    operation.signaled = left_ == 0 || waiting_.size() + 1 == kSlots || roll(4) != 0;
    const std::size_t at = std::size_t{operation.slot} * slot_bytes_;
    const auto seed = static_cast<unsigned>(random_());
    Wqe wqe;
    wqe.flags = static_cast<std::uint8_t>(operation.signaled ? m::kCompletionAlways : 0);
    if (roll(8) == 0) wqe.flags |= m::kFenceAndInitiatorSmall;
    if (is_atomic(operation.what)) {
      prepare_atomic(operation, wqe, seed);
    } else if (operation.what == What::read) {
      prepare_read(operation, wqe, at);
    } else if (operation.what != What::nop) {
      prepare_payload(operation, wqe, at, seed);
    }
    operation.index = from_.write(wqe);
    from_.publish();
    // What travels in the work request itself is the program's again at once.
    if (!wqe.inlined.empty()) std::memset(local_.data() + at, 0xee, operation.bytes);
    waiting_.push_back(std::move(operation));
  }
  void prepare_read(Operation& operation, Wqe& wqe, std::size_t at) {
    wqe.opcode = m::Opcode::rdma_read;
    wqe.raddr = address_of(remote_.data() + at);
    wqe.rkey = remote_key_;
    wqe.data = {{address_of(local_.data() + at), operation.bytes, local_key_}};
    std::memset(local_.data() + at, 0, operation.bytes);
    const auto* expected = expected_.data() + at;
    operation.read.assign(expected, expected + operation.bytes);
  }
  void prepare_payload(const Operation& operation, Wqe& wqe, std::size_t at, unsigned seed) {
    std::byte* const source = local_.data() + at;
    const auto bytes = pattern(operation.bytes, seed);
    std::memcpy(source, bytes.data(), bytes.size());
    if (operation.bytes <= kInlineBytes && roll(2) == 0) {
      wqe.inlined = bytes;
    } else {
      const std::uint32_t first = operation.bytes > 1 && roll(4) == 0 ? 1 + roll(operation.bytes - 1) : 0;
      if (first != 0) wqe.data.push_back({address_of(source), first, local_key_});
      wqe.data.push_back({address_of(source + first), operation.bytes - first, local_key_});
    }
    std::uint32_t imm = seed;
    switch (operation.what) {
      case What::write: wqe.opcode = m::Opcode::rdma_write; break;
      case What::write_imm: wqe.opcode = m::Opcode::rdma_write_imm; break;
      case What::send: wqe.opcode = m::Opcode::send; break;
      case What::send_imm: wqe.opcode = m::Opcode::send_imm; break;
      default:
        wqe.opcode = m::Opcode::send_inval;
        imm = pair_.reg(far_, far_pd_, doomed_, sizeof doomed_);
        break;
    }
    put32(reinterpret_cast<std::byte*>(&wqe.imm), imm);
    const bool write = operation.what == What::write || operation.what == What::write_imm;
    if (write) {
      wqe.raddr = address_of(remote_.data() + at);
      wqe.rkey = remote_key_;
      std::memcpy(expected_.data() + at, bytes.data(), bytes.size());
    }
    if (operation.what == What::write) return;
    arriving_.push_back({operation.what == What::write_imm  ? m::CqeOpcode::responder_write_imm
                         : operation.what == What::send     ? m::CqeOpcode::responder_send
                         : operation.what == What::send_imm ? m::CqeOpcode::responder_send_imm
                                                            : m::CqeOpcode::responder_send_inval,
                         operation.bytes, seed, operation.what != What::send, imm});
  }
  void prepare_atomic(Operation& operation, Wqe& wqe, unsigned seed) {
    operation.old = expected_word_;
    old_values_[operation.slot] = ~expected_word_;
    wqe.raddr = address_of(&word_);
    wqe.rkey = word_key_;
    wqe.data = {{address_of(&old_values_[operation.slot]), 8, old_key_}};
    const std::uint64_t value = std::uint64_t{seed} << 20 | seed;
    // Executed twice a swap would fail the second time, and change what the next one sees.
    const bool fits = roll(3) != 0;
    switch (operation.what) {
      case What::add:
        wqe.opcode = m::Opcode::atomic_fa;
        wqe.atomic = {value, 0};
        expected_word_ += value;
        break;
      case What::swap:
        wqe.opcode = m::Opcode::atomic_cs;
        wqe.atomic = {value, fits ? expected_word_ : ~expected_word_};
        if (fits) expected_word_ = value;
        break;
      case What::masked_add: {
        const std::uint64_t boundary = random_();
        wqe.opcode = m::Opcode::atomic_masked_fa;
        wqe.opmod = m::kOpmodMasked8;
        wqe.atomic = {value, boundary};
        expected_word_ = add_in_fields(expected_word_, value, boundary);
        break;
      }
      default: {
        const std::uint64_t changes = random_(), looks_at = random_() | 1;
        wqe.opcode = m::Opcode::atomic_masked_cs;
        wqe.opmod = m::kOpmodMasked8;
        // What it does not look at may be anything.
        const std::uint64_t compare = (fits ? expected_word_ : ~expected_word_) ^ (random_() & ~looks_at);
        wqe.atomic = {value, compare, changes, looks_at};
        if (fits) expected_word_ = (expected_word_ & ~changes) | (value & changes);
        break;
      }
    }
  }
  void check(const Operation& operation) {
    if (operation.what == What::read) {
      const std::byte* at = local_.data() + std::size_t{operation.slot} * slot_bytes_;
      if (std::memcmp(at, operation.read.data(), operation.bytes) != 0)
        fail(fmt::format("operation {}: {} wrong bytes were read", first_waiting_, operation.bytes));
    } else if (is_atomic(operation.what)) {
      if (old_values_[operation.slot] != operation.old)
        fail(fmt::format("operation {}: an atomic found {:#x} instead of {:#x}", first_waiting_,
                         old_values_[operation.slot], operation.old));
    }
  }

  TestQueue& from_;
  TestQueue& to_;
  std::mt19937_64 random_;
  std::uint64_t left_;
  std::uint32_t slot_bytes_;
  std::vector<std::byte> local_, remote_, expected_, inbox_;
  alignas(8) std::uint64_t old_values_[kSlots] = {};
  alignas(8) std::uint64_t word_ = 0;
  alignas(8) std::byte doomed_[8] = {};  // registered for each message that takes its key away
  Pair& pair_;
  Engine& near_;
  Engine& far_;
  std::uint32_t far_pd_;
  bool masked_;
  std::uint64_t posted_[kKinds] = {};
  std::uint64_t expected_word_ = 0;
  std::uint32_t local_key_ = 0, remote_key_ = 0, word_key_ = 0, inbox_key_ = 0, old_key_ = 0;
  std::uint64_t number_ = 0, first_waiting_ = 0, received_ = 0, receives_posted_ = 0;
  std::deque<Operation> waiting_;
  std::deque<Arriving> arriving_;
  std::string failure_;
};

struct Storm {
  explicit Storm(const StormConfig& with)
      : config(with), pair(config.pair, 64), there(pair, true, config), back(pair, false, config) {}

  // Empty: all is well.
  std::string run() {
    auto deadline = sys::Deadline::after_ns(config.patience_ns);
    while (!there.done() || !back.done()) {
      there.post();
      back.post();
      pair.drive(1);
      bool progress = false;
      for (const bool a : {true, false}) {
        while (const auto event = (a ? *pair.qa : *pair.qb).poll()) {
          const bool received =
              event->opcode != m::CqeOpcode::requester && event->opcode != m::CqeOpcode::requester_error;
          StormSide& side = a != received ? there : back;
          received ? side.on_received(*event) : side.on_sent(*event);
          progress = true;
        }
      }
      for (const StormSide* side : {&there, &back}) {
        if (!side->failure().empty()) return (side == &there ? "there: " : "back: ") + side->failure();
      }
      if (progress) {
        deadline = sys::Deadline::after_ns(config.patience_ns);
      } else if (deadline.passed()) {
        return "nothing moves any more";
      }
    }
    there.check_end();
    back.check_end();
    return there.failure() + back.failure();
  }

  StormConfig config;
  Pair pair;
  StormSide there, back;
};

}  // namespace strait::soft::nic::testing
