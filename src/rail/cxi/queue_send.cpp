// SPDX-License-Identifier: Apache-2.0
// Work requests become commands.
#include <algorithm>
#include <cstring>

#include "rail/cxi/queue.hpp"
#include "rail/cxi/syndrome.hpp"

namespace strait::rail::cxi {
namespace m = wire::mlx5;
using m::Opcode;

namespace {

constexpr std::uint8_t kVendorMalformed = 0x90;  // above every CXI return code
constexpr std::uint8_t kVendorOutOfReach = 0x91;
constexpr std::uint32_t kLookupSlot = 0;  // of the scratch page, in words
constexpr std::uint32_t kProbeSlot = 2;
constexpr std::uint32_t kFirstOperand = 4;
constexpr std::uint32_t kOperands = 256;
constexpr std::int64_t kFirstWaitNs = 10'000;
constexpr std::size_t kMostBases = 65536;

// What a Cassini has for an atomic. False: nothing. Masks that are not all or nothing it does not have.
bool choose_atomic(const proxy::Work& work, Atomic& out) {
  const bool four = work.width == 4;
  const std::uint64_t all = four ? 0xffffffffu : ~std::uint64_t{0};
  const std::uint64_t top = four ? 0x80000000u : std::uint64_t{1} << 63;
  out.type = four ? w::AtomicType::uint32 : w::AtomicType::uint64;
  switch (work.opcode) {
    case Opcode::atomic_fa: out.op = w::AtomicOp::sum; return true;
    case Opcode::atomic_masked_fa:
      out.op = work.boundary == all ? w::AtomicOp::bxor : w::AtomicOp::sum;
      return work.boundary == all || work.boundary == 0 || work.boundary == top;
    case Opcode::atomic_masked_cs:
      if (work.swap_mask != all || (work.compare_mask != all && work.compare_mask != 0)) return false;
      out.op = work.compare_mask == 0 ? w::AtomicOp::swap : w::AtomicOp::cswap;
      break;
    default: out.op = w::AtomicOp::cswap;
  }
  out.compare = work.compare;
  return true;
}

std::uint64_t record_ahead(std::uint64_t from, std::uint32_t word_raw) {
  const auto low = static_cast<std::uint16_t>(wire::be32::from_raw(word_raw).value());
  return static_cast<std::uint16_t>(low - static_cast<std::uint16_t>(from));
}

}  // namespace

// The record is what counts; the doorbell only says when to look, and drive() said so already.
void QueuePair::look_at_record() {
  const std::uint64_t ahead = record_ahead(producer_, __atomic_load_n(&record_[1], __ATOMIC_ACQUIRE));
  if (ahead != 0 && ahead + (producer_ - next_) <= sq_blocks_) producer_ += ahead;  // else a jump that cannot be true
}

// Puts follow puts, gets follow gets and atomics follow atomics without waiting: the device keeps each of them in
// order. A message goes alone: its receiver may not be ready, and then it goes again.
bool QueuePair::may_begin(Class wanted, bool fence) const {
  if (outstanding_ == 0) return true;
  if (wanted != class_ || wanted == Class::message) return false;
  return !fence || wanted == Class::write;
}

QueuePair::Begun& QueuePair::begin(const proxy::Work& work) {
  Begun entry;
  entry.index = next_;
  entry.opcode = work.opcode;
  entry.bytes = work.total_bytes;
  entry.signaled = work.signaled || all_signaled_;
  begun_.push_back(entry);
  next_ += work.blocks;
  part_ = 0;
  part_offset_ = 0;
  pieces_done_ = false;
  in_work_ = true;
  ++counts_.work_requests;
  return begun_.back();
}

// What was begun last cannot be done. What of it is on its way is waited for.
void QueuePair::refuse(m::Syndrome syndrome, std::uint8_t vendor) {
  Begun& entry = begun_.back();
  if (entry.fault == m::Syndrome::none) {
    entry.fault = syndrome;
    entry.vendor = vendor;
  }
  entry.emitted = true;
  in_work_ = false;
  stopped_ = true;
}

int QueuePair::post_sends() {
  int done = 0;
  while (state_ == State::ready && !stopped_) {
    if (!in_work_) {
      if (next_ == producer_) break;
      const auto published = static_cast<std::uint32_t>(producer_ - next_);
      if (const char* fault = proxy::read_send(sq_, next_, published, qpn_, work_, proxy::Masked::understood);
          fault != nullptr) {
        (void)begin(work_);
        refuse(fault == proxy::kTooLong ? m::Syndrome::local_length : m::Syndrome::local_qp_operation,
               kVendorMalformed);
        return done + 1;
      }
      const Class wanted = class_of(work_.opcode);
      if (work_.opcode != Opcode::nop && !may_begin(wanted, work_.fence)) break;
      (void)begin(work_);
    }
    const Step took = step();
    if (took == Step::blocked) break;
    if (took == Step::done) {
      begun_.back().emitted = true;
      in_work_ = false;
    }
    ++done;
  }
  return done;
}

QueuePair::Class QueuePair::class_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::rdma_read: return Class::read;
    case Opcode::atomic_fa:
    case Opcode::atomic_cs:
    case Opcode::atomic_masked_fa:
    case Opcode::atomic_masked_cs: return Class::atomic;
    case Opcode::send:
    case Opcode::send_imm: return Class::message;
    default: return Class::write;
  }
}

