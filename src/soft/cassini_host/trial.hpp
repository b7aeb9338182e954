// SPDX-License-Identifier: Apache-2.0
// How a program is put to the test on a software Cassini: options strict, strict_report and faults.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "soft/cassini/client.hpp"

namespace strait::soft::cassini {

struct TrialSettings {
  bool strict = false;
  std::uint32_t seed = 0;  // of strict; 0: that of the faults, or 1
  std::string faults;      // the plan as a text; empty: none
  std::string report;      // file that gets a JSON object for each finding; empty: none
  int exit_code = 66;      // of this process, when anything was found; 0: left alone
  bool quiet = false;      // nothing on stderr (tests)
  std::string nic = {};    // as findings name the card

  // From the environment, as every option. Code::unsupported: faults that a Cassini does not know.
  [[nodiscard]] static Result<TrialSettings> from_environment();
  // What the card has to know.
  [[nodiscard]] Result<ClientOptions> options() const { return parse(strict, seed, faults); }
  [[nodiscard]] std::uint64_t seed_used() const;  // by strict
  [[nodiscard]] static Result<ClientOptions> parse(bool strict, std::uint32_t seed, std::string_view faults);
};

// Findings on their way from the process that has the cards. What is no finding is left out.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings);
[[nodiscard]] std::vector<Finding> parse_findings(std::string_view text);

}  // namespace strait::soft::cassini
