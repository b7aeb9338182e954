// SPDX-License-Identifier: Apache-2.0
// Opening every device when the Node opens.
#include <algorithm>

#include "node/core.hpp"
#include "sys/beside.hpp"
#include "sys/host.hpp"
#include "sys/interfaces.hpp"
#include "sys/socket.hpp"

namespace strait::node {

namespace {

// A plug-in stays loaded once it was: it may have a fork handler and statics that live as long as the process, and
// loading it again for every Node would add to them.
Status pin_library(const std::string& path) {
  static std::mutex mutex;
  static auto* const pinned = new std::map<std::string, sys::Library>;
  const std::lock_guard lock(mutex);
  if (pinned->contains(path)) return {};
  STRAIT_TRY(sys::Library library, sys::Library::open(path));
  pinned->emplace(path, std::move(library));
  return {};
}

}  // namespace

std::string Core::soft_library_path() const {
  const std::string& given = options_.text("soft_library");
  return given.empty() ? sys::beside_this_library("libstrait-soft.so.0") : given;
}

// What the software NIC is told. Packets need a socket: a Node that listens on loopback only is given one when it asks.
std::string Core::soft_nic_config(std::uint32_t index) const {
  const std::string& carrier = options_.text("carrier");
  std::string config = fmt::format("name=strait{},cross_memory={},carrier={},mtu={}", index,
                                   options_.text("cross_memory"), carrier, options_.integer("roce_mtu"));
  std::string address = options_.text("roce_address");
  if (address == "auto") {
    const auto listen = sys::parse_endpoint(options_.text("listen"));
    const std::string host = listen ? listen->host : "";
    const bool loopback = host.starts_with("127.") || host == "::1" || host == "localhost";
    const bool wildcard = host == "0.0.0.0" || host == "::";
    if (!loopback && !wildcard) {
      address = host;
    } else if (wildcard) {
      address = sys::first_address();
    } else {
      address = carrier == "roce" ? "loopback" : "";
    }
    if (address.empty() && carrier == "roce") address = "loopback";
  }
  if (carrier != "grant" && !address.empty()) config += ",address=" + address;
  if (std::string capture = options_.text("capture"); !capture.empty()) {
    // One file each: two writers of one file would leave neither's packets.
    if (const std::size_t at = capture.find("%p"); at != std::string::npos)
      capture.replace(at, 2, std::to_string(sys::process_id()));
    config += ",capture=" + (index == 0 ? capture : fmt::format("{}.{}", capture, index));
  }
  if (options_.flag("strict")) {
    config += ",strict=1";
    if (const std::string& report = options_.text("strict_report"); !report.empty())
      config += ",strict_report=" + report;
  }
  if (std::string faults = options_.text("faults"); !faults.empty()) {
    std::replace(faults.begin(), faults.end(), ',', ';');
    config += ",faults=" + faults;
  }
  return config;
}

std::string Core::verbs_library_path() const {
  const std::string& given = options_.text("verbs_library");
  return given.empty() ? sys::beside_this_library("libstrait-verbs.so.0") : given;
}

Status Core::open_devices() {
  for (const char* const name : {"capture", "strict_report"}) {
    // A NIC is told everything in one text, in which commas separate.
    if (options_.text(name).find(',') != std::string::npos)
      return fail(Code::invalid, "option {}: \"{}\" has a comma, which a file's name cannot have here", name,
                  options_.text(name));
  }
  STRAIT_TRY(const std::vector<Wanted> accelerators, parse_wanted("accelerators", options_.text("accelerators")));
  STRAIT_TRY(const std::vector<Wanted> nics, parse_wanted("nics", options_.text("nics")));

  const bool soft_nics = std::ranges::any_of(nics, [](const Wanted& wanted) { return wanted.kind == "soft"; });
  if (!accelerators.empty() || soft_nics) STRAIT_CHECK(pin_library(soft_library_path()));
  std::vector<buffer::Plugin> plugins;
  for (const Wanted& wanted : accelerators) {
    STRAIT_TRY(buffer::Plugin plugin,
               buffer::load_plugin(soft_library_path(), fmt::format("devices={},memory={},export={}", wanted.count,
                                                                    options_.integer("accelerator_memory"),
                                                                    options_.flag("accelerator_export") ? 1 : 0)));
    plugins.push_back(std::move(plugin));
  }
  const std::string& paths = options_.text("plugins");
  for (std::size_t at = 0; at < paths.size();) {
    const std::size_t colon = std::min(paths.find(':', at), paths.size());
    if (colon > at) {
      STRAIT_TRY(buffer::Plugin plugin, buffer::load_plugin(paths.substr(at, colon - at)));
      plugins.push_back(std::move(plugin));
    }
    at = colon + 1;
  }
  STRAIT_TRY(providers_, buffer::Providers::open(std::move(plugins)));

  for (const Wanted& wanted : nics) STRAIT_CHECK(open_nics(wanted));
  return {};
}

Status Core::open_nics(const Wanted& wanted) {
  const bool verbs = wanted.kind == "verbs";
  const std::string path = verbs ? verbs_library_path() : soft_library_path();
  STRAIT_CHECK(pin_library(path));
  STRAIT_TRY(sys::Library library, sys::Library::open(path));
  STRAIT_TRY(const auto entry, library.symbol<strait_nic_entry>(STRAIT_NIC_ENTRY));
  nic_libraries_.push_back(std::move(library));
  for (std::uint32_t i = 0; i < wanted.count; ++i) {
    const auto index = static_cast<std::uint32_t>(rails_.size());
    STRAIT_CHECK(open_rail(entry(), verbs ? fmt::format("device={}", wanted.device) : soft_nic_config(index)));
  }
  return {};
}

Status Core::open_rail(const strait_nic_ops* ops, const std::string& config) {
  if (rails_.size() >= kMaxRails)
    return fail(Code::invalid, "option nics: this version drives at most {} NICs", kMaxRails);
  Rail rail;
  STRAIT_TRY(rail.nic, rail::Nic::open(ops, config));
  rail.abilities.name = rail.nic->name();
  rail.abilities.imports_fds = rail.nic->info().imports_fds != 0;
  rail.abilities.wants_pages = rail.nic->info().wants_pages != 0;
  const rail::Nic* nic = rail.nic.get();
  // The cache knows allocations by their addresses; how they are exported is in the book, which share() filled before.
  const auto register_memory = [this, nic](const keys::Allocation& allocation,
                                           std::uint32_t access) -> Result<keys::Registration> {
    const ExportBook::Shared exported = book_.find(allocation.base, allocation.length_bytes, allocation.identity);
    if (!exported)
      return fail(Code::invalid, "the allocation at {:#x} was not exported before it was registered", allocation.base);
    rail::MemoryRequest request;
    request.address = allocation.base;
    request.length_bytes = allocation.length_bytes;
    request.access = access;
    if (exported->fd.valid()) {
      request.fd = exported->fd.fd();
      request.fd_offset = exported->fd.offset();
      if (exported->pages.valid()) {
        request.pages_fd = exported->pages.fd();
        request.pages_offset = exported->pages.offset();
      }
      if (exported->way == exports::Way::host_pages) request.access |= STRAIT_NIC_CPU_ADDRESS;
    }
    STRAIT_TRY(rail::MemoryKey key, nic->register_memory(request));
    struct Kept {
      ExportBook::Shared exported;
      rail::MemoryKey key;  // declared last: deregistered before the export goes
    };
    const std::uint32_t lkey = key.lkey();
    const std::uint32_t rkey = key.rkey();
    return keys::Registration{lkey, rkey, std::make_shared<Kept>(Kept{exported, std::move(key)})};
  };
  // Dropping `keep` deregisters.
  rail.cache = std::make_unique<keys::Cache>(register_memory, [](const keys::Registration&) {});
  rails_.push_back(std::move(rail));
  // An allocation is exported once for all NICs, by what the first one says.
  if (rails_.back().abilities.wants_pages) rails_.front().abilities.wants_pages = true;
  return {};
}

plan::Plan Core::plan_for(const buffer::Claim& claim) const {
  plan::Source source;
  source.name = claim.device->name;
  source.accelerator = !claim.cpu_accessible();
  source.exports_fd = claim.can_export();
  if (!source.exports_fd) source.export_refusal = fmt::format("{} cannot export its memory", claim.device->name);
  source.can_copy = (claim.capabilities & STRAIT_CAN_COPY) != 0 || claim.cpu_accessible();
  std::vector<plan::Nic> nics;
  for (const Rail& rail : rails_) {
    plan::Nic nic;
    nic.name = rail.nic->name();
    nic.software = rail.nic->info().software != 0;
    nic.imports_fds = rail.abilities.imports_fds;
    nic.maps_pages = rail.abilities.wants_pages && rail.nic->info().wants_pages != 0;
    nic.grants = std::string_view(rail.nic->ops()->kind) == "soft";
    nic.has_packets = !nic.grants || rail.nic->info().has_packets != 0;
    nics.push_back(std::move(nic));
  }
  plan::Peer peer;
  peer.cross_copy = options_.text("cross_memory") != "off";
  if (!peer.cross_copy) peer.cross_copy_refusal = "option cross_memory is off";
  plan::Policy policy;
  policy.allow_staging = settings_.allow_staging;
  policy.carrier = plan::parse_carrier(options_.text("carrier")).value_or(plan::Carrier::any);
  return plan::make_plan(source, nics, peer, policy);
}

}  // namespace strait::node
