// SPDX-License-Identifier: Apache-2.0
// strait info: which NIC reaches which memory by which way, tried; on this machine, and on one with every vendor's
// accelerator.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

constexpr const char* kEveryVendor = "cuda:1,rocm:1,gaudi:1";

// On a machine with software accelerators of all vendors. A sanitizer's run time wants to be first, which `strait run`
// does not allow: there the loader is told where their libraries are.
Outcome furnished(const std::string& ways, std::vector<std::string> command, const char* accelerators = kEveryVendor) {
#ifdef STRAIT_STAND_INS
  return strait(std::move(command), 60,
                {{"LD_LIBRARY_PATH", STRAIT_STAND_INS},
                 {"STRAIT_SOFT_ACCELERATORS", accelerators},
                 {"STRAIT_PEER_MEMORY", ways},
                 {"ASAN_OPTIONS", "detect_leaks=0"}});
#else
  std::vector<std::string> all{"run", "--quiet", "--accelerators", accelerators, "--peer-memory", ways, "--"};
  const std::vector<std::string> inner = strait_command(std::move(command));
  all.insert(all.end(), inner.begin(), inner.end());
  return strait(all);
#endif
}

json matrix(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

json ways_of(const json& info, const std::string& memory) {
  for (const json& row : info.at("reach")) {
    if (row.at("memory") == memory) return row.at("ways");
  }
  ADD_FAILURE() << memory << " is not in the matrix: " << info.at("reach");
  return json::object();
}

// "dmabuf=proved peermem=missing ...", in the order of the names.
std::string states(const json& info, const std::string& memory) {
  std::string out;
  const json ways = ways_of(info, memory);
  for (const auto& [name, cell] : ways.items()) {
    EXPECT_FALSE(cell.at("text").get<std::string>().empty()) << memory << " " << name;
    out += (out.empty() ? "" : " ") + name + "=" + cell.at("state").get<std::string>();
  }
  return out;
}

std::string why(const json& info, const std::string& memory, const std::string& way) {
  return ways_of(info, memory).at(way).at("text");
}

constexpr const char* kHostRow = "dmabuf=unneeded host=proved p2p=unneeded peermem=unneeded staged=unneeded";

// One datagram to the port for packets of a NIC.
void send_garbage(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(4791);
  ASSERT_EQ(::inet_pton(AF_INET, address.c_str(), &to.sin_addr), 1) << address;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::sendto(fd, "what?", 5, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 5);
  ::close(fd);
}

// What a stranger sent to a program that runs is seen from outside, by its reason.
TEST(InfoCounters, OfARunningNode) {
  Program server(strait_command({"perf", "--json", "--set", "carrier=roce"}));
  const std::string address = json::parse(server.read_line()).at("address");
  const std::vector<std::string> ask{"info", "--counters", "--json", "--of", address};
  json nic;
  for (int tries = 0; tries < 50; ++tries) {  // it is dropped when the engine of the server gets to it
    const Outcome outcome = strait(ask);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json told = json::parse(outcome.out, nullptr, false);
    ASSERT_EQ(told.at("address"), address);
    EXPECT_FALSE(told.contains("options")) << "a peer is told what was counted, and no more";
    nic = told.at("nics").at(0);
    if (nic.at("counters").at("drops_too_short") > 0) break;
    EXPECT_TRUE(tries != 0 || nic.at("counters").at("drops_too_short") == 0) << nic;
    send_garbage(nic.at("address"));
    ::usleep(100'000);
  }
  EXPECT_GT(nic.at("counters").at("drops_too_short"), 0) << nic;
  const Outcome page = strait({"info", "--counters", "--of", address});
  EXPECT_EQ(page.status, 0) << page.err;
  EXPECT_NE(page.out.find("listens on " + address), std::string::npos) << page.out;
  EXPECT_NE(page.out.find("packets dropped, by reason\n"), std::string::npos) << page.out;
}

TEST(InfoCounters, OfARunningNodeOnly) {
  const Outcome nobody = strait({"info", "--counters", "--of", "127.0.0.1:1", "--set", "nics=none"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_NE(nobody.err.find("127.0.0.1:1"), std::string::npos) << nobody.err;
  const Outcome portless = strait({"info", "--counters", "--of", "127.0.0.1:0"});
  EXPECT_EQ(portless.status, 2);
  EXPECT_NE(unwrapped(portless.err).find("names no port"), std::string::npos) << portless.err;
  const Outcome more = strait({"info", "--of", "127.0.0.1:7471"});
  EXPECT_EQ(more.status, 2);
  EXPECT_NE(unwrapped(more.err).find("--of asks a running Node for its counters, and for nothing else"),
            std::string::npos)
      << more.err;
}

TEST(InfoMatrix, OfThisMachine) {
  const json info = matrix(strait({"info", "--json", "--set", "accelerators=soft:2"}));
  EXPECT_EQ(states(info, "host"), kHostRow);
  EXPECT_EQ(states(info, "soft:0"), "dmabuf=proved host=missing p2p=missing peermem=missing staged=proved");
  EXPECT_EQ(info.at("reach_untried"), json({"soft:1"}));
  EXPECT_EQ(why(info, "soft:0", "peermem"),
            "no peer-memory client is known to strait0; it needs a peer-memory client (option peer_memory: nvidia, "
            "amd): none is switched on");
  const json every = matrix(strait({"info", "--json", "--every-device", "--set", "accelerators=soft:2"}));
  EXPECT_EQ(states(every, "soft:1"), states(info, "soft:0"));
  EXPECT_TRUE(every.at("reach_untried").empty());
}

TEST(InfoMatrix, EveryVendorByDmabuf) {
  const json info = matrix(furnished("none", {"info", "--json"}));
  EXPECT_EQ(states(info, "host"), kHostRow);
  for (const char* memory : {"soft:0", "cuda:0", "rocm:0", "gaudi:0"})
    EXPECT_EQ(states(info, memory), "dmabuf=proved host=missing p2p=missing peermem=missing staged=proved") << memory;
  EXPECT_EQ(why(info, "gaudi:0", "peermem"), "no peer-memory client serves this memory of gaudi:0");
  EXPECT_EQ(why(info, "rocm:0", "p2p"), "only NVIDIA GPUs have them, this is rocm");
  EXPECT_EQ(why(info, "cuda:0", "host"), "it is not host memory");
}

TEST(InfoMatrix, WhatJoinsDevicesIsTheProvidersToSay) {
  const json info = matrix(furnished("none", {"info", "--json", "--no-trials"}));
  EXPECT_FALSE(info.contains("reach"));
  for (const json& device : info.at("accelerators"))
    EXPECT_EQ(device.at("link"), device.at("kind") == "gaudi" ? "Gaudi link" : "") << device;
}

// A program's devices are those that its driver lets it see, and are counted from 0 among them.
TEST(InfoDevices, AreThoseThatCudaVisibleDevicesNames) {
  const auto seen = [](const char* chosen) {
    ::setenv("CUDA_VISIBLE_DEVICES", chosen, 1);
    const Outcome outcome =
        furnished("none", {"info", "--json", "--no-trials", "--set", "accelerators=cuda"}, "cuda:3");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    std::string all;
    const json info = matrix(outcome);
    for (const json& device : info.at("accelerators"))
      all += device.at("name").get<std::string>() + "=" + device.at("pci_address").get<std::string>() + " ";
    return all;
  };
  EXPECT_EQ(seen("0,1,2"), "cuda:0=0000:21:00.0 cuda:1=0000:24:00.0 cuda:2=0000:27:00.0 ");
  EXPECT_EQ(seen("2,0"), "cuda:0=0000:27:00.0 cuda:1=0000:21:00.0 ");
  EXPECT_EQ(seen("GPU-73747261-6974-2073-6f66-742063756401"), "cuda:0=0000:24:00.0 ");
}

TEST(InfoMatrix, EveryVendorByItsAddress) {
  const json clients = matrix(furnished("nvidia,amd", {"info", "--json"}));
  EXPECT_EQ(states(clients, "cuda:0"), "dmabuf=proved host=missing p2p=missing peermem=proved staged=proved");
  EXPECT_EQ(states(clients, "rocm:0"), "dmabuf=proved host=missing p2p=missing peermem=proved staged=proved");
  EXPECT_EQ(states(clients, "gaudi:0"), "dmabuf=proved host=missing p2p=missing peermem=missing staged=proved");
  EXPECT_EQ(why(clients, "cuda:0", "peermem"), "peer-memory client nv_mem");
  const json pages = matrix(furnished("p2p", {"info", "--json"}));
  EXPECT_EQ(states(pages, "cuda:0"), "dmabuf=proved host=missing p2p=proved peermem=missing staged=proved");
  EXPECT_EQ(states(pages, "rocm:0"), "dmabuf=proved host=missing p2p=missing peermem=missing staged=proved");
  // Both switched on: the client is asked first, so nothing is said about the pages that was not seen.
  const json both = matrix(furnished("nvidia,p2p", {"info", "--json"}));
  EXPECT_EQ(why(both, "cuda:0", "p2p"), "peer-memory client nv_mem answers for the address before they are asked");
}

#ifdef STRAIT_VERBS_UNDER_RUN
// The same memory from the other side: libibverbs, which does not say who answered for an address.
TEST(InfoMatrix, EveryVendorByVerbs) {
  const std::vector<std::string> command{"info", "--json", "--set", "nics=verbs:strait0"};
  const json plain = matrix(furnished("none", command));
  EXPECT_EQ(states(plain, "host"), kHostRow);
  for (const char* memory : {"cuda:0", "rocm:0", "gaudi:0"})
    EXPECT_EQ(states(plain, memory), "dmabuf=proved host=missing p2p=missing peermem=missing staged=proved") << memory;
  EXPECT_NE(why(plain, "cuda:0", "peermem").find("(EFAULT)"), std::string::npos) << why(plain, "cuda:0", "peermem");
  const json client = matrix(furnished("nvidia", command));
  EXPECT_EQ(states(client, "cuda:0"), "dmabuf=proved host=missing p2p=unknown peermem=proved staged=proved");
  EXPECT_EQ(states(client, "rocm:0"), "dmabuf=proved host=missing p2p=missing peermem=missing staged=proved");
  const json amd = matrix(furnished("amd", command));
  EXPECT_EQ(states(amd, "rocm:0"), "dmabuf=proved host=missing p2p=missing peermem=proved staged=proved");
  EXPECT_EQ(states(amd, "cuda:0"), "dmabuf=proved host=missing p2p=missing peermem=missing staged=proved");
  for (const json& each : client.at("requirements")) {
    if (each.at("part") != "nic") continue;
    EXPECT_EQ(each.at("of"), "strait0");
    EXPECT_EQ(each.at("needs").at(0).at("what"), "ibv_reg_dmabuf_mr in libibverbs (rdma-core 34 or later)");
    EXPECT_EQ(each.at("needs").at(1).at("state"), "met") << each;
  }
}
#endif

TEST(InfoMatrix, ATrialThatFailsIsAnAnswer) {
  const json info =
      matrix(furnished("nvidia", {"info", "--json", "--set", "kernel_faults=attach=524,get_pages=ENOMEM"}));
  EXPECT_EQ(states(info, "cuda:0"), "dmabuf=missing host=missing p2p=missing peermem=missing staged=proved");
  EXPECT_NE(why(info, "cuda:0", "dmabuf").find("the accelerator's driver refused this NIC"), std::string::npos);
  EXPECT_NE(why(info, "cuda:0", "dmabuf").find("errno 524"), std::string::npos);
  EXPECT_NE(why(info, "cuda:0", "peermem").find("ENOMEM"), std::string::npos) << why(info, "cuda:0", "peermem");
  EXPECT_EQ(why(info, "cuda:0", "dmabuf").find("0x"), std::string::npos) << "an address tells nobody anything";
}

TEST(InfoMatrix, RequirementsOfProvidersAndNics) {
  const json info = matrix(furnished("none", {"info", "--json"}));
  std::string seen;
  for (const json& each : info.at("requirements")) {
    seen += each.at("of").get<std::string>() + " ";
    EXPECT_FALSE(each.at("needs").empty()) << each;
    for (const json& need : each.at("needs")) EXPECT_FALSE(need.at("what").get<std::string>().empty()) << each;
  }
  EXPECT_EQ(seen, "host soft cuda gaudi rocm strait0 ");
  // A vendor that is not there says what it would need.
  const json plain = matrix(strait({"info", "--json"}, 60, {{"LD_LIBRARY_PATH", ""}}));
  for (const json& each : plain.at("requirements")) {
    if (each.at("present") == true) continue;
    EXPECT_FALSE(each.at("because").get<std::string>().empty()) << each;
    EXPECT_FALSE(each.at("needs").empty()) << each;
  }
}

TEST(InfoMatrix, TextForPeople) {
  const Outcome outcome = furnished("nvidia", {"info"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  for (const char* words : {"\n  memory    NIC       dma-buf  peer memory  p2p pages  host pages  staged\n",
                            "\n  host      strait0   -        -            -          yes         -\n",
                            "\n  cuda:0    strait0   yes      yes", "\nrequirements\n", "\n  strait0   met"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  const Outcome untouched = strait({"info", "--no-trials"});
  EXPECT_EQ(untouched.status, 0);
  EXPECT_NE(untouched.out.find("not tried: --no-trials"), std::string::npos) << untouched.out;
  EXPECT_EQ(untouched.out.find("dma-buf  peer memory"), std::string::npos);
  const Outcome lonely = strait({"info", "--set", "nics=none"});
  EXPECT_EQ(lonely.status, 0) << lonely.err;
  EXPECT_NE(lonely.out.find("there is no NIC, so nothing was tried"), std::string::npos) << lonely.out;
}

}  // namespace
}  // namespace strait::testing
