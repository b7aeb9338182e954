// SPDX-License-Identifier: Apache-2.0
#include "plan/record.hpp"

#include <gtest/gtest.h>

namespace strait::plan {
namespace {

Machine two_sockets() {
  Machine machine{"hall-7", "0123", 7, {}, {}};
  for (int i = 0; i < 4; ++i) {
    Memory gpu;
    gpu.name = fmt::format("cuda:{}", i);
    gpu.kind = "cuda";
    gpu.accelerator = gpu.exports_fd = gpu.can_ipc = true;
    gpu.link = "NVLink";
    gpu.place = {{fmt::format("pci0000:{}0", i / 2), fmt::format("0000:{}0:01.0", i / 2),
                  fmt::format("0000:{}1:0{}.0", i / 2, i), fmt::format("0000:{}{}:00.0", i / 2, 2 + i)},
                 i / 2};
    machine.memories.push_back(gpu);
  }
  Memory host;
  host.name = host.kind = "host";
  machine.memories.push_back(host);
  for (int i = 0; i < 4; ++i) {
    Nic nic;
    nic.name = fmt::format("mlx5_{}", i);
    nic.imports_fds = nic.has_packets = true;
    nic.grants = false;
    // Two NICs at one place of each socket's switch.
    nic.place = {{fmt::format("pci0000:{}0", i / 2), fmt::format("0000:{}0:01.0", i / 2),
                  fmt::format("0000:{}1:0{}.0", i / 2, 8 + i), fmt::format("0000:{}{}:00.0", i / 2, 5 + i)},
                 i / 2};
    machine.nics.push_back(nic);
  }
  return machine;
}

TEST(Record, ComesBackAsItWas) {
  Machine machine = two_sockets();
  machine.map_grants = true;
  machine.no_grants_because = "option grant=map";
  machine.memories.back().in_files = true;
  machine.memories[3].place.link_gb_s = {0, 31.5, 31.5, 15.75};
  machine.nics[1].port_gb_s = 12.5;
  const auto again = from_record(to_record(machine));
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_TRUE(again->map_grants && !again->copy_grants && again->find("host")->in_files);
  EXPECT_EQ(again->no_grants_because, "option grant=map");
  EXPECT_EQ(to_record(*again), to_record(machine));
  EXPECT_EQ(again->find("cuda:3")->place.path, machine.memories[3].place.path);
  EXPECT_EQ(again->find("cuda:3")->place.link_gb_s, machine.memories[3].place.link_gb_s);
  EXPECT_EQ(again->nics[1].port_gb_s, 12.5);
  EXPECT_EQ(again->find("cuda:9"), nullptr);
}

TEST(Record, DevicesThatShareNicsTakeOneEach) {
  const Machine machine = two_sockets();
  const auto chosen = [&](std::size_t gpu) {
    const Memory& memory = machine.memories[gpu];
    Peer far{"elsewhere:1", Reach::other_host, false, {}, memory, false, machine.nics};
    return make_plan(memory, machine.nics, far, {}, {}, machine.rank_of(memory)).way()->nic;
  };
  EXPECT_EQ(chosen(0), "mlx5_0");
  EXPECT_EQ(chosen(1), "mlx5_1");
  EXPECT_EQ(chosen(2), "mlx5_2");
  EXPECT_EQ(chosen(3), "mlx5_3");
}

TEST(Record, OfAStrangerIsChecked) {
  const auto refusal = [](const char* text) { return from_record(text).error().text; };
  EXPECT_EQ(refusal("{"), "the record is no JSON object");
  EXPECT_EQ(refusal("[]"), "the record is no JSON object");
  EXPECT_EQ(refusal("{}"), "the record: \"memories\" is not a list of at most 256");
  EXPECT_EQ(refusal(R"({"memories":[{}],"nics":[]})"), "a memory of the record has no name");
  EXPECT_EQ(refusal(R"({"memories":[7],"nics":[]})"), "a memory of the record: a record is no object");
  EXPECT_EQ(refusal(R"({"memories":[{"name":"a\nb"}],"nics":[]})"),
            "a memory of the record: \"name\" is not a text without control characters");
  EXPECT_EQ(refusal(R"({"memories":[{"name":"m","place":{"path":["a"],"link_gb_s":[1,2]}}],"nics":[]})"),
            "a memory of the record: \"link_gb_s\" is not a rate for each of the path");
  EXPECT_EQ(refusal(R"({"memories":[{"name":"m","place":{"path":["a"],"link_gb_s":["fast"]}}],"nics":[]})"),
            "a memory of the record: \"link_gb_s\" is not a rate for each of the path");
  EXPECT_EQ(refusal(R"({"memories":[],"nics":[{"name":"n","port_gb_s":-1}]})"),
            "a NIC of the record: \"port_gb_s\" is not a rate in GB/s");
  EXPECT_EQ(refusal(R"({"memories":[{"name":"m","refused":{}}],"nics":[]})"),
            "a memory of the record: \"refused\" is not a short list");
  EXPECT_EQ(refusal(R"({"memories":[{"name":"m","refused":[{"way":1}]}],"nics":[]})"),
            "a memory of the record: \"way\" is not a short text");
  EXPECT_EQ(refusal(R"({"memories":[{"name":"m","staged_only":"yes"}],"nics":[]})"),
            "a memory of the record: \"staged_only\" is not true or false");
  EXPECT_EQ(refusal(R"({"memories":[],"nics":[{"name":"n","grants":1}]})"),
            "a NIC of the record: \"grants\" is not true or false");
  EXPECT_EQ(refusal(R"({"memories":[],"nics":[{"name":"n","place":{"path":[1]}}]})"),
            "a NIC of the record: \"path\" is not texts");
  EXPECT_EQ(refusal(R"({"memories":[],"nics":[{"name":"n","place":{"numa_node":1e9}}]})"),
            "a NIC of the record: \"numa_node\" is not a small number");
}

}  // namespace
}  // namespace strait::plan
