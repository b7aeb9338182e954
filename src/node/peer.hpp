// SPDX-License-Identifier: Apache-2.0
// The peer handle: a connected process, its shared lane, and, on the side that was connected to, the far ends of the
// further lanes the other side opened.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grant/host.hpp"
#include "node/lane.hpp"
#include "rail/mlx5/queue.hpp"
#include "rendezvous/client.hpp"
#include "rendezvous/service.hpp"

struct strait_peer {
  std::shared_ptr<strait::node::Core> node;
  std::string name;     // for people
  std::string address;  // where its rendezvous listens
  std::int32_t pid = 0;
  bool same_host = false;
  std::mutex join_mutex;                  // one lane is opened at a time
  bool joined = false;                    // `client` has made a queue already: further ones are extra lanes
  strait::rendezvous::PeerId served = 0;  // its connection to our rendezvous; 0: we connected to it
  std::atomic<bool> gone{false};          // that connection ended

  strait::grant::NodeId node_id{};
  std::mutex host_mutex;  // making the host below
  bool host_tried = false;
  std::shared_ptr<strait::grant::Host> host;  // null: not of this host, or no grants
  std::string no_grants_because;              // part of the paths of its lanes

  std::mutex client_mutex;                             // making the client below
  std::shared_ptr<strait::rendezvous::Client> client;  // our connection to its rendezvous; made when first needed
  std::unique_ptr<strait_lane> lane;
  std::vector<std::unique_ptr<strait::rail::Queue>>
      passive;  // far ends of lanes it opened; under the Node's peers_mutex
};

namespace strait::node {

// Our connection to the peer's rendezvous, made now if there is none.
[[nodiscard]] Result<std::shared_ptr<rendezvous::Client>> client_of(strait_peer& peer, const rendezvous::Secret& secret,
                                                                    sys::Deadline deadline);

}  // namespace strait::node
