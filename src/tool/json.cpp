// SPDX-License-Identifier: Apache-2.0
#include "tool/json.hpp"

#include <nlohmann/json.hpp>

namespace strait::tool {
namespace {

// Text from outside may hold anything; a report with a replaced character is better than none.
constexpr auto kReplace = Json::error_handler_t::replace;

}  // namespace

Json parse_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, kReplace);
}

std::string json_pages(const Json& value) {
  return value.dump(2, ' ', false, kReplace);
}

}  // namespace strait::tool
