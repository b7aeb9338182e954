// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "rows.hpp"
#include "versus/machine.hpp"
#include "versus/sweep.hpp"

namespace bench {
namespace {

using Json = nlohmann::json;
constexpr const char* kBegin = "<!-- begin: strait_bench -->";
constexpr const char* kEnd = "<!-- end: strait_bench -->";

const PairRow* row_of(const Json& result) {
  for (const PairRow& row : pair_rows()) {
    if (result["id"] == row.id) return &row;
  }
  return nullptr;
}

const Json* find(const Json& results, const char* kind) {
  for (const Json& result : results["rows"]) {
    if (result["kind"] == kind) return &result;
  }
  return nullptr;
}

std::string number(double value) {
  return value < 10    ? fmt::format("{:.3g}", value)
         : value < 100 ? fmt::format("{:.1f}", value)
                       : fmt::format("{:.0f}", value);
}

std::string median_of(const Json& result, const char* name) {
  return result.contains(name) ? number(result[name]["median"].get<double>()) : "-";
}

std::string range_of(const Json& result, const char* name) {
  if (!result.contains(name)) return "-";
  return fmt::format("{:.2f} .. {:.2f}", result[name]["p10"].get<double>(), result[name]["p90"].get<double>());
}

// A machine that does not hold still says nothing about time. Memory is counted.
bool says_nothing(const PairRow& row, const Json& result) {
  return result["noisy"].get<bool>() && std::string_view(row.unit) != "KiB";
}

bool reached(const PairRow& row, const Json& result) {
  if (row.goal == 0) return true;
  if (!result.contains("ratio")) return result.contains("no_peer");
  if (says_nothing(row, result)) return false;
  const double ratio = result["ratio"]["median"].get<double>();
  return row.lower_is_better ? ratio <= row.goal : ratio >= row.goal;
}

std::string verdict(const PairRow& row, const Json& result) {
  if (result["samples"].empty()) return "failed";
  if (!result.contains("ratio")) return "noted, not run";
  if (says_nothing(row, result)) return "noisy: says nothing";
  if (row.goal == 0) return "";
  return reached(row, result) ? "reached" : "missed";
}

std::string peer_figure(const PairRow& row, const Json& result) {
  if (result.contains("peer")) return median_of(result, "peer");
  return row.noted > 0 ? number(row.noted) + "*" : "-";
}

std::string goal_text(const PairRow& row) {
  if (row.goal == 0) return "-";
  // As it was set: 0.95 is not 0.9. A whole number keeps its point.
  std::string goal = fmt::format("{:.2f}", row.goal);
  if (goal.ends_with('0')) goal.pop_back();
  return fmt::format("{} {}", row.lower_is_better ? "<=" : ">=", goal);
}

// Of several runs, the letter of the one that measured this row.
char letter(std::size_t run) {
  return static_cast<char>('A' + run);
}

std::string run_text(const Json& results, const Json& result) {
  return results["runs"].size() > 1 ? fmt::format(" {} |", letter(result["run"].get<std::size_t>())) : "";
}

std::string pairs_text(const Json& result) {
  return fmt::format("{}/{}", result.value("kept", 0), result.value("discarded", 0));
}

std::string misses_text(const Json& size, const Json& first, const char* what) {
  const std::string name(what);
  const double counted = size[name + "_misses"].get<double>();
  if (counted >= 0) return fmt::format("{:.2f} counted", counted);
  const double extra = size[name + "_ns"].get<double>() - first[name + "_ns"].get<double>();
  const double each = size[name == "key" ? "miss_ns_keys" : "miss_ns_cache"].get<double>();
  return fmt::format("{:.1f} by time", std::max(extra, 0.0) / each);
}

void add_pairs(std::string& out, const Json& results, bool extra) {
  for (const Json& result : results["rows"]) {
    const PairRow* row = result["kind"] == "pair" ? row_of(result) : nullptr;
    if (row == nullptr || row->extra != extra) continue;
    out +=
        fmt::format("| {} | {} {} | {} {} ({}) | {} | **{}** | {} | {} | {} | {} | {} |{}\n", row->title,
                    median_of(result, "strait"), row->unit, peer_figure(*row, result), row->unit, row->peer_title,
                    median_of(result, "memcpy"), median_of(result, "ratio"), range_of(result, "ratio"), goal_text(*row),
                    row->prediction, pairs_text(result), verdict(*row, result), run_text(results, result));
  }
}

// One process, both caches in turn: bench/rcache.cpp.
void add_rcache(std::string& out, const Json& results) {
  const Json* rows = find(results, "rcache");
  if (rows == nullptr || !rows->contains("lines")) return;
  out +=
      "\n### The registration cache\n\nBeside UCX's `ucs_rcache`, in one process and in turn; nanoseconds of the "
      "thread's CPU time, "
      "taking and giving back. libfabric's, which needs a verbs device, is measured by hand (`rcache fabric`, "
      "below).\n\n| what | strait | UCX | ratio | p10 .. p90 | to reach | predicted | "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const Json& line : (*rows)["lines"]) {
    const std::string what = line["what"].get<std::string>();
    const auto value = [&](const char* name) { return line.value(name, 0.0); };
    if (what == "threads") {
      out += fmt::format(
          "| {} threads on {} CPUs, {} regions: M hits/s, times one thread | {:.0f}, {:.1f} x | {} | - | {:.1f} .. "
          "{:.1f} | {} | {} | {} |\n",
          line["threads"].get<int>(), line["cpus"].get<int>(), line["regions"].get<int>(), value("strait_all"),
          value("strait_times"),
          line.contains("ucx_all") ? fmt::format("{:.0f}, {:.1f} x", value("ucx_all"), value("ucx_times")) : "-",
          value("strait_p10"), value("strait_p90"), ">= 10 x on 16 CPUs", kRcacheThreadsPrediction,
          line["cpus"].get<int>() < line["threads"].get<int>() ? "too few CPUs: says nothing"
          : value("strait_times") >= 10                        ? "reached"
                                                               : "missed");
      continue;
    }
    const bool hit = what == "hit";
    const double goal = hit ? 0.7 : 1.0;
    out += fmt::format("| {}, {} regions | {:.1f} ns | {} | {} | {:.2f} .. {:.2f} | <= {:.1f} | {} | {} |\n",
                       hit ? "hit, uniform random" : "miss, a register function that does nothing",
                       line["regions"].get<int>(), value("strait"),
                       line.contains("ucx") ? fmt::format("{:.1f} ns", value("ucx")) : "-",
                       line.contains("ratio") ? fmt::format("**{:.2f}**", value("ratio")) : "-", value("p10"),
                       value("p90"), goal, hit ? kRcacheHitPrediction : kRcacheMissPrediction,
                       !line.contains("ratio")  ? "no peer"
                       : value("ratio") <= goal ? "reached"
                                                : "missed");
  }
}

void add_counts(std::string& out, const Json& results) {
  if (const Json* counts = find(results, "instructions")) {
    out += "\n### Instructions (callgrind)\n\n";
    out += fmt::format("Predicted: {}.\n\n| step | instructions |\n|---|---|\n", kInstructionsPrediction);
    const auto add = [&](const Json& steps, const char* step, const char* title) {
      if (steps.contains(step)) out += fmt::format("| {} | {} |\n", title, steps[step].get<int>());
    };
    const Json& ring = (*counts)["inline_write"];
    add(ring, "post", "8 B inline write: build and ring");
    add(ring, "reap", "8 B inline write: reap");
    add(ring, "empty", "look at an empty completion ring");
    const Json& path = (*counts)["put_path"];
    add(path, "put", "strait_put of 8 B, with the software NIC's requester");
    add(path, "land", "owner's poll that lands it (software NIC's responder)");
    add(path, "ack", "owner's poll that acknowledges it, when nothing else carries that");
    add(path, "wait", "strait_wait, with the software NIC's completion");
    add(path, "poll", "strait_node_poll with nothing to do");
    if (ring.contains("problem")) out += fmt::format("\nNot counted: {}\n", ring["problem"].get<std::string>());
  }
  if (const Json* lookup = find(results, "lookup"); lookup != nullptr && lookup->contains("sizes")) {
    out +=
        "\n### Finding a region\n\n"
        "Lines: cache lines of the table that a lookup reads. Misses: counted by the CPU, or, where its counters are "
        "closed to us, the time above that with a single region divided by the time of a dependent miss in as much "
        "memory.\n\n"
        "| regions | cache hit ns | lines | misses | key check ns | misses | one miss ns "
        "|\n|---|---|---|---|---|---|---|\n";
    const Json& first = (*lookup)["sizes"][0];
    for (const Json& size : (*lookup)["sizes"]) {
      out +=
          fmt::format("| {} | {:.0f} | {:.2f} | {} | {:.1f} | {} | {:.1f} / {:.1f} |\n", size["regions"].get<int>(),
                      size["cache_ns"].get<double>(), size["cache_lines"].get<double>(),
                      misses_text(size, first, "cache"), size["key_ns"].get<double>(), misses_text(size, first, "key"),
                      size["miss_ns_cache"].get<double>(), size["miss_ns_keys"].get<double>());
    }
  }
  add_rcache(out, results);
  if (const Json* held = find(results, "footprint"); held != nullptr && held->contains("lanes")) {
    const auto value = [&](const char* name) { return (*held)[name].get<double>(); };
    out += "\n### Memory and idle time\n\n| what | measured |\n|---|---|\n";
    out += fmt::format(
        "| region, local use | {:.0f} B of heap |\n| region that peers may write, with its signals | {:.0f} B of heap "
        "|\n",
        value("region_local_heap"), value("region_remote_heap"));
    out += fmt::format("| sharing a page of a known allocation | {:.2f} us |\n", value("share_remote_us"));
    out += fmt::format("| lane of depth {:.0f}: queue pair, rings, book | {:.0f} B resident, {:.0f} B at the peer |\n",
                       value("lane_depth"), value("lane_resident"), value("lane_resident_at_peer"));
    out += fmt::format("| a Node, open and otherwise unused | {:.0f} B resident |\n", value("node_resident"));
    out += fmt::format("| connected Node with its own thread, idle for {:.0f} s | {:.3f} % of a core |\n",
                       value("idle_seconds"), value("idle_percent"));
  }
}

std::string noted_line(const Json& results) {
  for (const Json& result : results["rows"]) {
    if (result.contains("no_peer"))
      return "\n\\* noted on the reference machine, not run: " + result["no_peer"].get<std::string>() + ".\n";
  }
  return {};
}

// Machine, versions, and how many pairs were left out for which reason, of each run.
std::string origin_text(const Json& results) {
  std::string out;
  const bool many = results["runs"].size() > 1;
  for (std::size_t i = 0; i < results["runs"].size(); ++i) {
    const Json& run = results["runs"][i];
    const Json& machine = run["machine"];
    const std::string here =
        fmt::format("Machine: {}. {}.", strait::versus::machine_text(machine), strait::versus::versions_text(machine));
    const bool same = i > 0 && machine == results["runs"][i - 1]["machine"];
    out +=
        fmt::format("{}Command: `{}`, {}. Load average at the start {:.1f}, at the end {:.1f}.\n\n",
                    many ? fmt::format("Run {}. ", letter(i)) : "", run["command"].get<std::string>(),
                    run["date"].get<std::string>(), run["load_before"].get<double>(), run["load_after"].get<double>());
    out += (same ? std::string("The same machine.") : here) + "\n";
    const auto count = [&](const char* name) { return run.value(name, std::size_t{0}); };
    const std::string left_out =
        strait::versus::discarded_text(count("pairs"), count("discarded"), count("line_moved"), count("lost_cpu"));
    if (!left_out.empty()) out += "\n" + left_out + "\n";
    if (i + 1 < results["runs"].size()) out += "\n";
  }
  return out;
}

void add_sweep(std::string& out, const Json& results) {
  const Json* row = find(results, "sweep");
  if (row == nullptr) return;
  out +=
      "\n### Over size\n\nAs `strait perf --compare` measures it: the same bytes again and again, the ratio pair by "
      "pair.\n\n![Latency and bandwidth over size](sweep.svg)\n\n" +
      strait::versus::sweep_markdown((*row)["sweep"]);
}

// What a folder of results or a reader needs to know of a run: all but its rows.
Json run_of(const Json& results) {
  Json run = results;
  run.erase("rows");
  for (const Json& result : results["rows"]) {
    if (result["kind"] != "pair") continue;
    run["pairs"] = run.value("pairs", std::size_t{0}) + result["samples"].size();
    for (const char* name : {"discarded", "line_moved", "lost_cpu"})
      run[name] = run.value(name, std::size_t{0}) + result.value(name, std::size_t{0});
  }
  return run;
}

// What stands between the markers, with the text before and after them.
struct Marked {
  std::string problem, before, between, after;
};

Marked read_marked(const std::string& file) {
  std::ifstream in(file);
  if (!in) return {.problem = file + " cannot be read", .before = {}, .between = {}, .after = {}};
  std::stringstream whole;
  whole << in.rdbuf();
  const std::string text = whole.str();
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return {.problem = file + " has no lines \"" + kBegin + "\" and \"" + kEnd + "\"",
            .before = {},
            .between = {},
            .after = {}};
  }
  const std::size_t after = begin + std::string_view(kBegin).size() + 1;
  return {.problem = {},
          .before = text.substr(0, after),
          .between = text.substr(after, end - after),
          .after = text.substr(end)};
}

}  // namespace

