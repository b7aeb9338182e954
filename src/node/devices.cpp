// SPDX-License-Identifier: Apache-2.0
// Opening every device when the Node opens.
#include <algorithm>

#include "buffer/built_in.hpp"
#include "node/core.hpp"
#include "rail/cxi/plugin.hpp"
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

// Of "attach=524,1:map=EPERM": what is for the NIC of this number, or for all.
std::string faults_of(const std::string& list, std::uint32_t index) {
  std::string out;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::string_view one = std::string_view(list).substr(at, comma - at);
    at = comma + 1;
    const std::size_t colon = one.find(':');
    if (colon != one.npos && one.substr(0, colon).find_first_not_of("0123456789") == one.npos) {
      if (one.substr(0, colon) != std::to_string(index)) continue;
      one.remove_prefix(colon + 1);
    }
    if (!out.empty()) out += ',';
    out += one;
  }
  return out;
}

}  // namespace

std::string Core::soft_library_path() const {
  const std::string& given = options_.text("soft_library");
  return given.empty() ? sys::beside_this_library("libstrait-soft.so.0") : given;
}

// What the software NIC is told. Packets need a socket: a Node that listens on loopback only is given one when it asks.
// Lists with semicolons: commas end the pairs of a configuration.
std::string Core::plain_ways_config(std::uint32_t index) const {
  std::string ways = options_.text("peer_memory");
  // Who asks for a way by name wants the software machine to have it.
  if (ways == "none" && settings_.reach == exports::Reach::peer_memory) ways = "nvidia,amd";
  if (ways == "none" && settings_.reach == exports::Reach::p2p_pages) ways = "p2p";
  std::string faults = faults_of(options_.text("kernel_faults"), index);
  for (std::string* each : {&ways, &faults}) std::replace(each->begin(), each->end(), ',', ';');
  std::string out = ",peer_memory=" + ways;
  if (!faults.empty()) out += ",kernel_faults=" + faults;
  return out;
}

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
  config += plain_ways_config(index);
  if (options_.flag("strict")) {
    config += fmt::format(",strict=1,strict_seed={}", options_.integer("strict_seed"));
    if (const std::string& report = options_.text("strict_report"); !report.empty())
      config += ",strict_report=" + report;
  }
  if (std::string faults = options_.text("faults"); !faults.empty()) {
    std::replace(faults.begin(), faults.end(), ',', ';');
    config += ",faults=" + faults;
  }
  return config;
}

// The trial's options all of them, also where they say no: a software Cassini takes from the environment what it is not
// told. Of what its machine is like it is told what somebody said: by default it is not as it is for the software NIC.
std::string Core::cxi_config(const std::string& device) const {
  const auto list = [](std::string text) {
    std::replace(text.begin(), text.end(), ',', ';');
    return text;
  };
  std::string config =
      fmt::format("device={},soft_library={},strict={},strict_seed={},strict_report={},faults={}", device,
                  soft_library_path(), options_.flag("strict") ? 1 : 0, options_.integer("strict_seed"),
                  options_.text("strict_report"), list(options_.text("faults")));
  for (const std::string name : {"cassini", "cassini_moves", "peer_memory", "kernel_faults"}) {
    if (options_.origin(name) == Origin::fallback) continue;
    const std::string& text = options_.text(name);
    const auto index = static_cast<std::uint32_t>(rails_.size());
    config += fmt::format(",{}={}", name, list(name == "kernel_faults" ? faults_of(text, index) : text));
  }
  return config;
}

std::string Core::verbs_library_path() const {
  const std::string& given = options_.text("verbs_library");
  return given.empty() ? sys::beside_this_library("libstrait-verbs.so.0") : given;
}

