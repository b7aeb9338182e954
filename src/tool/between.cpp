// SPDX-License-Identifier: Apache-2.0
#include "tool/between.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sys/between.hpp"
#include "sys/private_file.hpp"
#include "sys/user_fault.hpp"

namespace strait::tool {
namespace {

constexpr std::uint16_t kRocePort = 4791;

// The cause, and what would help.
std::string reason(const Error& error) {
  return error.remedy.empty() ? error.text : fmt::format("{}. {}", error.text, error.remedy);
}

Json tried(const Status& status, const std::string& works, const std::string& else_what) {
  return {{"works", static_cast<bool>(status)},
          {"text", status ? works : fmt::format("{}: {}", else_what, reason(status.error()))}};
}

std::string whole_file(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Looked up and not tried: a socket there, however short-lived, would take packets of those who run.
Json port_owner() {
  const std::uint32_t own = sys::user_id();
  const auto owner = udp_port_owner(whole_file("/proc/net/udp") + whole_file("/proc/net/udp6"), kRocePort, own);
  if (!owner) return {{"owner", "nobody"}, {"text", "UDP port 4791 is free: who opens a device has it"}};
  if (*owner == own) return {{"owner", "you"}, {"text", "UDP port 4791 is your processes', who share it"}};
  return {
      {"owner", "other"},
      {"text", fmt::format("UDP port 4791 is user {}'s: other hosts are out of your reach, this one's processes are "
                           "not",
                           *owner)}};
}

}  // namespace

std::optional<std::uint32_t> udp_port_owner(std::string_view table, std::uint16_t port, std::uint32_t own) {
  std::optional<std::uint32_t> found;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    // sl local_address remote_address st queues timer retransmits uid ...; local_address is ADDRESS:PORT, hexadecimal
    std::istringstream words(line);
    std::string local, word;
    std::uint32_t user = 0;
    if (!(words >> word >> local)) continue;
    for (int skipped = 0; skipped < 5; ++skipped) words >> word;
    const std::size_t colon = local.find(':');
    if (!(words >> user) || colon == std::string::npos) continue;
    std::uint16_t number = 0;
    const char* const end = local.data() + local.size();
    if (std::from_chars(local.data() + colon + 1, end, number, 16).ptr != end || number != port) continue;
    if (!found || *found == own) found = user;
  }
  return found;
}

Json between_processes() {
  Json out;
  out["process_vm"] =
      tried(sys::try_process_vm(), "process_vm calls work between your processes: large payloads take one copy",
            "large payloads go through a shared ring, in two copies");
  const auto watch = sys::UserFault::open();
  out["userfaultfd"] =
      tried(watch ? Status{} : Status(watch.error()), "userfaultfd works: registrations can be remembered by it",
            "registrations of foreign memory are not remembered");
  out["port_4791"] = port_owner();
  out["other_users"] = "between users everything goes as packets";
  return out;
}

}  // namespace strait::tool
