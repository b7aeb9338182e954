// SPDX-License-Identifier: Apache-2.0
#include "buffer/rocm/runtime.hpp"

#include <memory>
#include <mutex>

#include "sys/library.hpp"

namespace strait::buffer::rocm {
namespace {

constexpr const char* kHsaLibrary = "libhsa-runtime64.so.1";

struct LoadedHsa {
  sys::Library library;
  Hsa hsa;
};

Result<LoadedHsa*> load_hsa() {
  auto loaded = std::make_unique<LoadedHsa>();
  STRAIT_TRY(loaded->library, sys::Library::open(kHsaLibrary));
  Hsa& hsa = loaded->hsa;
#define STRAIT_HSA_FIND(member, name, required, type, signature)                                             \
  if (const auto found = loaded->library.symbol<type(*) signature>(name)) hsa.member = *found;               \
  if (required && hsa.member == nullptr) {                                                                   \
    return with_remedy(fail(Code::unsupported, "{} has no {}", kHsaLibrary, name), "Install a newer ROCm."); \
  }
  STRAIT_HSA_FUNCTIONS(STRAIT_HSA_FIND)
#undef STRAIT_HSA_FIND
  return loaded.release();
}

}  // namespace

Result<const Hsa*> Hsa::get() {
  static std::mutex mutex;
  static LoadedHsa* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) {
    STRAIT_TRY(loaded, load_hsa());
  }
  return &loaded->hsa;
}

Error Hsa::failed(HsaStatus status, const std::string& what) const {
  const char* name = nullptr;
  if (status_string == nullptr || status_string(status, &name) != kOk || name == nullptr) name = "HSA status";
  const auto sentence = [&](Code code) { return fail(code, "cannot {}: {} ({:#x})", what, name, status); };
  switch (status) {
    case kInvalidArgument:
    case kInvalidAllocation: return sentence(Code::invalid);
    case kInvalidAgent: return sentence(Code::unsupported);
    case kOutOfResources:
      return with_remedy(sentence(Code::limit), "Out of device memory, or of file descriptors (ulimit -n)?");
    default: return sentence(Code::device);
  }
}

}  // namespace strait::buffer::rocm
