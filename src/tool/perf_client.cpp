// SPDX-License-Identifier: Apache-2.0
// strait perf, the side that measures.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "sys/affinity.hpp"
#include "sys/child.hpp"
#include "sys/clock.hpp"
#include "sys/terminal.hpp"
#include "tool/perf_report.hpp"
#include "tool/perf_session.hpp"

namespace strait::tool {
namespace {

Result<Timed> measure(Test test, const Bench& bench, const Goal& goal) {
  switch (test) {
    case Test::put_lat: return ping_put(bench, goal);
    case Test::send_lat: return ping_send(bench, goal);
    case Test::get_lat: return time_get(bench, goal);
    case Test::fetch_add_lat: return time_fetch_add(bench, goal);
    case Test::compare_swap_lat: return time_compare_swap(bench, goal);
    case Test::put_bw:
    case Test::put_rate: return stream_put(bench, goal);
    case Test::get_bw: return stream_get(bench, goal);
  }
  return fail(Code::invalid, "no such test");
}

Measured summarise(std::uint64_t bytes, Timed& timed) {
  Measured measured;
  measured.bytes = bytes;
  measured.iterations = timed.iterations;
  measured.seconds = timed.seconds;
  Samples& samples = timed.samples;
  measured.min_us = static_cast<double>(samples.min_ns()) * 1e-3;
  measured.p50_us = samples.percentile(50) * 1e-3;
  measured.p90_us = samples.percentile(90) * 1e-3;
  measured.p99_us = samples.percentile(99) * 1e-3;
  measured.max_us = static_cast<double>(samples.max_ns()) * 1e-3;
  return measured;
}

class Client {
 public:
  Client(Node& node, Peer peer, Link link, Lane lane, Arena arena, const PerfOptions& options)
      : node_(node),
        peer_(std::move(peer)),
        link_(std::move(link)),
        lane_(std::move(lane)),
        arena_(std::move(arena)),
        options_(options) {}

  [[nodiscard]] static Result<Client> connect(Node& node, const std::string& server, const PerfOptions& options);
  [[nodiscard]] Result<Measured> run(const TestRow& row, std::uint64_t bytes, PerfReport& report);
  void goodbye() { (void)link_.send(peer_, {{"op", "bye"}}, patience()); }
  [[nodiscard]] std::string path() const { return lane_.path(); }
  // The way by which this side's NIC reaches its memory.
  [[nodiscard]] std::string reach() const {
    const Json path = Json::parse(arena_.region.path(), nullptr, false);
    const auto exported = path.is_object() ? path.find("export") : path.end();
    return exported != path.end() ? exported->value("way", "") : "";
  }
  // Of both sides; none when neither is strict.
  [[nodiscard]] std::optional<std::uint64_t> findings();

 private:
  [[nodiscard]] Duration patience() const { return Duration(options_.deadline_ns); }
  [[nodiscard]] Result<Json> ask(const Json& message);

