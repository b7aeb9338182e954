// SPDX-License-Identifier: Apache-2.0
// Where requests go: lookup, states, lists, matching, rights, bounds, events.
#include "soft/cassini/services.hpp"
#include "soft/cassini/target_testing.hpp"

namespace strait::soft::cassini::testing {

using wire::EventType;
using wire::PteState;
using wire::PtlList;
using wire::ReturnCode;

class CassiniTarget : public TargetTest {};

TEST_F(CassiniTarget, AnAddressThatNothingAnswersAt) {
  here.portal(3, 0);
  EXPECT_EQ(send(put("x")).code, ReturnCode::ptlte_not_found);
  Request other = put("x");
  other.vni = 11;
  EXPECT_EQ(send(other).code, ReturnCode::vni_not_found);
  std::shared_ptr<Profile> network;
  ASSERT_EQ(make_profile(here.card, 11, 0, network), 0);
  EXPECT_EQ(send(other).code, ReturnCode::vni_not_found) << "it is not enabled";
  network->enabled = true;
  EXPECT_EQ(send(other).code, ReturnCode::ptlte_not_found);
}

TEST_F(CassiniTarget, ADisabledPortalCountsWhatItDrops) {
  Pte& pte = here.portal(0, 0, false);
  EXPECT_EQ(send(put("x")).code, ReturnCode::pt_disabled);
  EXPECT_EQ(send(put("x")).code, ReturnCode::pt_disabled);
  EXPECT_EQ(here.card.status(pte).drop_count, 2u);
  EXPECT_EQ(here.set_state(pte, PteState::enabled, 1), ReturnCode::ok);
  Seen seen = here.next();
  EXPECT_EQ(seen.code(), ReturnCode::no_match) << "one drop is not accounted for";
  EXPECT_EQ(seen.as_long().ptlte_state(), PteState::disabled);
  EXPECT_EQ(here.set_state(pte, PteState::enabled, 2), ReturnCode::ok);
  seen = here.next();
  EXPECT_EQ(seen.code(), ReturnCode::ok);
  EXPECT_EQ(seen.bytes, 64u);
  EXPECT_EQ(seen.as_long().ptlte_state(), PteState::enabled);
  EXPECT_FALSE(seen.as_long().sc_nic_auto());
  EXPECT_EQ(seen.as_long().ptlte_index(), pte.id);
  EXPECT_EQ(pte.drop_count, 0u);
  pte.drop_count = 0xffffff;
  pte.state = PteState::disabled;
  (void)send(put("x"));
  EXPECT_EQ(pte.drop_count, 0u) << "24 bits";
}

TEST_F(CassiniTarget, StatesThatAreNone) {
  Pte& pte = here.portal(0, 0);
  EXPECT_EQ(here.set_state(pte, static_cast<PteState>(6)), ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(here.set_state(pte, PteState::ethernet), ReturnCode::cmd_invalid_arg) << "not an Ethernet portal";
  here.append(Side::buffer(pte, PtlList::priority, 1, 0, 64));
  EXPECT_EQ(here.set_state(pte, PteState::reset), ReturnCode::ok);
  EXPECT_EQ(here.card.les_in_use, 0u) << "what was on its lists is gone";
  EXPECT_EQ(send(put("x")).code, ReturnCode::ptlte_not_found);
}

TEST_F(CassiniTarget, APutWithoutMatchingTakesTheFirstEntry) {
  Pte& pte = here.portal(0, 0);
  here.append(Side::buffer(pte, PtlList::priority, 1, 0, 256));
  here.append(Side::buffer(pte, PtlList::priority, 2, 256, 256));
  const Answer answer = send(put("hello", 99, 16));
  EXPECT_EQ(answer.code, ReturnCode::ok);
  EXPECT_EQ(answer.mlength, 5u);
  EXPECT_EQ(answer.list, PtlList::priority);
  EXPECT_EQ(here.memory.text(16, 5), "hello");
  const Seen seen = here.next();
  EXPECT_EQ(seen.type(), EventType::put);
  EXPECT_EQ(seen.bytes, 32u);
  EXPECT_EQ(seen.code(), ReturnCode::ok);
  EXPECT_EQ(seen.as_short().buffer_id(), 1u);
  EXPECT_EQ(seen.as_short().length(), 5u);
  EXPECT_EQ(seen.as_short().match_bits(), 99u);
  EXPECT_EQ(seen.as_short().header_data(), 0xdadau);
  EXPECT_EQ(seen.as_short().vni(), Side::kVni);
  EXPECT_EQ(seen.as_short().initiator(), wire::match_id(9, 9, 0x101));
  EXPECT_EQ(seen.as_short().ptlte_index(), pte.id);
  EXPECT_FALSE(seen.as_short().auto_unlinked());
  EXPECT_TRUE(here.quiet());
}

TEST_F(CassiniTarget, AGetBringsWhatIsThere) {
  Pte& pte = here.portal(0, 0);
  here.append(Side::buffer(pte, PtlList::priority, 1, 0, 256));
  ASSERT_TRUE(here.memory.write(8, "content", 7));
  std::string into(7, '.');
  Request get = request(wire::DmaOp::get, 0, 7);
  get.remote_offset = 8;
  get.local = plain(into.data(), into.size());
  EXPECT_EQ(send(get).mlength, 7u);
  EXPECT_EQ(into, "content");
  EXPECT_EQ(here.next().type(), EventType::get);
}

TEST_F(CassiniTarget, MatchBitsAndIgnoreBits) {
  Pte& pte = here.portal(0, kMatching);
  wire::TargetCmd exact = Side::buffer(pte, PtlList::priority, 1, 0, 64);
  exact.set_match_bits(0x1234);
  wire::TargetCmd loose = Side::buffer(pte, PtlList::priority, 2, 64, 64);
  loose.set_match_bits(0x1200);
  loose.set_ignore_bits(0xff);
  here.append(exact);
  here.append(loose);
  EXPECT_EQ(send(put("a", 0x1234)).code, ReturnCode::ok);
  EXPECT_EQ(here.next().as_short().buffer_id(), 1u);
  EXPECT_EQ(send(put("b", 0x1235)).code, ReturnCode::ok);
  EXPECT_EQ(here.next().as_short().buffer_id(), 2u);
  EXPECT_EQ(send(put("c", 0x1334)).code, ReturnCode::entry_not_found);
  const Seen seen = here.next();
  EXPECT_EQ(seen.type(), EventType::put);
  EXPECT_EQ(seen.code(), ReturnCode::entry_not_found);
  EXPECT_EQ(seen.as_long().buffer_id(), 0u);
}

TEST_F(CassiniTarget, WhoMaySend) {
  Pte& pte = here.portal(0, kMatching);
  const std::uint32_t nid = fabric.card(1)->settings().nid;
  const std::uint32_t ids[] = {wire::match_id(9, 9, nid), wire::match_id(9, wire::kPidAny, nid),
                               wire::match_id(9, 9, wire::kNidAny), wire::kMatchAnyone};
  std::uint32_t buffer = 1;
  for (const std::uint32_t id : ids) {
    wire::TargetCmd c = Side::buffer(pte, PtlList::priority, buffer++, 0, 64, wire::kLeUseOnce);
    c.set_match_id(id);
    c.set_event_unlink_disable(true);
    here.append(c);
  }
  const auto took = [&](std::uint32_t pid, std::uint32_t from) -> std::uint32_t {
    Request r = put("x");
    r.initiator = wire::match_id(9, pid, from);
    EXPECT_EQ(send(r).code, ReturnCode::ok);
    return here.next().as_short().buffer_id();
  };
  EXPECT_EQ(took(8, nid), 2u) << "any PID of that card";
  EXPECT_EQ(took(9, nid + 1), 3u) << "that PID anywhere";
  EXPECT_EQ(took(9, nid), 1u);
  EXPECT_EQ(took(1, 1), 4u);
}

TEST_F(CassiniTarget, OverflowComesAfterPriority) {
  Pte& pte = here.portal(0, kMatching);
  here.append(Side::buffer(pte, PtlList::overflow, 5, 1024, 512, wire::kLeManageLocal));
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 1, 0, 64, wire::kLeUseOnce | wire::kLeEventUnlinkDisable);
  here.append(c);
  EXPECT_EQ(send(put("first")).list, PtlList::priority);
  EXPECT_EQ(send(put("second")).list, PtlList::overflow);
  EXPECT_EQ(send(put("third!")).list, PtlList::overflow);
  EXPECT_EQ(here.memory.text(0, 5), "first");
  EXPECT_EQ(here.memory.text(1024, 12), "secondthird!");
  EXPECT_EQ(here.next().bytes, 32u);
  const Seen second = here.next();
  EXPECT_EQ(second.bytes, 64u) << "of the overflow list: the long form";
  EXPECT_EQ(second.as_long().ptl_list(), PtlList::overflow);
  EXPECT_EQ(here.next().as_long().start(), Side::kIova + 1024 + 6);
  EXPECT_EQ(pte.unexpected.size(), 2u);
}

TEST_F(CassiniTarget, UseOnceUnlinksBeforeThePut) {
  Pte& pte = here.portal(0, kMatching);
  here.append(Side::buffer(pte, PtlList::priority, 1, 0, 64, wire::kLeUseOnce));
  EXPECT_EQ(here.card.les_in_use, 1u);
  EXPECT_EQ(send(put("x")).code, ReturnCode::ok);
  const Seen unlink = here.next();
  EXPECT_EQ(unlink.type(), EventType::unlink);
  EXPECT_TRUE(unlink.as_long().auto_unlinked());
  EXPECT_EQ(unlink.as_long().buffer_id(), 1u);
  EXPECT_EQ(here.next().type(), EventType::put);
  EXPECT_EQ(here.card.les_in_use, 0u);
  EXPECT_EQ(send(put("x")).code, ReturnCode::entry_not_found);
}

TEST_F(CassiniTarget, ALocallyManagedBufferLeavesWhenItIsNearlyFull) {
  Pte& pte = here.portal(0, kMatching);
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 1, 0, 16, wire::kLeManageLocal);
  c.set_min_free(6);
  here.append(c);
  EXPECT_EQ(send(put("01234", 0, 900)).code, ReturnCode::ok) << "the initiator's offset does not count";
  EXPECT_FALSE(here.next().as_short().auto_unlinked());
  EXPECT_EQ(send(put("56789")).code, ReturnCode::ok);
  EXPECT_FALSE(here.next().as_short().auto_unlinked()) << "6 left: as much as is asked for";
  EXPECT_EQ(send(put("a")).code, ReturnCode::ok);
  EXPECT_EQ(here.next().type(), EventType::unlink);
  EXPECT_TRUE(here.next().as_short().auto_unlinked());
  EXPECT_EQ(here.memory.text(0, 11), "0123456789a");
  EXPECT_EQ(here.card.les_in_use, 0u);
}

