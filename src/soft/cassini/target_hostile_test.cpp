// SPDX-License-Identifier: Apache-2.0
// Commands and requests of strangers: whatever their bits, the books stay right and nothing else is touched.
#include <random>

#include "soft/cassini/target_testing.hpp"

namespace strait::soft::cassini::testing {

class CassiniHostile : public TargetTest {
 protected:
  static std::size_t entries_of(const Pte& pte) {
    std::size_t entries = pte.unexpected.size();
    for (const auto& list : pte.lists) entries += list.size();
    return entries;
  }
};

TEST_F(CassiniHostile, RandomCommandsAndRequests) {
  std::mt19937_64 random(2026);
  std::vector<Pte*> portals;
  for (std::uint32_t i = 0; i < 24; ++i) portals.push_back(&here.portal(i, random() & 0x1ffff, false));
  Pte& source = there.portal(target::kRendezvousIndex, kMatching);
  there.append(Side::for_all(Side::buffer(source, wire::PtlList::priority, 1, 0, Side::kBytes)));
  std::vector<char> bytes(4096, 'x');
  const Extents local = plain(bytes.data(), bytes.size());
  std::size_t accepted = 0;
  for (int step = 0; step < 200000; ++step) {
    if (random() % 3 == 0) {
      wire::TargetCmd c{};
      for (std::uint64_t& word : c.words) word = random();
      if (random() % 16 != 0) {
        // Likely enough to get somewhere.
        c.set_header(wire::CmdType::cq, wire::CmdSize::b64, static_cast<wire::TargetOp>(8 + random() % 5));
        c.set_ptlte_index(static_cast<std::uint32_t>(random() % 26));
        c.set_buffer_id(static_cast<std::uint32_t>(random() % 8));
        c.set_lac(Side::kLac);
        if (c.opcode() != static_cast<std::uint32_t>(wire::TargetOp::set_state)) {
          c.set_start(Side::kIova + random() % 70000);
          c.set_length(random() % 5000);
          if (random() % 4 != 0) c.set_flags(c.flags() | wire::kLeOpPut | wire::kLeOpGet);
          c.set_ignore_bits(random() % 2 == 0 ? ~std::uint64_t{0} : random());
          c.set_match_id(random() % 2 == 0 ? wire::kMatchAnyone : static_cast<std::uint32_t>(random()));
        } else {
          c.words[2] |= 0xffffff;
          if (random() % 4 != 0) c.set_ptl_list(static_cast<wire::PtlList>(wire::PteState::enabled));
          c.words[0] &= ~(std::uint64_t{4} << 8);
        }
      }
      (void)here.run(c);
    } else {
      Request r = request(static_cast<wire::DmaOp>(random() % 16), static_cast<std::uint32_t>(random() % 25),
                          static_cast<std::uint32_t>(random() % 4097));
      r.restricted = random() % 4 == 0;
      r.match_bits = random();
      r.initiator = random() % 2 == 0 ? r.initiator : static_cast<std::uint32_t>(random());
      r.remote_offset = random() % 2 == 0 ? random() % 4096 : random() >> 8;
      r.eager_length = static_cast<std::uint32_t>(random() % 5000);
      r.use_offset_for_get = random() % 2 == 0;
      r.atomic_op = static_cast<wire::AtomicOp>(random() % 16);
      r.atomic_type = static_cast<wire::AtomicType>(random() % 16);
      r.cswap_op = static_cast<wire::CswapOp>(random() % 8);
      if (r.op == wire::DmaOp::atomic || r.op == wire::DmaOp::fetching_atomic) {
        r.length = random() % 4 == 0 ? r.length : wire::bytes_of(r.atomic_type);
      }
      r.local = part(local, 0, r.length);
      const Answer answer = send(r);
      ASSERT_NE(answer.code, wire::ReturnCode::no_event);
      ASSERT_LE(answer.mlength, r.length);
      accepted += answer.code == wire::ReturnCode::ok ? 1 : 0;
    }
    if (random() % 4 == 0) {
      while (here.poll()) {
      }
      here.acknowledge();
      while (there.poll()) {
      }
      there.acknowledge();
    }
    if (step % 1000 == 0) {
      std::size_t entries = 0;
      for (const Pte* pte : portals) entries += entries_of(*pte);
      ASSERT_EQ(here.card.les_in_use, entries) << step;
      ASSERT_EQ(here.service.in_use[static_cast<std::size_t>(Resource::le)], entries);
    }
  }
  EXPECT_GT(accepted, 1000u) << "most of it was refused: nothing was tried";
  for (Pte* pte : portals) here.card.stopping(*pte);
  EXPECT_EQ(here.card.les_in_use, 0u);
}

}  // namespace strait::soft::cassini::testing
