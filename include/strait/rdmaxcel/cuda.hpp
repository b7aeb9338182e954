// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime behind the few calls that pages.hpp and registry.hpp make. Only for sources that a CUDA compiler
// compiles; the first of them in a program makes CUDA the runtime for all.
#pragma once

#include <cuda_runtime.h>

#include "strait/rdmaxcel/registry.hpp"

namespace strait::rdmaxcel::cuda {

// Where launch_*() puts its kernels. The default stream, as RDMaxcel's: behind the work that made the data.
inline cudaStream_t stream = nullptr;

// A call that fails leaves its error behind for whoever asks next; it has been answered here.
inline int answer(cudaError_t status) {
  if (status != cudaSuccess) (void)cudaGetLastError();
  return static_cast<int>(status);
}

inline int pin(void* begin, std::size_t bytes, bool io) {
  unsigned flags = cudaHostRegisterMapped | cudaHostRegisterPortable;
  if (io) flags |= cudaHostRegisterIoMemory;
  return answer(cudaHostRegister(begin, bytes, flags));
}
inline int unpin(void* begin) {
  return answer(cudaHostUnregister(begin));
}
inline int view(void** out, void* host) {
  return answer(cudaHostGetDevicePointer(out, host, 0));
}

// Shared: managed, so that counters lie with whoever uses them, and move with the queue from side to side.
inline void* allocate(std::size_t bytes, bool shared) {
  void* p = nullptr;
  const cudaError_t status = shared ? cudaMallocManaged(&p, bytes, cudaMemAttachGlobal)
                                    : cudaHostAlloc(&p, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  if (answer(status) != 0) return nullptr;
  std::memset(p, 0, bytes);
  return p;
}
inline void release(void* p, bool shared) {
  (void)answer(shared ? cudaFree(p) : cudaFreeHost(p));
}

inline int settle() {
  return answer(cudaStreamSynchronize(stream));
}

// Every source that includes this has a device_table of its own; each leaves here how to fill it.
struct Copy {
  cudaError_t (*fill)(const Table&);
  Copy* next;
};
inline Copy* copies = nullptr;

inline int publish() {
  for (const Copy* copy = copies; copy != nullptr; copy = copy->next)
    if (const int status = answer(copy->fill(host_table))) return status;
  return 0;
}

[[maybe_unused]] static cudaError_t fill_mine(const Table& from) {
  return cudaMemcpyToSymbol(device_table, &from, sizeof(Table), 0, cudaMemcpyHostToDevice);
}
[[maybe_unused]] static Copy mine{&fill_mine, nullptr};
[[maybe_unused]] static const bool installed = [] {
  mine.next = copies;
  copies = &mine;
  registry.runtime = {.pin = &pin,
                      .unpin = &unpin,
                      .view = &view,
                      .allocate = &allocate,
                      .release = &release,
                      .settle = &settle,
                      .publish = &publish};
  return true;
}();

}  // namespace strait::rdmaxcel::cuda
