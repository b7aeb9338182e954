// SPDX-License-Identifier: Apache-2.0
// CUDA's words for a clang that has no CUDA beside it (the lane `gpu`). clang knows the attributes; their names are in
// headers of NVIDIA's, which Debian does not carry.
#pragma once

#define __CUDACC__ 1
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
