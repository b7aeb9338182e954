// SPDX-License-Identifier: Apache-2.0
// Command queues: what the client wrote is fetched, decoded and carried out, a bounded number at a time.
//
// A bad command stops its queue for good: that is what the driver says of the event ("disabled"). Nothing behind it is
// looked at; later write pointers and low-latency writes are counted as rejected.
#include "soft/cassini/engine.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "soft/cassini/faults.hpp"
#include "soft/cassini/strict.hpp"
#include "soft/cassini/translation.hpp"

namespace strait::soft::cassini {

using wire::CmdType;
using wire::ReturnCode;

namespace {

constexpr std::uint32_t kCommandsPerPass = 64;  // then the next queue has its turn
constexpr std::uint32_t kFetchBlocks = 16;      // are read at once
constexpr std::size_t kDoorbellsPerPass = 64;
// First word of a window where nothing was written: opcode 15 of type 3, which is no command.
constexpr std::uint64_t kNothingHere = ~std::uint64_t{0};

bool has_windows(const Cq& cq) {
  return cq.transmit && !cq.triggered && cq.write_pointer_page != nullptr;
}

// Blocks that wait, up to the end of the ring and then on from its first.
std::uint32_t blocks_between(const Cq& cq, std::uint32_t from, std::uint32_t to) {
  return to >= from ? to - from : (cq.slots - from) + (to - wire::kFirstBlock);
}
std::uint32_t block_after(const Cq& cq, std::uint32_t block, std::uint32_t steps) {
  block += steps;
  return block >= cq.slots ? block - cq.slots + wire::kFirstBlock : block;
}

void store_queue_status(Cq& cq) {
  cq.status.set_rd_ptr(cq.read_slot);
  cq.status.set_num_write_cmds_rejected(cq.rejected);
  cq.status_every = 0;
  (void)write(cq.ring, 0, &cq.status.word, sizeof cq.status);  // who took the ring away does not read it either
}

// A write to a low-latency window is a command and a write pointer in one. The command is also in the ring: clients
// build it there and copy it. So the window says only that the pointer moves, by one block or two, and the command is
// taken from the ring. Queues that have no windows are not looked at there: what is written is memory.
std::uint64_t* window_word(const Cq& cq, std::uint32_t window, std::uint32_t block) {
  return cq.write_pointer_page + (window + (block & 15) * wire::kBlockBytes) / 8;
}
bool take_window(Cq& cq, std::uint32_t window, std::uint32_t block) {
  std::uint64_t* const word = window_word(cq, window, block);
  if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == kNothingHere) return false;
  __atomic_store_n(word, kNothingHere, __ATOMIC_RELAXED);
  return true;
}

bool came_by_window(const Cq& cq, std::uint32_t block) {
  return cq.window_blocks != 0 && blocks_between(cq, cq.window_first, block) < cq.window_blocks;
}
// Those before it are the pointer's, or windows' that were written one behind the other.
void note_window(Cq& cq, std::uint32_t steps) {
  if (cq.read_slot == cq.seen_write_slot || block_after(cq, cq.window_first, cq.window_blocks) != cq.seen_write_slot) {
    cq.window_first = cq.seen_write_slot;
    cq.window_blocks = 0;
  }
  cq.window_blocks += steps;
}

// True: one was written.
bool take_windows(Cq& cq) {
  std::uint32_t steps = 0;
  const std::uint32_t at = cq.seen_write_slot;
  if (take_window(cq, wire::kLowLatency64Offset, at)) {
    steps = 1;
  } else if (at % 2 == 0 && take_window(cq, wire::kLowLatency128Offset, at)) {
    steps = 2;
  } else if (at % 2 != 0 && take_window(cq, wire::kLowLatency128UnalignedOffset, block_after(cq, at, 1))) {
    steps = 3;  // one is skipped
  }
  if (steps == 0) return false;
  if (cq.strict != nullptr && !cq.failed) cq.strict->rung(cq, block_after(cq, at, steps));
  note_window(cq, steps);
  cq.seen_write_slot = block_after(cq, at, steps);
  // The pointer in the page is old now. A later one may be equal to it, a turn of the ring further on.
  std::uint64_t old = cq.seen_pointer;
  if (__atomic_compare_exchange_n(cq.write_pointer_page, &old, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    cq.seen_pointer = 0;
  }
  return true;
}

// The client is told of commands that a stopped queue did not take.
void reject(Cq& cq) {
  ++cq.rejected;
  store_queue_status(cq);
}

// Nearly every look finds nothing: then this is all of it.
bool was_rung(const Cq& cq) {
  if (__atomic_load_n(cq.write_pointer_page, __ATOMIC_RELAXED) != cq.seen_pointer) return true;
  if (!has_windows(cq)) return false;
  const std::uint32_t at = cq.seen_write_slot;
  const std::uint32_t wide = at % 2 == 0 ? wire::kLowLatency128Offset : wire::kLowLatency128UnalignedOffset;
  const std::uint64_t* const one = window_word(cq, wire::kLowLatency64Offset, at);
  const std::uint64_t* const two = window_word(cq, wide, at % 2 == 0 ? at : block_after(cq, at, 1));
  return __atomic_load_n(one, __ATOMIC_RELAXED) != kNothingHere ||
         __atomic_load_n(two, __ATOMIC_RELAXED) != kNothingHere;
}
// A plan of faults has work of its own.
bool has_work(const Cq& cq) {
  return cq.read_slot != cq.seen_write_slot || cq.faults != nullptr;
}

// Where the client says that its commands end.
void look_at_pointer(Card& card, Cq& cq) {
  if (has_windows(cq) && take_windows(cq) && cq.failed) reject(cq);
  const std::uint64_t word = __atomic_load_n(cq.write_pointer_page, __ATOMIC_ACQUIRE);
  if (word == cq.seen_pointer) return;
  cq.seen_pointer = word;
  const auto pointer = static_cast<std::uint16_t>(word);  // the register has 16 bits
  if (pointer == 0) return;                               // as the page is at first
  if (cq.failed) return reject(cq);
  if (pointer < wire::kFirstBlock || pointer >= cq.slots) {
    stop_queue(card, cq, ReturnCode::cmd_invalid_arg, 0);
    if (cq.strict != nullptr) cq.strict->outside(cq, pointer);
    return;
  }
  if (cq.strict != nullptr) cq.strict->rung(cq, pointer);
  if (cq.read_slot == cq.seen_write_slot) cq.window_blocks = 0;
  cq.seen_write_slot = pointer;
  // Its commands come from another CPU; they may be on their way while other pointers are looked at.
  if (cq.ring.direct != nullptr) __builtin_prefetch(cq.ring.direct + std::uint64_t{cq.read_slot} * wire::kBlockBytes);
}

ReturnCode change_profile(Cq& cq, const std::uint64_t* words, std::uint32_t block) {
  wire::CqCmd command;
  std::memcpy(&command, words, sizeof command);
  if (block % 2 != 0) return ReturnCode::cmd_align_error;
  const std::uint32_t lcid = command.lcid();
  if (!cq.lni->cps[lcid]) return ReturnCode::cmd_invalid_arg;
  cq.lcid = lcid;
  cq.after_lcid = true;
  return ReturnCode::ok;
}

ReturnCode target_queue_command(Card& card, Cq& cq, const std::uint64_t* words) {
  const auto header = static_cast<std::uint8_t>(words[0]);
  if (words[0] == 0) return ReturnCode::ok;  // padding
  if (wire::type_of_header(header) != CmdType::cq) return ReturnCode::illegal_op;
  if (wire::size_of_header(header) != wire::CmdSize::b64) return ReturnCode::cmd_invalid_arg;
  const std::uint32_t op = wire::opcode_of_header(header);
  if (op == static_cast<std::uint32_t>(wire::CqOp::noop) || op == static_cast<std::uint32_t>(wire::CqOp::fence)) {
    return ReturnCode::ok;
  }
  if (op < static_cast<std::uint32_t>(wire::TargetOp::append) ||
      op > static_cast<std::uint32_t>(wire::TargetOp::set_state)) {
    return ReturnCode::illegal_op;
  }
  std::uint64_t command[8];
  std::copy_n(words, 8, command);
  return card.target_command(cq, command);
}

ReturnCode transmit_queue_command(Card& card, Cq& cq, const std::uint64_t* words, std::uint32_t block) {
  const auto header = static_cast<std::uint8_t>(words[0]);
  const CmdType type = wire::type_of_header(header);
  // Counters have queues of their own, which take nothing else.
  if (cq.triggered != (type == CmdType::ct)) return ReturnCode::illegal_op;
  constexpr auto kNoop = wire::header_byte(CmdType::cq, wire::CmdSize::b64, wire::CqOp::noop);
  if (std::exchange(cq.after_lcid, false) && header != kNoop) return ReturnCode::cmd_invalid_arg;
  if (!cq.lni->cps[cq.lcid]) return ReturnCode::cmd_invalid_arg;
  switch (type) {
    case CmdType::ct: return counter_command(card, cq, words);
    case CmdType::dma: return dma_command(card, cq, words);
    case CmdType::idc: return immediate_command(card, cq, words);
    case CmdType::cq: break;
  }
  if (wire::size_of_header(header) != wire::CmdSize::b64) return ReturnCode::cmd_invalid_arg;
  switch (static_cast<wire::CqOp>(wire::opcode_of_header(header))) {
    case wire::CqOp::noop: return ReturnCode::ok;
    case wire::CqOp::fence:  // what came before is done: operations do not overlap here, but for what was put aside
      if (cq.faults != nullptr) cq.faults->bring_back(card, cq, true);
      return ReturnCode::ok;
    case wire::CqOp::lcid:
      if (cq.faults != nullptr) cq.faults->bring_back(card, cq, true);
      return change_profile(cq, words, block);
  }
  return ReturnCode::illegal_op;
}

// By policy: every 1, 16 or 256 blocks, and for the middle two when the queue is empty. A small ring is told four times
// a turn: its client would else wait for room for ever.
bool status_is_due(const Cq& cq) {
  const bool empty = cq.read_slot == cq.seen_write_slot;
  const std::uint32_t often = std::min(16u, cq.slots / 4);
  const std::uint32_t seldom = std::min(256u, cq.slots / 4);
  switch (static_cast<wire::CqPolicy>(cq.policy)) {
    case wire::CqPolicy::always: return true;
    case wire::CqPolicy::high_freq_empty: return empty || cq.status_every >= often;
    case wire::CqPolicy::low_freq_empty: return empty || cq.status_every >= seldom;
    case wire::CqPolicy::low_freq: return cq.status_every >= seldom;
  }
  return true;
}

void step(Cq& cq, std::uint32_t bytes) {
  if (bytes == wire::kSlotBytes) {
    cq.second_half = !cq.second_half;
    if (cq.second_half) return;
  }
  const std::uint32_t blocks = std::max(bytes / wire::kBlockBytes, 1u);
  cq.read_slot = block_after(cq, cq.read_slot, blocks);
  cq.status_every += blocks;
}

std::uint32_t run_queue(Card& card, Cq& cq) {
  if (cq.faults != nullptr) {
    if (cq.faults->stalled()) return 0;
    cq.faults->bring_back(card, cq, false);
  }
  if (cq.failed || cq.read_slot == cq.seen_write_slot) return 0;
  if (cq.hold != 0) {
    --cq.hold;
    return 1;
  }
  std::array<std::uint64_t, kFetchBlocks * 8> fetched;
  std::uint32_t first = 0;
  std::uint32_t count = 0;  // of blocks from `first` on that are in `fetched`
  std::uint32_t done = 0;
  bool piece = false;
  const std::uint64_t most_bytes = card.tally.bytes.load() + kBytesPerTurn;
  while (done < kCommandsPerPass && cq.read_slot != cq.seen_write_slot && card.tally.bytes.load() < most_bytes) {
    const std::uint32_t waiting = blocks_between(cq, cq.read_slot, cq.seen_write_slot);
    const auto fetch = [&] {
      first = cq.read_slot;
      count = std::min({waiting, cq.slots - first, kFetchBlocks});
      const std::uint64_t offset = std::uint64_t{first} * wire::kBlockBytes;
      if (cq.ring.direct == nullptr) return read(cq.ring, offset, fetched.data(), count * wire::kBlockBytes);
      for (std::uint32_t i = 0; i < count; ++i)  // mostly one, which needs no call
        std::memcpy(fetched.data() + i * 8, cq.ring.direct + offset + i * wire::kBlockBytes, wire::kBlockBytes);
      return true;
    };
    if ((cq.read_slot < first || cq.read_slot - first >= count) && !fetch()) {
      fail_queue(card, cq, ReturnCode::pcie_unsuccess_cmpl, 0);
      break;
    }
    const std::uint32_t half = cq.second_half ? 1 : 0;
    const std::uint64_t* words = fetched.data() + (cq.read_slot - first) * 8 + half * 4;
    const auto header = static_cast<std::uint8_t>(words[0]);
    const std::uint32_t bytes = wire::bytes_of(wire::size_of_header(header));
    const std::uint32_t blocks = std::max(bytes / wire::kBlockBytes, 1u);
    if ((cq.read_slot * wire::kBlockBytes + half * wire::kSlotBytes) % bytes != 0) {
      fail_queue(card, cq, ReturnCode::cmd_align_error, header);
      break;
    }
    // A window takes two blocks at the most: the other half of a longer one is in none.
    if (bytes > 2 * wire::kBlockBytes && came_by_window(cq, cq.read_slot)) {
      fail_queue(card, cq, ReturnCode::cmd_invalid_arg, header);
      break;
    }
    if (blocks > waiting) break;  // the client has not said that it is all there
    if (cq.read_slot - first + blocks > count) {
      if (!fetch() || blocks > count) {
        fail_queue(card, cq, ReturnCode::pcie_unsuccess_cmpl, header);
        break;
      }
      words = fetched.data();
    }
    if (cq.strict != nullptr) cq.strict->begins(cq, words, bytes);
    cq.may_wait = true;
    const std::uint64_t before = cq.moved.bytes;
    const ReturnCode code =
        cq.transmit ? transmit_queue_command(card, cq, words, cq.read_slot) : target_queue_command(card, cq, words);
    cq.may_wait = false;
    if (code == ReturnCode::delayed || std::exchange(cq.waits, false)) {
      piece = cq.moved.bytes > before;
      break;  // no room yet, or a long one goes on: at the next look
    }
    if (code != ReturnCode::ok) {
      fail_queue(card, cq, code, header);
      break;
    }
    step(cq, bytes);
    ++done;
    if (cq.faults != nullptr) {
      cq.faults->carried_out(cq);
      cq.faults->bring_back(card, cq, false);
    }
    if (cq.failed) break;  // by a trigger of its own, or by one that was put aside
  }
  card.tally.commands.add_owner_thread(done);
  if (done != 0 && !cq.failed && status_is_due(cq)) store_queue_status(cq);
  return done + (piece ? 1 : 0);
}

}  // namespace

bool same_group(const Lni* a, const Lni* b) {
  return a == b || (a != nullptr && b != nullptr && a->rgid == b->rgid);
}

Eq* find_eq(Card& card, const Cq& cq, std::uint32_t number) {
  Eq* const eq = card.event_queues.find(number);
  return eq != nullptr && same_group(eq->lni, cq.lni) ? eq : nullptr;
}

Ct* find_ct(Card& card, const Cq& cq, std::uint32_t number) {
  Ct* const ct = card.counters.find(number);
  return ct != nullptr && same_group(ct->lni, cq.lni) ? ct : nullptr;
}

void fail_queue(Card& card, Cq& cq, ReturnCode code, std::uint32_t header) {
  if (cq.strict != nullptr) cq.strict->refused(cq, code, header);
  stop_queue(card, cq, code, header);
}

void stop_queue(Card& card, Cq& cq, ReturnCode code, std::uint32_t header) {
  card.tally.failed_commands.add_owner_thread();
  cq.failed = true;
  cq.status.set_fail_command(header);
  cq.status.set_return_code(code);
  cq.status.set_fail_loc_32(cq.second_half);
  cq.status.set_fail_ll(came_by_window(cq, cq.read_slot));
  store_queue_status(cq);
  if (cq.eq == nullptr) return;
  wire::CommandFailure event{};
  event.set_cq_id(cq.transmit ? cq.id : cq.id - wire::kFirstTargetCq);
  event.set_is_target(!cq.transmit);
  event.set_fail_loc(cq.read_slot);
  event.set_fail_command(header);
  event.set_event_size(wire::EventSize::b16);
  event.set_event_type(wire::EventType::command_failure);
  event.set_return_code(code);
  card.post(*cq.eq, &event, sizeof event);
}

void Card::started(Cq& cq) {
  cq.status = wire::initial_queue_status();
  if (has_windows(cq)) {
    for (std::uint32_t at = wire::kLowLatency64Offset; at < wire::kMappedPageBytes; at += wire::kBlockBytes) {
      __atomic_store_n(cq.write_pointer_page + at / 8, kNothingHere, __ATOMIC_RELAXED);
    }
  }
  (cq.transmit ? senders_ : receivers_).push_back(&cq);
}

void Card::stopping(Cq& cq) {
  if (cq.strict != nullptr) cq.strict->forget(cq);
  if (cq.faults != nullptr) cq.faults->forget(cq);
  std::erase(cq.transmit ? senders_ : receivers_, &cq);
  if (busiest_ == &cq) busiest_ = nullptr;
  const auto its_own = [&](const Trigger& trigger) {
    if (trigger.cq != &cq) return false;
    release_entry(*this, trigger);
    return true;
  };
  for (Ct* const ct : active_counters_) std::erase_if(ct->triggers, its_own);
  std::erase_if(due_, its_own);
}

std::uint32_t Card::drive() {
  std::uint32_t done = 0;
  // A buffer that was appended before a message was sent is there when the message comes: a target queue is at its
  // card, a message has a way to go. So what there is to send is looked at first, and is sent last.
  for (Cq* const cq : senders_) {
    if (was_rung(*cq)) look_at_pointer(*this, *cq);
  }
  for (Cq* const cq : receivers_) {
    if (was_rung(*cq)) look_at_pointer(*this, *cq);
    if (has_work(*cq)) done += run_queue(*this, *cq);
  }
  for (Cq* const cq : senders_) {
    if (!has_work(*cq)) continue;
    const std::uint32_t here = run_queue(*this, *cq);
    // Not one for counters: whoever arms an event posts the operation elsewhere, and that is what is waited for.
    if (here != 0 && !cq->triggered) busiest_ = cq;
    done += here;
  }
  const std::size_t counters_to_see = std::min(active_counters_.size(), kDoorbellsPerPass);
  for (std::size_t i = 0; i < counters_to_see; ++i) {
    if (next_counter_ >= active_counters_.size()) next_counter_ = 0;
    if (take_doorbells(*this, *active_counters_[next_counter_++])) ++done;
  }
  if (!due_.empty()) {
    fire_due();
    ++done;
  }
  look_at_event_queues();
  return done;
}

}  // namespace strait::soft::cassini
