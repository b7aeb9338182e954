// SPDX-License-Identifier: Apache-2.0
// Capability records as JSON: what a Node tells a peer that plans, and how recorded machines are kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/planner.hpp"

namespace strait::plan {

// Everything a plan needs to know of one end.
struct Machine {
  std::string name;  // for people
  std::string host;  // the same for Nodes of one host
  int process = 0;   // and there, which
  std::vector<Memory> memories;
  std::vector<Nic> nics;
  // Whether it grants its memory, and uses that of others, without its NIC.
  bool map_grants = false;
  bool copy_grants = false;
  std::string no_grants_because = {};
  [[nodiscard]] const Memory* find(std::string_view memory) const;
  // Of `memory` among the accelerators that have the same best NICs: equal NICs are shared out by it.
  [[nodiscard]] std::size_t rank_of(const Memory& memory) const;
};

[[nodiscard]] std::string to_record(const Machine& machine);
// From a stranger: everything is checked, and unknown members are left out. Code::invalid says what is wrong.
[[nodiscard]] Result<Machine> from_record(std::string_view text);

}  // namespace strait::plan
