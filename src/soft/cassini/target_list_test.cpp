// SPDX-License-Identifier: Apache-2.0
// Messages that nobody expected yet, and the commands about them.
#include "soft/cassini/target_testing.hpp"

namespace strait::soft::cassini::testing {

using wire::EventType;
using wire::PtlList;
using wire::ReturnCode;
using wire::TargetOp;

class CassiniTargetList : public TargetTest {
 protected:
  // A portal with a large overflow buffer at 4096.
  Pte& spilling(std::uint64_t options = wire::kPteIsMatching) {
    Pte& pte = here.portal(0, options);
    wire::TargetCmd c = Side::buffer(pte, PtlList::overflow, 500, 4096, 16384, wire::kLeManageLocal);
    c.set_ignore_bits(~std::uint64_t{0});
    c.set_event_unlink_disable(true);
    here.append(c);
    return pte;
  }
  void spill(const std::string& text, std::uint64_t match) {
    EXPECT_EQ(send(put(text, match)).list, PtlList::overflow);
    const Seen seen = here.next();
    EXPECT_EQ(seen.type(), EventType::put);
    EXPECT_EQ(seen.as_long().buffer_id(), 500u);
  }
};

TEST_F(CassiniTargetList, AnAppendMeetsTheOldestHeaderThatAgrees) {
  Pte& pte = spilling();
  spill("one", 1);
  spill("two", 2);
  spill("two again", 2);
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 9, 0, 64, wire::kLeUseOnce | wire::kLeEventUnlinkDisable);
  c.set_match_bits(2);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  const Seen seen = here.next();
  EXPECT_EQ(seen.type(), EventType::put_overflow);
  EXPECT_EQ(seen.bytes, 64u);
  EXPECT_EQ(seen.as_long().buffer_id(), 9u) << "of the new entry";
  EXPECT_EQ(seen.as_long().start(), Side::kIova + 4096 + 3) << "where the data is";
  EXPECT_EQ(seen.as_long().mlength(), 3u);
  EXPECT_EQ(seen.as_long().rlength(), 3u);
  EXPECT_EQ(seen.as_long().match_bits(), 2u);
  EXPECT_TRUE(seen.as_long().auto_unlinked());
  EXPECT_TRUE(here.quiet()) << "used once: never linked";
  EXPECT_EQ(pte.unexpected.size(), 2u);
  EXPECT_EQ(here.card.les_in_use, 3u);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().as_long().start(), Side::kIova + 4096 + 6);
  here.append(c);
}

TEST_F(CassiniTargetList, AManagedAppendMeetsHeadersUntilItIsFull) {
  Pte& pte = spilling();
  for (int i = 0; i < 4; ++i) spill("12345678", 1);
  wire::TargetCmd c =
      Side::buffer(pte, PtlList::priority, 9, 0, 26, wire::kLeManageLocal | wire::kLeEventUnlinkDisable);
  c.set_match_bits(1);
  c.set_min_free(8);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_FALSE(here.next().as_long().auto_unlinked());
  EXPECT_FALSE(here.next().as_long().auto_unlinked());
  const Seen last = here.next();
  EXPECT_EQ(last.type(), EventType::put_overflow);
  EXPECT_TRUE(last.as_long().auto_unlinked()) << "2 bytes left of 8 that are asked for";
  EXPECT_TRUE(here.quiet());
  EXPECT_EQ(pte.unexpected.size(), 1u);

  c.set_length(64);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().type(), EventType::put_overflow);
  EXPECT_EQ(here.next().type(), EventType::link) << "there is space left";
  EXPECT_EQ(send(put("next", 1)).list, PtlList::priority);
  EXPECT_EQ(here.memory.text(8, 4), "next") << "behind what the header stands for";
}

TEST_F(CassiniTargetList, AnAppendThatTakesNoPartsPassesLongHeaders) {
  Pte& pte = spilling();
  spill("too long", 1);
  spill("fits", 1);
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 9, 0, 4,
                                   wire::kLeUseOnce | wire::kLeNoTruncate | wire::kLeEventUnlinkDisable);
  c.set_match_bits(1);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().as_long().rlength(), 4u);
  EXPECT_EQ(pte.unexpected.size(), 1u);
}

