// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace strait::preload {

// openat(), with ours placed.
[[nodiscard]] int open_any(int folder, const char* path, int flags, mode_t mode);

}  // namespace strait::preload
