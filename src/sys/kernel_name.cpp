// SPDX-License-Identifier: Apache-2.0
#include "sys/kernel_name.hpp"

#include <sys/utsname.h>

namespace strait::sys {

std::string kernel_name() {
  utsname names{};
  if (::uname(&names) != 0) return "an unknown kernel";
  return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

}  // namespace strait::sys
