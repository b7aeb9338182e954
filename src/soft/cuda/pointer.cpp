// SPDX-License-Identifier: Apache-2.0
// Whose pointer is this: pointer attributes, address ranges, and the descriptor for a NIC. Attributes need no context,
// the other two do.
#include <cstring>

#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

constexpr unsigned kFirstAttribute = CU_POINTER_ATTRIBUTE_CONTEXT;
constexpr unsigned kLastAttribute = CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID;

template <class T>
CUresult put(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// Attributes 11 to 13 are also answered for addresses that are reserved and have nothing mapped.
CUresult attribute_of_reserved(const Range& range, CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(data, range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(data, range.length_bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, 0);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

bool direct_rdma_capable(const Known& known) {
  return known.range->sort == Sort::plain ||
         (known.piece.physical && known.piece.physical->prop.allocFlags.gpuDirectRDMACapable != 0);
}

std::uint64_t allowed_handle_types(const Known& known) {
  if (known.piece.physical) return known.piece.physical->prop.requestedHandleTypes;
  return known.range->pool != nullptr ? std::uint64_t{known.range->pool->props.handleTypes} : 0;
}

CUresult attribute_of(const Known& known, CUpointer_attribute attribute, std::uint64_t address, void* data) {
  const Range& range = *known.range;
  if (range.sort == Sort::reserved && !known.mapped) return attribute_of_reserved(range, attribute, data);
  const bool of_host = range.sort == Sort::host || range.sort == Sort::registered;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(data, reinterpret_cast<CUcontext>(range.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data, static_cast<std::uint32_t>(of_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (range.on_device()) return CUDA_ERROR_INVALID_VALUE;
      return put(data, address);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      if (range.sort != Sort::plain) return CUDA_ERROR_INVALID_VALUE;
      return put(data, CUDA_POINTER_ATTRIBUTE_P2P_TOKENS{range.buffer_id, 0});
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put(data, known.sync_memops ? 1 : 0);
    // Of a reservation: of what is mapped here, and another one when it is mapped anew.
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(data, range.sort == Sort::reserved ? known.piece.identity : range.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(data, range.sort == Sort::managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, range.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return put(data, range.sort == Sort::plain ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(data, range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(data, range.length_bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put(data, allowed_handle_types(known));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put(data, direct_rdma_capable(known) ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(data, static_cast<std::uint32_t>(known.piece.physical && known.piece.writers == 0
                                                      ? (known.piece.readers == 0 ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                                                                  : CU_MEM_ACCESS_FLAGS_PROT_READ)
                                                      : CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(data, reinterpret_cast<CUmemoryPool>(range.pool));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put(data, range.sort == Sort::reserved ? known.piece.length_bytes : range.length_bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(data, range.sort == Sort::reserved ? known.piece.base : range.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return put(data, known.piece.block ? known.piece.block->id() : 0);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

std::size_t attribute_bytes(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return sizeof(std::uint32_t);
    default: return sizeof(std::uint64_t);
  }
}

// For pointers that are not known: zero, except where zero would say something.
void put_default(CUpointer_attribute attribute, void* data) {
  std::memset(data, 0, attribute_bytes(attribute));
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) (void)put(data, -2);
}

bool known_attribute(CUpointer_attribute attribute) {
  return attribute >= kFirstAttribute && attribute <= kLastAttribute;
}

}  // namespace

extern "C" {

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return enter([&](Driver& driver) -> CUresult {
    Known known;
    if (data == nullptr || !known_attribute(attribute) || !driver.memory().find(address, known))
      return CUDA_ERROR_INVALID_VALUE;
    return attribute_of(known, attribute, address, data);
  });
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) {
  return enter([&](Driver& driver) -> CUresult {
    if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
      if (data[i] == nullptr || !known_attribute(attributes[i])) return CUDA_ERROR_INVALID_VALUE;
    }
    Known known;
    const bool found = driver.memory().find(address, known);
    for (unsigned i = 0; i < count; ++i) {
      if (!found || attribute_of(known, attributes[i], address, data[i]) != CUDA_SUCCESS)
        put_default(attributes[i], data[i]);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return enter([&](Driver& driver) -> CUresult {
    Known known;
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !driver.memory().find(address, known) ||
        !known.mapped)
      return CUDA_ERROR_INVALID_VALUE;
    if (known.range->sort == Sort::reserved) return CUDA_ERROR_NOT_SUPPORTED;  // the context's flag covers it
    std::uint32_t on = 0;
    std::memcpy(&on, value, sizeof on);
    const std::unique_lock lock(driver.memory().lock());
    known.range->sync_memops = on != 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* length_bytes, CUdeviceptr address) {
  return enter_with_context([&](Driver& driver, Context&) -> CUresult {
    Known known;
    if (!driver.memory().find(address, known)) return CUDA_ERROR_NOT_FOUND;
    if (known.range->sort == Sort::reserved && !known.mapped) return CUDA_ERROR_INVALID_VALUE;
    // Of a reservation: the one handle that is mapped here, not the whole.
    const bool one_piece = known.range->sort == Sort::reserved;
    if (base != nullptr) *base = one_piece ? known.piece.base : known.range->base;
    if (length_bytes != nullptr) *length_bytes = one_piece ? known.piece.length_bytes : known.range->length_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, std::size_t length_bytes,
                                       CUmemRangeHandleType type, unsigned long long flags) {
  return enter_with_context([&](Driver& driver, Context&) -> CUresult {
    if (handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & ~std::uint64_t{CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE}) != 0) return CUDA_ERROR_INVALID_VALUE;
    int fd = -1;
    if (const CUresult failed = driver.memory().export_range(address, length_bytes, fd); failed != CUDA_SUCCESS)
      return failed;
    // Only coherent parts have two paths to choose from; what cannot be exported at all was refused before.
    if (flags != 0) {
      const strait::sys::Fd closed(fd);
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    std::memcpy(handle, &fd, sizeof fd);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace strait::soft::cuda
