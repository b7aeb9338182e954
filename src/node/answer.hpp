// SPDX-License-Identifier: Apache-2.0
// How the C functions answer: an Error into the caller's strait_error, and no exception past the boundary.
#pragma once

#include <new>

#include "base/error.hpp"
#include "strait/c.h"

namespace strait::node {

// Fills `out` (may be null; only as many bytes as its struct_size says) and returns the code.
std::int32_t answer(strait_error* out, const Error& error);
std::int32_t answer_null(strait_error* out, const char* what);
std::int32_t answer_exception(strait_error* out);

// Runs the body of one C function. What it returns is a Status or Result<...>; `body` writes outputs itself on success.
template <class Body>
std::int32_t guarded(strait_error* out, Body body) noexcept {
  try {
    const Status status = body();
    if (status) [[likely]]
      return STRAIT_OK;
    return answer(out, status.error());
  } catch (...) {
    return answer_exception(out);
  }
}

}  // namespace strait::node
