// SPDX-License-Identifier: Apache-2.0
// The initiator's side of one operation: whom it tells, and what comes of it.
#pragma once

#include <cstdint>

#include "soft/cassini/engine.hpp"

namespace strait::soft::cassini {

struct Initiator {
  Card& card;
  Cq& cq;
  Eq* eq = nullptr;
  Ct* ct = nullptr;
  std::uint32_t flags = 0;  // wire::kEvent*
  std::uint64_t user_ptr = 0;
  bool errors_only = false;  // NOMATCH: success is told by the counter alone

  // The queues and counters that a command names. invalid_event: there is none of that number for this client.
  [[nodiscard]] wire::ReturnCode open(std::uint32_t eq_number, std::uint32_t ct_number);
  // This client's own memory, for a command of its own.
  [[nodiscard]] wire::ReturnCode reach(std::uint32_t lac, std::uint64_t address, std::uint64_t bytes, bool write,
                                       Extents& out) const;
  // The answer of whoever the address belongs to.
  [[nodiscard]] Answer send(Request& request, std::uint32_t dfa) const;
  // Events and counts. `left`: the request did leave this card, so a SEND comes before the ACK. get: there is none.
  void finish(const Answer& answer, wire::EventType type, bool left) const;
  // Nothing left the card.
  void refuse(wire::ReturnCode code, wire::EventType type) const {
    Answer answer;
    answer.code = code;
    finish(answer, type, false);
  }

 private:
  void tell(const Answer& answer, wire::EventType type) const;
};

// ATOMIC and FETCHING_ATOMIC, with the operands already in the request; the result goes to (lac, address).
void send_atomic(const Initiator& initiator, Request& request, std::uint32_t dfa, std::uint32_t lac,
                 std::uint64_t address);

}  // namespace strait::soft::cassini
