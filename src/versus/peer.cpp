// SPDX-License-Identifier: Apache-2.0
#include "versus/peer.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sys/captured.hpp"
#include "sys/child.hpp"
#include "sys/command.hpp"
#include "versus/copy.hpp"
#include "versus/ucx.hpp"

#ifndef STRAIT_HELPERS
#define STRAIT_HELPERS "../libexec/strait"
#endif

namespace strait::versus {
namespace {

constexpr const char* kFabricHelper = "fabric_transfer";
constexpr std::uint32_t kWindow = 16;  // operations under way: what `strait perf --test put_bw` has

constexpr std::array kPeers = {
    PeerRow{Peer::ucx, "ucx", "UCX, ucp_put over posix and cma"},
    PeerRow{Peer::libfabric, "libfabric", "libfabric, RMA writes by its shm provider"},
    PeerRow{Peer::memcpy, "memcpy", "memcpy on one CPU (a limit, not a peer)"},
};

std::string known_peers() {
  std::string names;
  for (const PeerRow& row : kPeers) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

Status fabric_is_here() {
  const std::string helper = helper_program(kFabricHelper);
  if (helper.empty()) {
    return with_remedy(fail(Code::unsupported, "libfabric cannot be measured: this strait was built without it"),
                       "Install Debian's package libfabric-dev and build strait again.");
  }
  // Asked nothing it says so and ends; without the library it does not begin.
  const sys::Ran ran = sys::run_captured({helper}, sys::Deadline::after_ns(20'000'000'000));
  if (ran.problem.find("shared libraries") == std::string::npos) return {};
  return with_remedy(fail(Code::unsupported, "libfabric cannot be measured: {}", ran.problem),
                     "Install Debian's package libfabric1.");
}

Figure ucx_once(const PeerRun& run, std::uint64_t count) {
  const auto figures = run_ucx({.test = {"-t", run.metric == Metric::latency ? "ucp_put_lat" : "ucp_put_bw"},
                                .transports = "posix,cma,self",
                                .bytes = run.bytes,
                                .count = count,
                                .cpus = run.cpus,
                                .deadline_ns = run.deadline_ns});
  if (!figures) return no_figure(figures.error().text);
  return {true,
          run.metric == Metric::latency ? figures->latency_us : figures->mib_per_s * 1048576 / 1e9,
          {},
          find_peer("ucx")->title};
}

}  // namespace

std::span<const PeerRow> peer_table() {
  return kPeers;
}

const PeerRow* find_peer(std::string_view name) {
  for (const PeerRow& row : kPeers) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Result<std::vector<Peer>> parse_peers(std::string_view text) {
  std::vector<Peer> peers;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string_view name = text.substr(start, comma - start);
    const PeerRow* row = find_peer(name);
    if (row == nullptr) return fail(Code::invalid, "nobody here knows a peer '{}'; there are {}", name, known_peers());
    if (std::find(peers.begin(), peers.end(), row->peer) != peers.end())
      return fail(Code::invalid, "the peer {} is named twice", name);
    peers.push_back(row->peer);
    start = comma + 1;
  }
  return peers;
}

Status peer_is_here(Peer peer) {
  switch (peer) {
    case Peer::ucx:
      if (sys::find_program("ucx_perftest")) return {};
      return with_remedy(fail(Code::unsupported, "UCX cannot be measured: there is no program ucx_perftest in PATH"),
                         "Install Debian's package ucx-utils.");
    case Peer::libfabric: return fabric_is_here();
    case Peer::memcpy: break;
  }
  return {};
}

std::vector<Peer> peers_here() {
  std::vector<Peer> here;
  for (const PeerRow& row : kPeers) {
    if (peer_is_here(row.peer)) here.push_back(row.peer);
  }
  return here;
}

std::string helper_program(const std::string& name) {
  const std::string self = sys::own_program();
  const auto found = sys::find_program(self.substr(0, self.rfind('/') + 1) + STRAIT_HELPERS "/" + name);
  return found ? *found : std::string();
}

Figure read_transfer(bool ok, const std::string& out, const std::string& problem) {
  if (!ok) return no_figure(problem);
  const Json line = Json::parse(out, nullptr, false);
  if (!line.is_object() || line.value("verified", Json()) != Json(true) || !line.value("value", Json()).is_number())
    return no_figure("it printed no verified figure");
  const Json path = line.value("path", Json());
  const Json beside = line.value("beside", Json());
  return {true,
          line["value"].get<double>(),
          {},
          path.is_string() ? path.get<std::string>() : std::string(),
          beside.is_number() ? beside.get<double>() : 0};
}

std::string PeerRunner::unable() const {
  if (peer_ == Peer::libfabric && run_.bytes % 8 != 0) return "its program makes puts of multiples of 8 bytes only";
  return {};
}

Figure PeerRunner::run_fabric(const char* mode, double seconds) const {
  const auto milliseconds = static_cast<std::uint64_t>(std::max(seconds * 1e3, 1.0));
  const sys::Ran ran =
      sys::run_captured({helper_program(kFabricHelper), run_.metric == Metric::latency ? "latency" : "bandwidth",
                         "--size", std::to_string(run_.bytes), "--window", std::to_string(kWindow), "--one-place", "1",
                         "--regions", "1", "--milliseconds", std::to_string(milliseconds), "--cpu",
                         std::to_string(run_.cpus.initiator), "--owner-cpu", std::to_string(run_.cpus.owner), mode},
                        sys::Deadline::after_ns(run_.deadline_ns));
  return read_transfer(ran.ok, ran.out, ran.problem);
}

Status PeerRunner::warm_up() {
  if (peer_ == Peer::memcpy) return {};
  if (peer_ == Peer::ucx) {
    // A guess of a tenth of the time tells how many operations fill it.
    const double guess_s = 1e-6 + static_cast<double>(run_.bytes) / 5e9;
    const Figure first = ucx_once(run_, static_cast<std::uint64_t>(std::max(0.1 * run_.seconds / guess_s, 10.0)));
    if (!first.ok) return fail(Code::system, "{}", first.problem);
    const double each_s =
        run_.metric == Metric::latency ? 2e-6 * first.value : static_cast<double>(run_.bytes) / (first.value * 1e9);
    ucx_count_ = static_cast<std::uint64_t>(std::clamp(run_.seconds / each_s, 10.0, 1e9));
    return {};
  }
  // It gets its best mode: whichever way of naming memory was faster just now.
  double best = 0;
  std::string problem;
  for (const char* mode : {"virtual=1", "virtual=0"}) {
    const Figure figure = run_fabric(mode, run_.seconds / 2);
    if (!figure.ok) problem = figure.problem;
    if (figure.ok && (best == 0 || (run_.metric == Metric::latency ? figure.value < best : figure.value > best))) {
      best = figure.value;
      fabric_mode_ = mode;
    }
  }
  return best > 0 ? Status() : Status(fail(Code::system, "{}", problem));
}

Figure PeerRunner::once() const {
  switch (peer_) {
    case Peer::ucx: return ucx_once(run_, std::max<std::uint64_t>(ucx_count_, 10));
    case Peer::libfabric: return run_fabric(fabric_mode_, run_.seconds);
    case Peer::memcpy: break;
  }
  const double each = copy_seconds(run_.bytes, run_.seconds, run_.cpus.initiator);
  return {
      true, run_.metric == Metric::latency ? each * 1e6 : static_cast<double>(run_.bytes) / each / 1e9, {}, "memcpy"};
}

}  // namespace strait::versus