// In the order of the table, whatever order they were measured in.
Json join(const std::vector<Json>& runs) {
  Json joined = {{"runs", Json::array()}, {"rows", Json::array()}};
  std::map<std::string, Json> last;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    joined["runs"].push_back(run_of(runs[i]));
    for (const Json& row : runs[i]["rows"]) {
      Json& kept = last[row["id"].get<std::string>()] = row;
      kept["run"] = i;
    }
  }
  for (const PairRow& row : pair_rows()) {
    if (const auto found = last.find(row.id); found != last.end()) {
      joined["rows"].push_back(found->second);
      last.erase(found);
    }
  }
  for (const auto& [id, row] : last) joined["rows"].push_back(row);
  return joined;
}

std::string table_text(const Json& results) {
  std::string out = fmt::format("{:<34}{:>12}{:>12}{:>8}  {:<14}{:<7}{}\n", "put between two processes", "strait",
                                "peer", "ratio", "p10 .. p90", "pairs", "to reach");
  for (const Json& result : results["rows"]) {
    const PairRow* row = result["kind"] == "pair" ? row_of(result) : nullptr;
    if (row == nullptr) continue;
    out += fmt::format("{:<34.33}{:>12}{:>12}{:>8}  {:<14}{:<7}{} {}\n", row->title,
                       median_of(result, "strait") + " " + row->unit, peer_figure(*row, result) + " " + row->unit,
                       median_of(result, "ratio"), range_of(result, "ratio"), pairs_text(result), goal_text(*row),
                       verdict(*row, result));
    if (result.contains("memcpy"))
      out += fmt::format("    memcpy {} GB/s, {} x\n", median_of(result, "memcpy"), median_of(result, "memcpy_ratio"));
    for (const Json& failure : result["failures"]) out += "    failed: " + failure.get<std::string>() + "\n";
    if (result.contains("no_peer")) out += "    * noted, not run: " + result["no_peer"].get<std::string>() + "\n";
  }
  // The counts read the same in both places.
  std::string counts;
  if (const Json* row = find(results, "sweep"))
    counts +=
        strait::versus::sweep_table((*row)["sweep"]) + "\n" + strait::versus::sweep_discarded((*row)["sweep"]) + "\n";
  add_counts(counts, results);
  return out + counts + "\n" + origin_text(results) +
         "\nThe NIC and soft:0 are software; the figures are theirs and this machine's, not a network's.\n";
}

