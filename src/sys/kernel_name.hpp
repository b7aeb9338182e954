// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace strait::sys {

// "Linux 6.1.0-28-amd64 x86_64".
[[nodiscard]] std::string kernel_name();

}  // namespace strait::sys
