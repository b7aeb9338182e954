// SPDX-License-Identifier: Apache-2.0
// A device that is removed under the program (option faults: gone=N), as the kernel presents it: an asynchronous event,
// everything that was posted flushed, nothing new to be had. What is there can be given back. To its peers it is
// silent.
#include "soft/nic/engine.hpp"

namespace strait::soft::nic {

Status Engine::there() const {
  if (!gone_) return {};
  return with_remedy(fail(Code::gone, "the NIC {} is no longer there", config_.name),
                     "Was it removed, or its driver unloaded? Open the Node again when it is back.");
}

void Engine::vanish() {
  gone_ = true;
  ++counts_.faults_injected;
  for (QueuePair* const qp : active_) {
    if (qp->state == QpState::reset) continue;
    read_doorbell(*qp);
    fail_queue(*qp);
  }
  ack_due_.clear();
  if (sink_ != nullptr) sink_->on_async({AsyncKind::device_fatal, 0, 0});
}

// Who posts to it all the same gets it back.
int Engine::pass_without_device() {
  if (!gone_) {
    vanish();
    return 1;
  }
  int done = copies_under_way() ? finish_copies() : 0;
  for (QueuePair* const qp : active_) {
    read_doorbell(*qp);
    if (qp->state != QpState::error || (qp->next == qp->producer && qp->receives_posted() == 0)) continue;
    flush_queue(*qp);
    ++done;
  }
  if (!event_cqs_.empty()) done += tell_events();
  return done;
}

}  // namespace strait::soft::nic
