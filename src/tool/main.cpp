// SPDX-License-Identifier: Apache-2.0
// The command line: reads it, and hands over to the sub-command that was named.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "strait/c.h"
#include "tool/command.hpp"
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
        "strait perf --spawn              latency and bandwidth, one command\n"
        "strait explain --table           which way bytes take between memories\n"
        "strait faults drop=2%,seed=7     what a plan of faults decides\n"
        "strait run -- ibv_devinfo        other people's RDMA programs",
    .environment = {},
};

}  // namespace

int main(int argc, char** argv) {
  try {
    CommandLine line(kManual, fmt::format("strait {}", strait_version()));
    add_demo(line);
    add_info(line);
    add_explain(line);
    add_perf(line);
    add_faults(line);
    add_run(line);
    return line.run(argc, argv);
  } catch (const strait::Failure& failure) {
    return complain(failure.error());
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}", wrap(fmt::format("strait: {}", failure.what()), 0, 2));
    return kFailed;
  }
}
