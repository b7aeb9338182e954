// SPDX-License-Identifier: Apache-2.0
// STRAIT_HD: marks a function that the host and the accelerator compile from one source.
// It lies here and not in device/space.hpp because the formats are below the ring code and need the mark too:
// without it nvcc refuses their constexpr functions in a kernel unless every user passes --expt-relaxed-constexpr.
// __CUDACC__ comes from nvcc or from clang's CUDA headers, __HIP__ from clang itself, whether hipcc calls it or not.
#pragma once

#if defined(__CUDACC__) || defined(__HIP__)
#define STRAIT_HD __host__ __device__
#else
#define STRAIT_HD
#endif
