// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/shared_receive.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "soft/nic/engine.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

SharedReceive::SharedReceive(std::uint32_t srqn, const SrqRequest& wanted, CompletionQueue* completions)
    : number(srqn),
      request(wanted),
      cq(completions),
      ring_{static_cast<const std::byte*>(wanted.ring), std::uint64_t{wanted.entries} << wanted.stride_log2},
      record_(static_cast<const std::uint32_t*>(wanted.record)) {}

std::uint32_t SharedReceive::waiting() const {
  if (broken) return 0;
  const std::uint32_t raw = __atomic_load_n(record_, __ATOMIC_ACQUIRE);
  const auto ahead = static_cast<std::uint16_t>(wire::be32::from_raw(raw).value() - taken_);
  return ahead <= request.entries ? ahead : 0;  // a record that jumped too far is not believed
}

std::optional<std::uint16_t> SharedReceive::take() {
  m::SrqNextSeg link;
  std::memcpy(&link, ring_.at(std::uint64_t{head_} << request.stride_log2), sizeof link);
  const auto next =
      request.cyclic ? static_cast<std::uint16_t>((head_ + 1u) & (request.entries - 1)) : link.next_wqe_index.value();
  if (next >= request.entries) {
    broken = true;
    return std::nullopt;
  }
  ++taken_;
  return std::exchange(head_, next);
}

DecodeFault SharedReceive::read(std::uint16_t entry, ReceiveWork& out) const {
  const std::uint64_t offset = (std::uint64_t{entry} << request.stride_log2) + sizeof(m::SrqNextSeg);
  return decode_receive_at(ring_, offset, (1u << request.stride_log2) - m::kSegmentBytes, out);
}

// ---- The engine's side ----------------------------------------------------------------------------------------------

Result<std::uint32_t> Engine::create_srq(const SrqRequest& request) {
  if (!std::has_single_bit(request.entries) || request.entries > m::kMaxBlocks) {
    return fail(Code::invalid, "a shared receive queue of {} entries: it takes a power of two up to {}",
                request.entries, m::kMaxBlocks);
  }
  if (request.stride_log2 < 5 || request.stride_log2 > 10)
    return fail(Code::invalid, "shared receive entries of 2^{} bytes: they have 2^5 to 2^10", request.stride_log2);
  const auto misaligned = [](const void* at, std::uintptr_t to) {
    return at == nullptr || reinterpret_cast<std::uintptr_t>(at) % to != 0;
  };
  if (misaligned(request.ring, 16) || misaligned(request.record, 4))
    return fail(Code::invalid, "a shared receive queue needs a ring aligned to 16 bytes and a record aligned to 4");
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  const auto pd = pds_.find(request.pd);
  if (pd == pds_.end()) return fail(Code::invalid, "no protection domain has the number {}", request.pd);
  CompletionQueue* cq = nullptr;
  if (request.xrcd != 0) {
    if (!xrcds_.contains(request.xrcd)) return fail(Code::invalid, "no XRC domain has the number {}", request.xrcd);
    const auto found = cqs_.find(request.cqn);
    if (found == cqs_.end()) return fail(Code::invalid, "no completion queue has the number {}", request.cqn);
    cq = found->second.get();
    ++cq->users;
    ++xrcds_[request.xrcd];
  }
  ++pd->second;
  const std::uint32_t number = next_srqn_++;
  srqs_.emplace(number, std::make_unique<SharedReceive>(number, request, cq));
  return number;
}

