// SPDX-License-Identifier: Apache-2.0
// Who and where this process is: host identity, process id, thread identity.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace strait::sys {

// 16 bytes that are equal in two processes exactly when they run on one booted kernel: the boot id. `root` is prefixed
// to the path, for tests. All zero when the kernel does not tell.
[[nodiscard]] std::array<std::byte, 16> host_id(const std::string& root = {});

// Which network namespace this process is in; 0: unknown. Names of abstract unix sockets reach no further.
[[nodiscard]] std::uint64_t network_namespace(const std::string& root = "");

[[nodiscard]] std::int32_t process_id();

// Differs between any two threads alive at once; no system call.
[[nodiscard]] inline const void* thread_mark() {
  static thread_local const char mark = 0;
  return &mark;
}

}  // namespace strait::sys