QueuePair::Step QueuePair::step() {
  switch (work_.opcode) {
    case Opcode::nop: return Step::done;
    case Opcode::rdma_write: return work_.total_bytes == 0 ? Step::done : step_pieces(true);
    case Opcode::rdma_read: return work_.total_bytes == 0 ? Step::done : step_pieces(false);
    case Opcode::atomic_fa:
    case Opcode::atomic_cs:
    case Opcode::atomic_masked_fa:
    case Opcode::atomic_masked_cs: return step_atomic();
    case Opcode::rdma_write_imm:
      if (!pieces_done_ && work_.total_bytes != 0) {
        if (const Step took = step_pieces(true); took != Step::done) return took;
      }
      pieces_done_ = true;
      return step_message();
    case Opcode::send:
    case Opcode::send_imm: return step_message();
    default:
      // A list entry cannot be taken away by a message.
      refuse(m::Syndrome::local_qp_operation, kVendorMalformed);
      return Step::refused;
  }
}

bool QueuePair::emit(const void* command, std::uint32_t bytes, w::CmdSize size) {
  if (!port_.take_transmit_credit()) return false;
  if (!port_.transmit().place(command, bytes, size)) {
    port_.give_transmit_credit();
    return false;
  }
  ++counts_.commands;
  if (outstanding_ == 0) answered_ns_ = 0;
  return true;
}

bool QueuePair::locate(const proxy::Part& part, bool written, Source& out) const {
  if (part.in_ring) {
    out = {ring_memory_.iova(part.address), ring_memory_.lac()};
    return true;
  }
  const Registration* const found = memory_.find(part.lkey);
  if (found == nullptr || found->pd != pd_ || !found->holds(part.address, part.length_bytes)) return false;
  if (written && (found->access & STRAIT_NIC_LOCAL_WRITE) == 0) return false;
  out = {found->iova(part.address), found->memory.lac()};
  return true;
}

