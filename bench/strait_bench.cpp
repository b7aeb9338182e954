// SPDX-License-Identifier: Apache-2.0
// The benchmark of docs/performance.md: strait against its peers in pairs, counts, footprints; one table, one JSON
// file.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "machine.hpp"
#include "measure.hpp"
#include "plot.hpp"
#include "report.hpp"

namespace {

using Json = nlohmann::json;

struct Asked {
  bench::Setup setup;
  std::vector<std::string> only;
  std::string json_file;
  std::string from_file;
  std::string docs_file;
  bool quick = false;
  bool extra = true;
  bool strict = false;
  bool list = false;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

bool wanted(const Asked& asked, const std::string& id, bool extra) {
  if (asked.only.empty()) return !extra || (asked.extra && !asked.quick);
  return std::find(asked.only.begin(), asked.only.end(), id) != asked.only.end();
}

Json measure(const Asked& asked, const std::string& command) {
  Json results = {
      {"command", command}, {"date", today()}, {"machine", bench::describe_machine()}, {"rows", Json::array()}};
  results["load_before"] = bench::load_average();
  for (const bench::PairRow& row : bench::pair_rows()) {
    if (wanted(asked, row.id, row.extra)) results["rows"].push_back(bench::measure_pairs(asked.setup, row));
  }
  if (wanted(asked, "instructions", false)) results["rows"].push_back(bench::measure_instructions(asked.setup));
  if (wanted(asked, "lookup", false)) results["rows"].push_back(bench::measure_lookup(asked.setup));
  if (wanted(asked, "footprint", false)) results["rows"].push_back(bench::measure_footprint(asked.setup));
  results["load_after"] = bench::load_average();
  return results;
}

// The command as somebody would repeat it; where results go is their own business.
std::string command_text(int argc, char** argv) {
  std::string text = "./dev bench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json" || word == "--write-docs")
      ++i;
    else
      text += " " + word;
  }
  return text;
}

void list_rows() {
  for (const bench::PairRow& row : bench::pair_rows()) std::cout << fmt::format("{:<24}{}\n", row.id, row.title);
  std::cout << fmt::format("{:<24}{}\n{:<24}{}\n{:<24}{}\n", "instructions", "counted by callgrind", "lookup",
                           "finding one of many regions", "footprint", "memory and idle time");
}

}  // namespace

int main(int argc, char** argv) try {
  Asked asked;
  std::string self = argv[0];
  asked.setup.programs = self.find('/') == std::string::npos ? "." : self.substr(0, self.rfind('/'));
  asked.setup.strait = asked.setup.programs + "/../bin/strait";
  asked.setup.scripts = STRAIT_BENCH_SOURCE;
  CLI::App app(
      "Measures strait against its peers on this machine: paired, pinned, verified. Software devices throughout.");
  app.add_option("--pairs", asked.setup.pairs, "Pairs per row")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--milliseconds", asked.setup.milliseconds, "Of each timed part")
      ->check(CLI::Range(10, 10000))
      ->capture_default_str();
  app.add_option("--only", asked.only, "Rows to run, by name (see --list)")->delimiter(',');
  app.add_option("--json", asked.json_file, "Write results here")->capture_default_str();
  app.add_option("--from", asked.from_file, "Measure nothing: read results from this JSON file");
  app.add_option("--write-docs", asked.docs_file,
                 "Put the tables between the markers of this file, the plot beside it");
  app.add_option("--cpu", asked.setup.cpu[0], "CPU of the initiator")->capture_default_str();
  app.add_option("--owner-cpu", asked.setup.cpu[1], "CPU of the owner")->capture_default_str();
  app.add_flag("--quick", asked.quick, "3 short pairs, main rows only");
  app.add_flag("--strict", asked.strict, "Exit with 1 when a goal is missed");
  app.add_flag("--list", asked.list, "Name the rows");
  CLI11_PARSE(app, argc, argv);
  if (asked.list) return list_rows(), 0;
  if (asked.quick) {
    asked.setup.quick = true;
    asked.setup.pairs = std::min(asked.setup.pairs, 3);
    asked.setup.milliseconds = std::min(asked.setup.milliseconds, 100);
  }
  const bool live = isatty(2) != 0;
  asked.setup.say = [live](const std::string& text) {
    if (live) std::cerr << "\r\033[K" << text << std::flush;
  };
  const std::string command = command_text(argc, argv);

  Json results;
  if (asked.from_file.empty()) {
    results = measure(asked, command);
  } else {
    std::ifstream in(asked.from_file);
    results = Json::parse(in, nullptr, false);
    if (!results.is_object()) bench::give_up(asked.from_file + " holds no results");
  }
  if (live) std::cerr << "\r\033[K";
  std::cout << bench::table_text(results);
  if (!asked.json_file.empty()) {
    std::ofstream out(asked.json_file);
    out << results.dump(1) << "\n";
    out.flush();
    if (!out) bench::give_up(asked.json_file + " cannot be written");
  }
  if (!asked.docs_file.empty()) {
    const std::string problem = bench::replace_between_markers(asked.docs_file, bench::docs_text(results));
    if (!problem.empty()) bench::give_up(problem);
    if (const std::string svg = bench::goodput_svg(results); !svg.empty()) {
      const std::filesystem::path file = std::filesystem::path(asked.docs_file).replace_filename("goodput.svg");
      std::ofstream out(file);
      out << svg;
      out.flush();
      if (!out) bench::give_up(file.string() + " cannot be written");
    }
  }
  return asked.strict && !bench::all_reached(results) ? 1 : 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
