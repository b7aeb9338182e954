// SPDX-License-Identifier: Apache-2.0
// The inside of a plug-in's C face: results become codes and texts, and nothing is thrown across.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "base/error.hpp"
#include "strait/plugin.h"

namespace strait::plugin {

inline void put_text(std::string_view text, char* out, std::size_t capacity) {
  if (out == nullptr || capacity == 0) return;
  const std::size_t n = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

inline std::int32_t report(const Error& error, strait_plugin_error* out) {
  if (out != nullptr) {
    out->code = static_cast<std::int32_t>(error.code);
    out->sys_errno = error.sys_errno;
    put_text(error.explain(), out->text, sizeof out->text);
  }
  return static_cast<std::int32_t>(error.code);
}

constexpr auto kNothing = [](const auto&) {};

// Runs `call`, which gives a Status or a Result, and hands what it gave to `take`. 0, or the code of what went wrong.
template <class Call, class Take>
std::int32_t answer(strait_plugin_error* error, Call call, Take take) noexcept {
  try {
    auto outcome = call();
    if (!outcome) return report(outcome.error(), error);
    take(outcome);
    return 0;
  } catch (const std::bad_alloc&) {
    return report(Error{Code::limit, ENOMEM, 0, "out of memory", {}}, error);
  } catch (const std::exception& thrown) {
    return report(Error{Code::system, 0, 0, thrown.what(), {}}, error);
  }
}
template <class Call>
std::int32_t answer(strait_plugin_error* error, Call call) noexcept {
  return answer(error, call, kNothing);
}
// For a Result whose value goes to `out` as it is.
template <class T, class Call>
std::int32_t answer_into(T* out, strait_plugin_error* error, Call call) noexcept {
  return answer(error, call, [out](auto& made) { *out = std::move(*made); });
}

}  // namespace strait::plugin
