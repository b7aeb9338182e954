// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/trial.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/options.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::size_t kFields = 5;  // rule, thing, number, block, what
constexpr std::uint32_t kLastThing = static_cast<std::uint32_t>(Thing::profile);

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Up to the separator, which goes with it.
std::string_view next_part(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

}  // namespace

Result<TrialSettings> TrialSettings::from_environment() {
  STRAIT_TRY(const Options options, Options::read());
  TrialSettings out;
  out.strict = options.flag("strict");
  out.seed = static_cast<std::uint32_t>(options.integer("strict_seed"));
  out.report = options.text("strict_report");
  out.faults = options.text("faults");
  STRAIT_CHECK(out.options());
  return out;
}

Result<ClientOptions> TrialSettings::parse(bool strict, std::uint32_t seed, std::string_view faults) {
  ClientOptions out;
  out.strict = strict;
  if (!faults.empty()) {
    STRAIT_TRY(out.faults, FaultPlan::parse(faults));
    STRAIT_CHECK(check_cassini_faults(*out.faults));
  }
  out.strict_seed = seed != 0 ? seed : out.faults ? out.faults->seed : 1;
  return out;
}

std::uint64_t TrialSettings::seed_used() const {
  const auto asked = options();
  return asked ? asked->strict_seed : 1;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& each : findings) {
    out += fmt::format("{}\t{}\t{}\t{}\t{}\n", static_cast<unsigned>(each.rule), static_cast<unsigned>(each.thing),
                       each.number, each.block ? std::to_string(*each.block) : "-", each.what);
  }
  return out;
}

std::vector<Finding> parse_findings(std::string_view text) {
  std::vector<Finding> out;
  while (!text.empty()) {
    std::string_view line = next_part(text, '\n');
    std::array<std::string_view, kFields> fields;
    for (std::string_view& each : fields) each = next_part(line, '\t');
    const auto rule = number_in(fields[0]), thing = number_in(fields[1]), number = number_in(fields[2]);
    if (!rule || *rule >= kRules || !thing || *thing > kLastThing || !number) continue;
    out.push_back({.rule = static_cast<Rule>(*rule),
                   .thing = static_cast<Thing>(*thing),
                   .number = *number,
                   .block = number_in(fields[3]),
                   .what = std::string(fields[4])});
  }
  return out;
}

}  // namespace strait::soft::cassini
