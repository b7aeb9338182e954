// SPDX-License-Identifier: Apache-2.0
// What the posting kernels do: each kind of work once with a Lane and once bare. For .cu files.
#pragma once

#include <cstdint>

#include "rings.hpp"
#include "strait/device/lane.hpp"

namespace bench::gpu {

namespace sd = strait::device;
using sd::Sharing;
namespace mlx5 = strait::wire::mlx5;

// One per block, by its thread 0.
struct Span {
  std::uint64_t begin_ns, end_ns, cycles;
  std::uint64_t posted;
};

class Watch {
 public:
  __device__ void start() {
    begin_ = sd::now_ns();
    cycles_ = clock64();
  }
  __device__ void stop() {
    cycles_ = clock64() - cycles_;
    end_ = sd::now_ns();
  }
  __device__ Span span(std::uint64_t posted) const {
    return {begin_, end_, static_cast<std::uint64_t>(cycles_), posted};
  }

 private:
  std::uint64_t begin_ = 0, end_ = 0;
  long long cycles_ = 0;
};

// Every block waits here for the others, so that none works alone at first. A second is enough for any launch: who
// waits longer goes on, and the times show it.
__device__ inline void meet(std::uint64_t* arrived, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    (void)sd::fetch_add<sd::Scope::gpu>(arrived, 1);
    const sd::Deadline deadline = sd::Deadline::after_ns(1000000000);
    while (sd::load_acquire<sd::Scope::gpu>(arrived) < blocks && !deadline.passed()) {
    }
  }
  __syncthreads();
}

// Where entry `at` writes, and what.
__device__ __forceinline__ std::uint64_t offset_of(std::uint64_t at) {
  return (at & 511) * 8;
}
__device__ __forceinline__ std::uint64_t bare_low(const BareRing& ring, std::uint64_t at) {
  return sd::control_low(mlx5::Opcode::rdma_write, 0, at, ring.qpn_shifted, 3);
}
__device__ __forceinline__ void bare_entry(const BareRing& ring, const sd::RemoteRegion& to, std::uint64_t at,
                                           std::uint64_t low, sd::Flags flags) {
  std::uint8_t* const block = ring.blocks + (at & ring.mask) * mlx5::kBlockBytes;
  sd::store_segment(block, low, sd::control_high(flags, strait::wire::be32{0}));
  sd::store_remote(block + 16, {to.address + offset_of(at), to.rkey});
  sd::store_segment(block + 32, strait::wire::be32{mlx5::kInlineFlag | 8u}.raw() | at << 32, at >> 32);
}
// Releases: before the record and before the doorbell, or (1) only the former.
template <unsigned Releases = 2>
__device__ __forceinline__ void bare_show(const BareRing& ring, std::uint64_t next, std::uint64_t low) {
  sd::order_stores_before_dma(sd::Reach::system);
  sd::store_record(ring.record, strait::wire::be32{static_cast<std::uint32_t>(next & mlx5::kIndexMask)}.raw());
  if constexpr (Releases == 2) sd::order_before_doorbell(sd::Reach::system);
  sd::store_doorbell(ring.doorbell, low);
}

// The first lanes of a warp as a group of their own: a block of `Members` threads is launched with them.
template <unsigned Members>
struct Part {
  static constexpr unsigned kMask = Members == 32 ? ~0u : (1u << (Members & 31)) - 1;
  STRAIT_HD_INLINE unsigned rank() const {
#if defined(STRAIT_TARGET_CUDA)
    return threadIdx.x;
#else
    return 0;  // a Lane's functions are compiled for the host too, and never run there
#endif
  }
  STRAIT_HD_INLINE unsigned size() const { return Members; }
  STRAIT_HD_INLINE void sync() const {
#if defined(STRAIT_TARGET_CUDA)
    __syncwarp(kMask);
#endif
  }
  template <class T>
  STRAIT_HD_INLINE T share(T value) const {
#if defined(STRAIT_TARGET_CUDA)
    sd::Words<T> words = sd::to_words(value);
    for (unsigned i = 0; i < sd::Words<T>::kCount; ++i) words.word[i] = __shfl_sync(kMask, words.word[i], 0);
    sd::from_words(words, value);
#endif
    return value;
  }
  STRAIT_HD_INLINE unsigned count(bool yes) const {
#if defined(STRAIT_TARGET_CUDA)
    return static_cast<unsigned>(__popc(__ballot_sync(kMask, yes ? 1 : 0)));
#else
    return yes ? 1 : 0;
#endif
  }
};

struct Work {
  const BareRing* bare;
  const sd::Queue* queues;
  sd::RemoteRegion to;
  std::uint64_t count;   // entries of a block's ring, or of each poster where they share one
  std::uint64_t* taken;  // where bare posters share a ring
};

// ---- One thread ---------------------------------------------------------------------------------------------------

template <unsigned Every>
struct ThreadBare {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    const BareRing ring = work.bare[blockIdx.x];
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += Every) {
      std::uint64_t low = 0;
      for (unsigned k = 0; k < Every; ++k) {
        low = bare_low(ring, i + k);
        bare_entry(ring, work.to, i + k, low, k + 1 == Every ? sd::kSignaled : sd::kNoFlags);
      }
      bare_show(ring, i + Every, low);
    }
    watch.stop();
    return work.count;
  }
};

