// SPDX-License-Identifier: Apache-2.0
// Each of the 17 options of a portal has an effect; here is which.
#include <cmath>
#include <limits>

#include "soft/cassini/services.hpp"
#include "soft/cassini/target_testing.hpp"

namespace strait::soft::cassini::testing {

using wire::EventType;
using wire::PteState;
using wire::PtlList;
using wire::ReturnCode;
using wire::StateChangeReason;

class CassiniPortalOption : public TargetTest {
 protected:
  void expect_change(PteState state, StateChangeReason reason) {
    const Seen seen = here.next();
    EXPECT_EQ(seen.type(), EventType::state_change);
    EXPECT_EQ(seen.as_long().ptlte_state(), state);
    EXPECT_EQ(seen.as_long().sc_reason(), reason);
    EXPECT_TRUE(seen.as_long().sc_nic_auto());
  }
  void limit_entries(std::uint16_t max) {
    here.service.desc.flags = wire::kSvcResourceLimits;
    here.service.desc.limits[static_cast<std::size_t>(Resource::le)] = {.max = max, .res = 0};
  }
  // A floating point sum of two doubles at the portal's memory.
  ReturnCode sum_doubles(double memory, double operand, double* after = nullptr) {
    EXPECT_TRUE(here.memory.write(0, &memory, 8));
    Request sum = request(wire::DmaOp::atomic, 0, 8);
    sum.atomic_op = wire::AtomicOp::sum;
    sum.atomic_type = wire::AtomicType::float64;
    std::memcpy(&sum.operand1[0], &operand, 8);
    const ReturnCode code = send(sum).code;
    if (after != nullptr) {
      EXPECT_TRUE(here.memory.read(0, after, 8));
    }
    return code;
  }
  Pte& summing(std::uint64_t options) {
    Pte& pte = here.portal(0, options);
    here.append(Side::buffer(pte, PtlList::priority, 1, 0, 64, wire::kLeEventCommDisable));
    return pte;
  }
};

TEST_F(CassiniPortalOption, EnEventMatch) {
  Pte& pte = here.portal(0, wire::kPteEnEventMatch);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  EXPECT_EQ(send(put("x")).code, ReturnCode::ok);
  const Seen match = here.next();
  EXPECT_EQ(match.type(), EventType::match);
  EXPECT_EQ(match.as_long().buffer_id(), 4u);
  EXPECT_EQ(here.next().type(), EventType::put);
}

TEST_F(CassiniPortalOption, EnEventMatchTellsOfWhatIsRefusedToo) {
  Pte& pte = here.portal(0, wire::kPteEnEventMatch);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  EXPECT_EQ(send(put("beyond", 0, 60)).code, ReturnCode::addr_out_of_range);
  const Seen match = here.next();
  EXPECT_EQ(match.type(), EventType::match);
  EXPECT_EQ(match.as_long().return_code(), ReturnCode::ok);
  EXPECT_EQ(match.as_long().buffer_id(), 4u);
  const Seen refused = here.next();
  EXPECT_EQ(refused.type(), EventType::put);
  EXPECT_EQ(refused.as_long().return_code(), ReturnCode::addr_out_of_range);
  EXPECT_FALSE(here.poll().has_value());
}

TEST_F(CassiniPortalOption, ClrRemoteOffset) {
  Pte& pte = here.portal(0, wire::kPteClrRemoteOffset);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  EXPECT_EQ(send(put("start", 0, 32)).code, ReturnCode::ok);
  EXPECT_EQ(here.memory.text(0, 5), "start");
}

TEST_F(CassiniPortalOption, EnFlowctrlWithoutAMatch) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnFlowctrl);
  EXPECT_EQ(send(put("x")).code, ReturnCode::pt_disabled);
  expect_change(PteState::disabled, StateChangeReason::flow_no_match);
  EXPECT_EQ(pte.drop_count, 0u) << "this chip does not count the request that shows it";
  EXPECT_EQ(send(put("x")).code, ReturnCode::pt_disabled);
  EXPECT_EQ(pte.drop_count, 1u);
}

TEST_F(CassiniPortalOption, EnFlowctrlWithoutRoomForEvents) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnFlowctrl);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  here.eq->reserved_fc = 1;
  ReturnCode code = ReturnCode::ok;
  for (int i = 0; i < 1000 && code == ReturnCode::ok; ++i) code = send(put("x")).code;
  EXPECT_EQ(code, ReturnCode::pt_disabled);
  std::optional<Seen> last;
  while (const auto event = here.poll()) last = event;
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->type(), EventType::state_change) << "a slot was kept for it";
  EXPECT_EQ(last->as_long().sc_reason(), StateChangeReason::flow_eq_full);
}

