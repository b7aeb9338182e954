// SPDX-License-Identifier: Apache-2.0
// Values that a stream waits for and writes.
#include <gtest/gtest.h>

#include <atomic>

#include "soft/cuda/testing.hpp"

namespace strait::soft::cuda {
namespace {

using testing::kMega;

class CudaMemopsTest : public testing::CudaTest {};

TEST_F(CudaMemopsTest, AStreamWaitsForTheCpuAndOthersGoOn) {
  void* host = nullptr;
  ASSERT_EQ(CUDA(cuMemHostAlloc)(&host, 4096, 0), CUDA_SUCCESS);
  auto* const flags = static_cast<std::uint32_t*>(host);
  const auto at = reinterpret_cast<CUdeviceptr>(host);
  const CUdeviceptr a = allocate(kMega);
  CUstream waiting = nullptr;
  CUstream other = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&waiting, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8Async)(a, 1, kMega, waiting), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamWaitValue32_v2)(waiting, at, 5, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8Async)(a, 2, kMega, waiting), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamWriteValue64_v2)(waiting, at + 8, 77, 0), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8Async)(a + 100, 3, 1, other), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(other), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuStreamQuery)(waiting), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(std::atomic_ref(flags[2]).load(), 0u);
  std::atomic_ref(flags[0]).store(6, std::memory_order_release);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(waiting), CUDA_SUCCESS);
  EXPECT_EQ(std::atomic_ref(flags[2]).load(), 77u);
  EXPECT_EQ(read(a + 100, 1)[0], 2);
  EXPECT_EQ(CUDA(cuStreamWaitValue32_v2)(waiting, at + 1, 5, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA(cuStreamWaitValue32_v2)(waiting, at, 5, 64), CUDA_ERROR_INVALID_VALUE);
  std::uint32_t pageable = 0;
  EXPECT_EQ(CUDA(cuStreamWriteValue32_v2)(waiting, reinterpret_cast<CUdeviceptr>(&pageable), 5, 0),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(waiting), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(other), CUDA_SUCCESS);
  free(a);
  ASSERT_EQ(CUDA(cuMemFreeHost)(host), CUDA_SUCCESS);
}

TEST_F(CudaMemopsTest, SeveralInOneCall) {
  const CUdeviceptr a = allocate(4096);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(a, 0, 4096), CUDA_SUCCESS);
  CUstreamBatchMemOpParams all[3] = {};
  all[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  all[0].writeValue.address = a;
  all[0].writeValue.value = 0xabcd;
  all[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  all[1].waitValue.address = a;
  all[1].waitValue.value = 0xabcd;
  all[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  all[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  all[2].writeValue.address = a + 8;
  all[2].writeValue.value64 = 1;
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamBatchMemOp_v2)(stream, 3, all, 0), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(read(a + 8, 1)[0], 1);
  EXPECT_EQ(CUDA(cuStreamBatchMemOp_v2)(stream, 0, all, 0), CUDA_ERROR_INVALID_VALUE);
  all[0].operation = static_cast<CUstreamBatchMemOpType>(99);
  EXPECT_EQ(CUDA(cuStreamBatchMemOp_v2)(stream, 1, all, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CUDA(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  free(a);
}

TEST_F(CudaMemopsTest, FlushOfWhatANicWrote) {
  EXPECT_EQ(CUDA(cuFlushGPUDirectRDMAWrites)(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                             CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
            CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuFlushGPUDirectRDMAWrites)(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                             static_cast<CUflushGPUDirectRDMAWritesScope>(5)),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace strait::soft::cuda
