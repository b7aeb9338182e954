// SPDX-License-Identifier: Apache-2.0
// Threads that do one thing together: a thread alone, a warp, a block. Every call of a group is made by all its
// members.
//
// A member knows its rank; rank 0 acts for all where one must. sync() also makes what members stored before it visible
// to the other members after it. On a CPU a warp or block exists where cpu_grid.hpp runs a grid; elsewhere each is one
// thread.
#pragma once

#include <cstdint>

#include "strait/device/order.hpp"
#include "strait/device/space.hpp"

#if !defined(STRAIT_TARGET_CUDA) && !defined(STRAIT_TARGET_AMD)
#include "strait/device/cpu_member.hpp"
#endif

namespace strait::device {

// How a value travels from one member to the others: as words.
template <class T>
struct Words {
  static constexpr unsigned kCount = (sizeof(T) + 3) / 4;
  std::uint32_t word[kCount];
};
template <class T>
STRAIT_HD_INLINE Words<T> to_words(const T& value) {
  Words<T> out{};
  __builtin_memcpy(out.word, &value, sizeof(T));
  return out;
}
template <class T>
STRAIT_HD_INLINE void from_words(const Words<T>& in, T& value) {
  __builtin_memcpy(&value, in.word, sizeof(T));
}

struct Thread {
  STRAIT_HD_INLINE unsigned rank() const { return 0; }
  STRAIT_HD_INLINE unsigned size() const { return 1; }
  STRAIT_HD_INLINE void sync() const {}
  // What rank 0 gave.
  template <class T>
  STRAIT_HD_INLINE T share(const T& value) const {
    return value;
  }
  // How many members said yes.
  STRAIT_HD_INLINE unsigned count(bool yes) const { return yes ? 1 : 0; }
};
// A group whose members cannot have been told different things, since there is one.
template <class G>
inline constexpr bool kAlone = false;
template <>
inline constexpr bool kAlone<Thread> = true;

#if defined(STRAIT_TARGET_CUDA)

// All 32 lanes of a warp, converged.
struct Warp {
  STRAIT_HD_INLINE unsigned rank() const {
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  STRAIT_HD_INLINE unsigned size() const { return 32; }
  STRAIT_HD_INLINE void sync() const { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
  template <class T>
  STRAIT_HD_INLINE T share(T value) const {
    Words<T> words = to_words(value);
    for (unsigned i = 0; i < Words<T>::kCount; ++i)
      asm volatile("shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;"
                   : "=r"(words.word[i])
                   : "r"(words.word[i])
                   : "memory");
    from_words(words, value);
    return value;
  }
  STRAIT_HD_INLINE unsigned count(bool yes) const {
    unsigned all;
    asm volatile(
        "{ .reg .pred p; .reg .b32 m; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 m, p, 0xffffffff; popc.b32 %0, m; }"
        : "=r"(all)
        : "r"(yes ? 1u : 0u)
        : "memory");
    return all;
  }
};

struct Block {
  STRAIT_HD_INLINE unsigned rank() const {
    unsigned x, y, z, nx, ny;
    asm("mov.u32 %0, %%tid.x;" : "=r"(x));
    asm("mov.u32 %0, %%tid.y;" : "=r"(y));
    asm("mov.u32 %0, %%tid.z;" : "=r"(z));
    asm("mov.u32 %0, %%ntid.x;" : "=r"(nx));
    asm("mov.u32 %0, %%ntid.y;" : "=r"(ny));
    return x + nx * (y + ny * z);
  }
  STRAIT_HD_INLINE unsigned size() const {
    unsigned nx, ny, nz;
    asm("mov.u32 %0, %%ntid.x;" : "=r"(nx));
    asm("mov.u32 %0, %%ntid.y;" : "=r"(ny));
    asm("mov.u32 %0, %%ntid.z;" : "=r"(nz));
    return nx * ny * nz;
  }
  STRAIT_HD_INLINE void sync() const { asm volatile("bar.sync 0;" ::: "memory"); }
  STRAIT_HD_INLINE unsigned count(bool yes) const {
    unsigned all;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; bar.red.popc.u32 %0, 0, p; }"
                 : "=r"(all)
                 : "r"(yes ? 1u : 0u)
                 : "memory");
    return all;
  }
  template <class T>
  __device__ T share(T value) const {
    __shared__ Words<T> box;
    sync();  // the box may still be read by a slower member of the share before this one
    if (rank() == 0) box = to_words(value);
    sync();
    from_words(box, value);
    return value;
  }
};

#elif defined(STRAIT_TARGET_AMD)

// All lanes of a wavefront, converged: 64 on the CDNA GPUs this is compiled for.
struct Warp {
  STRAIT_HD_INLINE unsigned rank() const { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
  STRAIT_HD_INLINE unsigned size() const { return __AMDGCN_WAVEFRONT_SIZE; }
  STRAIT_HD_INLINE void sync() const {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
  }
  template <class T>
  STRAIT_HD_INLINE T share(T value) const {
    Words<T> words = to_words(value);
    for (unsigned i = 0; i < Words<T>::kCount; ++i)
      words.word[i] = static_cast<std::uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(words.word[i])));
    from_words(words, value);
    return value;
  }
  STRAIT_HD_INLINE unsigned count(bool yes) const {
    constexpr int kNotEqual = 33;
    return static_cast<unsigned>(__builtin_popcountll(__builtin_amdgcn_uicmp(yes ? 1u : 0u, 0u, kNotEqual)));
  }
};

