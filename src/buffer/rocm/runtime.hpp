// SPDX-License-Identifier: Apache-2.0
// Hsa: libhsa-runtime64.so.1, loaded at run time. Functions that a release may lack are null in the table (Debian 12's
// 5.2.3 has no dma-buf export).
#pragma once

#include <string>

#include "base/error.hpp"
#include "buffer/rocm/abi.hpp"

namespace strait::buffer::rocm {

struct Hsa {
#define STRAIT_HSA_MEMBER(member, symbol, required, type, signature) type(*member) signature = nullptr;
  STRAIT_HSA_FUNCTIONS(STRAIT_HSA_MEMBER)
#undef STRAIT_HSA_MEMBER

  // Loaded once and kept for good. Nothing is initialised yet: whoever opens calls init and shut_down.
  [[nodiscard]] static Result<const Hsa*> get();

  [[nodiscard]] Error failed(HsaStatus status, const std::string& what) const;
};

}  // namespace strait::buffer::rocm
