// SPDX-License-Identifier: Apache-2.0
#include "sys/library.hpp"

#include <dlfcn.h>

namespace strait::sys {

Library& Library::operator=(Library&& other) noexcept {
  if (this != &other) {
    if (handle_ != nullptr) ::dlclose(handle_);
    handle_ = std::exchange(other.handle_, nullptr);
    name_ = std::move(other.name_);
  }
  return *this;
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Result<Library> Library::open(const std::string& name) {
  // dlopen takes an empty name for the program itself, which is never what was meant.
  if (name.empty()) return fail(Code::invalid, "cannot load a library without a name");
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return fail(Code::unsupported, "cannot load {}: {}", name, why == nullptr ? "no reason given" : why);
  }
  Library library;
  library.handle_ = handle;
  library.name_ = name;
  return library;
}

Result<void*> Library::raw_symbol(const char* name) const {
  // To dlsym a null handle means "search everything": an empty Library must not find other libraries' symbols.
  if (handle_ == nullptr) return fail(Code::invalid, "no library is loaded to look up {} in", name);
  void* address = ::dlsym(handle_, name);
  if (address == nullptr) return fail(Code::unsupported, "{} has no symbol {}", name_, name);
  return address;
}

}  // namespace strait::sys
