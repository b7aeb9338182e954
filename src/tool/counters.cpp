// SPDX-License-Identifier: Apache-2.0
// What is known about each counter. One that is not in the table is shown all the same, under "other".
#include "tool/counters.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tool/text.hpp"

namespace strait::tool {
namespace {

struct CounterRow {
  const char* name;
  const char* words;
};

struct CounterGroup {
  const char* title;
  std::vector<CounterRow> rows;
};

const std::vector<CounterGroup>& nic_groups() {
  static const std::vector<CounterGroup> groups = {
      {"work",
       {{"doorbells", "rung by programs"},
        {"work_requests", "taken from send queues"},
        {"completions", "written, errors included"},
        {"error_completions", "with a syndrome"},
        {"flushed", "work given back after an error"},
        {"completion_overruns", "completions that found their queue full"},
        {"timeouts", "of acknowledgements"},
        {"rnr_sent", "no receive was posted here"},
        {"rnr_resent", "sent again after the peer had none"},
        {"naks_sent", "refusals"}}},
      {"memory",
       {{"registrations", "alive now"},
        {"bytes_landed", "written into memory here"},
        {"bytes_read", "read out of memory here"},
        {"atomics", "executed here"},
        {"cross_copies", "with one system call, from process to process"},
        {"mapped_copies", "through a mapping of the peer's memory"},
        {"port_copies", "of accelerator memory, that went on by themselves"}}},
      {"ring grant",
       {{"messages_sent", "records written to a peer's ring"},
        {"messages_received", ""},
        {"acks_sent", "of their own"},
        {"acks_carried", "that rode on another message"},
        {"out_of_sequence", "records that were not the next one"},
        {"no_queue", "for a queue pair that is not there"},
        {"garbage", "records that made no sense"},
        {"damaged", "records whose check was wrong (faults)"},
        {"resends", "times a sender went back (faults)"},
        {"links_opened", ""},
        {"links_lost", "because the peer ended"},
        {"links_bounced", "whose large payloads are copied twice: the peer's memory cannot be read"},
        {"links", "alive now"}}},
      {"packets",
       {{"ports_private", "without port 4791, which is another user's: this host only"},
        {"packets_sent", "made to be sent, lost ones included"},
        {"packets_received", ""},
        {"packets_resent", "sent before already"},
        {"packets_resends", "times a sender went back"},
        {"packets_duplicates", "received before already"},
        {"packets_acks_sent", ""},
        {"packets_acks_received", ""},
        {"packets_naks_received", "the peer missed a packet, or refused one"},
        {"packets_rnr_received", "the peer had no receive posted"},
        {"packets_cnp_sent", "congestion notifications"},
        {"packets_cnp_received", ""},
        {"packets_reads_replayed", "answered again for a duplicate"},
        {"packets_atomics_replayed", "answered from memory, not executed again"}}},
      {"packets dropped, by reason",
       {{"drops_injected", "lost on purpose (option faults)"},
        {"drops_too_short", "shorter than its headers"},
        {"drops_bad_version", "transport version is not 0"},
        {"drops_unknown_opcode", ""},
        {"drops_bad_pkey", "foreign partition key"},
        {"drops_bad_pad", "pad count does not fit the length"},
        {"drops_bad_length", "payload where the opcode has none"},
        {"drops_bad_icrc", "invariant CRC is wrong"},
        {"drops_unknown_qpn", "no such queue pair"},
        {"drops_wrong_transport", "not the queue pair's transport"},
        {"drops_wrong_state", "queue pair not ready to receive"},
        {"drops_wrong_address", "not between the queue pair's two addresses"},
        {"drops_bad_qkey", "wrong queue key"},
        {"drops_stale_psn", "sequence number of long ago"},
        {"drops_unexpected_response", "nothing asked for it"},
        {"drops_no_receiver", "no receive was posted for it"},
        {"drops_no_room", "too many answers wait already"}}},
      {"engine",
       {{"faults_injected", "done wrong on purpose (option faults)"},
        {"strict_findings", "rules that a program broke (option strict)"},
        {"passes", "rounds over the queues"},
        {"wakeups", "out of sleep"},
        {"queue_pairs", "alive now"}}},
  };
  return groups;
}

void group_heading(std::string& out, const std::string& title) {
  out += fmt::format("\n{}\n", tinted(title, Tint::strong));
}

void line(std::string& out, std::string_view name, const std::string& value, std::string_view words) {
  constexpr std::size_t kWords = 46;
  const std::string left = fmt::format("  {:<31}{:>11}", name, value);
  out += words.empty() ? left + "\n" : left + wrap(words, kWords, kWords).substr(left.size());
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

// Nested ones as "memory_soft.exports", so that every line is one name and one number.
void flat(std::string& out, const std::string& name, const Json& value) {
  if (!value.is_object()) return line(out, name, value_text(value), {});
  for (const auto& [inner, number] : value.items()) flat(out, name.empty() ? inner : name + "." + inner, number);
}

void nic_page(std::string& out, const Json& nic) {
  const std::string name = nic.value("name", "?");
  const Json counters = nic.value("counters", Json::object());
  std::set<std::string> shown;
  for (const CounterGroup& group : nic_groups()) {
    bool first = true;
    for (const CounterRow& row : group.rows) {
      const auto found = counters.find(row.name);
      if (found == counters.end()) continue;  // a NIC without packets has no such counters
      if (first) group_heading(out, fmt::format("{}: {}", name, group.title));
      first = false;
      line(out, row.name, value_text(*found), row.words);
      shown.insert(row.name);
    }
  }
  bool first = true;
  for (const auto& [other, value] : counters.items()) {
    if (shown.contains(other)) continue;
    if (first) group_heading(out, name + ": other");
    first = false;
    flat(out, other, value);
  }
}

}  // namespace

std::string counters_page(const Json& info) {
  std::string out;
  group_heading(out, "node");
  flat(out, "", info.value("counters", Json::object()));
  for (const Json& nic : info.value("nics", Json::array())) nic_page(out, nic);
  if (info.contains("cache")) {
    group_heading(out, "registrations kept");
    flat(out, "", info.at("cache"));
  }
  if (info.contains("monitor") && info.at("monitor").is_object()) {
    group_heading(out, "host memory watched");
    flat(out, "", info.at("monitor"));
  }
  return out;
}

std::uint64_t nic_counter(const Json& info, std::string_view name) {
  std::uint64_t sum = 0;
  if (!info.is_object()) return sum;
  for (const Json& nic : info.value("nics", Json::array())) {
    const Json counters = nic.value("counters", Json::object());
    const auto found = counters.find(name);
    if (found != counters.end() && found->is_number()) sum += found->get<std::uint64_t>();
  }
  return sum;
}

}  // namespace strait::tool
