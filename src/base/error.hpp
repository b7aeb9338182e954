// SPDX-License-Identifier: Apache-2.0
// Making errors: the first to understand a failure writes the sentence; everybody above passes it on.
#pragma once

#include <fmt/format.h>

#include "strait/result.hpp"

namespace strait {

// A failure whose cause strait itself understood. The remedy may stay empty.
template <class... Args>
[[nodiscard]] Error fail(Code code, fmt::format_string<Args...> text, Args&&... args) {
  return Error{code, 0, 0, fmt::format(text, std::forward<Args>(args)...), {}};
}

// A failed system call: keeps errno, appends its name, and tells limits apart from other failures.
[[nodiscard]] Error fail_errno(int sys_errno, std::string what);

[[nodiscard]] inline Error with_remedy(Error error, std::string remedy) {
  error.remedy = std::move(remedy);
  return error;
}

// "EMFILE (too many open files)": stable across locales.
[[nodiscard]] std::string errno_text(int sys_errno);

[[nodiscard]] const char* code_name(Code code);

}  // namespace strait

// STRAIT_TRY(auto fd, open_it());  either binds the value or returns the error from the enclosing function.
#define STRAIT_CONCAT_(a, b) a##b
#define STRAIT_CONCAT(a, b) STRAIT_CONCAT_(a, b)
#define STRAIT_TRY(declaration, expression) STRAIT_TRY_(STRAIT_CONCAT(try_, __LINE__), declaration, expression)
#define STRAIT_TRY_(temporary, declaration, expression) \
  auto temporary = (expression);                        \
  if (!temporary) return std::move(temporary).error();  \
  declaration = std::move(*temporary)
#define STRAIT_CHECK(expression)                                                     \
  do {                                                                               \
    if (auto checked_ = (expression); !checked_) return std::move(checked_).error(); \
  } while (0)
