// SPDX-License-Identifier: Apache-2.0
// Wrong: the receive is posted when the message is already there.
//
// A message that finds no receive is refused ("receiver not ready") and sent again after a while. Hardware usually lets
// this pass, at the price of milliseconds nobody can explain; a sender whose retries are limited fails, now and then,
// when the receiver was scheduled late.
#include "two_nodes.hpp"

int main() {
  wrong::TwoNodes nodes("caller", "thread");
#ifdef FIXED
  auto receive = nodes.to_writer.receive(nodes.into.all());  // before the peer may send
  auto send = nodes.to_owner.send(nodes.from.all());
#else
  auto send = nodes.to_owner.send(nodes.from.all());
  const auto busy = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < busy) nodes.owner.poll();  // something else is more urgent
  auto receive = nodes.to_writer.receive(nodes.into.all());
#endif
  const auto got = receive.wait(wrong::kPatience).value();
  std::printf("a message of %llu bytes\n", static_cast<unsigned long long>(got.bytes));
  nodes.wait(send);
}
