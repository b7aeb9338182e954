// SPDX-License-Identifier: Apache-2.0
#include "tool/between.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace strait::tool {
namespace {

constexpr const char* kTable =
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer "
    "drops\n"
    "  102: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 799 2 "
    "0000000000000000 0\n"
    "  103: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000    53        0 798 2 "
    "0000000000000000 0\n"
    "    8: 00000000000000000000000001000000:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 "
    "00:00000000 00000000     0        0 797 2 0000000000000000 0\n";

TEST(BetweenProcesses, APortIsAnothersWhenAnybodyElseHasIt) {
  EXPECT_EQ(udp_port_owner(kTable, 4791, 1000), 0u);
  EXPECT_EQ(udp_port_owner(kTable, 4791, 0), 1000u);
  EXPECT_EQ(udp_port_owner(kTable, 53, 53), 53u);
  EXPECT_EQ(udp_port_owner(kTable, 4792, 0), std::nullopt);
  EXPECT_EQ(udp_port_owner("", 4791, 0), std::nullopt);
  EXPECT_EQ(udp_port_owner("  1: nonsense\n", 4791, 0), std::nullopt);
}

TEST(BetweenProcesses, EachIsSaidInWords) {
  const Json found = between_processes();
  for (const char* name : {"process_vm", "userfaultfd"}) {
    EXPECT_TRUE(found.at(name).at("works").is_boolean()) << found;
    EXPECT_FALSE(found.at(name).at("text").get<std::string>().empty()) << found;
  }
  EXPECT_NE(found.at("port_4791").at("text").get<std::string>().find("4791"), std::string::npos) << found;
}

}  // namespace
}  // namespace strait::tool
