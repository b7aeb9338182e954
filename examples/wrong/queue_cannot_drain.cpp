// SPDX-License-Identifier: Apache-2.0
// Wrong: a whole queue of work of which none asks for a completion.
//
// Only a completion tells that blocks may be used again, and one covers everything before it; so most work is posted
// without. Hardware lets this pass as long as no more is posted than the queue holds. The next request finds no room,
// and none will ever be free.
#include "rig.hpp"

int main() {
  static rig::Rig rig(3);  // eight blocks
  for (int i = 0; i < 8; ++i) {
#ifdef FIXED
    const auto flags = i == 7 ? rig::sd::kSignaled : rig::sd::kNoFlags;  // the last one speaks for all
#else
    const auto flags = rig::sd::kNoFlags;  // "nobody is waiting for them"
#endif
    if (!rig::sd::post_write<rig::kOne>(rig.a.send, rig.place(), rig.piece(64), flags).ok()) return 1;
  }
  rig.a.ring_doorbell();
  rig::sd::Completion done;
  (void)rig.wait(done);
  std::printf("%llu of 8 blocks are free again\n",
              static_cast<unsigned long long>(rig::sd::free_blocks<rig::kOne>(rig.a.send)));
}