// Where in the peer's list entry the work request begins. The peer's directory knows where the entry does.
QueuePair::Step QueuePair::resolve(std::uint64_t& offset) {
  const std::uint32_t key = work_.rkey;
  std::uint64_t base = last_base_;
  if (key != last_key_ || key == 0) {
    const auto found = bases_.find(key);
    if (found == bases_.end()) {
      const bool possible = place_of(key) != 0 && (key & (kAtomicKey | kLocalKey)) == 0;
      if (!possible || (lookup_.at == Lookup::At::failed && lookup_.key == key)) {
        const w::ReturnCode code = possible ? lookup_.code : w::ReturnCode::no_match;
        lookup_.at = Lookup::At::none;
        // Who is there has a directory: one that cannot be read has gone with its owner.
        const bool gone = possible && lookup_.unread;
        refuse(gone ? m::Syndrome::transport_retry_exceeded : syndrome_of(code), static_cast<std::uint8_t>(code));
        return Step::refused;
      }
      if (lookup_.at == Lookup::At::asked) return Step::blocked;
      Transfer what;
      what.iova = scratch_memory_.iova(reinterpret_cast<std::uintptr_t>(scratch_.data())) + kLookupSlot * 8;
      what.lac = scratch_memory_.lac();
      what.bytes = sizeof(DirectoryEntry);
      what.remote_offset = std::uint64_t{place_of(key)} * sizeof(DirectoryEntry);
      what.match_bits = remote_.match_bits(0);
      what.user = User{serial_, What::lookup, key}.word();
      const w::FullDmaCmd command = encode_get(to_memory_, what);
      if (!emit(&command, sizeof command, w::CmdSize::b64)) return Step::blocked;
      lookup_ = {Lookup::At::asked, key, w::ReturnCode::ok, false};
      ++counts_.lookups;
      return Step::blocked;
    }
    base = found->second;
    last_key_ = key;
    last_base_ = base;
  }
  offset = work_.remote_address - base;
  if (work_.remote_address < base || offset >> 55 != 0) {
    refuse(m::Syndrome::remote_access, static_cast<std::uint8_t>(w::ReturnCode::addr_out_of_range));
    return Step::refused;
  }
  return Step::done;
}

QueuePair::Step QueuePair::step_pieces(bool put) {
  std::uint64_t offset = 0;
  if (const Step took = resolve(offset); took != Step::done) return took;
  const std::uint64_t number = first_ + begun_.size() - 1;
  for (; part_ < work_.count; ++part_) {
    const proxy::Part& part = work_.parts[part_];
    Source source;
    if (!locate(part, !put, source)) {
      refuse(m::Syndrome::local_protection, kVendorOutOfReach);
      return Step::refused;
    }
    Transfer what;
    what.iova = source.iova;
    what.lac = source.lac;
    what.bytes = part.length_bytes;
    what.remote_offset = offset + part_offset_;
    what.match_bits = remote_.match_bits(work_.rkey);
    what.user = User{serial_, What::work, number}.word();
    const w::FullDmaCmd command = encode(put ? w::DmaOp::put : w::DmaOp::get, to_memory_, what);
    if (!emit(&command, sizeof command, w::CmdSize::b64)) return Step::blocked;
    part_offset_ += part.length_bytes;
    class_ = put ? Class::write : Class::read;
    ++outstanding_;
    ++begun_.back().outstanding;
    outstanding_bytes_ += part.length_bytes;
  }
  return Step::done;
}

QueuePair::Step QueuePair::step_atomic() {
  Atomic what;
  if (!choose_atomic(work_, what)) {
    refuse(m::Syndrome::local_qp_operation, kVendorMalformed);
    return Step::refused;
  }
  std::uint64_t offset = 0;
  if (const Step took = resolve(offset); took != Step::done) return took;
  const std::uint64_t number = first_ + begun_.size() - 1;
  if (number - first_ >= kOperands) return Step::blocked;  // its operand's place is in use
  Source result;
  if (work_.count != 1 || !locate(work_.parts[0], true, result)) {
    refuse(m::Syndrome::local_protection, kVendorOutOfReach);
    return Step::refused;
  }
  const std::uint64_t slot = kFirstOperand + number % kOperands;
  std::memcpy(scratch_.data() + slot * 8, &work_.operand, sizeof work_.operand);
  what.operand_iova = scratch_memory_.iova(reinterpret_cast<std::uintptr_t>(scratch_.data())) + slot * 8;
  what.operand_lac = scratch_memory_.lac();
  what.result_iova = result.iova;
  what.result_lac = result.lac;
  what.remote_offset = offset;
  what.match_bits = remote_.match_bits(work_.rkey | kAtomicKey);
  what.user = User{serial_, What::work, number}.word();
  const w::AmoDmaCmd command = encode_fetching(to_memory_, what);
  if (!emit(&command, sizeof command, w::CmdSize::b128)) return Step::blocked;
  class_ = Class::atomic;
  ++outstanding_;
  ++begun_.back().outstanding;
  return Step::done;
}

