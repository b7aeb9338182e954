// SPDX-License-Identifier: Apache-2.0
// For the tests of this folder: a handler that remembers, and a stranger with a bare socket.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "rendezvous/auth.hpp"
#include "rendezvous/client.hpp"
#include "rendezvous/service.hpp"
#include "sys/fd.hpp"
#include "sys/stream.hpp"

namespace strait::rendezvous {

inline Secret secret_of(std::string_view text) {
  Secret secret;
  for (const char c : text) secret.bytes.push_back(static_cast<std::byte>(c));
  secret.given = true;
  return secret;
}

inline sys::Deadline soon(std::int64_t ms = 5'000) {
  return sys::Deadline::after_ns(ms * 1'000'000);
}

// Waits for something that another thread is about to do; false after five seconds.
template <class Condition>
bool eventually(Condition condition) {
  const sys::Deadline deadline = soon();
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

struct FakeNode : Handler {
  Result<ConnectReply> on_connect(PeerId peer, const ConnectRequest& request) override {
    note(peer);
    if (connect_takes_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(connect_takes_ms));
    if (request.qpn == 13) return with_remedy(fail(Code::limit, "no queue pairs left"), "Close a lane.");
    if (request.qpn == 14) throw std::runtime_error("out of everything");
    ConnectReply reply;
    reply.qpn = request.qpn + 1;
    reply.nic = request.nic;
    reply.name = "server for " + request.name;
    return reply;
  }
  Status on_ready(PeerId peer, const Ready& ready) override {
    note(peer);
    if (ready.qpn == 0) return fail(Code::invalid, "there is no such queue");
    return {};
  }
  Result<Target> on_lookup(PeerId peer, const std::string& name) override {
    note(peer);
    if (name != "kv/0") return fail(Code::gone, "nothing is published as \"{}\"", name);
    return Target{3, 1, 1, 0x1000, 4096, 17, 18, 0x2000};
  }
  Result<std::string> on_describe(PeerId peer) override {
    note(peer);
    return std::string("{}");
  }
  Result<std::string> on_count(PeerId peer) override {
    note(peer);
    return std::string(R"({"counters":{}})");
  }
  Result<Target> on_redeem(PeerId peer, const TicketBytes& ticket) override {
    note(peer);
    if (ticket[0] == std::byte{0}) return fail(Code::denied, "this ticket is forged");
    return Target{1, 2, 1, 0x3000, 64, 19, 0, 0};
  }
  void on_gone(PeerId peer) override {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(gone.insert(peer).second) << "told twice";
  }
  void note(PeerId peer) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(gone.count(peer), 0u) << "a request after its end";
    seen.insert(peer);
  }
  std::size_t gone_count() {
    const std::lock_guard lock(mutex);
    return gone.size();
  }

  std::atomic<int> connect_takes_ms{0};
  std::mutex mutex;
  std::set<PeerId> seen;
  std::set<PeerId> gone;
};

// Somebody who connects and says what they like.
struct Stranger {
  Stranger() = default;
  explicit Stranger(const sys::Endpoint& to) : fd(sys::tcp_connect(to, soon()).value()) {}

  void say(std::span<const std::byte> bytes) { EXPECT_TRUE(sys::send_all(fd.get(), bytes, soon())); }
  void say(std::string_view text) { say(std::as_bytes(std::span(text))); }
  void say(const Body& body) { say(encode({0, body}).value()); }
  // One plain message, or nothing when the other side closed first.
  Result<Body> hear() {
    std::vector<std::byte> frame(4);
    STRAIT_CHECK(sys::receive_all(fd.get(), frame, soon()));
    STRAIT_TRY(const std::size_t whole, frame_bytes(frame));
    frame.resize(whole);
    STRAIT_CHECK(sys::receive_all(fd.get(), std::span(frame).subspan(4), soon()));
    STRAIT_TRY(Message message, parse(frame));
    return std::move(message.body);
  }
  bool cut_off() {
    std::byte one{};
    const auto got = sys::receive_all(fd.get(), std::span(&one, 1), soon());
    return !got && got.error().code == Code::gone;
  }

  sys::Fd fd;
};

}  // namespace strait::rendezvous
