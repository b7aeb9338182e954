// SPDX-License-Identifier: Apache-2.0
// Finding a library that lies beside the one this code is part of.
#pragma once

#include <string>

namespace strait::sys {

// "/usr/lib/x.so" when that file exists beside the library (or program) that holds this function; else the plain name,
// for the loader's usual places. Not left to RUNPATH alone: sanitizers call dlopen from a library of their own.
[[nodiscard]] std::string beside_this_library(const std::string& name);

// The same beside the library that holds `symbol`.
[[nodiscard]] std::string beside_library_of(const void* symbol, const std::string& name);

}  // namespace strait::sys
