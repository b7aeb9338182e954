// SPDX-License-Identifier: Apache-2.0
#include "buffer/built_in.hpp"

#include "buffer/cuda/cuda.hpp"
#include "buffer/gaudi/gaudi.hpp"
#include "buffer/host.hpp"
#include "buffer/rocm/rocm.hpp"

namespace strait::buffer {

const strait_provider_ops* built_in_provider(std::string_view kind) {
  if (kind == "host") return host_provider_ops();
  if (kind == "cuda") return cuda_provider_ops();
  if (kind == "rocm") return rocm_provider_ops();
  if (kind == "gaudi") return gaudi_provider_ops();
  return nullptr;
}

}  // namespace strait::buffer
