// SPDX-License-Identifier: Apache-2.0
// Calls without sense: nothing crashes, nothing is lost, and everything that is exported can be called.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <thread>

#include "soft/cuda/testing.hpp"
#include "sys/fd.hpp"

namespace strait::soft::cuda {
namespace {

using testing::kMega;

class CudaHostileTest : public testing::CudaTest {};

TEST_F(CudaHostileTest, EveryNameIsExportedAndFoundByVersion) {
  std::ifstream names(CUDA_NAMES);
  ASSERT_TRUE(names);
  std::size_t count = 0;
  for (std::string line; std::getline(names, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string symbol;
    std::string name;
    int version = 0;
    ASSERT_TRUE(words >> symbol >> name >> version) << line;
    void* const exported = reinterpret_cast<void*>(testing::call_named<CUresult()>(symbol.c_str()));
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    const bool per_thread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
    ASSERT_EQ(CUDA(cuGetProcAddress_v2)(name.c_str(), &found, version, per_thread ? 2 : 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(found, exported) << line;
    ++count;
  }
  EXPECT_GT(count, 600u);
}

// Addresses, lengths and handles that somebody might pass: good ones, and ones beside them.
TEST_F(CudaHostileTest, RandomArgumentsAreAnswered) {
  std::mt19937_64 random(4711);
  const CUdeviceptr plain = allocate(3 * kMega);
  CUdeviceptr managed = 0;
  ASSERT_EQ(CUDA(cuMemAllocManaged)(&managed, kMega, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  CUdeviceptr reserved = 0;
  ASSERT_EQ(CUDA(cuMemAddressReserve)(&reserved, 8 * kMega, 0, 0, 0), CUDA_SUCCESS);
  std::vector<char> host(64 * 1024);
  const auto pageable = reinterpret_cast<CUdeviceptr>(host.data());
  const CUdeviceptr edges[] = {0,        1,        plain,      plain + 3 * kMega, managed,
                               reserved, pageable, UINT64_MAX, UINT64_MAX - 4095};
  const std::size_t lengths[] = {0, 1, 511, 4096, 65536, 2 * kMega, 3 * kMega, SIZE_MAX, SIZE_MAX - 4095};
  const auto address = [&] {
    return edges[random() % std::size(edges)] + (random() % 3 == 0 ? random() % 8192 : 0) -
           (random() % 5 == 0 ? 512 : 0);
  };
  const auto length = [&] { return lengths[random() % std::size(lengths)]; };
  const auto handle = [&]<class T>(T) { return reinterpret_cast<T>(random() % 2 == 0 ? random() : random() % 16); };
  for (int turn = 0; turn < 3000; ++turn) {
    unsigned long long word[8] = {};
    CUdeviceptr out = 0;
    std::size_t size = 0;
    int fd = -1;
    CUipcMemHandle ipc{};
    for (char& byte : ipc.reserved) byte = static_cast<char>(random());
    (void)CUDA(cuPointerGetAttribute)(word, static_cast<CUpointer_attribute>(random() % 24), address());
    (void)CUDA(cuMemGetAddressRange_v2)(&out, &size, address());
    if (CUDA(cuMemGetHandleForAddressRange)(&fd, address(), length(), CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                            random() % 3) == CUDA_SUCCESS) {
      const sys::Fd closed(fd);
    }
    const CUdeviceptr to = address();
    if (to - pageable >= host.size()) (void)CUDA(cuMemsetD8_v2)(to, 1, length() % (4 * kMega));
    EXPECT_NE(CUDA(cuIpcOpenMemHandle_v2)(&out, ipc, 1), CUDA_SUCCESS);
    EXPECT_NE(CUDA(cuMemUnmap)(address(), length()), CUDA_SUCCESS);
    EXPECT_NE(CUDA(cuMemMap)(address(), length(), 0, random() % 100, 0), CUDA_SUCCESS);
    EXPECT_NE(CUDA(cuMemRelease)(random()), CUDA_SUCCESS);
    EXPECT_NE(CUDA(cuStreamSynchronize)(reinterpret_cast<CUstream>(random() | 0x10)), CUDA_SUCCESS);
    EXPECT_NE(CUDA(cuEventQuery)(handle(CUevent{})), CUDA_SUCCESS);
    EXPECT_NE(CUDA(cuCtxPushCurrent_v2)(handle(CUcontext{})), CUDA_SUCCESS);
    EXPECT_NE(CUDA(cuMemPoolDestroy)(handle(CUmemoryPool{})), CUDA_SUCCESS);
  }
  EXPECT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemAddressFree)(reserved, 8 * kMega), CUDA_SUCCESS);
  free(managed);
  free(plain);
}

TEST_F(CudaHostileTest, ManyThreadsAtOnce) {
  constexpr int kThreads = 16;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([number] {
      ASSERT_EQ(CUDA(cuInit)(0), CUDA_SUCCESS);
      CUcontext context = nullptr;
      ASSERT_EQ(CUDA(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
      ASSERT_EQ(CUDA(cuCtxPushCurrent_v2)(context), CUDA_SUCCESS);
      CUstream stream = nullptr;
      ASSERT_EQ(CUDA(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
      for (int turn = 0; turn < 20; ++turn) {
        const std::size_t bytes = 3000 + static_cast<std::size_t>(number) * 700;
        const CUdeviceptr a = allocate(bytes);
        const auto value = static_cast<unsigned char>(number * 20 + turn);
        std::vector<unsigned char> seen(bytes);
        ASSERT_EQ(CUDA(cuMemsetD8Async)(a, value, bytes, stream), CUDA_SUCCESS);
        ASSERT_EQ(CUDA(cuMemcpyDtoHAsync_v2)(seen.data(), a, bytes, stream), CUDA_SUCCESS);
        EXPECT_EQ(seen, std::vector<unsigned char>(bytes, value));
        EXPECT_NE(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, a), 0u);
        const sys::Fd held(export_range(a / 4096 * 4096, 4096));
        free(a);
      }
      ASSERT_EQ(CUDA(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
      ASSERT_EQ(CUDA(cuCtxPopCurrent_v2)(nullptr), CUDA_SUCCESS);
      ASSERT_EQ(CUDA(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace strait::soft::cuda
