// SPDX-License-Identifier: Apache-2.0
// strait info: what a Node finds on this machine, and which options it runs with.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "strait/strait.hpp"
#include "tool/between.hpp"
#include "tool/command.hpp"
#include "tool/counters.hpp"
#include "tool/json.hpp"
#include "tool/reach_page.hpp"
#include "tool/text.hpp"
#include "tool/tool.hpp"

namespace strait::tool {
namespace {

const Manual kInfoManual{
    .name = "strait info - devices, memory kinds, NICs and options of this machine",
    .synopsis =
        "strait info [--every-device | --no-trials] [--json] [--set NAME=VALUE]...\n"
        "strait info [--options] [--counters] [--json] [--set NAME=VALUE]...\n"
        "strait info --counters --of HOST:PORT [--json] [--set NAME=VALUE]...",
    .description =
        "Opens a Node, says what it found, and closes it again. Devices that are software are marked.\n"
        "\n"
        "Whether a NIC reaches a kind of memory is tried, with one device of each kind: a buffer of 64 KiB is "
        "allocated, registered in every way there is, and freed. A \"yes\" has just worked; a \"no\" has the "
        "number of its reason. Below is what each provider and each NIC needs, and what of it is there. Trying takes a "
        "device into use for a moment (a CUDA context, the compute node of a Gaudi).\n"
        "\n"
        "Also said: how bytes travel between processes of this host. Whether process_vm calls work is tried with a "
        "child process, whose UDP port 4791 is is looked up.\n"
        "\n"
        "An option has one of three origins: caller (--set here, or the program that opens the Node), environment "
        "(STRAIT_NAME), or default. The first that speaks wins.\n"
        "\n"
        "A Node that was only opened has counted little. With --of HOST:PORT a running Node is asked for what it has "
        "counted (it needs the same secret); of this machine nothing is shown then.",
    .examples =
        "strait info\n"
        "strait info --options\n"
        "STRAIT_PROGRESS=caller strait info --options\n"
        "strait info --every-device\n"
        "strait run --accelerators cuda:1,gaudi:1 --peer-memory nvidia -- strait info\n"
        "strait info --counters --set carrier=roce\n"
        "strait info --counters --of 127.0.0.1:7471\n"
        "strait info --json | jq .nics",
    .environment = {},
};

struct InfoArguments {
  bool json = false;
  bool options = false;
  bool counters = false;
  bool every_device = false;
  bool no_trials = false;
  std::string of;
  std::vector<std::string> pairs;
};

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string joined(const Json& list) {
  std::string out;
  for (const Json& item : list) out += (out.empty() ? "" : ", ") + text_of(item);
  return out;
}

void heading(std::string_view title) {
  fmt::print("\n{}\n", tinted(title, Tint::strong));
}

// "  name      text", the text wrapped beside the name.
void row(std::string_view name, const std::string& text, std::size_t column = 12) {
  const std::string body = wrap(text, column, column);
  if (name.size() + 3 > column) {
    fmt::print("  {}\n{}", name, body);
  } else {
    fmt::print("  {:<{}}{}", name, column - 2, body.substr(column));
  }
}

const char* mark(const Json& device) {
  return device.value("software", false) ? " (software)" : "";
}

// "at 0000:1b:00.0, NUMA node 0", as far as the machine says.
void print_place(const Json& device) {
  const Json path = device.value("pci_path", Json::array());
  const int node = device.value("numa_node", -1);
  if (path.empty()) return;
  row("", fmt::format("at {}{}", path.back().get<std::string>(), node < 0 ? "" : fmt::format(", NUMA node {}", node)));
}

void print_devices(const Json& info, bool tried) {
  heading("accelerators");
  for (const Json& device : info.value("accelerators", Json::array())) {
    row(device.value("name", "?"),
        fmt::format("{}, {}{}", device.value("description", ""),
                    size_text(device.value("memory_bytes", std::uint64_t{0})), mark(device)));
    if (device.contains("capabilities")) row("", "can: " + joined(device.at("capabilities")));
    print_place(device);
  }
  if (info.value("accelerators", Json::array()).empty()) fmt::print("  none\n");
  if (!tried) {  // the requirements say it otherwise
    for (const Json& absent : info.value("accelerators_absent", Json::array()))
      row(absent.value("kind", "?"), "not here: " + absent.value("because", ""));
  }

  heading("NICs");
  for (const Json& nic : info.value("nics", Json::array())) {
    row(nic.value("name", "?"), fmt::format("{}{}", nic.value("description", ""), mark(nic)));
    if (!nic.value("address", "").empty()) row("", "address " + nic.value("address", ""));
    print_place(nic);
  }
  if (info.value("nics", Json::array()).empty()) fmt::print("  none\n");
}

void print_options(const Json& info) {
  heading("options");
  for (const Json& option : info.value("options", Json::array())) {
    const std::string name = option.value("name", "?");
    const std::string origin = option.value("origin", "default");
    std::string value = option.contains("value") ? text_of(option.at("value")) : "";
    if (value.empty()) value = "(empty)";
    std::string title = fmt::format("{} = {}", name, value);
    const std::string from = fmt::format("({})", origin);
    fmt::print("  {:<{}} {}\n", title, std::max<std::size_t>(title.size(), kColumns - 3 - from.size()),
               tinted(from, origin == "default" ? Tint::faint : Tint::strong));
    fmt::print("{}", wrap(option.value("help", ""), 6, 6));
  }
}

void print_reach(const Json& info, bool tried) {
  heading("memory kinds, and how NICs reach them");
  if (!tried) {
    fmt::print("{}", wrap("not tried: --no-trials", 2, 2));
    return;
  }
  fmt::print("{}", reach_page(info));
  heading("requirements");
  fmt::print("{}", requirements_page(info));
}

void print_between(const Json& between) {
  heading("between processes of this host");
  row("memory", between.at("process_vm").value("text", "?"));
  row("", between.at("userfaultfd").value("text", "?"));
  row("packets", between.at("port_4791").value("text", "?"));
  row("", between.value("other_users", "?"));
}

// Another Node's counters. The one opened here has the secret, and is not shown.
int run_counters_of(Node& node, const InfoArguments& arguments) {
  const auto text = node.counters_of(arguments.of);
  if (!text) return complain(text.error());
  const Json told = parse_json(*text);
  if (!told.is_object()) return complain(fail(Code::system, "the Node's answer is not JSON: {}", *text));
  if (arguments.json) {
    fmt::print("{}\n", json_pages(told));
    return kDone;
  }
  fmt::print("{}{}",
             wrap(fmt::format("strait {}, listens on {}, progress by {}", told.value("version", "?"),
                              told.value("address", "?"), told.value("progress", "?")),
                  0, 2),
             counters_page(told));
  return kDone;
}

int run_info(const InfoArguments& arguments) {
  if (!arguments.of.empty() && (!arguments.counters || arguments.options)) {
    return complain(with_remedy(fail(Code::invalid, "--of asks a running Node for its counters, and for nothing else"),
                                "strait info --counters --of HOST:PORT"));
  }
  const Json between = between_processes();  // first: the Node has threads
  auto node = Node::open({.settings = parse_settings(arguments.pairs)});
  if (!node) return complain(node.error());
  if (!arguments.of.empty()) return run_counters_of(*node, arguments);
  const auto text = node->info();
  if (!text) return complain(text.error());
  Json info = parse_json(*text);
  if (!info.is_object()) return complain(fail(Code::system, "the library's own description is not JSON: {}", *text));
  const bool only_some = arguments.options || arguments.counters;
  const bool tried = !arguments.no_trials && (arguments.json || !only_some);
  if (tried) {
    const auto reach = node->reach(arguments.every_device);
    if (!reach) return complain(reach.error());
    const Json found = parse_json(*reach);
    if (!found.is_object()) return complain(fail(Code::system, "the library's answer is not JSON: {}", *reach));
    info.update(found);
  }
  info["between_processes"] = between;
  if (arguments.json) {
    fmt::print("{}\n", json_pages(info));
    return kDone;
  }
  fmt::print("{}", wrap(fmt::format("strait {}, listens on {}, progress by {}", info.value("version", "?"),
                                    info.value("address", "?"), info.value("progress", "?")),
                        0, 2));
  const Json numa = info.value("numa", Json::object());
  const std::string refused = numa.value("refused", "");
  fmt::print("{}", wrap(fmt::format("NUMA: {}{}", numa.value("text", "?"),
                                    refused.empty() ? std::string() : "; the kernel refused: " + refused),
                        0, 2));
  for (const Json& warning : info.value("warnings", Json::array())) {
    fmt::print(stderr, "{}", wrap("strait: warning: " + text_of(warning), 0, 2));
  }
  if (!only_some) {
    print_devices(info, tried);
    print_between(between);
    print_reach(info, tried);
  }
  if (arguments.options) print_options(info);
  if (arguments.counters) fmt::print("{}", counters_page(info));
  if (!only_some) {
    fmt::print("\n{}",
               wrap("`strait info --options` lists the options with value and origin, --counters what was counted, "
                    "--json everything.",
                    0, 0));
  }
  return kDone;
}

}  // namespace

void add_info(CommandLine& line) {
  auto arguments = std::make_shared<InfoArguments>();
  Command command = line.add("info", "Devices, memory kinds, NICs and options of this machine.", kInfoManual);
  command.flag("--options", arguments->options,
               "Every option with its value, where that comes from, and what it does.");
  command.flag("--counters", arguments->counters,
               "What the Node and its NICs have counted by now, in groups; with packets also those dropped, by "
               "reason. `strait demo` and `strait perf` have it too, for their own run.");
  command.text("--of", arguments->of,
               {"HOST:PORT", "With --counters: ask the running Node at this address, not one opened for it.", {}, {}});
  command.flag("--every-device", arguments->every_device, "Try every device, not one of each kind.");
  command.flag("--no-trials", arguments->no_trials, "Try nothing: devices are listed and left alone.");
  command.flag("--json", arguments->json, "Everything, as one JSON object.");
  add_settings(command, arguments->pairs);
  command.on_run([arguments] { return run_info(*arguments); });
}

}  // namespace strait::tool
