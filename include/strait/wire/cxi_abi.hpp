// SPDX-License-Identifier: Apache-2.0
// How a client of a CXI device asks the kernel: one write(2) of a command on /dev/cxiN. The answer goes to the address
// in `resp` before the call returns; there is no ioctl, no version and no poll. Layout only, of 64-bit systems. A
// command's length must be exactly its struct's. Booleans are bytes, pointers are numbers, and padding has names so
// that `LniAllocCmd c{};` leaves no byte unwritten. docs/wire-cxi.md explains the page.
#pragma once

#include "strait/wire/cxi_abi_client.hpp"
#include "strait/wire/cxi_abi_device.hpp"
#include "strait/wire/cxi_abi_queue.hpp"
#include "strait/wire/cxi_abi_service.hpp"
#include "strait/wire/cxi_abi_values.hpp"
