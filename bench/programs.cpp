// SPDX-License-Identifier: Apache-2.0
#include "programs.hpp"

#include <unistd.h>

#include <sstream>

#include "process.hpp"

namespace bench {
namespace {

// The last line of figures: size, iterations, then peak, average (bandwidth, MiB/s) or least, most, typical (us).
Figure read_perftest(const std::string& out, bool bandwidth) {
  std::vector<double> figures;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<double> here;
    for (double value = 0; words >> value;) here.push_back(value);
    if (here.size() >= 4 && words.eof()) figures = here;
  }
  const std::size_t at = bandwidth ? 3 : 4;
  if (figures.size() <= at || figures[at] <= 0) return {false, 0, "no figures in \"" + out + "\"", {}};
  return {true, bandwidth ? figures[at] * 1048576 / 1e9 : figures[at], {}, {}};
}

}  // namespace

std::string why_no_program(const PairRow& row) {
  return row.program.empty() || !which(row.program.front()).empty() ? "" : row.program.front() + " is not installed";
}

Figure run_program(const Setup& setup, const PairRow& row) {
  static int port = 26000 + getpid() % 2000;
  const std::string port_text = std::to_string(++port);
  const auto command = [&](int side) {
    std::vector<std::string> words = {"taskset", "-c", std::to_string(setup.cpu[side]), setup.strait, "run"};
    for (const std::string& option : row.strait_options) words.insert(words.end(), {"--set", option});
    words.emplace_back("--");
    words.insert(words.end(), row.program.begin(), row.program.end());
    words.insert(words.end(), {"-F", "-p", port_text});
    if (side == 0) words.emplace_back("127.0.0.1");
    return words;
  };
  const auto server = strait::sys::Captured::start(command(1));
  if (!server) return {false, 0, server.error().text, {}};
  Ran ran;
  // The server takes a moment to listen, and does not say when it does.
  for (int attempt = 0; attempt < 20 && !ran.ok; ++attempt) {
    usleep(300'000);
    ran = run(command(0), 120);
    if (ran.problem.find("onnect") == std::string::npos && ran.out.find("onnect") == std::string::npos) break;
  }
  if (!ran.ok) return {false, 0, ran.problem + ran.out, {}};
  Figure figure = read_perftest(ran.out, row.program.front().ends_with("_bw"));
  figure.path = row.program.front();
  return figure;
}

}  // namespace bench
