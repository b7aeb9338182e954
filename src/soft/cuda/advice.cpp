// SPDX-License-Identifier: Apache-2.0
// Advice about managed memory: taken, remembered and told, and without any effect here, since there is one copy of it.
// Everything else is refused: pageable memory (attribute 88 is 0), and device memory, as there.
#include <algorithm>
#include <cstring>

#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

constexpr int kCpu = -1;     // CU_DEVICE_CPU
constexpr int kNobody = -2;  // CU_DEVICE_INVALID

bool valid_location(Driver& driver, const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return driver.valid_device(location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return true;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return location.id >= 0;
    default: return false;
  }
}

int device_number(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_INVALID ? kNobody : kCpu;
}

CUmemLocation location_of(CUdevice device) {
  if (device == kCpu) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult managed_range(Driver& driver, CUdeviceptr address, std::size_t length_bytes, std::shared_ptr<Range>& out) {
  Known known;
  if (length_bytes == 0 || !driver.memory().find(address, known) || known.range->sort != Sort::managed ||
      length_bytes > known.range->end() - address)
    return CUDA_ERROR_INVALID_VALUE;
  out = known.range;
  return CUDA_SUCCESS;
}

CUresult advise(CUdeviceptr address, std::size_t length_bytes, CUmem_advise what, CUmemLocation location) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    const bool needs_location = what == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || what == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                                what == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    if (what < CU_MEM_ADVISE_SET_READ_MOSTLY || what > CU_MEM_ADVISE_UNSET_ACCESSED_BY) return CUDA_ERROR_INVALID_VALUE;
    if (needs_location && !valid_location(driver, location)) return CUDA_ERROR_INVALID_DEVICE;
    std::shared_ptr<Range> range;
    if (const CUresult failed = managed_range(driver, address, length_bytes, range); failed != CUDA_SUCCESS)
      return failed;
    const std::unique_lock lock(driver.memory().lock());
    Advice& advice = range->advice;
    switch (what) {
      case CU_MEM_ADVISE_SET_READ_MOSTLY: advice.read_mostly = true; break;
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY: advice.read_mostly = false; break;
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: advice.preferred = location; break;
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: advice.preferred = {CU_MEM_LOCATION_TYPE_INVALID, kNobody}; break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY:
      case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        std::erase(advice.accessed_by, device_number(location));
        if (what == CU_MEM_ADVISE_SET_ACCESSED_BY) advice.accessed_by.push_back(device_number(location));
        break;
    }
    return CUDA_SUCCESS;
  });
}

CUresult prefetch(CUdeviceptr address, std::size_t length_bytes, CUmemLocation location, CUstream stream) noexcept {
  return enter_with_context([&](Driver& driver, Context& context) -> CUresult {
    std::shared_ptr<StreamEngine::Queue> queue;
    if (const CUresult failed = driver.queue_of(stream, context, queue); failed != CUDA_SUCCESS) return failed;
    if (!valid_location(driver, location)) return CUDA_ERROR_INVALID_DEVICE;
    std::shared_ptr<Range> range;
    if (const CUresult failed = managed_range(driver, address, length_bytes, range); failed != CUDA_SUCCESS)
      return failed;
    const std::unique_lock lock(driver.memory().lock());
    range->advice.prefetched = location;
    return CUDA_SUCCESS;
  });
}

CUresult put_number(void* data, std::size_t data_bytes, int value) {
  if (data_bytes != sizeof value) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuMemAdvise(CUdeviceptr address, std::size_t length_bytes, CUmem_advise what, CUdevice device) {
  return advise(address, length_bytes, what, location_of(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr address, std::size_t length_bytes, CUmem_advise what, CUmemLocation location) {
  return advise(address, length_bytes, what, location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, std::size_t length_bytes, CUdevice device, CUstream stream) {
  return prefetch(address, length_bytes, location_of(device), stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, std::size_t length_bytes, CUmemLocation location,
                               unsigned int flags, CUstream stream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return prefetch(address, length_bytes, location, stream);
}

CUresult cuMemRangeGetAttribute(void* data, std::size_t data_bytes, CUmem_range_attribute attribute,
                                CUdeviceptr address, std::size_t length_bytes) {
  return enter([&](Driver& driver) -> CUresult {
    std::shared_ptr<Range> range;
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult failed = managed_range(driver, address, length_bytes, range); failed != CUDA_SUCCESS)
      return failed;
    const std::shared_lock lock(driver.memory().lock());
    const Advice& advice = range->advice;
    switch (attribute) {
      case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: return put_number(data, data_bytes, advice.read_mostly ? 1 : 0);
      case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        return put_number(data, data_bytes, device_number(advice.preferred));
      case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        return put_number(data, data_bytes, device_number(advice.prefetched));
      case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
        if (data_bytes == 0 || data_bytes % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
        std::vector<int> all(data_bytes / sizeof(int), kNobody);
        std::copy_n(advice.accessed_by.begin(), std::min(all.size(), advice.accessed_by.size()), all.begin());
        std::memcpy(data, all.data(), data_bytes);
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
