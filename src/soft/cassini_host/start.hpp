// SPDX-License-Identifier: Apache-2.0
// The way to the server: connects, and starts it first if nobody has.
#pragma once

#include <string>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace strait::soft::cassini {

struct ServerPlace {
  std::string name;     // where it listens; server_name()
  std::string program;  // empty: beside this library
  bool ask_for_memory = false;
};

[[nodiscard]] Result<sys::Fd> reach_server(const ServerPlace& place, const sys::Deadline& deadline);

}  // namespace strait::soft::cassini
