// SPDX-License-Identifier: Apache-2.0
// JSON, for headers: the name only. Reading and writing it is compiled once, in json.cpp; files that build or look into
// objects include <nlohmann/json.hpp> themselves, and the others are spared its seconds.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace strait::tool {

using Json = nlohmann::json;

// Not an object, not anything (is_discarded) when the text is no JSON; never throws.
[[nodiscard]] Json parse_json(std::string_view text);
[[nodiscard]] std::string json_text(const Json& value);   // one line
[[nodiscard]] std::string json_pages(const Json& value);  // for people: indented

}  // namespace strait::tool
