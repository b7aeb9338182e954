// SPDX-License-Identifier: Apache-2.0
// Registers, stack and spills of kernels, out of what `ptxas -v` said when it compiled them.
#pragma once

#include <string>
#include <vector>

namespace bench::gpu {

struct Resources {
  std::string kernel;
  int registers = 0;
  int stack_bytes = 0;        // of the kernel and of what it calls
  int spill_store_bytes = 0;  // likewise
  int spill_load_bytes = 0;
};

// Throws if the text names no kernel, or one without its numbers: silence is not a good sign.
std::vector<Resources> read_ptxas(const std::string& text);

}  // namespace bench::gpu