TEST_F(CassiniTarget, WhatDoesNotFit) {
  Pte& pte = here.portal(0, kMatching);
  wire::TargetCmd memory = Side::buffer(pte, PtlList::priority, 1, 0, 16);
  memory.set_match_bits(1);
  wire::TargetCmd message = Side::buffer(pte, PtlList::priority, 2, 64, 16, wire::kLeManageLocal);
  message.set_match_bits(2);
  wire::TargetCmd whole = Side::buffer(pte, PtlList::priority, 3, 128, 4, wire::kLeManageLocal | wire::kLeNoTruncate);
  whole.set_match_bits(3);
  wire::TargetCmd larger = Side::buffer(pte, PtlList::priority, 4, 192, 32, wire::kLeManageLocal | wire::kLeNoTruncate);
  larger.set_match_bits(3);
  for (const auto& c : {memory, message, whole, larger}) here.append(c);
  EXPECT_EQ(send(put("12345678", 1, 9)).code, ReturnCode::addr_out_of_range);
  EXPECT_EQ(here.next().code(), ReturnCode::addr_out_of_range);
  EXPECT_EQ(send(put("1", 1, (std::uint64_t{1} << 56) - 1)).code, ReturnCode::addr_out_of_range);
  EXPECT_EQ(here.memory.text(0, 16), std::string(16, '\0')) << "all or nothing";
  (void)here.next();
  EXPECT_EQ(send(put("12345678", 1, 8)).code, ReturnCode::ok);
  (void)here.next();

  const Answer cut = send(put("0123456789abcdefGHI", 2));
  EXPECT_EQ(cut.code, ReturnCode::ok);
  EXPECT_EQ(cut.mlength, 16u);
  const Seen seen = here.next();
  EXPECT_EQ(seen.bytes, 64u) << "two lengths need the long form";
  EXPECT_EQ(seen.as_long().mlength(), 16u);
  EXPECT_EQ(seen.as_long().rlength(), 19u);
  EXPECT_EQ(here.memory.text(64, 17), std::string("0123456789abcdef") + '\0');

  EXPECT_EQ(send(put("12345", 3)).code, ReturnCode::ok);
  EXPECT_EQ(here.next().as_short().buffer_id(), 4u) << "what does not take parts lets it pass";
}

