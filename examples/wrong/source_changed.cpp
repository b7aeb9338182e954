// SPDX-License-Identifier: Apache-2.0
// Wrong: the source of a put is used again as soon as the put is posted.
//
// Posting hands the memory to the NIC, until the completion. Hardware usually lets this pass: it has often read the
// source before the next line runs. It reads later when its queue is long, when the link is busy, and again when a
// packet was lost: then the peer gets a mixture of the old and the new bytes, and no one is told.
#include "two_nodes.hpp"

int main() {
  wrong::TwoNodes nodes("caller", "caller");
  auto put = nodes.to_owner.put(nodes.from.all(), nodes.there.at(0));
#ifdef FIXED
  nodes.wait(put);  // complete: the source is ours again
  std::memset(nodes.source.data(), 2, nodes.kBytes);
#else
  std::memset(nodes.source.data(), 2, nodes.kBytes);  // "it is posted, so it is sent"
  nodes.wait(put);
#endif
  std::puts("one message is across, the next one is prepared");
}
