// SPDX-License-Identifier: Apache-2.0
// Which NIC reaches which memory by which way, tried now; and what providers and NICs need from the machine.
#include <nlohmann/json.hpp>
#include <set>

#include "buffer/built_in.hpp"
#include "node/core.hpp"
#include "node/trials.hpp"

namespace strait::node {
namespace {

using nlohmann::json;

constexpr std::uint64_t kTrialBytes = 64 * 1024;  // a page of nvidia_p2p

const char* way_word(exports::Way way) {
  switch (way) {
    case exports::Way::host_pages: return "host";
    case exports::Way::dmabuf: return "dmabuf";
    case exports::Way::peer_memory: return "peermem";
    case exports::Way::p2p_pages: return "p2p";
    case exports::Way::staged: return "staged";
  }
  return "unknown";
}

json ways_row(const std::vector<Trial>& trials) {
  json ways = json::object();
  for (const Trial& trial : trials) {
    json cell = {{"state", trial_state_name(trial.state)}, {"text", trial.text}};
    if (trial.ns != 0) cell["ns"] = trial.ns;
    ways[way_word(trial.way)] = std::move(cell);
  }
  return ways;
}

json need_row(const std::string& what, std::uint32_t state, const std::string& text) {
  return {{"what", what},
          {"state", state == STRAIT_REQUIREMENT_MET       ? "met"
                    : state == STRAIT_REQUIREMENT_MISSING ? "missing"
                                                          : "unknown"},
          {"text", text}};
}

json memory_needs(const std::string& kind, const std::vector<buffer::Requirement>& needs) {
  json rows = json::array();
  for (const buffer::Requirement& each : needs) rows.push_back(need_row(each.what, each.state, each.text));
  return {{"of", kind}, {"part", "memory"}, {"present", true}, {"needs", std::move(rows)}};
}

}  // namespace

json Core::requirement_rows() {
  json rows = json::array();
  for (const auto& provider : providers_->providers())
    rows.push_back(memory_needs(provider->kind(), provider->requirements()));
  for (const auto& absent : providers_->absent()) {
    const strait_provider_ops* const ops = buffer::built_in_provider(absent.kind);
    if (ops == nullptr) continue;
    json row = memory_needs(absent.kind, buffer::requirements_of(ops, nullptr));
    row["present"] = false;
    row["because"] = absent.because;
    rows.push_back(std::move(row));
  }
  for (const Rail& rail : rails_) {
    json needs = json::array();
    for (const strait_requirement& each : rail.nic->requirements())
      needs.push_back(need_row(each.what, each.state, each.text));
    rows.push_back({{"of", rail.nic->name()}, {"part", "nic"}, {"present", true}, {"needs", std::move(needs)}});
  }
  return rows;
}

std::string Core::reach_json(bool every_device) {
  json rows = json::array();
  json untried = json::array();
  std::set<std::string> seen;
  for (const buffer::Device* device : providers_->devices()) {
    if (!seen.insert(device->kind).second && !every_device) {
      untried.push_back(device->name);
      continue;
    }
    auto memory = providers_->allocate(device->name, kTrialBytes);
    auto claim = memory ? providers_->classify(memory->range()) : Result<buffer::Claim>(memory.error());
    for (const Rail& rail : rails_) {
      exports::NicAbilities abilities = rail.abilities;
      abilities.wants_pages = rail.nic->info().wants_pages != 0;  // not what another NIC wants
      const Trials trials(*providers_, *rail.nic, std::move(abilities));
      rows.push_back({{"memory", device->name},
                      {"kind", device->kind},
                      {"nic", rail.nic->name()},
                      {"ways", ways_row(claim ? trials.of(*claim)
                                              : Trials::none(fmt::format("no memory of {} to try with: {}",
                                                                         device->name, claim.error().text)))}});
    }
  }
  json all = {{"reach", std::move(rows)}, {"reach_untried", std::move(untried)}};
  all["requirements"] = requirement_rows();
  // Texts of drivers and plug-ins may be cut in the middle of a character.
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace strait::node
