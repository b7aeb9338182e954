// SPDX-License-Identifier: Apache-2.0
// Receives: list entries on the message portal that take one message each.
#include <algorithm>
#include <cstring>

#include "rail/cxi/queue.hpp"
#include "rail/cxi/syndrome.hpp"

namespace strait::rail::cxi {
namespace m = wire::mlx5;

namespace {

std::uint64_t receives_ahead(std::uint64_t from, std::uint32_t word_raw) {
  const auto low = static_cast<std::uint16_t>(wire::be32::from_raw(word_raw).value());
  return static_cast<std::uint16_t>(low - static_cast<std::uint16_t>(from));
}

}  // namespace

int QueuePair::post_receives() {
  if (rq_entries_ == 0) return 0;
  int done = 0;
  proxy::Work work;
  while (receives_ahead(receive_next_, __atomic_load_n(&record_[0], __ATOMIC_ACQUIRE)) != 0) {
    if (receive_next_ - receive_done_ >= rq_entries_) break;
    if (proxy::read_receive(rq_, receive_next_, rq_stride_bytes_, work) != nullptr) {
      break_down();  // hardware does the same when it meets a receive it cannot read
      break;
    }
    const int id = port_.take_receive_id();
    if (id < 0) break;
    Receive receive;
    receive.id = static_cast<std::uint32_t>(id);
    receive.bytes = work.total_bytes;
    posted_.push_back(std::move(receive));
    ++receive_next_;
    if (!append_receive(work)) {
      posted_.back().unlinked = true;
      break_down();
      break;
    }
    ++counts_.receives;
    ++done;
  }
  return done;
}

bool QueuePair::append_receive(const proxy::Work& work) {
  Receive& receive = posted_.back();
  Source into;
  for (const proxy::Part& part : work.used())
    if (!locate(part, true, into)) return false;
  if (work.count > 1) {
    receive.parts.assign(work.used().begin(), work.used().end());
    receive.bounce = std::make_unique<Bounce>();
    if (!make_bounce(*receive.bounce, work.total_bytes)) return false;
    into = {receive.bounce->memory.iova(reinterpret_cast<std::uintptr_t>(receive.bounce->pages.data())),
            receive.bounce->memory.lac()};
  }
  ListEntry entry;
  entry.portal = port_.message_portal().number();
  entry.buffer_id = receive.id;
  entry.flags = w::kLeOpPut | w::kLeUseOnce | w::kLeEventLinkDisable | w::kLeEventUnlinkDisable;
  entry.iova = into.iova;
  entry.lac = into.lac;
  entry.bytes = receive.bytes;
  entry.match_bits = port_.address().match_bits(qpn_);
  entry.match_id = remote_.match_id();
  return port_.tell_target(encode_append(entry));
}

void QueuePair::on_message(const w::TargetLong& event, w::ReturnCode code) {
  // The device takes them in the order in which they were appended.
  const auto found = std::ranges::find_if(posted_, [&](const Receive& one) { return one.id == event.buffer_id(); });
  if (found == posted_.end()) return;
  Receive receive = std::move(*found);
  posted_.erase(found);
  proxy::Entry out;
  out.syndrome = receive_syndrome_of(code);
  if (out.syndrome == m::Syndrome::none && event.rlength() > event.mlength()) out.syndrome = m::Syndrome::local_length;
  if (out.syndrome == m::Syndrome::none && receive.bounce) {
    const std::byte* from = receive.bounce->pages.data();
    std::uint32_t left = event.mlength();
    for (const proxy::Part& part : receive.parts) {
      const Registration* const region = memory_.find(part.lkey);
      const std::uint32_t n = std::min(left, part.length_bytes);
      if (n != 0 && (region == nullptr || region->cpu == nullptr)) {
        out.syndrome = m::Syndrome::local_protection;
        break;
      }
      if (n != 0) std::memcpy(region->cpu + (part.address - region->address), from, n);
      from += n;
      left -= n;
    }
  }
  if (out.syndrome != m::Syndrome::none) {
    out.opcode = m::CqeOpcode::responder_error;
    out.vendor = static_cast<std::uint8_t>(code);
  } else {
    const MessageHeader header = MessageHeader::of(event.header_data());
    out.byte_count = header.kind == MessageKind::write_imm ? header.bytes : event.mlength();
    out.opcode = header.kind == MessageKind::write_imm  ? m::CqeOpcode::responder_write_imm
                 : header.kind == MessageKind::send_imm ? m::CqeOpcode::responder_send_imm
                                                        : m::CqeOpcode::responder_send;
    out.imm_raw = header.imm_raw;
  }
  const bool failed = out.syndrome != m::Syndrome::none;
  complete_receive(out);
  if (receive.unlinking && !receive.unlinked) {
    consumed_.push_back(std::move(receive));  // its unlink is still to be answered
  } else {
    port_.give_receive_id(receive.id);
  }
  if (failed) {
    break_down();
    advance();
  }
}

void QueuePair::on_append_failed(std::uint32_t id) {
  const auto found = std::ranges::find_if(posted_, [&](const Receive& one) { return one.id == id; });
  if (found == posted_.end()) return;
  found->unlinked = true;
  break_down();
  advance();
}

void QueuePair::unlink_receives() {
  for (Receive& receive : posted_) {
    if (receive.unlinking || receive.unlinked) continue;
    receive.unlinking = true;
    if (!port_.tell_target(encode_unlink(port_.message_portal().number(), receive.id))) receive.unlinked = true;
  }
}

// Not found means that a message was faster; its event came before this one.
void QueuePair::on_unlinked(std::uint32_t id, w::ReturnCode) {
  const auto one = [&](const Receive& receive) { return receive.id == id; };
  if (const auto found = std::ranges::find_if(consumed_, one); found != consumed_.end()) {
    port_.give_receive_id(id);
    consumed_.erase(found);
    return;
  }
  const auto found = std::ranges::find_if(posted_, one);
  if (found == posted_.end()) return;
  found->unlinked = true;
  advance();
}

void QueuePair::complete_receive(proxy::Entry entry) {
  entry.wqe_counter = static_cast<std::uint16_t>(receive_done_++);
  write(receives_, entry);
}

void QueuePair::flush_receive() {
  proxy::Entry entry;
  entry.opcode = m::CqeOpcode::responder_error;
  entry.syndrome = m::Syndrome::flushed;
  complete_receive(entry);
}

// After everything that was sent, those that the device had and has given back; then those it never saw.
int QueuePair::flush_receives() {
  if (state_ != State::error || !begun_.empty()) return 0;
  int done = 0;
  while (!posted_.empty() && posted_.front().unlinked) {
    port_.give_receive_id(posted_.front().id);
    posted_.pop_front();
    flush_receive();
    ++done;
  }
  if (!posted_.empty() || rq_entries_ == 0) return done;
  while (receives_ahead(receive_next_, __atomic_load_n(&record_[0], __ATOMIC_ACQUIRE)) != 0) {
    ++receive_next_;
    flush_receive();
    ++done;
  }
  return done;
}

}  // namespace strait::rail::cxi
