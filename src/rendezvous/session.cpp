// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/session.hpp"

namespace strait::rendezvous {
namespace {

Refusal refusal_of(const Error& error) {
  return Refusal{error.code, error.text, error.remedy};
}

template <class Answer, class Value>
Body answer_or_refusal(Result<Value> result) {
  if (!result) return refusal_of(result.error());
  if constexpr (std::is_void_v<Value>) {
    return Answer{};
  } else {
    return Answer{std::move(*result)};
  }
}

}  // namespace

std::size_t Session::room() const {
  const std::size_t most = state_ == State::peer ? kMaxFrameBytes + kSealBytes : kMaxGreetingBytes;
  return in_.size() < most ? most - in_.size() : 0;
}

bool Session::step() {
  if (finished()) {
    in_.clear();
    return false;
  }
  auto whole = frame_bytes(in_, state_ == State::peer ? kMaxFrameBytes : kMaxGreetingBytes);
  if (!whole) {
    host_->counters.garbage.add();
    refuse(0, std::move(whole).error());
    return true;
  }
  const std::size_t seal = state_ == State::peer ? kSealBytes : 0;
  if (*whole == 0 || in_.size() < *whole + seal) return false;
  const std::vector<std::byte> bytes(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(*whole + seal));
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(bytes.size()));
  if (state_ != State::peer) {
    greet(bytes);
  } else if (incoming_.open(std::span(bytes).first(*whole), std::span(bytes).subspan(*whole))) {
    serve(std::span(bytes).first(*whole));
  } else {
    host_->counters.garbage.add();
    refuse(0, fail(Code::denied, "a message was not made by the one who opened this connection"));
  }
  return true;
}

void Session::greet(std::span<const std::byte> frame) {
  auto message = parse(frame);
  const auto* hello = message ? std::get_if<Hello>(&message->body) : nullptr;
  const auto* proof = message ? std::get_if<Proof>(&message->body) : nullptr;
  if (state_ == State::hello && hello != nullptr) {
    if (hello->version != kProtocolVersion) {
      host_->counters.garbage.add();
      return refuse(0, fail(Code::unsupported, "this node speaks version {} of the rendezvous, not {}",
                            kProtocolVersion, hello->version));
    }
    nonces_.client = hello->nonce;
    state_ = State::proof;
    return send(0, Challenge{kProtocolVersion, nonces_.server});
  }
  if (state_ != State::proof || proof == nullptr) {
    host_->counters.garbage.add();
    return refuse(0, message
                         ? fail(Code::invalid, "a {} message does not belong into a greeting", type_name(message->body))
                         : std::move(message).error());
  }
  if (!same_digest(proof->mac, proof_of(Role::client, host_->secret, nonces_))) {
    host_->counters.denied.add();
    return refuse(0, fail(Code::denied, "not accepted"));  // whoever this is learns nothing from us
  }
  auto admitted = host_->admit();
  if (!admitted) return refuse(0, std::move(admitted).error());
  send(0, Proof{proof_of(Role::server, host_->secret, nonces_)});
  incoming_ = Seal(Role::client, host_->secret, nonces_);
  outgoing_ = Seal(Role::server, host_->secret, nonces_);
  peer_ = *admitted;
  state_ = State::peer;
  host_->counters.authenticated.add();
}

void Session::serve(std::span<const std::byte> frame) {
  std::uint32_t id = 0;
  auto message = parse(frame, &id);
  // A type we do not know comes from a newer peer, which can live with a refusal. Anything else malformed cannot be
  // trusted to be in step with us.
  if (!message && message.error().code == Code::unsupported) return send(id, refusal_of(message.error()));
  if (!message) {
    host_->counters.garbage.add();
    return refuse(id, std::move(message).error());
  }
  if (std::holds_alternative<Bye>(message->body)) {
    state_ = State::finished;
    return;
  }
  host_->counters.requests.add();
  send(id, answer(message->body));
}

Body Session::answer(const Body& request) try {
  Handler& handler = host_->handler;
  if (const auto* connect = std::get_if<ConnectRequest>(&request)) {
    auto reply = handler.on_connect(peer_, *connect);
    return reply ? Body(std::move(*reply)) : Body(refusal_of(reply.error()));
  }
  if (const auto* ready = std::get_if<Ready>(&request)) return answer_or_refusal<Done>(handler.on_ready(peer_, *ready));
  if (const auto* lookup = std::get_if<Lookup>(&request)) {
    return answer_or_refusal<LookupReply>(handler.on_lookup(peer_, lookup->name));
  }
  if (const auto* redeem = std::get_if<Redeem>(&request)) {
    return answer_or_refusal<RedeemReply>(handler.on_redeem(peer_, redeem->ticket));
  }
  if (std::holds_alternative<Describe>(request)) {
    auto record = handler.on_describe(peer_);
    return record ? Body(Described{std::move(*record)}) : Body(refusal_of(record.error()));
  }
  if (std::holds_alternative<Count>(request)) {
    auto record = handler.on_count(peer_);
    return record ? Body(Counted{std::move(*record)}) : Body(refusal_of(record.error()));
  }
  return refusal_of(fail(Code::invalid, "a {} message is not a request", type_name(request)));
} catch (const std::exception& thrown) {
  // Most likely out of memory. The thread lives on, and the peer hears about it.
  return refusal_of(fail(Code::limit, "the node could not answer: {}", thrown.what()));
}

void Session::send(std::uint32_t id, const Body& body) {
  auto frame = encode({id, body});
  if (!frame) frame = encode({id, refusal_of(frame.error())});  // texts of refusals are shortened, never refused
  if (!frame) return;
  if (state_ == State::peer) outgoing_.close(*frame);
  out_.insert(out_.end(), frame->begin(), frame->end());
}

void Session::refuse(std::uint32_t id, Error error) {
  send(id, refusal_of(error));
  state_ = State::finished;
}

}  // namespace strait::rendezvous
