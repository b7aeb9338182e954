// SPDX-License-Identifier: Apache-2.0
// A peer that asked to connect and has not said yet that its own queue is ready.
#pragma once

#include "node/core.hpp"
#include "node/peer.hpp"

namespace strait::node {

struct Core::Incoming {
  std::unique_ptr<strait_peer> peer;
  std::uint32_t remote_qpn = 0;
};

}  // namespace strait::node
