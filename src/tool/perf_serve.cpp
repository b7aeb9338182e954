// SPDX-License-Identifier: Apache-2.0
// The server's loops: answer every ping, or just stay reachable.
#include "sys/terminal.hpp"
#include "tool/perf_arrival.hpp"

namespace strait::tool {

Status pong_put(const Bench& bench, const std::function<bool()>& over) {
  Arrival arrival(bench);
  PutBack put(bench);
  for (std::uint64_t n = 1;; ++n) {
    const auto here = arrival.wait(n, over);
    if (!here && here.error().code == Code::gone) return {};
    STRAIT_CHECK(here);
    STRAIT_CHECK(put.once(n));
  }
}

Status pong_send(const Bench& bench, Operation receive, const std::function<bool()>& over) {
  const Slice out = bench.own.region.slice(0, bench.bytes);
  const Slice in = bench.own.region.slice(bench.own.capacity, bench.bytes);
  for (std::uint32_t spin = 1;; ++spin) {
    auto done = receive.test();
    if (!done && done.error().code == Code::again) {
      bench.node.poll();
      if (spin % 256 != 0) continue;
      if (over()) return {};
      std::this_thread::yield();  // the other side may need this very core
      continue;
    }
    if (!done) return done.error();
    if (done->imm != kMore) return {};
    receive = bench.peer.receive(in);  // before the answer: the next ping may follow at once
    auto sent = bench.peer.send(out).wait(Duration(bench.deadline_ns));
    if (!sent) return sent.error();
  }
}

Status stay_reachable(const Bench& bench, const std::function<bool()>& over) {
  while (!over()) {
    for (int i = 0; i < 256; ++i) bench.node.poll();
    std::this_thread::yield();
  }
  return {};
}

}  // namespace strait::tool
