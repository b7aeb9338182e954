// SPDX-License-Identifier: Apache-2.0
// Allocations, pointer attributes, exports: the table measured on an H200, row by row.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "soft/cuda/testing.hpp"

namespace strait::soft::cuda {
namespace {

using testing::kMega;

class CudaMemoryTest : public testing::CudaTest {};

TEST_F(CudaMemoryTest, AddressesAreUsedAgainAndBufferIdsAreNot) {
  const CUdeviceptr first = allocate(4 * kMega);
  const auto id = attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first);
  free(first);
  const CUdeviceptr second = allocate(4 * kMega);
  EXPECT_EQ(second, first);
  EXPECT_GT(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, second), id);
  free(second);
}

TEST_F(CudaMemoryTest, SmallAllocationsShareABlock) {
  const CUdeviceptr a = allocate(1000);
  const CUdeviceptr b = allocate(1000);
  EXPECT_EQ(b - a, 1024u) << "steps of 512 bytes";
  EXPECT_EQ(free_before_ - free_bytes(), 2 * kMega);
  EXPECT_EQ(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, a),
            attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, b));
  EXPECT_NE(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, a),
            attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
  CUdeviceptr base = 0;
  std::size_t length_bytes = 0;
  ASSERT_EQ(CUDA(cuMemGetAddressRange_v2)(&base, &length_bytes, b + 999), CUDA_SUCCESS);
  EXPECT_EQ(base, b);
  EXPECT_EQ(length_bytes, 1000u);
  EXPECT_EQ(CUDA(cuMemGetAddressRange_v2)(&base, &length_bytes, b + 1000), CUDA_ERROR_NOT_FOUND);
  // 4096 bytes of a 1000-byte allocation can be exported, and 65536 too: a neighbour's bytes go with them.
  ::close(export_range(a, 4096));
  ::close(export_range(a, 65536));
  (void)export_range(a, 4 * kMega, CUDA_ERROR_INVALID_VALUE);
  free(a);
  free(b);
}

