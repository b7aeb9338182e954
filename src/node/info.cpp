// SPDX-License-Identifier: Apache-2.0
// What a Node and a region say about themselves, as JSON for people and tools.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "node/core.hpp"
#include "node/lane.hpp"
#include "rendezvous/client.hpp"

namespace strait::node {
namespace {

using nlohmann::json;

json abilities(std::uint32_t bits) {
  json list = json::array();
  if (bits & STRAIT_CAN_ALLOCATE) list.push_back("allocate");
  if (bits & STRAIT_CAN_COPY) list.push_back("copy");
  if (bits & STRAIT_CAN_EXPORT_DMABUF) list.push_back("export");
  if (bits & STRAIT_CAN_IDENTIFY) list.push_back("identify");
  if (bits & STRAIT_CPU_ACCESSIBLE) list.push_back("cpu_accessible");
  if (bits & STRAIT_CAN_IPC) list.push_back("ipc");
  if (bits & STRAIT_CAN_MAP_CPU) list.push_back("map_cpu");
  if (bits & STRAIT_CAN_ADVISE) list.push_back("advise");
  if (bits & STRAIT_CAN_PEER_MEMORY) list.push_back("peer_memory");
  if (bits & STRAIT_CAN_WATCH) list.push_back("watch");
  return list;
}

// "exports=3,opens=1" as an object; what is not a number stays text.
json counted(const std::string& text) {
  json object = json::object();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    at = comma + 1;
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) continue;
    const std::string value = item.substr(equals + 1);
    const bool number =
        !value.empty() && value.size() < 20 && value.find_first_not_of("0123456789") == std::string::npos;
    object[item.substr(0, equals)] = number ? json(std::stoull(value)) : json(value);
  }
  return object;
}

json device_row(const buffer::Device& device) {
  return {{"name", device.name},
          {"kind", device.kind},
          {"description", device.description},
          {"memory_bytes", device.memory_bytes},
          {"capabilities", abilities(device.capabilities)},
          {"software", device.software},
          {"driver", device.driver},
          {"pci_address", device.pci_address},
          {"link", device.link}};
}

// Where it is in the machine that option sysfs shows: an empty list and -1 where that is not known.
void add_place(json& row, const plan::Place& place) {
  row["pci_path"] = place.path;
  row["numa_node"] = place.numa_node;
}

json cache_row(const keys::CacheStats& stats) {
  return {{"hits", stats.hits},
          {"misses", stats.misses},
          {"uncached", stats.uncached},
          {"stale", stats.stale},
          {"evicted", stats.evicted},
          {"invalidated", stats.invalidated},
          {"registered", stats.registered},
          {"deregistered", stats.deregistered},
          {"discarded", stats.discarded},
          {"failed", stats.failed},
          {"refused_again", stats.refused_again},
          {"dead_refused", stats.dead_refused},
          {"entries", stats.entries},
          {"bytes", stats.bytes},
          {"fds", stats.fds},
          {"leases", stats.leases},
          {"dead_entries", stats.dead_entries},
          {"dead_bytes", stats.dead_bytes},
          {"memory_bytes", stats.memory_bytes}};
}

json monitor_row(const keys::MonitorStats& stats) {
  return {{"watched", stats.watched},     {"unwatched", stats.unwatched}, {"events", stats.events},
          {"forgotten", stats.forgotten}, {"overflows", stats.overflows}, {"retries", stats.retries}};
}

const char* progress_name(ProgressMode mode) {
  return mode == ProgressMode::thread ? "thread" : mode == ProgressMode::caller ? "caller" : "eventfd";
}

}  // namespace

std::string Core::info_json() {
  json info;
  info["version"] = STRAIT_VERSION_TEXT;
  info["address"] = address_;
  info["progress"] = progress_name(settings_.progress);
  info["memory"] = json::array();
  info["accelerators"] = json::array();
  for (const auto& provider : providers_->providers()) {
    for (std::uint32_t i = 0; i < provider->devices().size(); ++i) {
      const buffer::Device& device = provider->devices()[i];
      json row = device_row(device);
      add_place(row, record_of(device).place);
      if (device.kind != "host") {
        row["free_bytes"] = provider->free_bytes(i);
        info["accelerators"].push_back(row);
      }
      info["memory"].push_back(std::move(row));
    }
  }
  info["accelerators_absent"] = json::array();
  for (const auto& absent : providers_->absent())
    info["accelerators_absent"].push_back({{"kind", absent.kind}, {"because", absent.because}});
  info["nics"] = json::array();
  for (const Rail& rail : rails_) {
    const strait_nic_info& nic = rail.nic->info();
    json row = {{"name", nic.name},
                {"description", nic.description},
                {"address", nic.address_text},
                {"software", nic.software != 0},
                {"imports_fds", nic.imports_fds != 0},
                {"max_inline_bytes", nic.max_inline_bytes}};
    add_place(row, record_of(rail).place);
    info["nics"].push_back(std::move(row));
  }
  info["options"] = json::array();
  for (const OptionRow& row : options_.table()) {
    const std::string& value = options_.text(row.name);
    info["options"].push_back({{"name", row.name},
                               {"value", row.secret && !value.empty() ? std::string("(secret)") : value},
                               {"origin", origin_name(options_.origin(row.name))},
                               {"help", row.help},
                               {"default", row.fallback}});
  }
  const int node = placement_.ring_node();
  info["numa"] = {{"option", options_.text("numa")},
                  {"nodes", placement_.nodes()},
                  {"node", node < 0 ? json(nullptr) : json(node)},
                  {"text", placement_.text()},
                  {"placed", placement_.placed()},
                  {"refused", placement_.refused()}};
  info["warnings"] = warnings_;
  const json told = json::parse(counters_json());
  for (const char* const part : {"cache", "monitor", "counters", "grants"}) {
    if (told.contains(part)) info[part] = told.at(part);
  }
  for (std::size_t i = 0; i < rails_.size(); ++i) info["nics"][i]["counters"] = told.at("nics").at(i).at("counters");
  return info.dump();
}

