// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/cuda.hpp"

#include "buffer/cuda/provider.hpp"
#include "buffer/face.hpp"

namespace strait::buffer {

const strait_provider_ops* cuda_provider_ops() {
  static const strait_provider_ops ops = Face<cuda::CudaProvider>::ops("cuda");
  return &ops;
}

}  // namespace strait::buffer