TEST_F(CassiniTargetList, HeadersThatAreNotKept) {
  Pte& pte = here.portal(0, kMatching);
  here.append(Side::buffer(pte, PtlList::overflow, 5, 0, 64, wire::kLeManageLocal | wire::kLeUnexpectedHdrDisable));
  EXPECT_EQ(send(put("x")).list, PtlList::overflow);
  (void)here.next();
  EXPECT_TRUE(pte.unexpected.empty());
  here.append(Side::buffer(pte, PtlList::priority, 9, 0, 64));
}

TEST_F(CassiniTargetList, AnOverflowCountIsTheAppendsOwn) {
  Pte& pte = spilling();
  Ct* ct = here.card.counters.make();
  ct->lni = here.lni;
  spill("12345", 1);
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 9, 0, 64,
                                   wire::kLeUseOnce | wire::kLeEventCtOverflow | wire::kLeEventCtBytes);
  c.set_match_bits(1);
  c.set_ct(ct->id);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(ct->success, 5u);
  EXPECT_EQ(here.next().type(), EventType::unlink);
  EXPECT_EQ(here.next().type(), EventType::put_overflow);
}

TEST_F(CassiniTargetList, SearchTellsOfEachAndThenOfTheEnd) {
  Pte& pte = spilling();
  for (const std::uint64_t match : {1u, 2u, 1u}) spill("x", match);
  wire::TargetCmd c = Side::entry(pte, TargetOp::search, PtlList::unexpected, 77);
  c.set_match_bits(1);
  c.set_length(0xffffffff);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  for (const std::uint64_t offset : {0u, 2u}) {
    const Seen seen = here.next();
    EXPECT_EQ(seen.type(), EventType::search);
    EXPECT_EQ(seen.code(), ReturnCode::ok);
    EXPECT_EQ(seen.as_long().buffer_id(), 77u);
    EXPECT_EQ(seen.as_long().start(), Side::kIova + 4096 + offset);
    EXPECT_EQ(seen.as_long().header_data(), 0xdadau);
  }
  EXPECT_EQ(here.next().code(), ReturnCode::no_match);
  EXPECT_TRUE(here.quiet());
  EXPECT_EQ(pte.unexpected.size(), 3u) << "a look takes nothing";

  c.set_use_once(true);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::ok);
  EXPECT_TRUE(here.quiet()) << "the first alone";
  c.set_match_bits(~std::uint64_t{0});
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  const Seen none = here.next();
  EXPECT_EQ(none.type(), EventType::search);
  EXPECT_EQ(none.code(), ReturnCode::no_match);
}

TEST_F(CassiniTargetList, SearchAndDeleteTakesThem) {
  Pte& pte = spilling();
  for (const std::uint64_t match : {1u, 2u, 1u}) spill("x", match);
  wire::TargetCmd c = Side::entry(pte, TargetOp::search_and_delete, PtlList::unexpected, 77);
  c.set_match_bits(1);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  for (int i = 0; i < 2; ++i) {
    const Seen seen = here.next();
    EXPECT_EQ(seen.type(), EventType::put_overflow);
    EXPECT_EQ(seen.as_long().buffer_id(), 77u);
  }
  const Seen end = here.next();
  EXPECT_EQ(end.type(), EventType::search);
  EXPECT_EQ(end.code(), ReturnCode::no_match);
  EXPECT_EQ(pte.unexpected.size(), 1u);
  EXPECT_EQ(here.card.les_in_use, 2u);
  c.set_ignore_bits(~std::uint64_t{0});
  c.set_use_once(true);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().type(), EventType::put_overflow);
  EXPECT_TRUE(here.quiet());
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::no_match);
}

TEST_F(CassiniTargetList, UnlinkByItsNumber) {
  Pte& pte = here.portal(0, kMatching);
  here.append(Side::buffer(pte, PtlList::priority, 3, 0, 64, wire::kLeEventUnlinkDisable));
  EXPECT_EQ(here.run(Side::entry(pte, TargetOp::unlink, PtlList::overflow, 3)), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::entry_not_found) << "another list";
  EXPECT_EQ(here.run(Side::entry(pte, TargetOp::unlink, PtlList::priority, 3)), ReturnCode::ok);
  const Seen seen = here.next();
  EXPECT_EQ(seen.type(), EventType::unlink);
  EXPECT_EQ(seen.bytes, 64u);
  EXPECT_EQ(seen.code(), ReturnCode::ok);
  EXPECT_FALSE(seen.as_long().auto_unlinked());
  EXPECT_EQ(here.run(Side::entry(pte, TargetOp::unlink, PtlList::priority, 3)), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::entry_not_found);
}

