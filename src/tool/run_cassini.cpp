// SPDX-License-Identifier: Apache-2.0
// strait run --cassini: the process that has the cards, from the first moment of a run to the last.
#include <charconv>
#include <cstdlib>
#include <map>

#include "soft/cassini_host/connection.hpp"
#include "soft/cassini_host/server.hpp"
#include "strait/c.h"
#include "sys/beside.hpp"
#include "tool/run.hpp"

namespace strait::tool {
namespace {

constexpr const char* kServer = "strait/strait-cassini";
constexpr std::int64_t kStartPatienceNs = 10'000'000'000;

// "commands=12,puts=3"
std::map<std::string, std::uint64_t> parse_counters(std::string_view text) {
  std::map<std::string, std::uint64_t> out;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(pair.size() == text.size() ? pair.size() : pair.size() + 1);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    std::uint64_t value = 0;
    std::from_chars(pair.data() + equals + 1, pair.data() + pair.size(), value);
    out[std::string(pair.substr(0, equals))] = value;
  }
  return out;
}

}  // namespace

Result<Cassinis> Cassinis::start(const std::string& name, Settings& settings) {
  soft::cassini::ServerPlace place;
  place.name = soft::cassini::server_name(name);
  place.program = sys::beside_library_of(reinterpret_cast<const void*>(&strait_version), kServer);
  if (place.program == kServer)
    return with_remedy(fail(Code::unsupported, "strait-cassini is not where libstrait.so is"),
                       "It is part of the installation: build or install strait again.");
  STRAIT_TRY(sys::Fd server, soft::cassini::reach_server(place, sys::Deadline::after_ns(kStartPatienceNs)));
  STRAIT_TRY(std::string before, soft::cassini::ask_counters(server.get()));
  if (std::getenv("FI_MR_CACHE_MONITOR") == nullptr) settings.emplace_back("FI_MR_CACHE_MONITOR", "disabled");
  return Cassinis(std::move(server), std::move(before));
}

void Cassinis::add_to(soft::host::RunTotals& totals) const {
  const auto after = soft::cassini::ask_counters(server_.get());
  if (!after || totals.processes == 0) return;
  const auto was = parse_counters(before_);
  totals.counters["cxi.commands"];  // said also when there were none
  for (const auto& [each, value] : parse_counters(*after)) {
    const auto old = was.find(each);
    totals.counters["cxi." + each] += value - (old == was.end() ? 0 : old->second);
  }
}

}  // namespace strait::tool
