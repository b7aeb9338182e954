// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <algorithm>

#include "plan/cost.hpp"

namespace strait::plan {
namespace {

struct Reached {
  bool possible = false;
  bool by_port = false;  // only code of this process can call it
  std::string how;       // "dma-buf", "host pages"
  std::string why_not;
};

// The refusals themselves have rows of their own.
std::string refused_text(const Memory& memory, const Nic& nic) {
  std::string ways;
  for (const Refusal& each : memory.refused) ways += (ways.empty() ? ": not by " : ", nor by ") + each.way;
  return fmt::format("{} does not reach {} memory{}", nic.name, memory.name, ways);
}

// Whether a NIC can reach the memory itself, and as what.
Reached reach(const Memory& source, const Nic& nic) {
  if (source.migrates && !nic.follows_pages) {
    return {false, false, "host pages",
            fmt::format("{} memory is managed: it migrates, and {} would keep to pages that it has left", source.name,
                        nic.name)};
  }
  if (!nic.not_taken.empty()) return {false, false, "nothing", nic.not_taken};
  if (source.staged_only) return {false, false, "no registration", refused_text(source, nic)};
  if (!source.reached_by.empty()) return {true, false, source.reached_by, {}};
  if (!source.accelerator) return {true, false, "host pages", {}};
  if (source.exports_fd && nic.imports_fds) return {true, false, nic.maps_pages ? "mapped memfd" : "dma-buf", {}};
  if (source.has_port && nic.reads_ports) return {true, true, "memory port", {}};
  if (!source.exports_fd) {
    const std::string why = source.export_refusal.empty() ? "it exports no descriptor" : source.export_refusal;
    return {false, false, "no export", fmt::format("{} memory cannot be reached: {}", source.name, why)};
  }
  return {false, false, "dma-buf", fmt::format("{} imports no descriptors", nic.name)};
}

// The NIC that the peer's end takes: its best for that memory, by its own records.
const Nic& far_nic(const Peer& peer, const Nic& here) {
  return peer.nics.empty() ? here : peer.nics[preferred(*peer.memory, peer.nics, 0).front()];
}

// The far end of a NIC's way: empty text when the NIC there reaches the memory, else why not.
std::string far_refusal(const Peer& peer, const Nic& here) {
  if (!peer.memory) return {};
  const Reached reached = reach(*peer.memory, far_nic(peer, here));
  return reached.possible ? std::string() : "at the other end, " + reached.why_not;
}

// " -> dma-buf (cuda:1)"
std::string far_end(const Peer& peer, const Nic& here) {
  if (!peer.memory) return {};
  const Nic& there = far_nic(peer, here);
  return fmt::format(" -> {} -> {} ({})", there.name, reach(*peer.memory, there).how, peer.memory->name);
}

// "cuda:0 memory as host pages", and why so where that is not plain.
std::string reached_text(const Memory& source, const Reached& reached) {
  return fmt::format("{} memory {} {}{}", source.name, source.reached_by.empty() ? "as" : "by", reached.how,
                     source.migrates ? " (it is managed: it migrates, so it is never exported)" : "");
}

// ", below one PCIe switch"
std::string nearness_of(const Memory& source, const Nic& nic) {
  const std::string text = distance_text(distance(source.place, nic.place));
  return text.empty() ? text : ", " + text;
}

// The owner's engine moves them: within a process as it was timed, else by its system call.
Cost one_copy(const Costs& costs, const Peer& peer) {
  if (peer.reach == Reach::same_process || !costs.ring.known() || !costs.call.known()) return costs.ring;
  return {costs.ring.latency_us, std::min(costs.ring.gb_s, costs.call.gb_s), false,
          "a message through the ring, and the copy between processes"};
}

Cost two_copies(const Costs& costs) {
  if (!costs.ring.known() || !costs.memcpy.known()) return {};
  return {costs.ring.latency_us, costs.memcpy.gb_s / 2, false, "a message through the ring, and memcpy twice"};
}

// The slower end sets the pace.
Cost packets_cost(const Memory& source, const Nic& nic, const Peer& peer, const Costs& costs) {
  if (nic.software) {
    Cost cost = costs.packets;
    if (cost.known() && peer.reach == Reach::other_host) {
      cost.measured = false;
      cost.basis = "packets over this host's loopback";
    }
    return cost;
  }
  const Cost here = by_hardware(source, nic);
  if (!peer.memory) return here;
  const Cost there = by_hardware(*peer.memory, far_nic(peer, nic));
  return there.known() && there.gb_s < here.gb_s ? there : here;
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

std::string cross_copy_refused(const Peer& peer) {
  const std::string why = peer.cross_copy_refusal.empty() ? "not allowed" : peer.cross_copy_refusal;
  return fmt::format("the two processes may not read each other's memory: {}", why);
}

Way by_copy(const Memory& source, const Nic& nic, const Peer& peer, const Policy& policy, const Costs& costs) {
  const Reached reached = reach(source, nic);
  const char* call = peer.reach == Reach::same_process ? "memcpy" : "process_vm_readv";
  Way way{Kind::copy,
          fmt::format("zero-copy: {} -> {} -> ring grant, one copy by the owner's engine ({}){}", reached.how, nic.name,
                      call, far_end(peer, nic)),
          "ring grant, one copy",
          nic.name,
          Verdict::no,
          {},
          one_copy(costs, peer)};
  if (!nic.grants) {
    settle(way, Verdict::no, no_grants(nic));
  } else if (!reached.possible) {
    settle(way, Verdict::no, reached.why_not);
  } else if (const std::string far = far_refusal(peer, nic); !far.empty()) {
    settle(way, Verdict::no, far);
  } else if (peer.reach == Reach::other_host) {
    settle(way, Verdict::no, "the peer is on another host");
  } else if (forced_off(way, policy, Carrier::grant, "roce")) {
  } else if (reached.by_port && peer.reach != Reach::same_process) {
    settle(way, Verdict::no,
           fmt::format("{} memory is reached through a port, which only its own process can call", source.name));
  } else if (peer.reach == Reach::same_process) {
    settle(way, Verdict::yes, "the peer is in this process");
  } else if (!peer.cross_copy) {
    settle(way, Verdict::no, cross_copy_refused(peer));
  } else {
    settle(way, Verdict::yes,
           fmt::format("{} reaches {}; the peer is on this host{}", nic.name, reached_text(source, reached),
                       nearness_of(source, nic)));
  }
  return way;
}

Way by_ring(const Memory& source, const Nic& nic, const Peer& peer, const Policy& policy, const Costs& costs) {
  const Reached reached = reach(source, nic);
  Way way{Kind::ring,
          fmt::format("zero-copy: {} -> {} -> ring grant through the shared ring (two copies){}", reached.how, nic.name,
                      far_end(peer, nic)),
          "ring grant, two copies",
          nic.name,
          Verdict::no,
          {},
          two_copies(costs)};
  if (!nic.grants) {
    settle(way, Verdict::no, no_grants(nic));
  } else if (!reached.possible) {
    settle(way, Verdict::no, reached.why_not);
  } else if (const std::string far = far_refusal(peer, nic); !far.empty()) {
    settle(way, Verdict::no, far);
  } else if (peer.reach == Reach::other_host) {
    settle(way, Verdict::no, "the peer is on another host");
  } else if (!forced_off(way, policy, Carrier::grant, "roce")) {
    settle(way, Verdict::yes,
           fmt::format("{} reaches {}; small operations always go this way", nic.name, reached_text(source, reached)));
  }
  return way;
}

Way by_packets(const Memory& source, const Nic& nic, const Peer& peer, const Policy& policy, const Costs& costs) {
  const Reached reached = reach(source, nic);
  Way way{Kind::packets,
          fmt::format("zero-copy: {} -> {} -> {}{}", reached.how, nic.name, nic.carries, far_end(peer, nic)),
          nic.carries,
          nic.name,
          Verdict::no,
          {},
          packets_cost(source, nic, peer, costs)};
  if (!nic.has_packets && (peer.reach == Reach::other_host || policy.carrier == Carrier::packets)) {
    settle(way, Verdict::no, fmt::format("{} has no port for packets", nic.name));
  } else if (!reached.possible) {
    settle(way, Verdict::no, reached.why_not);
  } else if (const std::string far = far_refusal(peer, nic); !far.empty()) {
    settle(way, Verdict::no, far);
  } else if (forced_off(way, policy, Carrier::packets, "grant")) {
  } else if (peer.reach == Reach::other_host || policy.carrier == Carrier::packets || !nic.grants) {
    settle(way, Verdict::yes,
           fmt::format("{} reaches {}{}", nic.name, reached_text(source, reached), nearness_of(source, nic)));
  } else {
    settle(way, Verdict::no,
           peer.reach == Reach::same_process ? "the peer is in this process" : "the peer is on this host");
  }
  return way;
}

const char* not_one_node(const Peer& peer) {
  switch (peer.reach) {
    case Reach::same_process: return "the two ends are different Nodes";
    case Reach::same_host: return "the two ends are in different processes";
    case Reach::other_host: break;
  }
  return "the peer is on another host";
}

// What one process can ask of a device, or of memcpy, without any NIC.
Way by_engine(const Memory& from, const Peer& peer, const Costs& costs) {
  const Memory& to = *peer.memory;
  const bool host_only = !from.accelerator && !to.accelerator;
  const Memory& worker = from.accelerator ? from : to;
  Way way{Kind::engine,
          host_only ? std::string("memcpy") : fmt::format("copy engine of {}", worker.name),
          host_only ? "memcpy" : "copy engine",
          {},
          Verdict::no,
          {},
          costs.copy.known() || worker.software ? costs.copy : between({}, worker.place)};
  if (!peer.same_node) {
    settle(way, Verdict::no, not_one_node(peer));
  } else if (host_only) {
    settle(way, Verdict::yes, "both ends are host memory");
  } else if (!worker.can_copy) {
    settle(way, Verdict::no, fmt::format("{} has no copy engine that strait can use", worker.name));
  } else if (from.accelerator && to.accelerator && from.name != to.name) {
    settle(way, Verdict::no, "the two ends are different devices");
  } else {
    settle(way, Verdict::yes,
           from.accelerator && to.accelerator ? "both ends are one device" : "one end is host memory");
  }
  return way;
}

Way by_link(const Memory& from, const Peer& peer, const Costs& costs) {
  const Memory& to = *peer.memory;
  const std::string bus = from.link.empty() ? "PCIe" : from.link;
  Way way{Kind::link, fmt::format("{} -> {} over {}", from.name, to.name, bus), "device to device", {}, Verdict::no, {},
          costs.copy};
  if (!way.cost.known() && from.link.empty() && !from.software) way.cost = between(from.place, to.place);
  if (!from.accelerator || !to.accelerator) {
    settle(way, Verdict::no, "one end is host memory");
  } else if (!peer.same_node) {
    settle(way, Verdict::no, not_one_node(peer));
  } else if (from.kind != to.kind) {
    settle(way, Verdict::no, fmt::format("{} and {} devices have no copies between them", from.kind, to.kind));
  } else if (from.name == to.name) {
    settle(way, Verdict::no, "both ends are one device");
  } else if (!from.can_copy) {
    settle(way, Verdict::no, fmt::format("{} has no copy engine that strait can use", from.name));
  } else {
    settle(way, Verdict::yes, fmt::format("{} copies over {}", from.kind, bus));
  }
  return way;
}

// Put and get go through a NIC, which checks what is allowed; handles of the vendor give everything away.
Way by_ipc(const Memory& from, const Peer& peer) {
  const Memory& to = *peer.memory;
  Way way{
      Kind::ipc, fmt::format("{} handle opened by the other process", from.kind), "vendor's IPC", {}, Verdict::no, {},
      {}};
  if (peer.reach == Reach::same_process) {
    settle(way, Verdict::no, "both ends are in this process");
  } else if (peer.reach == Reach::other_host) {
    settle(way, Verdict::no, "the peer is on another host");
  } else if (from.kind != to.kind || !from.accelerator) {
    settle(way, Verdict::no, "the two ends are not devices of one vendor");
  } else if (!from.can_ipc || !to.can_ipc) {
    settle(way, Verdict::no, fmt::format("{} memory has no handles for other processes", from.kind));
  } else {
    settle(way, Verdict::no, "a handle opens whole allocations without a check: put and get do not use it");
  }
  return way;
}

// The grants by which a CPU reaches the peer's memory itself: what both have in common.
bool settled_before_grants(Way& way, const Memory& from, const Peer& peer, const std::string& refusal) {
  if (peer.same_node) {
    settle(way, Verdict::no, "both ends are one Node's");
  } else if (peer.reach == Reach::other_host) {
    settle(way, Verdict::no, "the peer is on another host");
  } else if (!refusal.empty()) {
    settle(way, Verdict::no, refusal);
  } else if (from.staged_only || (from.accelerator && !from.in_files)) {
    settle(way, Verdict::no, fmt::format("{} memory is out of this CPU's reach", from.name));
  } else {
    return false;
  }
  return true;
}

Way by_map(const Memory& from, const Peer& peer, const Costs& costs) {
  const Memory& to = *peer.memory;
  Way way{Kind::map, "zero-copy: map grant, stores by this CPU", "map grant", {}, Verdict::no, {}, costs.memcpy};
  if (settled_before_grants(way, from, peer, peer.no_map_grants)) {
  } else if (!to.in_files) {
    settle(way, Verdict::no, fmt::format("{} memory lies in no file that this CPU could map", to.name));
  } else {
    settle(way, Verdict::yes, "both processes map it, if its owner's Node allocated it");
  }
  return way;
}

Way by_call(const Memory& from, const Peer& peer, const Costs& costs) {
  const Memory& to = *peer.memory;
  Way way{
      Kind::call, "zero-copy: copy grant, one copy by this CPU (process_vm_writev)", "copy grant", {}, Verdict::no, {},
      costs.call};
  if (settled_before_grants(way, from, peer, peer.no_copy_grants)) {
  } else if (to.accelerator) {
    settle(way, Verdict::no, fmt::format("{} memory is out of a CPU's reach", to.name));
  } else if (!peer.cross_copy) {
    settle(way, Verdict::no, cross_copy_refused(peer));
  } else {
    settle(way, Verdict::yes, "for other memory of the peer (malloc), from 8 KiB on");
  }
  return way;
}

// What was to come before the way that is taken.
void add_refusals(const Memory& memory, const Nic& nic, const char* where, std::vector<Way>& ways) {
  for (const Refusal& each : memory.refused) {
    ways.push_back({Kind::reach,
                    fmt::format("{} -> {} ({})", each.way, nic.name, memory.name),
                    where + each.way,
                    nic.name,
                    Verdict::no,
                    each.reason,
                    {}});
  }
}

// Staging moves host memory by whichever carrier can; so it needs one that could be taken if the memory were the
// host's.
Way staged(const Memory& source, std::span<const Nic> nics, const Peer& peer, const Policy& policy,
           const Costs& costs) {
  Way way{Kind::staged,
          "staged through host memory",
          "staged through host",
          nics.empty() ? "" : nics.front().name,
          Verdict::no,
          {},
          {}};
  Memory host;
  host.name = "host";
  bool carried = false;
  for (const Nic& nic : nics) {
    for (const Way& each : {by_copy(host, nic, peer, policy, costs), by_ring(host, nic, peer, policy, costs),
                            by_packets(host, nic, peer, policy, costs)}) {
      if (carried || each.verdict != Verdict::yes) continue;
      carried = true;
      way.cost = source.accelerator ? in_turn(costs.out, each.cost) : each.cost;
    }
  }
  if (peer.same_node) way.cost = in_turn(costs.out, costs.in);
  const bool far_device = peer.memory && peer.memory->accelerator;
  const bool local = peer.same_node;
  const bool followed = !source.migrates || std::ranges::any_of(nics, [](const Nic& nic) { return nic.follows_pages; });
  if (!source.accelerator && !far_device && followed) {
    settle(way, Verdict::no, "it is host memory already");
  } else if (far_device && !local &&
             std::ranges::all_of(nics, [&](const Nic& nic) { return !far_refusal(peer, nic).empty(); })) {
    settle(way, Verdict::no,
           fmt::format("{} would have to be staged by the peer, which cannot know when", peer.memory->name));
  } else if (nics.empty()) {
    settle(way, Verdict::no, "there is no NIC");
  } else if (!source.can_copy) {
    settle(way, Verdict::no, fmt::format("{} cannot copy to host memory", source.name));
  } else if (far_device && !peer.memory->can_copy) {
    settle(way, Verdict::no, fmt::format("{} cannot copy from host memory", peer.memory->name));
  } else if (!carried && !local) {
    settle(way, Verdict::no, "no carrier reaches the peer");
  } else if (policy.require_zero_copy) {
    settle(way, Verdict::no, "refused by require=zero_copy");
  } else if (policy.staging_asked) {
    settle(way, Verdict::yes, "asked for by reach=staged");
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

Plan make_plan(const Memory& source, std::span<const Nic> nics, const Peer& peer, const Policy& policy,
               const Costs& costs, std::size_t rank) {
  const std::string where = peer.name.empty() ? "any peer on this host" : peer.name;
  Plan plan{source.name, where, {}, {}};
  if (peer.memory) {
    plan.to = peer.same_node ? peer.memory->name : fmt::format("{}@{}", peer.memory->name, where);
    plan.ways.push_back(by_engine(source, peer, costs));
    plan.ways.push_back(by_link(source, peer, costs));
    plan.ways.push_back(by_ipc(source, peer));
    plan.ways.push_back(by_map(source, peer, costs));
    plan.ways.push_back(by_call(source, peer, costs));
  }
  // By preference: fewer copies first, then the best NIC.
  const std::vector<std::size_t> order = preferred(source, nics, rank);
  if (!nics.empty()) {
    add_refusals(source, nics[order.front()], "", plan.ways);
    if (peer.memory && !peer.same_node)
      add_refusals(*peer.memory, far_nic(peer, nics[order.front()]), "at the other end, ", plan.ways);
  }
  for (const std::size_t i : order) plan.ways.push_back(by_copy(source, nics[i], peer, policy, costs));
  for (const std::size_t i : order) plan.ways.push_back(by_ring(source, nics[i], peer, policy, costs));
  for (const std::size_t i : order) plan.ways.push_back(by_packets(source, nics[i], peer, policy, costs));
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
    case Kind::engine: return "engine";
    case Kind::link: return "link";
    case Kind::ipc: return "ipc";
    case Kind::map: return "map";
    case Kind::call: return "call";
    case Kind::copy: return "copy";
    case Kind::ring: return "ring";
    case Kind::packets: return "roce";
    case Kind::staged: return "staged";
    case Kind::reach: return "reach";
  }
  return "unknown";
}

}  // namespace strait::plan
