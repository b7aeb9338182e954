// SPDX-License-Identifier: Apache-2.0
// After fork() every handle is dead in the child and says so: each asks its Node's ForkMark, one load.
#pragma once

#include "base/error.hpp"
#include "sys/fork.hpp"

namespace strait::node {

[[nodiscard]] inline Error dead_after_fork(const char* what) {
  return with_remedy(
      fail(Code::gone, "this {} belongs to the parent process: after fork() the child cannot use it", what),
      "open a new Node in the child, or start the child with exec");
}

}  // namespace strait::node