TEST_F(CassiniPortalOption, EnFlowctrlWithoutEntriesForHeaders) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnFlowctrl);
  limit_entries(1);
  here.append(Side::buffer(pte, PtlList::overflow, 4, 0, 64, wire::kLeManageLocal));
  EXPECT_EQ(send(put("x")).code, ReturnCode::pt_disabled);
  expect_change(PteState::disabled, StateChangeReason::flow_unexpected_fail);
  EXPECT_EQ(here.memory.text(0, 1), std::string(1, '\0'));
}

TEST_F(CassiniPortalOption, EnFlowctrlWithoutRequestBuffers) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnFlowctrl, false);
  EXPECT_EQ(here.card.manage_by_software(pte, 1), EAGAIN);
  EXPECT_EQ(here.card.manage_by_software(pte, 0), 0);
  EXPECT_EQ(here.card.manage_by_software(pte, 5), 0) << "it is already";
  EXPECT_EQ(send(put("x")).code, ReturnCode::pt_disabled);
  expect_change(PteState::disabled, StateChangeReason::flow_request_full);
}

TEST_F(CassiniPortalOption, WithoutFlowControlTheInitiatorIsTold) {
  Pte& pte = here.portal(0, kMatching);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  ReturnCode code = ReturnCode::ok;
  for (int i = 0; i < 1000 && code == ReturnCode::ok; ++i) code = send(put("x")).code;
  EXPECT_EQ(code, ReturnCode::entry_not_found);
  EXPECT_EQ(pte.state, PteState::enabled);
  while (here.poll()) {
  }
  here.acknowledge();
  EXPECT_EQ(send(put("x")).code, ReturnCode::ok) << "it may try again";
}

TEST_F(CassiniPortalOption, UseLongEvent) {
  Pte& pte = here.portal(0, wire::kPteUseLongEvent);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  EXPECT_EQ(send(put("abc", 0, 7)).code, ReturnCode::ok);
  const Seen seen = here.next();
  EXPECT_EQ(seen.bytes, 64u);
  EXPECT_EQ(seen.as_long().start(), Side::kIova + 7);
  EXPECT_EQ(seen.as_long().remote_offset(), 7u);
  EXPECT_EQ(seen.as_long().mlength(), 3u);
}

TEST_F(CassiniPortalOption, Lossless) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnFlowctrl | wire::kPteLossless);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  ReturnCode code = ReturnCode::ok;
  for (int i = 0; i < 1000 && code == ReturnCode::ok; ++i) code = send(put("x")).code;
  EXPECT_EQ(code, ReturnCode::resource_busy) << "it waits rather than being dropped";
  EXPECT_EQ(pte.state, PteState::enabled);
}

// The same from the other end: the ring holds the puts until the target has read.
TEST_F(CassiniPortalOption, LosslessHoldsTheRingBack) {
  Pte& pte = here.portal(0, kMatching | wire::kPteLossless);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 64));
  there.lni->cps[0] = std::make_unique<Cp>();
  there.lni->cps[0]->vni = Side::kVni;
  alignas(64) std::uint64_t ring[256 * 8] = {};
  alignas(64) std::uint64_t launch[512] = {4};
  Cq* queue = there.card.transmit_queues.make();
  queue->lni = there.lni;
  queue->transmit = true;
  queue->slots = 256;
  queue->ring.direct = reinterpret_cast<std::byte*>(ring);
  queue->write_pointer_page = launch;
  there.card.started(*queue);
  constexpr std::uint32_t kPuts = 200;
  for (std::uint32_t i = 0; i < kPuts; ++i) {
    wire::FullDmaCmd c{};
    c.set_header(wire::CmdType::dma, wire::CmdSize::b64, wire::DmaOp::put);
    c.set_dfa(wire::unicast_dfa(fabric.card(0)->settings().nid, wire::endpoint_of(here.pid, 9, 0)));
    c.set_lac(Side::kLac);
    c.set_local_addr(Side::kIova);
    c.set_request_len(1);
    c.set_header_data(i);
    std::memcpy(ring + (4 + i) * 8, c.words, sizeof c);
  }
  launch[0] = 4 + kPuts;
  std::uint32_t seen = 0;
  bool held_back = false;
  for (int turn = 0; turn < 100 && seen < kPuts; ++turn) {
    for (int i = 0; i < 20; ++i) (void)fabric.drive();
    held_back = held_back || queue->read_slot != 4 + kPuts;
    while (const auto event = here.poll()) {
      ASSERT_EQ(event->as_short().header_data(), seen) << "in order, each once";
      ++seen;
    }
    here.acknowledge();
  }
  EXPECT_TRUE(held_back) << "200 events do not fit the queue";
  EXPECT_EQ(seen, kPuts);
  there.card.stopping(*queue);
}

