// SPDX-License-Identifier: Apache-2.0
// For tests of strict: a program under it that puts into its own memory, and what was found in it.
#pragma once

#include <string>
#include <vector>

#include "soft/cassini/neighbour_testing.hpp"

namespace strait::soft::cassini::testing {

class Watched {
 public:
  explicit Watched(const ClientOptions& options = {.strict = true, .faults = {}})
      : program(*fabric.card(0), 1, 5, wire::kDefaultService, kUser, options) {}

  void drive(int passes = 400) {
    for (int i = 0; i < passes; ++i) fabric.drive();
  }
  // A portal at index 0 with one entry: the second page.
  void open_target(std::uint32_t flags = 0, bool with_events = false) {
    pte = program.portal(0, 0, with_events);
    drive(4);
    program.append(program.entry(pte, wire::PtlList::priority, sys::page_bytes(), sys::page_bytes(), flags));
    drive(4);
  }
  [[nodiscard]] wire::FullDmaCmd put(std::uint64_t from = 0, std::uint32_t bytes = 64) const {
    return program.put(program, 0, from, bytes);
  }
  // Many at once: more than the card does in one pass, and so some that wait.
  void ring_many(int count, const wire::FullDmaCmd& command) {
    for (int i = 0; i < count; ++i) program.transmit.emit(command);
    program.transmit.announce();
  }
  // As the program would, by the calls of the driver.
  std::vector<Finding> findings() { return program.client.client->take_findings(100); }
  // The rules that were broken, as one text; "" is what everybody wants.
  std::string rules() {
    std::string out;
    for (const Finding& each : findings()) out += std::string(out.empty() ? "" : " ") + rule_text(each.rule).name;
    return out;
  }

  Fabric fabric{1};
  Neighbour program;
  std::uint32_t pte = 0;
};

}  // namespace strait::soft::cassini::testing
