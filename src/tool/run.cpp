// SPDX-License-Identifier: Apache-2.0
// strait run: another program, with software RDMA NICs in front of it.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "soft/host/root.hpp"
#include "strait/c.h"
#include "sys/beside.hpp"
#include "sys/command.hpp"
#include "tool/command.hpp"
#include "tool/text.hpp"
#include "tool/tool.hpp"

namespace strait::tool {
namespace {

namespace host = soft::host;

const Manual kManual{
    .name = "strait run - run a program as if this machine had RDMA NICs",
    .synopsis = "strait run [OPTIONS] -- PROGRAM [ARGUMENTS]...",
    .description =
        "Runs PROGRAM with software NICs: it finds the device nodes and the files under /sys that libibverbs looks "
        "for, "
        "and what it does with them is answered by the software ConnectX. The program, libibverbs and libmlx5 are the "
        "ones that are installed; nothing is rebuilt. No RDMA in the kernel, no root and no module is needed.\n"
        "\n"
        "Everything that PROGRAM starts sees the devices too, as long as the environment is passed on.",
    .examples =
        "strait run -- ibv_devinfo -v\n"
        "strait run -- ibv_rc_pingpong -g 0 &\n"
        "strait run -- ibv_rc_pingpong -g 0 127.0.0.1",
    .environment = {},
    .exits =
        "That of PROGRAM, or 128 + n when signal n ended it. If it was not started:\n"
        "  1    failed; the cause and what to try are on stderr\n"
        "  2    wrong use\n"
        "  3    not possible here; the reason is on stderr\n"
        "  126  PROGRAM may not be executed\n"
        "  127  there is no such PROGRAM",
};

constexpr int kMayNotRun = 126;
constexpr int kNoProgram = 127;

struct Arguments {
  std::vector<std::string> command;
};

Result<host::Root> make_root() {
  STRAIT_TRY(host::Root root, host::Root::create());
  for (const char* claim : {"/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs"})
    STRAIT_CHECK(root.claim(claim));
  return root;
}

// In front of what the caller preloads already.
Result<std::string> preloads() {
  const std::string library =
      sys::beside_library_of(reinterpret_cast<const void*>(&strait_version), "libstrait-host.so.0");
  if (library.find('/') == std::string::npos)
    return with_remedy(fail(Code::unsupported, "libstrait-host.so is not where libstrait.so is"),
                       "It is part of the installation: build or install strait again.");
  if (library.find_first_of(": ") != std::string::npos)
    return with_remedy(fail(Code::unsupported, "libstrait-host.so cannot be preloaded from {}", library),
                       "The loader takes blanks and colons in the path for the end of it: install strait elsewhere.");
  const char* others = std::getenv("LD_PRELOAD");
  return others == nullptr || *others == '\0' ? library : library + ":" + others;
}

int run(const Arguments& arguments) {
  if (arguments.command.empty())
    return complain(with_remedy(fail(Code::invalid, "no program was named"),
                                "For example `strait run -- ibv_devinfo`; `strait run --help` says more."));
  const auto program = sys::find_program(arguments.command.front());
  if (!program) {
    complain(program.error());
    return program.error().code == Code::gone ? kNoProgram : kMayNotRun;
  }
  const auto root = make_root();
  if (!root) return complain(root.error(), "preparing the devices");
  const auto preload = preloads();
  if (!preload) return complain(preload.error());

  const auto status = sys::run_command({.program = *program,
                                        .arguments = arguments.command,
                                        .environment = {{"LD_PRELOAD", *preload}, {"STRAIT_HOST_ROOT", root->path()}}});
  if (!status) {
    complain(status.error());
    return kMayNotRun;
  }
  std::fflush(stdout);
  fmt::print(stderr, "strait run: {} ended with {}\n", arguments.command.front(), *status);
  return *status;
}

}  // namespace

void add_run(CommandLine& line) {
  const auto arguments = std::make_shared<Arguments>();
  Command command = line.add("run", "Run a program as if this machine had RDMA NICs.", kManual);
  command.rest(arguments->command);
  command.on_run([arguments] { return run(*arguments); });
}

}  // namespace strait::tool