// ---- Messages -------------------------------------------------------------------------------------------------------

QueuePair::Step QueuePair::step_message() {
  if (message_.at == Message::At::none) {
    if (outstanding_ != 0) return Step::blocked;
    if (!compose_message()) return Step::refused;
    message_.at = Message::At::to_emit;
    // From here on it counts as under way, whatever becomes of it.
    class_ = Class::message;
    ++outstanding_;
    ++begun_.back().outstanding;
    outstanding_bytes_ += message_.payload_bytes;
  }
  (void)drive_message();
  return message_.at == Message::At::to_emit ? Step::blocked : Step::done;
}

Status QueuePair::make_bounce(Bounce& out, std::uint64_t bytes) const {
  if (out.pages.size() >= bytes) return {};
  out.memory = Memory();
  STRAIT_TRY(out.pages, sys::map_anonymous(sys::round_up(static_cast<std::size_t>(bytes), sys::page_bytes()),
                                           sys::Protect::read_write));
  STRAIT_TRY(out.memory, Memory::make(port_.lni(), {.address = reinterpret_cast<std::uintptr_t>(out.pages.data()),
                                                    .bytes = out.pages.size(),
                                                    .flags = w::kMapRead | w::kMapWrite}));
  return {};
}

// All parts, one behind the other. False: one is not to be read by the CPU.
bool QueuePair::gather(std::byte* into) const {
  for (const proxy::Part& part : work_.used()) {
    const std::byte* from = reinterpret_cast<const std::byte*>(part.address);
    if (!part.in_ring) {
      const Registration* const found = memory_.find(part.lkey);
      if (found == nullptr || found->cpu == nullptr) return false;
      from = found->cpu + (part.address - found->address);
    }
    std::memcpy(into, from, part.length_bytes);
    into += part.length_bytes;
  }
  return true;
}

bool QueuePair::compose_message() {
  const bool writes = work_.opcode == Opcode::rdma_write_imm;
  MessageHeader header;
  header.kind = writes                             ? MessageKind::write_imm
                : work_.opcode == Opcode::send_imm ? MessageKind::send_imm
                                                   : MessageKind::send;
  if (header.kind != MessageKind::send) header.imm_raw = work_.imm_raw;
  header.bytes = work_.total_bytes;
  message_.payload_bytes = writes ? 0 : work_.total_bytes;
  message_.tries = 0;
  message_.waited_ns = 0;
  message_.wait_ns = 0;
  const std::uint64_t match = remote_.match_bits(remote_qpn_);
  const std::uint64_t user = User{serial_, What::message, first_ + begun_.size() - 1}.word();
  const bool all_in_ring =
      writes || std::ranges::all_of(work_.used(), [](const proxy::Part& part) { return part.in_ring; });
  if (all_in_ring && message_.payload_bytes <= w::kMaxIdcPayload) {
    message_.immediate = true;
    message_.size = message_.payload_bytes <= 32   ? w::CmdSize::b64
                    : message_.payload_bytes <= 96 ? w::CmdSize::b128
                                                   : w::CmdSize::b256;
    const w::IdcMsgHeader command =
        encode_message(to_messages_, message_.payload_bytes, match, header.word(), user, message_.size);
    std::memcpy(message_.command, &command, sizeof command);
    if (!writes) (void)gather(message_.command + sizeof command);
    message_.bytes = w::kIdcMessageHeaderBytes + message_.payload_bytes;
    return true;
  }
  message_.immediate = false;
  message_.size = w::CmdSize::b64;
  Source source;
  for (const proxy::Part& part : work_.used()) {
    if (locate(part, false, source)) continue;
    refuse(m::Syndrome::local_protection, kVendorOutOfReach);
    return false;
  }
  if (work_.count > 1) {
    if (!make_bounce(bounce_, work_.total_bytes) || !gather(bounce_.pages.data())) {
      refuse(m::Syndrome::local_qp_operation, kVendorOutOfReach);
      return false;
    }
    source = {bounce_.memory.iova(reinterpret_cast<std::uintptr_t>(bounce_.pages.data())), bounce_.memory.lac()};
  }
  Transfer what;
  what.iova = source.iova;
  what.lac = source.lac;
  what.bytes = message_.payload_bytes;
  what.match_bits = match;
  what.header_data = header.word();
  what.user = user;
  const w::FullDmaCmd command = encode_put(to_messages_, what);
  std::memcpy(message_.command, &command, sizeof command);
  message_.bytes = sizeof command;
  return true;
}

