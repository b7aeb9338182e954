// SPDX-License-Identifier: Apache-2.0
// Which machine is this code being compiled for? The only place that asks; order.hpp and clock.hpp hold the answers.
#pragma once

#include "strait/wire/target.hpp"

// nvcc compiles every source twice. __CUDA_ARCH__ exists only in the pass that makes GPU code.
#if defined(__CUDA_ARCH__)
#define STRAIT_TARGET_CUDA 1
#elif defined(__HIP_DEVICE_COMPILE__) && __HIP_DEVICE_COMPILE__
#error "strait/device: AMD GPUs have no ordering leaves yet; compile this source for the host or for CUDA"
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
#if defined(__CUDACC__)
#define STRAIT_HD_INLINE STRAIT_HD __forceinline__
#else
#define STRAIT_HD_INLINE STRAIT_HD inline __attribute__((always_inline))
#endif

namespace strait::device {

// one_thread: the ring has one owner; plain counters, no locked instruction.
// many_threads: any number of posters; atomics, and a side array of marks.
enum class Sharing { one_thread, many_threads };

inline constexpr unsigned kDeviceAbiVersion = 1;

}  // namespace strait::device