TEST_F(CassiniTarget, RightsOfAnEntry) {
  Pte& pte = here.portal(0, 0);
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 1, 0, 64);
  c.set_op_put(false);
  here.append(c);
  EXPECT_EQ(send(put("x")).code, ReturnCode::op_violation);
  EXPECT_EQ(here.next().code(), ReturnCode::op_violation);
  std::string into(1, ' ');
  Request get = request(wire::DmaOp::get, 0, 1);
  get.local = plain(into.data(), 1);
  EXPECT_EQ(send(get).code, ReturnCode::ok);
  Request fetch = request(wire::DmaOp::fetching_atomic, 0, 8);
  fetch.atomic_op = wire::AtomicOp::sum;
  fetch.atomic_type = wire::AtomicType::uint64;
  EXPECT_EQ(send(fetch).code, ReturnCode::op_violation) << "it writes too";
}

TEST_F(CassiniTarget, MemoryThatIsNotThere) {
  Pte& pte = here.portal(0, 0);
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 1, 0, 1 << 20);
  here.append(c);
  EXPECT_EQ(send(put("x", 0, 100000)).code, ReturnCode::no_translation);
  EXPECT_EQ(here.next().code(), ReturnCode::no_translation);
  EXPECT_EQ(here.run(Side::entry(pte, wire::TargetOp::unlink, PtlList::priority, 1)), ReturnCode::ok);
  (void)here.next();
  c.set_lac(5);
  here.append(c);
  EXPECT_EQ(send(put("x")).code, ReturnCode::invalid_ac);
  (void)here.next();
  Request nothing = request(wire::DmaOp::put, 0, 0);
  EXPECT_EQ(send(nothing).code, ReturnCode::ok) << "no byte needs no memory";
}

