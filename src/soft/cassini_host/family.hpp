// SPDX-License-Identifier: Apache-2.0
// /dev/cxiN for programs, and the files of sysfs that change while they run: wait objects, telemetry, what is left of
// resource groups.
#pragma once

#include <memory>
#include <string>

#include "soft/host/device.hpp"

namespace strait::soft::cassini {

// `root`: of the run.
[[nodiscard]] std::unique_ptr<host::Family> make_cxi_family(std::string root);

}  // namespace strait::soft::cassini
