// SPDX-License-Identifier: Apache-2.0
// Wrong: a counter is freed while a triggered operation still waits for it.
//
// Freeing it drops what waits, without a word: the operation never happens, and who waits for its result waits for
// ever. On a busy node another program's counter may have the number by then.
#include "cassini.hpp"

int main(int count, char** words) {
  namespace w = cassini::w;
  cassini::Card card(count, words);
  alignas(64) static std::uint64_t written[16];
  const auto counter = [&](std::uint64_t* word) {
    w::CtAllocCmd command{};
    command.lni = card.lni;
    command.wb = reinterpret_cast<std::uint64_t>(word);
    return card.ask<w::CtAllocResp>(command).ctn;
  };
  const std::uint32_t arrivals = counter(&written[0]), rounds = counter(&written[8]);
  (void)card.profile();  // counters' queues have the first one
  cassini::Queue queue(card, w::kCqIsTx | w::kCqTxTriggered, w::kTriggeredLcid);

  // When 10 have arrived, a round is over.
  w::CmdWords<8> block{};
  w::CtCmd command{};
  command.set_header(w::CmdType::ct, w::CmdSize::b64, w::CtOp::trig_inc);
  command.set_trig_ct(arrivals);
  command.set_threshold(10);
  command.set_ct(rounds);
  command.set_ct_success(1);
  command.set_with_success(true);
  std::memcpy(&block, &command, sizeof command);
  queue.run(block);

#ifdef FIXED
  w::CtCmd cancel{};  // nobody is to come any more
  cancel.set_header(w::CmdType::ct, w::CmdSize::b64, w::CtOp::cancel);
  cancel.set_ct(arrivals);
  block = {};
  std::memcpy(&block, &cancel, sizeof cancel);
  queue.run(block);
#endif
  for (const std::uint32_t each : {arrivals, rounds}) {
    w::CtFreeCmd no_counter{};
    no_counter.ctn = each;
    card.tell(no_counter);
  }
}