TEST_F(CassiniPortalOption, EnRestrictedUnicastLm) {
  Pte& plainly = here.portal(0, 0);
  here.append(Side::buffer(plainly, PtlList::priority, 4, 0, 64, wire::kLeManageLocal));
  Request restricted = put("abc");
  restricted.restricted = true;
  EXPECT_EQ(send(restricted).code, ReturnCode::restricted_unicast);
  Pte& allowed = here.portal(1, wire::kPteEnRestrictedUnicastLm);
  here.append(Side::buffer(allowed, PtlList::priority, 4, 0, 64, wire::kLeManageLocal));
  restricted.index_ext = 1;
  EXPECT_EQ(send(restricted).code, ReturnCode::ok);
  EXPECT_EQ(here.memory.text(0, 3), "abc");
  EXPECT_EQ(here.next().type(), EventType::put);
  // At an offset nobody hears of it, and of the request that is no restricted one everybody does.
  Pte& plain = here.portal(2, wire::kPteEnRestrictedUnicastLm);
  here.append(Side::buffer(plain, PtlList::priority, 4, 0, 64));
  restricted.index_ext = 2;
  EXPECT_EQ(send(restricted).code, ReturnCode::ok);
  EXPECT_TRUE(here.quiet());
  // Failures are left out as well.
  restricted.remote_offset = 62;
  EXPECT_EQ(send(restricted).code, ReturnCode::addr_out_of_range);
  EXPECT_TRUE(here.quiet());
}

TEST_F(CassiniPortalOption, UseLogical) {
  // Of a rank all 23 bits count; of a network id 20.
  const std::uint32_t above = wire::match_id(9, 9, 1u << 20 | 5);
  std::uint32_t took[2] = {};
  for (const std::uint32_t index : {0u, 1u}) {
    Pte& pte = here.portal(index, kMatching | (index == 1 ? wire::kPteUseLogical : 0));
    wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 4, 0, 64);
    c.set_match_id(wire::match_id(9, 9, 5));
    here.append(c);
    Request r = put("x");
    r.index_ext = index;
    r.initiator = above;
    took[index] = send(r).code == ReturnCode::ok ? 1 : 0;
    (void)here.next();
  }
  EXPECT_EQ(took[0], 1u);
  EXPECT_EQ(took[1], 0u);
}

TEST_F(CassiniPortalOption, IsMatching) {
  for (const std::uint32_t index : {0u, 1u}) {
    Pte& pte = here.portal(index, index == 1 ? kMatching : 0);
    wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 4, 0, 64);
    c.set_match_bits(77);
    here.append(c);
    Request r = put("x", 76);
    r.index_ext = index;
    EXPECT_EQ(send(r).code, index == 1 ? ReturnCode::entry_not_found : ReturnCode::ok);
    (void)here.next();
  }
}

TEST_F(CassiniPortalOption, DoSpaceCheck) {
  Pte& pte = here.portal(0, wire::kPteDoSpaceCheck);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 4, wire::kLeManageLocal));
  EXPECT_EQ(send(put("12345")).code, ReturnCode::no_space) << "and no part of it";
  EXPECT_EQ(here.next().code(), ReturnCode::no_space);
  EXPECT_EQ(send(put("1234")).code, ReturnCode::ok);
}

TEST_F(CassiniPortalOption, EnAlignLm) {
  Pte& pte = here.portal(0, wire::kPteEnAlignLm);
  here.append(Side::buffer(pte, PtlList::priority, 4, 0, 256, wire::kLeManageLocal));
  EXPECT_EQ(send(put("abc")).code, ReturnCode::ok);
  EXPECT_EQ(send(put("def")).code, ReturnCode::ok);
  EXPECT_EQ(here.memory.text(0, 3), "abc");
  EXPECT_EQ(here.memory.text(64, 3), "def");
}

