// SPDX-License-Identifier: Apache-2.0
// Why a NIC did not register accelerator memory: the errno of a kernel, as a sentence with a remedy. One table for
// every NIC, because it is the kernel and the exporter that speak, not the NIC.
#pragma once

#include <string>

#include "base/error.hpp"

namespace strait {

enum class RegisteredBy { dmabuf, device_address };

// `nic`: "mlx5_0". The error keeps the errno.
[[nodiscard]] Error register_failed(int sys_errno, RegisteredBy by, const std::string& nic);

}  // namespace strait
