// SPDX-License-Identifier: Apache-2.0
// Devices and contexts.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "soft/cuda/testing.hpp"

namespace strait::soft::cuda {
namespace {

using testing::kMega;

class CudaContextTest : public testing::CudaTest {};

TEST_F(CudaContextTest, DevicesAreThere) {
  int count = 0;
  ASSERT_EQ(CUDA(cuDeviceGetCount)(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  char name[64];
  ASSERT_EQ(CUDA(cuDeviceGetName)(name, sizeof name, 1), CUDA_SUCCESS);
  EXPECT_NE(std::strstr(name, "software"), nullptr);
  char bus[16];
  ASSERT_EQ(CUDA(cuDeviceGetPCIBusId)(bus, sizeof bus, 1), CUDA_SUCCESS);
  CUdevice found = -1;
  ASSERT_EQ(CUDA(cuDeviceGetByPCIBusId)(&found, bus), CUDA_SUCCESS);
  EXPECT_EQ(found, 1);
  EXPECT_EQ(CUDA(cuDeviceGetByPCIBusId)(&found, "0000:ff:00.0"), CUDA_ERROR_INVALID_DEVICE);
  std::size_t bytes = 0;
  ASSERT_EQ(CUDA(cuDeviceTotalMem_v2)(&bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 64 * kMega);
  for (const auto& [which, expected] : {std::pair{CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1},
                                        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
                                        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 100},
                                        {CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 0}}) {
    int value = -1;
    ASSERT_EQ(CUDA(cuDeviceGetAttribute)(&value, which, 0), CUDA_SUCCESS);
    EXPECT_EQ(value, expected) << which;
  }
  int value = 0;
  EXPECT_EQ(CUDA(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(4711), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CUDA(cuDeviceGet)(&found, -1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CUDA(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaContextTest, StackOfContexts) {
  CUcontext second = nullptr;
  ASSERT_EQ(CUDA(cuCtxCreate_v2)(&second, 0, 1), CUDA_SUCCESS);
  CUcontext current = nullptr;
  ASSERT_EQ(CUDA(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, second);
  CUdevice device = -1;
  ASSERT_EQ(CUDA(cuCtxGetDevice)(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(CUDA(cuCtxPopCurrent_v2)(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, second);
  ASSERT_EQ(CUDA(cuCtxGetDevice)(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  ASSERT_EQ(CUDA(cuCtxPushCurrent_v2)(second), CUDA_SUCCESS);
  const CUdeviceptr a = allocate(4096);
  ASSERT_EQ(CUDA(cuCtxDestroy_v2)(second), CUDA_SUCCESS);
  unsigned type = 0;
  EXPECT_EQ(CUDA(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a), CUDA_ERROR_INVALID_VALUE)
      << "memory goes with its context";
  EXPECT_EQ(CUDA(cuCtxPushCurrent_v2)(second), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CUDA(cuCtxDestroy_v2)(second), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CUDA(cuCtxSetCurrent)(reinterpret_cast<CUcontext>(0x10)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CUDA(cuCtxDestroy_v2)(context_), CUDA_ERROR_INVALID_CONTEXT) << "a primary one is released";
}

TEST_F(CudaContextTest, WithoutAContext) {
  const CUdeviceptr a = allocate(4096);
  std::thread([&] {
    CUcontext current = context_;
    EXPECT_EQ(CUDA(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(CUDA(cuCtxPopCurrent_v2)(&current), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a), CU_MEMORYTYPE_DEVICE) << "needs none";
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    int fd = -1;
    CUdevice device = 0;
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA(cuMemGetAddressRange_v2)(&base, &bytes, a), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CUDA(cuMemGetHandleForAddressRange)(&fd, a, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CUDA(cuMemAlloc_v2)(&base, 4096), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CUDA(cuCtxGetDevice)(&device), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CUDA(cuStreamCreate)(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CUDA(cuMemcpy)(a, a, 8), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  free(a);
}

TEST_F(CudaContextTest, PrimaryContextIsCountedAndNotMadeByAsking) {
  unsigned flags = 7;
  int active = -1;
  ASSERT_EQ(CUDA(cuDevicePrimaryCtxGetState)(1, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  CUcontext a = nullptr;
  CUcontext b = nullptr;
  ASSERT_EQ(CUDA(cuDevicePrimaryCtxRetain)(&a, 1), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuDevicePrimaryCtxRetain)(&b, 1), CUDA_SUCCESS);
  EXPECT_EQ(a, b);
  EXPECT_EQ(CUDA(cuDevicePrimaryCtxRelease_v2)(1), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuDevicePrimaryCtxGetState)(1, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  ASSERT_EQ(CUDA(cuCtxPushCurrent_v2)(a), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuDevicePrimaryCtxRelease_v2)(1), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuDevicePrimaryCtxRelease_v2)(1), CUDA_ERROR_INVALID_CONTEXT);
  CUdeviceptr address = 0;
  EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, 4096), CUDA_ERROR_CONTEXT_IS_DESTROYED) << "still on the stack";
  EXPECT_EQ(CUDA(cuCtxPopCurrent_v2)(nullptr), CUDA_SUCCESS);
}

TEST_F(CudaContextTest, FlagsOfAContext) {
  unsigned flags = 0;
  ASSERT_EQ(CUDA(cuCtxSetFlags)(CU_CTX_SYNC_MEMOPS), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuCtxGetFlags)(&flags), CUDA_SUCCESS);
  EXPECT_EQ(flags, CU_CTX_SYNC_MEMOPS);
  EXPECT_EQ(CUDA(cuCtxSetFlags)(0x1000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuCtxSetFlags)(0), CUDA_SUCCESS);
}

TEST_F(CudaContextTest, AForkedChildHasNoDriver) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int count = 0;
    CUdeviceptr address = 0;
    const bool refused = CUDA(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED &&
                         CUDA(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                         CUDA(cuMemAlloc_v2)(&address, 4096) == CUDA_ERROR_NOT_INITIALIZED;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(CudaContextTest, NamesAndVersions) {
  using Create = CUresult(CUcontext*, unsigned, CUdevice);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  ASSERT_EQ(CUDA(cuGetProcAddress_v2)("cuMemAlloc", &found, 3020, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void*>(CUDA(cuMemAlloc_v2)));
  ASSERT_EQ(CUDA(cuGetProcAddress_v2)("cuCtxCreate", &found, 3020, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void*>(testing::call_named<Create>("cuCtxCreate_v2")));
  ASSERT_EQ(CUDA(cuGetProcAddress_v2)("cuCtxCreate", &found, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void*>(testing::call_named<Create>("cuCtxCreate_v4")));
  ASSERT_EQ(CUDA(cuGetProcAddress_v2)("cuMemGetHandleForAddressRange", &found, 11060, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  ASSERT_EQ(CUDA(cuGetProcAddress_v2)("cuNoSuchThing", &found, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(CUDA(cuGetProcAddress)("cuNoSuchThing", &found, 13000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(CUDA(cuGetProcAddress_v2)("cuInit", &found, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuGetProcAddress_v2)(nullptr, &found, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  const char* text = nullptr;
  ASSERT_EQ(CUDA(cuGetErrorName)(CUDA_ERROR_NOT_SUPPORTED, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_NOT_SUPPORTED");
  EXPECT_EQ(CUDA(cuGetErrorName)(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

// The whole list of the driver's names: what api.h declares is served, and there is not one more that does not answer.
TEST_F(CudaContextTest, EveryOtherNameIsThereAndSaysItCannot) {
  int unserved = 0;
  bool launches = false;
  for (const char* const name : {
#define STRAIT_UNSUPPORTED(symbol) #symbol,
#include "cuda_unsupported.inc"
#undef STRAIT_UNSUPPORTED
       }) {
    const auto call = testing::call_named<CUresult()>(name);
    ASSERT_NE(call, nullptr) << name;
    EXPECT_EQ(call(), CUDA_ERROR_NOT_SUPPORTED) << name;
    launches = launches || std::string(name) == "cuLaunchKernel";
    ++unserved;
  }
  EXPECT_TRUE(launches) << "no kernel runs here";
  std::ifstream listed(CUDA_NAMES);
  int names = 0;
  for (std::string line; std::getline(listed, line);) names += line.starts_with("cu") ? 1 : 0;
  EXPECT_EQ(names, 634);
  EXPECT_EQ(unserved, 480) << "with the 154 that are served, all of them";
}

}  // namespace
}  // namespace strait::soft::cuda
