// SPDX-License-Identifier: Apache-2.0
#include "soft/preload/devices.hpp"

#include <stdlib.h>
#include <string.h>

#include "soft/host/backend.h"
#include "soft/preload/real.hpp"

namespace strait::preload {
namespace {

constexpr char kLibrary[] = "libstrait-soft.so.0";

constinit std::atomic<const strait_host_ops*> found{nullptr};
constinit std::atomic<bool> complained{false};

void complain(const char* cause) {
  if (complained.exchange(true)) return;
  constexpr char kBegin[] = "strait run: no software device can be opened: ";
  (void)kernel(SYS_write, 2, kBegin, sizeof kBegin - 1);
  (void)kernel(SYS_write, 2, cause, strlen(cause));
  (void)kernel(SYS_write, 2, "\n", std::size_t{1});
}

// The library beside this one, or the one that STRAIT_HOST_DEVICES names.
void* open_library() {
  if (const char* given = getenv("STRAIT_HOST_DEVICES"); given != nullptr && given[0] != '\0')
    return dlopen(given, RTLD_NOW | RTLD_LOCAL);
  Dl_info where{};
  char path[4096];
  if (dladdr(reinterpret_cast<const void*>(&open_library), &where) != 0 && where.dli_fname != nullptr) {
    const char* slash = strrchr(where.dli_fname, '/');
    const std::size_t length = slash == nullptr ? 0 : static_cast<std::size_t>(slash + 1 - where.dli_fname);
    if (length + sizeof kLibrary <= sizeof path) {
      memcpy(path, where.dli_fname, length);
      memcpy(path + length, kLibrary, sizeof kLibrary);
      if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

}  // namespace

const strait_host_ops* devices() {
  if (const strait_host_ops* ops = found.load(std::memory_order_acquire)) return ops;
  void* library = open_library();
  if (library == nullptr) {
    const char* cause = dlerror();
    complain(cause == nullptr ? "there is no libstrait-soft beside libstrait-host" : cause);
    return nullptr;
  }
  auto* symbol = reinterpret_cast<decltype(&strait_host_devices)>(dlsym(library, "strait_host_devices"));
  const strait_host_ops* ops = symbol == nullptr ? nullptr : symbol();
  if (ops == nullptr || ops->abi_version != STRAIT_HOST_ABI || ops->struct_size < STRAIT_HOST_OPS_LEAST) {
    complain("the library of devices is of another version than libstrait-host");
    return nullptr;
  }
  found.store(ops, std::memory_order_release);  // opened twice by two threads: the loader counts, the table is one
  return ops;
}

void close_device(strait_host_file* file) {
  if (const strait_host_ops* ops = found.load(std::memory_order_acquire)) ops->close(file);
}

}  // namespace strait::preload
