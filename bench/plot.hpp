// SPDX-License-Identifier: Apache-2.0
// Results as a picture, for docs/.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace bench {

// Goodput over packets against the share of packets that are lost on purpose, as an SVG. Empty: a row is missing.
std::string goodput_svg(const nlohmann::json& results);
// Latency and bandwidth over size. Empty: there is no row "sweep".
std::string sweep_svg(const nlohmann::json& results);

}  // namespace bench
