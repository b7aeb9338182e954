// SPDX-License-Identifier: Apache-2.0
#include "post.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernels.hpp"
#include "peer.hpp"

namespace bench::gpu {
namespace {

__global__ void spin(std::uint64_t ns) {
  const sd::Deadline deadline = sd::Deadline::after_ns(ns);
  while (!deadline.passed()) {
  }
}

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
};

class Bench {
 public:
  Bench(unsigned queues, unsigned log_blocks, Sharing sharing, Grid grid)
      : rings(queues, log_blocks, sharing),
        grid_(grid),
        spans_(grid.blocks * sizeof(Span)),
        arrived_(8),
        found_(grid.blocks) {
    work.bare = rings.bare();
    work.queues = rings.handles();
    work.to = {sd::head_of<sd::RemoteRegion>(), 0x7f0000001000, 4096, 0, 0x2222, 0, 0, 0};
    work.count = rings.blocks();
    work.taken = rings.counter();
  }

  // One launch; nanoseconds per entry, from the first block's start to the last one's end.
  template <class Kind>
  double once() {
    rings.reset();
    arrived_.clear();
    check(cudaDeviceSynchronize(), "before a launch");
    timed<Kind><<<grid_.blocks, grid_.threads>>>(work, spans_.as<Span>(), arrived_.as<std::uint64_t>());
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(found_.data(), spans_.as<void>(), spans_.size(), cudaMemcpyDeviceToHost), "the kernel");
    std::uint64_t begin = ~std::uint64_t{0}, end = 0;
    entries = 0;
    for (const Span& span : found_) {
      begin = std::min(begin, span.begin_ns);
      end = std::max(end, span.end_ns);
      entries += span.posted;
    }
    if (entries != expected()) throw std::runtime_error("a kernel posted less than its share");
    return static_cast<double>(end - begin) / static_cast<double>(entries);
  }

  // The bytes the two leave behind are the same, or they did not do the same work.
  template <class Bare, class Ours>
  void same_bytes() {
    rings.wipe();
    (void)once<Bare>();
    const std::vector<std::byte> bare = rings.contents();
    rings.wipe();
    (void)once<Ours>();
    if (bare != rings.contents()) throw std::runtime_error("ours and bare leave different rings");
  }
  // Where the order is open: every slot was written once, and the record covers all.
  template <class Ours>
  void whole_ring() {
    rings.wipe();
    (void)once<Ours>();
    for (std::uint64_t i = 0; i < entries; ++i) {
      mlx5::CtrlSeg control;
      std::memcpy(&control, rings.ring_here(0) + 64 * i, sizeof control);
      if (control.index() != i || control.opcode() != mlx5::Opcode::rdma_write)
        throw std::runtime_error("a shared ring has a hole");
    }
    if (rings.record_here(0) != (entries & mlx5::kIndexMask)) throw std::runtime_error("a doorbell was lost");
  }

  // `beside(out)` runs once with every pair.
  template <class Bare, class Ours, class Beside>
  Launches pairs(unsigned launches, Beside&& beside) {
    Launches out;
    (void)once<Bare>();
    (void)once<Ours>();
    for (unsigned i = 0; i < launches; ++i) {
      if (i % 2 == 0) out.bare.push_back(once<Bare>());
      out.ours.push_back(once<Ours>());
      out.ours_cycles.push_back(static_cast<double>(found_[0].cycles) / static_cast<double>(found_[0].posted));
      if (i % 2 != 0) out.bare.push_back(once<Bare>());
      beside(out);
    }
    return out;
  }
  template <class Bare, class Ours>
  Launches pairs(unsigned launches) {
    return pairs<Bare, Ours>(launches, [](Launches&) {});
  }

  std::uint64_t expected() const {
    return rings.queues() == 1 && posters_ != 1 ? work.count * posters_ : work.count * rings.queues();
  }
  // So many share the one ring.
  void share(unsigned posters, unsigned unit) {
    posters_ = posters;
    work.count = rings.blocks() / posters / unit * unit;
  }

  Rings rings;
  Work work{};
  std::uint64_t entries = 0;

 private:
  Grid grid_;
  unsigned posters_ = 1;
  DeviceMemory spans_;
  DeviceMemory arrived_;
  std::vector<Span> found_;
};

template <unsigned Every>
Launches thread_pairs(unsigned launches) {
  Bench bench(1, 12, Sharing::one_thread, {1, 1});
  bench.same_bytes<ThreadBare<Every>, ThreadOurs<Every>>();
  const BareRing bare = bench.rings.bare_of(0);
  const PeerRing ring{bare.blocks, bare.record - 1, bare.doorbell, static_cast<std::uint32_t>(bench.rings.blocks()),
                      Rings::kFirstQpn};
  return bench.pairs<ThreadBare<Every>, ThreadOurs<Every>>(launches, [&](Launches& out) {
    if (Every != 1 || rdmaxcel().post == nullptr) return;
    out.peer.push_back(rdmaxcel().post(ring, 0));
    out.peer_fenced.push_back(rdmaxcel().post(ring, 1));
    if (out.peer.back() < 0 || out.peer_fenced.back() < 0) throw std::runtime_error("the peer's kernel failed");
  });
}

template <unsigned Members>
Launches warp_pairs(unsigned warps, unsigned log_blocks, unsigned launches) {
  Bench bench(warps, log_blocks, Sharing::one_thread, {warps, Members});
  bench.same_bytes<WarpBare<Members, 2>, WarpOurs<Members>>();
  return bench.pairs<WarpBare<Members, 2>, WarpOurs<Members>>(
      launches, [&](Launches& out) { out.one_release.push_back(bench.once<WarpBare<Members, 1>>()); });
}

}  // namespace

Launches post_by_thread(unsigned every, unsigned launches) {
  if (every == 1) return thread_pairs<1>(launches);
  if (every == 8) return thread_pairs<8>(launches);
  return thread_pairs<64>(launches);
}

Launches post_by_warp(unsigned members, unsigned launches) {
  return members == 8 ? warp_pairs<8>(1, 12, launches) : warp_pairs<32>(1, 12, launches);
}

Launches post_by_warps(unsigned warps, unsigned launches) {
  return warp_pairs<32>(warps, 10, launches);
}

Launches share_by_warps(unsigned warps, unsigned launches) {
  Bench bench(1, 15, Sharing::many_threads, {warps, 32});
  bench.share(warps, 32);
  bench.whole_ring<SharedWarpsOurs>();
  return bench.pairs<SharedWarpsBare, SharedWarpsOurs>(launches);
}

Launches share_by_threads(unsigned blocks, unsigned threads, unsigned launches) {
  Bench bench(1, 14, Sharing::many_threads, {blocks, threads});
  bench.share(blocks * threads, 1);
  bench.whole_ring<SharedThreadsOurs>();
  return bench.pairs<SharedThreadsBare, SharedThreadsOurs>(launches);
}

std::string describe_gpu() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  return std::string(properties.name) + ", " + std::to_string(properties.multiProcessorCount) + " SMs, driver " +
         version(driver) + ", runtime " + version(runtime);
}

void warm_up() {
  spin<<<1, 1>>>(300000000);
  check(cudaDeviceSynchronize(), "the first kernel");
}

}  // namespace bench::gpu
