// SPDX-License-Identifier: Apache-2.0
// A long message comes in two parts: what fits a packet, and what the target's card fetches.
#include "soft/cassini/target_testing.hpp"

namespace strait::soft::cassini::testing {

using wire::EventType;
using wire::PtlList;
using wire::ReturnCode;

class CassiniRendezvous : public TargetTest {
 protected:
  static constexpr std::uint64_t kMatch = 0x123456;
  static constexpr std::uint32_t kId = 0x5a;
  static constexpr std::uint64_t kSource = 512;  // in the initiator's memory

  // The initiator: all of its memory may be fetched through the rendezvous portal.
  void expose() {
    Pte& pte = there.portal(target::kRendezvousIndex, kMatching);
    wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 900, 0, 0);
    c.set_start(0);
    c.set_length((std::uint64_t{1} << 56) - 1);
    c.set_ignore_bits(~std::uint64_t{0});
    there.append(c);
    for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<char>('a' + i % 26);
    ASSERT_TRUE(there.memory.write(kSource, message.data(), message.size()));
  }
  Request rendezvous(std::uint32_t eager) {
    Request r = put(message, kMatch, Side::kIova + kSource);
    r.op = wire::DmaOp::rendezvous_put;
    r.eager_length = eager;
    r.rendezvous_id = kId;
    r.use_offset_for_get = true;
    return r;
  }
  wire::TargetCmd receive_buffer(Pte& pte, std::uint64_t length) {
    wire::TargetCmd c = Side::buffer(pte, PtlList::priority, 44, 1024, length,
                                     wire::kLeUseOnce | wire::kLeManageLocal | wire::kLeEventUnlinkDisable);
    c.set_match_bits(kMatch);
    return c;
  }
  void expect_rest(std::uint32_t eager, std::uint32_t fetched) {
    const Seen event = here.next();
    EXPECT_EQ(event.type(), EventType::rendezvous);
    EXPECT_EQ(event.bytes, 64u);
    const wire::TargetLong seen = event.as_long();
    EXPECT_TRUE(seen.rendezvous());
    EXPECT_TRUE(seen.get_issued());
    EXPECT_EQ(seen.buffer_id(), 44u);
    EXPECT_EQ(seen.rendezvous_id(), kId);
    EXPECT_EQ(wire::nid_of_dfa(seen.initiator()), fabric.card(1)->settings().nid);
    EXPECT_EQ(wire::pid_of_dfa(seen.initiator(), 9), 9u);
    EXPECT_EQ(seen.start(), Side::kIova + 1024 + eager);
    EXPECT_EQ(seen.mlength(), eager);
    EXPECT_EQ(seen.rlength(), message.size());
    EXPECT_EQ(seen.remote_offset(), Side::kIova + kSource + eager);
    const Seen reply = here.next();
    EXPECT_EQ(reply.type(), EventType::reply);
    EXPECT_EQ(reply.bytes, 16u);
    EXPECT_EQ(reply.code(), ReturnCode::ok);
    EXPECT_TRUE(reply.as_reply().rendezvous());
    EXPECT_EQ(reply.as_reply().mlength(), fetched);
    const std::uint64_t who = reply.as_reply().user_ptr();
    EXPECT_EQ(who & 0xfffff, fabric.card(1)->settings().nid);
    EXPECT_EQ(who >> 20 & 511, 9u);
    EXPECT_EQ(who >> 40 & 255, kId);
    EXPECT_EQ(who >> 48, 44u);
    // The initiator learns which message was fetched.
    const Seen get = there.next();
    EXPECT_EQ(get.type(), EventType::get);
    EXPECT_EQ(get.as_short().match_bits(), (kMatch & ~0xffu) | kId);
    EXPECT_EQ(get.as_short().buffer_id(), 900u);
  }

  std::string message = std::string(3000, ' ');
};

TEST_F(CassiniRendezvous, TheCardFetchesTheRestOfAnExpectedMessage) {
  expose();
  Pte& pte = here.portal(0, kMatching | wire::kPteUseLongEvent);
  here.append(receive_buffer(pte, 4096));
  const Answer answer = send(rendezvous(100));
  EXPECT_EQ(answer.code, ReturnCode::ok);
  EXPECT_EQ(answer.mlength, 100u);
  const Seen put_event = here.next();
  EXPECT_EQ(put_event.type(), EventType::put);
  EXPECT_TRUE(put_event.as_long().rendezvous());
  EXPECT_EQ(put_event.as_long().mlength(), 100u);
  EXPECT_EQ(put_event.as_long().rlength(), 3000u);
  EXPECT_EQ(put_event.as_long().rendezvous_id(), kId);
  expect_rest(100, 2900);
  EXPECT_EQ(here.memory.text(1024, 3000), message);
}

