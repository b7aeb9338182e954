// SPDX-License-Identifier: Apache-2.0
// Wrong: the owner polls the last byte of the target to find out whether the data has arrived.
//
// A trick as old as RDMA, and it saves a signal. Hardware usually lets it pass, since most NICs write in ascending
// order most of the time. Nothing promises it: with relaxed ordering, several paths or a retransmission the last byte
// may be there while the middle is not.
#include "two_nodes.hpp"

int main() {
  wrong::TwoNodes nodes("caller", "thread");
#ifdef FIXED
  auto put = nodes.to_owner.put(nodes.from.all(), nodes.there.at(0), {.signal = 0});
  nodes.into.signal(0).wait_until_at_least(1, wrong::kPatience).value();
#else
  auto put = nodes.to_owner.put(nodes.from.all(), nodes.there.at(0));
  while (nodes.look(nodes.kBytes - 1) == 0) nodes.owner.poll();  // "the last one closes the door"
#endif
  std::puts("the data is here");
  nodes.wait(put);
  std::puts(nodes.arrived() ? "all bytes are right" : "bytes are missing");
}
