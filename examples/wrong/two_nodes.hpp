// SPDX-License-Identifier: Apache-2.0
// Two Nodes that are connected, in one process for brevity; nothing here depends on it. Each makes progress only inside
// its own calls, so that every run goes the same way.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <strait/strait.hpp>
#include <thread>

namespace wrong {

using namespace std::chrono_literals;
inline constexpr auto kPatience = 20s;

inline strait::Node open_node(const char* progress) {
  return strait::Node::open({.settings = {{"progress", progress}}, .log = nullptr, .log_context = nullptr}).value();
}

struct TwoNodes {
  TwoNodes(const char* owner_progress, const char* writer_progress)
      : owner(open_node(owner_progress)),
        writer(open_node(writer_progress)),
        to_owner(connect()),
        to_writer(owner.accept(5s).value()),
        source(writer.allocate(kBytes).value()),
        target(owner.allocate(kBytes).value()),
        from(writer.share(source, strait::access::local).value()),
        into(owner.share(target, strait::access::remote_write).value()),
        there(to_owner.redeem(into.ticket(strait::access::remote_write).value()).value()) {
    std::memset(source.data(), 1, kBytes);
    std::memset(target.data(), 0, kBytes);
  }
  // As put.wait() does, for a Node that has to be polled meanwhile.
  void wait(strait::Operation& operation) {
    for (;;) {
      auto done = operation.test();
      if (done) return;
      if (done.error().code != strait::Code::again) return (void)done.value();  // throws
      owner.poll();
    }
  }
  // A byte of the target that another thread or the NIC may be writing.
  [[nodiscard]] unsigned char look(std::size_t at) const {
    return __atomic_load_n(static_cast<unsigned char*>(target.data()) + at, __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] bool arrived() const {
    for (std::size_t i = 0; i < kBytes; ++i)
      if (look(i) != 1) return false;
    return true;
  }

  static constexpr std::size_t kBytes = 1 << 20;
  strait::Node owner, writer;
  strait::Peer to_owner, to_writer;
  strait::Memory source, target;
  strait::Region from, into;
  strait::Target there;

 private:
  // The owner's Node has to answer meanwhile, and may be one that only does so when it is polled.
  strait::Peer connect() {
    std::atomic<bool> connected{false};
    std::thread answering([&] {
      while (!connected) owner.poll();
    });
    auto peer = writer.connect(owner.address(), {.deadline = 5s});
    connected = true;
    answering.join();
    return std::move(peer).value();
  }
};

}  // namespace wrong
