// SPDX-License-Identifier: Apache-2.0
// Calls that take a path, with the path that is to be used.
#pragma once

#include <errno.h>
#include <fcntl.h>

#include "soft/preload/place.hpp"

namespace strait::preload {

template <class Answer, class Call>
__attribute__((noinline)) Answer with_placed(int folder, const char* path, bool follow, Answer bad, Call call) {
  Place where;
  switch (place(folder, path, follow, where)) {
    case Placed::unchanged: return call(folder, path);
    case Placed::failed: errno = where.error; return bad;
    case Placed::moved: break;
  }
  return call(AT_FDCWD, where.path);
}

// call(folder, path); or `bad`, with errno, where there is no path to call it with.
template <class Answer, class Call>
Answer with_path(int folder, const char* path, bool follow, Answer bad, Call call) {
  return concerned(folder, path) ? with_placed(folder, path, follow, bad, call) : call(folder, path);
}

}  // namespace strait::preload
