// SPDX-License-Identifier: Apache-2.0
// cuMemcpyBatchAsync: many copies as one piece of work of a stream, in no order among themselves. Who gives a batch
// says of each source when it may be read.
#include <algorithm>
#include <cstring>

#include "soft/cuda/copy.hpp"
#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

struct Batch {
  const CUdeviceptr* to;
  const CUdeviceptr* from;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemcpyAttributes* attributes;
  const std::size_t* first;  // copies from here on have the attributes of this place
  std::size_t sorts;
};

struct Move {
  Side target, source;
};

// Every copy has attributes, and valid ones.
bool valid(const Batch& batch) {
  if (batch.to == nullptr || batch.from == nullptr || batch.sizes == nullptr || batch.attributes == nullptr ||
      batch.first == nullptr)
    return false;
  if (batch.count == 0 || batch.sorts == 0 || batch.sorts > batch.count || batch.first[0] != 0) return false;
  for (std::size_t i = 0; i < batch.sorts; ++i) {
    const CUmemcpyAttributes& each = batch.attributes[i];
    if (i != 0 && batch.first[i] <= batch.first[i - 1]) return false;
    if (each.srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
        each.srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY || each.flags > CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)
      return false;
  }
  return batch.first[batch.sorts - 1] < batch.count;
}

// The source is not looked at again after the call.
void read_now(Side& source, std::size_t length_bytes) {
  auto staged = std::make_shared<std::vector<std::byte>>(length_bytes);
  move_bytes({{staged->data(), length_bytes}}, source.spans);
  source.spans = {{staged->data(), length_bytes}};
  source.held.push_back(std::move(staged));
}

// `failed_at`: which copy cannot be done; SIZE_MAX where it is none of them. All of the batch is looked at before any
// of it is begun.
CUresult copy_batch(const Batch& batch, CUstream stream, std::size_t& failed_at) noexcept {
  failed_at = SIZE_MAX;
  return enter_with_context([&](Driver& driver, Context& current) -> CUresult {
    if (reinterpret_cast<std::uintptr_t>(stream) <= 1 || !valid(batch)) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<StreamEngine::Queue> queue;
    if (const CUresult failed = driver.queue_of(stream, current, queue); failed != CUDA_SUCCESS) return failed;
    auto moves = std::make_shared<std::vector<Move>>(batch.count);
    for (std::size_t i = 0; i < batch.count; ++i) {
      if (batch.sizes[i] == 0) continue;
      Move& move = (*moves)[i];
      CUresult failed = driver.memory().side(batch.to[i], batch.sizes[i], true, move.target);
      if (failed == CUDA_SUCCESS) failed = driver.memory().side(batch.from[i], batch.sizes[i], false, move.source);
      if (failed != CUDA_SUCCESS) {
        failed_at = i;
        return failed;
      }
    }
    bool until_done = false;
    std::size_t sort = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
      if (sort + 1 < batch.sorts && i >= batch.first[sort + 1]) ++sort;
      Move& move = (*moves)[i];
      until_done = until_done || move.target.pageable;  // as the single copies
      if (batch.attributes[sort].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && batch.sizes[i] != 0)
        read_now(move.source, batch.sizes[i]);
    }
    const auto step = driver.engine().submit(*queue, [moves] {
      for (const Move& move : *moves) move_bytes(move.target.spans, move.source.spans);
      return true;
    });
    if (!step) return CUDA_ERROR_OUT_OF_MEMORY;
    if (until_done) driver.engine().wait(**step);
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                            CUmemcpyAttributes* attributes, std::size_t* first, std::size_t sorts,
                            std::size_t* failed_at, CUstream stream) {
  std::size_t index = SIZE_MAX;
  const CUresult answer = copy_batch({to, from, sizes, count, attributes, first, sorts}, stream, index);
  if (failed_at != nullptr && answer != CUDA_SUCCESS) *failed_at = index;
  return answer;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                               CUmemcpyAttributes* attributes, std::size_t* first, std::size_t sorts, CUstream stream) {
  std::size_t index = SIZE_MAX;
  return copy_batch({to, from, sizes, count, attributes, first, sorts}, stream, index);
}

}  // extern "C"

}  // namespace strait::soft::cuda
