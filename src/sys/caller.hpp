// SPDX-License-Identifier: Apache-2.0
// Caller: whom the kernel sees behind a system call of this thread right now.
#pragma once

#include <cstdint>

namespace strait::sys {

struct Caller {
  std::uint32_t uid = 0;  // effective
  std::uint32_t gid = 0;
  std::uint64_t network = 0;  // inode of the network namespace; 0: unknown
  bool admin = false;         // CAP_SYS_ADMIN
  bool net_raw = false;       // CAP_NET_RAW
};
[[nodiscard]] Caller current_caller();

// Whoever started this process: stays while it acts as another user.
[[nodiscard]] std::uint32_t real_user();

// Is any of the process's user ids (real, effective, saved) this one?
[[nodiscard]] bool process_has_user(std::int32_t pid, std::uint32_t uid);

}  // namespace strait::sys
