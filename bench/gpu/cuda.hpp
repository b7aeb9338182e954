// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime as far as the benchmark needs it: failures are exceptions, memory has an owner.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace bench::gpu {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// GPU memory, zeroed.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&memory_, bytes), "cudaMalloc");
    clear();
  }
  DeviceMemory(DeviceMemory&& o) noexcept
      : memory_(std::exchange(o.memory_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~DeviceMemory() { (void)cudaFree(memory_); }

  void clear() { check(cudaMemset(memory_, 0, bytes_), "cudaMemset"); }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  std::size_t size() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// Whole pages of host memory, zeroed, that kernels reach.
class HostPages {
 public:
  explicit HostPages(std::size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage) {
    memory_ = std::aligned_alloc(kPage, bytes_);
    if (memory_ == nullptr) throw std::bad_alloc();
    std::memset(memory_, 0, bytes_);
    check(cudaHostRegister(memory_, bytes_, cudaHostRegisterMapped | cudaHostRegisterPortable), "cudaHostRegister");
    check(cudaHostGetDevicePointer(&there_, memory_, 0), "cudaHostGetDevicePointer");
  }
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;
  ~HostPages() {
    (void)cudaHostUnregister(memory_);
    std::free(memory_);
  }

  void clear() { std::memset(memory_, 0, bytes_); }
  std::byte* here() const { return static_cast<std::byte*>(memory_); }
  std::byte* there() const { return static_cast<std::byte*>(there_); }  // a kernel's address of it
  std::size_t size() const { return bytes_; }

 private:
  static constexpr std::size_t kPage = 4096;
  void* memory_ = nullptr;
  void* there_ = nullptr;
  std::size_t bytes_;
};

}  // namespace bench::gpu
