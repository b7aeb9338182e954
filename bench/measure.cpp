// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "machine.hpp"
#include "process.hpp"
#include "programs.hpp"

namespace bench {
namespace {

using Json = nlohmann::json;
constexpr double kMoved = 1.2;  // a probe that moved by more: the pair says nothing

// A pair whose processes lost their CPU to others more often than this, per second of CPU time, says nothing either: on
// a quiet machine it is a few dozen, beside one busy process a few hundred.
constexpr double kSwitches = 100;

// What the programs that have ended so far used, and how often they were made to wait.
struct Used {
  double cpu_s;
  double switches;
};

Used used_so_far() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_nivcsw)};
}

Figure read_figure(const Ran& ran) {
  if (!ran.ok) return {false, 0, ran.problem, {}};
  const Json line = Json::parse(ran.out, nullptr, false);
  if (line.is_discarded() || !line.value("verified", false)) return {false, 0, "it printed no verified figure", {}};
  return {true, line["value"].get<double>(), {}, line.value("path", "")};
}

std::vector<std::string> command_of(const Setup& setup, const std::string& program, const PairRow& row,
                                    const std::vector<std::string>& options) {
  std::vector<std::string> words = {setup.programs + "/" + program};
  words.insert(words.end(), row.workload.begin(), row.workload.end());
  for (const std::string& word :
       {std::string("--milliseconds"), std::to_string(setup.milliseconds), std::string("--cpu"),
        std::to_string(setup.cpu[0]), std::string("--owner-cpu"), std::to_string(setup.cpu[1])}) {
    words.push_back(word);
  }
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

Figure run_strait(const Setup& setup, const PairRow& row) {
  if (!row.program.empty()) return run_program(setup, row);
  return read_figure(run(command_of(setup, "strait_transfer", row, row.strait_options), 120));
}

// What the two programs were told, as one Workload.
Workload workload_of(const Setup& setup, const PairRow& row) {
  std::vector<std::string> words = command_of(setup, "memcpy", row, row.strait_options);
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  return parse_workload(static_cast<int>(raw.size()), raw.data());
}

// ucx_perftest speaks CSV: iterations, percentile, average and overall latency, average and overall MB/s (2^20), rates.
Figure run_ucx(const Setup& setup, const PairRow& row) {
  static int port = 23000 + getpid() % 2000;
  const std::string perftest = which("ucx_perftest");
  const Workload w = workload_of(setup, row);
  const std::string port_text = std::to_string(++port);
  const bool cma = row.peer == PeerKind::ucx_cma;
  Environment environment = {{"UCX_WARN_UNUSED_ENV_VARS", "n"}};
  if (!cma) environment.emplace_back("UCX_TLS", "posix,cma");
  // About as long as our own run, judged by 10 GB/s.
  const auto count =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(w.seconds * 1e10 / static_cast<double>(w.size_bytes)), 20);
  Child server({perftest, "-p", port_text, "-c", std::to_string(setup.cpu[1])}, environment);
  usleep(300'000);
  const std::vector<std::string> test =
      cma ? std::vector<std::string>{"-t", "put_bw", "-d", "memory", "-x", "cma", "-D", "zcopy"}
          : std::vector<std::string>{"-t", "ucp_put_bw"};
  std::vector<std::string> client = {perftest, "127.0.0.1",
                                     "-p",     port_text,
                                     "-c",     std::to_string(setup.cpu[0]),
                                     "-f",     "-v",
                                     "-s",     std::to_string(w.size_bytes),
                                     "-n",     std::to_string(count),
                                     "-w",     std::to_string(count / 10 + 1)};
  client.insert(client.end(), test.begin(), test.end());
  const Ran ran = run(client, 120, environment);
  if (!ran.ok) return {false, 0, ran.problem + ran.out, {}};
  std::istringstream lines(ran.out);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  std::vector<double> fields;
  std::istringstream cells(last);
  for (std::string cell; std::getline(cells, cell, ',');) fields.push_back(std::atof(cell.c_str()));
  if (fields.size() < 6 || fields[5] <= 0) return {false, 0, "ucx_perftest printed \"" + last + "\"", {}};
  return {true, fields[5] * 1048576 / 1e9, {}, row.peer_title};
}

// The peer gets its best mode: whichever way of naming memory was faster just now.
std::vector<std::string> best_fabric_options(const Setup& setup, const PairRow& row) {
  std::vector<std::string> best;
  double best_value = 0;
  for (const char* mode : {"virtual=1", "virtual=0"}) {
    std::vector<std::string> options = row.peer_options;
    options.emplace_back(mode);
    std::vector<double> values;
    for (int i = 0; i < 3; ++i) {
      const Figure figure = read_figure(run(command_of(setup, "fabric_transfer", row, options), 120));
      if (figure.ok) values.push_back(figure.value);
    }
    if (values.empty()) continue;
    const double value = spread_of(values)["median"].get<double>();
    if (best.empty() || (row.lower_is_better ? value < best_value : value > best_value)) {
      best = options;
      best_value = value;
    }
  }
  return best;
}

// Null: the peer is UCX's own program.
const char* transfer_program(PeerKind peer) {
  switch (peer) {
    case PeerKind::fabric: return "fabric_transfer";
    case PeerKind::udp: return "udp_transfer";
    case PeerKind::vm_copy: return "vm_copy";
    default: return nullptr;
  }
}

std::string why_no_peer(const Setup& setup, const PairRow& row) {
  if (row.peer == PeerKind::udp || row.peer == PeerKind::vm_copy) return "";
  if (row.peer != PeerKind::fabric)
    return which("ucx_perftest").empty() ? "ucx_perftest is not installed (ucx-utils)" : "";
  return access((setup.programs + "/fabric_transfer").c_str(), X_OK) == 0
             ? ""
             : "libfabric was not there when this was built (libfabric-dev)";
}

// How still the machine was during a pair.
struct Calm {
  double line_ns_before;
  double line_ns_after;
  double switches_per_s;
  [[nodiscard]] bool enough() const {
    return std::max(line_ns_before, line_ns_after) <= kMoved * std::min(line_ns_before, line_ns_after) &&
           switches_per_s <= kSwitches;
  }
};

void add_sample(Json& samples, const Calm& calm, const Figure& ours, const Figure& theirs, double copy) {
  Json sample = {{"line_ns_before", calm.line_ns_before},
                 {"line_ns_after", calm.line_ns_after},
                 {"switches_per_s", calm.switches_per_s},
                 {"kept", calm.enough()},
                 {"strait", ours.value}};
  if (theirs.ok) {
    sample["peer"] = theirs.value;
    sample["ratio"] = ours.value / theirs.value;
  }
  if (copy > 0) {
    sample["memcpy"] = copy;
    sample["memcpy_ratio"] = ours.value / copy;
  }
  samples.push_back(sample);
}

void summarise(Json& out) {
  std::size_t kept = 0;
  for (const Json& sample : out["samples"]) kept += sample["kept"].get<bool>() ? 1u : 0u;
  out["kept"] = kept;
  out["discarded"] = out["samples"].size() - kept;
  // When the machine was never quiet there is nothing better than all pairs; the table says so.
  out["noisy"] = kept == 0;
  for (const char* name : {"strait", "peer", "ratio", "memcpy", "memcpy_ratio", "line_ns_before", "switches_per_s"}) {
    std::vector<double> values;
    for (const Json& sample : out["samples"]) {
      if (sample.contains(name) && (kept == 0 || sample["kept"].get<bool>()))
        values.push_back(sample[name].get<double>());
    }
    if (!values.empty()) out[name] = spread_of(values);
  }
}

}  // namespace

