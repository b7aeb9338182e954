// SPDX-License-Identifier: Apache-2.0
#include "sys/beside.hpp"

#include <dlfcn.h>
#include <unistd.h>

namespace strait::sys {

std::string beside_this_library(const std::string& name) {
  return beside_library_of(reinterpret_cast<const void*>(&beside_this_library), name);
}

std::string beside_library_of(const void* symbol, const std::string& name) {
  Dl_info where{};
  if (::dladdr(symbol, &where) == 0 || where.dli_fname == nullptr) return name;
  std::string path = where.dli_fname;
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return name;
  path.replace(slash + 1, std::string::npos, name);
  return ::access(path.c_str(), R_OK) == 0 ? path : name;
}

}  // namespace strait::sys
