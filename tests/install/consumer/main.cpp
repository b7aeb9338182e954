// SPDX-License-Identifier: Apache-2.0
// What a user's first program looks like: sees nothing of strait but what was installed.
#include <strait/strait.hpp>

#include <cstring>
#include <iostream>
#include <vector>

int main() try {
  std::vector<char> bytes(4096, 'a'), source(4096, 'b');
  auto here = strait::Node::open().value();
  auto there = strait::Node::open().value();
  auto target = here.share(bytes.data(), bytes.size(), strait::access::remote_write).value();
  auto published = here.publish("bytes", target).value();
  auto local = there.share(source.data(), source.size(), strait::access::local).value();
  auto peer = there.connect(here.address()).value();
  auto remote = peer.lookup("bytes").value();
  auto done = peer.put(local.slice(0, local.size()), remote.at(0)).wait().value();
  std::cout << "moved " << done.bytes << " bytes by " << done.path << "\n";
  return std::memcmp(bytes.data(), source.data(), bytes.size()) == 0 ? 0 : 1;
} catch (const strait::Failure& failure) {
  std::cerr << failure.what() << "\n";
  return 1;
}
