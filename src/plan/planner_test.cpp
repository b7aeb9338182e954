// SPDX-License-Identifier: Apache-2.0
// The planner on recorded machines: what it chooses, why not the rest, and how that looks.
#include "plan/planner.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace strait::plan {
namespace {

const Memory kSoft{"soft:0", true, true, "", true, true};
const Memory kHost{"host", false, false, "", false, true};
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

// What a NIC said when it was asked is in the plan, and so is the way that it took in the end.
TEST(Planner, WhatRegisteringToldOverrulesTheRecords) {
  Memory memory = kSoft;
  memory.reached_by = "peer-memory client";
  memory.refused = {{"dma-buf", "the accelerator's driver refused this NIC (errno 524)"}};
  const Plan plan = make_plan(memory, kNic, kNear, {});
  EXPECT_EQ(
      plan.way()->name,
      "zero-copy: peer-memory client -> strait0 -> ring grant, one copy by the owner's engine (process_vm_readv)");
  EXPECT_EQ(plan.way()->reason, "strait0 reaches soft:0 memory by peer-memory client; the peer is on this host");
  EXPECT_EQ(plan.ways[0].name, "dma-buf -> strait0 (soft:0)");
  EXPECT_EQ(reason(plan, Kind::reach), "no: the accelerator's driver refused this NIC (errno 524)");
  memory.reached_by.clear();
  memory.staged_only = true;
  EXPECT_EQ(reason(make_plan(memory, kNic, kNear, {}), Kind::ring),
            "no: strait0 does not reach soft:0 memory: not by dma-buf");
  EXPECT_FALSE(make_plan(memory, kNic, kNear, {}).chosen) << "staging is never silent";
  EXPECT_EQ(make_plan(memory, kNic, kNear, {.allow_staging = true}).way()->kind, Kind::staged);
  EXPECT_EQ(make_plan(memory, kNic, kNear, {.staging_asked = true}).way()->reason, "asked for by reach=staged");
  Peer owner = kNear;
  owner.memory = memory;
  const Plan there = make_plan(kHost, kNic, owner, {.allow_staging = true});
  EXPECT_FALSE(there.chosen);
  EXPECT_EQ(reason(there, Kind::copy), "no: at the other end, strait0 does not reach soft:0 memory: not by dma-buf");
  EXPECT_NE(to_text(there).find("at the other end, dma-buf,"), std::string::npos) << to_text(there);
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
  const Memory closed{"soft:0", true, false, "accelerator_export=0", false, true};
  const Plan held = make_plan(closed, kNic, kNear, {});
  EXPECT_FALSE(held.chosen);
  EXPECT_EQ(reason(held, Kind::copy), "no: soft:0 memory cannot be reached: accelerator_export=0");
  EXPECT_EQ(reason(held, Kind::ring), "no: soft:0 memory cannot be reached: accelerator_export=0");
  EXPECT_EQ(held.way().error().remedy, "Allow the copy through host memory with the option `allow_staging`.");

  EXPECT_EQ(make_plan(closed, kNic, kNear, {.allow_staging = true}).way()->kind, Kind::staged);

  const Plan refused = make_plan(closed, kNic, kNear, {.require_zero_copy = true, .allow_staging = true});
  EXPECT_FALSE(refused.chosen);
  EXPECT_EQ(reason(refused, Kind::staged), "no: refused by require=zero_copy");

  Memory stuck = closed;
  stuck.can_copy = false;
  EXPECT_EQ(reason(make_plan(stuck, kNic, kNear, {.allow_staging = true}), Kind::staged),
            "no: soft:0 cannot copy to host memory");
}

TEST(Planner, APortIsReachedOnlyFromItsOwnProcess) {
  const Memory port{"odd:0", true, false, "", true, true};
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

Costs timed() {
  Costs costs;
  costs.copy = {1.5, 9, true, "copy"};
  costs.out = {1, 10, true, "out"};
  costs.in = {1, 8, true, "in"};
  costs.memcpy = {0.02, 14, true, "memcpy"};
  costs.call = {0.6, 12, true, "call"};
  costs.ring = {0.9, 13, true, "ring"};
  costs.packets = {20, 0.8, true, "packets"};
  return costs;
}

TEST(Planner, TextFitsEightyColumns) {
  const Plan plan = make_plan(kSoft, kNic, kNear, {}, timed());
  EXPECT_EQ(to_text(plan),
            "soft:0 -> 127.0.0.1:40123\n"
            "  chosen: zero-copy: dma-buf -> strait0 -> ring grant, one copy by the owner's\n"
            "  engine (process_vm_readv)\n"
            "  1 ring grant, one copy,       yes   strait0 reaches soft:0 memory as dma-buf;\n"
            "    strait0                           the peer is on this host:\n"
            "                                      estimated 0.90 us + 12.0 GB/s\n"
            "  2 ring grant, two copies,     yes   strait0 reaches soft:0 memory as dma-buf;\n"
            "    strait0                           small operations always go this way:\n"
            "                                      estimated 0.90 us + 7.0 GB/s\n"
            "  3 RoCEv2 packets, strait0     no    the peer is on this host\n"
            "  4 staged through host,        held  never silent: allowed only with\n"
            "    strait0                           allow_staging=1:\n"
            "                                      estimated 1.9 us + 5.5 GB/s\n");
  Memory odd = kSoft;
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
  const nlohmann::json json = to_json(make_plan(kSoft, kNic, kNear, {}, timed()));
  EXPECT_EQ(json["from"], "soft:0");
  EXPECT_EQ(json["to"], "127.0.0.1:40123");
  EXPECT_EQ(json["chosen"], 0);
  ASSERT_EQ(json["ways"].size(), 4u);
  EXPECT_EQ(json["ways"][0]["kind"], "copy");
  EXPECT_EQ(json["ways"][0]["verdict"], "yes");
  EXPECT_EQ(json["ways"][1]["cost"]["gb_per_s"], 7.0);
  EXPECT_EQ(json["ways"][1]["cost"]["origin"], "estimated");
  EXPECT_EQ(json["ways"][1]["cost"]["basis"], "a message through the ring, and memcpy twice");
  EXPECT_EQ(json["ways"][2]["cost"]["origin"], "measured");
  EXPECT_TRUE(to_json(make_plan(kSoft, kNic, kNear, {}))["ways"][1]["cost"].is_null());
  EXPECT_EQ(json["ways"][3]["verdict"], "held");
  EXPECT_TRUE(to_json(make_plan(kSoft, kNic, kFar, {}))["chosen"].is_null());
}

Memory device(const char* name, const char* kind, const char* link = "") {
  Memory memory{name, true, true, "", false, true};
  memory.kind = kind;
  memory.link = link;
  memory.can_ipc = true;
  memory.software = true;
  return memory;
}
Memory host_memory() {
  Memory memory = kHost;
  memory.kind = "host";
  return memory;
}
Peer here(const Memory& to) {
  return {"this Node", Reach::same_process, false, "", to, true};
}

// Host and device, within a device, between devices, between vendors: what a copy inside one process takes.
TEST(Planner, PathsWithinAProcess) {
  const Memory cuda = device("cuda:0", "cuda");
  const Memory cuda1 = device("cuda:1", "cuda");
  const Memory gaudi = device("gaudi:0", "gaudi", "Gaudi link");
  const Memory gaudi1 = device("gaudi:1", "gaudi", "Gaudi link");
  const auto name = [](const Memory& from, const Memory& to) {
    return make_plan(from, kNic, here(to), {}).way()->name;
  };
  EXPECT_EQ(name(host_memory(), host_memory()), "memcpy");
  EXPECT_EQ(name(host_memory(), cuda), "copy engine of cuda:0");
  EXPECT_EQ(name(cuda, host_memory()), "copy engine of cuda:0");
  EXPECT_EQ(name(cuda, cuda), "copy engine of cuda:0");
  EXPECT_EQ(name(cuda, cuda1), "cuda:0 -> cuda:1 over PCIe");
  EXPECT_EQ(name(gaudi, gaudi1), "gaudi:0 -> gaudi:1 over Gaudi link");
  EXPECT_EQ(
      name(gaudi, cuda),
      "zero-copy: dma-buf -> strait0 -> ring grant, one copy by the owner's engine (memcpy) -> strait0 -> dma-buf "
      "(cuda:0)");
  const Plan mixed = make_plan(gaudi, kNic, here(cuda), {});
  EXPECT_EQ(mixed.to, "cuda:0");
  EXPECT_EQ(reason(mixed, Kind::engine), "no: the two ends are different devices");
  EXPECT_EQ(reason(mixed, Kind::link), "no: gaudi and cuda devices have no copies between them");
  EXPECT_EQ(reason(mixed, Kind::ipc), "no: both ends are in this process");
  EXPECT_EQ(reason(mixed, Kind::staged), "held: never silent: allowed only with allow_staging=1");
  EXPECT_EQ(make_plan(gaudi, {}, here(cuda), {.allow_staging = true}).chosen, std::nullopt) << "there is no NIC";
}

// Which of the figures belongs to which way, and which of them nobody has timed as such.
TEST(Planner, EveryWayHasItsOwnCost) {
  const auto cost = [](const Plan& plan, Kind kind) {
    for (const Way& way : plan.ways) {
      if (way.kind != kind) continue;
      return fmt::format("{} us + {:.3} GB/s, {}{}", way.cost.latency_us, way.cost.gb_s,
                         way.cost.measured ? "" : "estimated: ", way.cost.basis);
    }
    return std::string("missing");
  };
  const Memory cuda = device("cuda:0", "cuda");
  const Plan inside = make_plan(cuda, kNic, here(device("cuda:1", "cuda")), {}, timed());
  EXPECT_EQ(cost(inside, Kind::link), "1.5 us + 9 GB/s, copy");
  EXPECT_EQ(cost(inside, Kind::copy), "0.9 us + 13 GB/s, ring");
  EXPECT_EQ(cost(inside, Kind::staged), "2 us + 4.44 GB/s, estimated: out, then in");
  EXPECT_EQ(cost(make_plan(host_memory(), kNic, here(cuda), {}, timed()), Kind::engine), "1.5 us + 9 GB/s, copy");
  Peer near = kNear;
  near.memory = host_memory();
  const Plan beside = make_plan(cuda, kNic, near, {}, timed());
  EXPECT_EQ(cost(beside, Kind::map), "0.02 us + 14 GB/s, memcpy");
  EXPECT_EQ(cost(beside, Kind::call), "0.6 us + 12 GB/s, call");
  EXPECT_EQ(cost(beside, Kind::copy),
            "0.9 us + 12 GB/s, estimated: a message through the ring, and the copy between processes");
  Peer far = kFar;
  far.memory = host_memory();
  std::vector<Nic> sends = kNic;
  sends[0].has_packets = true;
  const Plan away = make_plan(cuda, sends, far, {}, timed());
  EXPECT_EQ(cost(away, Kind::packets), "20 us + 0.8 GB/s, estimated: packets over this host's loopback");
  EXPECT_EQ(cost(away, Kind::staged), "21 us + 0.741 GB/s, estimated: out, then packets over this host's loopback");
  // What is hardware and was not timed: what its link should do.
  Memory real = cuda;
  real.software = false;
  real.place = {{"pci0000:17", "0000:17:01.0", "0000:1b:00.0"}, 0, {0, 32, 32}};
  EXPECT_EQ(cost(make_plan(real, kNic, here(host_memory()), {}), Kind::engine),
            "2 us + 27.2 GB/s, estimated: PCIe 27.2 GB/s");
  Memory second = real;
  second.name = "cuda:1";
  second.place.path.back() = "0000:1c:00.0";
  second.place.link_gb_s.back() = 8;
  EXPECT_EQ(cost(make_plan(real, kNic, here(second), {}), Kind::link),
            "2 us + 6.8 GB/s, estimated: PCIe 6.8 GB/s, below one PCIe switch");
}

// The slower end sets the pace.
TEST(Planner, BothEndsOfAWire) {
  Nic fast{"mlx5_0", false, true, false, true, false};
  fast.port_gb_s = 50;
  Nic slow = fast;
  slow.name = "mlx5_9";
  slow.port_gb_s = 3.125;
  Peer far = kFar;
  far.memory = host_memory();
  far.nics = {slow};
  const Plan plan = make_plan(host_memory(), std::span(&fast, 1), far, {});
  EXPECT_EQ(plan.way()->cost.gb_s, 3.125);
  EXPECT_EQ(plan.way()->cost.basis, "mlx5_9's wire of 25 Gb/s");
}

TEST(Planner, DeviceToDeviceOfAPeer) {
  const Memory gaudi = device("gaudi:0", "gaudi", "Gaudi link");
  const Memory cuda = device("cuda:0", "cuda");
  Peer near = kNear;
  near.memory = gaudi;
  const Plan same = make_plan(gaudi, kNic, near, {});
  EXPECT_EQ(same.to, "gaudi:0@127.0.0.1:40123");
  EXPECT_EQ(same.way()->kind, Kind::copy);
  EXPECT_EQ(reason(same, Kind::link), "no: the two ends are in different processes");
  EXPECT_EQ(reason(same, Kind::ipc), "no: a handle opens whole allocations without a check: put and get do not use it");
  Peer far = kFar;
  far.memory = cuda;
  std::vector<Nic> nics = kNic;
  nics[0].has_packets = true;
  far.nics = nics;
  far.nics[0].name = "mlx5_3";
  const Plan across = make_plan(gaudi, nics, far, {});
  EXPECT_EQ(across.way()->name, "zero-copy: dma-buf -> strait0 -> RoCEv2 packets -> mlx5_3 -> dma-buf (cuda:0)");
  EXPECT_EQ(reason(across, Kind::link), "no: the peer is on another host");
  // What the peer's NIC cannot reach, nobody stages behind its back.
  far.memory->exports_fd = false;
  far.memory->export_refusal = "the driver is too old";
  const Plan stuck = make_plan(gaudi, nics, far, {.allow_staging = true});
  EXPECT_FALSE(stuck.chosen);
  EXPECT_EQ(reason(stuck, Kind::packets),
            "no: at the other end, cuda:0 memory cannot be reached: the driver is too old");
  EXPECT_EQ(reason(stuck, Kind::staged), "no: cuda:0 would have to be staged by the peer, which cannot know when");
}

TEST(Planner, GrantsByWhichACpuMovesTheBytes) {
  Memory soft = device("soft:0", "soft");
  soft.in_files = true;
  Memory host = host_memory();
  host.in_files = true;
  const Memory gpu = device("cuda:0", "cuda");
  Peer near = kNear;
  near.no_map_grants = near.no_copy_grants = "";
  const auto to = [&](const Memory& memory) {
    near.memory = memory;
    return near;
  };
  const Plan across = make_plan(host, kNic, to(host), {});
  EXPECT_EQ(across.way()->kind, Kind::map);
  EXPECT_EQ(reason(across, Kind::map), "yes: both processes map it, if its owner's Node allocated it");
  EXPECT_EQ(reason(across, Kind::call), "yes: for other memory of the peer (malloc), from 8 KiB on");
  EXPECT_EQ(make_plan(soft, kNic, to(soft), {}).way()->kind, Kind::map);
  EXPECT_EQ(reason(make_plan(soft, kNic, to(soft), {}), Kind::call), "no: soft:0 memory is out of a CPU's reach");

  const Plan to_gpu = make_plan(host, kNic, to(gpu), {});
  EXPECT_EQ(to_gpu.way()->kind, Kind::copy);
  EXPECT_EQ(reason(to_gpu, Kind::map), "no: cuda:0 memory lies in no file that this CPU could map");
  EXPECT_EQ(reason(make_plan(gpu, kNic, to(host), {}), Kind::map), "no: cuda:0 memory is out of this CPU's reach");

  Peer closed = to(host);
  closed.no_map_grants = "here, option grant=copy";
  EXPECT_EQ(make_plan(host, kNic, closed, {}).way()->kind, Kind::call);
  closed.cross_copy = false;
  closed.cross_copy_refusal = "Yama";
  EXPECT_EQ(reason(make_plan(host, kNic, closed, {}), Kind::call),
            "no: the two processes may not read each other's memory: Yama");
  Peer far = to(host);
  far.reach = Reach::other_host;
  EXPECT_EQ(reason(make_plan(host, kNic, far, {}), Kind::map), "no: the peer is on another host");
  EXPECT_EQ(reason(make_plan(host, kNic, here(host), {}), Kind::map), "no: both ends are one Node's");
}

// Managed memory: the CPU reaches it, its pages move. A NIC that goes through the process's page tables follows; one
// that pins does not, and then only a copy is left.
TEST(Planner, ManagedMemoryIsHostMemoryForWhoFollowsItsPages) {
  Memory managed = device("cuda:0", "cuda");
  managed.accelerator = false;
  managed.migrates = true;
  managed.exports_fd = false;
  std::vector<Nic> soft = kNic;
  soft[0].follows_pages = true;
  const Plan followed = make_plan(managed, soft, kNear, {});
  EXPECT_EQ(followed.way()->name,
            "zero-copy: host pages -> strait0 -> ring grant, one copy by the owner's engine (process_vm_readv)");
  EXPECT_EQ(
      followed.way()->reason,
      "strait0 reaches cuda:0 memory as host pages (it is managed: it migrates, so it is never exported); the peer "
      "is on this host");
  EXPECT_EQ(reason(followed, Kind::staged), "no: it is host memory already");

  const std::vector<Nic> pins{{"mlx5_0", false, true, false, true, false}};
  const Plan held = make_plan(managed, pins, kFar, {});
  EXPECT_FALSE(held.chosen);
  EXPECT_EQ(reason(held, Kind::packets),
            "no: cuda:0 memory is managed: it migrates, and mlx5_0 would keep to pages that it has left");
  EXPECT_EQ(reason(held, Kind::staged), "held: never silent: allowed only with allow_staging=1");
  EXPECT_EQ(make_plan(managed, pins, kFar, {.allow_staging = true}).way()->kind, Kind::staged);
}

TEST(Planner, TheNearestNicFirstAndItsDistanceSaid) {
  Memory gpu = device("cuda:0", "cuda");
  gpu.software = false;
  gpu.place = {{"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:1b:00.0"}, 0};
  Nic across{"mlx5_1", false, true, false, true, false};
  across.place = {{"pci0000:ca", "0000:ca:01.0", "0000:cb:00.0"}, 1};
  Nic beside{"mlx5_0", false, true, false, true, false};
  beside.place = {{"pci0000:17", "0000:17:01.0", "0000:18:01.0", "0000:1c:00.0"}, 0};
  const std::vector<Nic> nics{across, beside};
  const Plan plan = make_plan(gpu, nics, kFar, {});
  EXPECT_EQ(plan.way()->nic, "mlx5_0");
  EXPECT_EQ(plan.way()->reason, "mlx5_0 reaches cuda:0 memory as dma-buf, below one PCIe switch");
  EXPECT_FALSE(plan.way()->cost.measured);
  EXPECT_EQ(to_json(plan)["ways"][*plan.chosen]["cost"]["origin"], "estimated");
  EXPECT_NE(to_text(plan).find("estimated"), std::string::npos) << to_text(plan);
}

}  // namespace
}  // namespace strait::plan
