// SPDX-License-Identifier: Apache-2.0
// What is run, in which order.
#include "versus/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "plot/units.hpp"
#include "sys/captured.hpp"

namespace strait::versus {
namespace {

struct MetricRow {
  Metric metric;
  const char* test;  // of `strait perf`
  const char* title;
  const char* unit;
};
constexpr MetricRow kMetrics[] = {{Metric::latency, "put_lat", "latency: put, one way", "us"},
                                  {Metric::bandwidth, "put_bw", "bandwidth: puts, 16 under way", "GB/s"}};

// What the first good run of ours said about itself.
struct About {
  bool software = true;
  std::string carrier;
  std::string path;
  bool known = false;
};

Figure read_ours(const sys::Ran& ran, const MetricRow& row, About& about) {
  const Json report = Json::parse(ran.out, nullptr, false);
  if (!ran.ok) {
    std::string cause = ran.problem;
    while (cause.ends_with('\n')) cause.pop_back();
    return no_figure(cause);
  }
  try {
    const Json& test = report.at("tests").at(0);
    const Json& line = test.at("results").at(0);
    if (!line.at("verified").get<bool>()) return no_figure("its data was wrong");
    about = {report.at("software").get<bool>(), test.at("carrier").get<std::string>(),
             test.at("path").get<std::string>(), true};
    const double value = row.metric == Metric::bandwidth
                             ? line.at("bytes_per_second").get<double>() / 1e9
                             : line.at("seconds").get<double>() / line.at("iterations").get<double>() / 2 * 1e6;
    if (!(value > 0) || !std::isfinite(value)) return no_figure("it measured nothing");
    return {true, value, {}, about.path};
  } catch (const Json::exception& wrong) {
    return no_figure(fmt::format("its report cannot be read: {}", wrong.what()));
  }
}

// Half of the round trip over the whole run, as the peers' programs have it; the table of `strait perf` has
// percentiles.
Figure run_ours(const SweepPlan& plan, const MetricRow& row, std::uint64_t bytes, About& about) {
  std::vector<std::string> command = {plan.strait,  "perf",
                                      "--spawn",    "--json",
                                      "--test",     row.test,
                                      "--sizes",    std::to_string(bytes),
                                      "--duration", fmt::format("{:.0f}ns", std::max(plan.seconds * 1e9, 1.0))};
  command.insert(command.end(), plan.strait_options.begin(), plan.strait_options.end());
  return read_ours(sys::run_captured(command, sys::Deadline::after_ns(plan.deadline_ns)), row, about);
}

// Over all pairs of one size, whoever the peer was; those that were kept, unless none was.
Json spread_of_ours(const Json& peers) {
  std::vector<double> kept, all;
  for (const Json& peer : peers) {
    for (const Json& sample : peer.value("samples", Json::array())) {
      all.push_back(sample.at("strait").get<double>());
      if (sample.at("kept").get<bool>()) kept.push_back(all.back());
    }
  }
  return spread_json(spread_of(kept.empty() ? all : kept));
}

class Sweep {
 public:
  explicit Sweep(const SweepPlan& plan) : plan_(plan) {
    for (const Peer peer : plan.peers) {
      if (peer != Peer::memcpy || plan.peers.size() == 1) partners_.push_back(peer);
    }
    with_copy_ = partners_.size() < plan.peers.size();
    all_pairs_ = std::size(kMetrics) * plan.sizes.size() * partners_.size() * static_cast<std::size_t>(plan.pairs);
  }

  Result<Json> run() {
    Json tests = Json::array();
    for (const MetricRow& row : kMetrics) {
      Json results = Json::array();
      for (const std::uint64_t bytes : plan_.sizes) {
        STRAIT_TRY(Json result, size(row, bytes));
        results.push_back(std::move(result));
      }
      tests.push_back({{"test", row.test},
                       {"title", row.title},
                       {"unit", row.unit},
                       {"lower_is_better", row.metric == Metric::latency},
                       {"results", std::move(results)}});
    }
    Json peers = Json::array();
    for (const PeerRow& row : peer_table()) {
      if (std::find(plan_.peers.begin(), plan_.peers.end(), row.peer) != plan_.peers.end())
        peers.push_back({{"name", row.name}, {"title", row.title}});
    }
    return Json{{"software", about_.software}, {"carrier", about_.carrier}, {"path", about_.path},
                {"peers", std::move(peers)},   {"pairs", plan_.pairs},      {"seconds", plan_.seconds},
                {"ok", failures_.empty()},     {"failures", failures_},     {"tests", std::move(tests)}};
  }

