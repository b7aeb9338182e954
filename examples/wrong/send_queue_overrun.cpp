// SPDX-License-Identifier: Apache-2.0
// Wrong: work is posted into blocks whose earlier work is not complete.
//
// A block belongs to the NIC until the completion of its work request, not only until the NIC has read it. Hardware
// usually lets this pass: it has long fetched the old request. When a packet is lost it reads the block again, and
// sends what is there now.
#include "rig.hpp"

int main() {
  static rig::Rig rig(2);  // four blocks
  int completions = 0;
  rig::sd::Completion done;
  for (int i = 0; i < 8; ++i) {
#ifdef FIXED
    // Room is what completions have given back; there is none before the first has been taken.
    if (rig::sd::free_blocks<rig::kOne>(rig.a.send) == 0 && rig.wait(done) == rig::sd::Polled::done) ++completions;
#else
    // "The NIC has read it by now". A ring written by hand that counts nothing comes to the same.
    rig.a.send.slots.completed = rig.a.send.slots.ready;
#endif
    const auto posted = rig::sd::post_write<rig::kOne>(rig.a.send, rig.place(), rig.piece(64), rig::sd::kSignaled);
    if (!posted.ok()) return 1;
    rig.a.ring_doorbell();
  }
  while (completions < 8 && rig.wait(done) == rig::sd::Polled::done) ++completions;
  std::printf("%d of 8 writes complete\n", completions);
}
