// SPDX-License-Identifier: Apache-2.0
// Counters in groups: none is lost, and none is too wide. Settings and carriers beside them.
#include "tool/counters.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool/text.hpp"
#include "tool/tool.hpp"

namespace strait::tool {
namespace {

Json sample() {
  return {{"counters", {{"regions", 3}, {"memory_soft", {{"exports", 4}}}}},
          {"nics",
           {{{"name", "strait0"}, {"counters", {{"packets_sent", 41}, {"drops_bad_icrc", 5}, {"never_heard_of", 6}}}},
            {{"name", "strait1"}, {"counters", {{"packets_sent", 1}, {"doorbells", 9}, {"strict_findings", 8}}}}}},
          {"cache", {{"hits", 7}}}};
}

TEST(Counters, EveryOneIsThereUnderItsGroup) {
  const std::string page = counters_page(sample());
  std::size_t at = 0;
  for (const char* next : {"\nnode\n",
                           "memory_soft.exports",
                           "4\n",
                           "regions",
                           "3\n",
                           "\nstrait0: packets\n",
                           "packets_sent",
                           "41 ",
                           "\nstrait0: packets dropped, by reason\n",
                           "drops_bad_icrc",
                           "5 ",
                           "invariant CRC is wrong",
                           "\nstrait0: other\n",
                           "never_heard_of",
                           "6\n",
                           "\nstrait1: work\n",
                           "doorbells",
                           "9 ",
                           "\nstrait1: packets\n",
                           "\nstrait1: engine\n",
                           "strict_findings",
                           "8 ",
                           "rules that a program broke",
                           "\nregistrations kept\n",
                           "hits",
                           "7\n"}) {
    const std::size_t found = page.find(next, at);
    ASSERT_NE(found, std::string::npos) << next << " in\n" << page;
    at = found;
  }
  EXPECT_EQ(page.find("strait1: packets dropped"), std::string::npos) << "a group of which nothing is there\n" << page;
}

TEST(Counters, FitIn80Columns) {
  const std::string page = counters_page(sample());
  for (std::size_t start = 0; start < page.size();) {
    const std::size_t end = page.find('\n', start);
    EXPECT_LE(end - start, kColumns) << page.substr(start, end - start);
    start = end + 1;
  }
}

TEST(Counters, AreSummedOverNics) {
  EXPECT_EQ(nic_counter(sample(), "packets_sent"), 42u);
  EXPECT_EQ(nic_counter(sample(), "doorbells"), 9u);
  EXPECT_EQ(nic_counter(sample(), "nothing"), 0u);
  EXPECT_EQ(nic_counter(parse_json("no JSON"), "packets_sent"), 0u);
}

TEST(Settings, AReplacedOneIsThereOnce) {
  Settings settings{{"carrier", "grant"}, {"faults", ""}, {"carrier", "auto"}};
  replace_setting(settings, "carrier", "roce");
  EXPECT_EQ(settings, (Settings{{"faults", ""}, {"carrier", "roce"}}));
}

TEST(Carrier, IsReadFromThePath) {
  EXPECT_STREQ(carrier_of("strait0 -> ring grant to process 7, one copy by the owner -> b"), "grant");
  EXPECT_STREQ(carrier_of("strait0 -> RoCEv2 from 127.0.0.1 to 127.0.0.2, packets of 4096 bytes -> b"), "roce");
  EXPECT_STREQ(carrier_of("rxe0 -> verbs rxe0, RoCEv2 from 10.0.0.1 to 10.0.0.2 queue pair 0x11 -> b"), "verbs");
  EXPECT_STREQ(carrier_of("cxi0 -> cxi cxi0, software Cassini, nid 0x1 pid 3 to nid 0x1 pid 4 -> b"), "cxi");
  EXPECT_STREQ(carrier_of("x -> not connected -> b"), "unknown");
}

}  // namespace
}  // namespace strait::tool
