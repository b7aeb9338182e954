// SPDX-License-Identifier: Apache-2.0
// Other programs, run with a deadline.
#pragma once

#include <string>
#include <vector>

#include "sys/captured.hpp"
#include "sys/command.hpp"

namespace bench {

using strait::sys::Ran;
using Environment = strait::sys::EnvironmentChanges;

inline strait::sys::Deadline after_s(double seconds) {
  return strait::sys::Deadline::after_ns(static_cast<std::int64_t>(seconds * 1e9));
}

inline Ran run(const std::vector<std::string>& command, double deadline_s, const Environment& environment = {}) {
  return strait::sys::run_captured(command, after_s(deadline_s), environment);
}

// The full path of a program in PATH; empty when there is none.
inline std::string which(const std::string& name) {
  const auto found = strait::sys::find_program(name);
  return found ? *found : std::string();
}

}  // namespace bench
