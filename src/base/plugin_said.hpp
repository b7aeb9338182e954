// SPDX-License-Identifier: Apache-2.0
// The outside of a plug-in's C face: the one text of its error, taken apart.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "strait/plugin.h"

namespace strait::plugin {

// The remedy, where it knows one, is the second line. A plug-in is not trusted to end its text.
struct Said {
  std::string cause;
  std::string remedy;
};
[[nodiscard]] inline Said said(const strait_plugin_error& raw) {
  const std::string text(raw.text, ::strnlen(raw.text, sizeof raw.text));
  const std::size_t line = text.find('\n');
  Said out{text.substr(0, line), {}};
  if (line != std::string::npos) out.remedy = text.substr(std::min(text.find_first_not_of(" \n", line), text.size()));
  return out;
}

}  // namespace strait::plugin