std::string Core::counters_json() {
  json told;
  told["version"] = STRAIT_VERSION_TEXT;
  told["address"] = address_;
  told["progress"] = progress_name(settings_.progress);
  told["nics"] = json::array();
  for (const Rail& rail : rails_)
    told["nics"].push_back({{"name", rail.nic->info().name},
                            {"address", rail.nic->info().address_text},
                            {"counters", counted(rail.nic->counters())}});
  if (cache_) told["cache"] = cache_row(cache_->stats());
  told["monitor"] = monitor_ ? monitor_row(monitor_->stats()) : json(nullptr);
  json counters = json::object();
  for (const auto& [name, value] : counters_.snapshot()) counters[name] = value;
  for (const auto& provider : providers_->providers())
    counters["memory_" + provider->kind()] = counted(provider->counters());
  {
    const Locked lock(regions_mutex_);
    counters["regions"] = regions_.size();
    counters["regions_draining"] = draining_.size();
    counters["names"] = names_.size();
  }
  {
    const Locked lock(lanes_mutex_);
    counters["lanes"] = lanes_.size();
  }
  told["counters"] = std::move(counters);
  told["grants"] = {{"option", options_.text("grant")}, {"off_because", no_grants_because_}};
  if (door_) {
    const grant::DoorCounts counts = door_->counts();
    told["grants"].update({{"guests", counts.guests},
                           {"maps", counts.maps},
                           {"copies", counts.copies},
                           {"refused", counts.refused},
                           {"revoked", counts.revoked},
                           {"garbage", counts.garbage},
                           {"holdouts", counts.holdouts}});
  }
  return told.dump();
}

Result<std::string> Core::on_count(rendezvous::PeerId /*peer*/) {
  wait_until_open();
  return counters_json();
}

Result<std::string> Core::counters_of(const std::string& address, sys::Deadline deadline) {
  STRAIT_TRY(const sys::Endpoint endpoint, sys::parse_endpoint(address));
  if (endpoint.port == 0) return fail(Code::invalid, "\"{}\" names no port: Nodes are named host:port", address);
  STRAIT_TRY(const auto client, rendezvous::Client::connect(endpoint, secret_, deadline));
  STRAIT_TRY(auto counted, client->call_for<rendezvous::Counted>(rendezvous::Count{}, deadline));
  if (!json::accept(counted.record)) return fail(Code::invalid, "{} answers with counters that are no JSON", address);
  return std::move(counted.record);
}

std::string Core::region_json(const strait_region& region) const {
  const buffer::Claim& claim = region.claim;
  json path;
  path["kind"] = claim.device->name;
  path["address"] = fmt::format("{:#x}", region.address);
  path["length"] = region.length_bytes;
  path["recognised_by"] = claim.device->kind;
  path["recognise_ns"] = region.recognise_ns;
  path["allocation"] = {{"base", fmt::format("{:#x}", claim.whole.address)},
                        {"length", claim.whole.length_bytes},
                        {"identity", claim.identity}};
  path["access"] = json::array();
  if (region.access & STRAIT_REMOTE_READ) path["access"].push_back("remote_read");
  if (region.access & STRAIT_REMOTE_WRITE) path["access"].push_back("remote_write");
  if (region.access & STRAIT_REMOTE_ATOMIC) path["access"].push_back("remote_atomic");
  path["epoch"] = region.epoch.load();
  path["state"] = region.state.load() == RegionState::live ? "live" : region.exported ? "quarantined" : "revoked";
  if (region.exported) {
    const bool fd = region.exported->has_files();
    path["export"] = {{"way", fd ? std::string("dma-buf fd") : std::string(exports::way_name(region.exported->way()))},
                      {"text", region.exported->text()},
                      {"lifetime", exports::lifetime_text(region.exported->lifetime())},
                      {"exports", fd ? 1 : 0}};
    json rejected = json::array();
    for (const exports::Rejected& no : region.exported->rejected())
      rejected.push_back({{"way", exports::way_name(no.way)}, {"reason", no.reason}});
    path["export"]["rejected"] = std::move(rejected);
  }
  path["keys"] = json::array();
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    json key = {{"nic", rails_[i].nic->name()}};
    const bool for_peers = i < region.remote.size() && region.remote[i].data.valid();
    const std::string refused = region.exported && !region.staged ? region.exported->refusal_of(i) : std::string();
    if (!refused.empty() && (region.lkeys[i] == kNoKey || (!region.remote.empty() && !for_peers)))
      key["refused"] = refused;
    if (region.lkeys[i] == kNoKey) {
      path["keys"].push_back(std::move(key));
      continue;
    }
    key["lkey"] = region.lkeys[i];
    if (for_peers) key["rkey"] = region.remote[i].data.rkey();
    // A key that was given back may be somebody else's by now.
    const std::string how = region.exported ? rails_[i].nic->describe_memory(region.lkeys[i]) : std::string();
    if (!how.empty()) key["registered"] = how;
    path["keys"].push_back(std::move(key));
  }
  const plan::Plan plan = plan_for(region);
  path["ways"] = json::array();
  for (const plan::Way& way : plan.ways) {
    path["ways"].push_back({{"way", way.name},
                            {"label", way.label},
                            {"verdict", plan::verdict_name(way.verdict)},
                            {"reason", way.reason}});
  }
  path["chosen"] = plan.chosen ? json(plan.ways[*plan.chosen].name) : json(nullptr);
  return path.dump();
}

}  // namespace strait::node
