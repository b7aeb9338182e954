// SPDX-License-Identifier: Apache-2.0
// The demo's part over packets: what is different there, and what was sent, lost and sent again.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tool/counters.hpp"
#include "tool/demo.hpp"

namespace strait::tool {
namespace {

constexpr std::uint64_t kPacketLength = 1u << 20;  // a packet is a system call on either side

void add_up(const Json& info, PacketTotals& totals) {
  totals.sent += nic_counter(info, "packets_sent");
  totals.lost += nic_counter(info, "drops_injected");
  totals.resent += nic_counter(info, "packets_resent");
  totals.faults += nic_counter(info, "faults_injected");
}

}  // namespace

DemoOptions packet_options(const DemoOptions& options, const std::optional<std::string>& given_faults) {
  DemoOptions out = options;
  out.length = std::min(options.length, kPacketLength);
  out.rounds = {.large = 5, .word = 200, .send = 20, .signal = 40};
  replace_setting(out.settings, "carrier", "roce");
  if (out.faults.empty()) out.faults = given_faults.value_or(kDemoFaults);
  replace_setting(out.settings, "faults", out.faults);
  if (!options.packets_from.empty()) replace_setting(out.settings, "roce_address", options.packets_from);
  return out;
}

Result<PacketTotals> count_packets(Stage& stage) {
  PacketTotals totals;
  STRAIT_TRY(const std::string ours, stage.node.info());
  add_up(parse_json(ours), totals);
  STRAIT_TRY(const Json theirs, stage.other.ask({{"do", "info"}}));
  add_up(theirs.at("info"), totals);
  return totals;
}

}  // namespace strait::tool
