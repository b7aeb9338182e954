// SPDX-License-Identifier: Apache-2.0
// Memory of CUDA's device 0 and a dma-buf of it, by the driver's own calls.
#pragma once

#include <dlfcn.h>

#include <cstddef>

#include "verbs_objects.hpp"

namespace strait::interop {

class CudaMemory {
 public:
  explicit CudaMemory(std::size_t bytes) : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    require(library_ != nullptr, "libcuda.so.1");
    int (*init)(unsigned) = nullptr;
    int (*retain)(void**, int) = nullptr;
    int (*set_current)(void*) = nullptr;
    int (*alloc)(Address*, std::size_t) = nullptr;
    int (*handle)(void*, Address, std::size_t, int, unsigned long long) = nullptr;
    get(init, "cuInit");
    get(retain, "cuDevicePrimaryCtxRetain");
    get(set_current, "cuCtxSetCurrent");
    get(alloc, "cuMemAlloc_v2");
    get(handle, "cuMemGetHandleForAddressRange");
    get(free_, "cuMemFree_v2");
    get(to_host_, "cuMemcpyDtoH_v2");
    void* context = nullptr;
    require(init(0) == 0 && retain(&context, 0) == 0 && set_current(context) == 0, "a context on the GPU");
    require(alloc(&address_, bytes) == 0, "memory on the GPU");
    require(handle(&fd_, address_, bytes, kDmabuf, 0) == 0, "the driver makes a descriptor");
  }
  ~CudaMemory() {
    ::close(fd_);
    require(free_(address_) == 0, "the memory of the GPU goes");
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // By the GPU's copy engine: what lies there, however a CPU sees it.
  void read(void* to, std::size_t offset, std::size_t bytes) const {
    require(to_host_(to, address_ + offset, bytes) == 0, "the GPU copies");
  }

 private:
  using Address = unsigned long long;
  static constexpr int kDmabuf = 1;

  template <class Function>
  void get(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    require(function != nullptr, name);
  }

  void* library_;
  int (*free_)(Address) = nullptr;
  int (*to_host_)(void*, Address, std::size_t) = nullptr;
  Address address_ = 0;
  int fd_ = -1;
};

}  // namespace strait::interop
