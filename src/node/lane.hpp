// SPDX-License-Identifier: Apache-2.0
// The lane handle: a post::Lane with its peer, its path for people, and who may use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/spin_lock.hpp"
#include "node/fork.hpp"
#include "node/sleeper.hpp"
#include "post/lane.hpp"
#include "rendezvous/client.hpp"
#include "strait/c.h"
#include "strait/wire/mlx5.hpp"
#include "sys/host.hpp"

namespace strait::node {
class Core;
struct Near;
}  // namespace strait::node

struct alignas(64) strait_lane {
  strait::post::Lane core;
  // The same as `near` where words may go the short way (near_word.hpp); null: not on a lane that callers share, that
  // was closed, or that has to make its own fences. In the cache line of what that way reads of `core`.
  std::atomic<strait::node::Near*> words{nullptr};
  const strait::sys::ForkMark* mark = nullptr;
  strait::node::Sleeper* sleeper = nullptr;
  std::atomic<strait::node::Near*> near{nullptr};  // null: nothing of the peer is in reach but through the NIC
  bool shared = false;                             // the peer's own lane: callers take the mutex
  std::atomic<bool> closed{false};                 // by strait_node_close: the queue is gone, the handle is a shell
  std::atomic<bool> peer_gone{false};
  std::uint8_t rail = 0;  // the NIC it goes over, here and at the far end
  std::uint8_t far_rail = 0;
  std::atomic<std::uint64_t> polls{0};  // written by who uses the lane, read by the progress thread
  const void* owner_thread = nullptr;
  strait::SpinLock mutex;

  std::shared_ptr<strait::node::Core> node;
  std::shared_ptr<strait::rendezvous::Client> client;  // null on the side that was connected to: then peer_gone tells
  std::string peer_name;
  std::string path;

  std::unique_ptr<strait::node::Near> near_side;
  std::unique_ptr<strait::post::BatchItem[]> long_batch;  // of a lane with one owner: as many as fit, once it posts one
  std::atomic<bool> failure_told{false};                  // in the log, once

  explicit strait_lane(strait::post::Lane lane);
  ~strait_lane();
};

namespace strait::node {

// Held while a call touches the lane. Lanes with one owner take no lock; in debug builds the owner is checked.
class Using {
 public:
  explicit Using(strait_lane& lane) : lane_(lane) {
    if (lane.shared) lane.mutex.lock();
  }
  ~Using() {
    if (lane_.shared) lane_.mutex.unlock();
  }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  strait_lane& lane_;
};

#ifdef NDEBUG
inline bool right_thread(strait_lane&) {
  return true;
}
#else
inline bool right_thread(strait_lane& lane) {
  if (lane.shared) return true;
  if (lane.owner_thread == nullptr) lane.owner_thread = sys::thread_mark();
  return lane.owner_thread == sys::thread_mark();
}
#endif

// False once the peer's process or Node is known to have ended. Costs a system call.
[[nodiscard]] bool peer_alive(const strait_lane& lane);

// Why a lane cannot be used at all, checked before every call; ok costs three loads.
[[nodiscard]] inline bool lane_usable(strait_lane& lane) {
  return !lane.mark->in_child() && !lane.closed.load(std::memory_order_relaxed) && right_thread(lane);
}
[[nodiscard]] Error why_unusable(strait_lane& lane);

// What kind of failure a NIC's syndrome is.
[[nodiscard]] Code code_of(wire::mlx5::Syndrome syndrome);
// Why a post was refused, as a sentence.
[[nodiscard]] Error why_refused(strait_lane& lane, post::Posted posted, post::Kind kind);
// Why an operation failed, as a sentence with the NIC's syndrome.
[[nodiscard]] Error why_failed(strait_lane& lane, const post::Outcome& outcome);

}  // namespace strait::node
