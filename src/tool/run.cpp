// SPDX-License-Identifier: Apache-2.0
// strait run: another program, with software RDMA NICs in front of it.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/options.hpp"
#include "soft/cassini_host/places.hpp"
#include "soft/cassini_host/trial.hpp"
#include "soft/host/program.hpp"
#include "soft/host/report.hpp"
#include "soft/host/root.hpp"
#include "strait/c.h"
#include "sys/beside.hpp"
#include "sys/command.hpp"
#include "sys/files.hpp"
#include "tool/command.hpp"
#include "tool/run.hpp"
#include "tool/text.hpp"
#include "tool/tool.hpp"

namespace strait::tool {
namespace {

namespace host = soft::host;

const Manual kRunManual{
    .name = "strait run - run a program as if this machine had RDMA NICs",
    .synopsis = "strait run [OPTIONS] -- PROGRAM [ARGUMENTS]...\nstrait run [OPTIONS] --shell",
    .description =
        "Runs PROGRAM with software NICs: it finds the device nodes and the files under /sys that libibverbs looks "
        "for, "
        "and what it does with them is answered by the software ConnectX. The program, libibverbs and libmlx5 are the "
        "ones that are installed; nothing is rebuilt. No RDMA in the kernel, no root and no module is needed.\n"
        "\n"
        "Everything that PROGRAM starts sees the devices too, as long as the environment is passed on. Runs side by "
        "side "
        "on one host reach each other; their devices have the addresses of the host.\n"
        "\n"
        "The devices are shown by a preloaded library. Programs that no library can be preloaded into (static ones, "
        "those that run with other rights than yours) are refused. What a program does with system calls of its own, "
        "past "
        "the C library, is not seen: to such code there are no devices.\n"
        "\n"
        "With --accelerators, PROGRAM also finds software accelerators: the vendors' libraries that it loads "
        "(libcuda.so.1 "
        "and others) are then ours, and there are as many devices as were asked for. They have memory, copies, streams "
        "and exports, and run no kernels; a call that they do not know answers \"not supported\" and is listed at the "
        "end.\n"
        "\n"
        "With --cassini, PROGRAM also finds Slingshot NICs, as a simulator's. A process in the background has the "
        "cards; "
        "all programs of one user share it, so what runs side by side can talk. --strict and --faults are theirs, too, "
        "each process with its own plan; of the faults, those that a program on a Cassini could see. "
        "FI_MR_CACHE_MONITOR is set to "
        "disabled "
        "for PROGRAM unless it is set: libfabric's own watch over memory would put its mmap in front of the one that "
        "shows the devices. Runs side by side have one process with the cards; with --set cassini=NAME a run has cards "
        "of its own. What becomes of device memory that moves is --set cassini_moves=tear_down, as the driver does "
        "it, or remap.\n"
        "\n"
        "When PROGRAM has ended, one line on stderr says what the devices did, and what they still had to hold.",
    .examples =
        "strait run -- ibv_devinfo -v\n"
        "strait run -- ibv_rc_pingpong -g 0 &\n"
        "strait run -- ibv_rc_pingpong -g 0 127.0.0.1\n"
        "strait run --faults drop=2%,seed=7 --pcap w.pcapng -- ib_write_bw -x 0\n"
        "strait run --strict -- ./my_program\n"
        "strait run --accelerators cuda:2,rocm:1x64M,gaudi:8 -- ./my_program\n"
        "strait run --cassini 1 --nics 0 -- fi_pingpong -p cxi\n"
        "strait run --nics 2 --shell",
    .environment = {},
    .exits =
        "That of PROGRAM, or 128 + n when signal n ended it. If it was not started:\n"
        "  1    failed; the cause and what to try are on stderr\n"
        "  2    wrong use\n"
        "  3    not possible here, or PROGRAM would not see the devices\n"
        "  126  PROGRAM may not be executed, or is none\n"
        "  127  there is no such PROGRAM\n"
        "With --strict, 66 when the devices found something that PROGRAM may not do.",
};

constexpr int kMayNotRun = 126;
constexpr int kNoProgram = 127;

struct RunArguments {
  std::vector<std::string> command;
  std::vector<std::string> pairs;
  std::uint32_t nics = 1;
  std::uint32_t cassinis = 0;
  std::string accelerators;
  std::string seed;
  std::string faults;
  std::string pcap;
  std::string peer_memory;
  bool strict = false;
  bool background = false;
  bool trap_doorbells = false;
  bool watch = false;
  bool shell = false;
  bool quiet = false;
};

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

// Options of the devices, which open in the program's processes: through its environment.
Result<Settings> device_settings(const RunArguments& arguments, const std::string& root) {
  Settings settings = parse_settings(arguments.pairs);
  std::string faults = arguments.faults;
  if (!arguments.seed.empty()) faults += (faults.empty() ? "seed=" : ",seed=") + arguments.seed;
  if (!faults.empty()) replace_setting(settings, "faults", std::move(faults));
  if (!arguments.peer_memory.empty()) replace_setting(settings, "peer_memory", arguments.peer_memory);
  if (arguments.strict) replace_setting(settings, "strict", "1");
  if (arguments.background) replace_setting(settings, "background", "1");
  if (arguments.trap_doorbells) replace_setting(settings, "trap_doorbells", "1");
  if (!arguments.pcap.empty()) {
    // Shared memory has no packets.
    replace_setting(settings, "carrier", "roce");
    replace_setting(settings, "capture", fmt::format("{}{}/%p.pcapng", root, host::kCaptures));
  }
  STRAIT_CHECK(Options::read(settings));  // better said now than by a program that finds no device
  for (auto& [name, value] : settings) name = environment_name(name);
  return settings;
}

// Of what the program will find; empty: nothing.
std::string setting(const Settings& settings, std::string_view name) {
  for (const auto& [each, value] : settings) {
    if (each == name) return value;
  }
  const char* const inherited = std::getenv(std::string(name).c_str());
  return inherited != nullptr ? inherited : "";
}

// Who asks the kernel for one of our paths did so past the preload, which asks for files in the root.
sys::OpenWatch::Heard report_strays(const host::Root& root) {
  constexpr std::size_t kMostReports = 20;  // a program that looks again and again says nothing new
  return [&root, seen = std::make_shared<std::set<std::pair<pid_t, std::string>>>()](pid_t process,
                                                                                     const std::string& path) {
    if (!root.claimed(path) || seen->size() >= kMostReports || !seen->emplace(process, path).second) return;
    std::string name = sys::read_small_file(fmt::format("/proc/{}/comm", process).c_str());
    while (!name.empty() && name.back() == '\n') name.pop_back();
    fmt::print(stderr, "{}",
               wrap(fmt::format("strait run: process {} ({}) opened {} with a system call of its own, past the devices",
                                process, name, path),
                    0, 2));
  };
}

int not_found(const Error& error) {
  complain(error);
  return error.code == Code::gone ? kNoProgram : kMayNotRun;
}

// 41022 as "41 022".
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ' ');
  return text;
}

