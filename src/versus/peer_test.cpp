// SPDX-License-Identifier: Apache-2.0
#include "versus/peer.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace strait::versus {
namespace {

TEST(Peers, AreNamed) {
  EXPECT_EQ(parse_peers("ucx,libfabric,memcpy").value(), (std::vector{Peer::ucx, Peer::libfabric, Peer::memcpy}));
  EXPECT_EQ(parse_peers("memcpy").value(), std::vector{Peer::memcpy});
  for (const char* bad : {"", "ucx,", "ucx,,memcpy", "UCX", "ucx,ucx", "nixl"}) EXPECT_FALSE(parse_peers(bad)) << bad;
  EXPECT_NE(parse_peers("nixl").error().text.find("ucx, libfabric, memcpy"), std::string::npos);
  for (const PeerRow& row : peer_table()) EXPECT_EQ(find_peer(row.name)->peer, row.peer);
}

TEST(Peers, OneThatIsMissingNamesItsPackage) {
  const std::string before = ::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  const Status ucx = peer_is_here(Peer::ucx);
  const auto here = peers_here();
  ::setenv("PATH", before.c_str(), 1);
  ASSERT_FALSE(ucx);
  EXPECT_EQ(ucx.error().code, Code::unsupported);
  EXPECT_NE(ucx.error().remedy.find("ucx-utils"), std::string::npos);
  EXPECT_EQ(std::count(here.begin(), here.end(), Peer::ucx), 0);
  EXPECT_EQ(std::count(here.begin(), here.end(), Peer::memcpy), 1);
  // This test's program has no helper beside it.
  const Status fabric = peer_is_here(Peer::libfabric);
  ASSERT_FALSE(fabric);
  EXPECT_NE(fabric.error().remedy.find("libfabric-dev"), std::string::npos);
}

TEST(Peers, ATransferThatWasNotVerifiedIsNoFigure) {
  EXPECT_TRUE(read_transfer(true, "{\"value\": 0.5, \"verified\": true, \"path\": \"way\"}\n", "").ok);
  EXPECT_EQ(read_transfer(true, "{\"value\": 0.5, \"verified\": true}", "").value, 0.5);
  EXPECT_EQ(read_transfer(true, "{\"value\": 1, \"verified\": true, \"beside\": 2}", "").beside, 2);
  for (const char* bad : {"", "text", "[]", "{}", "{\"value\": 1}", "{\"value\": 1, \"verified\": false}",
                          "{\"value\": \"1\", \"verified\": true}", "{\"value\": 1, \"verified\": 1}"}) {
    EXPECT_FALSE(read_transfer(true, bad, "").ok) << bad;
  }
  EXPECT_EQ(read_transfer(false, "{\"value\": 1, \"verified\": true}", "it died").problem, "it died");
}

TEST(Peers, LibfabricMovesWords) {
  EXPECT_NE(PeerRunner(Peer::libfabric, {.bytes = 100}).unable(), "");
  EXPECT_EQ(PeerRunner(Peer::libfabric, {.bytes = 104}).unable(), "");
  EXPECT_EQ(PeerRunner(Peer::ucx, {.bytes = 100}).unable(), "");
}

}  // namespace
}  // namespace strait::versus