std::string docs_text(const Json& results) {
  std::string out = origin_text(results) + "\n";
  const bool many = results["runs"].size() > 1;
  const std::string head = fmt::format(
      "| between two processes | strait (software NIC) | peer | memcpy GB/s | ratio | p10 .. p90 | to "
      "reach | predicted | pairs kept/discarded | |{}\n|---|---|---|---|---|---|---|---|---|---|{}\n",
      many ? " run |" : "", many ? "---|" : "");
  out += head;
  add_pairs(out, results, false);
  out += "\nTo tell why, the same with one thing changed:\n\n";
  out += head;
  add_pairs(out, results, true);
  out += noted_line(results);
  add_sweep(out, results);
  add_counts(out, results);
  return out;
}

std::string replace_between_markers(const std::string& file, const std::string& text) {
  const Marked old = read_marked(file);
  if (!old.problem.empty()) return old.problem;
  std::ofstream out(file);
  out << old.before << text << old.after;
  out.flush();
  return out ? std::string() : file + " cannot be written";
}

std::string compare_between_markers(const std::string& file, const std::string& text) {
  const Marked now = read_marked(file);
  if (!now.problem.empty() || now.between == text) return now.problem;
  std::istringstream there(now.between);
  std::istringstream made(text);
  std::string a, b;
  while (std::getline(there, a) && std::getline(made, b) && a == b) {
  }
  return fmt::format("{} is not what its results say\n  there: {}\n  made:  {}", file, a, b);
}

bool all_reached(const Json& results) {
  for (const Json& result : results["rows"]) {
    const PairRow* row = result["kind"] == "pair" ? row_of(result) : nullptr;
    if (row != nullptr && !reached(*row, result)) return false;
  }
  return true;
}

}  // namespace bench
