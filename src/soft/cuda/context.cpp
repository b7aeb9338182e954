// SPDX-License-Identifier: Apache-2.0
// Contexts: primary ones, others, and the stack that every thread has of them.
#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

CUcontext handle_of(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

bool valid_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 &&
         (schedule == 0 || schedule == 1 || schedule == 2 || schedule == 4);
}

CUresult create_context(CUcontext* out, unsigned flags, CUdevice device, unsigned api_version) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Context* context = nullptr;
    {
      const std::lock_guard lock(driver.lock());
      context = driver.contexts().add();
      driver.start_context(*context, device, flags, api_version);
    }
    Driver::stack().push_back(context);
    *out = handle_of(context);
    return CUDA_SUCCESS;
  });
}

// body(Driver&, Context& primary)
template <class Body>
CUresult with_primary(CUdevice device, Body body) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    if (!driver.valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return body(driver, *driver.device(device).primary);
  });
}

CUresult find_context(Driver& driver, CUcontext handle, Context*& out) {
  const std::lock_guard lock(driver.lock());
  out = driver.contexts().find(handle);
  if (out == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return out->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult synchronize(Driver& driver, const Context& context) {
  for (const auto& step : driver.engine().last_of_group(&context)) driver.engine().wait(*step);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  return with_primary(device, [&](Driver& driver, Context& primary) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    if (primary.retained++ == 0) driver.start_context(primary, device, primary.flags, 3020);
    *out = handle_of(&primary);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return with_primary(device, [&](Driver& driver, Context& primary) -> CUresult {
    {
      const std::lock_guard lock(driver.lock());
      if (primary.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
      if (--primary.retained != 0) return CUDA_SUCCESS;
    }
    driver.end_context(primary);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return with_primary(device, [&](Driver& driver, Context& primary) -> CUresult {
    {
      const std::lock_guard lock(driver.lock());
      primary.flags = 0;
      if (!primary.alive) return CUDA_SUCCESS;
    }
    driver.end_context(primary);
    const std::lock_guard lock(driver.lock());
    if (primary.retained != 0) driver.start_context(primary, device, 0, 3020);  // who retained it still has it
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return with_primary(device, [&](Driver& driver, Context& primary) -> CUresult {
    if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    primary.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return with_primary(device, [&](Driver& driver, const Context& primary) -> CUresult {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    *flags = primary.flags;
    *active = primary.alive ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
  return create_context(out, flags, device, 3010);
}

CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  return create_context(out, flags, device, 3020);
}

CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int count, unsigned int flags, CUdevice device) {
  if (count != 0) return CUDA_ERROR_NOT_SUPPORTED;  // needs MPS, as there
  return create_context(out, flags, device, 3020);
}

CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned int flags, CUdevice device) {
  if (params != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return create_context(out, flags, device, 3020);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  return enter([&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    if (const CUresult failed = find_context(driver, handle, context); failed != CUDA_SUCCESS) return failed;
    if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    auto& stack = Driver::stack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    driver.end_context(*context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDestroy(CUcontext handle) {
  return cuCtxDestroy_v2(handle);
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return enter([&](Driver& driver) -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    if (const CUresult failed = find_context(driver, handle, context); failed != CUDA_SUCCESS) return failed;
    Driver::stack().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent(CUcontext handle) {
  return cuCtxPushCurrent_v2(handle);
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  return enter([&](Driver&) -> CUresult {
    auto& stack = Driver::stack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out != nullptr) *out = handle_of(stack.back());
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent(CUcontext* out) {
  return cuCtxPopCurrent_v2(out);
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  return enter([&](Driver& driver) -> CUresult {
    auto& stack = Driver::stack();
    Context* context = nullptr;
    if (handle != nullptr) {
      if (const CUresult failed = find_context(driver, handle, context); failed != CUDA_SUCCESS) return failed;
    }
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  return enter([&](Driver&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& stack = Driver::stack();
    *out = stack.empty() ? nullptr : handle_of(stack.back());
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* out) {
  return enter_with_context([&](Driver&, const Context& context) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = context.device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext handle) {
  if (handle == nullptr) return cuCtxGetDevice(out);
  return enter([&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    if (const CUresult failed = find_context(driver, handle, context); failed != CUDA_SUCCESS) return failed;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = context->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    context.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return enter_with_context([&](Driver& driver, const Context& context) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return enter([&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    const CUresult failed = handle == nullptr ? driver.current(context) : find_context(driver, handle, context);
    if (failed != CUDA_SUCCESS) return failed;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  return enter([&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    const CUresult failed = handle == nullptr ? driver.current(context) : find_context(driver, handle, context);
    if (failed != CUDA_SUCCESS) return failed;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return enter_with_context([](Driver& driver, const Context& context) { return synchronize(driver, context); });
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  if (handle == nullptr) return cuCtxSynchronize();
  return enter([&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    if (const CUresult failed = find_context(driver, handle, context); failed != CUDA_SUCCESS) return failed;
    return synchronize(driver, *context);
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    Context* peer = nullptr;
    if (const CUresult failed = find_context(driver, handle, peer); failed != CUDA_SUCCESS) return failed;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == context.device) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(driver.lock());
    return context.peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    Context* peer = nullptr;
    if (const CUresult failed = find_context(driver, handle, peer); failed != CUDA_SUCCESS) return failed;
    const std::lock_guard lock(driver.lock());
    return context.peers.erase(peer) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enter_with_context([&](Driver&, const Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
