// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/completion.hpp"

#include <bit>
#include <cstring>

#include "sys/clock.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {
constexpr std::size_t kSyndromeWord = offsetof(m::ErrorCqe, hw_err_synd);
constexpr std::uint32_t kNotArmed = 0xffffffff;
}  // namespace

CompletionQueue::CompletionQueue(std::uint32_t number, const strait_nic_cq_request& request)
    : number_(number),
      entries_(request.entries),
      log_entries_(static_cast<std::uint32_t>(std::countr_zero(request.entries))),
      stride_bytes_(request.cqe_bytes),
      collapsed_((request.flags & STRAIT_NIC_CQ_COLLAPSED) != 0),
      ignore_overrun_((request.flags & (STRAIT_NIC_CQ_IGNORE_OVERRUN | STRAIT_NIC_CQ_COLLAPSED)) != 0),
      ring_(static_cast<std::byte*>(request.ring)),
      consumer_word_(static_cast<const std::uint32_t*>(request.record)) {}

CompletionQueue::CompletionQueue(std::uint32_t number, const CqRequest& request)
    : CompletionQueue(
          number, strait_nic_cq_request{sizeof(strait_nic_cq_request), request.entries, request.cqe_bytes,
                                        (request.ignore_overrun ? std::uint32_t{STRAIT_NIC_CQ_IGNORE_OVERRUN} : 0u) |
                                            (request.collapsed ? std::uint32_t{STRAIT_NIC_CQ_COLLAPSED} : 0u),
                                        request.ring, request.record}) {
  user_ = request.user;
  timestamps_ = request.timestamps;
  if (!request.events) return;
  arm_word_ = static_cast<std::uint32_t*>(request.record) + 1;
  __atomic_store_n(arm_word_, kNotArmed, __ATOMIC_RELEASE);
}

// The first arm ever is the value 0, which is also what fresh memory holds: so "not armed" has a value of its own.
// An event for entries that an earlier event told of would wake a program that arms before it polls once too often.
bool CompletionQueue::armed_for_news(std::uint32_t raw) const {
  if (raw == kNotArmed) return false;
  const std::uint32_t word = wire::be32::from_raw(raw).value();
  const bool solicited = (word >> 24 & 1) == static_cast<std::uint32_t>(m::ArmCommand::next_solicited);
  const std::uint64_t newest = solicited ? solicited_end_ : producer_;
  if (newest <= event_end_) return false;
  const std::uint32_t ahead = (static_cast<std::uint32_t>(newest) - word) & m::kConsumerMask;
  return ahead != 0 && ahead <= m::kConsumerMask / 2;
}

bool CompletionQueue::event_due() const {
  return arm_word_ != nullptr && has_news() && armed_for_news(__atomic_load_n(arm_word_, __ATOMIC_ACQUIRE));
}

