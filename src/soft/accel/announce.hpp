// SPDX-License-Identifier: Apache-2.0
// Tells the software machine's kernel which device memory exists, as a vendor's driver tells the real one.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "soft/accel/arena.hpp"

namespace strait::soft::accel {

[[nodiscard]] Status announce(const Allocation& allocation, std::uint32_t vendor, std::uint32_t device);
// Before the bytes go, and with no lock held. When it returns nobody uses them by address any more.
void retract(const Found& allocation);

}  // namespace strait::soft::accel
