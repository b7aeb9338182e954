// SPDX-License-Identifier: Apache-2.0
// Starts a body as a kernel, or on CPU threads, and fetches its answers. Memory that both can work on. For .cu files.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "bodies.hpp"
#include "cuda.hpp"
#include "strait/device/cpu_grid.hpp"

namespace bench::gpu {

enum class Near { gpu, host };

// Whole pages, shared with other processes where there is a descriptor, known to the GPU if there is one.
class Pages {
 public:
  Pages(Near near, std::size_t bytes, int fd = -1) : near_(near), bytes_((bytes + 4095) / 4096 * 4096) {
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    there_ = memory_;
    if (near_ == Near::host) return;
    check(cudaHostRegister(memory_, bytes_, cudaHostRegisterMapped | cudaHostRegisterPortable), "cudaHostRegister");
    check(cudaHostGetDevicePointer(&there_, memory_, 0), "cudaHostGetDevicePointer");
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (near_ == Near::gpu) (void)cudaHostUnregister(memory_);
    (void)::munmap(memory_, bytes_);
  }
  void* here() const { return memory_; }
  template <class T>
  T* there() const {  // by a kernel's addresses
    return static_cast<T*>(there_);
  }
  std::size_t size() const { return bytes_; }

 private:
  Near near_;
  std::size_t bytes_;
  void* memory_ = nullptr;
  void* there_ = nullptr;
};

// Memory of the device; where that is the host, plain memory.
class Own {
 public:
  Own(Near near, std::size_t bytes) : near_(near), bytes_(bytes) {
    if (near == Near::gpu)
      device_ = DeviceMemory(bytes);
    else
      host_ = std::make_unique<Pages>(near, bytes);
  }
  void* address() const { return near_ == Near::gpu ? device_.as<void>() : host_->here(); }
  std::size_t size() const { return bytes_; }
  void write(const void* from) { copy(address(), from, cudaMemcpyHostToDevice); }
  void read(void* into) const { copy(into, address(), cudaMemcpyDeviceToHost); }

 private:
  void copy(void* to, const void* from, cudaMemcpyKind kind) const {
    if (near_ == Near::gpu)
      check(cudaMemcpy(to, from, bytes_, kind), "cudaMemcpy");
    else
      std::memcpy(to, from, bytes_);
  }
  Near near_;
  std::size_t bytes_;
  DeviceMemory device_;
  std::unique_ptr<Pages> host_;
};

template <class Body>
__global__ void run_body(Body body, Answer* answers) {
  const Answer answer = body.run(blockIdx.x);
  if (threadIdx.x == 0) answers[blockIdx.x] = answer;
}

class Runner {
 public:
  explicit Runner(Near near, unsigned most_blocks) : near_(near), answers_(near, most_blocks * sizeof(Answer)) {
    if (near_ == Near::gpu) check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() {
    if (near_ == Near::gpu) (void)cudaStreamDestroy(stream_);
  }

  template <class Body>
  void start(const Body& body, unsigned blocks, unsigned threads) {
    blocks_ = blocks;
    if (near_ == Near::gpu) {
      run_body<<<blocks, threads, 0, stream_>>>(body, answers_.there<Answer>());
      check(cudaGetLastError(), "launch");
      (void)cudaStreamQuery(stream_);  // off it goes
      return;
    }
    Answer* const answers = answers_.there<Answer>();
    done_ = std::async(std::launch::async, [body, answers, blocks] {
      strait::device::run_on_cpu({blocks, 1, 1}, [&](unsigned block, unsigned) { answers[block] = body.run(block); });
    });
  }
  // Throws unless every block did its share and was answered with ok.
  std::vector<Answer> finish(std::uint64_t done_each) {
    if (near_ == Near::gpu)
      check(cudaStreamSynchronize(stream_), "the kernel");
    else
      done_.get();
    const Answer* const answers = static_cast<const Answer*>(answers_.here());
    std::vector<Answer> out(answers, answers + blocks_);
    for (const Answer& answer : out) {
      if (answer.waited != 0) throw std::runtime_error(ending(answer));
      if (answer.wrong != 0) throw std::runtime_error(std::to_string(answer.wrong) + " payloads were wrong");
      if (answer.done != done_each) throw std::runtime_error("a block did less than its share");
    }
    return out;
  }
  // From the first block's begin to the last one's end.
  static double elapsed_ns(const std::vector<Answer>& answers) {
    std::uint64_t begin = ~std::uint64_t{0}, end = 0;
    for (const Answer& answer : answers) {
      begin = std::min(begin, answer.begin_ns);
      end = std::max(end, answer.end_ns);
    }
    return static_cast<double>(end - begin);
  }

 private:
  static std::string ending(const Answer& answer) {
    constexpr const char* kWords[] = {"ok", "a deadline passed", "an error or a refusal", "other", "aborted"};
    return std::string(kWords[std::min<std::uint32_t>(answer.waited, 4)]) + " after " + std::to_string(answer.done);
  }
  Near near_;
  Pages answers_;
  cudaStream_t stream_ = nullptr;
  unsigned blocks_ = 0;
  std::future<void> done_;
};

}  // namespace bench::gpu