Json spread_of(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double where = part * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(where);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (where - static_cast<double>(low));
  };
  return {{"median", at(0.5)}, {"p10", at(0.1)}, {"p90", at(0.9)}, {"n", values.size()}};
}

Json measure_pairs(const Setup& setup, const PairRow& row) {
  Json out = {{"id", row.id}, {"kind", "pair"}, {"samples", Json::array()}, {"failures", Json::array()}};
  if (const std::string why = why_no_program(row); !why.empty()) {
    out["failures"].push_back(why);
    return out;
  }
  const std::string no_peer = why_no_peer(setup, row);
  if (!no_peer.empty()) out["no_peer"] = no_peer;
  std::vector<std::string> peer_options = row.peer_options;
  if (no_peer.empty() && row.peer == PeerKind::fabric) peer_options = best_fabric_options(setup, row);
  const bool copies = row.workload.front() == "bandwidth";
  int failed = 0;
  for (int pair = 0; pair < setup.pairs && failed < 3; ++pair) {
    setup.say(std::string(row.title) + ": pair " + std::to_string(pair + 1) + " of " + std::to_string(setup.pairs));
    Figure theirs;
    Figure ours;
    const auto run_peer = [&] {
      if (!no_peer.empty()) return;
      const char* const name = transfer_program(row.peer);
      theirs =
          name != nullptr ? read_figure(run(command_of(setup, name, row, peer_options), 120)) : run_ucx(setup, row);
    };
    const Used used = used_so_far();
    Calm calm{};
    calm.line_ns_before = line_ns(setup.cpu[0], setup.cpu[1]);
    // Each goes first as often as the other.
    if (pair % 2 == 0) run_peer();
    ours = run_strait(setup, row);
    if (pair % 2 == 1) run_peer();
    const double copy = copies ? memcpy_rate(workload_of(setup, row)) : 0;
    calm.line_ns_after = line_ns(setup.cpu[0], setup.cpu[1]);
    const Used now = used_so_far();
    calm.switches_per_s = (now.switches - used.switches) / std::max(now.cpu_s - used.cpu_s, 0.01);
    if (!ours.ok || (no_peer.empty() && !theirs.ok)) {
      out["failures"].push_back(ours.ok ? "peer: " + theirs.problem : "strait: " + ours.problem);
      ++failed;
      --pair;
      continue;
    }
    out["strait_path"] = ours.path;
    if (theirs.ok) out["peer_path"] = theirs.path;
    add_sample(out["samples"], calm, ours, theirs, copy);
  }
  summarise(out);
  return out;
}

