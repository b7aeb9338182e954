// SPDX-License-Identifier: Apache-2.0
// strait perf, the side that waits: one client after the other.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sys/clock.hpp"
#include "sys/terminal.hpp"
#include "tool/perf_session.hpp"
#include "tool/text.hpp"

namespace strait::tool {
namespace {

class Session {
 public:
  Session(Node& node, Peer peer, Link link, Lane lane, const PerfOptions& options)
      : node_(node), peer_(std::move(peer)), link_(std::move(link)), lane_(std::move(lane)), options_(options) {}

  [[nodiscard]] static Result<Session> begin(Node& node, Peer peer, const PerfOptions& options);
  // Until the client says goodbye or is gone.
  Status serve();
  [[nodiscard]] std::size_t runs() const { return runs_; }

 private:
  [[nodiscard]] Result<Json> next_message();
  [[nodiscard]] Status run(const Json& request);
  [[nodiscard]] Status set_up(const Json& request);
  [[nodiscard]] Status play_part(Test test, const Bench& bench, std::optional<Operation> receive);
  [[nodiscard]] bool client_answers();
  [[nodiscard]] Duration patience() const { return Duration(options_.deadline_ns); }

  Node& node_;
  Peer peer_;
  Link link_;
  Lane lane_;
  const PerfOptions& options_;
  std::optional<Arena> arena_;
  std::string memory_;
  std::string client_ticket_;
  Target client_arena_;
  std::size_t runs_ = 0;
};

Result<Session> Session::begin(Node& node, Peer peer, const PerfOptions& options) {
  const Duration patience(options.deadline_ns);
  STRAIT_TRY(auto link, Link::make(node));
  STRAIT_TRY(const auto inbox, peer.lookup(kPerfClientName, patience));
  link.reach(inbox);
  STRAIT_TRY(auto lane, peer.lane(0, patience));
  STRAIT_TRY(const auto ticket, link.region().ticket(access::remote_write));
  STRAIT_CHECK(link.send(peer, {{"ticket", ticket_text(ticket)}, {"version", strait_version()}}, patience));
  return Session(node, std::move(peer), std::move(link), std::move(lane), options);
}

// A client that thinks is not a client that died: only the second no longer answers for its name.
bool Session::client_answers() {
  return peer_.lookup(kPerfClientName, patience()).has_value();
}

Result<Json> Session::next_message() {
  for (;;) {
    auto message = link_.receive(patience());
    if (message || message.error().code != Code::timeout) return message;
    if (!client_answers()) return fail(Code::gone, "the client ended without a goodbye");
  }
}

Status Session::serve() {
  for (;;) {
    STRAIT_TRY(const Json request, next_message());
    const std::string what = request.value("op", "");
    if (what == "bye") return {};
    if (what != "begin") return fail(Code::invalid, "the client asked for \"{}\", which nobody here knows", what);
    if (auto done = run(request); !done) {
      // The client prints it: the person who asked sits there.
      (void)link_.send(peer_, error_message(done.error()), patience());
      return done;
    }
    ++runs_;
  }
}

Status Session::set_up(const Json& request) {
  const std::uint64_t largest = request.value("largest", std::uint64_t{0});
  const std::string memory = request.value("memory", "host");
  if (largest == 0 || largest > kLargestSize)
    return fail(Code::invalid, "the client asked for buffers of {} bytes", largest);
  if (!arena_ || memory_ != memory || arena_->capacity < largest) {
    arena_.reset();
    STRAIT_TRY(auto arena, Arena::make(node_, largest, memory));
    arena_.emplace(std::move(arena));
    memory_ = memory;
  }
  const std::string ticket = request.value("arena", "");
  if (!ticket.empty() && ticket != client_ticket_) {
    STRAIT_TRY(const auto parsed, ticket_from(ticket));
    STRAIT_TRY(client_arena_, peer_.redeem(parsed, patience()));
    client_ticket_ = ticket;
  }
  return {};
}

Status Session::play_part(Test test, const Bench& bench, std::optional<Operation> receive) {
  // Looked at while nothing arrives. The client is asked for a sign of life every few seconds only: that takes a while.
  constexpr std::int64_t kCheckNs = 3'000'000'000;
  std::int64_t next_check_ns = sys::now_ns() + kCheckNs;
  bool gone = false;
  const auto over = [&] {
    if (link_.waiting() || sys::interrupted()) return true;
    if (sys::now_ns() < next_check_ns) return false;
    gone = !client_answers();
    next_check_ns = sys::now_ns() + kCheckNs;
    return gone;
  };
  const auto played = test == Test::put_lat    ? pong_put(bench, over)
                      : test == Test::send_lat ? pong_send(bench, std::move(*receive), over)
                                               : stay_reachable(bench, over);
  if (gone) return fail(Code::gone, "the client ended in the middle of a run");
  return played;
}

Status Session::run(const Json& request) {
  const TestRow* row = find_test(request.value("test", ""));
  const std::uint64_t bytes = request.value("bytes", std::uint64_t{0});
  if (row == nullptr) return fail(Code::invalid, "the client asked for a test that this version does not know");
  STRAIT_CHECK(set_up(request));
  if (bytes == 0 || bytes > arena_->capacity)
    return fail(Code::invalid, "the client asked for operations of {} bytes", bytes);
  STRAIT_CHECK(prepare(node_, *arena_, bytes, kServerSeed));
  const Bench bench{
      node_, peer_, lane_, *arena_, client_arena_, bytes, options_.deadline_ns, polls_word(bytes, memory_)};

  std::optional<Operation> receive;
  if (row->test == Test::send_lat) receive.emplace(peer_.receive(arena_->region.slice(arena_->capacity, bytes)));
  STRAIT_TRY(const auto ticket, arena_->region.ticket(access::all));
  STRAIT_CHECK(
      link_.send(peer_, {{"ready", true}, {"arena", ticket_text(ticket)}, {"capacity", arena_->capacity}}, patience()));
  STRAIT_CHECK(play_part(row->test, bench, std::move(receive)));

  STRAIT_TRY(const Json end, next_message());
  const Expect expect = expected_at_server(row->test, bench.polls_word);
  STRAIT_TRY(const auto wrong,
             verify(node_, *arena_, bytes, expect, kClientSeed, end.value("operations", std::uint64_t{0})));
  Json verdict{{"verified", wrong.empty()}, {"note", wrong}};
  STRAIT_TRY(const auto info, node_.info());
  if (const auto found = strict_findings(Json::parse(info, nullptr, false))) verdict["strict_findings"] = *found;
  const Status sent = link_.send(peer_, verdict, patience());
  // A client that has said something since has read the verdict: only the acknowledgement was lost, with the client.
  if (!sent && sent.error().code == Code::gone && link_.waiting()) return {};
  return sent;
}

void announce(const Node& node, const PerfOptions& options) {
  if (options.json) {
    fmt::print("{}\n", json_text(Json{{"address", node.address()}}));
  } else {
    fmt::print("strait perf: waiting at {}\n  client:   strait perf {} --test put_bw\n", node.address(),
               node.address());
    fmt::print("{}",
               wrap("On another machine the client needs the same secret (STRAIT_SECRET), and this side an address it "
                    "can reach (--listen).",
                    2, 2));
  }
  std::fflush(stdout);
}

void note_client(const PerfOptions& options, const std::string& name, std::size_t runs, const Status& served) {
  if (options.json) {
    Json line{{"client", name}, {"runs", runs}, {"ok", served.has_value()}};
    if (!served) line["error"] = served.error().text;
    fmt::print("{}\n", json_text(line));
  } else if (served) {
    fmt::print("  served {}: {} runs\n", name, runs);
  } else {
    fmt::print("{}", wrap(fmt::format("lost {} after {} runs: {}", name, runs, served.error().text), 2, 4));
  }
  std::fflush(stdout);
}

}  // namespace

int run_perf_server(const PerfOptions& options) {
  sys::catch_interrupts();
  auto node = open_perf_node(options, true);
  if (!node) return complain(node.error());
  announce(*node, options);
  while (!sys::interrupted()) {
    auto peer = node->accept(Duration(200'000'000));
    if (!peer && peer.error().code == Code::timeout) continue;
    if (!peer) return complain(peer.error());
    const std::string name = peer->name();
    auto session = Session::begin(*node, std::move(*peer), options);
    const Status served = session ? session->serve() : Status(session.error());
    if (sys::interrupted()) break;
    note_client(options, name, session ? session->runs() : 0, served);
    if (options.once) return served ? kDone : kFailed;
  }
  if (!options.json) fmt::print("  interrupted; nothing is left behind\n");
  return kDone;
}

}  // namespace strait::tool
