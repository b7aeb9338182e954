// SPDX-License-Identifier: Apache-2.0
// The demo's second process, and how the first one talks to it.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <thread>

#include "sys/affinity.hpp"
#include "sys/clock.hpp"
#include "tool/demo.hpp"
#include "tool/pattern.hpp"

namespace strait::tool {
namespace {

Json error_json(const Error& error) {
  return {{"ok", false}, {"code", static_cast<int>(error.code)}, {"text", error.text}, {"remedy", error.remedy}};
}

class Obedient {
 public:
  Obedient(Node node, Shared device, Shared host, sys::Lines lines)
      : node_(std::move(node)), device_(std::move(device)), host_(std::move(host)), lines_(lines) {}

  // Until the first process says quit or closes the line.
  Status serve();

 private:
  [[nodiscard]] Result<Json> obey(const Json& command);
  [[nodiscard]] Result<Json> fill(const Json& command);
  [[nodiscard]] Result<Json> check(const Json& command);
  [[nodiscard]] Result<Json> damage(const Json& command);
  [[nodiscard]] Result<Json> info();
  [[nodiscard]] Result<Json> set_word(const Json& command);
  [[nodiscard]] Result<Json> word(const Json& command);
  [[nodiscard]] Result<Json> receive(const Json& command);
  [[nodiscard]] Result<Json> watch(const Json& command);
  [[nodiscard]] Result<Json> drive();
  [[nodiscard]] Result<Json> revoke();
  [[nodiscard]] Status await_signal(std::uint32_t index, std::uint64_t at_least);
  [[nodiscard]] Status accept_first();

  Shared& at(const Json& command) { return command.value("memory", "device") == "host" ? host_ : device_; }
  [[nodiscard]] std::byte* address(const Json& command) {
    return static_cast<std::byte*>(at(command).memory.data()) + command.value("offset", std::uint64_t{0});
  }

