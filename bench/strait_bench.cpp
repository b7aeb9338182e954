// SPDX-License-Identifier: Apache-2.0
// The benchmark of docs/performance.md: strait against its peers in pairs, counts, footprints; one table, one JSON
// file.
#include <fmt/format.h>
#include <strait/c.h>
#include <unistd.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "measure.hpp"
#include "plot.hpp"
#include "process.hpp"
#include "report.hpp"
#include "versus/machine.hpp"
#include "workload.hpp"

namespace {

using Json = nlohmann::json;

struct Asked {
  bench::Setup setup;
  std::vector<std::string> only;
  std::string json_file;
  std::vector<std::string> from;
  std::string docs_file;
  std::string check_file;
  bool quick = false;
  bool extra = true;
  bool strict = false;
  bool list = false;
};

bool wanted(const Asked& asked, const std::string& id, bool extra) {
  if (asked.only.empty()) return !extra || (asked.extra && !asked.quick);
  return std::find(asked.only.begin(), asked.only.end(), id) != asked.only.end();
}

void write_json(const std::string& file, const Json& results) {
  std::ofstream out(file);
  out << results.dump(1) << "\n";
  out.flush();
  if (!out) bench::give_up(file + " cannot be written");
}

// Written down row by row: a run that is stopped has measured what it has.
Json measure(const Asked& asked, const std::string& command) {
  Json results = {{"command", command},
                  {"date", strait::versus::today()},
                  {"machine", strait::versus::describe_machine(strait_version())},
                  {"rows", Json::array()}};
  results["load_before"] = strait::versus::load_average();
  const auto add = [&](const Json& row) {
    results["rows"].push_back(row);
    results["load_after"] = strait::versus::load_average();
    if (!asked.json_file.empty()) write_json(asked.json_file, results);
  };
  for (const bench::PairRow& row : bench::pair_rows()) {
    if (wanted(asked, row.id, row.extra)) add(bench::measure_pairs(asked.setup, row));
  }
  if (wanted(asked, "sweep", true)) add(bench::measure_sweep(asked.setup));
  if (wanted(asked, "instructions", false)) add(bench::measure_instructions(asked.setup));
  if (wanted(asked, "lookup", false)) add(bench::measure_lookup(asked.setup));
  if (wanted(asked, "rcache", false)) add(bench::measure_rcache(asked.setup));
  if (wanted(asked, "footprint", false)) add(bench::measure_footprint(asked.setup));
  return results;
}

// The command as somebody would repeat it; where results go is their own business.
std::string command_text(int argc, char** argv) {
  std::string text = "./dev bench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool file = i + 1 < argc && argv[i + 1][0] != '-';
    if (word == "--json" || word == "--write-docs" || word == "--check-docs")
      i += file ? 1 : 0;
    else
      text += " " + word;
  }
  return text;
}

void list_rows() {
  for (const bench::PairRow& row : bench::pair_rows()) std::cout << fmt::format("{:<28}{}\n", row.id, row.title);
  std::cout << fmt::format("{:<28}{}\n", "sweep", "latency and bandwidth over size beside every peer");
  std::cout << fmt::format("{:<28}{}\n{:<28}{}\n{:<28}{}\n{:<28}{}\n", "instructions", "counted by callgrind", "lookup",
                           "finding one of many regions", "rcache", "the registration cache beside UCX's", "footprint",
                           "memory and idle time");
}

// Results of earlier runs, the oldest first: files, or folders of them, whose names begin with a date.
std::vector<Json> read_results(const std::vector<std::string>& from) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : from) {
    if (!std::filesystem::is_directory(name)) {
      files.emplace_back(name);
      continue;
    }
    std::vector<std::filesystem::path> inside;
    for (const auto& entry : std::filesystem::directory_iterator(name)) {
      if (entry.path().extension() == ".json") inside.push_back(entry.path());
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  std::vector<Json> runs;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    runs.push_back(Json::parse(in, nullptr, false));
    if (!runs.back().is_object() || !runs.back().contains("rows")) bench::give_up(file.string() + " holds no results");
  }
  if (runs.empty()) bench::give_up("there are no results to read");
  return runs;
}

