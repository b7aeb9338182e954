// SPDX-License-Identifier: Apache-2.0
// C ABI: peers and their lanes.
#include "node/answer.hpp"
#include "node/bury.hpp"
#include "node/core.hpp"
#include "node/peer.hpp"

using namespace strait;
using namespace strait::node;

extern "C" {

std::int32_t strait_connect(strait_node* node, const char* address, std::int64_t timeout_ns, strait_peer** out,
                            strait_error* error) {
  if (node == nullptr || address == nullptr || out == nullptr) return answer_null(error, "node, address or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    STRAIT_TRY(*out, node->core->connect(address, node->core->connect_deadline(timeout_ns)));
    return {};
  });
}

std::int32_t strait_accept(strait_node* node, std::int64_t timeout_ns, strait_peer** out, strait_error* error) {
  if (node == nullptr || out == nullptr) return answer_null(error, "node or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(node->core->usable("node"));
    STRAIT_TRY(*out, node->core->accept(node->core->deadline(timeout_ns)));
    return {};
  });
}

void strait_peer_close(strait_peer* peer) {
  if (peer == nullptr) return;
  if (peer->node->in_child()) return bury(peer);
  const std::shared_ptr<Core> core = peer->node;
  (void)guarded(nullptr, [&]() -> Status {
    core->close_peer(peer);
    return {};
  });
}

const char* strait_peer_name(const strait_peer* peer) {
  return peer == nullptr ? "" : peer->name.c_str();
}

std::int32_t strait_lookup(strait_peer* peer, const char* name, std::int64_t timeout_ns, strait_target* out,
                           strait_error* error) {
  if (peer == nullptr || name == nullptr || out == nullptr) return answer_null(error, "peer, name or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(peer->node->usable("peer"));
    return peer->node->lookup(*peer, name, peer->node->connect_deadline(timeout_ns), *out);
  });
}

std::int32_t strait_redeem(strait_peer* peer, const strait_ticket* ticket, std::int64_t timeout_ns, strait_target* out,
                           strait_error* error) {
  if (peer == nullptr || ticket == nullptr || out == nullptr) return answer_null(error, "peer, ticket or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(peer->node->usable("peer"));
    return peer->node->redeem(*peer, *ticket, peer->node->connect_deadline(timeout_ns), *out);
  });
}

std::int32_t strait_lane_open(strait_peer* peer, const strait_lane_options* options, std::int64_t timeout_ns,
                              strait_lane** out, strait_error* error) {
  if (peer == nullptr || out == nullptr) return answer_null(error, "peer or out");
  return guarded(error, [&]() -> Status {
    STRAIT_CHECK(peer->node->usable("peer"));
    std::uint32_t depth = 0;
    std::uint32_t signal_every = 1;
    std::string near_device;
    if (options != nullptr) {
      if (options->struct_size < offsetof(strait_lane_options, signal_every)) {
        return fail(Code::invalid, "strait_lane_options.struct_size is {}, which is too small", options->struct_size);
      }
      depth = options->depth;
      if (options->struct_size > offsetof(strait_lane_options, signal_every) && options->signal_every != 0)
        signal_every = options->signal_every;
      if (options->struct_size >= sizeof(strait_lane_options) && options->near_device != nullptr)
        near_device = options->near_device;
    }
    STRAIT_TRY(
        *out, peer->node->open_lane(*peer, depth, signal_every, near_device, peer->node->connect_deadline(timeout_ns)));
    return {};
  });
}

strait_lane* strait_peer_lane(strait_peer* peer) {
  return peer == nullptr ? nullptr : peer->lane.get();
}

}  // extern "C"