  Node node_;
  Shared device_;
  Shared host_;
  sys::Lines lines_;
  std::optional<Peer> peer_;
  std::uint64_t stops_ = 0;
};

Status Obedient::serve() {
  STRAIT_TRY(auto device, node_.publish("demo/device", device_.region));
  STRAIT_TRY(auto host, node_.publish("demo/host", host_.region));
  STRAIT_CHECK(lines_.write(json_text(Json{{"ok", true}, {"address", node_.address()}})));
  for (;;) {
    auto line = lines_.read(sys::Deadline::after_ns(-1));
    if (!line && line.error().code == Code::gone) return {};
    if (!line) return line.error();
    const Json command = parse_json(*line);
    if (command.is_discarded()) return fail(Code::invalid, "the first process sent a line that is not JSON");
    if (command.value("do", "") == "quit") return {};
    auto answer = obey(command);
    STRAIT_CHECK(lines_.write(json_text(answer ? *answer : error_json(answer.error()))));
  }
}

Result<Json> Obedient::obey(const Json& command) {
  const std::string what = command.value("do", "");
  if (what == "fill") return fill(command);
  if (what == "check") return check(command);
  if (what == "damage") return damage(command);
  if (what == "info") return info();
  if (what == "set_word") return set_word(command);
  if (what == "word") return word(command);
  if (what == "receive") return receive(command);
  if (what == "watch") return watch(command);
  if (what == "drive") return drive();
  if (what == "revoke") return revoke();
  return fail(Code::invalid, "the second process knows no command \"{}\"", what);
}

Result<Json> Obedient::fill(const Json& command) {
  STRAIT_CHECK(fill_memory(node_, address(command), command.at("length"), command.at("seed")));
  return Json{{"ok", true}};
}

Result<Json> Obedient::check(const Json& command) {
  STRAIT_TRY(auto wrong, check_memory(node_, address(command), command.at("length"), command.at("seed")));
  return Json{{"ok", true}, {"verified", !wrong}, {"note", wrong ? wrong->text() : std::string()}};
}

// One bit of one byte, anywhere but at the ends.
Result<Json> Obedient::damage(const Json& command) {
  std::byte* const at = address(command) + command.at("length").get<std::uint64_t>() / 3;
  std::byte value{};
  STRAIT_CHECK(node_.copy(&value, at, 1));
  value ^= std::byte{0x10};
  STRAIT_CHECK(node_.copy(at, &value, 1));
  return Json{{"ok", true}};
}

Result<Json> Obedient::info() {
  STRAIT_TRY(const std::string text, node_.info());
  return Json{{"ok", true}, {"info", parse_json(text)}};
}

Result<Json> Obedient::set_word(const Json& command) {
  const std::uint64_t value = command.at("value");
  STRAIT_CHECK(node_.copy(address(command), &value, sizeof value));
  return Json{{"ok", true}};
}

Result<Json> Obedient::word(const Json& command) {
  std::uint64_t value = 0;
  STRAIT_CHECK(node_.copy(&value, address(command), sizeof value));
  return Json{{"ok", true}, {"value", value}};
}

Status Obedient::accept_first() {
  if (peer_) return {};
  STRAIT_TRY(auto peer, node_.accept(kDemoPatience));
  peer_.emplace(std::move(peer));
  return {};
}

// Two answers a round: that the receive is posted, and what came.
Result<Json> Obedient::receive(const Json& command) {
  STRAIT_CHECK(accept_first());
  const std::uint64_t length = command.at("length");
  const std::uint64_t seed = command.at("seed");
  const std::uint64_t rounds = command.at("rounds");
  const auto deadline = sys::Deadline::after_ns(kDemoPatienceNs);
  for (std::uint64_t round = 1;; ++round) {
    Operation operation = peer_->receive(device_.region.slice(0, length));
    STRAIT_CHECK(lines_.write(json_text(Json{{"ok", true}, {"posted", round}})));
    auto done = operation.test();
    while (!done && done.error().code == Code::again && !deadline.passed()) {
      node_.poll();
      done = operation.test();
    }
    if (!done) return done.error();
    STRAIT_TRY(auto wrong, check_memory(node_, device_.memory.data(), length, seed + round));
    Json came{{"ok", true}, {"bytes", done->bytes}, {"verified", !wrong}, {"note", wrong ? wrong->text() : ""}};
    if (done->imm) came["imm"] = *done->imm;
    if (round == rounds) return came;
    STRAIT_CHECK(lines_.write(json_text(came)));
  }
}

// Polls, so that nothing has to be woken up when the signal comes.
Status Obedient::await_signal(std::uint32_t index, std::uint64_t at_least) {
  const auto signal = device_.region.signal(index);
  const auto deadline = sys::Deadline::after_ns(kDemoPatienceNs);
  for (std::uint32_t spin = 1;; ++spin) {
    STRAIT_TRY(const std::uint64_t value, signal.read());
    if (value >= at_least) return {};
    node_.poll();
    if (spin % 256 != 0) continue;
    std::this_thread::yield();  // on a small machine the first process needs this core
    if (deadline.passed()) {
      return fail(Code::timeout, "signal {} stayed at {} instead of {}", index, value, at_least);
    }
  }
}

// Each time the signal rises the data must be there already: it is looked at right then. One answer a round.
Result<Json> Obedient::watch(const Json& command) {
  const std::uint64_t rounds = command.at("rounds");
  const std::uint64_t seed = command.at("seed");
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    STRAIT_CHECK(await_signal(kDataSignal, round));
    const std::int64_t seen_ns = sys::now_ns();
    STRAIT_TRY(auto wrong, check_memory(node_, address(command), command.at("length"), seed + round));
    const Json seen{{"ok", true}, {"seen_ns", seen_ns}, {"verified", !wrong}, {"note", wrong ? wrong->text() : ""}};
    if (round == rounds) return seen;
    STRAIT_CHECK(lines_.write(json_text(seen)));
  }
  return Json{{"ok", true}};
}

Result<Json> Obedient::drive() {
  STRAIT_CHECK(await_signal(kStopSignal, ++stops_));
  return Json{{"ok", true}};
}

Result<Json> Obedient::revoke() {
  STRAIT_CHECK(device_.region.revoke(kDemoPatience));
  return Json{{"ok", true}};
}

Status serve_peer(const DemoOptions& options) {
  STRAIT_TRY(auto node, Node::open({.settings = options.settings}));
  pin_side(1);
  STRAIT_TRY(auto device, share_buffer(node, options.length, options.device));
  STRAIT_TRY(auto host, share_buffer(node, options.length, "host"));
  return Obedient(std::move(node), std::move(device), std::move(host), sys::Lines(STDIN_FILENO, STDOUT_FILENO)).serve();
}

}  // namespace