// Asked before the failure is told: a process that was killed takes its memory with it first.
void QueuePair::doubt(std::uint64_t number) {
  Begun* const entry = find(number);
  if (entry == nullptr || state_ != State::ready || doubt_.at != Doubt::At::none) return;
  doubt_ = {Doubt::At::to_ask, number};
  ++entry->outstanding;
  ++outstanding_;
  drive_doubt();
}

void QueuePair::drive_doubt() {
  if (doubt_.at == Doubt::At::to_ask && emit_probe(doubt_.number)) doubt_.at = Doubt::At::asked;
}

// Reads what the peer's directory says of its queue pair.
bool QueuePair::emit_probe(std::uint64_t number) {
  Transfer what;
  what.iova = scratch_memory_.iova(reinterpret_cast<std::uintptr_t>(scratch_.data())) + kProbeSlot * 8;
  what.lac = scratch_memory_.lac();
  what.bytes = sizeof(DirectoryEntry);
  what.remote_offset = std::uint64_t{place_of(remote_qpn_)} * sizeof(DirectoryEntry);
  what.match_bits = remote_.match_bits(0);
  what.user = User{serial_, What::probe, number}.word();
  const w::FullDmaCmd command = encode_get(to_memory_, what);
  return emit(&command, sizeof command, w::CmdSize::b64);
}

int QueuePair::drive_message() {
  if (message_.at == Message::At::waiting && sys::now_ns() >= message_.until_ns) message_.at = Message::At::to_emit;
  if (message_.at == Message::At::to_emit) {
    if (message_.immediate && !port_.prepare_messages()) return 0;
    if (!emit(message_.command, message_.bytes, message_.size)) return 0;
    if (message_.immediate) ++counts_.immediate;
    message_.at = Message::At::sent;
    answered_ns_ = 0;
    return 1;
  }
  if (message_.at == Message::At::to_probe) {
    if (!emit_probe(first_ + begun_.size() - 1)) return 0;
    message_.at = Message::At::probing;
    return 1;
  }
  return 0;
}

// Nothing matched: the receiver has posted nothing yet, or there is no receiver any more. Its directory tells.
void QueuePair::message_answered(w::ReturnCode code, std::uint32_t moved_bytes) {
  if (begun_.empty()) return;
  Begun& entry = begun_.back();  // alone, and the last that was begun
  if ((code == w::ReturnCode::entry_not_found || code == w::ReturnCode::no_match) && state_ == State::ready) {
    ++counts_.not_ready;
    message_.at = Message::At::to_probe;
    return;
  }
  message_.at = Message::At::none;
  if (entry.outstanding == 0) return;
  --entry.outstanding;
  --outstanding_;
  outstanding_bytes_ = 0;
  if (code != w::ReturnCode::ok) {
    entry.fault = syndrome_of(code);
  } else if (moved_bytes < message_.payload_bytes) {
    entry.fault = m::Syndrome::remote_invalid_request;  // longer than the receive
  } else {
    return;
  }
  entry.vendor = static_cast<std::uint8_t>(code);
  stopped_ = true;
}

