// SPDX-License-Identifier: Apache-2.0
// The devices that a run has: every family writes its part of the tree.
#include "tool/run.hpp"

namespace strait::tool {

Status make_devices(soft::host::Root& root, std::uint32_t) {
  for (const char* claim : {"/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs"})
    STRAIT_CHECK(root.claim(claim));
  return {};
}

}  // namespace strait::tool
