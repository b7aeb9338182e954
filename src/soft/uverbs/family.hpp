// SPDX-License-Identifier: Apache-2.0
// The family of /dev/infiniband/uverbsN, for the layer that answers for device nodes.
#pragma once

#include <memory>
#include <string>

#include "soft/host/device.hpp"

namespace strait::soft::uverbs {

// `root`: with the tree that write_tree() wrote. The engines take their options (faults, strict, capture, roce_mtu)
// from the environment, as `strait run` passes them on.
[[nodiscard]] std::unique_ptr<host::Family> make_family(std::string root);

}  // namespace strait::soft::uverbs
