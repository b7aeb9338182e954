// SPDX-License-Identifier: Apache-2.0
#include "rail/proxy/cqe.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace strait::rail::proxy {
namespace m = wire::mlx5;

CompletionWriter::CompletionWriter(const strait_nic_cq_request& request)
    : ring_(static_cast<std::byte*>(request.ring)),
      consumer_(static_cast<const std::uint32_t*>(request.record)),
      entries_(request.entries),
      stride_bytes_(request.cqe_bytes),
      collapsed_((request.flags & STRAIT_NIC_CQ_COLLAPSED) != 0),
      may_overrun_(collapsed_ || (request.flags & STRAIT_NIC_CQ_IGNORE_OVERRUN) != 0) {}

bool CompletionWriter::full() const {
  const std::uint32_t raw = __atomic_load_n(consumer_, __ATOMIC_ACQUIRE);
  const std::uint32_t taken = wire::be32::from_raw(raw).value();
  return ((static_cast<std::uint32_t>(written_) - taken) & m::kConsumerMask) >= entries_;
}

bool CompletionWriter::write(const Entry& entry) {
  if (overrun_ || (!may_overrun_ && full())) {
    overrun_ = true;
    return false;
  }
  m::Cqe cqe{};
  cqe.srqn_uidx = wire::be32{entry.user_index & m::kMaxQpn};
  cqe.imm_inval_pkey = wire::be32::from_raw(entry.imm_raw);
  cqe.byte_cnt = wire::be32{entry.byte_count};
  if (entry.syndrome != m::Syndrome::none)
    cqe.timestamp = wire::be64{std::uint64_t{entry.vendor} << 8 | static_cast<std::uint64_t>(entry.syndrome)};
  cqe.sop_qpn = wire::be32{static_cast<std::uint32_t>(entry.send_opcode) << 24 | (entry.qpn & m::kMaxQpn)};
  cqe.wqe_counter = wire::be16{entry.wqe_counter};

  const std::uint64_t slot = collapsed_ ? 0 : written_ & (entries_ - 1);
  std::byte* const at = ring_ + slot * stride_bytes_ + (stride_bytes_ - sizeof cqe);
  const unsigned round = collapsed_ ? 0u : static_cast<unsigned>(written_ >> std::countr_zero(entries_));
  cqe.op_own = m::make_op_own(entry.opcode, round & 1u, entry.solicited ? m::kCqeSolicited : std::uint8_t{0});
  // The last word has the counter and the ownership bit. It is stored after everything else and whole, since readers of
  // a collapsed queue look at any time; the words before it too, which they may read meanwhile.
  constexpr std::size_t kWords = sizeof cqe / sizeof(std::uint32_t);
  std::uint32_t words[kWords];
  std::memcpy(words, &cqe, sizeof cqe);
  auto* const to = reinterpret_cast<std::uint32_t*>(at);
  for (std::size_t i = 0; i + 1 < kWords; ++i) __atomic_store_n(to + i, words[i], __ATOMIC_RELAXED);
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer pairs a load only with a store to the same address, and most readers look at the byte.
  __atomic_store_n(reinterpret_cast<std::uint16_t*>(to + kWords - 1), cqe.wqe_counter.raw(), __ATOMIC_RELAXED);
  __atomic_store_n(reinterpret_cast<std::uint8_t*>(at) + sizeof cqe - 1, cqe.op_own, __ATOMIC_RELEASE);
#else
  __atomic_store_n(to + kWords - 1, words[kWords - 1], __ATOMIC_RELEASE);
#endif
  ++written_;
  return true;
}

}  // namespace strait::rail::proxy
