// SPDX-License-Identifier: Apache-2.0
// Memory that one call makes and one call frees: of a device, managed, and of the host.
#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

CUresult allocate_host(void** out, std::size_t length_bytes, unsigned flags) noexcept {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    if (out == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult answer =
        driver.memory().allocate_shared(Sort::host, context.device, length_bytes, &context, flags, address);
    if (answer == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
    return answer;
  });
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return enter_with_context([&](Driver& driver, const Context& context) -> CUresult {
    accel::Bank& bank = driver.memory().bank(context.device);
    if (free_bytes != nullptr) *free_bytes = bank.free_bytes();
    if (total_bytes != nullptr) *total_bytes = bank.memory_bytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t length_bytes) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult answer =
        driver.memory().allocate(context.device, length_bytes, Sort::plain, &context, nullptr, address);
    if (answer == CUDA_SUCCESS) *out = address;
    return answer;
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    if (address == 0) return CUDA_SUCCESS;
    Known known;
    if (!driver.memory().find(address, known)) return CUDA_ERROR_INVALID_VALUE;
    // As there: free waits for the work of the context.
    for (const auto& step : driver.engine().last_of_group(&context)) driver.engine().wait(*step);
    // Of another process's memory, that of a pool is freed here and the rest closed.
    if (known.range->sort == Sort::imported)
      return known.range->pool == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.memory().free(address, {Sort::imported});
    const CUresult answer = driver.memory().free(address, {Sort::plain, Sort::pooled, Sort::managed});
    if (answer == CUDA_SUCCESS && known.range->pool != nullptr) {
      const std::lock_guard lock(driver.lock());
      known.range->pool->used_bytes -= known.range->length_bytes;
    }
    return answer;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* out, std::size_t length_bytes, unsigned int flags) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    if (out == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
      return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult answer =
        driver.memory().allocate_shared(Sort::managed, context.device, length_bytes, &context, flags, address);
    if (answer == CUDA_SUCCESS) *out = address;
    return answer;
  });
}

CUresult cuMemAllocHost_v2(void** out, std::size_t length_bytes) {
  return allocate_host(out, length_bytes, 0);
}

CUresult cuMemHostAlloc(void** out, std::size_t length_bytes, unsigned int flags) {
  return allocate_host(out, length_bytes, flags);
}

CUresult cuMemFreeHost(void* host) {
  return enter([&](Driver& driver) -> CUresult {
    if (host == nullptr) return CUDA_SUCCESS;
    return driver.memory().free(reinterpret_cast<std::uint64_t>(host), {Sort::host});
  });
}

CUresult cuMemHostRegister_v2(void* host, std::size_t length_bytes, unsigned int flags) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    constexpr unsigned kKnown = 0xf;  // portable, device map, IO memory, read only
    constexpr unsigned kIoMemory = 4;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & kIoMemory) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    return driver.memory().register_host(reinterpret_cast<std::uint64_t>(host), length_bytes, context.device, &context,
                                         flags);
  });
}

CUresult cuMemHostRegister(void* host, std::size_t length_bytes, unsigned int flags) {
  return cuMemHostRegister_v2(host, length_bytes, flags);
}

CUresult cuMemHostUnregister(void* host) {
  return enter([&](Driver& driver) -> CUresult {
    if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult answer = driver.memory().free(reinterpret_cast<std::uint64_t>(host), {Sort::registered});
    return answer == CUDA_SUCCESS ? answer : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* host, unsigned int flags) {
  return enter_with_context([&](Driver& driver, Context&) -> CUresult {
    Known known;
    const auto address = reinterpret_cast<std::uint64_t>(host);
    if (out == nullptr || flags != 0 || !driver.memory().find(address, known) ||
        (known.range->sort != Sort::host && known.range->sort != Sort::registered))
      return CUDA_ERROR_INVALID_VALUE;
    *out = address;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* host) {
  return enter([&](Driver& driver) -> CUresult {
    Known known;
    if (flags == nullptr || !driver.memory().find(reinterpret_cast<std::uint64_t>(host), known) ||
        known.range->sort != Sort::host)
      return CUDA_ERROR_INVALID_VALUE;
    *flags = known.range->host_flags | 2;  // always mapped: one address space
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