 private:
  Result<Json> size(const MetricRow& row, std::uint64_t bytes) {
    Json peers = Json::array();
    bool copy_due = with_copy_;
    for (const Peer peer : partners_) {
      STRAIT_TRY(Json entry, pairs_with(peer, row, bytes, copy_due));
      // memcpy is measured in the pairs of the first peer that runs: it takes no pairs of its own.
      std::optional<Json> copies;
      if (entry.contains("copies")) {
        copies.emplace(std::move(entry["copies"]));
        entry.erase("copies");
        copy_due = false;
      }
      peers.push_back(std::move(entry));
      if (copies) peers.push_back(std::move(*copies));
    }
    return Json{{"bytes", bytes}, {"strait", spread_of_ours(peers)}, {"peers", std::move(peers)}};
  }

  Result<Json> pairs_with(Peer peer, const MetricRow& row, std::uint64_t bytes, bool with_copy) {
    const char* const name = peer_table()[static_cast<std::size_t>(peer)].name;
    const PeerRun how{row.metric, bytes, plan_.seconds, plan_.cpus, plan_.deadline_ns};
    PeerRunner runner(peer, how);
    if (const std::string why = runner.unable(); !why.empty()) {
      done_pairs_ += static_cast<std::size_t>(plan_.pairs);
      return Json{{"name", name}, {"left_out", why}};
    }
    const std::string where = fmt::format("{} {} beside {}", row.test, plot::size_text(bytes), name);
    STRAIT_CHECK(go_on(where + ": warm-up"));
    const std::string problem = warm_up(runner, row, bytes);
    if (!problem.empty()) return failed(name, where, problem);
    const PeerRunner copy(Peer::memcpy, how);
    Sides sides{
        .ours = [&] { return run_ours(plan_, row, bytes, about_); }, .peer = [&] { return runner.once(); }, .copy = {}};
    if (with_copy) sides.copy = [&] { return copy.once().value; };
    Status stopped;
    STRAIT_TRY(const Pairs pairs, measure_pairs(plan_.cpus, plan_.pairs, sides, [&](int pair) {
                 stopped = go_on(fmt::format("{}: pair {} of {}", where, pair + 1, plan_.pairs));
                 if (stopped) ++done_pairs_;
                 return stopped.has_value();
               }));
    STRAIT_CHECK(stopped);
    Json entry = pairs_json(pairs);
    entry["name"] = name;
    // One that went well when it was tried again is in the report, and no failure of the whole.
    if (pairs.samples.size() < static_cast<std::size_t>(plan_.pairs))
      failures_.push_back(where + ": " + (pairs.failures.empty() ? "no pairs" : pairs.failures.back()));
    if (with_copy) {
      entry["copies"] = pairs_json(beside_copy(pairs));
      entry["copies"]["name"] = "memcpy";
    }
    return entry;
  }

  // Each side once, uncounted; like a pair it is tried three times. Empty when it went well.
  std::string warm_up(PeerRunner& runner, const MetricRow& row, std::uint64_t bytes) {
    std::string problem = "nothing was tried";
    for (int attempt = 0; attempt < 3 && !problem.empty(); ++attempt) {
      problem.clear();
      if (const Status warm = runner.warm_up(); !warm) problem = "peer: " + warm.error().text;
      if (!problem.empty()) continue;
      if (const Figure warm = run_ours(plan_, row, bytes, about_); !warm.ok) problem = "strait: " + warm.problem;
    }
    return problem;
  }

  Json failed(const char* peer, const std::string& where, const std::string& problem) {
    failures_.push_back(where + ": " + problem);
    done_pairs_ += static_cast<std::size_t>(plan_.pairs);
    return {{"name", peer}, {"samples", Json::array()}, {"kept", 0}, {"discarded", 0}, {"failures", {problem}}};
  }

  Status go_on(const std::string& what) {
    if (plan_.stop && plan_.stop()) return fail(Code::gone, "interrupted");
    if (plan_.say)
      plan_.say(fmt::format("{} ({} % done)", what, 100 * done_pairs_ / std::max<std::size_t>(all_pairs_, 1)));
    return {};
  }

  const SweepPlan& plan_;
  std::vector<Peer> partners_;  // who has pairs of its own
  bool with_copy_ = false;
  About about_;
  std::vector<std::string> failures_;
  std::size_t all_pairs_ = 0;
  std::size_t done_pairs_ = 0;
};

}  // namespace

Result<Json> measure_sweep(const SweepPlan& plan) {
  // Before anything is run: where this does not work, nothing else says anything.
  STRAIT_CHECK(line_ns(plan.cpus));
  return Sweep(plan).run();
}

}  // namespace strait::versus