  Node& node_;
  Peer peer_;
  Link link_;
  Lane lane_;
  Arena arena_;
  const PerfOptions& options_;
  std::string server_ticket_;
  Target server_arena_;
  std::optional<Published> published_;
  std::optional<std::uint64_t> server_findings_;
};

std::uint64_t largest_size(const PerfOptions& options) {
  std::uint64_t largest = 8;
  for (const TestRow* row : options.tests) {
    const auto sizes = options.sizes.empty() ? parse_sizes(row->sizes).value() : options.sizes;
    if (!row->word_only) largest = std::max(largest, *std::max_element(sizes.begin(), sizes.end()));
  }
  return largest;
}

// Room for the window; the rest is the library's choice.
std::uint32_t lane_depth(const PerfOptions& options) {
  return options.window > 128 ? std::bit_ceil(options.window) : 0;
}

Result<Client> Client::connect(Node& node, const std::string& server, const PerfOptions& options) {
  const Duration patience(options.deadline_ns);
  STRAIT_TRY(auto link, Link::make(node));
  STRAIT_TRY(auto arena,
             Arena::make(node, largest_size(options), options.memory, options.staged ? access::local : access::all));
  STRAIT_TRY(auto published, node.publish(kPerfClientName, link.region()));
  STRAIT_TRY(auto peer, node.connect(server, {.deadline = patience}));
  auto hello = link.receive(patience);
  if (!hello && hello.error().code == Code::timeout) {
    return with_remedy(fail(Code::timeout, "{} accepted the connection but did not begin within {:.1f} s", server,
                            static_cast<double>(options.deadline_ns) * 1e-9),
                       "Is it a `strait perf` server, and is it serving another client? Wait longer with --deadline.");
  }
  if (!hello) return hello.error();
  STRAIT_TRY(const auto ticket, ticket_from(hello->value("ticket", "")));
  STRAIT_TRY(const auto inbox, peer.redeem(ticket, patience));
  link.reach(inbox);
  STRAIT_TRY(auto lane, peer.lane(lane_depth(options), patience));
  Client client(node, std::move(peer), std::move(link), std::move(lane), std::move(arena), options);
  client.published_.emplace(std::move(published));
  return client;
}

Result<Json> Client::ask(const Json& message) {
  STRAIT_CHECK(link_.send(peer_, message, patience()));
  auto answer = link_.receive(patience());
  if (!answer && answer.error().code == Code::timeout) {
    return with_remedy(fail(Code::timeout, "the server stopped answering: {}", answer.error().text),
                       "Look at what it printed; a longer --deadline helps when its machine is very busy.");
  }
  if (!answer) return answer;
  if (auto error = error_in(*answer, "server")) return std::move(*error);
  return answer;
}

Result<Measured> Client::run(const TestRow& row, std::uint64_t bytes, PerfReport& report) {
  STRAIT_CHECK(prepare(node_, arena_, bytes, kClientSeed));
  std::string ticket;  // staged: nobody is given any
  if (!options_.staged) {
    STRAIT_TRY(const auto made, arena_.region.ticket(access::all));
    ticket = ticket_text(made);
  }
  STRAIT_TRY(const Json ready, ask({{"op", "begin"},
                                    {"test", row.name},
                                    {"bytes", bytes},
                                    {"largest", arena_.capacity},
                                    {"memory", options_.staged ? std::string("host") : options_.memory},
                                    {"arena", ticket}}));
  if (ready.value("capacity", std::uint64_t{0}) != arena_.capacity) {
    return fail(Code::invalid, "the server laid out its buffer differently: is it the same version of strait?");
  }
  if (const std::string theirs = ready.value("arena", ""); theirs != server_ticket_) {
    STRAIT_TRY(const auto parsed, ticket_from(theirs));
    STRAIT_TRY(server_arena_, peer_.redeem(parsed, patience()));
    server_ticket_ = theirs;
  }
  const Bench bench{
      node_, peer_, lane_, arena_, server_arena_, bytes, options_.deadline_ns, polls_word(bytes, options_.memory)};
  // Large operations need no thousand rounds to be warm.
  const std::uint64_t warmup =
      std::min<std::uint64_t>(options_.warmup, std::max<std::uint64_t>(2, (64u << 20) / bytes));
  const Goal goal{options_.iterations, options_.duration_ns, warmup,
                  options_.window != 0 ? options_.window : row.window, report.ticker(row, bytes)};
  STRAIT_TRY(Timed timed, measure(row.test, bench, goal));
  STRAIT_TRY(const Json verdict, ask({{"op", "end"}, {"operations", timed.operations}}));
  if (verdict.contains("strict_findings")) server_findings_ = verdict.value("strict_findings", std::uint64_t{0});
  STRAIT_TRY(const auto wrong, verify(node_, arena_, bytes, expected_at_client(row.test, bench.polls_word), kServerSeed,
                                      timed.operations));

  Measured measured = summarise(bytes, timed);
  measured.verified = verdict.value("verified", false) && wrong.empty();
  measured.note = wrong.empty() ? "at the server, " + verdict.value("note", "") : "at the client, " + wrong;
  return measured;
}

std::optional<std::uint64_t> Client::findings() {
  const auto info = node_.info();
  const auto own = info ? strict_findings(Json::parse(*info, nullptr, false)) : std::nullopt;
  if (!own) return server_findings_;
  return *own + server_findings_.value_or(0);
}

Status run_tests(Client& client, const PerfOptions& options, PerfReport& report) {
  for (const TestRow* row : options.tests) {
    report.begin_test(*row, client.path(), client.reach());
    auto sizes = row->word_only || options.sizes.empty() ? parse_sizes(row->sizes).value() : options.sizes;
    for (const std::uint64_t bytes : sizes) {
      if (sys::interrupted()) return fail(Code::gone, "interrupted");
      STRAIT_TRY(const auto measured, client.run(*row, bytes, report));
      report.add(*row, measured);
    }
  }
  report.checked(client.findings());
  client.goodbye();
  return {};
}

// Its own server, in a process of its own: one command on one machine.
Result<std::pair<sys::Child, std::string>> spawn_server(const PerfOptions& options) {
  std::vector<std::string> arguments{"perf",
                                     "--json",
                                     "--once",
                                     "--progress",
                                     options.progress,
                                     "--deadline",
                                     fmt::format("{}ns", options.deadline_ns)};
  // On one CPU the two sides would take turns; on a busy machine the scheduler puts them there.
  if (sys::usable_cpus() > 1) arguments.insert(arguments.end(), {"--cpu", options.cpu == 1 ? "0" : "1"});
  for (const auto& [name, value] : options.settings) {
    arguments.emplace_back("--set");
    arguments.push_back(name + "=" + value);
  }
  STRAIT_TRY(auto child, sys::Child::start_self(arguments));
  auto line = child.read(sys::Deadline::after_ns(options.deadline_ns));
  if (!line) return fail(line.error().code, "the server that --spawn started did not come up: {}", line.error().text);
  const Json hello = parse_json(*line);
  if (!hello.is_object() || !hello.contains("address")) {
    return fail(Code::system, "the server that --spawn started said \"{}\" instead of its address", *line);
  }
  return std::make_pair(std::move(child), hello.at("address").get<std::string>());
}

// True when any device that the Node opened is software.
bool runs_on_software(const Json& info) {
  if (!info.is_object()) return true;  // when in doubt, do not sell it as hardware
  for (const char* kind : {"nics", "accelerators"}) {
    for (const Json& device : info.value(kind, Json::array())) {
      if (device.value("software", true)) return true;
    }
  }
  return false;
}

Status run_against(const std::string& server, const PerfOptions& options, std::optional<PerfReport>& report) {
  STRAIT_TRY(auto node, open_perf_node(options, false));
  STRAIT_TRY(const auto info, node.info());
  report.emplace(options, runs_on_software(parse_json(info)));
  STRAIT_TRY(auto client, Client::connect(node, server, options));
  STRAIT_CHECK(run_tests(client, options, *report));
  if (options.counters) {
    STRAIT_TRY(const auto counted, node.info());
    report->counters(parse_json(counted));
  }
  return {};
}

}  // namespace

int run_perf_client(const PerfOptions& options) {
  sys::catch_interrupts();
  std::optional<sys::Child> child;
  std::string server = options.server;
  if (options.spawn) {
    auto spawned = spawn_server(options);
    if (!spawned) return complain(spawned.error());
    child.emplace(std::move(spawned->first));
    server = spawned->second;
  }
  std::optional<PerfReport> report;
  auto done = run_against(server, options, report);
  if (done && child) {
    auto status = child->finish(sys::Deadline::after_ns(options.deadline_ns));
    if (!status) done = Status(status.error());
    if (status && *status != 0 && *status != kFindings)
      done = Status(fail(Code::system, "the server that --spawn started ended with status {}", *status));
  }
  if (!done) {
    if (report) report->failed(done.error());
    return complain(done.error());
  }
  if (!report->finish()) return kFailed;
  return report->findings() == 0 ? kDone : kFindings;
}

}  // namespace strait::tool