void pin_side(int side) {
  if (sys::usable_cpus() > 1) (void)sys::pin_thread_to_nth_cpu(side);
}

Result<Shared> share_buffer(Node& node, std::uint64_t length, const std::string& near) {
  STRAIT_TRY(auto memory, node.allocate(length, {.near = near}));
  STRAIT_TRY(auto region, node.share(memory, access::all));
  return Shared{std::move(memory), std::move(region)};
}

int run_demo_peer(const DemoOptions& options) {
  const auto served = serve_peer(options);
  if (served) return kDone;
  // The first process tells the user; this one only tells the first process.
  (void)sys::Lines(STDIN_FILENO, STDOUT_FILENO).write(json_text(error_json(served.error())));
  return exit_for(served.error());
}

Result<OtherProcess> OtherProcess::start(const DemoOptions& options) {
  std::vector<std::string> arguments{"demo",         "--peer", "--device",
                                     options.device, "--size", std::to_string(options.length)};
  for (const auto& [name, value] : options.settings) {
    arguments.emplace_back("--set");
    arguments.push_back(name + "=" + value);
  }
  STRAIT_TRY(auto child, sys::Child::start_self(arguments));
  return OtherProcess(std::move(child));
}

Status OtherProcess::await_hello() {
  STRAIT_TRY(const Json hello, answer());
  return {};
}

Status OtherProcess::tell(const Json& command) {
  return child_.write(json_text(command));
}

Result<Json> OtherProcess::answer() {
  auto line = child_.read(sys::Deadline::after_ns(2 * kDemoPatienceNs));
  if (!line) {
    Error error = std::move(line).error();
    error.text = "the second process of the demo: " + error.text;
    return error;
  }
  Json answer = parse_json(*line);
  if (!answer.is_object()) return fail(Code::system, "the second process of the demo answered \"{}\"", *line);
  if (!answer.value("ok", false)) {
    return Error{static_cast<Code>(answer.value("code", 9)), 0, 0, "second process: " + answer.value("text", "failed"),
                 answer.value("remedy", "")};
  }
  if (answer.contains("address")) address_ = answer.at("address");
  return answer;
}

Result<Json> OtherProcess::ask(const Json& command) {
  STRAIT_CHECK(tell(command));
  return answer();
}

Status OtherProcess::finish() {
  (void)tell({{"do", "quit"}});
  STRAIT_TRY(const int status, child_.finish(sys::Deadline::after_ns(kDemoPatienceNs)));
  if (status != 0) return fail(Code::system, "the second process of the demo ended with status {}", status);
  return {};
}

std::optional<Error> OtherProcess::ended() {
  auto line = child_.read(sys::Deadline::after_ns(50'000'000));
  if (line || line.error().code != Code::gone) return std::nullopt;
  Error error = std::move(line).error();
  error.text = "the second process of the demo ended too early: " + error.text;
  error.remedy = "Its memory went with it, so no operation can reach it any more. Run the demo again.";
  return error;
}

}  // namespace strait::tool