TEST_F(CassiniTarget, EventsThatAnEntryDoesNotWant) {
  Pte& pte = here.portal(0, kMatching);
  wire::TargetCmd quiet =
      Side::buffer(pte, PtlList::priority, 1, 0, 64, wire::kLeEventSuccessDisable | wire::kLeEventLinkDisable);
  quiet.set_match_bits(1);
  wire::TargetCmd mute =
      Side::buffer(pte, PtlList::priority, 2, 0, 64, wire::kLeEventCommDisable | wire::kLeEventLinkDisable);
  mute.set_match_bits(2);
  EXPECT_EQ(here.run(quiet), ReturnCode::ok);
  EXPECT_EQ(here.run(mute), ReturnCode::ok);
  EXPECT_EQ(send(put("x", 1)).code, ReturnCode::ok);
  EXPECT_EQ(send(put("x", 2)).code, ReturnCode::ok);
  EXPECT_TRUE(here.quiet());
  EXPECT_EQ(send(put("x", 1, 999)).code, ReturnCode::addr_out_of_range);
  EXPECT_EQ(here.next().code(), ReturnCode::addr_out_of_range) << "success only is not wanted";
  EXPECT_EQ(send(put("x", 2, 999)).code, ReturnCode::addr_out_of_range);
  EXPECT_TRUE(here.quiet());
}

TEST_F(CassiniTarget, CountsOfAnEntry) {
  Pte& pte = here.portal(0, kMatching);
  Ct* ct = here.card.counters.make();
  ct->lni = here.lni;
  Ct* foreign = here.card.counters.make();
  foreign->lni = there.lni;
  wire::TargetCmd once = Side::buffer(pte, PtlList::priority, 1, 0, 64, wire::kLeEventCtComm);
  once.set_match_bits(1);
  once.set_ct(ct->id);
  wire::TargetCmd bytes = once;
  bytes.set_match_bits(2);
  bytes.set_event_ct_bytes(true);
  wire::TargetCmd others = once;
  others.set_match_bits(3);
  others.set_ct(foreign->id);
  wire::TargetCmd spill =
      Side::buffer(pte, PtlList::overflow, 4, 512, 64, wire::kLeEventCtOverflow | wire::kLeManageLocal);
  spill.set_match_bits(4);
  spill.set_ct(ct->id);
  for (const auto& c : {once, bytes, others, spill}) here.append(c);
  EXPECT_EQ(send(put("12345", 1)).code, ReturnCode::ok);
  EXPECT_EQ(ct->success, 1u);
  EXPECT_EQ(send(put("12345", 2)).code, ReturnCode::ok);
  EXPECT_EQ(ct->success, 6u);
  EXPECT_EQ(send(put("12345", 4)).code, ReturnCode::ok);
  EXPECT_EQ(ct->success, 7u);
  EXPECT_EQ(send(put("12345", 1, 63)).code, ReturnCode::addr_out_of_range);
  EXPECT_EQ(ct->failure, 1u);
  EXPECT_EQ(send(put("12345", 3)).code, ReturnCode::ok);
  EXPECT_EQ(foreign->success, 0u) << "a command names counters of its own owner only";
}

