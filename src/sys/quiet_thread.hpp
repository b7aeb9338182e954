// SPDX-License-Identifier: Apache-2.0
// Threads of the library take no signals: an application's handler must never run on a thread it does not know.
#pragma once

#include <functional>
#include <thread>

#include "base/error.hpp"

namespace strait::sys {

// Starts `body` with every signal blocked. Code::limit when the system has no threads left.
[[nodiscard]] Result<std::thread> start_quiet_thread(std::function<void()> body);

}  // namespace strait::sys
