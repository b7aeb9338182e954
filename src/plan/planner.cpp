// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <algorithm>

namespace strait::plan {
namespace {

struct Reached {
  bool possible = false;
  bool by_port = false;  // only code of this process can call it
  std::string how;       // "dma-buf", "host pages"
  std::string why_not;
};

// Whether a NIC can reach the memory itself, and as what.
Reached reach(const Source& source, const Nic& nic) {
  if (!source.accelerator) return {true, false, "host pages", {}};
  if (source.exports_fd && nic.imports_fds) return {true, false, nic.maps_pages ? "mapped memfd" : "dma-buf", {}};
  if (source.has_port && nic.reads_ports) return {true, true, "memory port", {}};
  if (!source.exports_fd) {
    const std::string why = source.export_refusal.empty() ? "it exports no descriptor" : source.export_refusal;
    return {false, false, "no export", fmt::format("{} memory cannot be reached: {}", source.name, why)};
  }
  return {false, false, "dma-buf", fmt::format("{} imports no descriptors", nic.name)};
}

// The copies happen one after the other, so their times add up.
Estimate estimate(const Costs& costs, int copies) {
  if (costs.memcpy_gb_s <= 0) return {};
  return {costs.message_us, costs.memcpy_gb_s / copies};
}

void settle(Way& way, Verdict verdict, std::string reason) {
  way.verdict = verdict;
  way.reason = std::move(reason);
}

bool forced_off(Way& way, const Policy& policy, Carrier mine, const char* name) {
  if (policy.carrier == Carrier::any || policy.carrier == mine) return false;
  settle(way, Verdict::no, fmt::format("carrier={} was asked for", name));
  return true;
}

std::string no_grants(const Nic& nic) {
  return fmt::format("{} shares no rings with peers: it has a wire of its own", nic.name);
}

Way by_copy(const Source& source, const Nic& nic, const Peer& peer, const Policy& policy, const Costs& costs) {
  const Reached reached = reach(source, nic);
  const char* call = peer.reach == Reach::same_process ? "memcpy" : "process_vm_readv";
  Way way{Kind::copy,
          fmt::format("zero-copy: {} -> {} -> ring grant, one copy by the owner's engine ({})", reached.how, nic.name,
                      call),
          "ring grant, one copy",
          nic.name,
          Verdict::no,
          {},
          estimate(costs, 1)};
  if (!nic.grants) {
    settle(way, Verdict::no, no_grants(nic));
  } else if (!reached.possible) {
    settle(way, Verdict::no, reached.why_not);
  } else if (peer.reach == Reach::other_host) {
    settle(way, Verdict::no, "the peer is on another host");
  } else if (forced_off(way, policy, Carrier::grant, "roce")) {
  } else if (reached.by_port && peer.reach != Reach::same_process) {
    settle(way, Verdict::no,
           fmt::format("{} memory is reached through a port, which only its own process can call", source.name));
  } else if (peer.reach == Reach::same_process) {
    settle(way, Verdict::yes, "the peer is in this process");
  } else if (!peer.cross_copy) {
    const std::string why = peer.cross_copy_refusal.empty() ? "not allowed" : peer.cross_copy_refusal;
    settle(way, Verdict::no, fmt::format("the two processes may not read each other's memory: {}", why));
  } else {
    settle(way, Verdict::yes,
           fmt::format("{} reaches {} memory as {}; the peer is on this host", nic.name, source.name, reached.how));
  }
  return way;
}

Way by_ring(const Source& source, const Nic& nic, const Peer& peer, const Policy& policy, const Costs& costs) {
  const Reached reached = reach(source, nic);
  Way way{Kind::ring,
          fmt::format("zero-copy: {} -> {} -> ring grant through the shared ring (two copies)", reached.how, nic.name),
          "ring grant, two copies",
          nic.name,
          Verdict::no,
          {},
          estimate(costs, 2)};
  if (!nic.grants) {
    settle(way, Verdict::no, no_grants(nic));
  } else if (!reached.possible) {
    settle(way, Verdict::no, reached.why_not);
  } else if (peer.reach == Reach::other_host) {
    settle(way, Verdict::no, "the peer is on another host");
  } else if (!forced_off(way, policy, Carrier::grant, "roce")) {
    settle(way, Verdict::yes,
           fmt::format("{} reaches {} memory as {}; small operations always go this way", nic.name, source.name,
                       reached.how));
  }
  return way;
}

Way by_packets(const Source& source, const Nic& nic, const Peer& peer, const Policy& policy) {
  const Reached reached = reach(source, nic);
  Way way{Kind::packets,
          fmt::format("zero-copy: {} -> {} -> RoCEv2 packets", reached.how, nic.name),
          "RoCEv2 packets",
          nic.name,
          Verdict::no,
          {},
          {}};
  if (!nic.has_packets && (peer.reach == Reach::other_host || policy.carrier == Carrier::packets)) {
    settle(way, Verdict::no, fmt::format("{} has no port for packets", nic.name));
  } else if (!reached.possible) {
    settle(way, Verdict::no, reached.why_not);
  } else if (forced_off(way, policy, Carrier::packets, "grant")) {
  } else if (peer.reach == Reach::other_host || policy.carrier == Carrier::packets || !nic.grants) {
    settle(way, Verdict::yes, fmt::format("{} reaches {} memory as {}", nic.name, source.name, reached.how));
  } else {
    settle(way, Verdict::no,
           peer.reach == Reach::same_process ? "the peer is in this process" : "the peer is on this host");
  }
  return way;
}

// Staging moves host memory by whichever carrier can; so it needs one that could be taken if the memory were the
// host's.
Way staged(const Source& source, std::span<const Nic> nics, const Peer& peer, const Policy& policy,
           const Costs& costs) {
  Way way{Kind::staged,          "staged through host memory",
          "staged through host", nics.empty() ? "" : nics.front().name,
          Verdict::no,           {},
          estimate(costs, 3)};
  Source host;
  host.name = "host";
  const bool carried = std::ranges::any_of(nics, [&](const Nic& nic) {
    return by_ring(host, nic, peer, policy, costs).verdict == Verdict::yes ||
           by_packets(host, nic, peer, policy).verdict == Verdict::yes;
  });
  if (!source.accelerator) {
    settle(way, Verdict::no, "it is host memory already");
  } else if (nics.empty()) {
    settle(way, Verdict::no, "there is no NIC");
  } else if (!source.can_copy) {
    settle(way, Verdict::no, fmt::format("{} cannot copy to host memory", source.name));
  } else if (!carried) {
    settle(way, Verdict::no, "no carrier reaches the peer");
  } else if (policy.require_zero_copy) {
    settle(way, Verdict::no, "refused by require=zero_copy");
  } else if (!policy.allow_staging) {
    settle(way, Verdict::held, "never silent: allowed only with allow_staging=1");
  } else {
    settle(way, Verdict::yes, "allowed by allow_staging=1");
  }
  return way;
}

}  // namespace

Result<Carrier> parse_carrier(std::string_view text) {
  if (text == "auto") return Carrier::any;
  if (text == "grant") return Carrier::grant;
  if (text == "roce") return Carrier::packets;
  return fail(Code::invalid, "\"{}\" is not a carrier: auto, grant or roce", text);
}

Plan make_plan(const Source& source, std::span<const Nic> nics, const Peer& peer, const Policy& policy,
               const Costs& costs) {
  Plan plan{source.name, peer.name.empty() ? "any peer on this host" : peer.name, {}, {}};
  // By preference: fewer copies first, then the order in which the NICs were given (nearest first).
  for (const Nic& nic : nics) plan.ways.push_back(by_copy(source, nic, peer, policy, costs));
  for (const Nic& nic : nics) plan.ways.push_back(by_ring(source, nic, peer, policy, costs));
  for (const Nic& nic : nics) plan.ways.push_back(by_packets(source, nic, peer, policy));
  plan.ways.push_back(staged(source, nics, peer, policy, costs));
  const auto best = std::ranges::find(plan.ways, Verdict::yes, &Way::verdict);
  if (best != plan.ways.end()) plan.chosen = static_cast<std::size_t>(best - plan.ways.begin());
  return plan;
}

Result<Way> Plan::way() const {
  if (chosen) return ways[*chosen];
  std::string reasons;
  bool held = false;
  for (const Way& each : ways) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", each.label, each.reason);
    held |= each.verdict == Verdict::held;
  }
  Error error = fail(Code::unsupported, "there is no way from {} to {} ({})", from, to, reasons);
  if (held) error.remedy = "Allow the copy through host memory with the option `allow_staging`.";
  return error;
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::yes: return "yes";
    case Verdict::no: return "no";
    case Verdict::held: return "held";
  }
  return "unknown";
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::copy: return "copy";
    case Kind::ring: return "ring";
    case Kind::packets: return "roce";
    case Kind::staged: return "staged";
  }
  return "unknown";
}

}  // namespace strait::plan
