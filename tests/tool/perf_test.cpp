// SPDX-License-Identifier: Apache-2.0
// strait perf, from outside: every test on every memory kind, servers that outlive their clients, dead ends.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "program.hpp"

namespace strait::testing {
namespace {

using nlohmann::json;

json result_of(const Outcome& outcome) {
  const json report = json::parse(outcome.out, nullptr, false);
  return report.is_object() ? report : json::object();
}

class PerfSpawn : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(PerfSpawn, MeasuresAndVerifies) {
  const auto [test, memory] = GetParam();
  const Outcome outcome = strait({"perf", "--spawn", "--test", test, "--memory", memory, "--sizes", "8,100,64K",
                                  "--iterations", "50", "--warmup", "10", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json report = result_of(outcome);
  EXPECT_EQ(report.value("ok", false), true);
  EXPECT_EQ(report.value("software", false), true);
  ASSERT_EQ(report.at("tests").size(), 1u);
  const json& results = report.at("tests").at(0).at("results");
  const bool atomic = std::string(test).find("fetch") == 0 || std::string(test).find("compare") == 0;
  ASSERT_EQ(results.size(), atomic ? 1u : 3u);
  for (const json& line : results) {
    EXPECT_EQ(line.at("verified"), true) << line.dump();
    EXPECT_EQ(line.at("iterations"), 50);
    if (line.contains("p50_us")) {
      EXPECT_LE(line.at("min_us"), line.at("p50_us"));
      EXPECT_LE(line.at("p50_us"), line.at("p99_us"));
      EXPECT_LE(line.at("p99_us"), line.at("max_us"));
      EXPECT_GT(line.at("min_us").get<double>(), 0);
    } else {
      EXPECT_GT(line.at("bytes_per_second").get<double>(), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, PerfSpawn,
                         ::testing::Combine(::testing::Values("put_lat", "put_bw", "get_lat", "get_bw", "fetch_add_lat",
                                                              "compare_swap_lat", "send_lat", "put_rate"),
                                            ::testing::Values("host", "soft:0")),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param)) +
                                  (std::get<1>(row.param)[0] == 'h' ? "_host" : "_soft");
                         });

// Every way to accelerators' memory, chosen by name: it is the one that is taken, and the bytes are right.
class PerfReach : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Ways, PerfReach,
                         ::testing::Values(std::pair{"auto", "dma-buf fd"}, std::pair{"dmabuf", "dma-buf fd"},
                                           std::pair{"peermem", "peer-memory client"},
                                           std::pair{"p2p", "nvidia_p2p pages"},
                                           std::pair{"staged", "staged through host"}),
                         [](const auto& way) { return std::string(way.param.first); });

TEST_P(PerfReach, MeasuresAndVerifies) {
  const auto [reach, way] = GetParam();
  for (const char* test : {"put_bw", "get_bw"}) {
    const Outcome outcome = strait({"perf", "--spawn", "--json", "--memory", "soft:0", "--reach", reach, "--test", test,
                                    "--sizes", "64,64K,1M", "--iterations", "20", "--warmup", "1"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report.at("tests").at(0).value("reach", ""), way);
    for (const json& line : report.at("tests").at(0).at("results")) EXPECT_EQ(line.at("verified"), true) << line;
    EXPECT_EQ(report.at("tests").at(0).at("results").size(), 3u);
  }
}

TEST(Perf, TheTableFits80ColumnsAndMarksSoftware) {
  const Outcome outcome =
      strait({"perf", "--spawn", "--test", "put_lat,put_bw", "--sizes", "1,8,1M", "--duration", "20ms"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  for (const char* words : {"software devices", "#bytes", "#iterations", "BW[GB/s]", "MsgRate[M/s]", "50%[us]",
                            "99%[us]", "half round trip", "verified"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
}

TEST(Perf, IsCleanUnderStrict) {
  for (const char* carrier : {"grant", "roce"}) {
    const std::string choice = std::string("carrier=") + carrier;
    const std::vector<std::string> command{"perf",    "--spawn",     "--strict",     "--test", "all",
                                           "--sizes", "8,4K,100000", "--iterations", "10",     "--warmup",
                                           "2",       "--set",       choice};
    const Outcome text = strait(command);
    EXPECT_EQ(text.status, 0) << carrier << "\n" << text.out << text.err;
    EXPECT_NE(text.out.find("  strict: 0 findings\n"), std::string::npos) << text.out;
    EXPECT_EQ(text.err, "");
  }
  const Outcome object = strait({"perf", "--spawn", "--strict", "--test", "put_lat", "--iterations", "10", "--json"});
  EXPECT_EQ(object.status, 0) << object.err;
  EXPECT_EQ(result_of(object).value("strict_findings", -1), 0);
}

TEST(Perf, WithoutStrictNobodySaysSo) {
  const Outcome outcome = strait({"perf", "--spawn", "--test", "put_lat", "--sizes", "8", "--iterations", "10"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("strict"), std::string::npos) << outcome.out;
}

TEST(Perf, WorksInEveryProgressMode) {
  for (const char* mode : {"caller", "thread", "eventfd"}) {
    const Outcome outcome = strait({"perf", "--spawn", "--test", "put_lat,put_bw,send_lat", "--sizes", "8,4K",
                                    "--iterations", "20", "--warmup", "2", "--progress", mode, "--json"});
    EXPECT_EQ(outcome.status, 0) << mode << "\n" << outcome.out << outcome.err;
  }
}

TEST(Perf, AWindowMayBeDeeperThanTheDefaultLane) {
  const Outcome outcome =
      strait({"perf", "--spawn", "--test", "put_rate", "--window", "3000", "--iterations", "9000", "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
}

TEST(Perf, ACpuThatIsNotThereIsExitStatus3) {
  const Outcome outcome = strait({"perf", "--spawn", "--cpu", "60000", "--iterations", "1"});
  EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find("--cpu 60000"), std::string::npos) << outcome.err;
}

TEST(Perf, BitsAreEightTimesBytes) {
  const Outcome outcome =
      strait({"perf", "--spawn", "--test", "put_bw", "--sizes", "64K", "--iterations", "20", "--bits"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("BW[Gb/s]"), std::string::npos) << outcome.out;
}

TEST(Perf, ADeadPortIsExitStatus1WithASentence) {
  // A port that was free a moment ago and has no listener.
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string name = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  ::close(fd);

  const Outcome outcome = strait({"perf", name, "--deadline", "2s"}, 20);
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << outcome.err;
  EXPECT_NE(unwrapped(outcome.err).find(name), std::string::npos) << outcome.err;
  EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
  EXPECT_LT(outcome.seconds, 10.0);
}

TEST(Perf, AServerThatNeverAnswersEndsAtTheDeadline) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(fd, 4), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const Outcome outcome =
      strait({"perf", "127.0.0.1:" + std::to_string(ntohs(address.sin_port)), "--deadline", "500ms"}, 20);
  ::close(fd);
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err.rfind("strait: ", 0), 0u) << outcome.err;
  EXPECT_LT(outcome.seconds, 8.0);
}

// Starts a server and gives its address.
std::string address_of(Program& server) {
  return json::parse(server.read_line(), nullptr, false).value("address", "");
}

TEST(Perf, AServerServesOneClientAfterTheOtherUntilCtrlC) {
  Program server(strait_command({"perf", "--json"}));
  const std::string address = address_of(server);
  ASSERT_NE(address, "");
  for (const char* memory : {"host", "soft:0"}) {
    const Outcome client =
        strait({"perf", address, "--test", "put_bw", "--sizes", "4K", "--iterations", "10", "--memory", memory});
    EXPECT_EQ(client.status, 0) << client.out << client.err;
    const json line = json::parse(server.read_line(), nullptr, false);
    EXPECT_EQ(line.value("ok", false), true) << line.dump();
    EXPECT_EQ(line.value("runs", 0), 1);
  }
  server.signal(SIGINT);
  const Outcome outcome = server.finish(10);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(Perf, AServerOutlivesAClientThatIsKilled) {
  Program server(strait_command({"perf", "--json", "--deadline", "1s"}));
  const std::string address = address_of(server);
  ASSERT_NE(address, "");
  {
    Program client(strait_command({"perf", address, "--test", "put_lat", "--sizes", "8", "--duration", "60s"}));
    for (int i = 0; i < 4; ++i) (void)client.read_line(3);  // it has begun
    ::usleep(200'000);
    client.signal(SIGKILL);
    (void)client.finish(5);
  }
  const json lost = json::parse(server.read_line(30), nullptr, false);
  EXPECT_EQ(lost.value("ok", true), false) << lost.dump();
  const Outcome next = strait({"perf", address, "--test", "put_bw", "--sizes", "4K", "--iterations", "10"});
  EXPECT_EQ(next.status, 0) << next.out << next.err;
  server.signal(SIGTERM);
  EXPECT_EQ(server.finish(10).status, 0);
}

TEST(Perf, AMemoryKindThatIsNotThereIsSaid) {
  const Outcome outcome = strait({"perf", "--spawn", "--memory", "soft:7"}, 30);
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("soft:7"), std::string::npos) << outcome.err;
}

TEST(Perf, AWrongSecretIsRefused) {
  Program server(strait_command({"perf", "--json", "--set", "secret=one"}));
  const std::string address = address_of(server);
  ASSERT_NE(address, "");
  const Outcome client = strait({"perf", address, "--set", "secret=two", "--deadline", "3s"}, 30);
  EXPECT_EQ(client.status, 1) << client.out << client.err;
  EXPECT_NE(client.err.find("secret"), std::string::npos) << client.err;
}

TEST(Perf, TheCarrierIsNamed) {
  for (const char* carrier : {"grant", "roce"}) {
    const Outcome outcome = strait(
        {"perf", "--spawn", "--carrier", carrier, "--test", "put_bw", "--sizes", "4K", "--iterations", "20", "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_EQ(result_of(outcome).at("tests").at(0).at("carrier"), carrier) << outcome.out;
  }
  const Outcome text =
      strait({"perf", "--spawn", "--carrier", "roce", "--test", "put_bw", "--sizes", "4K", "--iterations", "20"});
  EXPECT_NE(text.out.find("carrier: roce"), std::string::npos) << text.out;
  EXPECT_LE(widest(text.out), 80u) << text.out;
}

TEST(Perf, PacketsLostOnPurposeAreSentAgainAndCounted) {
  const std::string file = ::testing::TempDir() + "perf_" + std::to_string(::getpid()) + ".pcapng";
  const std::vector<std::string> command{"perf",     "--spawn", "--carrier",    "roce", "--faults",  "drop=3%,seed=7",
                                         "--test",   "put_bw",  "--sizes",      "64K",  "--capture", file,
                                         "--warmup", "2",       "--iterations", "100",  "--counters"};
  std::vector<std::string> as_json = command;
  as_json.emplace_back("--json");
  const Outcome outcome = strait(as_json);
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const json report = result_of(outcome);
  EXPECT_EQ(report.at("tests").at(0).at("results").at(0).at("verified"), true);
  const json& counters = report.at("nics").at(0).at("counters");
  EXPECT_GT(counters.at("drops_injected"), 0) << counters;
  EXPECT_GT(counters.at("packets_resent"), 0) << counters;
  EXPECT_EQ(counters.at("drops_bad_icrc"), 0) << counters;
  EXPECT_EQ(::access(file.c_str(), R_OK), 0);
  const Outcome text = strait(command);
  EXPECT_NE(text.out.find("strait0: packets dropped, by reason"), std::string::npos) << text.out;
  EXPECT_LE(widest(text.out), 80u) << text.out;
  ::unlink(file.c_str());
}

}  // namespace
}  // namespace strait::testing
