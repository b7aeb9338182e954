// SPDX-License-Identifier: Apache-2.0
#include "sys/usage.hpp"

#include <sys/resource.h>

namespace strait::sys {

Usage usage_of_children() {
  rusage usage{};
  if (::getrusage(RUSAGE_CHILDREN, &usage) != 0) return {};
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_nivcsw)};
}

}  // namespace strait::sys
