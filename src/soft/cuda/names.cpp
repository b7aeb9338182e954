// SPDX-License-Identifier: Apache-2.0
// Every name that the driver exports: those that answer, those that only say "not supported" and are counted, and
// cuGetProcAddress, which finds any of them by name and version. The lists are made from names.txt and api.h.
#include <cstring>

#include "soft/cuda/entry.hpp"

#define STRAIT_UNSUPPORTED(symbol)                                \
  extern "C" CUresult symbol();                                   \
  extern "C" CUresult symbol() {                                  \
    strait::soft::cuda::Driver::get().count_unsupported(#symbol); \
    return CUDA_ERROR_NOT_SUPPORTED;                              \
  }
#include "cuda_unsupported.inc"
#undef STRAIT_UNSUPPORTED

namespace strait::soft::cuda {
namespace {

struct Named {
  const char* symbol;
  const char* name;
  int version;
  void* address;
};

#define STRAIT_NAMED(symbol, name, version) {#symbol, #name, version, reinterpret_cast<void*>(&::symbol)},
const Named kNames[] = {
#include "cuda_names.inc"
};
#undef STRAIT_NAMED

bool per_thread(const Named& named) {
  const std::size_t length = std::strlen(named.symbol);
  return length > 5 &&
         (std::strcmp(named.symbol + length - 5, "_ptsz") == 0 || std::strcmp(named.symbol + length - 5, "_ptds") == 0);
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t kPerThread = 2;
  if (name == nullptr || out == nullptr || flags > kPerThread || version > kDriverVersion + 9 || version < 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Named* best = nullptr;
  bool known = false;
  for (const Named& each : kNames) {
    if (std::strcmp(each.name, name) != 0 || (per_thread(each) && flags != kPerThread)) continue;
    known = true;
    if (each.version > version) continue;
    // Of one version the one for a default stream per thread, if it was asked for.
    if (best == nullptr || each.version > best->version || (flags == kPerThread && per_thread(each))) best = &each;
  }
  *out = best == nullptr ? nullptr : best->address;
  if (status != nullptr) {
    *status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  const CUresult answer = cuGetProcAddress_v2(name, out, version, flags, nullptr);
  return answer == CUDA_SUCCESS && *out == nullptr ? CUDA_ERROR_NOT_FOUND : answer;
}

}  // extern "C"

}  // namespace strait::soft::cuda
