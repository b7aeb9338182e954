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

// Three copies, two sorts of sources; which of them may be read when is the caller's to say.
TEST_F(CudaCopyTest, ABatchIsOnePieceOfWorkOfItsStream) {
  const CUdeviceptr a = allocate(kMega), b = allocate(kMega);
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const auto bytes = numbers(kMega);
  auto passing = numbers(5000);  // gone when the call returns
  const auto kept = passing;
  ASSERT_EQ(CUDA(cuMemcpyHtoD_v2)(a, bytes.data(), bytes.size()), CUDA_SUCCESS);
  CUdeviceptr to[] = {b, b + 100'000, b + 200'000},
              from[] = {a + 7, a + 9, reinterpret_cast<CUdeviceptr>(passing.data())};
  std::size_t sizes[] = {50'000, 0, passing.size()}, first[] = {0, 2}, failed_at = 17;
  CUmemcpyAttributes sorts[2] = {};
  sorts[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  sorts[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  // Behind a wait that nobody has ended yet: nothing of the batch is done before it.
  const CUdeviceptr flag = allocate(4096);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(flag, 0, 8), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(b, 0, kMega), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamWaitValue32_v2)(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemcpyBatchAsync)(to, from, sizes, 3, sorts, first, 2, &failed_at, stream), CUDA_SUCCESS);
  std::fill(passing.begin(), passing.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(CUDA(cuStreamQuery)(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(read(b, 1)[0], 0);
  ASSERT_EQ(CUDA(cuMemsetD32_v2)(flag, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(read(b, 50'000), std::vector<unsigned char>(bytes.begin() + 7, bytes.begin() + 50'007));
  EXPECT_EQ(read(b + 100'000, 1)[0], 0) << "no bytes were asked for";
  EXPECT_EQ(read(b + 200'000, kept.size()), kept);
  EXPECT_EQ(failed_at, 17u) << "written when something failed";
  // As of 13.0, without the index.
  sizes[1] = 3;
  sorts[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
  sorts[1].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
  ASSERT_EQ(CUDA(cuMemcpyBatchAsync_v2)(to, from, sizes, 3, sorts, first, 2, stream), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(read(b + 100'000, 3), std::vector<unsigned char>(bytes.begin() + 9, bytes.begin() + 12));
  EXPECT_EQ(read(b + 200'000, 1)[0], 0);
  void* found = nullptr;
  ASSERT_EQ(CUDA(cuGetProcAddress_v2)("cuMemcpyBatchAsync", &found, 12080, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void*>(CUDA(cuMemcpyBatchAsync)));
  ASSERT_EQ(CUDA(cuGetProcAddress_v2)("cuMemcpyBatchAsync", &found, 13000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<void*>(CUDA(cuMemcpyBatchAsync_v2)));
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  for (const CUdeviceptr each : {a, b, flag}) free(each);
}

TEST_F(CudaCopyTest, ABatchThatIsWrongDoesNothingAndSaysWhichCopyItIs) {
  const CUdeviceptr a = allocate(kMega);
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(a, 1, kMega), CUDA_SUCCESS);
  CUdeviceptr to[] = {a, a + 4096}, from[] = {a + 8192, a + kMega - 10};
  std::size_t sizes[] = {100, 100}, first[] = {0, 1}, failed_at = 17;
  CUmemcpyAttributes sorts[2] = {};
  sorts[0].srcAccessOrder = sorts[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  const auto batch = [&](std::size_t count, std::size_t kinds, CUstream on) {
    return CUDA(cuMemcpyBatchAsync)(to, from, sizes, count, sorts, first, kinds, &failed_at, on);
  };
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(a + 8192, 2, 100), CUDA_SUCCESS);
  EXPECT_EQ(batch(2, 2, stream), CUDA_ERROR_INVALID_VALUE) << "the second source leaves its memory";
  EXPECT_EQ(failed_at, 1u);
  EXPECT_EQ(read(a, 1)[0], 1) << "and the first was not begun";
  from[1] = a + 8192;
  const auto refused = [&](const char* why, std::size_t count, std::size_t kinds, CUstream on) {
    failed_at = 17;
    EXPECT_EQ(batch(count, kinds, on), CUDA_ERROR_INVALID_VALUE) << why;
    EXPECT_EQ(failed_at, SIZE_MAX) << why;
  };
  refused("the legacy stream", 2, 2, nullptr);
  refused("no copy", 0, 0, stream);
  refused("no attributes", 2, 0, stream);
  refused("more attributes than copies", 1, 2, stream);
  first[1] = 0;
  refused("attributes twice for one copy", 2, 2, stream);
  first[1] = 2;
  refused("attributes for no copy", 2, 2, stream);
  first[0] = 1;
  refused("the first copy has none", 2, 1, stream);
  first[0] = 0;
  sorts[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  refused("no order", 2, 1, stream);
  sorts[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  sorts[0].flags = 2;
  refused("an unknown flag", 2, 1, stream);
  sorts[0].flags = 0;
  EXPECT_EQ(batch(2, 1, stream), CUDA_SUCCESS) << "one sort for all";
  ASSERT_EQ(CUDA(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(read(a + 4096, 1)[0], 2);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  EXPECT_EQ(batch(2, 1, stream), CUDA_ERROR_INVALID_HANDLE);
  free(a);
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