TEST_F(CassiniPortalOption, EnSwHwStChngWhenAnAppendFails) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnFlowctrl | wire::kPteEnSwHwStChng);
  limit_entries(1);
  here.append(Side::buffer(pte, PtlList::priority, 1, 0, 64));
  EXPECT_EQ(here.run(Side::buffer(pte, PtlList::priority, 2, 0, 64)), ReturnCode::ok);
  expect_change(PteState::software_managed, StateChangeReason::managed_append_fail);
  const Seen link = here.next();
  EXPECT_EQ(link.type(), EventType::link);
  EXPECT_EQ(link.code(), ReturnCode::ptlte_sw_managed);
}

TEST_F(CassiniPortalOption, EnSwHwStChngWhenAHeaderHasNoEntry) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnFlowctrl | wire::kPteEnSwHwStChng);
  limit_entries(2);
  here.append(Side::for_all(Side::buffer(pte, PtlList::overflow, 1, 0, 64, wire::kLeManageLocal)));
  here.append(Side::for_all(Side::buffer(pte, PtlList::request, 2, 1024, 1024, wire::kLeManageLocal)));
  const Answer answer = send(put("message", 5));
  EXPECT_EQ(answer.code, ReturnCode::ok) << "software takes it, nothing is lost";
  EXPECT_EQ(answer.list, PtlList::request);
  expect_change(PteState::software_managed, StateChangeReason::managed_unexpected_fail);
  const Seen seen = here.next();
  EXPECT_EQ(seen.as_long().buffer_id(), 2u);
  EXPECT_EQ(seen.as_long().mlength(), 63u + 7u) << "the packet's headers are before it";
  EXPECT_EQ(seen.as_long().rlength(), 7u);
  EXPECT_EQ(here.memory.text(1024 + 63, 7), "message");
}

TEST_F(CassiniPortalOption, Ethernet) {
  Pte& pte = here.portal(0, wire::kPteEthernet, false);
  EXPECT_EQ(here.set_state(pte, PteState::enabled), ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(here.set_state(pte, PteState::ethernet), ReturnCode::ok);
  EXPECT_EQ(here.next().as_long().ptlte_state(), PteState::ethernet);
  EXPECT_EQ(send(put("x")).code, ReturnCode::illegal_op) << "no requests of the fabric there";
}

TEST_F(CassiniPortalOption, SignalInvalid) {
  (void)summing(wire::kPteSignalInvalid);
  const double inf = std::numeric_limits<double>::infinity();
  double after = 0;
  EXPECT_EQ(sum_doubles(inf, -inf, &after), ReturnCode::amo_fp_invalid);
  EXPECT_EQ(after, inf) << "as it was";
}

TEST_F(CassiniPortalOption, SignalUnderflow) {
  (void)summing(wire::kPteSignalUnderflow);
  const double least = std::numeric_limits<double>::min();  // that is normal
  double after = 0;
  EXPECT_EQ(sum_doubles(least * 1.5, -least, &after), ReturnCode::amo_fp_underflow);
  EXPECT_EQ(after, least * 1.5) << "as it was";
  EXPECT_EQ(sum_doubles(least, least), ReturnCode::ok);
}

TEST_F(CassiniPortalOption, SignalOverflow) {
  (void)summing(wire::kPteSignalOverflow);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(sum_doubles(most, most), ReturnCode::amo_fp_overflow);
}

TEST_F(CassiniPortalOption, SignalInexact) {
  (void)summing(wire::kPteSignalInexact);
  EXPECT_EQ(sum_doubles(1.0, 1e-30), ReturnCode::amo_fp_inexact);
  EXPECT_EQ(sum_doubles(1.0, 1.0), ReturnCode::ok);
}

TEST_F(CassiniPortalOption, WithoutSignalsFloatingPointGoesOn) {
  (void)summing(0);
  const double most = std::numeric_limits<double>::max();
  double after = 0;
  EXPECT_EQ(sum_doubles(most, most, &after), ReturnCode::ok);
  EXPECT_TRUE(std::isinf(after));
}

TEST_F(CassiniPortalOption, EnMatchOnVni) {
  Pte& pte = here.portal(0, kMatching | wire::kPteEnMatchOnVni);
  std::shared_ptr<Profile> network;
  ASSERT_EQ(make_profile(here.card, 20, 0, network), 0);
  network->enabled = true;
  here.card.addresses[{20, wire::endpoint_of(here.pid, 9, 0), 0}] = &pte;
  wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 4, 0, 64);
  c.set_match_id(20);
  here.append(c);
  EXPECT_EQ(send(put("x")).code, ReturnCode::entry_not_found);
  Request r = put("x");
  r.vni = 20;
  EXPECT_EQ(send(r).code, ReturnCode::ok);
}

}  // namespace strait::soft::cassini::testing
