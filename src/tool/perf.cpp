// SPDX-License-Identifier: Apache-2.0
// strait perf: its tests, its command line.
#include "tool/perf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/options.hpp"
#include "sys/affinity.hpp"
#include "tool/command.hpp"
#include "tool/perf_compare.hpp"
#include "tool/perf_session.hpp"

namespace strait::tool {
namespace {

constexpr const char* kLatencySizes = "8,64,1K,4K,64K";
constexpr const char* kBandwidthSizes = "4K,64K,1M,16M";

constexpr const char* kDuration = "500ms";

constexpr std::array kTests = {
    TestRow{Test::put_lat, "put_lat", "put, ping-pong: half round trip", Figure::half_round_trip, kLatencySizes, false,
            1},
    TestRow{Test::put_bw, "put_bw", "put, one way: bandwidth", Figure::bandwidth, kBandwidthSizes, false, 16},
    TestRow{Test::get_lat, "get_lat", "get: whole operation", Figure::whole_operation, kLatencySizes, false, 1},
    TestRow{Test::get_bw, "get_bw", "get: bandwidth", Figure::bandwidth, kBandwidthSizes, false, 16},
    TestRow{Test::fetch_add_lat, "fetch_add_lat", "fetch-add of 8 bytes: whole operation", Figure::whole_operation, "8",
            true, 1},
    TestRow{Test::compare_swap_lat, "compare_swap_lat", "compare-swap of 8 bytes: whole operation",
            Figure::whole_operation, "8", true, 1},
    TestRow{Test::send_lat, "send_lat", "send and receive, ping-pong: half round trip", Figure::half_round_trip,
            kLatencySizes, false, 1},
    TestRow{Test::put_rate, "put_rate", "small puts, many under way: rate", Figure::bandwidth, "8", false, 128},
};

std::string describe_tests() {
  std::string text;
  for (const TestRow& row : kTests) text += fmt::format("\n  {:<16} {}", row.name, row.help);
  return text;
}

Manual manual() {
  return {
      .name = "strait perf - measure latency and bandwidth between two processes",
      .synopsis =
          "strait perf [--listen ADDRESS] [--once]            the server: waits\n"
          "strait perf HOST:PORT [--test NAME,...] [OPTIONS]  the client: measures\n"
          "strait perf --spawn [--test NAME,...] [OPTIONS]    both, on this machine\n"
          "strait perf --compare [LIST] [--svg FILE] [--html FILE] [OPTIONS]\n"
          "                                                   both, beside the peers",
      .description =
          "The server prints its address and serves one client after the other until Ctrl-C. The client names that "
          "address, "
          "measures, and prints a table in the shape that perftest has: one line a size. Both ends poll. The data of "
          "every "
          "line is verified after its run, outside the timed part; wrong data ends with exit status 1.\n"
          "\n"
          "Latency of put and send is half a round trip; latency of get and atomics is the whole operation. Bandwidth "
          "is "
          "decimal: GB/s is 10^9 bytes a second. A line that ran on software devices says so: it is not a NIC's "
          "speed.\n"
          "\n"
          "--compare measures put_lat and put_bw over size beside other ways of moving bytes between two processes of "
          "this machine, in pairs: a peer's run and one of ours within seconds, pinned to the same two CPUs, each "
          "first "
          "in every other pair, the ratio taken pair by pair. A pair during which the machine changed (a cache line "
          "between the two CPUs takes 20 % more or less than before, or the programs lost their CPU) is discarded and "
          "counted. Peers:\n"
          "  ucx              ucx_perftest: ucp_put over posix and cma (ucx-utils)\n"
          "  libfabric        RMA writes by the shm provider (libfabric1)\n"
          "  memcpy           on one CPU: a limit, not a peer\n"
          "\n"
          "Tests:" +
          describe_tests(),
      .examples =
          "strait perf                                    # here, then in another shell:\n"
          "strait perf 127.0.0.1:40123 --test put_bw --sizes 8:16M\n"
          "strait perf --spawn --test put_lat --memory soft:0\n"
          "strait perf --spawn --test put_bw --memory soft:0 --reach peermem\n"
          "strait perf --spawn --carrier roce --faults drop=1%,seed=7 --capture p.pcapng\n"
          "strait perf --spawn --test all --iterations 1000 --json\n"
          "strait perf --compare --html perf.html         # a page with plots, from disk\n"
          "strait perf --compare ucx,memcpy --sizes 8:1M --pairs 20 --svg perf.svg",
      .environment = "  STRAIT_SECRET\n      Must be the same at both ends, unless they are one user on one machine.\n",
  };
}

struct PerfArguments {
  PerfOptions options;
  std::string tests = "put_lat,put_bw";
  std::string sizes;
  std::string duration;
  std::string deadline = "10s";
  std::string carrier;
  std::string faults;
  std::string reach;
  std::vector<std::string> pairs;
  CompareOptions compare;
};

std::string check_tests(const std::string& text) {
  if (text == "all") return {};
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string name = text.substr(start, comma - start);
    if (find_test(name) == nullptr) {
      std::string known;
      for (const TestRow& row : kTests) known += fmt::format("{}, ", row.name);
      return fmt::format("--test knows no '{}'; it takes {}or all", name, known);
    }
    start = comma + 1;
  }
  return {};
}

std::vector<const TestRow*> chosen_tests(const std::string& text) {
  std::vector<const TestRow*> tests;
  for (const TestRow& row : kTests) {
    if (text == "all") tests.push_back(&row);
  }
  for (std::size_t start = 0; text != "all" && start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    tests.push_back(find_test(std::string_view(text).substr(start, comma - start)));
    start = comma + 1;
  }
  return tests;
}

std::string check_duration(const std::string& text) {
  const auto ns = parse_duration_ns(text);
  if (!ns) return ns.error().text;
  return *ns <= 0 ? "a duration must be longer than nothing" : std::string();
}

// Tests in which the server reaches into the client's buffers, or that use more than puts and gets.
bool serves_alone(Test test) {
  return test != Test::put_bw && test != Test::get_bw && test != Test::get_lat && test != Test::put_rate;
}

void add_measuring(Command& command, PerfArguments& arguments) {
  PerfOptions& options = arguments.options;
  command.text("--test", arguments.tests,
               {"NAME,...", "What to measure: names separated by commas, or all.", arguments.tests, check_tests});
  command.text(
      "--sizes", arguments.sizes,
      {"SIZES",
       "Sizes separated by commas (8,64K,1M), or a range of powers of two (8:16M). 1 byte to 1G. Without it: each "
       "test's own.",
       {},
       [](const std::string& text) {
         const auto sizes = parse_sizes(text);
         return sizes ? std::string() : sizes.error().text;
       }});
  command.number("--iterations", options.iterations,
                 {"N", "Operations a line. Without it: as many as fit into --duration.", {}, {}}, 1,
                 std::uint64_t{1} << 40);
  command.text(
      "--duration", arguments.duration,
      {"TIME",
       "Time a line, when --iterations is not given. With --compare: time a run, and 100ms unless told otherwise.",
       kDuration, check_duration});
  command.number("--warmup", options.warmup,
                 {"N", "Operations before the clock starts; fewer for large sizes.", "1000", {}}, 0,
                 std::uint64_t{1} << 40);
  command.number("--window", options.window,
                 {"N", "Operations under way in put_bw, get_bw (16) and put_rate (128).", {}, {}}, 1, 32768);
  command.text("--memory", options.memory,
               {"NAME", "Where the buffers of both sides lie: host, or a name of `strait info`.", options.memory, {}});
  command.text(
      "--reach", arguments.reach,
      {"WAY",
       "How the NICs reach accelerators' memory: dmabuf, peermem (peer-memory client), p2p (nvidia_p2p pages), "
       "staged (through host memory, on the client's side; the server's buffers then lie in host memory), auto.",
       {},
       one_of({"auto", "dmabuf", "peermem", "p2p", "staged"})});
  command.flag("--bits", options.bits, "Bandwidth in Gb/s instead of GB/s.");
}

void add_running(Command& command, PerfArguments& arguments) {
  PerfOptions& options = arguments.options;
  command.text("--progress", options.progress,
               {"MODE", "Who drives the queues: caller (these loops), thread, or eventfd.", options.progress,
                one_of({"caller", "thread", "eventfd"})});
  command.number("--cpu", options.cpu,
                 {"N",
                  "Poll on the N-th CPU this process may use, counted from 0. --spawn takes 0 for the client and 1 for "
                  "the server.",
                  {},
                  {}},
                 0, 1 << 16);
  command.text(
      "--deadline", arguments.deadline,
      {"TIME", "How long to wait for the other side, and for any one operation.", arguments.deadline, check_duration});
  command.text("--listen", options.listen,
               {"ADDRESS", "Server: the address to wait at. Loopback unless told otherwise.", {}, {}});
  command.text("--carrier", arguments.carrier,
               {"NAME",
                "How the bytes reach the other process: grant (shared memory of one host), roce (RoCEv2 packets), or "
                "auto. Both sides need the same.",
                {},
                one_of({"auto", "grant", "roce"})});
  command.text("--faults", arguments.faults,
               {"SPEC",
                "What this side's NIC does wrong on purpose (with --spawn both sides'); see `strait faults`.",
                {},
                check_faults});
  command.text("--capture", options.capture,
               {"FILE", "Capture of this side's packets (pcapng, opens in Wireshark).", {}, {}});
  command.flag("--counters", options.counters, "What this side counted, at the end.");
  command.flag("--once", options.once, "Server: end after the first client.");
  command.flag("--spawn", options.spawn, "Start the server too, as a second process on this machine.");
  command.flag(
      "--strict", options.strict,
      "The software NIC checks how it is used: --set strict=1. Not for measuring. Anything found is reported, and "
      "makes the exit status 66.");
  command.flag("--json", options.json, "One JSON object (client), one a line (server).");
  add_settings(command, arguments.pairs);
}

void add_comparing(Command& command, PerfArguments& arguments) {
  CompareOptions& compare = arguments.compare;
  command.optional_text(
      "--compare", compare.peers,
      {"LIST",
       "Measure beside these peers: ucx, libfabric, memcpy, separated by commas. Without a list: those that are "
       "installed. One that was asked for and is missing is exit status 3, with the package that brings it.",
       kInstalledPeers, check_peers});
  command.number("--pairs", compare.pairs, {"N", "Pairs for every size and peer.", "10", {}}, 1, 1000);
  command.text("--svg", compare.svg, {"FILE", "Draw latency and bandwidth over size.", {}, {}});
  command.text("--html", compare.html,
               {"FILE", "One page with plots, tables and where they come from; opens from disk.", {}, {}});
  for (const char* option : {"--pairs", "--svg", "--html"}) command.needs(option, "--compare");
  for (const char* option : {"SERVER", "--spawn", "--test", "--iterations", "--warmup", "--window", "--bits", "--cpu",
                             "--listen", "--once", "--capture", "--counters", "--strict"})
    command.not_both("--compare", option);
}

// What of the command line is for our own runs.
int run_compare(PerfArguments& arguments) {
  CompareOptions& compare = arguments.compare;
  const PerfOptions& options = arguments.options;
  if (!arguments.sizes.empty()) compare.sizes = parse_sizes(arguments.sizes).value();
  if (!arguments.duration.empty()) compare.duration_ns = parse_duration_ns(arguments.duration).value();
  compare.deadline_ns = parse_duration_ns(arguments.deadline).value();
  compare.json = options.json;
  compare.strait_options = {"--memory",       options.memory, "--progress",
                            options.progress, "--deadline",   arguments.deadline};
  const auto pass = [&](const char* name, const std::string& value) {
    if (!value.empty()) compare.strait_options.insert(compare.strait_options.end(), {name, value});
  };
  pass("--carrier", arguments.carrier);
  pass("--faults", arguments.faults);
  pass("--reach", arguments.reach);
  for (const std::string& pair : arguments.pairs) pass("--set", pair);
  return run_perf_compare(compare);
}

int run_perf(PerfArguments& arguments) {
  if (!arguments.compare.peers.empty()) return run_compare(arguments);
  PerfOptions& options = arguments.options;
  options.tests = chosen_tests(arguments.tests);
  if (!arguments.sizes.empty()) options.sizes = parse_sizes(arguments.sizes).value();
  options.duration_ns = parse_duration_ns(arguments.duration.empty() ? kDuration : arguments.duration).value();
  options.deadline_ns = parse_duration_ns(arguments.deadline).value();
  options.settings = parse_settings(arguments.pairs);
  if (!arguments.carrier.empty()) replace_setting(options.settings, "carrier", arguments.carrier);
  if (!arguments.faults.empty()) replace_setting(options.settings, "faults", arguments.faults);
  if (!arguments.reach.empty()) {
    replace_setting(options.settings, "reach", arguments.reach);
    // Who asks how the NIC reaches memory wants the NIC to do it.
    if (!has_setting(options.settings, "grant")) replace_setting(options.settings, "grant", "ring");
  }
  options.staged = arguments.reach == "staged" && options.memory != "host";
  if (options.staged) {
    for (const TestRow* row : options.tests) {
      if (!serves_alone(row->test)) continue;
      return complain(
          with_remedy(fail(Code::invalid,
                           "{} cannot be measured with --reach staged: the server would have to reach the client's "
                           "memory, which only the client's own operations can",
                           row->name),
                      "Take --test put_bw,get_bw,get_lat,put_rate."));
    }
  }
  if (options.strict) replace_setting(options.settings, "strict", "1");
  if (options.spawn || !options.server.empty()) return run_perf_client(options);
  return run_perf_server(options);
}

}  // namespace

