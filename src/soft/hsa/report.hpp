// SPDX-License-Identifier: Apache-2.0
// What this library tells `strait run` for its last line: names that were called and are not there, memory left behind.
#pragma once

#include <cstdint>

namespace strait::soft::hsa {

struct Left {
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;
  std::uint64_t held = 0;  // freed, and held by descriptors
  std::uint64_t held_bytes = 0;
};

void count_unsupported(const char* name);
// `closed`: of a runtime that ended now; it is added to what ended before.
void report_left(const Left& left, bool closed);

}  // namespace strait::soft::hsa
