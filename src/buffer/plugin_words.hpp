// SPDX-License-Identifier: Apache-2.0
// Taking texts and errors from a plug-in, which is not trusted to end its strings.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/plugin_said.hpp"
#include "strait/plugin.h"

namespace strait::buffer {

template <std::size_t N>
[[nodiscard]] std::string bounded(const char (&text)[N]) {
  return std::string(text, ::strnlen(text, N));
}

// A plug-in's words become our error. What it says is not trusted to be well formed.
[[nodiscard]] inline Error taken(std::int32_t code, const strait_plugin_error& raw, const std::string& kind,
                                 const char* what) {
  plugin::Said said = plugin::said(raw);
  Error error;
  if (code < static_cast<std::int32_t>(Code::invalid) || code > static_cast<std::int32_t>(Code::system)) {
    error = fail(Code::system, "the {} provider failed to {} with the unknown code {}", kind, what, code);
  } else if (said.cause.empty()) {
    error = fail(static_cast<Code>(code), "the {} provider failed to {} and gave no reason", kind, what);
  } else {
    error = Error{static_cast<Code>(code), 0, 0, std::move(said.cause), std::move(said.remedy)};
  }
  error.sys_errno = raw.sys_errno;
  if (raw.sys_errno != 0 && error.remedy.empty()) error.remedy = fail_errno(raw.sys_errno, {}).remedy;
  return error;
}

}  // namespace strait::buffer
