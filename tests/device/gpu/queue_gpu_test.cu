// SPDX-License-Identifier: Apache-2.0
// Kernels of two processes that share GPU 0, with device queues over the software ConnectX: by ring grant, by packets,
// and through the proxy to a verbs device in software (Verbs*, under `strait run`). One puts 8 bytes to 1 MiB with a
// signal, the other waits for the signal in its kernel and looks at every word by plain loads, round after round in the
// same place: a line that its L1 cache had kept would show. tests/flow/device_far_test.cpp plays the same on CPU
// threads.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

#include "far_sides.hpp"

namespace far {

inline void must(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

template <class Body>
__global__ void run_body(Body body) {
  body(blockIdx.x, threadIdx.x);
}

class GpuMachine {
 public:
  static constexpr const char* kNear = "cuda:0";
  static constexpr unsigned kThreads = 256;
  static constexpr std::uint64_t kPatienceNs = 10'000'000'000;

  GpuMachine() { must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  GpuMachine(const GpuMachine&) = delete;
  GpuMachine& operator=(const GpuMachine&) = delete;
  ~GpuMachine() {
    (void)cudaStreamDestroy(stream_);
    for (const auto& [address, bytes] : pages_) {
      (void)cudaHostUnregister(address);
      (void)::munmap(address, bytes);
    }
    for (void* const address : own_) (void)cudaFree(address);
  }
  void* own(std::size_t bytes) {
    void* address = nullptr;
    must(cudaMalloc(&address, bytes), "cudaMalloc");
    own_.push_back(address);
    must(cudaMemset(address, 0, bytes), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaMemset");
    return address;
  }
  void* host(std::size_t bytes) {
    void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) throw std::runtime_error("mmap failed");
    pages_.emplace_back(address, bytes);
    must(cudaHostRegister(address, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable), "cudaHostRegister");
    void* there = nullptr;
    must(cudaHostGetDevicePointer(&there, address, 0), "cudaHostGetDevicePointer");
    if (there != address) throw std::runtime_error("the GPU has another address for host memory");
    return address;
  }
  void load(void* to, const void* from, std::size_t bytes) {
    must(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  }
  template <class Body>
  void start(const Body& body) {
    run_body<<<1, kThreads, 0, stream_>>>(body);
    must(cudaGetLastError(), "launch");
    (void)cudaStreamQuery(stream_);  // off it goes
  }
  // Its waits are bounded, and so is it.
  void finish() { must(cudaStreamSynchronize(stream_), "the kernel"); }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<void*> own_;
  std::vector<std::pair<void*, std::size_t>> pages_;
};

TEST_P(Far, EveryRoundIsSeenByPlainLoads) {
  play<GpuMachine>(GetParam());
}

}  // namespace far

int main(int argc, char** argv) {
  return far::run<far::GpuMachine>(argc, argv);
}
