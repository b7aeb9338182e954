// SPDX-License-Identifier: Apache-2.0
// Will a program that is started see the devices? Asked before it is started: one that does not would only say that
// there are none.
#pragma once

#include <string>

#include "base/error.hpp"

namespace strait::soft::host {

struct ProgramFacts {
  bool go = false;  // parts of it may go past the C library
};

// Code::unsupported, with the reason, for static programs, those that get other rights when they are started, and those
// for another C library or processor. Code::invalid: no program at all. A script is judged by its interpreter.
[[nodiscard]] Result<ProgramFacts> check_program(const std::string& path);

}  // namespace strait::soft::host
