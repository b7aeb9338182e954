// SPDX-License-Identifier: Apache-2.0
// Filling strait_error.
#include "node/answer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>

namespace strait::node {
namespace {

// Cuts a long sentence at the end of a word: half a word reads like damage.
template <std::size_t N>
void put_text(char (&into)[N], const std::string& text) {
  std::size_t length = std::min(text.size(), N - 1);
  if (length < text.size()) {
    const std::size_t space = text.rfind(' ', N - 5);
    length = space == std::string::npos ? N - 5 : space;
    std::memcpy(into, text.data(), length);
    std::memcpy(into + length, " ...", 5);
    return;
  }
  std::memcpy(into, text.data(), length);
  into[length] = '\0';
}

}  // namespace

std::int32_t answer(strait_error* out, const Error& error) {
  if (out != nullptr && out->struct_size >= sizeof(strait_error)) {
    out->code = static_cast<std::int32_t>(error.code);
    out->sys_errno = error.sys_errno;
    out->syndrome = error.syndrome;
    put_text(out->text, error.text);
    put_text(out->remedy, error.remedy);
  } else if (out != nullptr && out->struct_size >= offsetof(strait_error, text)) {
    out->code = static_cast<std::int32_t>(error.code);
    out->sys_errno = error.sys_errno;
    out->syndrome = error.syndrome;
  }
  return static_cast<std::int32_t>(error.code);
}

std::int32_t answer_null(strait_error* out, const char* what) {
  if (out != nullptr && out->struct_size >= sizeof(strait_error)) {
    out->code = STRAIT_INVALID;
    out->sys_errno = 0;
    out->syndrome = 0;
    const auto end = fmt::format_to_n(out->text, sizeof out->text - 1, "{} is null", what).out;
    *end = '\0';
    out->remedy[0] = '\0';
  }
  return STRAIT_INVALID;
}

std::int32_t answer_exception(strait_error* out) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    // No allocation here: the sentence is written straight into the caller's struct.
    if (out != nullptr && out->struct_size >= sizeof(strait_error)) {
      out->code = STRAIT_LIMIT;
      out->sys_errno = 0;
      out->syndrome = 0;
      std::strcpy(out->text, "out of memory in strait's own bookkeeping");
      std::strcpy(out->remedy, "raise the memory limit of this process");
    }
    return STRAIT_LIMIT;
  } catch (const std::exception& e) {
    return answer(out, fail(Code::system, "unexpected failure inside strait: {}", e.what()));
  } catch (...) {
    return answer(out, fail(Code::system, "unexpected failure inside strait"));
  }
}

}  // namespace strait::node
