// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include <algorithm>

#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

CUresult make_stream(CUstream* out, unsigned flags, int priority) noexcept {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const auto kind = flags == 0 ? StreamEngine::Kind::blocking : StreamEngine::Kind::independent;
    auto queue = driver.engine().make_queue(kind, &context);
    const std::lock_guard lock(driver.lock());
    Stream* const stream = driver.streams().add();
    stream->context = &context;
    stream->flags = flags;
    stream->priority = std::clamp(priority, -5, 0);
    stream->id = driver.next_number();
    stream->queue = std::move(queue);
    *out = reinterpret_cast<CUstream>(stream);
    return CUDA_SUCCESS;
  });
}

// body(Driver&, Queue&, Context& of the stream). Default streams need a current context, others do not.
template <class Body>
CUresult with_queue(CUstream stream, Body body) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    Context none;
    Context* context = &none;
    if (reinterpret_cast<std::uintptr_t>(stream) <= 2) {
      if (const CUresult failed = driver.current(context); failed != CUDA_SUCCESS) return failed;
    }
    std::shared_ptr<StreamEngine::Queue> queue;
    if (const CUresult failed = driver.queue_of(stream, *context, queue, &context); failed != CUDA_SUCCESS)
      return failed;
    return body(driver, *queue, *context);
  });
}

// body(const Stream&, under the lock); defaults answer as a stream with these flags.
template <class Body>
CUresult with_stream(CUstream handle, Body body) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    Stream of_context;
    if (reinterpret_cast<std::uintptr_t>(handle) <= 2) {
      if (const CUresult failed = driver.current(of_context.context); failed != CUDA_SUCCESS) return failed;
      return body(of_context);
    }
    const std::lock_guard lock(driver.lock());
    const Stream* const stream = driver.streams().find(handle);
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*stream);
  });
}

CUresult step_of(Driver& driver, CUevent handle, std::shared_ptr<Step>& out) {
  const std::lock_guard lock(driver.lock());
  const Event* const event = driver.events().find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  out = event->recorded;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
  return make_stream(out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  return make_stream(out, flags, priority);
}

CUresult cuStreamQuery(CUstream stream) {
  return with_queue(stream, [](Driver& driver, StreamEngine::Queue& queue, Context&) -> CUresult {
    const auto step = driver.engine().last(queue);
    return step && !step->finished() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return with_queue(stream, [](Driver& driver, StreamEngine::Queue& queue, Context&) -> CUresult {
    if (const auto step = driver.engine().last(queue)) driver.engine().wait(*step);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return enter([&](Driver& driver) -> CUresult {
    const std::lock_guard lock(driver.lock());
    Stream* const stream = driver.streams().find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    stream->queue.reset();  // what is queued is still done
    driver.streams().remove(stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy(CUstream handle) {
  return cuStreamDestroy_v2(handle);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return with_queue(stream, [&](Driver& driver, StreamEngine::Queue& queue, Context&) -> CUresult {
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Step> awaited;
    if (const CUresult failed = step_of(driver, event, awaited); failed != CUDA_SUCCESS) return failed;
    if (!awaited || awaited->finished()) return CUDA_SUCCESS;
    const auto step = driver.engine().submit(queue, [awaited] { return awaited->finished(); });
    return step ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return with_stream(handle, [&](const Stream& stream) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return with_stream(handle, [&](const Stream& stream) -> CUresult {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream.priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return with_stream(handle, [&](const Stream& stream) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = reinterpret_cast<CUcontext>(stream.context);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return with_stream(handle, [&](const Stream& stream) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = stream.context->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return with_stream(handle, [&](const Stream& stream) -> CUresult {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = stream.id;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    if (out == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    const unsigned both = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & both) != both) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    Event* const event = driver.events().add();
    event->context = &context;
    event->flags = flags;
    *out = reinterpret_cast<CUevent>(event);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
  return with_queue(stream, [&](Driver& driver, StreamEngine::Queue& queue, const Context& context) -> CUresult {
    {
      const std::lock_guard lock(driver.lock());
      const Event* const event = driver.events().find(handle);
      if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      if (event->context != &context) return CUDA_ERROR_INVALID_HANDLE;  // stream and event of one context, as there
    }
    auto step = driver.engine().submit(queue, [] { return true; });
    if (!step) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard lock(driver.lock());
    Event* const event = driver.events().find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    event->recorded = std::move(*step);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return cuEventRecord(handle, stream);
}

CUresult cuEventQuery(CUevent handle) {
  return enter([&](Driver& driver) -> CUresult {
    std::shared_ptr<Step> step;
    if (const CUresult failed = step_of(driver, handle, step); failed != CUDA_SUCCESS) return failed;
    return step && !step->finished() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return enter([&](Driver& driver) -> CUresult {
    std::shared_ptr<Step> step;
    if (const CUresult failed = step_of(driver, handle, step); failed != CUDA_SUCCESS) return failed;
    if (step) driver.engine().wait(*step);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return enter([&](Driver& driver) -> CUresult {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Step> first;
    std::shared_ptr<Step> last;
    {
      const std::lock_guard lock(driver.lock());
      for (const auto& [handle, step] : {std::pair{begin, &first}, std::pair{end, &last}}) {
        const Event* const event = driver.events().find(handle);
        if (event == nullptr || !event->recorded || (event->flags & CU_EVENT_DISABLE_TIMING) != 0)
          return CUDA_ERROR_INVALID_HANDLE;
        *step = event->recorded;
      }
    }
    if (!first->finished() || !last->finished()) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(last->finished_ns() - first->finished_ns()) / 1e6F;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, begin, end);
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return enter([&](Driver& driver) -> CUresult {
    const std::lock_guard lock(driver.lock());
    Event* const event = driver.events().find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    event->recorded.reset();
    driver.events().remove(event);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent handle) {
  return cuEventDestroy_v2(handle);
}

}  // extern "C"

}  // namespace strait::soft::cuda
