// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: handles of device memory, reserved addresses, and descriptors that carry a handle to
// another process. No call here needs a context.
#include <cstring>

#include "soft/cuda/entry.hpp"
#include "soft/cuda/identity.hpp"
#include "sys/file_hold.hpp"
#include "sys/files.hpp"
#include "sys/note.hpp"

namespace strait::soft::cuda {
namespace {

bool valid_prop(Driver& driver, const CUmemAllocationProp* prop) {
  constexpr unsigned kTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
  return prop != nullptr && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && driver.valid_device(prop->location.id) &&
         (prop->requestedHandleTypes & ~kTypes) == 0;
}

CUmemGenericAllocationHandle keep_handle(Driver& driver, std::shared_ptr<Physical> physical) {
  const std::lock_guard lock(driver.lock());
  const CUmemGenericAllocationHandle handle = driver.next_number();
  driver.physicals().emplace(handle, std::pair{std::move(physical), 1u});
  return handle;
}

std::shared_ptr<Physical> find_physical(Driver& driver, CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(driver.lock());
  const auto found = driver.physicals().find(handle);
  return found == driver.physicals().end() ? nullptr : found->second.first;
}

// The same memory in this process, when the descriptor is of one's own.
std::shared_ptr<Physical> own_physical(Driver& driver, int fd) {
  const auto id = sys::file_id(fd);
  const std::lock_guard lock(driver.lock());
  for (const auto& [handle, entry] : driver.physicals()) {
    if (id && sys::file_id(entry.first->block->file()) == id) return entry.first;
  }
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  return enter([&](Driver& driver) -> CUresult {
    if (granularity == nullptr || !valid_prop(driver, prop) || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
      return CUDA_ERROR_INVALID_VALUE;
    *granularity = kGranularity;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t length_bytes, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr || flags != 0 || length_bytes == 0 || length_bytes % kGranularity != 0 ||
        !valid_prop(driver, prop))
      return CUDA_ERROR_INVALID_VALUE;
    // An H200 without an IMEX channel says so.
    if ((prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0) return CUDA_ERROR_NOT_PERMITTED;
    auto block = driver.memory().bank(prop->location.id).take(length_bytes);
    if (!block) return block.error().code == Code::limit ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
    auto physical = std::make_shared<Physical>();
    physical->block = std::move(*block);
    physical->prop = *prop;
    *out = keep_handle(driver, std::move(physical));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return enter([&](Driver& driver) -> CUresult {
    std::shared_ptr<Physical> last;  // dropped after the lock
    const std::lock_guard lock(driver.lock());
    const auto found = driver.physicals().find(handle);
    if (found == driver.physicals().end()) return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.second != 0) return CUDA_SUCCESS;
    last = std::move(found->second.first);
    driver.physicals().erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* out, std::size_t length_bytes, std::size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult answer = driver.memory().reserve(length_bytes, alignment, wanted, address);
    if (answer == CUDA_SUCCESS) *out = address;
    return answer;
  });
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t length_bytes) {
  return enter([&](Driver& driver) { return driver.memory().unreserve(address, length_bytes); });
}

CUresult cuMemMap(CUdeviceptr address, std::size_t length_bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return enter([&](Driver& driver) -> CUresult {
    auto physical = find_physical(driver, handle);
    if (!physical || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory().map(address, length_bytes, std::move(physical));
  });
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t length_bytes) {
  return enter([&](Driver& driver) { return driver.memory().unmap(address, length_bytes); });
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t length_bytes, const CUmemAccessDesc* access,
                        std::size_t count) {
  return enter([&](Driver& driver) {
    return driver.memory().set_access(address, length_bytes, access, count, static_cast<int>(driver.devices().size()));
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return enter([&](Driver& driver) -> CUresult {
    Known known;
    if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !driver.valid_device(location->id) || !driver.memory().find(address, known) || !known.mapped ||
        !known.piece.physical)
      return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t bit = std::uint64_t{1} << location->id;
    *flags = (known.piece.writers & bit) != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : (known.piece.readers & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  return enter([&](Driver& driver) -> CUresult {
    Known known;
    if (out == nullptr || !driver.memory().find(reinterpret_cast<std::uint64_t>(address), known) || !known.mapped ||
        !known.piece.physical)
      return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.lock());
    for (auto& [handle, entry] : driver.physicals()) {
      if (entry.first != known.piece.physical) continue;
      ++entry.second;
      *out = handle;
      return CUDA_SUCCESS;
    }
    const CUmemGenericAllocationHandle handle = driver.next_number();  // it was released, and lives by being mapped
    driver.physicals().emplace(handle, std::pair{known.piece.physical, 1u});
    *out = handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  return enter([&](Driver& driver) -> CUresult {
    const auto physical = find_physical(driver, handle);
    if (prop == nullptr || !physical) return CUDA_ERROR_INVALID_VALUE;
    *prop = physical->prop;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  return enter([&](Driver& driver) -> CUresult {
    const auto physical = find_physical(driver, handle);
    if (out == nullptr || flags != 0 || !physical || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        (physical->prop.requestedHandleTypes & type) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    auto file = physical->block->open_file();
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    const int fd = file->release();
    std::memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* given,
                                        CUmemAllocationHandleType type) {
  return enter([&](Driver& driver) -> CUresult {
    if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(given));  // the caller keeps it
    const auto index = device_by_memory_name(sys::memfd_name(fd));
    if (!index) return CUDA_ERROR_INVALID_VALUE;
    if (auto own = own_physical(driver, fd)) {
      *out = keep_handle(driver, std::move(own));
      return CUDA_SUCCESS;
    }
    auto file = sys::open_again(fd);
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    if (!sys::hold_file(file->get())) return CUDA_ERROR_INVALID_VALUE;
    auto block = accel::Bank::adopt(std::move(*file));
    if (!block || (*block)->length_bytes() % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
    auto physical = std::make_shared<Physical>();
    physical->block = std::move(*block);
    physical->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    physical->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    physical->prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    for (std::size_t i = 0; i < driver.devices().size(); ++i) {
      if (driver.devices()[i].index == *index) physical->prop.location.id = static_cast<int>(i);
    }
    *out = keep_handle(driver, std::move(physical));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
