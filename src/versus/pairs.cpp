// SPDX-License-Identifier: Apache-2.0
#include "versus/pairs.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sys/usage.hpp"

namespace strait::versus {
namespace {

constexpr int kMostFailures = 3;

std::optional<double> ratio_of(double ours, const std::optional<double>& other) {
  if (!other || *other <= 0) return std::nullopt;
  return ours / *other;
}

Json sample_json(const Sample& sample) {
  Json out = {{"line_ns_before", sample.calm.line_ns_before},
              {"line_ns_after", sample.calm.line_ns_after},
              {"switches_per_s", sample.calm.switches_per_s},
              {"kept", sample.calm.enough()},
              {"strait", sample.ours}};
  if (sample.peer) out["peer"] = *sample.peer;
  if (const auto ratio = ratio_of(sample.ours, sample.peer)) out["ratio"] = *ratio;
  if (sample.copy) out["memcpy"] = *sample.copy;
  if (const auto ratio = ratio_of(sample.ours, sample.copy)) out["memcpy_ratio"] = *ratio;
  return out;
}

}  // namespace

Figure no_figure(std::string problem) {
  return {.problem = std::move(problem), .path = {}};
}

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"median", spread->median}, {"p10", spread->p10}, {"p90", spread->p90}, {"n", spread->n}};
}

Result<Pairs> measure_pairs(const Cpus& cpus, int count, const Sides& sides, const std::function<bool(int)>& next) {
  Pairs pairs;
  int failed = 0;
  for (int pair = 0; pair < count && failed < kMostFailures;) {
    if (next && !next(pair)) break;
    Sample sample;
    Figure theirs;
    const sys::Usage before = sys::usage_of_children();
    STRAIT_TRY(sample.calm.line_ns_before, line_ns(cpus));
    // Each goes first as often as the other.
    if (sides.peer && pair % 2 == 0) theirs = sides.peer();
    const Figure ours = sides.ours();
    if (sides.peer && pair % 2 == 1) theirs = sides.peer();
    if (sides.beside && ours.ok) theirs = {ours.beside > 0, ours.beside, "ours measured no limit", ours.path};
    if (sides.copy) sample.copy = sides.copy();
    STRAIT_TRY(sample.calm.line_ns_after, line_ns(cpus));
    const sys::Usage after = sys::usage_of_children();
    sample.calm.switches_per_s = (after.switches - before.switches) / std::max(after.cpu_s - before.cpu_s, 0.01);
    const bool paired = sides.peer || sides.beside;
    if (!ours.ok || (paired && !theirs.ok)) {
      pairs.failures.push_back(ours.ok ? "peer: " + theirs.problem : "strait: " + ours.problem);
      ++failed;
      continue;
    }
    sample.ours = ours.value;
    pairs.our_path = ours.path;
    if (paired) {
      sample.peer = theirs.value;
      pairs.peer_path = theirs.path;
    }
    pairs.samples.push_back(sample);
    ++pair;
  }
  return pairs;
}

Pairs beside_copy(const Pairs& pairs) {
  Pairs out = pairs;
  out.peer_path = "memcpy";
  for (Sample& sample : out.samples) {
    sample.peer = sample.copy;
    sample.copy.reset();
  }
  return out;
}

Json pairs_json(const Pairs& pairs) {
  Json out = {{"samples", Json::array()}, {"failures", pairs.failures}};
  std::size_t kept = 0;
  std::size_t line_moved = 0;
  std::size_t lost_cpu = 0;
  for (const Sample& sample : pairs.samples) {
    out["samples"].push_back(sample_json(sample));
    kept += sample.calm.enough() ? 1u : 0u;
    line_moved += sample.calm.line_moved() ? 1u : 0u;
    lost_cpu += sample.calm.lost_cpu() ? 1u : 0u;
  }
  out["kept"] = kept;
  out["discarded"] = pairs.samples.size() - kept;
  out["line_moved"] = line_moved;
  out["lost_cpu"] = lost_cpu;
  // When the machine was never quiet there is nothing better than all pairs; the table says so.
  out["noisy"] = kept == 0;
  if (!pairs.our_path.empty()) out["strait_path"] = pairs.our_path;
  if (!pairs.peer_path.empty()) out["peer_path"] = pairs.peer_path;
  for (const char* name : {"strait", "peer", "ratio", "memcpy", "memcpy_ratio", "line_ns_before", "switches_per_s"}) {
    std::vector<double> values;
    for (const Json& sample : out["samples"]) {
      if (sample.contains(name) && (kept == 0 || sample["kept"].get<bool>()))
        values.push_back(sample[name].get<double>());
    }
    if (!values.empty()) out[name] = spread_json(spread_of(values));
  }
  return out;
}

}  // namespace strait::versus
