// SPDX-License-Identifier: Apache-2.0
// Wrong: a read fetches what a write before it, not yet complete, has brought.
//
// Hardware usually lets this pass: on one queue of one NIC the write is executed first. Writes and reads do not have to
// meet in that order in memory, and with a second queue, a second path or memory behind another bridge they do not.
#include "rig.hpp"

int main() {
  static rig::Rig rig;
  static unsigned char back[4096];
  const rig::sd::Piece into{reinterpret_cast<std::uint64_t>(back), sizeof back, rig.a.share(back, sizeof back)};
  rig::sd::Completion done;
#ifdef FIXED
  (void)rig::sd::post_write<rig::kOne>(rig.a.send, rig.place(), rig.piece(sizeof back), rig::sd::kSignaled);
  rig.a.ring_doorbell();
  if (rig.wait(done) != rig::sd::Polled::done) return 1;  // the bytes are in the peer's memory
#else
  (void)rig::sd::post_write<rig::kOne>(rig.a.send, rig.place(), rig.piece(sizeof back), rig::sd::kNoFlags);
#endif
  (void)rig::sd::post_read<rig::kOne>(rig.a.send, rig.place(), into, rig::sd::kSignaled);
  rig.a.ring_doorbell();
  if (rig.wait(done) != rig::sd::Polled::done) return 1;
  std::puts(std::memcmp(back, rig.source, sizeof back) == 0 ? "read back what was written" : "read something else");
}
