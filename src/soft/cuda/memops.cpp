// SPDX-License-Identifier: Apache-2.0
// Values in memory as part of a stream's order, and making what a NIC wrote visible.
#include <atomic>

#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

template <class Word>
bool value_arrived(std::byte* bytes, Word value, unsigned flags) {
  const Word seen = std::atomic_ref<Word>(*reinterpret_cast<Word*>(bytes)).load(std::memory_order_acquire);
  switch (flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ: {  // by the sign of the difference, so that counters may wrap around
      using Signed = std::make_signed_t<Word>;
      return static_cast<Signed>(static_cast<Word>(seen - value)) >= 0;
    }
    case CU_STREAM_WAIT_VALUE_EQ: return seen == value;
    case CU_STREAM_WAIT_VALUE_AND: return (seen & value) != 0;
    default: return static_cast<Word>(~(seen | value)) != 0;
  }
}

// The word that the device sees; host memory must be known to the driver.
CUresult word_at(Driver& driver, CUdeviceptr address, std::size_t bytes, std::shared_ptr<Side>& out) {
  if (address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  out = std::make_shared<Side>();
  if (const CUresult failed = driver.memory().side(address, bytes, true, *out); failed != CUDA_SUCCESS) return failed;
  return out->pageable ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

template <class Word>
CUresult wait_value(Driver& driver, StreamEngine::Queue& queue, CUdeviceptr address, Word value, unsigned flags) {
  if ((flags & ~(3u | CU_STREAM_WAIT_VALUE_FLUSH)) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Side> word;
  if (const CUresult failed = word_at(driver, address, sizeof(Word), word); failed != CUDA_SUCCESS) return failed;
  const auto step = driver.engine().submit(
      queue, [word, value, flags] { return value_arrived(word->spans.front().bytes, value, flags); });
  return step ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

template <class Word>
CUresult write_value(Driver& driver, StreamEngine::Queue& queue, CUdeviceptr address, Word value, unsigned flags) {
  if ((flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Side> word;
  if (const CUresult failed = word_at(driver, address, sizeof(Word), word); failed != CUDA_SUCCESS) return failed;
  const auto step = driver.engine().submit(queue, [word, value] {
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(word->spans.front().bytes)).store(value, std::memory_order_release);
    return true;
  });
  return step ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// body(Driver&, Queue&)
template <class Body>
CUresult in_stream(CUstream stream, Body body) noexcept {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    std::shared_ptr<StreamEngine::Queue> queue;
    if (const CUresult failed = driver.queue_of(stream, context, queue); failed != CUDA_SUCCESS) return failed;
    return body(driver, *queue);
  });
}

CUresult one_of_batch(Driver& driver, StreamEngine::Queue& queue, const CUstreamBatchMemOpParams& one) {
  switch (one.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return wait_value(driver, queue, one.waitValue.address, one.waitValue.value, one.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return wait_value(driver, queue, one.waitValue.address, one.waitValue.value64, one.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return write_value(driver, queue, one.writeValue.address, one.writeValue.value, one.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return write_value(driver, queue, one.writeValue.address, one.writeValue.value64, one.writeValue.flags);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;  // attribute 98 is 0
    case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;                          // steps are in order anyway
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return in_stream(stream, [&](Driver& driver, StreamEngine::Queue& queue) {
    return wait_value(driver, queue, address, value, flags);
  });
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return in_stream(stream, [&](Driver& driver, StreamEngine::Queue& queue) {
    return wait_value(driver, queue, address, value, flags);
  });
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return in_stream(stream, [&](Driver& driver, StreamEngine::Queue& queue) {
    return write_value(driver, queue, address, value, flags);
  });
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return in_stream(stream, [&](Driver& driver, StreamEngine::Queue& queue) {
    return write_value(driver, queue, address, value, flags);
  });
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* all, unsigned int flags) {
  return in_stream(stream, [&](Driver& driver, StreamEngine::Queue& queue) -> CUresult {
    constexpr unsigned kMostOperations = 256;
    if (all == nullptr || count == 0 || count > kMostOperations || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
      if (const CUresult failed = one_of_batch(driver, queue, all[i]); failed != CUDA_SUCCESS) return failed;
    }
    return CUDA_SUCCESS;
  });
}

// The first form of these was switched off by default, long ago.
CUresult cuStreamWaitValue32(CUstream, CUdeviceptr, cuuint32_t, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuStreamWaitValue64(CUstream, CUdeviceptr, cuuint64_t, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuStreamWriteValue32(CUstream, CUdeviceptr, cuuint32_t, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuStreamWriteValue64(CUstream, CUdeviceptr, cuuint64_t, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuStreamBatchMemOp(CUstream, unsigned int, CUstreamBatchMemOpParams*, unsigned int) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope) {
  return enter_with_context([&](Driver&, Context&) -> CUresult {
    if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
        (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER && scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
      return CUDA_ERROR_INVALID_VALUE;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
