// SPDX-License-Identifier: Apache-2.0
// The planner on recorded machines: what it chooses, why not the rest, and how that looks.
#include "plan/planner.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace strait::plan {
namespace {

const Source kSoft{"soft:0", true, true, "", true, true};
const Source kHost{"host", false, false, "", false, true};
const std::vector<Nic> kNic{{"strait0", true, true, true, false}};
const Peer kNear{"127.0.0.1:40123", Reach::same_host, true, ""};
const Peer kFar{"10.0.0.7:7471", Reach::other_host, false, ""};

std::string reason(const Plan& plan, Kind kind) {
  for (const Way& way : plan.ways) {
    if (way.kind == kind) return fmt::format("{}: {}", verdict_name(way.verdict), way.reason);
  }
  return "missing";
}

TEST(Planner, AcceleratorToAPeerOnThisHost) {
  const Plan plan = make_plan(kSoft, kNic, kNear, {});
  ASSERT_EQ(plan.ways.size(), 4u);
  ASSERT_TRUE(plan.chosen);
  EXPECT_EQ(plan.way()->name,
            "zero-copy: dma-buf -> strait0 -> ring grant, one copy by the owner's engine (process_vm_readv)");
  EXPECT_EQ(plan.ways[1].name, "zero-copy: dma-buf -> strait0 -> ring grant through the shared ring (two copies)");
  EXPECT_EQ(plan.ways[1].verdict, Verdict::yes);
  EXPECT_EQ(reason(plan, Kind::packets), "no: the peer is on this host");
  EXPECT_EQ(reason(plan, Kind::staged), "held: never silent: allowed only with allow_staging=1");
}

TEST(Planner, HostMemoryGoesAsPages) {
  const Plan plan = make_plan(kHost, kNic, kNear, {});
  EXPECT_EQ(plan.way()->name,
            "zero-copy: host pages -> strait0 -> ring grant, one copy by the owner's engine (process_vm_readv)");
  EXPECT_EQ(reason(plan, Kind::staged), "no: it is host memory already");
}

TEST(Planner, SameProcessNeedsNoPermission) {
  const Plan plan = make_plan(kSoft, kNic, {"self", Reach::same_process, false, "unused"}, {});
  EXPECT_EQ(plan.way()->name, "zero-copy: dma-buf -> strait0 -> ring grant, one copy by the owner's engine (memcpy)");
  EXPECT_EQ(reason(plan, Kind::packets), "no: the peer is in this process");
}

TEST(Planner, FallsBackToTheSharedRingAndSaysWhy) {
  const Plan plan = make_plan(kSoft, kNic, {"127.0.0.1:1", Reach::same_host, false, "Yama ptrace_scope is 1"}, {});
  EXPECT_EQ(plan.way()->kind, Kind::ring);
  EXPECT_EQ(reason(plan, Kind::copy), "no: the two processes may not read each other's memory: Yama ptrace_scope is 1");
  EXPECT_EQ(reason(make_plan(kSoft, kNic, {"p", Reach::same_host, false, ""}, {}), Kind::copy),
            "no: the two processes may not read each other's memory: not allowed");
}

TEST(Planner, AnotherHostHasNoWayYet) {
  const Plan plan = make_plan(kSoft, kNic, kFar, {.allow_staging = true});
  EXPECT_FALSE(plan.chosen);
  EXPECT_EQ(reason(plan, Kind::copy), "no: the peer is on another host");
  EXPECT_EQ(reason(plan, Kind::ring), "no: the peer is on another host");
  EXPECT_EQ(reason(plan, Kind::packets), "no: strait0 has no port for packets");
  EXPECT_EQ(reason(plan, Kind::staged), "no: no carrier reaches the peer");
  const auto way = plan.way();
  ASSERT_FALSE(way);
  EXPECT_EQ(way.error().code, Code::unsupported);
  EXPECT_TRUE(way.error().text.starts_with("there is no way from soft:0 to 10.0.0.7:7471 (ring grant, one copy: "))
      << way.error().text;
  EXPECT_TRUE(way.error().remedy.empty()) << "staging would not help";
}

TEST(Planner, ANicWithPacketsReachesAnotherHost) {
  const std::vector<Nic> nic{{"mlx5_0", false, true, false, true}};
  EXPECT_EQ(make_plan(kSoft, nic, kFar, {}).way()->name, "zero-copy: dma-buf -> mlx5_0 -> RoCEv2 packets");
}

TEST(Planner, StagingNeedsPermissionAndIsRefusedByZeroCopy) {
  const Source closed{"soft:0", true, false, "accelerator_export=0", false, true};
  const Plan held = make_plan(closed, kNic, kNear, {});
  EXPECT_FALSE(held.chosen);
  EXPECT_EQ(reason(held, Kind::copy), "no: soft:0 memory cannot be reached: accelerator_export=0");
  EXPECT_EQ(reason(held, Kind::ring), "no: soft:0 memory cannot be reached: accelerator_export=0");
  EXPECT_EQ(held.way().error().remedy, "Allow the copy through host memory with the option `allow_staging`.");

  EXPECT_EQ(make_plan(closed, kNic, kNear, {.allow_staging = true}).way()->kind, Kind::staged);

  const Plan refused = make_plan(closed, kNic, kNear, {.require_zero_copy = true, .allow_staging = true});
  EXPECT_FALSE(refused.chosen);
  EXPECT_EQ(reason(refused, Kind::staged), "no: refused by require=zero_copy");

  Source stuck = closed;
  stuck.can_copy = false;
  EXPECT_EQ(reason(make_plan(stuck, kNic, kNear, {.allow_staging = true}), Kind::staged),
            "no: soft:0 cannot copy to host memory");
}

TEST(Planner, APortIsReachedOnlyFromItsOwnProcess) {
  const Source port{"odd:0", true, false, "", true, true};
  const Plan plan = make_plan(port, kNic, kNear, {});
  EXPECT_EQ(plan.way()->name, "zero-copy: memory port -> strait0 -> ring grant through the shared ring (two copies)");
  EXPECT_EQ(reason(plan, Kind::copy),
            "no: odd:0 memory is reached through a port, which only its own process can call");
}

TEST(Planner, ForcedCarrier) {
  EXPECT_EQ(make_plan(kSoft, kNic, kNear, {.carrier = Carrier::grant}).way()->kind, Kind::copy);
  const Plan packets = make_plan(kSoft, kNic, kNear, {.carrier = Carrier::packets});
  EXPECT_FALSE(packets.chosen);
  EXPECT_EQ(reason(packets, Kind::copy), "no: carrier=roce was asked for");
  EXPECT_EQ(reason(packets, Kind::ring), "no: carrier=roce was asked for");
  EXPECT_EQ(reason(packets, Kind::packets), "no: strait0 has no port for packets");
  EXPECT_EQ(parse_carrier("auto").value(), Carrier::any);
  EXPECT_EQ(parse_carrier("grant").value(), Carrier::grant);
  EXPECT_EQ(parse_carrier("roce").value(), Carrier::packets);
  EXPECT_EQ(parse_carrier("pigeon").error().text, "\"pigeon\" is not a carrier: auto, grant or roce");
}

TEST(Planner, SeveralNicsTheFirstThatCan) {
  const std::vector<Nic> nics{{"old0", false, false, false, false}, {"strait0", true, true, true, false}};
  const Plan plan = make_plan(kSoft, nics, kNear, {});
  EXPECT_EQ(plan.way()->nic, "strait0");
  EXPECT_EQ(plan.ways[0].reason, "old0 imports no descriptors");
  EXPECT_FALSE(make_plan(kSoft, {}, kNear, {.allow_staging = true}).chosen);
  EXPECT_EQ(reason(make_plan(kSoft, {}, kNear, {.allow_staging = true}), Kind::staged), "no: there is no NIC");
}

TEST(Planner, TextFitsEightyColumns) {
  const Plan plan = make_plan(kSoft, kNic, kNear, {}, {0.4, 13.9});
  EXPECT_EQ(to_text(plan),
            "soft:0 -> 127.0.0.1:40123\n"
            "  chosen: zero-copy: dma-buf -> strait0 -> ring grant, one copy by the owner's\n"
            "  engine (process_vm_readv)\n"
            "  1 ring grant, one copy,       yes   strait0 reaches soft:0 memory as dma-buf;\n"
            "    strait0                           the peer is on this host: about 0.4 us +\n"
            "                                      13.9 GB/s\n"
            "  2 ring grant, two copies,     yes   strait0 reaches soft:0 memory as dma-buf;\n"
            "    strait0                           small operations always go this way: about\n"
            "                                      0.4 us + 7.0 GB/s\n"
            "  3 RoCEv2 packets, strait0     no    the peer is on this host\n"
            "  4 staged through host,        held  never silent: allowed only with\n"
            "    strait0                           allow_staging=1: about 0.4 us + 4.6 GB/s\n");
  Source odd = kSoft;
  odd.name = std::string(120, 'x');
  odd.exports_fd = false;
  odd.has_port = false;
  odd.export_refusal = std::string(300, 'y');
  for (const Peer& peer : {kNear, kFar}) {
    std::istringstream lines(to_text(make_plan(odd, kNic, peer, {})));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Planner, ANicWithAWireOfItsOwnUsesIt) {
  const std::vector<Nic> verbs{{"rxe0", true, true, false, true, false, true}};
  for (const Peer& peer : {kNear, kFar, Peer{"self", Reach::same_process, false, ""}}) {
    const Plan plan = make_plan(kSoft, verbs, peer, {});
    ASSERT_TRUE(plan.chosen) << peer.name;
    EXPECT_EQ(plan.way()->name, "zero-copy: mapped memfd -> rxe0 -> RoCEv2 packets");
    EXPECT_EQ(reason(plan, Kind::copy), "no: rxe0 shares no rings with peers: it has a wire of its own");
    EXPECT_EQ(reason(plan, Kind::ring), "no: rxe0 shares no rings with peers: it has a wire of its own");
  }
  EXPECT_EQ(make_plan(kHost, verbs, kNear, {}).way()->name, "zero-copy: host pages -> rxe0 -> RoCEv2 packets");
  EXPECT_FALSE(make_plan(kHost, verbs, kNear, {.carrier = Carrier::grant}).chosen);
}

TEST(Planner, JsonHasEverything) {
  const nlohmann::json json = to_json(make_plan(kSoft, kNic, kNear, {}, {0.4, 14}));
  EXPECT_EQ(json["from"], "soft:0");
  EXPECT_EQ(json["to"], "127.0.0.1:40123");
  EXPECT_EQ(json["chosen"], 0);
  ASSERT_EQ(json["ways"].size(), 4u);
  EXPECT_EQ(json["ways"][0]["kind"], "copy");
  EXPECT_EQ(json["ways"][0]["verdict"], "yes");
  EXPECT_EQ(json["ways"][1]["estimate"]["gb_per_s"], 7.0);
  EXPECT_TRUE(json["ways"][2]["estimate"].is_null());
  EXPECT_EQ(json["ways"][3]["verdict"], "held");
  EXPECT_TRUE(to_json(make_plan(kSoft, kNic, kFar, {}))["chosen"].is_null());
}

}  // namespace
}  // namespace strait::plan
