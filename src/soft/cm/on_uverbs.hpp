// SPDX-License-Identifier: Apache-2.0
// rdma_cm beside uverbs: connections are made on the same NIC, so that the numbers of queue pairs mean the same.
#pragma once

#include <memory>

#include "soft/host/device.hpp"
#include "soft/uverbs/devices.hpp"

namespace strait::soft::cm {

[[nodiscard]] std::unique_ptr<host::Family> make_family_on(std::shared_ptr<uverbs::Devices> devices);

}  // namespace strait::soft::cm
