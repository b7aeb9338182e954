// SPDX-License-Identifier: Apache-2.0
// A program that goes on by itself: nobody waits for it, and it has nothing of the process that started it.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "sys/exec_lists.hpp"

namespace strait::sys {

// Child of no process of ours, in a session of its own, working folder /, standard descriptors on /dev/null, all others
// closed, default signal handling. The environment of this process with the changes; a change to "" removes the name.
// Returns when it was started, or with the reason why it was not.
[[nodiscard]] Status start_detached(const std::string& program, std::vector<std::string> arguments,
                                    const EnvironmentChanges& changes = {});

}  // namespace strait::sys
