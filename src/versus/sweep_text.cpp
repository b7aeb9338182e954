// SPDX-License-Identifier: Apache-2.0
// A sweep as people read it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plot/chart.hpp"
#include "plot/page.hpp"
#include "plot/units.hpp"
#include "versus/sweep.hpp"

namespace strait::versus {
namespace {

// One line of a table, whatever is made of it.
struct Row {
  std::string size, ours, peer, theirs, ratio, range, kept, remark;
};

std::string median_text(const Json& entry, const char* name) {
  const Json spread = entry.value(name, Json());
  return spread.is_object() ? plot::figure_text(spread.value("median", 0.0)) : "-";
}

Row row_of(std::uint64_t bytes, const Json& entry) {
  Row row{plot::size_text(bytes),
          median_text(entry, "strait"),
          entry.value("name", ""),
          median_text(entry, "peer"),
          median_text(entry, "ratio"),
          "-",
          "-",
          {}};
  if (const Json ratio = entry.value("ratio", Json()); ratio.is_object()) {
    row.range = plot::figure_text(ratio.value("p10", 0.0)) + " .. " + plot::figure_text(ratio.value("p90", 0.0));
  }
  if (entry.contains("left_out"))
    row.remark = "not run: " + entry.value("left_out", "");
  else if (entry.value("samples", Json::array()).empty())
    row.remark = "failed";
  else {
    row.kept = fmt::format("{}/{}", entry.value("kept", 0), entry.value("discarded", 0));
    if (entry.value("noisy", false)) row.remark = "noisy";
  }
  return row;
}

std::vector<Row> rows_of(const Json& test) {
  std::vector<Row> rows;
  for (const Json& result : test.value("results", Json::array())) {
    for (const Json& entry : result.value("peers", Json::array()))
      rows.push_back(row_of(result.value("bytes", std::uint64_t{0}), entry));
  }
  return rows;
}

std::string test_title(const Json& test) {
  return fmt::format("{} ({})", test.value("title", ""), test.value("unit", ""));
}

const char* better_text(const Json& test) {
  return test.value("lower_is_better", false) ? "strait / peer, below 1: strait takes less time"
                                              : "strait / peer, above 1: strait moves more";
}

std::string our_name(const Json& results) {
  return results.value("software", true) ? "strait (software NIC)" : "strait";
}

plot::Point point_of(std::uint64_t bytes, const Json& spread) {
  if (!spread.is_object()) return {};
  return {static_cast<double>(bytes), spread.value("median", 0.0), spread.value("p10", 0.0), spread.value("p90", 0.0)};
}

plot::Chart chart_of(const Json& results, const Json& test) {
  plot::Chart chart;
  const bool latency = test.value("lower_is_better", false);
  chart.title = latency ? "Latency of a put between two processes of one host"
                        : "Bandwidth of puts between two processes of one host";
  chart.remark = latency ? "one way; lower is better; bars and bands: 10th to 90th percentile"
                         : "16 under way; higher is better; bars and bands: 10th to 90th percentile";
  chart.y_title = fmt::format("{} (logarithmic)", test.value("unit", ""));
  chart.series.push_back({our_name(results), {}, false, 0});
  for (const Json& result : test.value("results", Json::array()))
    chart.series[0].points.push_back(point_of(result.value("bytes", std::uint64_t{0}), result.value("strait", Json())));
  // The same colour for the same name, whoever else is there.
  for (const PeerRow& row : peer_table()) {
    const bool limit = row.peer == Peer::memcpy;
    plot::Series series{limit ? "memcpy (limit)" : row.name, {}, limit, static_cast<int>(row.peer) + 1};
    for (const Json& result : test.value("results", Json::array())) {
      for (const Json& entry : result.value("peers", Json::array())) {
        if (entry.value("name", "") == row.name)
          series.points.push_back(point_of(result.value("bytes", std::uint64_t{0}), entry.value("peer", Json())));
      }
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

std::string discarded_text(std::size_t pairs, std::size_t discarded, std::size_t line_moved, std::size_t lost_cpu) {
  if (pairs == 0) return {};
  return fmt::format(
      "{} of {} pairs were discarded: the cache-line probe moved by more than 20 % in {}, the programs lost their CPU "
      "to others in {}.",
      discarded, pairs, line_moved, lost_cpu);
}

std::string sweep_discarded(const Json& results) {
  std::size_t pairs = 0, discarded = 0, line_moved = 0, lost_cpu = 0;
  for (const Json& test : results.value("tests", Json::array())) {
    for (const Json& result : test.value("results", Json::array())) {
      for (const Json& entry : result.value("peers", Json::array())) {
        // memcpy's samples are those of another peer, unless it is the only one.
        if (entry.value("name", "") == "memcpy" && results.value("peers", Json::array()).size() > 1) continue;
        pairs += entry.value("samples", Json::array()).size();
        discarded += entry.value("discarded", std::size_t{0});
        line_moved += entry.value("line_moved", std::size_t{0});
        lost_cpu += entry.value("lost_cpu", std::size_t{0});
      }
    }
  }
  return discarded_text(pairs, discarded, line_moved, lost_cpu);
}

std::string sweep_table(const Json& results) {
  std::string out;
  for (const Json& test : results.value("tests", Json::array())) {
    out += fmt::format("\n{}\n", test_title(test));
    if (results.value("software", true)) out += "  strait on a software NIC: not the speed of a network\n";
    out += fmt::format("  ratio: {}; pairs: kept/discarded\n", better_text(test));
    out += fmt::format("  {:>8} {:>9}  {:<9} {:>9} {:>7}  {:<16} {:>5}\n", "size", "strait", "peer", "peer's", "ratio",
                       "p10 .. p90", "pairs");
    std::string last;
    for (const Row& row : rows_of(test)) {
      std::string line = fmt::format("  {:>8} {:>9}  {:<9} {:>9} {:>7}  {:<16} {:>5}", row.size == last ? "" : row.size,
                                     row.ours, row.peer, row.theirs, row.ratio, row.range, row.kept);
      last = row.size;
      if (row.remark.starts_with("not run"))
        line = fmt::format("  {:>8} {:>9}  {:<9} {}", "", "", row.peer, row.remark);
      else if (!row.remark.empty())
        line += " " + row.remark;
      out += line + "\n";
    }
  }
  return out;
}

std::string sweep_markdown(const Json& results) {
  std::string out;
  for (const Json& test : results.value("tests", Json::array())) {
    out += fmt::format("{}; ratio: {}.\n\n", test_title(test), better_text(test));
    out += fmt::format(
        "| size | {} | peer | its figure | ratio | p10 .. p90 | pairs kept / discarded | |\n"
        "|---|---|---|---|---|---|---|---|\n",
        our_name(results));
    for (const Row& row : rows_of(test)) {
      out += fmt::format("| {} | {} | {} | {} | **{}** | {} | {} | {} |\n", row.size, row.ours, row.peer, row.theirs,
                         row.ratio, row.range, row.kept, row.remark);
    }
    out += "\n";
  }
  return out + sweep_discarded(results) + "\n";
}

std::string sweep_svg(const Json& results) {
  std::vector<plot::Chart> charts;
  for (const Json& test : results.value("tests", Json::array())) charts.push_back(chart_of(results, test));
  return plot::charts_svg(charts);
}

std::string sweep_page(const Json& results, const Origin& origin) {
  plot::Page page;
  page.title = "strait beside its peers, between two processes of one host";
  page.paragraphs.push_back(
      "Every figure of strait and the peer's beside it were taken within seconds, pinned to the same two CPUs, each "
      "first in every other pair. The ratio is taken pair by pair. Before and after each pair two threads hand a cache "
      "line to and fro; a pair during which that time moved, or whose programs lost their CPU, is discarded.");
  if (results.value("software", true))
    page.paragraphs.push_back(
        "strait ran on its software NIC: this says how good its rings, checks and engine are, and nothing about a "
        "network.");
  if (const std::string discarded = sweep_discarded(results); !discarded.empty()) page.paragraphs.push_back(discarded);
  for (const Json& test : results.value("tests", Json::array())) {
    page.pictures.push_back(plot::charts_svg({chart_of(results, test)}));
    plot::Table table{test_title(test) + "; ratio: " + better_text(test),
                      {"size", our_name(results), "peer", "its figure", "ratio", "p10 .. p90", "kept/discarded", ""},
                      {}};
    for (const Row& row : rows_of(test))
      table.rows.push_back({row.size, row.ours, row.peer, row.theirs, row.ratio, row.range, row.kept, row.remark});
    page.tables.push_back(std::move(table));
  }
  page.facts = {{"machine", origin.machine},         {"versions", origin.versions}, {"load", origin.load},
                {"path", results.value("path", "")}, {"command", origin.command},   {"date", origin.date}};
  for (const Json& peer : results.value("peers", Json::array()))
    page.facts.emplace_back(peer.value("name", ""), peer.value("title", ""));
  return plot::page_html(page);
}

}  // namespace strait::versus
