// SPDX-License-Identifier: Apache-2.0
// MemoryPort of the software accelerator: how a NIC in the same process reaches device memory without a descriptor, for
// example on a device opened with export=0.
#pragma once

#include "strait/plugin.h"

// Fills `out` for every device of `provider`, which must outlive its use. 0, or a strait_code when an argument is null.
// Calls on the port answer 0 or a strait_code: invalid for addresses outside live allocations and for atomics that are
// not aligned to their width, gone in a forked child. Atomics are atomic to everybody who uses the same memory,
// descriptors included. Any thread.
extern "C" __attribute__((visibility("default"))) int32_t strait_soft_memory_port(strait_provider* provider,
                                                                                  strait_memory_port* out);
