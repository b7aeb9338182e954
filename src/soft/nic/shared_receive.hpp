// SPDX-License-Identifier: Apache-2.0
// A shared receive queue: a list of entries that many queue pairs take their receives from.
//
// Entries are linked in the ring itself. The engine begins at entry 0 and follows the links; the program links an entry
// to the end again when it has seen its completion. The record counts how many were ever posted.
#pragma once

#include <cstdint>
#include <optional>

#include "soft/nic/completion.hpp"
#include "soft/nic/decode.hpp"
#include "soft/nic/verbs.hpp"

namespace strait::soft::nic {

class SharedReceive {
 public:
  SharedReceive(std::uint32_t number, const SrqRequest& request, CompletionQueue* cq);

  // Posted and not yet taken.
  [[nodiscard]] std::uint32_t waiting() const;
  // The next entry: which one, and what is in it. Nothing: the list is broken, and the queue is in error for good.
  [[nodiscard]] std::optional<std::uint16_t> take();
  [[nodiscard]] DecodeFault read(std::uint16_t entry, ReceiveWork& out) const;

  const std::uint32_t number;
  const SrqRequest request;
  CompletionQueue* const cq;  // XRC: where its receives complete; null otherwise
  std::uint32_t users = 0;    // queue pairs
  std::uint32_t limit = 0;    // an event when fewer are waiting; 0: none
  bool broken = false;

 private:
  RingView ring_;
  const std::uint32_t* record_;
  std::uint16_t taken_ = 0;
  std::uint16_t head_ = 0;
};

}  // namespace strait::soft::nic
