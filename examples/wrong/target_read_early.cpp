// SPDX-License-Identifier: Apache-2.0
// Wrong: the owner reads the target as soon as something has changed there.
//
// That a byte of a put is there says nothing about the others: they land in any order, and a cache may hold old ones.
// Hardware usually lets this pass: it writes in ascending order over one link to one socket, and is faster than the
// reader. The next NIC, a second path, or a relaxed-ordering memory region does it in another order.
#include "two_nodes.hpp"

int main() {
  wrong::TwoNodes nodes("caller", "thread");
  auto put = nodes.to_owner.put(nodes.from.all(), nodes.there.at(0), {.signal = 0});
#ifdef FIXED
  nodes.into.signal(0).wait_until_at_least(1, wrong::kPatience).value();  // raised behind the data
#else
  while (nodes.look(0) == 0) nodes.owner.poll();  // "it has begun to arrive, and we read in the same order"
  nodes.into.signal(0).wait_until_at_least(1, wrong::kPatience).value();
#endif
  std::puts(nodes.arrived() ? "all bytes are here" : "bytes are missing");
  nodes.wait(put);
}
