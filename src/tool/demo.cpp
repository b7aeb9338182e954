// SPDX-License-Identifier: Apache-2.0
// strait demo: two processes, a buffer in accelerator memory in each, every operation, every byte checked.
#include "tool/demo.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/options.hpp"
#include "sys/clock.hpp"
#include "tool/demo_story.hpp"
#include "tool/manual.hpp"
#include "tool/text.hpp"

namespace strait::tool {
namespace {

const Manual kManual{
    .name = "strait demo - see it work: two processes, accelerator memory on both sides",
    .synopsis = "strait demo [--json] [--size BYTES] [--device NAME] [--set NAME=VALUE]...",
    .description =
        "Starts a second process, allocates a buffer in accelerator memory in each, shares them, and moves bytes "
        "between "
        "them: put, get, fetch-add, compare-swap, send with an immediate, put with a signal. After each operation "
        "every "
        "byte is compared with what it must be, by the process in whose memory it lies. It also tries what must not "
        "work: "
        "a "
        "put past the end of a region, and a put to a region that was revoked.\n"
        "\n"
        "Says on the way what was found, how the memory was made reachable, which path was chosen and why not another. "
        "Ends with a short table of latency and bandwidth beside memcpy, measured in the same run.\n"
        "\n"
        "Needs no RDMA hardware and no accelerator: software devices stand in for them and are marked (software).",
    .examples =
        "strait demo\n"
        "strait demo --json | jq '.steps[] | {name, verified}'\n"
        "strait demo --size 64M --set accelerator_memory=512M",
    .environment = {},
};

Result<Stage> set_the_stage(const DemoOptions& options) {
  // Before the Node opens: a process with queues and threads should not fork.
  STRAIT_TRY(auto other, OtherProcess::start(options));
  STRAIT_TRY(auto node, Node::open({.settings = options.settings}));
  pin_side(0);
  STRAIT_TRY(auto device, share_buffer(node, options.length, options.device));
  STRAIT_TRY(auto host, share_buffer(node, options.length, "host"));
  STRAIT_TRY(const Json hello, other.answer());
  STRAIT_TRY(auto peer, node.connect(other.address(), {.deadline = Duration(kDemoPatienceNs)}));
  STRAIT_TRY(auto device_target, peer.lookup("demo/device"));
  STRAIT_TRY(auto host_target, peer.lookup("demo/host"));
  return Stage{options,         std::move(other), std::move(node), std::move(device),
               std::move(host), std::move(peer),  device_target,   host_target};
}

Status play(Stage& stage, Story& story) {
  STRAIT_TRY(const std::string found, stage.node.info());
  story.found(Json::parse(found, nullptr, false));
  story.shared(stage.options.device, Json::parse(stage.device.region.path(), nullptr, false));
  story.path(stage.peer.path(), Json::parse(stage.device.region.path(), nullptr, false));
  for (const auto step :
       {step_put, step_get, step_host_put, step_fetch_add, step_compare_swap, step_send, step_signal, step_bounds}) {
    STRAIT_TRY(Step done, step(stage));
    story.step(std::move(done));
  }
  STRAIT_TRY(auto rows, measure_speed(stage));
  STRAIT_TRY(Step revoked, step_revoke(stage));  // last: it takes the memory away that all the others use
  story.step(std::move(revoked));
  story.speed(std::move(rows), stage.options.device);
  return stage.other.finish();
}

int run_demo(const DemoOptions& options) {
  const std::int64_t start_ns = sys::now_ns();
  Story story(options.json, options.device);
  auto stage = set_the_stage(options);
  auto played = stage ? play(*stage, story) : Status(std::move(stage).error());
  // An operation that failed because the other process died should say so, not name its own symptom.
  if (!played && stage) {
    if (auto ended = stage->other.ended()) played = Status(std::move(*ended));
  }
  const double seconds = static_cast<double>(sys::now_ns() - start_ns) * 1e-9;
  if (!played) {
    story.failed(played.error(), seconds);
    return complain(played.error());
  }
  return story.finish(seconds) ? kDone : kFailed;
}

}  // namespace

void add_demo(CLI::App& root, Run& run) {
  struct Arguments {
    DemoOptions options;
    std::string size = "16M";
    std::vector<std::string> pairs;
    bool peer = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *root.add_subcommand("demo", "See it work: two processes, accelerator memory on both sides.");
  command.formatter(std::make_shared<ManualPage>(kManual));
  command.set_help_flag("-h,--help", "This page.");
  command.add_flag("--json", arguments->options.json,
                   "One JSON object instead of the story: every step with \"verified\": true or false.");
  command.add_option("--size", arguments->size, "Length of each buffer, 64K to 1G.")
      ->type_name("BYTES")
      ->default_str("16M")
      ->check([](const std::string& text) {
        const auto bytes = parse_bytes(text);
        if (!bytes) return bytes.error().text;
        return *bytes < (64 << 10) || *bytes > (1 << 30) || *bytes % 8 != 0
                   ? "--size takes 64K to 1G, a multiple of 8, not " + text
                   : std::string();
      });
  command.add_option("--device", arguments->options.device, "Where the buffers lie: a name of `strait info`, or host.")
      ->type_name("NAME")
      ->default_str("soft:0");
  add_settings(command, arguments->pairs);
  command.add_flag("--peer", arguments->peer, "The second process.")->group("");
  command.callback([arguments, &run] {
    run = [arguments] {
      arguments->options.length = static_cast<std::uint64_t>(parse_bytes(arguments->size).value());
      arguments->options.settings = parse_settings(arguments->pairs);
      return arguments->peer ? run_demo_peer(arguments->options) : run_demo(arguments->options);
    };
  });
}

}  // namespace strait::tool
