// SPDX-License-Identifier: Apache-2.0
// Wrong: more completions can be under way than the completion queue holds.
//
// Hardware usually lets this pass, as long as the program takes completions faster than they come. The day it is
// scheduled late the queue overruns: the entries are lost and the queue is dead, with an asynchronous event that few
// programs read.
#include "rig.hpp"

int main() {
#ifdef FIXED
  static rig::Rig rig(6, 3);  // eight entries for eight writes
#else
  static rig::Rig rig(6, 2);  // "four are enough, we poll all the time"
#endif
  for (int i = 0; i < 8; ++i) {
    const auto posted = rig::sd::post_write<rig::kOne>(rig.a.send, rig.place(), rig.piece(64), rig::sd::kSignaled);
    if (!posted.ok()) return 1;
  }
  rig.a.ring_doorbell();
  const auto busy = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  while (std::chrono::steady_clock::now() < busy) {  // the program is held up, and the NICs are not
    rig.a.drive();
    rig.b.drive();
  }
  int completions = 0;
  rig::sd::Completion done;
  while (completions < 8 && rig.wait(done) == rig::sd::Polled::done) ++completions;
  std::printf("%d of 8 completions came\n", completions);
}
