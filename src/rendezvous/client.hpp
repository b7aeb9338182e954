// SPDX-License-Identifier: Apache-2.0
// The asking side of the rendezvous: an authenticated connection to another Node's service.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "rendezvous/codec.hpp"
#include "rendezvous/secret.hpp"
#include "sys/clock.hpp"
#include "sys/socket.hpp"

namespace strait::rendezvous {

// Any thread; calls take turns. Closing says bye.
class Client {
 public:
  // Connects and proves to each other that both know the secret. Code::denied when either does not.
  [[nodiscard]] static Result<std::unique_ptr<Client>> connect(const sys::Endpoint& to, const Secret& secret,
                                                               sys::Deadline deadline);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the request and waits for its answer. A Refusal comes back as its Error. After Code::timeout the connection
  // is still good: a late answer is recognised by its id and dropped. After Code::gone it is not.
  [[nodiscard]] Result<Body> call(const Body& request, sys::Deadline deadline);

  // The same with the expected answer: call_for<LookupReply>(Lookup{"kv/0"}, deadline).
  template <class Answer>
  [[nodiscard]] Result<Answer> call_for(const Body& request, sys::Deadline deadline) {
    STRAIT_TRY(Body body, call(request, deadline));
    if (auto* answer = std::get_if<Answer>(&body)) return std::move(*answer);
    return fail(Code::invalid, "the peer answered a request with the wrong message ({})", type_name(body));
  }

  [[nodiscard]] const sys::Endpoint& endpoint() const;
  // False once the peer closed the connection (its process ended, or its Node closed). Does not block, costs a system
  // call.
  [[nodiscard]] bool alive() const;

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strait::rendezvous
