// SPDX-License-Identifier: Apache-2.0
// Handles mapped into reserved addresses, and memory from pools.
#include <gtest/gtest.h>
#include <unistd.h>

#include "soft/cuda/testing.hpp"

namespace strait::soft::cuda {
namespace {

using testing::kMega;
using testing::kStep;

class CudaVirtualTest : public testing::CudaTest {
 protected:
  static CUmemAllocationProp prop(bool capable, unsigned handle_types = 0) {
    CUmemAllocationProp made{};
    made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    made.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    made.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
    made.allocFlags.gpuDirectRDMACapable = capable ? 1 : 0;
    return made;
  }
  static CUmemGenericAllocationHandle create(std::size_t length_bytes, const CUmemAllocationProp& with) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(CUDA(cuMemCreate)(&handle, length_bytes, &with, 0), CUDA_SUCCESS);
    return handle;
  }
  static CUdeviceptr reserve(std::size_t length_bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA(cuMemAddressReserve)(&address, length_bytes, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(address % kStep, 0u);
    return address;
  }
  static void let_in(CUdeviceptr address, std::size_t length_bytes) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(CUDA(cuMemSetAccess)(address, length_bytes, &access, 1), CUDA_SUCCESS);
  }
};

TEST_F(CudaVirtualTest, SeveralHandlesSideBySide) {
  const CUdeviceptr base = reserve(8 * kStep);
  const auto small = create(kStep, prop(false));
  const auto large = create(2 * kStep, prop(true));
  EXPECT_EQ(free_before_ - free_bytes(), 3 * kStep);
  ASSERT_EQ(CUDA(cuMemMap)(base, kStep, 0, small, 0), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemMap)(base + kStep, 2 * kStep, 0, large, 0), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemcpyDtoD_v2)(base, base + kStep, 16), CUDA_ERROR_INVALID_VALUE) << "nobody was let in yet";
  let_in(base, 3 * kStep);

  // A copy, a range and an export across both.
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(base, 0x21, 3 * kStep), CUDA_SUCCESS);
  const auto bytes = read(base + kStep - 8, 16);
  EXPECT_EQ(bytes, std::vector<unsigned char>(16, 0x21));
  CUdeviceptr at = 0;
  std::size_t length_bytes = 0;
  ASSERT_EQ(CUDA(cuMemGetAddressRange_v2)(&at, &length_bytes, base + kStep + 100), CUDA_SUCCESS);
  EXPECT_EQ(at, base + kStep);
  EXPECT_EQ(length_bytes, 2 * kStep) << "one handle";
  EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, base + kStep), base);
  EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, base + kStep), 8 * kStep) << "the reservation";
  EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, base + 5 * kMega), base + kStep);
  EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, base), nullptr);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, base), 0);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, base), 0);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, base + kStep), 1);
  const int fd = export_range(base, 3 * kStep);
  EXPECT_EQ(::lseek(fd, 0, SEEK_END), static_cast<off_t>(3 * kStep));
  ::close(export_range(base, kStep));
  (void)export_range(base, 3 * kStep, CUDA_ERROR_NOT_SUPPORTED, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
  (void)export_range(base, 4 * kStep, CUDA_ERROR_INVALID_VALUE);
  int mapped = 7;
  ASSERT_EQ(CUDA(cuPointerGetAttribute)(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, base + 4 * kStep), CUDA_SUCCESS);
  EXPECT_EQ(mapped, 0);
  unsigned type = 0;
  EXPECT_EQ(CUDA(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base + 4 * kStep),
            CUDA_ERROR_INVALID_VALUE);

  EXPECT_EQ(CUDA(cuMemAddressFree)(base, 8 * kStep), CUDA_ERROR_INVALID_VALUE) << "something is mapped";
  EXPECT_EQ(CUDA(cuMemUnmap)(base + kStep, kStep), CUDA_ERROR_INVALID_VALUE) << "half a handle";
  ASSERT_EQ(CUDA(cuMemRelease)(small), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemRelease)(large), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemRelease)(large), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(read(base, 1)[0], 0x21) << "a mapping keeps it";
  ASSERT_EQ(CUDA(cuMemUnmap)(base, 3 * kStep), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_bytes(), 3 * kStep) << "and so does the descriptor";
  ::close(fd);
  EXPECT_EQ(free_bytes(), free_before_);
  ASSERT_EQ(CUDA(cuMemAddressFree)(base, 8 * kStep), CUDA_SUCCESS);
}

