// SPDX-License-Identifier: Apache-2.0
// Where the kernel has RDMA of its own, libibverbs asks it for devices by netlink before it looks at sysfs, and finds
// those of the machine. In a run there are none but ours.
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "soft/preload/real.hpp"

using namespace strait::preload;

extern "C" int socket(int domain, int type, int protocol) noexcept {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA && getenv("STRAIT_HOST_ROOT") != nullptr)
    return static_cast<int>(answer(-EPROTONOSUPPORT));  // as a kernel answers that has no RDMA
  return STRAIT_NEXT(socket)(domain, type, protocol);
}
