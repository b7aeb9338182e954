// SPDX-License-Identifier: Apache-2.0
// The command line: reads it, and hands over to the sub-command that was named.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "strait/c.h"
#include "tool/manual.hpp"
#include "tool/text.hpp"
#include "tool/tool.hpp"

namespace {

using namespace strait::tool;

const Manual kManual{
    .name = "strait - move bytes between accelerator memory and the network, and see how",
    .synopsis = "strait COMMAND [OPTIONS]\nstrait COMMAND --help\nstrait --version",
    .description =
        "strait takes a pointer, finds out whose memory it is, makes it reachable for a NIC without copying, and moves "
        "bytes to and from a peer. This tool shows it at work, shows what it finds on this machine, and measures it.\n"
        "\n"
        "Where there is no RDMA NIC and no accelerator, software devices stand in for them at their binary interface. "
        "They are marked (software) wherever they appear; their speed is not a NIC's.",
    .examples =
        "strait demo                      see it work, in a few seconds\n"
        "strait info                      what is on this machine\n"
        "strait perf --spawn              latency and bandwidth, one command",
    .environment = {},
};

std::string command_names(const CLI::App& root) {
  std::string names;
  for (const CLI::App* command : root.get_subcommands(static_cast<bool (*)(const CLI::App*)>(nullptr))) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

int wrong_use(const CLI::ParseError& error, const CLI::App& root, std::string_view first) {
  if (root.get_subcommands().empty() && !first.starts_with("-")) {
    const std::string cause = first.empty() ? "no command was given" : fmt::format("there is no command '{}'", first);
    fmt::print(stderr, "strait: {}\n  Commands: {}. `strait --help` says what they do.\n", cause, command_names(root));
    return kWrongUse;
  }
  std::string command = "strait";
  for (const CLI::App* chosen : root.get_subcommands()) command += " " + chosen->get_name();
  const std::string_view what = error.what();
  fmt::print(stderr, "{}{}", wrap(fmt::format("strait: {}", what.substr(0, what.find('\n'))), 0, 2),
             wrap(fmt::format("`{} --help` lists what it takes.", command), 2, 2));
  return kWrongUse;
}

int parse_and_run(int argc, char** argv) {
  CLI::App root("moves bytes between accelerator memory and the network", "strait");
  Run run;
  root.formatter(std::make_shared<ManualPage>(kManual));
  root.set_help_flag("-h,--help", "This page.");
  root.set_version_flag("--version", fmt::format("strait {}", strait_version()), "The version, and nothing else.");
  root.require_subcommand(1);
  add_demo(root, run);
  add_info(root, run);
  add_perf(root, run);
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& request) {  // help and version
    return root.exit(request);
  } catch (const CLI::ParseError& error) {
    return wrong_use(error, root, argc > 1 ? argv[1] : "");
  }
  return run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const strait::Failure& failure) {
    return complain(failure.error());
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}", wrap(fmt::format("strait: {}", failure.what()), 0, 2));
    return kFailed;
  }
}