// In the order of the option; a vendor that is named is opened once, and insisted on, also where `auto` stands too.
Result<std::vector<buffer::Plugin>> Core::accelerator_plugins(const std::vector<Wanted>& wanted) const {
  STRAIT_TRY(auto told, parse_provider_config(options_.text("provider_config")));
  std::vector<buffer::Plugin> plugins;
  const auto named = [&](std::string_view kind) {
    return std::ranges::any_of(wanted, [&](const Wanted& one) { return one.kind == kind; });
  };
  for (const Wanted& one : wanted) {
    if (one.kind == "soft") {
      const std::string config =
          fmt::format("devices={},memory={},export={}", one.count, options_.integer("accelerator_memory"),
                      options_.flag("accelerator_export") ? 1 : 0);
      STRAIT_TRY(buffer::Plugin plugin, buffer::load_plugin(soft_library_path(), config));
      plugins.push_back(std::move(plugin));
      continue;
    }
    for (const std::string_view vendor : buffer::kVendors) {
      if (one.kind == "auto" ? named(vendor) : one.kind != vendor) continue;
      STRAIT_TRY(buffer::Plugin plugin,
                 buffer::use_plugin(buffer::built_in_provider(vendor), told[std::string(vendor)]));
      plugin.optional = one.kind == "auto";
      plugins.push_back(std::move(plugin));
    }
  }
  return plugins;
}

Status Core::open_devices() {
  for (const char* const name : {"capture", "strict_report", "cassini"}) {
    // A NIC is told everything in one text, in which commas separate.
    if (options_.text(name).find(',') != std::string::npos)
      return fail(Code::invalid, "option {}: \"{}\" has a comma, which that name cannot have here", name,
                  options_.text(name));
  }
  STRAIT_TRY(const std::vector<Wanted> accelerators, parse_wanted("accelerators", options_.text("accelerators")));
  STRAIT_TRY(const std::vector<Wanted> nics, parse_wanted("nics", options_.text("nics")));

  const auto is_soft = [](const Wanted& wanted) { return wanted.kind == "soft"; };
  if (std::ranges::any_of(accelerators, is_soft) || std::ranges::any_of(nics, is_soft))
    STRAIT_CHECK(pin_library(soft_library_path()));
  STRAIT_TRY(std::vector<buffer::Plugin> plugins, accelerator_plugins(accelerators));
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
  relay_ = std::make_unique<exports::HostRelay>(*providers_);

  for (const Wanted& wanted : nics) STRAIT_CHECK(open_nics(wanted));
  const plan::Nic first = rails_.empty() ? plan::Nic{} : record_of(rails_.front());
  STRAIT_TRY(placement_,
             Placement::make(options_.text("numa"), options_.text("sysfs"), first.name, first.place.numa_node));
  open_cache();
  return {};
}

Status Core::open_nics(const Wanted& wanted) {
  if (wanted.kind == "cxi") return open_rail(rail::cxi::nic_plugin(), cxi_config(wanted.device));
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
  rail.abilities.follows_pages = std::string_view(ops->kind) == "soft";
  const std::uint32_t plain = rail.nic->info().plain_ways;
  rail.abilities.peer_memory = (plain & STRAIT_NIC_WAY_PEER_MEMORY) != 0;
  rail.abilities.p2p_pages = (plain & STRAIT_NIC_WAY_P2P_PAGES) != 0;
  rail.abilities.plain_unknown = (plain & STRAIT_NIC_WAY_UNKNOWN) != 0;
  rail.abilities.persistent = (plain & STRAIT_NIC_WAY_PERSISTENT) != 0;
  if (rails_.empty()) {
    abilities_ = rail.abilities;
  } else {
    abilities_.imports_fds |= rail.abilities.imports_fds;
    abilities_.wants_pages |= rail.abilities.wants_pages;
    abilities_.follows_pages |= rail.abilities.follows_pages;
    abilities_.peer_memory |= rail.abilities.peer_memory;
    abilities_.p2p_pages |= rail.abilities.p2p_pages;
    abilities_.plain_unknown |= rail.abilities.plain_unknown;
    abilities_.persistent |= rail.abilities.persistent;
  }
  rails_.push_back(std::move(rail));
  return {};
}

}  // namespace strait::node
