// SPDX-License-Identifier: Apache-2.0
// Session: what one connection of the service has said so far, and the answer. No sockets: bytes in, bytes out.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "base/counters.hpp"
#include "rendezvous/auth.hpp"
#include "rendezvous/service.hpp"

namespace strait::rendezvous {

struct ServiceCounters {
  Counter accepted, authenticated, denied, garbage, timed_out, requests;
  std::atomic<std::size_t> strangers{0}, peers{0};
};

// What all sessions of a service share.
struct SessionHost {
  const Secret& secret;
  Handler& handler;
  ServiceCounters& counters;
  std::function<Result<PeerId>()> admit;  // a stranger proved itself: its number, or why there is no room
};

class Session {
 public:
  // `nonce` is the server's, fresh for every session.
  Session(SessionHost& host, const Bytes32& nonce) : host_(&host) { nonces_.server = nonce; }

  void receive(std::span<const std::byte> bytes) { in_.insert(in_.end(), bytes.begin(), bytes.end()); }
  // Handles one whole frame if there is one; its answer is appended to out(). False: nothing to do.
  bool step();

  [[nodiscard]] std::vector<std::byte>& out() { return out_; }
  [[nodiscard]] bool finished() const { return state_ == State::finished; }  // send out(), then close
  [[nodiscard]] bool partial() const { return !in_.empty(); }
  [[nodiscard]] bool is_peer() const { return peer_ != 0; }
  [[nodiscard]] PeerId peer() const { return peer_; }
  // The most bytes worth holding: a frame of the largest size allowed now, with its seal.
  [[nodiscard]] std::size_t room() const;

 private:
  enum class State { hello, proof, peer, finished };
  void greet(std::span<const std::byte> frame);
  void serve(std::span<const std::byte> frame);
  Body answer(const Body& request);
  void send(std::uint32_t id, const Body& body);
  void refuse(std::uint32_t id, Error error);  // and finish

  SessionHost* host_;
  State state_ = State::hello;
  Nonces nonces_;
  Seal incoming_;
  Seal outgoing_;
  PeerId peer_ = 0;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
};

}  // namespace strait::rendezvous
