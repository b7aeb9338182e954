// SPDX-License-Identifier: Apache-2.0
// The vendors' providers that are part of the library. Nothing of a vendor is loaded until one is opened.
#pragma once

#include <array>
#include <string_view>

#include "strait/plugin.h"

namespace strait::buffer {

// In the order in which they are opened and asked: of a pointer that is nobody's a Gaudi needs to compare ranges only,
// and the HSA runtime the longest.
inline constexpr std::array<std::string_view, 3> kVendors{"cuda", "gaudi", "rocm"};

// "host", or one of kVendors; null when there is no such thing.
[[nodiscard]] const strait_provider_ops* built_in_provider(std::string_view kind);

}  // namespace strait::buffer
