// SPDX-License-Identifier: Apache-2.0
// The serving side of the rendezvous: one thread that authenticates whoever connects and hands their requests to the
// Node.
//
// Strangers (not authenticated yet) get little: a few of them at a time, small frames, a deadline, and a refusal that
// does not say why. A peer is a connection that knew the secret; it stays open as long as the peer wants to be known,
// and its end is how the Node learns that the peer is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "rendezvous/codec.hpp"
#include "rendezvous/secret.hpp"
#include "sys/socket.hpp"

namespace strait::rendezvous {

// One authenticated connection; never reused within a service.
using PeerId = std::uint64_t;

// Called on the service's thread, one call at a time. A call may block for a moment (connecting a queue pair): other
// clients wait meanwhile, and that time is not counted against their deadlines. It must not call stop() or wait for a
// Client that talks to this same service.
class Handler {
 public:
  virtual ~Handler() = default;
  [[nodiscard]] virtual Result<ConnectReply> on_connect(PeerId peer, const ConnectRequest& request) = 0;
  [[nodiscard]] virtual Status on_ready(PeerId peer, const Ready& ready) = 0;
  [[nodiscard]] virtual Result<std::string> on_describe(PeerId peer) = 0;  // a record of this machine
  [[nodiscard]] virtual Result<std::string> on_count(PeerId peer) = 0;     // what was counted here, JSON
  [[nodiscard]] virtual Result<Target> on_lookup(PeerId peer, const std::string& name) = 0;
  [[nodiscard]] virtual Result<Target> on_redeem(PeerId peer, const TicketBytes& ticket) = 0;
  // Said bye, closed, broke the protocol, or the service stops. Once for every connection that authenticated, asked or
  // not.
  virtual void on_gone(PeerId peer) = 0;
};

struct ServiceSettings {
  sys::Endpoint at{"127.0.0.1", 0};
  Secret secret;
  std::size_t max_strangers = 32;  // more wait in the kernel's queue
  std::size_t max_peers = 1024;
  std::int64_t greeting_ns = 2'000'000'000;  // to authenticate
  std::int64_t frame_ns = 5'000'000'000;     // from the first byte of a frame to its last, and to take an answer
};

struct ServiceStats {
  std::uint64_t accepted = 0;
  std::uint64_t authenticated = 0;
  std::uint64_t denied = 0;     // wrong secret
  std::uint64_t garbage = 0;    // closed for breaking the protocol
  std::uint64_t timed_out = 0;  // silent or slow
  std::uint64_t requests = 0;
  std::size_t strangers = 0;  // now
  std::size_t peers = 0;      // now
};

class Service {
 public:
  // Listens and starts the thread. Fails when the port is taken, or when the address would need a given secret
  // (check_listen).
  [[nodiscard]] static Result<std::unique_ptr<Service>> start(const ServiceSettings& settings, Handler& handler);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Closes every connection and joins the thread; on_gone is called for every peer before it returns. In a forked child
  // there is no thread and nothing is served; the descriptors were closed by the fork.
  void stop();
  [[nodiscard]] const sys::Endpoint& endpoint() const;
  [[nodiscard]] ServiceStats stats() const;

 private:
  class Loop;
  explicit Service(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace strait::rendezvous
