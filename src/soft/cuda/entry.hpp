// SPDX-License-Identifier: Apache-2.0
// How every call begins: is there a driver, is there a current context; and how it ends: nothing thrown leaves.
#pragma once

#include <exception>
#include <new>

#include "soft/cuda/api.h"
#include "soft/cuda/driver.hpp"

namespace strait::soft::cuda {

template <class Body>
CUresult guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// body(Driver&)
template <class Body>
CUresult enter(Body body) noexcept {
  return guarded([&]() -> CUresult {
    Driver& driver = Driver::get();
    if (const CUresult answer = driver.check(); answer != CUDA_SUCCESS) return answer;
    return body(driver);
  });
}

// body(Driver&, Context&): 201 without a current context.
template <class Body>
CUresult enter_with_context(Body body) noexcept {
  return enter([&](Driver& driver) -> CUresult {
    Context* context = nullptr;
    if (const CUresult answer = driver.current(context); answer != CUDA_SUCCESS) return answer;
    return body(driver, *context);
  });
}

}  // namespace strait::soft::cuda
