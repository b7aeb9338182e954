// SPDX-License-Identifier: Apache-2.0
// RDMaxcel as it is: its source is included whole, so that its device functions may be inlined into the loop, which is
// the best that can happen to them. Our headers come first; its own redefine a keyword.
#include "peer.hpp"

#include <pthread.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "rdmaxcel.cu"

namespace {

__device__ std::uint64_t peer_now_ns() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

// An 8-byte write: it has no inline form, so the payload is named by address and key.
__host__ __device__ wqe_params_t peer_write(const bench::gpu::PeerRing& ring, std::uint64_t at) {
  wqe_params_t params{};
  params.laddr = 0x7f0000002000;
  params.lkey = 0x1111;
  params.length = 8;
  params.wr_id = at;
  params.signaled = true;
  params.op_type = 8;  // an RDMA write
  params.raddr = 0x7f0000001000;
  params.rkey = 0x2222;
  params.qp_num = ring.qpn;
  params.buf = ring.blocks;
  params.dbrec = ring.record;
  params.wqe_cnt = ring.count;
  return params;
}

template <bool Fenced>
__global__ void peer_fill(bench::gpu::PeerRing ring, std::uint64_t* out) {
  const std::uint64_t begin = peer_now_ns();
  for (std::uint32_t i = 0; i < ring.count; ++i) {
    send_wqe(peer_write(ring, i));
    if (Fenced) __threadfence_system();
    db_ring(ring.doorbell, ring.blocks + 64 * static_cast<std::uint64_t>(i));
  }
  *out = peer_now_ns() - begin;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) double strait_bench_peer_post(const bench::gpu::PeerRing& ring,
                                                                                int fenced) {
  std::uint64_t* there = nullptr;
  std::uint64_t ns = 0;
  if (cudaMalloc(&there, sizeof ns) != cudaSuccess) return -1;
  if (fenced != 0)
    peer_fill<true><<<1, 1>>>(ring, there);
  else
    peer_fill<false><<<1, 1>>>(ring, there);
  const cudaError_t status = cudaMemcpy(&ns, there, sizeof ns, cudaMemcpyDeviceToHost);
  (void)cudaFree(there);
  return status == cudaSuccess ? static_cast<double>(ns) / ring.count : -1;
}

extern "C" __attribute__((visibility("default"))) double strait_bench_peer_launch(const bench::gpu::PeerRing& ring,
                                                                                  unsigned times) {
  (void)cudaDeviceSynchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < times; ++i) {
    const std::uint64_t at = i % ring.count;
    launch_send_wqe(peer_write(ring, at));
    launch_db_ring(ring.doorbell, ring.blocks + 64 * at);
  }
  if (cudaDeviceSynchronize() != cudaSuccess) return -1;
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / times;
}