TEST_F(CudaVirtualTest, ARemappedRangeHasAnotherBlock) {
  const CUdeviceptr base = reserve(kStep);
  const auto first = create(kStep, prop(false));
  const auto second = create(kStep, prop(false));
  ASSERT_EQ(CUDA(cuMemMap)(base, kStep, 0, first, 0), CUDA_SUCCESS);
  const auto block = attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, base);
  ASSERT_EQ(CUDA(cuMemUnmap)(base, kStep), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemMap)(base, kStep, 0, second, 0), CUDA_SUCCESS);
  EXPECT_NE(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, base), block);
  EXPECT_EQ(CUDA(cuMemMap)(base, kStep, 0, first, 0), CUDA_ERROR_INVALID_VALUE) << "taken";
  CUmemGenericAllocationHandle found = 0;
  ASSERT_EQ(CUDA(cuMemRetainAllocationHandle)(&found, reinterpret_cast<void*>(base + 5)), CUDA_SUCCESS);
  EXPECT_EQ(found, second);
  ASSERT_EQ(CUDA(cuMemRelease)(found), CUDA_SUCCESS);
  CUmemAllocationProp said{};
  ASSERT_EQ(CUDA(cuMemGetAllocationPropertiesFromHandle)(&said, second), CUDA_SUCCESS);
  EXPECT_EQ(said.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  ASSERT_EQ(CUDA(cuMemUnmap)(base, kStep), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemRelease)(first), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemRelease)(second), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemAddressFree)(base, kStep), CUDA_SUCCESS);
}

TEST_F(CudaVirtualTest, RefusesWhatMakesNoSense) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp with = prop(false);
  EXPECT_EQ(CUDA(cuMemCreate)(&handle, 4096, &with, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemCreate)(&handle, kStep, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemCreate)(&handle, 1000 * kStep, &with, 0), CUDA_ERROR_OUT_OF_MEMORY);
  with.location.id = 9;
  EXPECT_EQ(CUDA(cuMemCreate)(&handle, kStep, &with, 0), CUDA_ERROR_INVALID_VALUE);
  const auto own = create(kStep, prop(false));
  int fd = -1;
  EXPECT_EQ(CUDA(cuMemExportToShareableHandle)(&fd, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE)
      << "was not asked for when it was made";
  ASSERT_EQ(CUDA(cuMemRelease)(own), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  EXPECT_EQ(CUDA(cuMemAddressReserve)(&address, 1000, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemAddressReserve)(&address, SIZE_MAX, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemAddressReserve)(&address, kStep, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemMap)(kStep, kStep, 0, own, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemImportFromShareableHandle)(&handle, reinterpret_cast<void*>(0),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemImportFromShareableHandle)(&handle, reinterpret_cast<void*>(-1),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr plain = allocate(4096);
  EXPECT_EQ(CUDA(cuMemRetainAllocationHandle)(&handle, reinterpret_cast<void*>(plain)), CUDA_ERROR_INVALID_VALUE);
  free(plain);
}

TEST_F(CudaVirtualTest, MemoryOfAPool) {
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUdeviceptr a = 0;
  ASSERT_EQ(CUDA(cuMemAllocAsync)(&a, 3 * kMega, stream), CUDA_SUCCESS);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, a), 0);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a), 0);
  EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, a), nullptr);
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(CUDA(cuDeviceGetDefaultMemPool)(&pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a), pool);
  unsigned long long used = 0;
  ASSERT_EQ(CUDA(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  EXPECT_EQ(used, 3 * kMega);
  CUipcMemHandle handle{};
  EXPECT_EQ(CUDA(cuIpcGetMemHandle)(&handle, a), CUDA_ERROR_INVALID_VALUE);
  unsigned on = 1;
  EXPECT_EQ(CUDA(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a), CUDA_SUCCESS);
  ::close(export_range(a, 2 * kMega));
  (void)export_range(a, 2 * kMega, CUDA_ERROR_NOT_SUPPORTED, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
  ASSERT_EQ(CUDA(cuMemsetD8Async)(a, 9, 3 * kMega, stream), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemFreeAsync)(a, stream), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemFreeAsync)(a, stream), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemAllocAsync)(&a, kMega, stream), CUDA_SUCCESS);
  free(a);
  ASSERT_EQ(CUDA(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  EXPECT_EQ(used, 0u);
  EXPECT_EQ(CUDA(cuMemPoolDestroy)(pool), CUDA_ERROR_INVALID_VALUE) << "the default one stays";
  const CUdeviceptr plain = allocate(4096);
  EXPECT_EQ(CUDA(cuMemFreeAsync)(plain, stream), CUDA_ERROR_INVALID_VALUE);
  free(plain);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
}

TEST_F(CudaVirtualTest, AdviceIsForManagedMemory) {
  CUdeviceptr managed = 0;
  ASSERT_EQ(CUDA(cuMemAllocManaged)(&managed, kMega, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 1};
  EXPECT_EQ(CUDA(cuMemAdvise_v2)(managed, kMega, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemAdvise)(managed, kMega, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemPrefetchAsync_v2)(managed, kMega, {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, nullptr), CUDA_SUCCESS);
  for (const auto& [which, expected] : {std::pair{CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1},
                                        {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 1},
                                        {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, -1},
                                        {CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, -2}}) {
    int value = 7;
    ASSERT_EQ(CUDA(cuMemRangeGetAttribute)(&value, sizeof value, which, managed, kMega), CUDA_SUCCESS);
    EXPECT_EQ(value, expected) << which;
  }
  EXPECT_EQ(CUDA(cuMemAdvise)(managed, kMega, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 9), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CUDA(cuMemAdvise)(managed, 2 * kMega, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemAdvise)(managed, kMega, static_cast<CUmem_advise>(77), 0), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr plain = allocate(4096);
  EXPECT_EQ(CUDA(cuMemAdvise)(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
  free(plain);
  free(managed);
}

}  // namespace
}  // namespace strait::soft::cuda