// Beside the file that shows it. A plot whose rows were not measured stays as it is.
void write_plot(const std::string& docs_file, const char* name, const std::string& svg) {
  if (svg.empty()) return;
  const std::filesystem::path file = std::filesystem::path(docs_file).replace_filename(name);
  std::ofstream out(file);
  out << svg;
  out.flush();
  if (!out) bench::give_up(file.string() + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) try {
  Asked asked;
  std::string self = argv[0];
  asked.setup.programs = self.find('/') == std::string::npos ? "." : self.substr(0, self.rfind('/'));
  asked.setup.strait = asked.setup.programs + "/../bin/strait";
  asked.setup.scripts = STRAIT_BENCH_SOURCE;
  asked.setup.ucx = bench::which("ucx_perftest");
  CLI::App app(
      "Measures strait against its peers on this machine: paired, pinned, verified. Software devices throughout.");
  app.add_option("--pairs", asked.setup.pairs, "Pairs per row")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--milliseconds", asked.setup.milliseconds, "Of each timed part")
      ->check(CLI::Range(10, 10000))
      ->capture_default_str();
  app.add_option("--only", asked.only, "Rows to run, by name (see --list)")->delimiter(',');
  app.add_option("--json", asked.json_file, "Write results here, after each row")->capture_default_str()->take_last();
  app.add_option("--from", asked.from,
                 "Measure nothing: read results from JSON files or folders of them; of a row that several have, the "
                 "last counts")
      ->check(CLI::ExistingPath);
  app.add_option("--write-docs", asked.docs_file,
                 "Put the tables between the markers of this file, the plots beside it")
      ->expected(0, 1)
      ->default_str(STRAIT_BENCH_SOURCE "/../docs/performance.md");
  app.add_option("--check-docs", asked.check_file, "With --from: exit with 1 unless this file has these tables")
      ->expected(0, 1)
      ->default_str(STRAIT_BENCH_SOURCE "/../docs/performance.md")
      ->excludes("--write-docs");
  app.add_option("--cpu", asked.setup.cpu[0], "CPU of the initiator")->capture_default_str();
  app.add_option("--owner-cpu", asked.setup.cpu[1], "CPU of the owner")->capture_default_str();
  app.add_option("--ucx", asked.setup.ucx, "Another ucx_perftest than the one in PATH")->check(CLI::ExistingFile);
  app.add_flag("--quick", asked.quick, "3 short pairs, main rows only");
  app.add_flag("--strict", asked.strict, "Exit with 1 when a goal is missed");
  app.add_flag("--list", asked.list, "Name the rows");
  CLI11_PARSE(app, argc, argv);
  if (asked.list) return list_rows(), 0;
  asked.setup.ucx_named = app.count("--ucx") > 0;
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

  std::vector<Json> runs;
  if (asked.from.empty()) {
    runs.push_back(measure(asked, command));
  } else {
    runs = read_results(asked.from);
  }
  if (live) std::cerr << "\r\033[K";
  const Json results = bench::join(runs);
  std::cout << bench::table_text(results);
  const std::string text = bench::docs_text(results);
  if (!asked.check_file.empty()) {
    const std::string problem = bench::compare_between_markers(asked.check_file, text);
    if (!problem.empty()) bench::give_up(problem);
  }
  if (!asked.docs_file.empty()) {
    const std::string problem = bench::replace_between_markers(asked.docs_file, text);
    if (!problem.empty()) bench::give_up(problem);
    write_plot(asked.docs_file, "goodput.svg", bench::goodput_svg(results));
    write_plot(asked.docs_file, "sweep.svg", bench::sweep_svg(results));
  }
  return asked.strict && !bench::all_reached(results) ? 1 : 0;
} catch (const std::exception& failure) {
  bench::give_up(failure.what());
}