struct Block {
  STRAIT_HD_INLINE unsigned rank() const {
    return __builtin_amdgcn_workitem_id_x() +
           __builtin_amdgcn_workgroup_size_x() *
               (__builtin_amdgcn_workitem_id_y() +
                __builtin_amdgcn_workgroup_size_y() * __builtin_amdgcn_workitem_id_z());
  }
  STRAIT_HD_INLINE unsigned size() const {
    return static_cast<unsigned>(__builtin_amdgcn_workgroup_size_x()) * __builtin_amdgcn_workgroup_size_y() *
           __builtin_amdgcn_workgroup_size_z();
  }
  STRAIT_HD_INLINE void sync() const {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  template <class T>
  __device__ T share(T value) const {
    __shared__ Words<T> box;
    sync();  // the box may still be read by a slower member of the share before this one
    if (rank() == 0) box = to_words(value);
    sync();
    from_words(box, value);
    return value;
  }
  __device__ unsigned count(bool yes) const {
    __shared__ unsigned box;
    sync();
    if (rank() == 0) box = 0;
    sync();
    if (yes) (void)__hip_atomic_fetch_add(&box, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    sync();
    return box;
  }
};

#else

// nvcc compiles these for the host only, and is told so where it would ask.
#if defined(__NVCC__)
#define STRAIT_HOST_BODY _Pragma("nv_exec_check_disable")
#else
#define STRAIT_HOST_BODY
#endif

struct Warp {
  STRAIT_HOST_BODY STRAIT_HD unsigned rank() const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->lane : 0;
  }
  STRAIT_HOST_BODY STRAIT_HD unsigned size() const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->warp->size : 1;
  }
  STRAIT_HOST_BODY STRAIT_HD void sync() const {
    if (const CpuMember* const here = CpuMember::current()) here->warp->arrive_and_wait();
  }
  STRAIT_HOST_BODY template <class T>
  STRAIT_HD T share(const T& value) const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->warp->share(here->lane, value) : value;
  }
  STRAIT_HOST_BODY STRAIT_HD unsigned count(bool yes) const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->warp->count(yes) : (yes ? 1 : 0);
  }
};

struct Block {
  STRAIT_HOST_BODY STRAIT_HD unsigned rank() const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->thread : 0;
  }
  STRAIT_HOST_BODY STRAIT_HD unsigned size() const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->block->size : 1;
  }
  STRAIT_HOST_BODY STRAIT_HD void sync() const {
    if (const CpuMember* const here = CpuMember::current()) here->block->arrive_and_wait();
  }
  STRAIT_HOST_BODY template <class T>
  STRAIT_HD T share(const T& value) const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->block->share(here->thread, value) : value;
  }
  STRAIT_HOST_BODY STRAIT_HD unsigned count(bool yes) const {
    const CpuMember* const here = CpuMember::current();
    return here != nullptr ? here->block->count(yes) : (yes ? 1 : 0);
  }
};
#undef STRAIT_HOST_BODY

#endif

}  // namespace strait::device
