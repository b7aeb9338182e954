// SPDX-License-Identifier: Apache-2.0
// Which machine is this code being compiled for? The only place that asks; order.hpp and clock.hpp hold the answers.
#pragma once

#include "strait/wire/target.hpp"

// GPU compilers read every source twice. __CUDA_ARCH__ and __HIP_DEVICE_COMPILE__ exist only where GPU code is made.
#if defined(STRAIT_TARGET_MODEL)
// Leaves from the header this names: for tests that explore every order.
#elif defined(__CUDA_ARCH__)
#define STRAIT_TARGET_CUDA 1
// fence.acquire and fence.release need PTX 8.6. clang says nowhere which version it writes (16: 7.8): it does without.
#if __CUDA_ARCH__ >= 900 && defined(__CUDACC_VER_MAJOR__) && \
    (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 7))
#define STRAIT_ONE_SIDED_FENCES 1
#endif
#elif defined(__HIP_DEVICE_COMPILE__) && __HIP_DEVICE_COMPILE__
#define STRAIT_TARGET_AMD 1
#elif defined(__x86_64__)
#define STRAIT_TARGET_X86 1
#elif defined(__aarch64__)
#define STRAIT_TARGET_ARM64 1
#else
#error "strait/device: this target has no ordering leaves; write them in order.hpp and clock.hpp"
#endif

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "strait/device: segments are composed as little-endian words; a big-endian target needs its own composition"
#endif

// Forced, because the length of a small inline payload is usually a constant that folds only if the post is inlined.
#if defined(__CUDACC__) && !defined(__clang__)
#define STRAIT_HD_INLINE STRAIT_HD __forceinline__
#else
#define STRAIT_HD_INLINE STRAIT_HD inline __attribute__((always_inline))
#endif
// A loop over a few words. g++ at -O2 leaves it a loop, and then the words go through memory.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define STRAIT_UNROLL _Pragma("GCC unroll 16")
#else
#define STRAIT_UNROLL
#endif
// What is off the usual way. A CPU calls it, so that the usual way has the registers to itself; on a GPU a call costs
// more than that, and stack.
#if defined(__CUDACC__) || defined(__HIP__)
#define STRAIT_HD_SELDOM STRAIT_HD_INLINE
#else
#define STRAIT_HD_SELDOM STRAIT_HD inline __attribute__((noinline))
#endif

namespace strait::device {

// Who posts to a ring. It chooses whether counters are atomic, and on a GPU how far those atomics must be seen.
// one_thread: one owner; plain counters, no locked instruction.
// one_block: the threads of one block of a grid. On a CPU the same as many_threads.
// many_threads: any number of posters on one side, CPU or GPU.
// Both of the latter need a side array of marks.
enum class Sharing : unsigned { one_thread, one_block, many_threads };

enum class Scope { block, gpu, system };

// A queue is posted to from one side, so the GPU is as far as its counters have to be seen.
template <Sharing S>
inline constexpr Scope kScope = S == Sharing::one_block ? Scope::block : Scope::gpu;

// How far the stores a NIC will read have to travel. gpu: ring, record and payload all lie in this GPU's memory, where
// a NIC's reads are answered by the same cache that took the stores. Not on AMD, where this is the same as system.
// cpu: a software NIC on this machine's processors reads ring, record and doorbell, all of them ordinary memory.
enum class Reach : unsigned { system, gpu, cpu };

inline constexpr unsigned kDeviceAbiVersion = 1;

}  // namespace strait::device