int finish(const RunArguments& arguments, const host::Root& root, const std::optional<Cassinis>& cassinis, int status) {
  host::RunTotals totals = host::read_reports(root.path());
  if (cassinis) cassinis->add_to(totals);
  std::string captured;
  int exit_code = status;
  if (!arguments.pcap.empty()) {
    const auto joined = host::join_captures(root.path(), arguments.pcap);
    if (!joined) {
      complain(joined.error());
      if (exit_code == 0) exit_code = kFailed;
    } else {
      captured = arguments.pcap;
    }
  }
  if (!arguments.quiet) fmt::print(stderr, "{}", wrap(run_summary(totals, captured, arguments.watch), 0, 2));
  return exit_code;
}

int run(const RunArguments& arguments) {
  std::vector<std::string> words = arguments.command;
  if (arguments.shell) {
    const char* shell = std::getenv("SHELL");
    words = {shell != nullptr && *shell != '\0' ? shell : "/bin/sh"};
  }
  if (words.empty())
    return complain(with_remedy(fail(Code::invalid, "no program was named"),
                                "For example `strait run -- ibv_devinfo`; `strait run --help` says more."));
  if (arguments.shell && !arguments.command.empty())
    return complain(with_remedy(fail(Code::invalid, "--shell starts a shell, and no program beside it"),
                                "`strait run --help` says more."));
  if (arguments.nics == 0 && arguments.cassinis == 0 && arguments.accelerators.empty())
    return complain(with_remedy(fail(Code::invalid, "--nics 0 leaves no device at all"),
                                "It is for runs with --cassini or --accelerators; `strait run --help` says more."));
  const auto program = sys::find_program(words.front());
  if (!program) return not_found(program.error());
  const auto checked = host::check_program(*program);
  if (!checked && checked.error().code == Code::unsupported) return complain(checked.error());
  if (!checked) return not_found(checked.error());
  if (checked->go && !arguments.quiet)
    fmt::print(
        stderr, "{}",
        wrap(fmt::format("strait run: {} was built by the Go compiler: what it opens without libibverbs or another "
                         "C library, it opens past the devices.",
                         words.front()),
             0, 2));

  auto root = host::Root::create();
  if (!root) return complain(root.error(), "preparing the devices");
  if (const Status made = make_devices(*root, arguments.nics, arguments.cassinis); !made)
    return complain(made.error(), "preparing the devices");
  auto settings = device_settings(arguments, root->path());
  if (!settings) return complain(settings.error());
  const auto preload = preloads();
  if (!preload) return complain(preload.error());
  settings->emplace_back("LD_PRELOAD", *preload);
  settings->emplace_back("STRAIT_HOST_ROOT", root->path());
  // One store rings a doorbell then; libmlx5 would copy the work request there too, a fault for every eight bytes.
  if (setting(*settings, environment_name("trap_doorbells")) == "1") settings->emplace_back("MLX5_SHUT_UP_BF", "1");
  const auto hardware = add_accelerators(arguments.accelerators, *root, *settings);
  if (!hardware) return complain(hardware.error());

  std::optional<Cassinis> cassinis;
  if (arguments.cassinis != 0) {
    const auto fits = soft::cassini::TrialSettings::parse(false, 0, setting(*settings, environment_name("faults")));
    if (!fits) return complain(fits.error());
    auto started = Cassinis::start(setting(*settings, environment_name("cassini")), *settings);
    if (!started) return complain(started.error(), "starting the Cassinis");
    cassinis = std::move(*started);
  }

  const auto status = sys::run_command({.program = *program,
                                        .arguments = words,
                                        .environment = *settings,
                                        .heard = arguments.watch ? report_strays(*root) : nullptr});
  std::fflush(stdout);
  return status ? finish(arguments, *root, cassinis, *status) : not_found(status.error());
}

}  // namespace