Status Engine::destroy_srq(std::uint32_t srqn) {
  const std::scoped_lock lock(mutex_);
  const auto found = srqs_.find(srqn);
  if (found == srqs_.end()) return fail(Code::invalid, "no shared receive queue has the number {}", srqn);
  if (found->second->users != 0)
    return fail(Code::again, "{} queue pairs still receive from shared queue {}", found->second->users, srqn);
  SharedReceive& srq = *found->second;
  --pds_[srq.request.pd];
  if (srq.cq != nullptr) {
    --srq.cq->users;
    --xrcds_[srq.request.xrcd];
    // A target that is in the middle of a message for it cannot go on.
    for (std::size_t i = 0; i < active_.size(); ++i) {
      QueuePair& qp = *active_[i];
      if (qp.srq != &srq) continue;
      if (qp.srq_entry) {
        qp.srq_entry.reset();
        fail_queue(qp);
      }
      qp.srq = nullptr;
    }
  }
  srqs_.erase(found);
  return {};
}

std::uint32_t Engine::alloc_xrcd() {
  const std::scoped_lock lock(mutex_);
  xrcds_.emplace(next_xrcd_, 0);
  return next_xrcd_++;
}

Status Engine::free_xrcd(std::uint32_t xrcd) {
  const std::scoped_lock lock(mutex_);
  const auto found = xrcds_.find(xrcd);
  if (found == xrcds_.end()) return fail(Code::invalid, "no XRC domain has the number {}", xrcd);
  if (found->second != 0) return fail(Code::again, "{} objects still belong to XRC domain {}", found->second, xrcd);
  xrcds_.erase(found);
  return {};
}

// An XRC target: the message that begins is for this queue. False: it is not of the target's domain.
bool Engine::aim_at(QueuePair& qp, std::uint32_t srqn) {
  if (qp.srq != nullptr && qp.srq->number == srqn) return true;
  const auto found = srqs_.find(srqn);
  if (found == srqs_.end() || found->second->request.xrcd == 0 || found->second->request.xrcd != qp.xrcd) return false;
  qp.srq = found->second.get();
  return true;
}

Status Engine::arm_srq(std::uint32_t srqn, std::uint32_t limit) {
  const std::scoped_lock lock(mutex_);
  const auto found = srqs_.find(srqn);
  if (found == srqs_.end()) return fail(Code::invalid, "no shared receive queue has the number {}", srqn);
  if (limit >= found->second->request.entries) {
    return fail(Code::invalid, "a limit of {}: shared receive queue {} has {} entries", limit, srqn,
                found->second->request.entries);
  }
  found->second->limit = limit;
  check_limit(*found->second);
  return {};
}

Result<std::uint32_t> Engine::srq_limit(std::uint32_t srqn) {
  const std::scoped_lock lock(mutex_);
  const auto found = srqs_.find(srqn);
  if (found == srqs_.end()) return fail(Code::invalid, "no shared receive queue has the number {}", srqn);
  return found->second->limit;
}

void Engine::check_limit(SharedReceive& srq) {
  if (srq.limit == 0 || srq.waiting() >= srq.limit) return;
  srq.limit = 0;  // once
  if (sink_ != nullptr) sink_->on_async({AsyncKind::srq_limit_reached, srq.number, srq.request.user});
}

// The receive that the message beginning now goes to, into qp.arriving_into. It stays the queue pair's until it
// completes.
DecodeFault Engine::take_receive(QueuePair& qp) {
  if (!qp.arriving_into) qp.arriving_into = std::make_unique<ReceiveWork>();
  if (qp.srq == nullptr)
    return decode_receive(qp.rq, qp.receives_taken & (qp.rq_entries - 1), qp.rq_stride_bytes, *qp.arriving_into);
  if (!take_entry(qp)) return {m::Syndrome::local_qp_operation, "the list of a shared receive queue is broken", 0};
  return qp.srq->read(*qp.srq_entry, *qp.arriving_into);
}

bool Engine::take_entry(QueuePair& qp) {
  if (qp.srq_entry) return true;  // of a message that was given up
  if (qp.srq->broken) return false;
  qp.srq_entry = qp.srq->take();
  if (qp.srq_entry) {
    check_limit(*qp.srq);
    return true;
  }
  if (sink_ != nullptr) sink_->on_async({AsyncKind::srq_error, qp.srq->number, qp.srq->request.user});
  return false;
}

}  // namespace strait::soft::nic