std::span<const TestRow> test_table() {
  return kTests;
}

const TestRow* find_test(std::string_view name) {
  for (const TestRow& row : kTests) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Result<std::vector<std::uint64_t>> parse_sizes(std::string_view text) {
  const auto one = [](std::string_view part) -> Result<std::uint64_t> {
    STRAIT_TRY(const std::int64_t bytes, parse_bytes(part));
    if (bytes < 1 || static_cast<std::uint64_t>(bytes) > kLargestSize) {
      return fail(Code::invalid, "a size must be 1 byte to 1G, not '{}'", part);
    }
    return static_cast<std::uint64_t>(bytes);
  };
  std::vector<std::uint64_t> sizes;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    STRAIT_TRY(const std::uint64_t first, one(text.substr(0, colon)));
    STRAIT_TRY(const std::uint64_t last, one(text.substr(colon + 1)));
    if (first > last) return fail(Code::invalid, "the range '{}' ends before it begins", text);
    for (std::uint64_t size = first; size <= last; size *= 2) sizes.push_back(size);
    return sizes;
  }
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    STRAIT_TRY(const std::uint64_t size, one(text.substr(start, comma - start)));
    sizes.push_back(size);
    start = comma + 1;
  }
  return sizes;
}

Result<Node> open_perf_node(const PerfOptions& options, bool server) {
  NodeOptions node;
  node.settings = options.settings;
  const auto given = [&](std::string_view name) {
    return std::any_of(node.settings.begin(), node.settings.end(),
                       [&](const auto& pair) { return pair.first == name; });
  };
  if (!given("progress")) node.settings.emplace_back("progress", options.progress);
  // Not among the settings that a spawned server is given too: two writers of one file would leave neither's packets.
  if (!options.capture.empty()) replace_setting(node.settings, "capture", options.capture);
  if (server && !options.listen.empty()) node.settings.emplace_back("listen", options.listen);
  STRAIT_TRY(auto opened, Node::open(node));
  // After the Node opened: a thread of its own, if it has one, stays free.
  const int cpu = options.cpu < 0 && options.spawn && sys::usable_cpus() > 1 ? 0 : options.cpu;
  if (cpu >= 0 && !sys::pin_thread_to_nth_cpu(cpu)) {
    return fail(Code::unsupported, "--cpu {}: this process may use {} CPUs, counted from 0", cpu, sys::usable_cpus());
  }
  return opened;
}

void add_perf(CommandLine& line) {
  auto arguments = std::make_shared<PerfArguments>();
  Command command = line.add("perf", "Measure latency and bandwidth between two processes.", manual());
  command.word("SERVER", arguments->options.server,
               "HOST:PORT of the server to measure against. Without it, and without --spawn, be the server.");
  add_measuring(command, *arguments);
  add_running(command, *arguments);
  add_comparing(command, *arguments);
  command.not_both("--spawn", "SERVER");
  command.on_run([arguments] { return run_perf(*arguments); });
}

}  // namespace strait::tool
