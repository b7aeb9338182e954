// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory: pools, and allocations that come and go in the order of a stream.
#include <algorithm>
#include <cstring>

#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

CUmemoryPool handle_of_pool(Pool* pool) {
  return reinterpret_cast<CUmemoryPool>(pool);
}

// body(Pool&), under the lock
template <class Body>
CUresult with_pool(CUmemoryPool handle, Body body) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    const std::lock_guard lock(driver.lock());
    Pool* const pool = driver.pools().find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*pool);
  });
}

CUresult allocate_from(Driver& driver, Pool& pool, std::size_t length_bytes, CUdeviceptr* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (pool.imported) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::lock_guard lock(driver.lock());
    if (pool.props.maxSize != 0 && length_bytes > pool.props.maxSize - std::min(pool.props.maxSize, pool.used_bytes))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::uint64_t address = 0;
  const CUresult answer = driver.memory().allocate(pool.device, length_bytes, Sort::pooled, nullptr, &pool, address);
  if (answer != CUDA_SUCCESS) return answer;
  const std::lock_guard lock(driver.lock());
  pool.used_bytes += length_bytes;
  pool.used_high = std::max(pool.used_high, pool.used_bytes);
  *out = address;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *out = handle_of_pool(driver.device(device).default_pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(driver.lock());
    *out = handle_of_pool(driver.device(device).pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  return enter([&](Driver& driver) -> CUresult {
    if (!driver.valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(driver.lock());
    Pool* const pool = driver.pools().find(handle);
    if (pool == nullptr || pool->device != device || pool->imported) return CUDA_ERROR_INVALID_VALUE;
    driver.device(device).pool = pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr || props == nullptr || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        (props->handleTypes & ~static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!driver.valid_device(props->location.id)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    Pool* const pool = driver.pools().add();
    pool->device = props->location.id;
    pool->id = driver.next_number();
    pool->props = *props;
    *out = handle_of_pool(pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return enter([&](Driver& driver) -> CUresult {
    const std::lock_guard lock(driver.lock());
    Pool* const pool = driver.pools().find(handle);
    if (pool == nullptr || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
    Device& device = driver.device(pool->device);
    if (device.pool == pool) device.pool = device.default_pool;
    driver.pools().remove(pool);  // its allocations live on, as there
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t) {
  return with_pool(handle, [](const Pool&) { return CUDA_SUCCESS; });  // nothing is kept beyond what is in use
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, [&](Pool& pool) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t number = 0;
    switch (attribute) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
        int flag = 0;
        std::memcpy(&flag, value, sizeof flag);
        pool.reuse[attribute - 1] = flag != 0 ? 1 : 0;
        return CUDA_SUCCESS;
      }
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        std::memcpy(&pool.release_threshold, value, sizeof pool.release_threshold);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        std::memcpy(&number, value, sizeof number);
        if (number != 0) return CUDA_ERROR_INVALID_VALUE;  // can only be reset
        pool.used_high = pool.used_bytes;
        return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, [&](const Pool& pool) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t number = 0;
    switch (attribute) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
        const int flag = static_cast<int>(pool.reuse[attribute - 1]);
        std::memcpy(value, &flag, sizeof flag);
        return CUDA_SUCCESS;
      }
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: number = pool.release_threshold; break;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: number = pool.used_bytes; break;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH: number = pool.used_high; break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    std::memcpy(value, &number, sizeof number);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access, std::size_t count) {
  const int devices = static_cast<int>(Driver::get().devices().size());
  return with_pool(handle, [&](Pool& pool) -> CUresult {
    if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0 ||
          access[i].location.id >= devices)
        return CUDA_ERROR_INVALID_VALUE;
      const bool none = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
      if (none && access[i].location.id == pool.device) return CUDA_ERROR_INVALID_VALUE;  // its own device has it
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        pool.peers.erase(access[i].location.id);
      else
        pool.peers.insert(access[i].location.id);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return with_pool(handle, [&](const Pool& pool) -> CUresult {
    if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    *flags = location->id == pool.device || pool.peers.contains(location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                              : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t length_bytes, CUmemoryPool handle, CUstream stream) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    std::shared_ptr<StreamEngine::Queue> queue;
    if (const CUresult failed = driver.queue_of(stream, context, queue); failed != CUDA_SUCCESS) return failed;
    Pool* pool = nullptr;
    {
      const std::lock_guard lock(driver.lock());
      pool = driver.pools().find(handle);
    }
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : allocate_from(driver, *pool, length_bytes, out);
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* out, std::size_t length_bytes, CUstream stream) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    std::shared_ptr<StreamEngine::Queue> queue;
    Context* of_stream = nullptr;
    if (const CUresult failed = driver.queue_of(stream, context, queue, &of_stream); failed != CUDA_SUCCESS)
      return failed;
    Pool* pool = nullptr;
    {
      const std::lock_guard lock(driver.lock());
      pool = driver.device(of_stream->device).pool;
    }
    return allocate_from(driver, *pool, length_bytes, out);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    std::shared_ptr<StreamEngine::Queue> queue;
    if (const CUresult failed = driver.queue_of(stream, context, queue); failed != CUDA_SUCCESS) return failed;
    if (address == 0) return CUDA_SUCCESS;
    Known known;
    if (!driver.memory().find(address, known) || known.range->base != address ||
        (known.range->sort != Sort::pooled && !(known.range->sort == Sort::imported && known.range->pool != nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Range> going;
    if (const CUresult failed = driver.memory().begin_free(address, {Sort::pooled, Sort::imported}, going);
        failed != CUDA_SUCCESS || !going)
      return failed;
    const auto step = driver.engine().submit(*queue, [&driver, going] {
      driver.memory().finish_free(going);
      if (going->sort == Sort::pooled) {
        const std::lock_guard lock(driver.lock());
        going->pool->used_bytes -= going->length_bytes;
      }
      return true;
    });
    return step ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
