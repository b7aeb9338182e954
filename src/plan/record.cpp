// SPDX-License-Identifier: Apache-2.0
#include "plan/record.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/cost.hpp"

namespace strait::plan {
namespace {

using nlohmann::json;

constexpr std::size_t kMostDevices = 256;
constexpr std::size_t kMostBridges = 64;
constexpr std::size_t kMostText = 256;
constexpr std::size_t kMostRefusals = 8;
constexpr double kMostGbS = 1e6;

bool is_rate(const json& value) {
  return value.is_number() && value >= 0 && value <= kMostGbS;
}

json refusals_json(const std::vector<Refusal>& refused) {
  json out = json::array();
  for (const Refusal& each : refused) {
    // As long as a reader takes them.
    out.push_back({{"way", each.way.substr(0, kMostText)}, {"reason", each.reason.substr(0, kMostText)}});
  }
  return out;
}

json place_json(const Place& place) {
  return {{"path", place.path}, {"numa_node", place.numa_node}, {"link_gb_s", place.link_gb_s}};
}

// Reads members; remembers the first that is wrong and goes on with what a record has by default.
class RecordReader {
 public:
  explicit RecordReader(const json& from) : from_(from) {
    if (!from.is_object()) problem_ = "a record is no object";
  }
  void text(const char* name, std::string& into) {
    const json* const found = find(name);
    if (found == nullptr) return;
    if (!found->is_string() || found->get_ref<const std::string&>().size() > kMostText)
      return wrong(name, "a short text");
    into = found->get<std::string>();
    const auto odd = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    if (std::ranges::any_of(into, odd)) wrong(name, "a text without control characters");
  }
  void flag(const char* name, bool& into) {
    const json* const found = find(name);
    if (found == nullptr) return;
    if (!found->is_boolean()) return wrong(name, "true or false");
    into = found->get<bool>();
  }
  void number(const char* name, int& into) {
    const json* const found = find(name);
    if (found == nullptr) return;
    if (!found->is_number_integer() || *found < 0 || *found > INT32_MAX) return wrong(name, "a positive number");
    into = found->get<int>();
  }
  void rate(const char* name, double& into) {
    const json* const found = find(name);
    if (found == nullptr) return;
    if (!is_rate(*found)) return wrong(name, "a rate in GB/s");
    into = found->get<double>();
  }
  void place(Place& into) {
    const json* const found = find("place");
    if (found == nullptr) return;
    if (!found->is_object()) return wrong("place", "an object");
    const auto node = found->find("numa_node");
    if (node != found->end()) {
      if (!node->is_number_integer() || *node < -1 || *node > 4096) return wrong("numa_node", "a small number");
      into.numa_node = node->get<int>();
    }
    const auto path = found->find("path");
    if (path == found->end()) return;
    if (!path->is_array() || path->size() > kMostBridges) return wrong("path", "a short list");
    for (const json& step : *path) {
      if (!step.is_string() || step.get_ref<const std::string&>().size() > kMostText) return wrong("path", "texts");
      into.path.push_back(step.get<std::string>());
    }
    const auto links = found->find("link_gb_s");
    if (links == found->end()) return;
    if (!links->is_array() || links->size() > path->size() || !std::ranges::all_of(*links, is_rate))
      return wrong("link_gb_s", "a rate for each of the path");
    into.link_gb_s = links->get<std::vector<double>>();
  }
  void refusals(std::vector<Refusal>& into) {
    const json* const found = find("refused");
    if (found == nullptr) return;
    if (!found->is_array() || found->size() > kMostRefusals) return wrong("refused", "a short list");
    for (const json& each : *found) {
      RecordReader reader(each);
      Refusal refusal;
      reader.text("way", refusal.way);
      reader.text("reason", refusal.reason);
      if (!reader.problem().empty()) {
        problem_ = reader.problem();
        return;
      }
      into.push_back(std::move(refusal));
    }
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  [[nodiscard]] const json* find(const char* name) const {
    if (!problem_.empty()) return nullptr;
    const auto found = from_.find(name);
    return found == from_.end() ? nullptr : &*found;
  }
  void wrong(const char* name, const char* right) { problem_ = fmt::format("\"{}\" is not {}", name, right); }
  const json& from_;
  std::string problem_;
};

Result<Memory> memory_from(const json& from) {
  Memory memory;
  RecordReader reader(from);
  reader.text("name", memory.name);
  reader.text("kind", memory.kind);
  reader.flag("accelerator", memory.accelerator);
  reader.flag("exports_fd", memory.exports_fd);
  reader.text("export_refusal", memory.export_refusal);
  reader.flag("has_port", memory.has_port);
  reader.flag("can_copy", memory.can_copy);
  reader.flag("can_ipc", memory.can_ipc);
  reader.text("link", memory.link);
  reader.flag("software", memory.software);
  reader.flag("in_files", memory.in_files);
  reader.flag("migrates", memory.migrates);
  reader.text("reached_by", memory.reached_by);
  reader.flag("staged_only", memory.staged_only);
  reader.refusals(memory.refused);
  reader.place(memory.place);
  if (!reader.problem().empty()) return fail(Code::invalid, "a memory of the record: {}", reader.problem());
  if (memory.name.empty()) return fail(Code::invalid, "a memory of the record has no name");
  return memory;
}

Result<Nic> nic_from(const json& from) {
  Nic nic;
  RecordReader reader(from);
  reader.text("name", nic.name);
  reader.flag("software", nic.software);
  reader.flag("imports_fds", nic.imports_fds);
  reader.flag("reads_ports", nic.reads_ports);
  reader.flag("has_packets", nic.has_packets);
  reader.flag("grants", nic.grants);
  reader.flag("maps_pages", nic.maps_pages);
  reader.flag("follows_pages", nic.follows_pages);
  reader.text("carries", nic.carries);
  reader.rate("port_gb_s", nic.port_gb_s);
  reader.place(nic.place);
  if (!reader.problem().empty()) return fail(Code::invalid, "a NIC of the record: {}", reader.problem());
  if (nic.name.empty()) return fail(Code::invalid, "a NIC of the record has no name");
  return nic;
}

}  // namespace

const Memory* Machine::find(std::string_view memory) const {
  const auto found = std::ranges::find(memories, memory, &Memory::name);
  return found == memories.end() ? nullptr : &*found;
}

std::size_t Machine::rank_of(const Memory& memory) const {
  const auto mine = best_group(memory, nics);
  std::size_t rank = 0;
  for (const Memory& other : memories) {
    if (other.name == memory.name) break;
    if (other.accelerator && best_group(other, nics) == mine) ++rank;
  }
  return rank;
}

std::string to_record(const Machine& machine) {
  json out{{"name", machine.name},
           {"host", machine.host},
           {"process", machine.process},
           {"map_grants", machine.map_grants},
           {"copy_grants", machine.copy_grants},
           {"no_grants_because", machine.no_grants_because},
           {"memories", json::array()},
           {"nics", json::array()}};
  for (const Memory& memory : machine.memories) {
    out["memories"].push_back({{"name", memory.name},
                               {"kind", memory.kind},
                               {"accelerator", memory.accelerator},
                               {"exports_fd", memory.exports_fd},
                               {"export_refusal", memory.export_refusal},
                               {"has_port", memory.has_port},
                               {"can_copy", memory.can_copy},
                               {"can_ipc", memory.can_ipc},
                               {"link", memory.link},
                               {"software", memory.software},
                               {"in_files", memory.in_files},
                               {"migrates", memory.migrates},
                               {"reached_by", memory.reached_by},
                               {"staged_only", memory.staged_only},
                               {"refused", refusals_json(memory.refused)},
                               {"place", place_json(memory.place)}});
  }
  for (const Nic& nic : machine.nics) {
    out["nics"].push_back({{"name", nic.name},
                           {"software", nic.software},
                           {"imports_fds", nic.imports_fds},
                           {"reads_ports", nic.reads_ports},
                           {"has_packets", nic.has_packets},
                           {"grants", nic.grants},
                           {"maps_pages", nic.maps_pages},
                           {"follows_pages", nic.follows_pages},
                           {"carries", nic.carries},
                           {"port_gb_s", nic.port_gb_s},
                           {"place", place_json(nic.place)}});
  }
  return out.dump();
}

Result<Machine> from_record(std::string_view text) {
  const json from = json::parse(text, nullptr, false);
  if (from.is_discarded() || !from.is_object()) return fail(Code::invalid, "the record is no JSON object");
  Machine machine;
  RecordReader reader(from);
  reader.text("name", machine.name);
  reader.text("host", machine.host);
  reader.number("process", machine.process);
  reader.flag("map_grants", machine.map_grants);
  reader.flag("copy_grants", machine.copy_grants);
  reader.text("no_grants_because", machine.no_grants_because);
  if (!reader.problem().empty()) return fail(Code::invalid, "the record: {}", reader.problem());
  for (const char* const name : {"memories", "nics"}) {
    const auto list = from.find(name);
    if (list == from.end() || !list->is_array() || list->size() > kMostDevices)
      return fail(Code::invalid, "the record: \"{}\" is not a list of at most {}", name, kMostDevices);
  }
  for (const json& each : from["memories"]) {
    STRAIT_TRY(Memory memory, memory_from(each));
    machine.memories.push_back(std::move(memory));
  }
  for (const json& each : from["nics"]) {
    STRAIT_TRY(Nic nic, nic_from(each));
    machine.nics.push_back(std::move(nic));
  }
  return machine;
}

}  // namespace strait::plan
