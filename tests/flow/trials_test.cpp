// SPDX-License-Identifier: Apache-2.0
// Trying every way from every NIC to every memory leaves nothing behind, however the trials end. On the software
// accelerator here; with those of all vendors under `strait run`.
#include <sys/resource.h>

#include "flow.hpp"

namespace strait::flow {
namespace {

nlohmann::json tried(Node& node) {
  const auto text = node.reach(true);
  EXPECT_TRUE(text) << text.error().text;
  return text ? nlohmann::json::parse(*text) : nlohmann::json::object();
}

nlohmann::json cell_of(const nlohmann::json& all, const std::string& memory, const char* way) {
  for (const auto& row : all.at("reach")) {
    if (row.at("memory") == memory) return row.at("ways").at(way);
  }
  return {{"state", "no such row"}, {"text", memory}};
}

// What a Node holds: live allocations and descriptors of every provider, registrations of every NIC.
std::string held(Node& node) {
  std::string out;
  const nlohmann::json now = info(node);
  for (const auto& [name, counts] : now.at("counters").items()) {
    if (!name.starts_with("memory_")) continue;
    for (const char* what : {"live_allocations", "live_fds"}) {
      if (counts.contains(what)) out += name + " " + what + "=" + counts.at(what).dump() + " ";
    }
  }
  for (const auto& nic : now.at("nics")) {
    for (const auto& [name, count] : nic.at("counters").items()) {
      if (name == "memory_regions" || name == "registrations") out += name + "=" + count.dump() + " ";
    }
  }
  return out;
}

// Threads that end, the library's own too, close what they had a moment later; so a leak is what stays above.
bool back_at(int fds) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (open_fds() > fds && std::chrono::steady_clock::now() < until) ::usleep(10'000);
  return open_fds() <= fds;
}

TEST(Trials, LeaveNothingBehind) {
  Node node = Node::open(settings()).value();
  const nlohmann::json first = tried(node);  // takes devices into use, which stay so until the Node closes
  ASSERT_FALSE(first.at("reach").empty());
  const int fds = open_fds();
  const std::string before = held(node);
  for (int i = 0; i < 30; ++i) {
    const nlohmann::json again = tried(node);
    ASSERT_EQ(again.at("reach").size(), first.at("reach").size());
    for (std::size_t row = 0; row < again["reach"].size(); ++row) {
      for (const auto& [way, cell] : again["reach"][row]["ways"].items())
        EXPECT_EQ(cell["state"], first["reach"][row]["ways"][way]["state"]) << again["reach"][row];
    }
  }
  EXPECT_TRUE(back_at(fds)) << open_fds() << " descriptors are open, not " << fds;
  EXPECT_EQ(held(node), before);
  EXPECT_EQ(info(node)["cache"]["registered"], 0) << "trials are not remembered";
}

TEST(Trials, LeaveNothingBehindAfterTheNodeIsGone) {
  const auto once = [] {
    Node node = Node::open(settings()).value();
    (void)tried(node);
  };
  once();  // vendors' libraries stay loaded
  const int fds = open_fds();
  for (int i = 0; i < 5; ++i) once();
  EXPECT_TRUE(back_at(fds)) << open_fds() << " descriptors are open, not " << fds;
}

class TrialsBroken : public testing::TestWithParam<const char*> {};

TEST_P(TrialsBroken, AreAnswersAndLeaveNothing) {
  Node node = Node::open(settings({{"kernel_faults", GetParam()}, {"peer_memory", "nvidia,amd,p2p"}})).value();
  (void)tried(node);
  const int fds = open_fds();
  const std::string before = held(node);
  for (int i = 0; i < 5; ++i) {
    const nlohmann::json all = tried(node);
    EXPECT_EQ(cell_of(all, "host", "host")["state"], "proved");
    for (const auto& row : all["reach"]) {
      for (const auto& [way, cell] : row["ways"].items()) {
        EXPECT_TRUE(cell["state"] != "missing" || cell["text"] != "") << row;
      }
    }
  }
  EXPECT_TRUE(back_at(fds)) << open_fds() << " descriptors are open, not " << fds;
  EXPECT_EQ(held(node), before);
}

INSTANTIATE_TEST_SUITE_P(EveryStep, TrialsBroken,
                         testing::Values("attach=524", "attach=ENOMEM", "pin=EBUSY", "map=EPERM", "map=EBUSY@2",
                                         "acquire=EINVAL", "get_pages=ENOMEM", "dma_map=EIO", "p2p_get=EINVAL",
                                         "p2p_map=EIO", "topology", "no_p2p", "reset", "bar=4096"),
                         [](const auto& each) {
                           std::string name = each.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

TEST(Trials, WithoutDescriptorsSayso) {
  Node node = Node::open(settings({{"accelerators", "soft:1"}})).value();
  (void)tried(node);
  const int fds = open_fds();
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{3, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto text = node.reach();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_TRUE(text) << text.error().text;
  const nlohmann::json cell = cell_of(nlohmann::json::parse(*text), "soft:0", "dmabuf");
  EXPECT_EQ(cell["state"], "missing");
  EXPECT_NE(cell["text"].get<std::string>().find("EMFILE"), std::string::npos) << cell;
  EXPECT_TRUE(back_at(fds)) << open_fds() << " descriptors are open, not " << fds;
  EXPECT_EQ(cell_of(tried(node), "soft:0", "dmabuf")["state"], "proved");
}

TEST(Trials, WithoutMemorySaySo) {
  Node node = Node::open(settings({{"accelerators", "soft:1"}, {"accelerator_memory", "4096"}})).value();
  const nlohmann::json all = tried(node);
  for (const char* way : {"dmabuf", "peermem", "p2p", "host", "staged"}) {
    const nlohmann::json cell = cell_of(all, "soft:0", way);
    EXPECT_EQ(cell["state"], "missing");
    EXPECT_TRUE(cell["text"].get<std::string>().starts_with("no memory of soft:0 to try with: ")) << cell;
  }
  EXPECT_EQ(cell_of(all, "host", "host")["state"], "proved");
}

TEST(Trials, WrongUse) {
  Node node = Node::open(settings()).value();
  char* json = nullptr;
  strait_error error{};
  error.struct_size = sizeof error;
  EXPECT_EQ(strait_node_reach(nullptr, 0, &json, &error), STRAIT_INVALID);
  EXPECT_EQ(strait_node_reach(node.raw(), 0, nullptr, &error), STRAIT_INVALID);
  EXPECT_EQ(strait_node_reach(node.raw(), 2, &json, &error), STRAIT_INVALID);
  EXPECT_EQ(json, nullptr);
}

}  // namespace
}  // namespace strait::flow
