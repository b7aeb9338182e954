// SPDX-License-Identifier: Apache-2.0
// What the codes are called.
#include "soft/cuda/entry.hpp"

namespace strait::soft::cuda {
namespace {

struct ErrorText {
  unsigned code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
#include "soft/cuda/errors.inc"
};

const ErrorText* error_text(CUresult code) {
  for (const ErrorText& each : kErrors) {
    if (each.code == static_cast<unsigned>(code)) return &each;
  }
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult code, const char** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const found = error_text(code);
  *out = found == nullptr ? nullptr : found->name;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const found = error_text(code);
  *out = found == nullptr ? nullptr : found->text;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace strait::soft::cuda
