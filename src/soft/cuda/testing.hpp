// SPDX-License-Identifier: Apache-2.0
// What the tests of the software driver share: the library itself, loaded as programs load it, and its functions by
// name.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "soft/cuda/api.h"
#include "sys/library.hpp"

namespace strait::soft::cuda {

int say_visible(const char* chosen);  // visible_test.cpp

}  // namespace strait::soft::cuda

namespace strait::soft::cuda::testing {

inline constexpr std::size_t kMega = std::size_t{1} << 20;
inline constexpr std::size_t kStep = 2 * kMega;  // of virtual memory management

// Two devices of 64 MiB.
inline const sys::Library& library() {
  static const sys::Library loaded = [] {
    ::setenv("STRAIT_SOFT_ACCELERATORS", "cuda:2x64M", 0);
    return sys::Library::open(STRAIT_STAND_INS "/libcuda.so.1").value();
  }();
  return loaded;
}

template <class Function>
Function* call_named(const char* name) {
  const auto found = library().symbol<Function*>(name);
  if (!found) ADD_FAILURE() << found.error().text;
  return found ? *found : nullptr;
}
// CUDA(cuMemAlloc_v2)(&address, 100): typed by api.h, found by dlsym.
#define CUDA(function) (::strait::soft::cuda::testing::call_named<decltype(function)>(#function))

// With the primary context of device 0 current.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUDA(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CUDA(cuDevicePrimaryCtxRetain)(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(CUDA(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
    free_before_ = free_bytes();
  }
  void TearDown() override {
    EXPECT_EQ(free_bytes(), free_before_);
    EXPECT_EQ(CUDA(cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
    int active = -1;
    unsigned flags = 0;
    EXPECT_EQ(CUDA(cuDevicePrimaryCtxGetState)(0, &flags, &active), CUDA_SUCCESS);
    EXPECT_EQ(active, 0);
  }

  static std::size_t free_bytes() {
    std::size_t free = 0;
    EXPECT_EQ(CUDA(cuMemGetInfo_v2)(&free, nullptr), CUDA_SUCCESS);
    return free;
  }
  static CUdeviceptr allocate(std::size_t length_bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, length_bytes), CUDA_SUCCESS);
    return address;
  }
  static void free(CUdeviceptr address) { EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_SUCCESS); }
  template <class T>
  static T attribute(CUpointer_attribute which, CUdeviceptr address) {
    T value{};
    EXPECT_EQ(CUDA(cuPointerGetAttribute)(&value, which, address), CUDA_SUCCESS) << "attribute " << which;
    return value;
  }
  static int export_range(CUdeviceptr address, std::size_t length_bytes, CUresult expected = CUDA_SUCCESS,
                          unsigned long long flags = 0) {
    int fd = -1;
    EXPECT_EQ(
        CUDA(cuMemGetHandleForAddressRange)(&fd, address, length_bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, flags),
        expected);
    return fd;
  }
  static std::vector<unsigned char> read(CUdeviceptr address, std::size_t length_bytes) {
    std::vector<unsigned char> bytes(length_bytes);
    EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(bytes.data(), address, length_bytes), CUDA_SUCCESS);
    return bytes;
  }

  CUcontext context_ = nullptr;
  std::size_t free_before_ = 0;
};

}  // namespace strait::soft::cuda::testing
