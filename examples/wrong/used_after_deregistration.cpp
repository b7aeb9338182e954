// SPDX-License-Identifier: Apache-2.0
// Wrong: memory is deregistered while work that uses it is still in the queue.
//
// Hardware usually lets this pass, because it has read the payload before the driver has removed the key. When it has
// not, the request fails with a protection error, or, where the key is cached, reads pages that are somebody else's.
#include "rig.hpp"

int main() {
  static rig::Rig rig;
  rig::sd::Completion done;
  const auto posted = rig::sd::post_write<rig::kOne>(rig.a.send, rig.place(), rig.piece(64), rig::sd::kSignaled);
  if (!posted.ok()) return 1;
#ifdef FIXED
  rig.a.ring_doorbell();
  const auto polled = rig.wait(done);  // nothing uses the memory any more
  rig.a.ops.deregister_memory(rig.a.nic, rig.source_key, &rig.a.error);
#else
  rig::sd::ring_doorbell<rig::kOne>(rig.a.send);
  rig.a.ops.deregister_memory(rig.a.nic, rig.source_key, &rig.a.error);  // "it is posted, we are done with it"
  const auto polled = rig.wait(done);
#endif
  std::printf("the write ended with syndrome 0x%02x\n",
              polled == rig::sd::Polled::done ? 0u : static_cast<unsigned>(done.syndrome));
}
