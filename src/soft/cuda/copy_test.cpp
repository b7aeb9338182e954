// SPDX-License-Identifier: Apache-2.0
// Copies, streams, events.
#include <gtest/gtest.h>

#include <algorithm>

#include "soft/cuda/testing.hpp"

namespace strait::soft::cuda {
namespace {

using testing::kMega;

class CudaCopyTest : public testing::CudaTest {
 protected:
  static std::vector<unsigned char> numbers(std::size_t count) {
    std::vector<unsigned char> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 256);
    return bytes;
  }
};

TEST_F(CudaCopyTest, ThereAcrossAndBack) {
  const CUdeviceptr a = allocate(3 * kMega);
  const CUdeviceptr b = allocate(3 * kMega);
  const auto bytes = numbers(2 * kMega + 5);
  ASSERT_EQ(CUDA(cuMemcpyHtoD_v2)(a + 3, bytes.data(), bytes.size()), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemcpyDtoD_v2)(b + 11, a + 3, bytes.size()), CUDA_SUCCESS);
  EXPECT_EQ(read(b + 11, bytes.size()), bytes);
  std::vector<unsigned char> host(bytes.size());
  ASSERT_EQ(CUDA(cuMemcpy)(reinterpret_cast<CUdeviceptr>(host.data()), b + 11, host.size()), CUDA_SUCCESS);
  EXPECT_EQ(host, bytes);
  ASSERT_EQ(CUDA(cuMemsetD32_v2)(a, 0x01020304, 4), CUDA_SUCCESS);
  EXPECT_EQ(read(a, 4), (std::vector<unsigned char>{4, 3, 2, 1}));
  free(a);
  free(b);
}

TEST_F(CudaCopyTest, AStreamKeepsItsOrderAndAnEventSaysWhen) {
  const CUdeviceptr a = allocate(8 * kMega);
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuEventQuery)(event), CUDA_SUCCESS) << "never recorded";
  for (unsigned char value = 1; value <= 20; ++value)
    ASSERT_EQ(CUDA(cuMemsetD8Async)(a, value, 8 * kMega, stream), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuEventRecord)(event, stream), CUDA_SUCCESS);
  const CUresult now = CUDA(cuEventQuery)(event);
  EXPECT_TRUE(now == CUDA_SUCCESS || now == CUDA_ERROR_NOT_READY);
  ASSERT_EQ(CUDA(cuEventSynchronize)(event), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuEventQuery)(event), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuStreamQuery)(stream), CUDA_SUCCESS);
  const auto all = read(a, 8 * kMega);
  EXPECT_EQ(std::count(all.begin(), all.end(), 20), static_cast<std::ptrdiff_t>(8 * kMega));
  ASSERT_EQ(CUDA(cuEventDestroy_v2)(event), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuEventQuery)(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CUDA(cuStreamQuery)(stream), CUDA_ERROR_INVALID_HANDLE);
  free(a);
}

TEST_F(CudaCopyTest, PageableMemoryMayBeReusedAtOnce) {
  const CUdeviceptr a = allocate(kMega);
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  auto bytes = numbers(kMega);
  const auto expected = bytes;
  ASSERT_EQ(CUDA(cuMemcpyHtoDAsync_v2)(a, bytes.data(), bytes.size(), stream), CUDA_SUCCESS);
  std::fill(bytes.begin(), bytes.end(), 0);
  ASSERT_EQ(CUDA(cuMemcpyDtoHAsync_v2)(bytes.data(), a, bytes.size(), stream), CUDA_SUCCESS);
  EXPECT_EQ(bytes, expected) << "written when the call returns";
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  free(a);
}

TEST_F(CudaCopyTest, BadCopiesAreRefused) {
  const CUdeviceptr a = allocate(4096);
  const CUdeviceptr b = allocate(4096);
  char host[16] = {};
  EXPECT_EQ(CUDA(cuMemcpyHtoD_v2)(a + 4090, host, 16), CUDA_ERROR_INVALID_VALUE) << "past the end";
  EXPECT_EQ(CUDA(cuMemcpyDtoD_v2)(a, b, 4097), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemcpyHtoD_v2)(a, nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemcpyHtoD_v2)(a, reinterpret_cast<void*>(64), 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(const_cast<char*>("read only"), a, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(host, a, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemcpyDtoD_v2)(a, b, 0), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemcpyAsync)(a, b, 16, reinterpret_cast<CUstream>(0x1234560)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CUDA(cuMemsetD32_v2)(a + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuMemsetD32_v2)(a, 0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  free(b);
  EXPECT_EQ(CUDA(cuMemcpyDtoD_v2)(a, b, 16), CUDA_ERROR_INVALID_VALUE) << "freed";
  free(a);
}

TEST_F(CudaCopyTest, OneStreamWaitsForAnother) {
  const CUdeviceptr a = allocate(16 * kMega);
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&first, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuEventCreate)(&event, 0), CUDA_SUCCESS);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(CUDA(cuMemsetD8Async)(a, 1, 16 * kMega, first), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuEventRecord)(event, first), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamWaitEvent)(second, event, 0), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8Async)(a, 2, 16 * kMega, second), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(second), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuEventQuery)(event), CUDA_SUCCESS);
  EXPECT_EQ(read(a + 16 * kMega - 1, 1)[0], 2);
  ASSERT_EQ(CUDA(cuEventDestroy_v2)(event), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(first), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(second), CUDA_SUCCESS);
  free(a);
}

}  // namespace
}  // namespace strait::soft::cuda
