// SPDX-License-Identifier: Apache-2.0
// Which way bytes would take, and why not another: the Node's capability records, a peer's, and the planner.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "node/core.hpp"
#include "node/near.hpp"
#include "plan/record.hpp"
#include "sys/host.hpp"
#include "sys/pci.hpp"

namespace strait::node {
namespace {

plan::Place place_of(const Result<sys::PciPlace>& found) {
  if (!found) return {};  // no PCI device, or a machine that does not show its tree: nothing is known, nothing assumed
  return {found->path, found->numa_node, found->link_gb_s};
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(each));
  return text;
}

// "cuda:0@10.0.0.7:7471" in its parts.
struct Named {
  std::string memory;
  std::string where;  // empty: this Node
};
Named split(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

Result<plan::Memory> memory_in(const plan::Machine& machine, const std::string& name, std::string_view whose) {
  if (const plan::Memory* const found = machine.find(name)) return *found;
  std::string names;
  for (const plan::Memory& each : machine.memories) names += (names.empty() ? "" : ", ") + each.name;
  return fail(Code::invalid, "{} has no memory called \"{}\": it has {}", whose, name, names);
}

void forget_taken(plan::Memory& memory) {
  memory.staged_only = false;
  memory.reached_by.clear();
  memory.refused.clear();
}

// What a NIC did with the memory overrules what the records promise.
void note_taken(plan::Memory& memory, const Taken& taken) {
  forget_taken(memory);
  memory.staged_only = taken.way == exports::Way::staged;
  const bool plain = taken.way == exports::Way::dmabuf && memory.exports_fd;  // as the records have it
  if (!memory.staged_only && !plain) memory.reached_by = exports::way_name(taken.way);
  if (!plain) memory.in_files = false;  // no descriptor of it is made then, and none can be given
  for (const exports::Rejected& each : taken.before)
    memory.refused.push_back({exports::way_name(each.way), each.reason});
}

// Option reach, before a NIC was asked: what is named is the only way, where it is one. Empty: as the records have it.
std::optional<Taken> asked_for(exports::Reach reach, const buffer::Device& device, const exports::NicAbilities& nic) {
  using exports::Reach;
  using exports::Way;
  if (reach == Reach::automatic || reach == Reach::dmabuf) return std::nullopt;
  const bool served = (device.capabilities & STRAIT_CAN_PEER_MEMORY) != 0;
  const bool client = served && (nic.peer_memory || nic.plain_unknown);
  const bool pages = served && exports::has_p2p_pages(device) && (nic.p2p_pages || nic.plain_unknown);
  const Way named = reach == Reach::peer_memory ? Way::peer_memory
                    : reach == Reach::p2p_pages ? Way::p2p_pages
                                                : Way::staged;
  const bool there = named == Way::staged || (named == Way::peer_memory ? client : pages);
  Taken taken{there ? named : Way::staged, {}};
  for (const Way each : {Way::dmabuf, Way::peer_memory, Way::p2p_pages}) {
    if (each >= taken.way) break;
    taken.before.push_back({each, each == named
                                      ? fmt::format("{} has it not for memory of {}", nic.name, device.name)
                                      : fmt::format("option reach={} asks for another way", reach_name(reach))});
  }
  return taken;
}

std::string grants_missing(const plan::Machine& here, const plan::Machine& there, bool plan::Machine::*has) {
  for (const plan::Machine* const end : {&here, &there}) {
    if (end->*has) continue;
    const std::string& why = end->no_grants_because;
    return (end == &here ? "here, " : "at the other end, ") + (why.empty() ? "option grant names another kind" : why);
  }
  return {};
}

}  // namespace

plan::Memory Core::record_of(const buffer::Device& device) const {
  plan::Memory memory;
  memory.name = device.name;
  memory.kind = device.kind;
  memory.accelerator = (device.capabilities & STRAIT_CPU_ACCESSIBLE) == 0;
  memory.exports_fd = (device.capabilities & STRAIT_CAN_EXPORT_DMABUF) != 0;
  if (!memory.exports_fd) memory.export_refusal = fmt::format("{} cannot export its memory", device.name);
  memory.can_copy = (device.capabilities & STRAIT_CAN_COPY) != 0 || !memory.accelerator;
  memory.can_ipc = (device.capabilities & STRAIT_CAN_IPC) != 0;
  memory.link = device.link;
  memory.software = device.software;
  memory.in_files = lies_in_files(device);
  if (!device.pci_address.empty()) memory.place = place_of(sys::pci_place(options_.text("sysfs"), device.pci_address));
  // The provider has asked the machine it runs on; of a recorded one it knows nothing.
  if (memory.place.numa_node < 0 && options_.text("sysfs") == "/sys") memory.place.numa_node = device.numa_node;
  if (memory.accelerator) {
    auto taken = book_.last_of(device.name);
    if (!taken && !rails_.empty()) taken = asked_for(settings_.reach, device, abilities_);
    if (taken) note_taken(memory, *taken);
  }
  return memory;
}

plan::Nic Core::record_of(const Rail& rail) const {
  plan::Nic nic;
  nic.name = rail.nic->name();
  nic.software = rail.nic->info().software != 0;
  nic.imports_fds = rail.abilities.imports_fds;
  nic.maps_pages = rail.abilities.wants_pages && rail.nic->info().wants_pages != 0;
  nic.grants = std::string_view(rail.nic->ops()->kind) == "soft";
  nic.follows_pages = rail.abilities.follows_pages;
  nic.has_packets = !nic.grants || rail.nic->info().has_packets != 0;
  const bool cxi = std::string_view(rail.nic->ops()->kind) == "cxi";
  if (cxi) nic.carries = "Slingshot packets";
  const std::string folder = cxi ? "class/cxi_user/" : "class/infiniband/";
  if (nic.software) return nic;
  nic.place = place_of(sys::pci_place_of(options_.text("sysfs"), folder + nic.name));
  nic.port_gb_s = sys::port_gb_s(options_.text("sysfs"), folder + nic.name);
  return nic;
}

plan::Machine Core::machine() const {
  plan::Machine machine{address_, hex(host_), sys::process_id(), {}, {}};
  for (const buffer::Device* device : providers_->devices()) machine.memories.push_back(record_of(*device));
  for (const Rail& rail : rails_) {
    machine.nics.push_back(record_of(rail));
    if (!same_wire(rail))
      machine.nics.back().not_taken =
          fmt::format("lanes are opened over {} and NICs of its kind", rails_.front().nic->name());
  }
  machine.map_grants = door_ && settings_.grants != Grants::copy;
  machine.copy_grants = door_ && settings_.grants != Grants::map && why_no_copies().empty();
  machine.no_grants_because = no_grants_because_;
  return machine;
}

plan::Peer Core::any_peer() const {
  plan::Peer peer;
  peer.cross_copy = options_.text("cross_memory") != "off";
  if (!peer.cross_copy) peer.cross_copy_refusal = "option cross_memory is off";
  return peer;
}

plan::Policy Core::plan_policy() const {
  plan::Policy policy;
  policy.allow_staging = settings_.allow_staging;
  policy.staging_asked = settings_.reach == exports::Reach::staged;
  policy.carrier = plan::parse_carrier(options_.text("carrier")).value_or(plan::Carrier::any);
  return policy;
}

plan::Plan Core::plan_for(const strait_region& region) const {
  const buffer::Claim& claim = region.claim;
  plan::Memory memory = record_of(*claim.device);
  // What is true of this allocation, not of the device in general: managed memory of a GPU is not exported.
  memory.accelerator = !claim.cpu_accessible();
  memory.migrates = claim.sort == STRAIT_SORT_MANAGED;
  memory.exports_fd = claim.can_export();
  if (!memory.exports_fd) memory.export_refusal = fmt::format("{} cannot export its memory", claim.device->name);
  if (!memory.accelerator) {
    forget_taken(memory);  // that was of the device's own memory
  } else if (region.exported) {
    Taken taken = region.exported->taken();
    // A client that does not answer leaves it to the pages, in one registration.
    const auto by_pages = [&](std::size_t i) {
      return region.lkeys[i] != kNoKey && rails_[i].nic->registered_by(region.lkeys[i]) == STRAIT_NIC_BY_P2P_PAGES;
    };
    if (taken.way == exports::Way::peer_memory &&
        std::ranges::any_of(std::views::iota(std::size_t{0}, rails_.size()), by_pages)) {
      taken.before.push_back({taken.way, "no client answered for the address"});
      taken.way = exports::Way::p2p_pages;
    }
    note_taken(memory, taken);
  }
  plan::Machine here = machine();
  for (std::size_t i = 0; i < rails_.size() && region.exported && !region.staged; ++i) {
    if (region.lkeys[i] == kNoKey)
      here.nics[i].not_taken =
          fmt::format("{} did not take the memory: {}", here.nics[i].name, region.exported->refusal_of(i));
  }
  return plan::make_plan(memory, here.nics, any_peer(), plan_policy(), {}, here.rank_of(memory));
}

// What the plan may need, timed now or remembered.
plan::Costs Core::timed_for(const plan::Memory& source, const plan::Peer& peer, const plan::Policy& policy) {
  const plan::Memory& target = *peer.memory;
  plan::Costs costs;
  costs.memcpy = stopwatch_.copy(*providers_, "host", "host");
  if (!source.accelerator || source.can_copy) costs.out = stopwatch_.copy(*providers_, source.name, "host");
  if (peer.same_node) {
    if (!target.accelerator || target.can_copy) costs.in = stopwatch_.copy(*providers_, "host", target.name);
    const bool possible = !source.accelerator || !target.accelerator || source.kind == target.kind;
    if (possible) costs.copy = stopwatch_.copy(*providers_, source.name, target.name);
  }
  if (peer.reach == plan::Reach::same_host) costs.call = stopwatch_.call();
  const bool soft =
      std::ranges::any_of(rails_, [](const Rail& rail) { return rail.nic->ops()->kind == std::string_view("soft"); });
  if (!soft) return costs;
  const std::string& library = options_.text("soft_library");
  const bool far = peer.reach == plan::Reach::other_host || policy.carrier == plan::Carrier::packets;
  (far ? costs.packets : costs.ring) = stopwatch_.carrier(far ? "roce" : "grant", library);
  return costs;
}

Result<std::string> Core::on_describe(rendezvous::PeerId /*peer*/) {
  wait_until_open();
  return plan::to_record(machine());
}

Result<std::string> Core::explain(const std::string& from, const std::string& to, std::uint32_t flags,
                                  sys::Deadline deadline) {
  if ((flags & ~std::uint32_t{STRAIT_EXPLAIN_TEXT | STRAIT_EXPLAIN_ZERO_COPY}) != 0)
    return fail(Code::invalid, "flags {:#x} have bits strait does not know", flags);
  const plan::Machine here = machine();
  if (from.find('@') != std::string::npos)
    return fail(Code::invalid, "\"{}\": a transfer is explained where it starts, so --from names memory of this Node",
                from);
  STRAIT_TRY(const plan::Memory source, memory_in(here, from, "this Node"));
  const Named named = split(to);
  plan::Peer peer = any_peer();
  plan::Machine there = here;
  if (named.where.empty()) {
    peer.reach = plan::Reach::same_process;
    peer.same_node = true;
    peer.name = "this Node";
  } else if (named.where == "peer") {
    // Another host, furnished like this one.
    peer.reach = plan::Reach::other_host;
    peer.name = "peer";
    for (plan::Nic& nic : there.nics) nic.has_packets = true;
  } else {
    STRAIT_TRY(const sys::Endpoint endpoint, sys::parse_endpoint(named.where));
    if (endpoint.port == 0)
      return fail(Code::invalid, "\"{}\" names no port: peers are named host:port, or peer for one like this",
                  named.where);
    STRAIT_TRY(const auto client, rendezvous::Client::connect(endpoint, secret_, deadline));
    STRAIT_TRY(const auto described, client->call_for<rendezvous::Described>(rendezvous::Describe{}, deadline));
    auto parsed = plan::from_record(described.record);
    if (!parsed) return fail(Code::invalid, "{} describes itself wrongly: {}", named.where, parsed.error().text);
    there = std::move(*parsed);
    peer.name = named.where;
    if (there.host != here.host) peer.reach = plan::Reach::other_host;
    if (there.host == here.host && there.process == here.process) peer.reach = plan::Reach::same_process;
  }
  STRAIT_TRY(peer.memory, memory_in(there, named.memory, named.where.empty() ? "this Node" : peer.name));
  peer.nics = there.nics;
  peer.no_map_grants = grants_missing(here, there, &plan::Machine::map_grants);
  peer.no_copy_grants = grants_missing(here, there, &plan::Machine::copy_grants);
  std::vector<plan::Nic> nics = here.nics;
  // A software NIC gets its port for packets when its Node listens beyond loopback; a plan for another host is made as
  // if it did.
  if (peer.reach == plan::Reach::other_host) {
    for (plan::Nic& nic : nics) nic.has_packets = true;
  }
  plan::Policy policy = plan_policy();
  policy.require_zero_copy = (flags & STRAIT_EXPLAIN_ZERO_COPY) != 0;
  const plan::Costs costs = timed_for(source, peer, policy);
  const plan::Plan plan = plan::make_plan(source, nics, peer, policy, costs, here.rank_of(source));
  return (flags & STRAIT_EXPLAIN_TEXT) != 0 ? plan::to_text(plan) : plan::to_json(plan).dump();
}

}  // namespace strait::node
