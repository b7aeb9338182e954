// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/client.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "rendezvous/auth.hpp"
#include "sys/fork.hpp"
#include "sys/process.hpp"
#include "sys/stream.hpp"

namespace strait::rendezvous {
namespace {

constexpr std::int64_t kByeNs = 100'000'000;

Error not_strait(const sys::Endpoint& to, const Error& cause) {
  if (cause.code == Code::timeout) {
    return with_remedy(fail(Code::timeout, "{} took the connection but did not answer before the deadline", to.text()),
                       "Is a strait node listening there, and is its process running (not stopped)?");
  }
  if (cause.code == Code::gone) return fail(Code::gone, "{} closed the connection while greeting", to.text());
  if (cause.code != Code::invalid) return cause;  // its own words: full, another version
  return fail(Code::invalid, "what listens on {} is not a strait node ({})", to.text(), cause.text);
}

}  // namespace

struct Client::State {
  sys::Endpoint to;
  sys::ProcessFd fd;
  mutable std::timed_mutex mutex;  // guards what follows
  Seal outgoing;
  Seal incoming;
  std::vector<std::byte> received;  // not yet a whole frame
  std::uint32_t last_id = 0;
  bool broken = false;

  // One whole frame, with the seal (if any) left in `received` behind it.
  Result<std::size_t> fill_locked(std::size_t max_bytes, std::size_t seal_bytes, sys::Deadline deadline) {
    while (true) {
      STRAIT_TRY(const std::size_t whole, frame_bytes(received, max_bytes));
      if (whole != 0 && received.size() >= whole + seal_bytes) return whole;
      std::array<std::byte, 4096> chunk{};
      auto got = sys::receive_some(fd.get(), chunk);
      if (got) {
        received.insert(received.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(*got));
      } else if (got.error().code != Code::again) {
        return std::move(got).error();
      } else if (!sys::wait_ready(fd.get(), false, deadline)) {
        return fail(Code::timeout, "no answer before the deadline");
      }
    }
  }

  void drop_locked(std::size_t bytes) {
    received.erase(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(bytes));
  }

  template <class Answer>
  Result<Answer> greeting_locked(sys::Deadline deadline) {
    STRAIT_TRY(const std::size_t whole, fill_locked(kMaxGreetingBytes, 0, deadline));
    STRAIT_TRY(Message message, parse(std::span(received).first(whole)));
    drop_locked(whole);
    if (auto* answer = std::get_if<Answer>(&message.body)) return std::move(*answer);
    if (auto* refusal = std::get_if<Refusal>(&message.body)) return refusal->error();
    return fail(Code::invalid, "it answered with a {} message", type_name(message.body));
  }

  Status send_plain_locked(Body body, sys::Deadline deadline) {
    STRAIT_TRY(const auto frame, encode({0, std::move(body)}));
    return sys::send_all(fd.get(), frame, deadline);
  }

  Status greet_locked(const Secret& secret, sys::Deadline deadline) {
    Nonces nonces;
    STRAIT_CHECK(sys::fill_random(nonces.client));
    const auto answered = [&](const Error& cause) { return not_strait(to, cause); };
    if (auto sent = send_plain_locked(Hello{kProtocolVersion, nonces.client}, deadline); !sent)
      return answered(sent.error());
    auto challenge = greeting_locked<Challenge>(deadline);
    if (!challenge) return answered(challenge.error());
    nonces.server = challenge->nonce;
    if (auto sent = send_plain_locked(Proof{proof_of(Role::client, secret, nonces)}, deadline); !sent)
      return answered(sent.error());
    auto proof = greeting_locked<Proof>(deadline);
    if (!proof && proof.error().code == Code::denied) {
      return with_remedy(
          fail(Code::denied, "{} did not accept our secret", to.text()),
          "Both nodes need the same one: the option `secret` or `secret_file`, or the same user with the same "
          "XDG_RUNTIME_DIR on one host.");
    }
    if (!proof) return answered(proof.error());
    if (!same_digest(proof->mac, proof_of(Role::server, secret, nonces))) {
      return fail(Code::denied, "{} accepted our secret without knowing it: it is not the node we look for", to.text());
    }
    outgoing = Seal(Role::client, secret, nonces);
    incoming = Seal(Role::server, secret, nonces);
    return {};
  }