template <unsigned Every>
struct ThreadOurs {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    sd::Lane<Sharing::one_thread> lane(work.queues[blockIdx.x]);
    std::uint64_t posted = 0;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += Every) {
      if constexpr (Every == 1) {
        posted += lane.put_value(i, work.to, offset_of(i)).ok();
      } else {
        posted += lane.put_values(
                          Every, work.to, [i](std::uint64_t k) { return i + k; },
                          [i](std::uint64_t k) { return offset_of(i + k); })
                          .ok()
                      ? Every
                      : 0;
      }
    }
    watch.stop();
    return posted;
  }
};

// ---- A warp, or part of one, on a queue of its own ------------------------------------------------------------------

template <unsigned Members, unsigned Releases>
struct WarpBare {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    const BareRing ring = work.bare[blockIdx.x];
    const Part<Members> group;
    const unsigned rank = group.rank();
    const sd::Flags flags = rank + 1 == Members ? sd::kSignaled : sd::kNoFlags;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += Members) {
      bare_entry(ring, work.to, i + rank, bare_low(ring, i + rank), flags);
      group.sync();
      if (rank == 0) bare_show<Releases>(ring, i + Members, bare_low(ring, i + Members - 1));
    }
    group.sync();
    watch.stop();
    return work.count;
  }
};

template <unsigned Members>
struct WarpOurs {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    sd::Lane<Sharing::one_thread, Part<Members>> lane(work.queues[blockIdx.x]);
    const unsigned rank = threadIdx.x;
    std::uint64_t posted = 0;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += Members)
      posted += lane.put_value_each(i + rank, work.to, offset_of(i + rank)).ok() ? Members : 0;
    __syncwarp(Part<Members>::kMask);
    watch.stop();
    return posted;
  }
};

// ---- Everybody on one queue -----------------------------------------------------------------------------------------

struct SharedWarpsBare {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    const BareRing ring = work.bare[0];
    const Part<32> group;
    const unsigned rank = group.rank();
    const sd::Flags flags = rank == 31 ? sd::kSignaled : sd::kNoFlags;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += 32) {
      std::uint64_t first = 0;
      if (rank == 0) first = sd::fetch_add<sd::Scope::gpu>(work.taken, 32);
      first = group.share(first);
      bare_entry(ring, work.to, first + rank, bare_low(ring, first + rank), flags);
      group.sync();
      if (rank == 0) bare_show(ring, first + 32, bare_low(ring, first + 31));
    }
    group.sync();
    watch.stop();
    return work.count;
  }
};

// A refusal may mean that there was too much competition: the same again. More often than this is a fault.
inline constexpr unsigned kTries = 1000;

struct SharedWarpsOurs {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    sd::Lane<Sharing::many_threads, sd::Warp> lane(work.queues[0]);
    const std::uint64_t first = blockIdx.x * work.count;
    std::uint64_t posted = 0;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += 32) {
      const std::uint64_t value = first + i + threadIdx.x;
      for (unsigned t = 0; t < kTries; ++t) {
        const bool ok = lane.put_value_each(value, work.to, offset_of(value)).ok();
        posted += ok ? 32 : 0;
        if (ok) break;
      }
    }
    __syncwarp();
    watch.stop();
    return posted;
  }
};

struct SharedThreadsBare {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    const BareRing ring = work.bare[0];
    watch.start();
    for (std::uint64_t i = 0; i < work.count; ++i) {
      const std::uint64_t at = sd::fetch_add<sd::Scope::gpu>(work.taken, 1);
      const std::uint64_t low = bare_low(ring, at);
      bare_entry(ring, work.to, at, low, sd::kSignaled);
      bare_show(ring, at + 1, low);
    }
    __syncthreads();
    watch.stop();
    return work.count * blockDim.x;
  }
};

struct SharedThreadsOurs {
  __device__ static std::uint64_t run(const Work& work, Watch& watch) {
    __shared__ unsigned posted_here;
    if (threadIdx.x == 0) posted_here = 0;
    sd::Lane<Sharing::many_threads> lane(work.queues[0]);
    const std::uint64_t first = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * work.count;
    unsigned posted = 0;
    __syncthreads();
    watch.start();
    for (std::uint64_t i = 0; i < work.count; ++i) {
      for (unsigned t = 0; t < kTries; ++t) {
        const bool ok = lane.put_value(first + i, work.to, offset_of(first + i)).ok();
        posted += ok ? 1 : 0;
        if (ok) break;
      }
    }
    __syncthreads();
    watch.stop();
    atomicAdd(&posted_here, posted);
    __syncthreads();
    return posted_here;
  }
};

template <class Kind>
__global__ void timed(Work work, Span* spans, std::uint64_t* arrived) {
  meet(arrived, gridDim.x);
  Watch watch;
  const std::uint64_t posted = Kind::run(work, watch);
  if (threadIdx.x == 0) spans[blockIdx.x] = watch.span(posted);
}

}  // namespace bench::gpu