void QueuePair::on_answer(const User& user, w::ReturnCode code, std::uint32_t moved_bytes) {
  answered_ns_ = 0;
  const auto scratch = [&](std::uint32_t slot) {
    DirectoryEntry entry;
    std::memcpy(&entry, scratch_.data() + std::size_t{slot} * 8, sizeof entry);
    return entry;
  };
  switch (user.what) {
    case What::lookup: {
      if (lookup_.at != Lookup::At::asked || lookup_.key != user.number) return;
      const DirectoryEntry entry = scratch(kLookupSlot);
      const bool found = code == w::ReturnCode::ok && entry.key == lookup_.key;
      lookup_.at = found ? Lookup::At::none : Lookup::At::failed;
      lookup_.code = code == w::ReturnCode::ok ? w::ReturnCode::no_match : code;
      lookup_.unread = code != w::ReturnCode::ok;
      if (!found) return;
      if (bases_.size() >= kMostBases) bases_.clear();
      bases_.insert_or_assign(lookup_.key, entry.value);
      return;
    }
    case What::probe: {
      const DirectoryEntry entry = scratch(kProbeSlot);
      const bool there = code == w::ReturnCode::ok && entry.key == (kQueueEntry | remote_qpn_) && entry.value != 0;
      if (doubt_.at == Doubt::At::asked && user.number == (doubt_.number & User::kNumberMask)) {
        doubt_.at = Doubt::At::none;
        Begun* const failed = find(doubt_.number);
        if (failed == nullptr || failed->outstanding == 0) return;
        --failed->outstanding;
        --outstanding_;
        if (!there) failed->fault = m::Syndrome::transport_retry_exceeded;
        if (failed == &begun_.front()) advance();
        return;
      }
      if (message_.at != Message::At::probing) return;
      message_.wait_ns = std::clamp(message_.wait_ns * 2, kFirstWaitNs, rnr_wait_ns_);
      message_.waited_ns += message_.wait_ns;
      const bool patient = rnr_retries_ >= 7 || message_.waited_ns <= rnr_wait_ns_ * (std::int64_t{rnr_retries_} + 1);
      if (state_ == State::ready && there && patient) {
        message_.at = Message::At::waiting;
        message_.until_ns = sys::now_ns() + message_.wait_ns;
        return;
      }
      message_answered(there ? w::ReturnCode::no_space : w::ReturnCode::no_target_conn, 0);
      if (there && !begun_.empty()) begun_.back().fault = m::Syndrome::rnr_retry_exceeded;
      advance();
      return;
    }
    case What::message:
      if (message_.at != Message::At::sent) return;
      message_answered(code, moved_bytes);
      advance();
      return;
    case What::work: break;
  }
  Begun* const entry = find(user.number);
  if (entry == nullptr || entry->outstanding == 0) return;  // flushed without it before
  --entry->outstanding;
  --outstanding_;
  if (outstanding_ == 0) outstanding_bytes_ = 0;
  entry->moved += moved_bytes;
  // A device that moves what fits and calls it success has still not done what was asked.
  const bool counted = entry->opcode == Opcode::rdma_write || entry->opcode == Opcode::rdma_read;
  if (code == w::ReturnCode::ok && counted && entry->emitted && entry->outstanding == 0 && entry->moved < entry->bytes)
    code = w::ReturnCode::addr_out_of_range;
  if (code != w::ReturnCode::ok && entry->fault == m::Syndrome::none) {
    entry->fault = syndrome_of(code);
    entry->vendor = static_cast<std::uint8_t>(code);
    stopped_ = true;
    if (in_work_ && entry == &begun_.back()) {
      entry->emitted = true;  // the rest of it never goes
      in_work_ = false;
    }
    if (entry->fault == m::Syndrome::remote_access) doubt(user.number);
  }
  if (entry == &begun_.front()) advance();
}

// Without an answer for longer than asked for. A device that works answers for the peer, so this is the device.
void QueuePair::check_time() {
  const std::int64_t now = sys::now_ns();
  if (message_.at == Message::At::waiting) return;
  if (answered_ns_ == 0) {
    answered_ns_ = now;
    return;
  }
  if (now - answered_ns_ < patience_ns_ + static_cast<std::int64_t>(outstanding_bytes_ * 10)) return;
  if (begun_.empty()) return;
  ++counts_.timeouts;
  for (Begun& entry : begun_) entry.outstanding = 0;
  outstanding_ = 0;
  outstanding_bytes_ = 0;
  message_.at = Message::At::none;
  lookup_.at = Lookup::At::none;
  begun_.front().fault = m::Syndrome::transport_retry_exceeded;
  begun_.front().vendor = 0;
  stopped_ = true;
  in_work_ = false;
}

}  // namespace strait::rail::cxi
