// SPDX-License-Identifier: Apache-2.0
// The families of devices, opened when a program opens the first node: programs that use no RDMA never load them.
#pragma once

struct strait_host_file;
struct strait_host_ops;

namespace strait::preload {

// Null when there is no library of devices, which is then said on stderr once.
[[nodiscard]] const strait_host_ops* devices();
void close_device(strait_host_file* file);

}  // namespace strait::preload
