// SPDX-License-Identifier: Apache-2.0
// How the C functions answer: an Error into the caller's strait_error, and no exception past the boundary.
#pragma once

#include <cstring>
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

// A handle's layout is compiled into the kernel: one of another size is of another version.
template <class Handle>
Status give_handle(const Handle& handle, void* out, std::size_t out_bytes) {
  if (out_bytes != sizeof handle) {
    return with_remedy(
        fail(Code::invalid, "this program's handle has {} bytes, the library's {}: they are of different versions",
             out_bytes, sizeof handle),
        "compile the program and its kernels with the headers of the library that is loaded");
  }
  std::memcpy(out, &handle, sizeof handle);
  return {};
}

}  // namespace strait::node
