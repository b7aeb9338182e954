// SPDX-License-Identifier: Apache-2.0
// The demo's words.
#include "tool/demo_story.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tool/counters.hpp"
#include "tool/text.hpp"

namespace strait::tool {
namespace {

constexpr std::size_t kLabel = 12;  // "  share     "

std::string text_of(const Json& object, const char* key, const char* otherwise = "") {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::uint64_t number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<std::uint64_t>() : 0;
}

const Json& list_of(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : empty;
}

const Json& object_of(const Json& object, const char* key) {
  static const Json empty = Json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : empty;
}

std::string speed_cell(double value, bool rate) {
  if (value == 0) return "-";
  return rate ? rate_text(value) : time_text(value);
}

}  // namespace

Story::Story(bool as_json, const std::string& device)
    : as_json_(as_json), document_(std::make_unique<Json>()), info_(std::make_unique<Json>()) {
  *document_ = {{"steps", Json::array()}, {"ok", false}};
  if (as_json_) return;
  fmt::print("{}: two processes, {} memory on both sides, no RDMA hardware needed\n\n",
             tinted("strait demo", Tint::strong), device == "host" ? "host" : "device");
  std::fflush(stdout);
}

Story::~Story() = default;

void Story::say(std::string_view label, std::string_view text) {
  if (as_json_) return;
  const std::string body = wrap(text, kLabel, kLabel + 2);
  fmt::print("  {}{}", tinted(fmt::format("{:<{}}", label, kLabel - 2), Tint::strong), body.substr(kLabel));
  std::fflush(stdout);
}

// "  found     NIC         strait0  text": the mark stands at the right edge, so that no eye can miss it.
void Story::say_device(std::string_view label, const char* kind, const Json& device, const std::string& text) {
  if (as_json_) return;
  constexpr std::string_view kMark = "(software)";
  const bool software = device.value("software", true);
  const std::string head = fmt::format("{:<12}{:<9}", kind, text_of(device, "name"));
  const std::size_t column = kLabel + head.size();
  const std::string body = wrap(text, column, column, kColumns - kMark.size() - 1);
  const std::string_view first = std::string_view(body).substr(column, body.find('\n') - column);
  fmt::print("  {}{}{}", tinted(fmt::format("{:<{}}", label, kLabel - 2), Tint::strong), head, first);
  if (software) fmt::print("{:>{}}{}", "", kColumns - kMark.size() - column - first.size(), tinted(kMark, Tint::faint));
  fmt::print("{}", std::string_view(body).substr(body.find('\n')));
  std::fflush(stdout);
}

void Story::found(const std::string& text) {
  *info_ = parse_json(text);
  const Json& info = *info_;
  (*document_)["version"] = text_of(info, "version");
  (*document_)["accelerators"] = list_of(info, "accelerators");
  (*document_)["nics"] = list_of(info, "nics");
  const char* label = "found";
  for (const Json& device : list_of(info, "accelerators")) {
    say_device(label, "accelerator", device,
               fmt::format("{}, {}", size_text(number_of(device, "memory_bytes")), text_of(device, "description")));
    label = "";
  }
  for (const Json& nic : list_of(info, "nics")) {
    say_device(label, "NIC", nic, text_of(nic, "description"));
    label = "";
  }
  for (const Json& warning : list_of(info, "warnings"))
    say("warning", warning.is_string() ? warning.get<std::string>() : "");
}

// What the accelerator really hands out, where that is not a dma-buf of the kernel.
std::optional<std::string> Story::stand_in(const std::string& name) const {
  for (const Json& device : (*document_).value("accelerators", Json::array())) {
    const bool memfd = text_of(device, "description").find("sealed memfd") != std::string::npos;
    if (text_of(device, "name") == name && memfd) return "sealed memfd, not dma-buf";
  }
  return std::nullopt;
}

void Story::shared(const std::string& device, const std::string& text) {
  const Json region = parse_json(text);
  (*document_)["region"] = region;
  if (!region.is_object()) return;
  const std::uint64_t address = std::strtoull(text_of(region, "address").c_str(), nullptr, 16);
  say("share", fmt::format("{} {} + {}", device, address_text(address), size_text(number_of(region, "length"))));
  say("",
      fmt::format("recognised by {} in {} ns; whole allocation {}", text_of(region, "recognised_by"),
                  number_of(region, "recognise_ns"), size_text(number_of(object_of(region, "allocation"), "length"))));
  const Json& exported = object_of(region, "export");
  const std::uint64_t exports = number_of(exported, "exports");
  say("", exports == 0 ? "reached as " + text_of(exported, "way")
                       : fmt::format("exported as {} ({} export, the region owns it)",
                                     stand_in(device).value_or(text_of(exported, "way")), exports));
  for (const Json& key : list_of(region, "keys")) {
    say("", fmt::format("registered with {}: rkey {:#x}", text_of(key, "nic"), number_of(key, "rkey")));
  }
}

void Story::path(const std::string& lane, const std::string& text) {
  const Json region = parse_json(text);
  lane_ = lane;
  faults_ = given("faults").value_or("");
  (*document_)["path"] = lane;
  say("path", text_of(region, "chosen", lane.c_str()));
  for (const Json& way : list_of(region, "ways")) {
    if (text_of(way, "way") == text_of(region, "chosen")) continue;
    // "yes" without being chosen: the NIC takes it where it fits better.
    const char* word = text_of(way, "verdict") == "yes" ? "beside it" : "not used";
    say("", fmt::format("{}: {} ({})", word, text_of(way, "label"), text_of(way, "reason")));
  }
  if (!as_json_) fmt::print("\n");
}

void Story::step(Step step) {
  ++checks_;
  if (!step.verified) ++wrong_;
  (*document_)["steps"].push_back({{"name", step.name},
                                   {"verified", step.verified},
                                   {"bytes", step.bytes},
                                   {"seconds", step.seconds},
                                   {"note", step.note},
                                   {"carrier", carrier_of(lane_)},
                                   {"path", lane_},
                                   {"faults", faults_}});
  if (as_json_) return;
  const std::string figure = step.seconds == 0 ? std::string()
                             : step.rate       ? rate_text(static_cast<double>(step.bytes) / step.seconds)
                                               : time_text(step.seconds);
  const std::string verdict = step.verified ? tinted("verified", Tint::good) : tinted("WRONG   ", Tint::bad);
  constexpr std::size_t kNote = 47;
  fmt::print("  {:<13}{:>7}  {:>10}   {}  {}", step.name, size_text(step.bytes), figure, verdict,
             wrap(step.note, kNote, kNote).substr(kNote));
  std::fflush(stdout);
}

void Story::speed(std::vector<SpeedRow> rows, const std::string& device) {
  (*document_)["speed"] = Json::array();
  for (const SpeedRow& row : rows) {
    (*document_)["speed"].push_back({{"operation", row.operation},
                                     {"bytes", row.bytes},
                                     {"unit", row.rate ? "bytes/second" : "seconds"},
                                     {"host", row.host},
                                     {"accelerator", row.device},
                                     {"memcpy", row.memcpy},
                                     {"accelerator_copy", row.engine}});
  }
  if (as_json_) return;
  fmt::print("\n  software devices on this machine, not a NIC's speed; memcpy in the same run\n");
  fmt::print("  {:<16}{:>14}{:>16}{:>14}{:>16}\n", "", "host memory", device + " memory", "memcpy", device + " copy");
  for (const SpeedRow& row : rows) {
    fmt::print("  {:<5}{:>8}{:>17}{:>16}{:>14}{:>16}\n", row.operation, size_text(row.bytes),
               speed_cell(row.host, row.rate), speed_cell(row.device, row.rate), speed_cell(row.memcpy, row.rate),
               speed_cell(row.engine, row.rate));
  }
}

std::optional<std::string> Story::given(const std::string& option) const {
  for (const Json& row : list_of(*info_, "options")) {
    if (text_of(row, "name") == option && text_of(row, "origin") != "default") return text_of(row, "value");
  }
  return std::nullopt;
}

void Story::packets_begin(const std::string& lane, const std::string& faults) {
  lane_ = lane;
  faults_ = faults;
  (*document_)["packets"] = {{"path", lane}, {"faults", faults}};
  if (as_json_) return;
  fmt::print("\n  {}\n",
             tinted(faults.empty() ? "over packets" : "over packets, a few of them lost on purpose", Tint::strong));
  say("path", lane);
  say("faults", faults.empty() ? "none" : faults + " (`strait faults` explains it)");
  fmt::print("\n");
}

void Story::packets_end(const PacketTotals& totals, const std::string& capture) {
  Json& packets = (*document_)["packets"];
  packets["sent"] = totals.sent;
  packets["lost"] = totals.lost;
  packets["resent"] = totals.resent;
  packets["faults_injected"] = totals.faults;
  packets["capture"] = capture;
  if (as_json_) return;
  fmt::print("\n");
  say("packets",
      fmt::format("{} sent by both, {} lost on purpose, {} resent", totals.sent, totals.lost, totals.resent));
  if (!capture.empty()) say("", fmt::format("capture {}, of the first process; opens in Wireshark", capture));
}

void Story::packets_left_out(const std::string& why) {
  (*document_)["packets"] = {{"left_out", why}};
  left_out_ = why;
}

void Story::counters(const std::string& info) {
  const Json parsed = parse_json(info);
  (*document_)["counters"].push_back({{"carrier", carrier_of(lane_)}, {"nics", list_of(parsed, "nics")}});
  if (as_json_ || !parsed.is_object()) return;
  fmt::print("\n  counted in the first process ({})\n{}", carrier_of(lane_), counters_page(parsed));
  std::fflush(stdout);
}

void Story::failed(const Error& error, double seconds) {
  if (!as_json_) return;
  (*document_)["error"] = {{"text", error.text}, {"remedy", error.remedy}, {"code", static_cast<int>(error.code)}};
  (*document_)["seconds"] = seconds;
  fmt::print("{}\n", json_pages(*document_));
}

bool Story::finish(double seconds) {
  (*document_)["ok"] = wrong_ == 0;
  (*document_)["checks"] = checks_;
  (*document_)["seconds"] = seconds;
  if (as_json_) {
    fmt::print("{}\n", json_pages(*document_));
  } else if (wrong_ == 0) {
    fmt::print("\n  {} in {:.1f} s\n", tinted(fmt::format("all {} checks passed", checks_), Tint::good), seconds);
  } else {
    fmt::print("\n  {} in {:.1f} s\n", tinted(fmt::format("{} of {} checks FAILED", wrong_, checks_), Tint::bad),
               seconds);
  }
  if (!as_json_ && !left_out_.empty()) fmt::print("{}", wrap("without packets: " + left_out_, 2, 4));
  return wrong_ == 0;
}

}  // namespace strait::tool
