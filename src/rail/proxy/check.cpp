// SPDX-License-Identifier: Apache-2.0
#include "rail/proxy/check.hpp"

#include <bit>
#include <cstdint>

#include "strait/wire/mlx5.hpp"

namespace strait::rail::proxy {
namespace m = wire::mlx5;

namespace {

bool aligned(const void* at, std::uintptr_t to) {
  return at != nullptr && reinterpret_cast<std::uintptr_t>(at) % to == 0;
}

}  // namespace

Status check(const strait_nic_cq_request& request) {
  if (!std::has_single_bit(request.entries) || request.entries > 1u << 22)
    return fail(Code::invalid, "a completion queue of {} entries: it takes a power of two up to 2^22", request.entries);
  if (request.cqe_bytes != 64 && request.cqe_bytes != 128)
    return fail(Code::invalid, "completion entries of {} bytes: they have 64 or 128", request.cqe_bytes);
  if (!aligned(request.ring, 64) || !aligned(request.record, 8))
    return fail(Code::invalid, "a completion queue needs a ring aligned to 64 bytes and a record aligned to 8");
  return {};
}

Status check(const strait_nic_qp_request& request) {
  if (!std::has_single_bit(request.sq_blocks) || request.sq_blocks > m::kMaxBlocks)
    return fail(Code::invalid, "a send queue of {} blocks: it takes a power of two up to {}", request.sq_blocks,
                m::kMaxBlocks);
  if (!aligned(request.sq, 64) || !aligned(request.record, 8))
    return fail(Code::invalid, "a queue pair needs a send ring aligned to 64 bytes and a record aligned to 8");
  if (request.rq_entries == 0) return {};
  if (!std::has_single_bit(request.rq_entries) || request.rq_entries > m::kMaxBlocks)
    return fail(Code::invalid, "a receive queue of {} entries: it takes a power of two up to {}", request.rq_entries,
                m::kMaxBlocks);
  if (request.rq_stride_log2 < 4 || request.rq_stride_log2 > 10 || !aligned(request.rq, 16))
    return fail(Code::invalid, "a receive queue needs entries of 2^4 to 2^10 bytes and a ring aligned to 16");
  return {};
}

}  // namespace strait::rail::proxy