TEST_F(CudaMemoryTest, PlainMemoryIsEverythingAtOnce) {
  const CUdeviceptr a = allocate(4 * kMega);
  const CUdeviceptr inside = a + kMega + 7;
  EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, inside), context_);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside), CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside), 0);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, inside), 1);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, inside), 1);
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_MANAGED, inside), 0);
  EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside), a);
  EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside), 4 * kMega);
  CUdeviceptr host = 0;
  EXPECT_EQ(CUDA(cuPointerGetAttribute)(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, a), CUDA_ERROR_INVALID_VALUE);
  ::close(export_range(a, 4 * kMega));
  (void)export_range(a, 4 * kMega, CUDA_ERROR_NOT_SUPPORTED, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
  const int part = export_range(a + kMega, 8192);
  EXPECT_EQ(::lseek(part, 0, SEEK_END), 8192) << "exactly as long as was asked for";
  ::close(part);
  for (const auto& [offset, bytes] : {std::pair<std::size_t, std::size_t>{512, 4096},
                                      {0, 1000},
                                      {0, 0},
                                      {0, 5 * kMega},
                                      {3 * kMega, 2 * kMega},
                                      {0, SIZE_MAX},
                                      {0, SIZE_MAX - 4095}})
    (void)export_range(a + offset, bytes, CUDA_ERROR_INVALID_VALUE);
  int fd = -1;
  EXPECT_EQ(CUDA(cuMemGetHandleForAddressRange)(&fd, a, 4096, static_cast<CUmemRangeHandleType>(2), 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemGetHandleForAddressRange)(nullptr, a, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
            CUDA_ERROR_INVALID_VALUE);
  free(a);
}

TEST_F(CudaMemoryTest, AnExportedDescriptorKeepsTheMemory) {
  const CUdeviceptr a = allocate(8 * kMega);
  const int first = export_range(a, 8 * kMega);
  const int part = export_range(a + 4096, 4096);
  free(a);
  EXPECT_EQ(free_before_ - free_bytes(), 8 * kMega);
  const int copy = ::dup(first);
  ::close(first);
  ::close(part);
  EXPECT_EQ(free_before_ - free_bytes(), 8 * kMega) << "a duplicate is enough";
  ::close(copy);
  EXPECT_EQ(free_bytes(), free_before_);
}

TEST_F(CudaMemoryTest, ExportedBytesAreTheMemory) {
  const CUdeviceptr a = allocate(2 * kMega);
  const int fd = export_range(a, 2 * kMega);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(a, 0x5a, 2 * kMega), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
  unsigned char byte = 0;
  ASSERT_EQ(::pread(fd, &byte, 1, kMega), 1);
  EXPECT_EQ(byte, 0x5a);
  ::close(fd);
  free(a);
}

TEST_F(CudaMemoryTest, MemoryThatIsNotOurs) {
  const auto some = std::make_unique<char[]>(100);
  const auto address = reinterpret_cast<CUdeviceptr>(some.get());
  unsigned type = 7;
  EXPECT_EQ(CUDA(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), CUDA_ERROR_INVALID_VALUE);
  int ordinal = 7;
  unsigned long long id = 7;
  CUcontext context = context_;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* data[] = {&type, &ordinal, &context, &id};
  ASSERT_EQ(CUDA(cuPointerGetAttributes)(4, which, data, address), CUDA_SUCCESS);
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(ordinal, -2);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(id, 0u);
  (void)export_range(address / 4096 * 4096, 4096, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
  which[0] = static_cast<CUpointer_attribute>(99);
  EXPECT_EQ(CUDA(cuPointerGetAttributes)(4, which, data, address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuPointerGetAttributes)(0, which, data, address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuPointerGetAttributes)(4, nullptr, nullptr, address), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemoryTest, FreesOnlyWhatItGaveAndOnlyOnce) {
  const CUdeviceptr a = allocate(4096);
  EXPECT_EQ(CUDA(cuMemFree_v2)(a + 1), CUDA_ERROR_INVALID_VALUE);
  free(a);
  EXPECT_EQ(CUDA(cuMemFree_v2)(a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemFree_v2)(0), CUDA_SUCCESS);
  CUdeviceptr out = 0;
  EXPECT_EQ(CUDA(cuMemAlloc_v2)(&out, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemAlloc_v2)(nullptr, 4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemAlloc_v2)(&out, 65 * kMega), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CUDA(cuMemAlloc_v2)(&out, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(CudaMemoryTest, ManagedAndHostMemoryAreReadByTheCpuAndExportedByNobody) {
  CUdeviceptr managed = 0;
  ASSERT_EQ(CUDA(cuMemAllocManaged)(&managed, kMega, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  void* host = nullptr;
  ASSERT_EQ(CUDA(cuMemHostAlloc)(&host, kMega, 0), CUDA_SUCCESS);
  for (const CUdeviceptr each : {managed, reinterpret_cast<CUdeviceptr>(host)}) {
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, each), 0);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, each), 0);
    EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, each), context_);
    (void)export_range(each, 4096, CUDA_ERROR_INVALID_VALUE);
    (void)export_range(each, 4096, CUDA_ERROR_INVALID_VALUE, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
    std::memset(reinterpret_cast<void*>(each), 0x11, kMega);
    EXPECT_EQ(read(each + 100, 1)[0], 0x11);
  }
  EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed), 1);
  EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host)),
            CU_MEMORYTYPE_HOST);
  free(managed);
  EXPECT_EQ(CUDA(cuMemFreeHost)(host), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemFreeHost)(host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemoryTest, PagesOfTheHostAreRegisteredOnce) {
  std::vector<char> bytes(64 * 1024);
  EXPECT_EQ(CUDA(cuMemHostRegister_v2)(bytes.data(), bytes.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemHostRegister_v2)(bytes.data(), bytes.size(), 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(CUDA(cuMemHostRegister_v2)(bytes.data() + 8192, 8, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = 0;
  ASSERT_EQ(CUDA(cuMemHostGetDevicePointer_v2)(&device, bytes.data() + 5, 0), CUDA_SUCCESS);
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(bytes.data()) + 5);
  EXPECT_EQ(CUDA(cuMemHostUnregister)(bytes.data()), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemHostUnregister)(bytes.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(CUDA(cuMemHostGetDevicePointer_v2)(&device, bytes.data(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemHostRegister_v2)(nullptr, 8, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemHostRegister_v2)(reinterpret_cast<void*>(16), 8, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemHostRegister_v2)(bytes.data(), SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
  void* host = nullptr;
  ASSERT_EQ(CUDA(cuMemHostAlloc)(&host, 8192, 0), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemHostRegister_v2)(host, 4096, 0), CUDA_ERROR_INVALID_VALUE) << "it is mapped as it is";
  EXPECT_EQ(CUDA(cuMemFreeHost)(host), CUDA_SUCCESS);
}

TEST_F(CudaMemoryTest, DeviceAddressesAreNotForTheCpu) {
  const CUdeviceptr a = allocate(4096);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(a) = 1, "");
  free(a);
}

}  // namespace
}  // namespace strait::soft::cuda
