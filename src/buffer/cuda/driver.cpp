// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/driver.hpp"

#include <cerrno>
#include <memory>
#include <mutex>

#include "sys/library.hpp"

namespace strait::buffer::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
using GetProcAddress = CuResult (*)(const char*, void**, int, std::uint64_t, int*);

struct Loaded {
  sys::Library library;
  Driver driver;
};

// The function in exactly the shape it was written down in, or null.
void* find_function(const sys::Library& library, GetProcAddress ask, const char* name, int version,
                    const char* symbol) {
  if (ask != nullptr) {
    void* found = nullptr;
    int status = 0;
    if (ask(name, &found, version, 0, &status) == kOk && found != nullptr) return found;
    return nullptr;
  }
  const auto found = library.symbol<void*>(symbol);
  return found ? *found : nullptr;
}

Result<Loaded*> load_cuda() {
  STRAIT_TRY(sys::Library library, sys::Library::open(kLibrary));
  const auto by_version = library.symbol<GetProcAddress>("cuGetProcAddress_v2");
  const GetProcAddress ask = by_version ? *by_version : nullptr;
  auto loaded = std::make_unique<Loaded>();
  Driver& driver = loaded->driver;
#define STRAIT_CUDA_FIND(member, name, version, symbol, required, signature)                                      \
  driver.member = reinterpret_cast<CuResult(*) signature>(find_function(library, ask, name, version, symbol));    \
  if (required && driver.member == nullptr) {                                                                     \
    return with_remedy(fail(Code::unsupported, "{} has no {} as of CUDA {}.{}", kLibrary, name, (version) / 1000, \
                            (version) % 1000 / 10),                                                               \
                       "Install a newer NVIDIA driver.");                                                         \
  }
  STRAIT_CUDA_FUNCTIONS(STRAIT_CUDA_FIND)
#undef STRAIT_CUDA_FIND
  if (const CuResult result = driver.init(0); result != kOk) {
    if (result == kNoDevice) {
      return with_remedy(fail(Code::unsupported, "the CUDA driver sees no device"),
                         "Is CUDA_VISIBLE_DEVICES empty, or the kernel module not loaded?");
    }
    return driver.failed(result, "initialise the CUDA driver");
  }
  if (const CuResult result = driver.driver_version(&driver.version); result != kOk)
    return driver.failed(result, "ask the CUDA driver for its version");
  loaded->library = std::move(library);
  return loaded.release();
}

}  // namespace

Result<const Driver*> Driver::get() {
  // Per process by nature: the driver is. A failure is not remembered: a device may appear.
  static std::mutex mutex;
  static Loaded* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) {
    STRAIT_TRY(loaded, load_cuda());
  }
  int count = 0;
  const Driver& driver = loaded->driver;
  if (const CuResult result = driver.device_count(&count); result != kOk)
    return driver.failed(result, "count CUDA devices");
  if (count == 0) return fail(Code::unsupported, "the CUDA driver sees no device");
  return &driver;
}

std::string Driver::name_of(CuResult result) const {
  const char* name = nullptr;
  if (error_name != nullptr && error_name(result, &name) == kOk && name != nullptr)
    return fmt::format("{} ({})", name, result);
  return fmt::format("CUDA error {}", result);
}

Error Driver::failed(CuResult result, const std::string& what) const {
  const auto sentence = [&](Code code) { return fail(code, "cannot {}: {}", what, name_of(result)); };
  switch (result) {
    case kInvalidValue:
    case kInvalidHandle:  // also: a handle of a process that has ended
    case kNotFound: return sentence(Code::invalid);
    case kOutOfMemory: return with_remedy(sentence(Code::limit), "Free device memory, or ask for less.");
    case kInvalidContext:
      return with_remedy(sentence(Code::unsupported),
                         "Use the device first (cudaFree(0)): strait creates no context on its own.");
    case kOperatingSystem: {
      // What the driver says when the process has no descriptor left.
      Error error = with_remedy(sentence(Code::limit), "Out of file descriptors? Look at ulimit -n.");
      error.sys_errno = EMFILE;
      return error;
    }
    case kContextDestroyed: return sentence(Code::gone);
    case kNotSupported: return sentence(Code::unsupported);
    default: return sentence(Code::device);
  }
}

std::string Driver::version_text() const {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace strait::buffer::cuda
