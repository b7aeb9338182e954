// SPDX-License-Identifier: Apache-2.0
// Wrong: a communication profile is freed before the queue that sends with it.
//
// The driver allows it, and what the queue holds is a number of four bits. The next profile of the group gets the same
// number: commands still in the ring, or a trigger that fires later, then leave on somebody else's VNI.
#include "cassini.hpp"

int main(int count, char** words) {
  cassini::Card card(count, words);
  const auto profile = card.profile();
  cassini::Queue queue(card, cassini::w::kCqIsTx, profile.lcid);
  cassini::w::CpFreeCmd no_profile{};
  no_profile.cp_hndl = profile.cp_hndl;
#ifdef FIXED
  queue.free();
  card.tell(no_profile);
#else
  card.tell(no_profile);
  queue.free();
#endif
}
