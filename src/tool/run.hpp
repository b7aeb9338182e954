// SPDX-License-Identifier: Apache-2.0
// Parts of `strait run`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "soft/gaudi/machine.hpp"
#include "soft/host/report.hpp"
#include "soft/host/root.hpp"
#include "tool/tool.hpp"

namespace strait::tool {

inline constexpr std::uint32_t kMostNics = 16;

// Device nodes and what sysfs says about them.
[[nodiscard]] Status make_devices(soft::host::Root& root, std::uint32_t nics);

// What outlives every process of a run; to be kept until the last has ended.
struct Hardware {
  std::unique_ptr<soft::gaudi::Machine> gaudis;
};
// What a program needs in its environment to find them; `root` is the run's. Code::unsupported: a library of theirs is
// not installed.
[[nodiscard]] Result<Hardware> add_accelerators(const std::string& text, soft::host::Root& root, Settings& settings);
// Empty: they can be read; else what is wrong.
[[nodiscard]] std::string check_accelerators(const std::string& text);

// The last line; `capture` empty: none was made.
[[nodiscard]] std::string run_summary(const soft::host::RunTotals& totals, const std::string& capture);

}  // namespace strait::tool
