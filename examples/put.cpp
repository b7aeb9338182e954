// SPDX-License-Identifier: Apache-2.0
// Two processes, one buffer of accelerator memory across.
//
//   put                 owns a buffer, prints its address, waits for somebody to write to it
//   put HOST:PORT       writes to it
#include <chrono>
#include <cstdio>
#include <strait/strait.hpp>

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  auto node = strait::Node::open().value();                           // finds accelerators and NICs; env STRAIT_*
  auto memory = node.allocate(16 << 20, {.near = "soft:0"}).value();  // or share(pointer, length) of your own memory
  auto region = node.share(memory, strait::access::remote_write).value();  // recognised, exported, registered
  if (argc == 1) {
    auto published = node.publish("kv/0", region).value();  // withdrawn when it goes out of scope
    std::printf("%s\n", node.address().c_str());
    std::fflush(stdout);
    region.signal(0).wait_until_at_least(1, 30s).value();  // the data is here when this returns
    region.revoke(1s).value();                             // nobody can touch the memory any more
    return 0;
  }
  auto peer = node.connect(argv[1], {.deadline = 5s}).value();
  auto target = peer.lookup("kv/0").value();  // a value: bounds, rights, epoch
  auto done = peer.put(region.all(), target.at(0), {.signal = 0, .require = strait::zero_copy}).wait(5s).value();
  std::printf("%llu bytes via %s\n", static_cast<unsigned long long>(done.bytes), done.path.c_str());
} catch (const strait::Failure& failure) {
  std::fprintf(stderr, "put: %s\n", failure.what());
  return 1;
}
