// SPDX-License-Identifier: Apache-2.0
// strait faults: what a plan of faults means and what it decides, without running anything.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fault_plan.hpp"
#include "tool/command.hpp"
#include "tool/json.hpp"
#include "tool/text.hpp"
#include "tool/tool.hpp"

namespace strait::tool {
namespace {

const Manual kFaultsManual{
    .name = "strait faults - what a plan of faults means, and what it decides",
    .synopsis = "strait faults SPEC [--flow A:B] [--packets N] [--json]",
    .description =
        "A plan of faults (option faults) makes the software NIC lose, double, delay or damage packets on purpose "
        "(over the ring grant: its messages), report receivers that are not ready, or fail work that is fine. What "
        "happens to packet n of a connection depends on the plan, the connection and n alone: run it again and the "
        "same packets are lost.\n"
        "\n"
        "This command explains a plan in words and prints what it decides for the first packets of one connection. It "
        "opens no device and sends nothing.\n"
        "\n"
        "A plan is a list of parts:\n"
        "  drop=2%            of packets never leave\n"
        "  dup=1%             leave twice\n"
        "  reorder=1%         are overtaken by up to three others\n"
        "  delay=1%:500us     leave later\n"
        "  corrupt=0.1%       leave with one bit flipped\n"
        "  rnr=5%             of receives are overlooked: receiver not ready\n"
        "  error=0.01%:0x13   of work requests fail with this syndrome\n"
        "  down=1s..2s        nothing leaves or arrives, since the NIC was opened\n"
        "  stall=1s..1.2s     the engine does not run\n"
        "  overrun=1000       that completion finds its queue full\n"
        "  gone=50            the NIC is removed instead of beginning that work request\n"
        "  seed=7             another seed, other packets\n"
        "\n"
        "A software Cassini (strait run --cassini) takes the same plans for its requests, and refuses dup, corrupt, "
        "rnr "
        "and gone, which none of its programs could see. There drop is a request that is sent again, and undeliverable "
        "after eight tries; reorder overtakes only puts that have no order; error=1%:36 ends operations with that "
        "return code.",
    .examples =
        "strait faults drop=2%,seed=7\n"
        "strait faults drop=1%,corrupt=1% --flow 0x101:0x102 --packets 50\n"
        "strait faults drop=2%,seed=7 --json | jq '.decisions[].packet'\n"
        "STRAIT_FAULTS=drop=2%,seed=7 strait demo --set carrier=roce",
    .environment = {},
};

struct FaultsArguments {
  std::string spec;
  std::string flow = "1:1";
  std::uint64_t packets = 1000;
  bool json = false;
};

struct Flow {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  // As the software NIC names a connection to its plan.
  [[nodiscard]] std::uint64_t name() const { return std::uint64_t{from & 0xffff} << 16 | (to & 0xffff); }
};

std::optional<std::uint32_t> parse_queue_pair(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (code != std::errc() || end != text.data() + text.size() || value > 0xffffff) return std::nullopt;
  return value;
}

std::optional<Flow> parse_flow(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto from = parse_queue_pair(text.substr(0, colon));
  const auto to = parse_queue_pair(text.substr(colon + 1));
  if (!from || !to) return std::nullopt;
  return Flow{*from, *to};
}

std::string percent(double rate) {
  return fmt::format("{:.6g} %", rate * 100);
}

std::string time_of(std::int64_t ns) {
  return ns == 0 ? "0 s" : time_text(static_cast<double>(ns) * 1e-9);
}

struct Words {
  const char* part;
  std::string text;
};

// The plan in sentences, in the order in which it is written.
std::vector<Words> explain(const FaultPlan& plan) {
  std::vector<Words> out;
  const auto say = [&](bool there, const char* part, std::string text) {
    if (there) out.push_back({part, std::move(text)});
  };
  say(plan.drop > 0, "drop",
      percent(plan.drop) + " of packets are made and never leave; the sender notices and sends again");
  say(plan.duplicate > 0, "dup", percent(plan.duplicate) + " leave twice; the receiver must act on one of them only");
  say(plan.reorder > 0, "reorder",
      percent(plan.reorder) + " are held back until up to three others have left, 1 ms at most");
  say(plan.delay > 0, "delay",
      fmt::format("{} leave {} late, and are overtaken meanwhile", percent(plan.delay), time_of(plan.delay_ns)));
  say(plan.corrupt > 0, "corrupt",
      percent(plan.corrupt) + " leave with one bit flipped; the receiver's check (iCRC) must find it");
  say(plan.rnr > 0, "rnr",
      percent(plan.rnr) + " of posted receives are overlooked once: the sender hears \"receiver not ready\" and waits");
  say(plan.error > 0, "error",
      fmt::format("{} of work requests fail with syndrome {:#x} although nothing is wrong with them; the connection is "
                  "in error afterwards",
                  percent(plan.error), plan.error_syndrome));
  say(plan.down_until_ns != 0, "down",
      fmt::format("nothing leaves or arrives from {} to {} after the NIC was opened", time_of(plan.down_from_ns),
                  time_of(plan.down_until_ns)));
  say(plan.stall_until_ns != 0, "stall",
      fmt::format("the engine does not run from {} to {} after the NIC was opened", time_of(plan.stall_from_ns),
                  time_of(plan.stall_until_ns)));
  say(plan.overrun != 0, "overrun", fmt::format("completion {} finds its completion queue full", plan.overrun));
  say(plan.gone != 0, "gone",
      fmt::format(
          "the NIC is removed before it begins work request {}: what is posted is flushed, and it is silent from "
          "then on",
          plan.gone));
  say(out.empty(), "nothing", "no part says what to do wrong: everything goes as it should");
  say(true, "seed", fmt::format("{}; the same plan and seed treat the same packets in the same way", plan.seed));
  return out;
}

constexpr std::array kFaults = {Fault::drop, Fault::duplicate, Fault::reorder, Fault::delay, Fault::corrupt};

struct Decisions {
  std::vector<std::pair<std::uint64_t, Fault>> packets;
  std::vector<std::uint64_t> receives;  // overlooked
  std::vector<std::uint64_t> work;      // failed
};

Decisions decide(const FaultPlan& plan, const Flow& flow, std::uint64_t count) {
  Decisions out;
  for (std::uint64_t n = 0; n < count; ++n) {
    if (const Fault fault = plan.on_message(flow.name(), n); fault != Fault::none) out.packets.emplace_back(n, fault);
    if (plan.on_receive(flow.name(), n)) out.receives.push_back(n);
    if (plan.on_work(flow.name(), n)) out.work.push_back(n);
  }
  return out;
}

void print_json(const FaultPlan& plan, const Flow& flow, std::uint64_t count, const Decisions& decided) {
  Json document{{"plan", plan.text()},  {"seed", plan.seed},          {"flow", {flow.from, flow.to}},
                {"packets", count},     {"decisions", Json::array()}, {"receives", decided.receives},
                {"work", decided.work}, {"words", Json::array()}};
  for (const Words& words : explain(plan)) document["words"].push_back({{"part", words.part}, {"text", words.text}});
  Json counts = Json::object();
  for (const Fault fault : kFaults) counts[fault_name(fault)] = 0;
  for (const auto& [n, fault] : decided.packets) {
    document["decisions"].push_back({{"packet", n}, {"fault", fault_name(fault)}});
    counts[fault_name(fault)] = counts[fault_name(fault)].get<int>() + 1;
  }
  document["counts"] = std::move(counts);
  fmt::print("{}\n", json_pages(document));
}

void print_list(std::string_view label, std::string_view what, const std::vector<std::uint64_t>& list) {
  constexpr std::size_t kColumn = 12;
  std::string text = fmt::format("{} {}", list.size(), what);
  for (std::size_t i = 0; i < list.size(); ++i) text += fmt::format("{} {}", i == 0 ? ":" : ",", list[i]);
  fmt::print("  {:<10}{}", label, wrap(text, kColumn, kColumn).substr(kColumn));
}

void print_text(const std::string& spec, const FaultPlan& plan, const Flow& flow, std::uint64_t count,
                const Decisions& decided) {
  constexpr std::size_t kColumn = 12;
  fmt::print("{}", tinted(wrap(spec, 0, 2), Tint::strong));
  for (const Words& words : explain(plan))
    fmt::print("  {:<10}{}", words.part, wrap(words.text, kColumn, kColumn).substr(kColumn));
  fmt::print("\nthe first {} packets from queue pair {:#x} to {:#x}, counted from 0\n", count, flow.from, flow.to);
  for (const Fault fault : kFaults) {
    std::vector<std::uint64_t> hit;
    for (const auto& [n, what] : decided.packets) {
      if (what == fault) hit.push_back(n);
    }
    if (!hit.empty()) print_list(fault_name(fault), "packets", hit);
  }
  if (!decided.receives.empty()) print_list("rnr", "receives", decided.receives);
  if (!decided.work.empty()) print_list("error", "work requests", decided.work);
  if (decided.packets.empty() && decided.receives.empty() && decided.work.empty()) fmt::print("  nothing\n");
}

int run_faults(const FaultsArguments& arguments) {
  const auto plan = FaultPlan::parse(arguments.spec);
  if (!plan) return complain(plan.error());
  const Flow flow = *parse_flow(arguments.flow);
  const Decisions decided = decide(*plan, flow, arguments.packets);
  arguments.json ? print_json(*plan, flow, arguments.packets, decided)
                 : print_text(arguments.spec, *plan, flow, arguments.packets, decided);
  return kDone;
}

}  // namespace

std::string check_faults(const std::string& text) {
  const auto plan = FaultPlan::parse(text);
  return plan ? std::string() : plan.error().text + ". `strait faults --help` lists what a plan can hold.";
}

void add_faults(CommandLine& line) {
  auto arguments = std::make_shared<FaultsArguments>();
  Command command = line.add("faults", "What a plan of faults means, and what it decides.", kFaultsManual);
  command.word("SPEC", arguments->spec, "The plan, for example drop=2%,seed=7.", true);
  command.text(
      "--flow", arguments->flow,
      {"A:B",
       "The connection: the queue pair that sends and the one it sends to, as a capture names them (16 bits of "
       "each count).",
       "1:1", [](const std::string& text) {
         return parse_flow(text) ? std::string()
                                 : "--flow takes two queue pair numbers, A:B, decimal or 0x..., not " + text;
       }});
  command.number("--packets", arguments->packets, {"N", "How many packets to decide.", "1000", {}}, 1, 10'000'000);
  command.flag("--json", arguments->json, "One JSON object.");
  command.on_run([arguments] { return run_faults(*arguments); });
}

}  // namespace strait::tool
