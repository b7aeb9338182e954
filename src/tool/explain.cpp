// SPDX-License-Identifier: Apache-2.0
// strait explain: which way bytes take between two memories, and why not another.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "strait/strait.hpp"
#include "tool/command.hpp"
#include "tool/json.hpp"
#include "tool/text.hpp"
#include "tool/tool.hpp"

namespace strait::tool {
namespace {

const Manual kExplainManual{
    .name = "strait explain - which way bytes take between two memories, and why not another",
    .synopsis =
        "strait explain --from MEMORY --to MEMORY[@WHERE] [--require WHAT] [--json]\n"
        "strait explain --table [--to @WHERE] [--json]",
    .description =
        "Lists every way that strait knows, best first: whether it can be taken (yes, no, or held back until it is "
        "allowed), for what reason, and what it costs. MEMORY is a name of `strait info`: host, cuda:0, gaudi:3.\n"
        "\n"
        "Without an address both ends are in one process, as for strait_copy. With HOST:PORT a running Node is asked "
        "what "
        "it has (it needs the same secret). The word peer stands for another host with the same devices as this "
        "one.\n"
        "\n"
        "--table explains every pair of memories, one line each.\n"
        "\n"
        "Figures (latency and bandwidth) were measured now, by this process, with memory of its own: that takes an "
        "accelerator into use. Those after `estimated` were not: they are put together from measured ones, or from "
        "the speed of PCIe links and wires in sysfs.",
    .examples =
        "strait explain --from soft:0 --to host\n"
        "strait explain --from soft:0 --to soft:0@peer\n"
        "strait run --accelerators cuda:2,gaudi:2 -- strait explain --table\n"
        "strait explain --from host --to cuda:0@10.0.0.7:7471 --require zero_copy",
    .environment = {},
    .exits =
        "0   there is a way\n1   it failed, with the reason\n2   wrong use\n3   there is no way, with every reason",
};

struct ExplainArguments {
  std::string from;
  std::string to;
  std::string require;
  bool table = false;
  bool json = false;
  std::vector<std::string> pairs;
};

std::vector<std::string> memories_of(Node& node) {
  std::vector<std::string> names;
  const auto info = node.info();
  if (!info) return names;
  for (const Json& memory : parse_json(*info).value("memory", Json::array()))
    names.push_back(memory.value("name", "?"));
  return names;
}

int explain_one(Node& node, const ExplainArguments& arguments) {
  ExplainOptions options{.json = true, .zero_copy = arguments.require == "zero_copy"};
  const auto text = node.explain(arguments.from, arguments.to, options);
  if (!text) return complain(text.error());
  const Json plan = parse_json(*text);
  if (arguments.json) {
    fmt::print("{}\n", json_pages(plan));
  } else {
    options.json = false;
    const auto page = node.explain(arguments.from, arguments.to, options);
    if (!page) return complain(page.error());
    fmt::print("{}", *page);
  }
  return plan.at("chosen").is_null() ? kNotPossible : kDone;
}

// One line for every pair: the first row of each plan is what matters.
int explain_all(Node& node, const ExplainArguments& arguments) {
  if (!arguments.to.empty() && arguments.to.front() != '@')
    return complain(fail(Code::invalid, "--table takes every memory: --to may only name where, as in --to @peer"));
  const std::vector<std::string> names = memories_of(node);
  Json rows = Json::array();
  for (const std::string& from : names) {
    for (const std::string& to : names) {
      const auto text =
          node.explain(from, to + arguments.to, {.json = true, .zero_copy = arguments.require == "zero_copy"});
      if (!text) return complain(text.error());
      const Json plan = parse_json(*text);
      const Json& chosen = plan.at("chosen");
      Json row{{"from", from}, {"to", to + arguments.to}, {"way", nullptr}, {"kind", nullptr}};
      if (!chosen.is_null()) {
        const Json& way = plan.at("ways").at(chosen.get<std::size_t>());
        row["way"] = way.at("name");
        row["kind"] = way.at("kind");
      }
      rows.push_back(std::move(row));
    }
  }
  if (arguments.json) {
    fmt::print("{}\n", json_pages(rows));
    return kDone;
  }
  for (const Json& row : rows) {
    const std::string route = fmt::format("{} -> {}", row.value("from", ""), row.value("to", ""));
    const std::string way =
        row.at("way").is_null() ? "no way; strait explain --from ... --to ... says why" : row.value("way", "");
    constexpr std::size_t kColumn = 26;
    const std::string body = wrap(way, kColumn, kColumn);
    if (route.size() + 1 > kColumn) {
      fmt::print("{}\n{}", route, body);
    } else {
      fmt::print("{:<{}}{}", route, kColumn, body.substr(kColumn));
    }
  }
  return kDone;
}

int run_explain(const ExplainArguments& arguments) {
  if (!arguments.table && (arguments.from.empty() || arguments.to.empty()))
    return complain(with_remedy(fail(Code::invalid, "explain needs both ends: --from and --to"),
                                "`strait info` lists the memories, `strait explain --table` explains all of them."));
  auto node = Node::open({.settings = parse_settings(arguments.pairs)});
  if (!node) return complain(node.error());
  return arguments.table ? explain_all(*node, arguments) : explain_one(*node, arguments);
}

}  // namespace

void add_explain(CommandLine& line) {
  auto arguments = std::make_shared<ExplainArguments>();
  Command command =
      line.add("explain", "Which way bytes take between two memories, and why not another.", kExplainManual);
  command.text("--from", arguments->from, {"MEMORY", "Where the bytes are: memory of this Node.", {}, {}});
  command.text("--to", arguments->to,
               {"MEMORY[@WHERE]", "Where they are to go: here, @HOST:PORT (a running Node), or @peer.", {}, {}});
  command.text("--require", arguments->require,
               {"WHAT",
                "zero_copy: refuse a copy through host memory, as operations do that require it.",
                {},
                one_of({"zero_copy"})});
  command.flag("--table", arguments->table, "Every pair of memories, one line each.");
  command.flag("--json", arguments->json, "Every way with verdict, reason and cost, as JSON.");
  command.not_both("--table", "--from");
  add_settings(command, arguments->pairs);
  command.on_run([arguments] { return run_explain(*arguments); });
}

}  // namespace strait::tool
