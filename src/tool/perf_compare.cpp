// SPDX-License-Identifier: Apache-2.0
#include "tool/perf_compare.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sys/affinity.hpp"
#include "sys/child.hpp"
#include "sys/terminal.hpp"
#include "tool/perf.hpp"
#include "tool/text.hpp"
#include "versus/machine.hpp"
#include "versus/sweep.hpp"

namespace strait::tool {
namespace {

// Those that were asked for, all of which must be here; or those that are, with what the others lack.
Result<std::vector<versus::Peer>> chosen_peers(const CompareOptions& options, Json& missing) {
  if (options.peers != kInstalledPeers) {
    STRAIT_TRY(auto peers, versus::parse_peers(options.peers));
    for (const versus::Peer peer : peers) STRAIT_CHECK(versus::peer_is_here(peer));
    return peers;
  }
  std::vector<versus::Peer> peers;
  for (const versus::PeerRow& row : versus::peer_table()) {
    const Status here = versus::peer_is_here(row.peer);
    if (here)
      peers.push_back(row.peer);
    else
      missing.push_back({{"name", row.name}, {"text", here.error().text}, {"remedy", here.error().remedy}});
  }
  return peers;
}

// Before minutes are spent: can the file be written? One that was not there before is not left behind.
Status try_file(const std::string& path) {
  if (path.empty()) return {};
  const bool there = std::filesystem::exists(path);
  const bool good = std::ofstream(path, std::ios::app).good();
  if (good && !there) std::filesystem::remove(path);
  if (good) return {};
  return with_remedy(fail(Code::system, "{} cannot be written", path),
                     "Is there such a folder, and may you write there?");
}

Status write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream out(path, std::ios::trunc | std::ios::binary);
  out << text;
  out.flush();
  if (!out) return fail(Code::system, "{} could not be written whole", path);
  return {};
}

// This command as somebody would repeat it.
std::string own_command() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(in, word, '\0');) {
    if (text.empty())
      text = "strait";
    else
      text += word.find_first_of(" '\"$&;<>|*?(){}\\") == std::string::npos && !word.empty() ? " " + word
                                                                                             : " '" + word + "'";
  }
  return text;
}

// A line that is drawn over itself, where somebody looks.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted) : wanted_(wanted && sys::is_terminal(STDERR_FILENO)) {}
  void say(const std::string& text) const {
    if (!wanted_) return;
    fmt::print(stderr, "\r\033[K  {:.{}}", text, kColumns - 3);
    std::fflush(stderr);
  }
  void clear() const {
    if (wanted_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool wanted_;
};

versus::Origin origin_of(const Json& results) {
  const Json& machine = results.at("machine");
  return {results.at("command").get<std::string>(), results.at("date").get<std::string>(),
          versus::machine_text(machine), versus::versions_text(machine),
          fmt::format("{:.1f} at the start, {:.1f} at the end", results.at("load_before").get<double>(),
                      results.at("load_after").get<double>())};
}

void print_report(const CompareOptions& options, const Json& results) {
  const versus::Origin origin = origin_of(results);
  fmt::print("{}\n", tinted("strait beside its peers, two processes of this host", Tint::strong));
  fmt::print("{}", wrap("machine: " + origin.machine, 2, 4));
  fmt::print("{}", wrap("versions: " + origin.versions, 2, 4));
  fmt::print("{}", wrap("load average: " + origin.load, 2, 4));
  fmt::print("{}", wrap("path: " + results.value("path", ""), 2, 4));
  for (const Json& peer : results.at("peers"))
    fmt::print("{}", wrap(fmt::format("{}: {}", peer.value("name", ""), peer.value("title", "")), 2, 4));
  for (const Json& missing : results.at("missing"))
    fmt::print("{}",
               wrap(fmt::format("not run: {}. {}", missing.value("text", ""), missing.value("remedy", "")), 2, 4));
  fmt::print("{}\n", versus::sweep_table(results));
  fmt::print("{}", wrap(versus::sweep_discarded(results), 2, 2));
  for (const std::string* file : {&options.svg, &options.html}) {
    if (!file->empty()) fmt::print("{}", wrap("wrote " + *file, 2, 4));
  }
}

Result<Json> compare(const CompareOptions& options) {
  Json missing = Json::array();
  STRAIT_TRY(const auto peers, chosen_peers(options, missing));
  STRAIT_CHECK(try_file(options.svg));
  STRAIT_CHECK(try_file(options.html));
  const ProgressLine progress(!options.json);
  versus::SweepPlan plan{
      .strait = sys::own_program(),
      .strait_options = options.strait_options,
      .peers = peers,
      .sizes = options.sizes.empty() ? parse_sizes(versus::kSweepSizes).value() : options.sizes,
      .pairs = options.pairs,
      .seconds = static_cast<double>(options.duration_ns) * 1e-9,
      // With one CPU the sweep says that two are needed.
      .cpus = {sys::nth_usable_cpu(0), sys::nth_usable_cpu(sys::usable_cpus() > 1 ? 1 : 0)},
      // One run takes its time, and then some to begin and end.
      .deadline_ns = std::max<std::int64_t>(120'000'000'000, 12 * options.duration_ns + options.deadline_ns),
      .say = [&](const std::string& text) { progress.say(text); },
      .stop = sys::interrupted};
  Json origin = {{"machine", versus::describe_machine(strait_version())},
                 {"date", versus::today()},
                 {"command", own_command()},
                 {"load_before", versus::load_average()},
                 {"missing", std::move(missing)}};
  auto measured = versus::measure_sweep(plan);
  progress.clear();
  if (!measured) return measured;
  measured->update(origin);
  (*measured)["load_after"] = versus::load_average();
  return measured;
}

}  // namespace

std::string check_peers(const std::string& text) {
  if (text == kInstalledPeers) return {};
  const auto peers = versus::parse_peers(text);
  return peers ? std::string() : peers.error().text;
}

int run_perf_compare(const CompareOptions& options) {
  sys::catch_interrupts();
  const auto give_up = [&](const Error& error) {
    if (options.json)
      fmt::print("{}\n", json_pages({{"ok", false}, {"error", {{"text", error.text}, {"remedy", error.remedy}}}}));
    return complain(error);
  };
  const auto results = compare(options);
  if (!results) return give_up(results.error());
  if (const Status drawn = write_file(options.svg, versus::sweep_svg(*results)); !drawn) return give_up(drawn.error());
  if (const Status written = write_file(options.html, versus::sweep_page(*results, origin_of(*results))); !written)
    return give_up(written.error());
  if (options.json)
    fmt::print("{}\n", json_pages(*results));
  else
    print_report(options, *results);
  int status = kDone;
  for (const Json& failure : results->at("failures"))
    status = complain(fail(Code::system, "{}", failure.get<std::string>()));
  return status;
}

}  // namespace strait::tool
