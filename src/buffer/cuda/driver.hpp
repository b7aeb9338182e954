// SPDX-License-Identifier: Apache-2.0
// Driver: libcuda.so.1, loaded at run time. Functions that a driver may lack are null in the table.
#pragma once

#include <string>

#include "base/error.hpp"
#include "buffer/cuda/abi.hpp"

namespace strait::buffer::cuda {

struct Driver {
#define STRAIT_CUDA_MEMBER(member, name, version, symbol, required, signature) CuResult(*member) signature = nullptr;
  STRAIT_CUDA_FUNCTIONS(STRAIT_CUDA_MEMBER)
#undef STRAIT_CUDA_MEMBER

  int version = 0;  // 13000: what the driver implements

  // Loaded once and kept for good: the driver has threads and handlers of its own. Code::unsupported names what is
  // missing. cuInit has been called and there is at least one device.
  [[nodiscard]] static Result<const Driver*> get();

  // "CUDA_ERROR_OUT_OF_MEMORY (2)".
  [[nodiscard]] std::string name_of(CuResult result) const;
  // The sentence for a failed call: `what` is "export 4096 bytes at 0x..". Codes are told apart by what helps.
  [[nodiscard]] Error failed(CuResult result, const std::string& what) const;
  [[nodiscard]] std::string version_text() const;  // "CUDA 13.0"
};

}  // namespace strait::buffer::cuda
