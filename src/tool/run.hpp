// SPDX-License-Identifier: Apache-2.0
// Parts of `strait run`.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "soft/host/report.hpp"
#include "soft/host/root.hpp"

namespace strait::tool {

inline constexpr std::uint32_t kMostNics = 16;

// Device nodes and what sysfs says about them.
[[nodiscard]] Status make_devices(soft::host::Root& root, std::uint32_t nics);

// The last line; `capture` empty: none was made.
[[nodiscard]] std::string run_summary(const soft::host::RunTotals& totals, const std::string& capture);

}  // namespace strait::tool
