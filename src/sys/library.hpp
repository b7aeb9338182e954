// SPDX-License-Identifier: Apache-2.0
// Library: a shared library loaded at run time. Vendor libraries are reached in no other way.
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"

namespace strait::sys {

class Library {
 public:
  Library() = default;
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}
  Library& operator=(Library&& other) noexcept;
  ~Library();

  // Local binding, all symbols resolved now: a half-usable library fails here and not later.
  [[nodiscard]] static Result<Library> open(const std::string& name);

  // Code::unsupported, naming library and symbol, when it is not there.
  template <class Function>
  [[nodiscard]] Result<Function> symbol(const char* name) const {
    STRAIT_TRY(void* address, raw_symbol(name));
    return reinterpret_cast<Function>(address);
  }

 private:
  [[nodiscard]] Result<void*> raw_symbol(const char* name) const;
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace strait::sys
