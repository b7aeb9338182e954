// SPDX-License-Identifier: Apache-2.0
// A machine for lane_suite.hpp whose grids run on GPU 0. Shared memory is the host's, mapped; state lies on the GPU.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace suite {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) ADD_FAILURE() << what << ": " << cudaGetErrorString(status);
}

template <class Body>
__global__ void run_body(Body body) {
  body(blockIdx.x, threadIdx.x);
}

class CudaMachine {
 public:
  CudaMachine() = default;
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;
  ~CudaMachine() {
    for (void* p : mapped_) check(cudaFreeHost(p), "cudaFreeHost");
    for (void* p : states_) check(cudaFree(p), "cudaFree");
  }

  std::uint8_t* shared(std::size_t bytes) {
    void* p = nullptr;
    check(cudaHostAlloc(&p, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
    std::memset(p, 0, bytes);
    mapped_.push_back(p);
    void* device = nullptr;
    check(cudaHostGetDevicePointer(&device, p, 0), "cudaHostGetDevicePointer");
    EXPECT_EQ(device, p) << "one address on both sides, as wherever addresses are unified";
    return static_cast<std::uint8_t*>(p);
  }
  void* state(std::size_t bytes) {
    void* p = nullptr;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    check(cudaMemset(p, 0, bytes), "cudaMemset");
    states_.push_back(p);
    return p;
  }
  void store(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "to the GPU");
  }
  void load(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "from the GPU");
  }

  template <class Body>
  void run(unsigned blocks, unsigned threads, const Body& body) {
    run_body<<<blocks, threads>>>(body);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "kernel");
  }

 private:
  std::vector<void*> mapped_, states_;
};

}  // namespace suite