namespace {

// null and the reason when valgrind is not there or the program failed under it.
Json count_steps(const Setup& setup, const std::string& program, const std::vector<std::string>& steps,
                 const std::string& count) {
  Json out = Json::object();
  for (const std::string& step : steps) {
    setup.say("instructions: " + program + " " + step);
    const Ran ran = run({setup.scripts + "/count_instructions.sh", setup.programs + "/" + program, step, count}, 300);
    if (!ran.ok) return {{"problem", ran.problem}};
    out[step] = std::atoi(ran.out.c_str());
  }
  return out;
}

}  // namespace

Json measure_instructions(const Setup& setup) {
  return {{"id", "instructions"},
          {"kind", "instructions"},
          {"inline_write", count_steps(setup, "inline_write", {"post", "reap", "empty"}, "1000")},
          {"put_path", count_steps(setup, "put_path", {"put", "land", "ack", "wait", "poll"}, "1000")}};
}

Json measure_lookup(const Setup& setup) {
  Json out = {{"id", "lookup"}, {"kind", "lookup"}, {"sizes", Json::array()}};
  for (const char* regions : {"1", "1000", "100000"}) {
    setup.say(std::string("lookup: ") + regions + " regions");
    const Ran ran = run({setup.programs + "/lookup", regions, std::to_string(setup.cpu[0])}, 120);
    const Json line = ran.ok ? Json::parse(ran.out, nullptr, false) : Json();
    if (!line.is_object()) return {{"id", "lookup"}, {"kind", "lookup"}, {"problem", ran.problem}};
    out["sizes"].push_back(line);
  }
  return out;
}

Json measure_footprint(const Setup& setup) {
  setup.say("memory and idle time");
  const Ran ran =
      run({setup.programs + "/footprint", setup.quick ? "2" : "5", setup.quick ? "1000" : "10000", "64"}, 120);
  Json out = ran.ok ? Json::parse(ran.out, nullptr, false) : Json();
  if (!out.is_object()) out = {{"problem", ran.problem}};
  out["id"] = "footprint";
  out["kind"] = "footprint";
  return out;
}

}  // namespace bench