TEST_F(CassiniTarget, AtomicsLandAndBringBack) {
  Pte& pte = here.portal(0, 0);
  here.append(Side::buffer(pte, PtlList::priority, 1, 0, 64));
  const std::uint64_t start = 40;
  ASSERT_TRUE(here.memory.write(16, &start, 8));
  Request sum = request(wire::DmaOp::fetching_atomic, 0, 8);
  sum.remote_offset = 16;
  sum.atomic_op = wire::AtomicOp::sum;
  sum.atomic_type = wire::AtomicType::uint64;
  sum.operand1[0] = 2;
  const Answer answer = send(sum);
  EXPECT_EQ(answer.code, ReturnCode::ok);
  EXPECT_EQ(answer.fetched[0], 40u);
  std::uint64_t now = 0;
  ASSERT_TRUE(here.memory.read(16, &now, 8));
  EXPECT_EQ(now, 42u);
  const Seen seen = here.next();
  EXPECT_EQ(seen.type(), EventType::fetch_atomic);
  EXPECT_EQ(seen.bytes, 64u);
  EXPECT_EQ(seen.as_long().atomic_op(), wire::AtomicOp::sum);
  EXPECT_EQ(seen.as_long().atomic_type(), wire::AtomicType::uint64);
  sum.length = 4;
  EXPECT_EQ(send(sum).code, ReturnCode::amo_length_error);
  (void)here.next();
  sum.length = 8;
  sum.remote_offset = 20;
  EXPECT_EQ(send(sum).code, ReturnCode::amo_align_error);
}

TEST_F(CassiniTarget, CommandsOfStrangers) {
  Pte& pte = here.portal(0, 0);
  const wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 1, 0, 64);
  Cq* foreign = here.card.target_queues.make();
  foreign->lni = there.lni;
  EXPECT_EQ(here.card.target_command(*foreign, c.words), ReturnCode::cmd_invalid_arg);
  wire::TargetCmd nowhere = c;
  nowhere.set_ptlte_index(2047);
  EXPECT_EQ(here.run(nowhere), ReturnCode::cmd_invalid_arg);
  wire::TargetCmd odd = c;
  odd.set_header(wire::CmdType::cq, wire::CmdSize::b64, static_cast<wire::TargetOp>(15));
  EXPECT_EQ(here.run(odd), ReturnCode::illegal_op);
  wire::TargetCmd unexpected = Side::buffer(pte, PtlList::unexpected, 1, 0, 64);
  EXPECT_EQ(here.run(unexpected), ReturnCode::cmd_invalid_arg);
  Request strange = put("x");
  strange.op = wire::DmaOp::cstate;
  EXPECT_EQ(send(strange).code, ReturnCode::illegal_op);
  EXPECT_TRUE(here.quiet());
}

TEST_F(CassiniTarget, StoppingLeavesNothing) {
  Pte& pte = here.portal(0, kMatching);
  here.append(Side::buffer(pte, PtlList::overflow, 1, 0, 64, wire::kLeManageLocal));
  here.append(Side::buffer(pte, PtlList::request, 2, 0, 64));
  EXPECT_EQ(send(put("x")).code, ReturnCode::ok);
  EXPECT_EQ(here.card.les_in_use, 3u);
  EXPECT_EQ(here.card.status(pte).les_allocated, 3u);
  here.card.stopping(pte);
  EXPECT_EQ(here.card.les_in_use, 0u);
  EXPECT_EQ(here.service.in_use[static_cast<std::size_t>(Resource::le)], 0u);
  EXPECT_EQ(send(put("x")).code, ReturnCode::ptlte_not_found);
}

}  // namespace strait::soft::cassini::testing
