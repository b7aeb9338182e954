// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "machine.hpp"
#include "process.hpp"
#include "programs.hpp"
#include "ucx.hpp"
#include "versus/sweep.hpp"

namespace bench {
namespace {

using Json = nlohmann::json;
Figure read_figure(const Ran& ran) {
  return strait::versus::read_transfer(ran.ok, ran.out, ran.problem);
}

strait::versus::Cpus cpus_of(const Setup& setup) {
  return {setup.cpu[0], setup.cpu[1]};
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
  // A thousand peers take their time to connect.
  return read_figure(run(command_of(setup, row.own, row, row.strait_options), 600));
}

// What the two programs were told, as one Workload.
Workload workload_of(const Setup& setup, const PairRow& row) {
  std::vector<std::string> words = command_of(setup, "memcpy", row, row.strait_options);
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  return parse_workload(static_cast<int>(raw.size()), raw.data());
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
    const double value = strait::versus::spread_of(values)->median;
    if (best.empty() || (row.lower_is_better ? value < best_value : value > best_value)) {
      best = options;
      best_value = value;
    }
  }
  return best;
}

// Null: the peer is ucx_perftest.
const char* transfer_program(PeerKind peer) {
  switch (peer) {
    case PeerKind::fabric: return "fabric_transfer";
    case PeerKind::ucx: return "ucx_transfer";
    case PeerKind::uct: return "uct_transfer";
    case PeerKind::udp: return "udp_transfer";
    case PeerKind::vm_copy: return "vm_copy";
    default: return nullptr;
  }
}

// Measured here, or by strait's own program.
bool no_program(PeerKind peer) {
  return peer == PeerKind::memcpy || peer == PeerKind::beside;
}

std::string why_no_peer(const Setup& setup, const PairRow& row) {
  if (row.peer == PeerKind::udp || row.peer == PeerKind::vm_copy || no_program(row.peer)) return "";
  if (row.peer == PeerKind::ucx_perftest) return why_no_ucx(setup, row);
  if (access((setup.programs + "/" + transfer_program(row.peer)).c_str(), X_OK) == 0) return "";
  return row.peer == PeerKind::fabric ? "libfabric was not there when this was built (libfabric-dev)"
                                      : "UCX was not there when this was built (libucx-dev)";
}

}  // namespace

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
  strait::versus::Sides sides{.ours = [&] { return run_strait(setup, row); }, .peer = {}, .copy = {}};
  sides.beside = row.peer == PeerKind::beside;
  if (row.peer == PeerKind::memcpy) {
    sides.peer = [&] {
      const double copy = memcpy_rate(workload_of(setup, row));
      return Figure{copy > 0, copy, "nothing was copied", row.peer_title};
    };
  } else if (no_peer.empty() && !sides.beside) {
    sides.peer = [&] {
      const char* const name = transfer_program(row.peer);
      return name != nullptr ? read_figure(run(command_of(setup, name, row, peer_options), 120))
                             : run_ucx(setup, row, workload_of(setup, row));
    };
  }
  if (row.workload.front() == "bandwidth" && row.peer != PeerKind::memcpy)
    sides.copy = [&] { return memcpy_rate(workload_of(setup, row)); };
  const auto pairs = strait::versus::measure_pairs(cpus_of(setup), setup.pairs, sides, [&](int pair) {
    setup.say(std::string(row.title) + ": pair " + std::to_string(pair + 1) + " of " + std::to_string(setup.pairs));
    return true;
  });
  if (!pairs) give_up(pairs.error().text);
  out.update(strait::versus::pairs_json(*pairs));
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

Json measure_rcache(const Setup& setup) {
  Json out = {{"id", "rcache"}, {"kind", "rcache"}, {"lines", Json::array()}};
  const std::string cpu = std::to_string(setup.cpu[0]);
  const std::vector<std::vector<std::string>> all = {{"hit", "1", cpu},     {"hit", "64", cpu},
                                                     {"hit", "4096", cpu},  {"hit", "100000", cpu},
                                                     {"miss", "4096", cpu}, {"threads", "16", "4096"}};
  for (const std::vector<std::string>& each : all) {
    setup.say("registration cache: " + each[0] + " " + each[1]);
    std::vector<std::string> words = {setup.programs + "/rcache"};
    words.insert(words.end(), each.begin(), each.end());
    const Ran ran = run(words, 300);
    const Json line = ran.ok ? Json::parse(ran.out, nullptr, false) : Json();
    if (!line.is_object()) return {{"id", "rcache"}, {"kind", "rcache"}, {"problem", ran.problem}};
    out["lines"].push_back(line);
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

Json measure_sweep(const Setup& setup) {
  strait::versus::SweepPlan plan{.strait = setup.strait,
                                 .strait_options = {},
                                 .peers = strait::versus::peers_here(),
                                 .sizes = {8, 64, 512, 4096, 32768, 262144, 2u << 20, 16u << 20},
                                 .pairs = setup.pairs,
                                 .seconds = setup.milliseconds / 1e3,
                                 .cpus = cpus_of(setup),
                                 .say = setup.say};
  const auto results = strait::versus::measure_sweep(plan);
  if (!results) give_up(results.error().text);
  return {{"id", "sweep"}, {"kind", "sweep"}, {"sweep", *results}};
}

}  // namespace bench