namespace {

// What accelerators did not know, and what is left in them.
std::string accelerator_summary(const host::RunTotals& totals) {
  constexpr std::string_view kUnknown = "unsupported.";
  std::string text;
  if (const std::uint64_t n = totals.get("accel.unfreed"); n != 0)
    text += fmt::format(", {} allocation{} not freed ({} bytes)", grouped(n), n == 1 ? "" : "s",
                        grouped(totals.get("accel.unfreed_bytes")));
  if (const std::uint64_t n = totals.get("accel.held_by_fds"); n != 0)
    text += fmt::format(", {} freed but held by open descriptors ({} bytes)", grouped(n),
                        grouped(totals.get("accel.held_by_fds_bytes")));
  std::string unknown;
  for (const auto& [name, count] : totals.counters) {
    if (name.starts_with(kUnknown))
      unknown += fmt::format("{}{} ({})", unknown.empty() ? "" : ", ", name.substr(kUnknown.size()), grouped(count));
  }
  if (!unknown.empty()) text += ", called but not supported: " + unknown;
  return text;
}

}  // namespace

std::string run_summary(const host::RunTotals& totals, const std::string& capture, bool watched) {
  if (totals.processes == 0) {
    std::string nothing = "strait run: no device was opened";
    if (!watched) nothing += " (a static program or raw system calls? try --watch)";
    return nothing;
  }
  std::string text = fmt::format("strait run: {} process{}", totals.processes, totals.processes == 1 ? "" : "es");
  const auto count = [&](const char* name, std::string_view what, bool always = false) {
    if (const std::uint64_t n = totals.get(name); n != 0 || always) text += fmt::format(", {} {}", grouped(n), what);
  };
  if (totals.counters.contains("packets_sent")) {
    count("packets_sent", "packets", true);
    count("drops_injected", "dropped on purpose");
    count("packets_resent", "resent");
  }
  count("messages_sent", "messages through shared memory");
  if (totals.get("messages_sent") != 0 && totals.get("links_bounced") != 0)
    text += " (large ones copied twice: no process_vm_readv)";
  if (totals.get("ports_private") != 0) text += ", other hosts out of reach (port 4791 is another user's)";
  if (totals.get("packets_sent") + totals.get("messages_sent") == 0 && !totals.counters.contains("packets_sent") &&
      totals.get("accel.processes") == 0 && !totals.counters.contains("cxi.commands"))
    text += ", no traffic";
  if (totals.counters.contains("cxi.commands")) {
    count("cxi.commands", "commands to Cassinis", true);
    count("cxi.puts", "puts");
    count("cxi.bytes", "bytes");
    count("cxi.faults_injected", "failed, lost or late on purpose");
  }
  count("doorbells_trapped", "doorbells trapped");
  count("strict_findings", "findings");
  text += accelerator_summary(totals);
  if (!capture.empty()) text += ", capture " + capture;
  return text;
}

