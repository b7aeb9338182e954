// SPDX-License-Identifier: Apache-2.0
// strait demo: two processes, a buffer in accelerator memory in each, every operation, every byte checked.
#include "tool/demo.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/options.hpp"
#include "sys/clock.hpp"
#include "tool/command.hpp"
#include "tool/demo_story.hpp"
#include "tool/text.hpp"

namespace strait::tool {
namespace {

const Manual kDemoManual{
    .name = "strait demo - see it work: two processes, accelerator memory on both sides",
    .synopsis =
        "strait demo [--json] [--size BYTES] [--device NAME] [--counters]\n"
        "            [--no-packets | --require-packets] [--faults SPEC]\n"
        "            [--capture FILE] [--set NAME=VALUE]...",
    .description =
        "Starts a second process, allocates a buffer in accelerator memory in each, shares them, and moves bytes "
        "between them: put, get, fetch-add, compare-swap, send with an immediate, put with a signal. After each "
        "operation every byte is compared with what it must be, by the process in whose memory it lies; one wrong byte "
        "is exit status 1. It also tries what must not work: a put past the end of a region, and a put to a region "
        "that was revoked.\n"
        "\n"
        "Says on the way what was found, how the memory was made reachable, which path was chosen and why not another. "
        "Then comes a short table of latency and bandwidth beside memcpy, measured in the same run.\n"
        "\n"
        "Then the same steps once more, smaller, as RoCEv2 packets between the two processes, a few of which are lost, "
        "doubled or overtaken on purpose: what arrives must still be right. Where packets cannot be used (something "
        "else owns UDP port 4791, such as the kernel's rxe) the demo says why. When carrier was set, all of it runs "
        "over that carrier, once.\n"
        "\n"
        "Needs no RDMA hardware and no accelerator: software devices stand in for them and are marked (software).",
    .examples =
        "strait demo\n"
        "strait demo --json | jq '.steps[] | {name, carrier, verified}'\n"
        "strait demo --faults drop=5%,seed=11 --capture demo.pcapng\n"
        "strait demo --size 64M --set accelerator_memory=512M",
    .environment = {},
};

// `opened` tells whether both Nodes came up: a failure before that means that this machine has not what it takes.
Result<Stage> set_the_stage(const DemoOptions& options, bool& opened) {
  // Before the Node opens: a process with queues and threads should not fork.
  STRAIT_TRY(auto other, OtherProcess::start(options));
  Settings settings = options.settings;
  if (!options.capture.empty()) replace_setting(settings, "capture", options.capture);
  STRAIT_TRY(auto node, Node::open({.settings = settings}));
  pin_side(0);
  STRAIT_TRY(auto device, share_buffer(node, options.length, options.device));
  STRAIT_TRY(auto host, share_buffer(node, options.length, "host"));
  STRAIT_CHECK(other.await_hello());
  opened = true;
  STRAIT_TRY(auto peer, node.connect(other.address(), {.deadline = kDemoPatience}));
  STRAIT_TRY(auto device_target, peer.lookup("demo/device"));
  STRAIT_TRY(auto host_target, peer.lookup("demo/host"));
  return Stage{options,         std::move(other), std::move(node), std::move(device),
               std::move(host), std::move(peer),  device_target,   host_target};
}

// All but the last, which takes the memory away that the others use.
Status play_steps(Stage& stage, Story& story) {
  for (const auto step :
       {step_put, step_get, step_host_put, step_fetch_add, step_compare_swap, step_send, step_signal, step_bounds}) {
    STRAIT_TRY(Step done, step(stage));
    story.step(std::move(done));
  }
  return {};
}

Status finish(Stage& stage, Story& story) {
  if (stage.options.counters) {
    STRAIT_TRY(const std::string info, stage.node.info());
    story.counters(info);
  }
  return stage.other.finish();
}

Status play(Stage& stage, Story& story) {
  STRAIT_TRY(const std::string found, stage.node.info());
  story.found(found);
  story.shared(stage.options.device, stage.device.region.path());
  story.path(stage.peer.path(), stage.device.region.path());
  STRAIT_CHECK(play_steps(stage, story));
  STRAIT_TRY(auto rows, measure_speed(stage));
  STRAIT_TRY(Step revoked, step_revoke(stage));
  story.step(std::move(revoked));
  story.speed(std::move(rows), stage.options.device);
  return finish(stage, story);
}

Status play_packets(Stage& stage, Story& story) {
  story.packets_begin(stage.peer.path(), stage.options.faults);
  STRAIT_CHECK(play_steps(stage, story));
  STRAIT_TRY(Step revoked, step_revoke(stage));
  story.step(std::move(revoked));
  STRAIT_TRY(const PacketTotals totals, count_packets(stage));
  story.packets_end(totals, stage.options.capture);
  return finish(stage, story);
}

using Play = Status (*)(Stage&, Story&);

Status perform(const DemoOptions& options, Story& story, Play play_part, bool& opened) {
  auto stage = set_the_stage(options, opened);
  if (!stage) return std::move(stage).error();
  auto played = play_part(*stage, story);
  // An operation that failed because the other process died should say so, not name its own symptom.
  if (!played) {
    if (auto ended = stage->other.ended()) return std::move(*ended);
  }
  return played;
}

// Why the part over packets is not played at all; empty: it is.
std::string reason_against_packets(const DemoOptions& options, const Story& story) {
  if (!options.packets) return "left out as --no-packets asks";
  if (story.carrier() == "verbs" || story.carrier() == "cxi")
    return "the NIC is not the software NIC, whose packets these would be";
  const auto carrier = story.given("carrier");
  if (carrier && *carrier != "auto") return fmt::format("all of it ran as carrier={} asks", *carrier);
  return {};
}

Status perform_both(const DemoOptions& options, Story& story, bool& not_possible) {
  DemoOptions first = options;
  first.capture.clear();
  bool opened = false;
  STRAIT_CHECK(perform(first, story, play, opened));
  if (const std::string why = reason_against_packets(options, story); !why.empty()) {
    story.packets_left_out(why);
    return {};
  }
  DemoOptions second = packet_options(options, story.given("faults"));
  opened = false;
  auto played = perform(second, story, play_packets, opened);
  // The same Nodes opened a second ago: what keeps them from it now are the packets.
  if (played || opened) return played;
  not_possible = true;
  if (options.require_packets) return played;
  story.packets_left_out("not possible here: " + played.error().text);
  return {};
}

int run_demo(const DemoOptions& options) {
  const std::int64_t start_ns = sys::now_ns();
  Story story(options.json, options.device);
  bool not_possible = false;
  const auto played = perform_both(options, story, not_possible);
  const double seconds = static_cast<double>(sys::now_ns() - start_ns) * 1e-9;
  if (!played) {
    story.failed(played.error(), seconds);
    const int status = complain(played.error(), not_possible ? "packets cannot be used here" : "");
    return not_possible ? kNotPossible : status;
  }
  return story.finish(seconds) ? kDone : kFailed;
}

std::string check_size(const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return bytes.error().text;
  return *bytes < (64 << 10) || *bytes > (1 << 30) || *bytes % 8 != 0
             ? "--size takes 64K to 1G, a multiple of 8, not " + text
             : std::string();
}

}  // namespace

void add_demo(CommandLine& line) {
  struct DemoArguments {
    DemoOptions options;
    std::string size = "16M";
    std::vector<std::string> pairs;
    bool peer = false;
    bool no_packets = false;
  };
  auto arguments = std::make_shared<DemoArguments>();
  Command command = line.add("demo", "See it work: two processes, accelerator memory on both sides.", kDemoManual);
  command.flag("--json", arguments->options.json,
               "One JSON object instead of the story: every step with \"verified\": true or false.");
  command.text("--size", arguments->size, {"BYTES", "Length of each buffer, 64K to 1G.", "16M", check_size});
  command.text("--device", arguments->options.device,
               {"NAME", "Where the buffers lie: a name of `strait info`, or host.", "soft:0", {}});
  command.flag("--no-packets", arguments->no_packets, "Leave out the part over packets.");
  command.flag("--require-packets", arguments->options.require_packets,
               "Exit status 3 when packets cannot be used on this machine. Without it the demo says why and goes on.");
  command.text(
      "--faults", arguments->options.faults,
      {"SPEC", "What goes wrong with the packets; `strait faults` explains a plan.", kDemoFaults, check_faults});
  command.text("--capture", arguments->options.capture,
               {"FILE", "Capture of the packets of the first process (pcapng, opens in Wireshark).", {}, {}});
  command.flag("--counters", arguments->options.counters, "What the first process counted, after each part.");
  add_settings(command, arguments->pairs);
  command.not_both("--no-packets", "--require-packets");
  command.hidden_flag("--peer", arguments->peer);
  command.hidden_text("--packets-from", arguments->options.packets_from);
  command.hidden_text("--damage", arguments->options.damage);
  command.on_run([arguments] {
    arguments->options.length = static_cast<std::uint64_t>(parse_bytes(arguments->size).value());
    arguments->options.settings = parse_settings(arguments->pairs);
    // The story is about rings and NICs: a grant by map would pass them by.
    if (!has_setting(arguments->options.settings, "grant"))
      replace_setting(arguments->options.settings, "grant", "ring");
    arguments->options.packets = !arguments->no_packets;
    return arguments->peer ? run_demo_peer(arguments->options) : run_demo(arguments->options);
  });
}

}  // namespace strait::tool