bool CompletionQueue::take_event() {
  if (arm_word_ == nullptr || !has_news()) return false;
  std::uint32_t raw = __atomic_load_n(arm_word_, __ATOMIC_ACQUIRE);
  while (armed_for_news(raw)) {
    if (!__atomic_compare_exchange_n(arm_word_, &raw, kNotArmed, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
    event_end_ = producer_;
    return true;
  }
  return false;
}

bool CompletionQueue::resize(void* ring, std::uint32_t entries, std::uint32_t cqe_bytes) {
  if (overrun_ || collapsed_ || full() || waiting() + 1 >= entries) return false;
  std::byte* const entry = ring_ + (producer_ & (entries_ - 1)) * stride_bytes_ + (stride_bytes_ - sizeof(m::Cqe));
  const auto owner = static_cast<unsigned>(producer_ >> log_entries_) & 1u;
  ++producer_;
  ring_ = static_cast<std::byte*>(ring);
  entries_ = entries;
  log_entries_ = static_cast<std::uint32_t>(std::countr_zero(entries));
  stride_bytes_ = cqe_bytes;
  __atomic_store_n(reinterpret_cast<std::uint8_t*>(entry + offsetof(m::Cqe, op_own)),
                   m::make_op_own(m::CqeOpcode::resize, owner, 0), __ATOMIC_RELEASE);
  return true;
}

std::uint32_t CompletionQueue::waiting() const {
  // The record carries 24 bits of the consumer index; the queue is far shorter, so the difference is unambiguous.
  const std::uint32_t raw = __atomic_load_n(consumer_word_, __ATOMIC_ACQUIRE);
  const std::uint32_t consumer = wire::be32::from_raw(raw).value() & m::kConsumerMask;
  return (static_cast<std::uint32_t>(producer_) - consumer) & m::kConsumerMask;
}

// Straight into the ring: made elsewhere first, in fields, and copied in larger units, each unit would wait until the
// fields it is made of have left the CPU's store buffer.
bool CompletionQueue::write_plain(m::CqeOpcode what, std::uint32_t qpn, std::uint32_t user_index, m::Opcode opcode,
                                  std::uint16_t wqe_counter, std::uint32_t byte_count) {
  if (overrun_ || collapsed_ || (!ignore_overrun_ && full())) [[unlikely]] {
    Completion completion;
    completion.opcode = what;
    completion.send_opcode = opcode;
    completion.qpn = qpn;
    completion.user_index = user_index;
    completion.wqe_counter = wqe_counter;
    completion.byte_count = byte_count;
    return write(completion);
  }
  std::byte* const entry = ring_ + (producer_ & (entries_ - 1)) * stride_bytes_ + (stride_bytes_ - sizeof(m::Cqe));
  auto& cqe = *reinterpret_cast<m::Cqe*>(entry);
  std::memset(entry, 0, offsetof(m::Cqe, sop_qpn));
  cqe.srqn_uidx = wire::be32{user_index};
  cqe.byte_cnt = wire::be32{byte_count};
  if (timestamps_) [[unlikely]]
    cqe.timestamp = wire::be64{static_cast<std::uint64_t>(sys::now_ns())};
  cqe.sop_qpn = wire::be32{static_cast<std::uint32_t>(opcode) << 24 | qpn};
  cqe.wqe_counter = wire::be16{wqe_counter};
  cqe.signature = 0;
  const auto owner = static_cast<unsigned>(producer_ >> log_entries_) & 1u;
  ++producer_;
  __atomic_store_n(&cqe.op_own, m::make_op_own(what, owner, 0), __ATOMIC_RELEASE);
  return true;
}

bool CompletionQueue::write(const Completion& completion) {
  if (overrun_) return false;
  if (!ignore_overrun_ && full()) {
    overrun_ = true;
    return false;
  }
  const std::uint64_t slot = collapsed_ ? 0 : producer_ & (entries_ - 1);
  // In the 128-byte form the entry proper is the second half.
  std::byte* entry = ring_ + slot * stride_bytes_ + (stride_bytes_ - sizeof(m::Cqe));
  m::Cqe cqe{};
  const auto header = static_cast<std::uint32_t>(completion.header);
  cqe.flags_rqpn = wire::be32{(header != 0 ? m::kCqeGrh : 0u) | header << 24 | completion.source_qpn};
  cqe.srqn_uidx = wire::be32{completion.user_index & m::kMaxQpn};
  cqe.imm_inval_pkey = wire::be32::from_raw(completion.imm_raw);
  cqe.byte_cnt = wire::be32{completion.byte_count};
  if (completion.syndrome != m::Syndrome::none) {
    cqe.timestamp =
        wire::be64{std::uint64_t{completion.vendor_syndrome} << 8 | static_cast<std::uint64_t>(completion.syndrome)};
  } else if (timestamps_) {
    cqe.timestamp = wire::be64{static_cast<std::uint64_t>(sys::now_ns())};
  }
  cqe.sop_qpn = wire::be32{static_cast<std::uint32_t>(completion.send_opcode) << 24 | completion.qpn};
  cqe.wqe_counter = wire::be16{completion.wqe_counter};
  const unsigned owner = collapsed_ ? 0 : static_cast<unsigned>(producer_ >> log_entries_) & 1u;
  const std::uint8_t op_own = m::make_op_own(completion.opcode, owner, completion.solicited ? m::kCqeSolicited : 0);
  if (collapsed_) {
    // Pollers of a collapsed queue read counter and op_own as one word, so that is how it is written.
    // Nothing says when the reader looks, so the words it takes are stored whole.
    std::memcpy(entry, &cqe, kSyndromeWord);
    std::uint32_t syndromes = 0;
    std::memcpy(&syndromes, reinterpret_cast<const std::byte*>(&cqe) + kSyndromeWord, sizeof syndromes);
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(entry + kSyndromeWord), syndromes, __ATOMIC_RELAXED);
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(entry + offsetof(m::Cqe, sop_qpn)), cqe.sop_qpn.raw(),
                     __ATOMIC_RELAXED);
    const std::uint32_t tail = std::uint32_t{cqe.wqe_counter.raw()} | std::uint32_t{op_own} << 24;
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(entry + offsetof(m::Cqe, wqe_counter)), tail, __ATOMIC_RELEASE);
  } else {
    std::memcpy(entry, &cqe, offsetof(m::Cqe, op_own));
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(entry + offsetof(m::Cqe, op_own)), op_own, __ATOMIC_RELEASE);
  }
  ++producer_;
  if (completion.solicited || completion.syndrome != m::Syndrome::none) solicited_end_ = producer_;
  return true;
}

}  // namespace strait::soft::nic
