// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/event_queue.hpp"

namespace strait::rail::cxi {

Result<EventQueue> EventQueue::make(const Lni& lni, std::uint64_t bytes, const Wait* wait, std::uint64_t flags) {
  EventQueue queue;
  queue.bytes_ = sys::round_up(static_cast<std::size_t>(bytes), sys::page_bytes());
  STRAIT_TRY(queue.memory_, sys::map_anonymous(static_cast<std::size_t>(queue.bytes_), sys::Protect::read_write));
  Memory::Request memory;
  memory.address = reinterpret_cast<std::uintptr_t>(queue.memory_.data());
  memory.bytes = queue.bytes_;
  memory.flags = w::kMapRead | w::kMapWrite;
  STRAIT_TRY(queue.reached_, Memory::make(lni, memory));
  w::EqAllocCmd command{};
  command.lni = lni.number();
  command.queue_md = queue.reached_.number();
  command.event_wait = wait == nullptr ? w::kWaitNone : wait->number();
  command.attr.queue = memory.address;
  command.attr.queue_len = queue.bytes_;
  command.attr.flags = flags;
  STRAIT_TRY(const auto answer, lni.device().ask<w::EqAllocResp>(command));
  queue.handle_ = {lni.device(), answer.eq};
  STRAIT_TRY(queue.page_, lni.device().map(answer.csr));
  queue.state_.set_rd_ptr(1);
  queue.wake_by_events(false);
  return queue;
}

void EventQueue::store_state() {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(page_.data() + w::kEqSwStateOffset), state_.word, __ATOMIC_RELEASE);
}

std::uint32_t EventQueue::whole() {
  for (;;) {
    const w::EventHead head{{0, __atomic_load_n(word(at_ + 8), __ATOMIC_ACQUIRE)}};
    const std::uint32_t size = w::bytes_of(head.event_size());
    if (size == 0) return 0;
    // The last byte is written last. What comes from the device is not trusted to stay inside its block.
    const std::uint64_t room = w::kEventBlockBytes - at_ % w::kEventBlockBytes;
    if (size > room) return 0;
    const std::uint64_t last = __atomic_load_n(word(at_ + size - 8), __ATOMIC_ACQUIRE);
    if (w::bits<56, 6>(last) == 0) return 0;
    if (head.event_type() != w::EventType::null_event) return size;
    consume(size);
  }
}

// Zeroed at once: a place that is not would look like an event the next time around.
void EventQueue::consume(std::uint32_t bytes) {
  std::memset(memory_.data() + at_, 0, bytes);
  at_ += bytes;
  if (at_ >= bytes_) at_ = w::kEventBlockBytes;
}

bool EventQueue::any() {
  return whole() != 0;
}

bool EventQueue::next(Event& out) {
  const std::uint32_t size = whole();
  if (size == 0) return false;
  std::memcpy(out.words, memory_.data() + at_, size);
  out.bytes = size;
  const w::EventHead head{{out.words[0], out.words[1]}};
  out.type = head.event_type();
  out.code = static_cast<w::ReturnCode>(w::bits<56, 6>(out.words[size / 8 - 1]));
  consume(size);
  return true;
}

void EventQueue::acknowledge() {
  if (at_ / w::kEventBlockBytes == acknowledged_ / w::kEventBlockBytes) return;
  acknowledged_ = at_;
  state_.set_rd_ptr(static_cast<std::uint32_t>(at_ / w::kEventBlockBytes));
  store_state();
}

void EventQueue::wake_by_events(bool on) {
  state_.set_event_int_disable(!on);
  state_.set_eq_sts_int_disable(true);
  state_.set_rd_ptr(static_cast<std::uint32_t>(at_ / w::kEventBlockBytes));
  acknowledged_ = at_;
  store_state();
}

bool EventQueue::lost_any() {
  const std::uint64_t second = __atomic_load_n(word(8), __ATOMIC_ACQUIRE);
  const w::EqStatus status{{0, second, 0, 0, 0, 0, 0, 0}};
  if (!status.unackd_dropped_event()) return false;
  w::EqStatus cleared = status;
  cleared.set_unackd_dropped_event(false);
  __atomic_store_n(word(8), cleared.words[1], __ATOMIC_RELAXED);
  state_.set_event_drop_seq_no(status.event_drop_seq_no());
  state_.set_rd_ptr(static_cast<std::uint32_t>(at_ / w::kEventBlockBytes));
  acknowledged_ = at_;
  store_state();
  return true;
}

}  // namespace strait::rail::cxi