  Result<Body> call_locked(const Body& request, sys::Deadline deadline) {
    const std::uint32_t id = ++last_id;
    STRAIT_TRY(std::vector<std::byte> frame, encode({id, request}));
    outgoing.close(frame);
    if (auto sent = sys::send_all(fd.get(), frame, deadline); !sent) {
      broken = true;  // half a message may be on its way: nothing can follow it
      if (sent.error().code == Code::timeout)
        return fail(Code::timeout, "{} does not read our request: it was given up", to.text());
      return lost();
    }
    while (true) {
      auto whole = fill_locked(kMaxFrameBytes, kSealBytes, deadline);
      if (!whole && whole.error().code == Code::timeout) {
        return fail(Code::timeout, "{} did not answer a {} request before the deadline", to.text(), type_name(request));
      }
      if (!whole) {
        broken = true;
        return whole.error().code == Code::gone ? lost() : std::move(whole).error();
      }
      const auto bytes = std::span(received);
      if (!incoming.open(bytes.first(*whole), bytes.subspan(*whole, kSealBytes))) {
        broken = true;
        return fail(Code::denied, "an answer in the name of {} was not made by it: the connection was closed",
                    to.text());
      }
      auto message = parse(bytes.first(*whole));
      drop_locked(*whole + kSealBytes);
      if (!message) return std::move(message).error();
      if (message->id != id) continue;  // the late answer to a call that gave up
      if (auto* refusal = std::get_if<Refusal>(&message->body)) return refusal->error();
      return std::move(message->body);
    }
  }

  Error lost() const {
    return with_remedy(fail(Code::gone, "the node at {} closed the connection", to.text()),
                       "Its process ended, or it closed its node.");
  }
};

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}

Client::~Client() {
  if (!state_->fd.valid() || state_->broken) return;
  if (auto frame = encode({0, Bye{}})) {
    state_->outgoing.close(*frame);
    (void)sys::send_all(state_->fd.get(), *frame, sys::Deadline::after_ns(kByeNs));
  }
}

Result<std::unique_ptr<Client>> Client::connect(const sys::Endpoint& to, const Secret& secret, sys::Deadline deadline) {
  auto state = std::make_unique<State>();
  state->to = to;
  STRAIT_TRY(sys::Fd fd, sys::tcp_connect(to, deadline));
  state->fd = sys::ProcessFd(std::move(fd));
  STRAIT_CHECK(state->greet_locked(secret, deadline));
  return std::unique_ptr<Client>(new Client(std::move(state)));
}

Result<Body> Client::call(const Body& request, sys::Deadline deadline) {
  // Before the lock: another thread may have held it when this process was forked.
  if (!state_->fd.valid()) {
    return fail(Code::gone, "this connection to {} belongs to the process that forked this one", state_->to.text());
  }
  // By the system clock: the steady one goes through a call that thread sanitizers do not know yet.
  const auto left = std::chrono::nanoseconds(std::min<std::int64_t>(deadline.left_ns(), 3'600'000'000'000));
  const std::unique_lock lock(state_->mutex, std::chrono::system_clock::now() + left);
  if (!lock.owns_lock()) {
    return fail(Code::timeout, "another request to {} is still waiting for its answer, and the deadline passed",
                state_->to.text());
  }
  if (state_->broken) return state_->lost();
  return state_->call_locked(request, deadline);
}

const sys::Endpoint& Client::endpoint() const {
  return state_->to;
}

bool Client::alive() const {
  return state_->fd.valid() && !sys::at_end(state_->fd.get());
}

}  // namespace strait::rendezvous
