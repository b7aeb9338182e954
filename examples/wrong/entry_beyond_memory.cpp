// SPDX-License-Identifier: Apache-2.0
// Wrong: a list entry is longer than the memory that was mapped for it.
//
// Nothing happens until a peer writes to the rest, and then it is the peer that fails, far from the mistake. Where
// another buffer was mapped behind this one, the peer writes into that.
#include "cassini.hpp"

int main(int count, char** words) {
  namespace w = cassini::w;
  constexpr std::uint64_t kBytes = 1 << 16;
  alignas(4096) static unsigned char memory[kBytes];
  cassini::Card card(count, words);
  w::AtuMapCmd map{};
  map.lni = card.lni;
  map.va = reinterpret_cast<std::uint64_t>(memory);
  map.flags = w::kMapPin | w::kMapRead | w::kMapWrite;
  map.hints.dmabuf_fd = w::kNoDmabufFd;
#ifdef FIXED
  map.len = sizeof memory;
#else
  map.len = sizeof memory / 2;  // as it was before the buffer grew
#endif
  const w::Md md = card.ask<w::AtuMapResp>(map).md;

  w::PteAllocCmd portal{};
  portal.lni_hndl = card.lni;
  const std::uint32_t number = card.ask<w::PteAllocResp>(portal).pte_number;
  w::TargetCmd entry{};
  entry.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::append);
  entry.set_ptlte_index(number);
  entry.set_ptl_list(w::PtlList::priority);
  entry.set_flags(w::kLeOpPut | w::kLeEventLinkDisable | w::kLeEventUnlinkDisable);
  entry.set_match_id(w::kMatchAnyone);
  entry.set_lac(md.lac);
  entry.set_start(md.iova + (map.va - md.va));
  entry.set_length(sizeof memory);
  cassini::Queue queue(card, 0, 0);
  queue.run(entry);

  entry.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::unlink);
  queue.run(entry);
}
