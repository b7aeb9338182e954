// SPDX-License-Identifier: Apache-2.0
// The machine that a figure comes from, what ran on it, and when.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace strait::versus {

// CPU, kernel, memory, compiler, versions of strait and of the peers.
[[nodiscard]] nlohmann::json describe_machine(const std::string& strait_version);
// The same in two sentences: the machine; the versions.
[[nodiscard]] std::string machine_text(const nlohmann::json& machine);
[[nodiscard]] std::string versions_text(const nlohmann::json& machine);
[[nodiscard]] double load_average();
[[nodiscard]] std::string today();  // "2026-11-16", in UTC

}  // namespace strait::versus