TEST_F(CassiniTargetList, AFailedAppendStopsThoseBehindIt) {
  Pte& pte = here.portal(0, kMatching);
  here.service.desc.flags = wire::kSvcResourceLimits;
  here.service.desc.limits[static_cast<std::size_t>(Resource::le)] = {.max = 1, .res = 0};
  const wire::TargetCmd first = Side::buffer(pte, PtlList::priority, 1, 0, 64);
  here.append(first);
  wire::TargetCmd second = Side::buffer(pte, PtlList::priority, 2, 0, 64, wire::kLeEventLinkDisable);
  EXPECT_EQ(here.run(second), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::no_space) << "a failure is told though success is not asked for";
  EXPECT_EQ(here.run(Side::entry(pte, TargetOp::unlink, PtlList::priority, 1)), ReturnCode::ok);
  (void)here.next();
  EXPECT_EQ(here.run(second), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::no_space) << "order would be lost";
  second.set_restart_seq(true);
  EXPECT_EQ(here.run(second), ReturnCode::ok);
  EXPECT_TRUE(here.quiet());
  EXPECT_EQ(here.card.les_in_use, 1u);
  EXPECT_EQ(here.card.status(pte).les_max, 1u);
}

TEST_F(CassiniTargetList, WhatOthersReservedIsNotTaken) {
  Pte& pte = here.portal(0, kMatching);
  (void)here.card.services.make();
  Service* other = here.card.services.make();
  other->desc.flags = wire::kSvcResourceLimits;
  other->desc.limits[static_cast<std::size_t>(Resource::le)] = {.max = 16384, .res = 16383};
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 1, 0, 64);
  here.append(c);
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::no_space);
}

TEST_F(CassiniTargetList, AProcessingElementHas16384Entries) {
  Pte& pte = here.portal(0, kMatching);
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 1, 0, 64, wire::kLeEventLinkDisable);
  for (int i = 0; i < 16384; ++i) ASSERT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_TRUE(here.quiet());
  EXPECT_EQ(here.run(c), ReturnCode::ok);
  EXPECT_EQ(here.next().code(), ReturnCode::no_space);
}

TEST_F(CassiniTargetList, CommandsWaitForRoomInTheQueue) {
  Pte& pte = spilling();
  for (int i = 0; i < 200; ++i) spill("x", 1);
  wire::TargetCmd c = Side::entry(pte, TargetOp::search, PtlList::unexpected, 77);
  c.set_ignore_bits(~std::uint64_t{0});
  std::size_t seen = 0;
  bool done = false;
  for (int turn = 0; turn < 100 && !done; ++turn) {
    done = here.run(c) == ReturnCode::ok;
    for (;;) {
      const auto event = here.poll();
      if (!event) break;
      ASSERT_EQ(event->type(), EventType::search);
      if (event->code() == ReturnCode::ok) {
        ASSERT_EQ(event->as_long().start(), Side::kIova + 4096 + seen) << "each once, in order";
        ++seen;
      }
    }
    here.acknowledge();
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(seen, 200u);

  // An append that meets more than there is room for goes on where it was.
  wire::TargetCmd all = Side::buffer(pte, PtlList::priority, 9, 0, 1024, wire::kLeManageLocal);
  all.set_match_bits(1);
  std::size_t met = 0;
  done = false;
  for (int turn = 0; turn < 100 && !done; ++turn) {
    done = here.run(all) == ReturnCode::ok;
    while (const auto event = here.poll()) met += event->type() == EventType::put_overflow ? 1 : 0;
    here.acknowledge();
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(met, 200u);
  EXPECT_EQ(send(put("behind", 1)).list, PtlList::priority);
  EXPECT_EQ(here.memory.text(200, 6), "behind");
}

TEST_F(CassiniTargetList, WhereUnexpectedDataIs) {
  Pte& pte = spilling();
  spill("one", 1);
  spill("two", 1);
  EXPECT_EQ(here.card.unexpected_offsets(pte),
            (std::vector<std::uint64_t>{Side::kIova + 4096, Side::kIova + 4096 + 3}));
}

}  // namespace strait::soft::cassini::testing
