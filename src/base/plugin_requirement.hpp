// SPDX-License-Identifier: Apache-2.0
// What a plug-in says it needs from the machine: one entry, filled.
#pragma once

#include "base/plugin_answer.hpp"

namespace strait::plugin {

[[nodiscard]] constexpr std::uint32_t met(bool there) {
  return there ? STRAIT_REQUIREMENT_MET : STRAIT_REQUIREMENT_MISSING;
}

// True, always: there is such an entry.
inline bool say(strait_requirement& out, std::string_view what, std::uint32_t state, std::uint32_t serves,
                std::string_view text) {
  out = {};
  put_text(what, out.what, sizeof out.what);
  out.state = state;
  out.serves = serves;
  put_text(text, out.text, sizeof out.text);
  return true;
}

}  // namespace strait::plugin
