// SPDX-License-Identifier: Apache-2.0
// Copies and fills. One address space: which way the bytes go is told by the addresses, not by the call.
//
// What the calls promise about waiting is kept to the letter. "Asynchronous" copies read pageable memory before they
// return, and have written it when they return; "synchronous" copies from device to device, and fills, may return
// before they are done, unless sync-memops was asked for.
#include "soft/cuda/copy.hpp"

#include <algorithm>
#include <cstring>

#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {

void move_bytes(const std::vector<Side::Span>& to, const std::vector<Side::Span>& from) {
  std::size_t t = 0;
  std::size_t f = 0;
  std::uint64_t to_done = 0;
  std::uint64_t from_done = 0;
  while (t < to.size() && f < from.size()) {
    const std::uint64_t bytes = std::min(to[t].length_bytes - to_done, from[f].length_bytes - from_done);
    std::memmove(to[t].bytes + to_done, from[f].bytes + from_done, bytes);
    to_done += bytes;
    from_done += bytes;
    if (to_done == to[t].length_bytes) ++t, to_done = 0;
    if (from_done == from[f].length_bytes) ++f, from_done = 0;
  }
}

namespace {

enum class Wait { when_needed, always };

CUresult copy_bytes(CUdeviceptr to, CUdeviceptr from, std::size_t length_bytes, CUstream stream, Wait wait) noexcept {
  return enter_with_context([&](Driver& driver, Context& current) -> CUresult {
    std::shared_ptr<StreamEngine::Queue> queue;
    Context* context = nullptr;
    if (const CUresult failed = driver.queue_of(stream, current, queue, &context); failed != CUDA_SUCCESS)
      return failed;
    if (length_bytes == 0) return CUDA_SUCCESS;
    auto target = std::make_shared<Side>();
    auto source = std::make_shared<Side>();
    if (const CUresult failed = driver.memory().side(to, length_bytes, true, *target); failed != CUDA_SUCCESS)
      return failed;
    if (const CUresult failed = driver.memory().side(from, length_bytes, false, *source); failed != CUDA_SUCCESS)
      return failed;
    bool until_done = target->pageable;
    if (wait == Wait::always)
      until_done = !target->device || !source->device || target->sync_memops || source->sync_memops ||
                   (context->flags & CU_CTX_SYNC_MEMOPS) != 0;
    if (source->pageable && !until_done) {
      const std::byte* const bytes = source->spans.front().bytes;
      auto staged = std::make_shared<std::vector<std::byte>>(bytes, bytes + length_bytes);
      source->spans = {{staged->data(), length_bytes}};
      source->held.push_back(std::move(staged));
    }
    const auto step = driver.engine().submit(*queue, [target, source] {
      move_bytes(target->spans, source->spans);
      return true;
    });
    if (!step) return CUDA_ERROR_OUT_OF_MEMORY;
    if (until_done) driver.engine().wait(**step);
    return CUDA_SUCCESS;
  });
}

template <class Word>
CUresult fill_words(CUdeviceptr to, Word word, std::size_t count, CUstream stream) noexcept {
  return enter_with_context([&](Driver& driver, Context& current) -> CUresult {
    std::shared_ptr<StreamEngine::Queue> queue;
    Context* context = nullptr;
    if (const CUresult failed = driver.queue_of(stream, current, queue, &context); failed != CUDA_SUCCESS)
      return failed;
    if (to % sizeof(Word) != 0 || count > UINT64_MAX / sizeof(Word)) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    auto target = std::make_shared<Side>();
    if (const CUresult failed = driver.memory().side(to, count * sizeof(Word), true, *target); failed != CUDA_SUCCESS)
      return failed;
    if (target->pageable) return CUDA_ERROR_INVALID_VALUE;
    const auto step = driver.engine().submit(*queue, [target, word] {
      for (const Side::Span& span : target->spans) {  // pieces are whole pages, and so whole words
        for (std::uint64_t at = 0; at < span.length_bytes; at += sizeof word)
          std::memcpy(span.bytes + at, &word, sizeof word);
      }
      return true;
    });
    if (!step) return CUDA_ERROR_OUT_OF_MEMORY;
    const bool sync = target->sync_memops || (context->flags & CU_CTX_SYNC_MEMOPS) != 0;
    if (stream == nullptr && sync) driver.engine().wait(**step);
    return CUDA_SUCCESS;
  });
}

CUdeviceptr number(const void* host) {
  return reinterpret_cast<std::uint64_t>(host);
}

bool both_contexts_live(CUcontext first, CUcontext second) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.lock());
  for (const CUcontext handle : {first, second}) {
    const Context* const context = driver.contexts().find(handle);
    if (context == nullptr || !context->alive) return false;
  }
  return true;
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t length_bytes) {
  return copy_bytes(to, from, length_bytes, nullptr, Wait::always);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t length_bytes) {
  return copy_bytes(to, number(from), length_bytes, nullptr, Wait::always);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t length_bytes) {
  return copy_bytes(number(to), from, length_bytes, nullptr, Wait::always);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t length_bytes) {
  return copy_bytes(to, from, length_bytes, nullptr, Wait::always);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      std::size_t length_bytes) {
  return enter([&](Driver&) -> CUresult {
    if (!both_contexts_live(to_context, from_context)) return CUDA_ERROR_INVALID_CONTEXT;
    return copy_bytes(to, from, length_bytes, nullptr, Wait::always);
  });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t length_bytes, CUstream stream) {
  return copy_bytes(to, from, length_bytes, stream, Wait::when_needed);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t length_bytes, CUstream stream) {
  return copy_bytes(to, number(from), length_bytes, stream, Wait::when_needed);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t length_bytes, CUstream stream) {
  return copy_bytes(number(to), from, length_bytes, stream, Wait::when_needed);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t length_bytes, CUstream stream) {
  return copy_bytes(to, from, length_bytes, stream, Wait::when_needed);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t length_bytes, CUstream stream) {
  return enter([&](Driver&) -> CUresult {
    if (!both_contexts_live(to_context, from_context)) return CUDA_ERROR_INVALID_CONTEXT;
    return copy_bytes(to, from, length_bytes, stream, Wait::when_needed);
  });
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return fill_words(to, value, count, nullptr);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return fill_words(to, value, count, nullptr);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, std::size_t count) {
  return fill_words(to, value, count, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill_words(to, value, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return fill_words(to, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream) {
  return fill_words(to, value, count, stream);
}

}  // extern "C"

}  // namespace strait::soft::cuda
