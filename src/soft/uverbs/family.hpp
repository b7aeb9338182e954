// SPDX-License-Identifier: Apache-2.0
// The family of /dev/infiniband/uverbsN, for the layer that answers for device nodes.
#pragma once

#include <memory>

#include "soft/host/device.hpp"
#include "soft/uverbs/devices.hpp"

namespace strait::soft::uverbs {

[[nodiscard]] std::unique_ptr<host::Family> make_family(std::shared_ptr<Devices> devices);

}  // namespace strait::soft::uverbs