TEST_F(CassiniRendezvous, AShortBufferTakesWhatFits) {
  expose();
  Pte& pte = here.portal(0, kMatching);
  here.append(receive_buffer(pte, 1000));
  EXPECT_EQ(send(rendezvous(100)).code, ReturnCode::ok);
  (void)here.next();
  expect_rest(100, 900);
  EXPECT_EQ(here.memory.text(1024, 1000), message.substr(0, 1000));
  EXPECT_EQ(here.memory.text(2024, 1), std::string(1, '\0'));
}

TEST_F(CassiniRendezvous, AnUnexpectedMessageIsFetchedWhenItsBufferComes) {
  expose();
  Pte& pte = here.portal(0, kMatching);
  wire::TargetCmd spill =
      Side::buffer(pte, PtlList::overflow, 500, 8192, 2048, wire::kLeManageLocal | wire::kLeNoTruncate);
  spill.set_ignore_bits(~std::uint64_t{0});
  here.append(spill);
  EXPECT_EQ(send(rendezvous(100)).list, PtlList::overflow);
  const Seen put_event = here.next();
  EXPECT_EQ(put_event.as_long().mlength(), 100u);
  EXPECT_TRUE(put_event.as_long().rendezvous());
  EXPECT_TRUE(here.quiet());
  EXPECT_TRUE(there.quiet()) << "nobody knows yet where it would go";
  EXPECT_EQ(here.card.unexpected_offsets(pte), std::vector<std::uint64_t>{Side::kIova + kSource});

  EXPECT_EQ(here.run(receive_buffer(pte, 4096)), ReturnCode::ok);
  const Seen overflow = here.next();
  EXPECT_EQ(overflow.type(), EventType::put_overflow);
  EXPECT_EQ(overflow.as_long().buffer_id(), 44u);
  EXPECT_EQ(overflow.as_long().start(), Side::kIova + 8192);
  EXPECT_TRUE(overflow.as_long().rendezvous());
  expect_rest(100, 2900);
  EXPECT_EQ(here.memory.text(1024 + 100, 2900), message.substr(100));
  EXPECT_EQ(here.memory.text(8192, 100), message.substr(0, 100));
}

TEST_F(CassiniRendezvous, WhatIsAllThereIsStillAcknowledgedByAGet) {
  expose();
  Pte& pte = here.portal(0, kMatching);
  here.append(receive_buffer(pte, 4096));
  EXPECT_EQ(send(rendezvous(5000)).mlength, 3000u);
  (void)here.next();
  expect_rest(3000, 0);
}

TEST_F(CassiniRendezvous, NobodyToFetchFrom) {
  Pte& pte = here.portal(0, kMatching);
  here.append(receive_buffer(pte, 4096));
  EXPECT_EQ(send(rendezvous(100)).code, ReturnCode::ok);
  (void)here.next();
  EXPECT_EQ(here.next().type(), EventType::rendezvous);
  EXPECT_EQ(here.next().code(), ReturnCode::ptlte_not_found);
  here.append(receive_buffer(pte, 4096));
  Request gone = rendezvous(100);
  gone.source_nid = 0x7777;
  EXPECT_EQ(send(gone).code, ReturnCode::ok);
  (void)here.next();
  EXPECT_EQ(here.next().type(), EventType::rendezvous);
  EXPECT_EQ(here.next().code(), ReturnCode::undeliverable);
}

TEST_F(CassiniRendezvous, SoftwareThatMatchesGetsThePacket) {
  expose();
  Pte& pte = here.portal(0, kMatching, false);
  EXPECT_EQ(here.card.manage_by_software(pte, 0), 0);
  here.append(
      Side::for_all(Side::buffer(pte, PtlList::request, 60, 0, 512, wire::kLeManageLocal | wire::kLeNoTruncate)));
  const Request r = rendezvous(100);
  EXPECT_EQ(send(r).list, PtlList::request);
  const Seen seen = here.next();
  EXPECT_EQ(seen.as_long().mlength(), 163u);
  EXPECT_EQ(seen.as_long().rlength(), 3000u);
  EXPECT_TRUE(seen.as_long().rendezvous());
  const std::string packet = here.memory.text(0, 163);
  EXPECT_EQ(static_cast<unsigned char>(packet[0]) >> 4, 4) << "version of the fabric header";
  EXPECT_EQ((static_cast<unsigned char>(packet[20]) >> 4 & 7), 0) << "an unrestricted packet";
  std::uint64_t offset = 0;
  for (std::size_t i = 22; i < 29; ++i) offset = offset << 8 | static_cast<unsigned char>(packet[i]);
  EXPECT_EQ(offset, Side::kIova + kSource);
  EXPECT_EQ(packet.substr(63), message.substr(0, 100));

  Request small = put("tiny", 3);
  small.op = wire::DmaOp::small_message;
  EXPECT_EQ(send(small).code, ReturnCode::ok);
  EXPECT_EQ(here.next().as_long().mlength(), 49u + 4u);
  EXPECT_EQ(here.memory.text(163 + 49, 4), "tiny");
  Request get = request(wire::DmaOp::get, 0, 1);
  EXPECT_EQ(send(get).code, ReturnCode::ptlte_sw_managed);
}

}  // namespace strait::soft::cassini::testing