void add_run(CommandLine& line) {
  const auto arguments = std::make_shared<RunArguments>();
  Command command = line.add("run", "Run a program as if this machine had RDMA NICs.", kRunManual);
  command.number("--nics", arguments->nics,
                 {.type = "N", .help = "How many NICs there are: strait0, strait1, ...", .fallback = "1", .check = {}},
                 0, kMostNics);
  command.number("--cassini", arguments->cassinis,
                 {.type = "N",
                  .help = "How many Slingshot NICs (Cassini) there are: /dev/cxi0, ... and what libcxi and the cxi "
                          "provider of libfabric look for. With --nics 0 beside it there are no others.",
                  .fallback = "0",
                  .check = {}},
                 0, soft::cassini::kMostShown);
  command.text(
      "--accelerators", arguments->accelerators,
      {.type = "SPEC",
       .help = "Software accelerators, as cuda:2,rocm:1,gaudi:8: how many of which vendor; cuda:2x64M gives each "
               "64 MiB of memory instead of 1 GiB, cuda:2@map lets the CPU map its dma-bufs, rocm:1@bar lets it reach "
               "all memory, gaudi:8@2021 is the first generation with its library of 2021.",
       .fallback = {},
       .check = check_accelerators});
  command.text("--seed", arguments->seed,
               {.type = "S",
                .help = "Seed of what --faults and --strict do at random: the same seed, the same decisions.",
                .fallback = {},
                .check = [](const std::string& text) { return check_faults("seed=" + text); }});
  command.text(
      "--faults", arguments->faults,
      {.type = "SPEC",
       .help = "What the NICs and Cassinis do wrong on purpose; `strait faults --help` says what can be written "
               "here.",
       .fallback = {},
       .check = check_faults});
  command.text("--peer-memory", arguments->peer_memory,
               {.type = "WAYS",
                .help = "What answers for an accelerator's pointer that PROGRAM gives to ibv_reg_mr as it is: the "
                        "peer-memory clients nvidia (or nvidia_persistent) and amd, p2p for nvidia_p2p pages, "
                        "several separated by commas; none: such a call fails with EFAULT.",
                .fallback = "none",
                .check = {}});
  command.flag(
      "--strict", arguments->strict,
      "The NICs land bytes late and out of order, within what RDMA allows, and report what PROGRAM may not do. "
      "Cassinis read commands late and report what PROGRAM may not do with them.");
  command.flag(
      "--background", arguments->background,
      "The NICs work in a thread of their own all the time, instead of within the calls that PROGRAM makes. For "
      "programs that wait by looking at memory and call nothing meanwhile, such as ib_write_lat. Where a process has "
      "only one processor, the thread and PROGRAM's calls take turns.");
  command.flag(
      "--trap-doorbells", arguments->trap_doorbells,
      "PROGRAM's doorbell pages cannot be written: each store faults, and the handler rings. For programs that "
      "post by hand, past ibv_post_send, and call nothing afterwards. A handler of PROGRAM's own for SIGSEGV "
      "has to be set before the first queue pair is made. MLX5_SHUT_UP_BF is set to 1 for PROGRAM.");
  command.text(
      "--pcap", arguments->pcap,
      {.type = "FILE",
       .help = "Capture all packets of all processes, for Wireshark (pcapng). Everything then goes by packets, "
               "also between processes of one host.",
       .fallback = {},
       .check = {}});
  command.flag(
      "--watch", arguments->watch,
      "Report processes that open the devices' paths with system calls of their own, past the C library, and so "
      "do not find them. Opening files takes longer, and programs that run with other rights (sudo) do not get "
      "them.");
  command.flag("--shell", arguments->shell, "Start $SHELL instead of a program.");
  command.flag("-q,--quiet", arguments->quiet, "Without the line at the end.");
  add_settings(command, arguments->pairs);
  command.rest(arguments->command);
  command.on_run([arguments] { return run(*arguments); });
}

}  // namespace strait::tool
