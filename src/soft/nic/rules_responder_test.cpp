// SPDX-License-Identifier: Apache-2.0
// The rules of RoCEv2, one by one: what a responder checks, in which order, and how it answers (docs/wire-roce.md,
// steps [1] to [8]).
#include <array>

#include "soft/nic/rules_testing.hpp"
#include "soft/nic/verbs_testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::nic::testing {
namespace {

class RuleResponder : public ::testing::Test {
 protected:
  explicit RuleResponder(const LiveConfig& config = {}) : live(config) {
    live.queue->post_receive(
        {{address_of(inbox.data()), static_cast<std::uint32_t>(inbox.size()), live.reg(inbox.data(), inbox.size())}});
  }
  [[nodiscard]] Pkt write(std::uint32_t n, std::uint32_t step = 0) const {
    return {.opcode = write_only,
            .psn = live.at(step),
            .va = address_of(target.data()),
            .rkey = key,
            .length = n,
            .payload = pattern(n, 7)};
  }
  // Refused for good: the NAK names the packet, the queue pair fails, its receives are flushed, nothing was written.
  void expect_fatal(const Pkt& p, unsigned syndrome, const char* what) {
    const Pkt nak = live.answer(p);
    EXPECT_EQ(nak.opcode, ack_op) << what;
    EXPECT_EQ(nak.syndrome, syndrome) << what;
    EXPECT_EQ(nak.psn, p.psn) << what;
    EXPECT_EQ(nak.qpn, live.config().remote_qpn);
    EXPECT_TRUE(live.failed()) << what;
    const auto event = live.queue->poll();
    ASSERT_TRUE(event) << what;
    EXPECT_EQ(event->opcode, m::CqeOpcode::responder_error) << what;
    EXPECT_EQ(event->syndrome, m::Syndrome::flushed) << what;
    EXPECT_FALSE(live.queue->poll());
    EXPECT_TRUE(live.feed(write(4)).empty()) << "a failed queue pair answers nobody";
  }
  [[nodiscard]] bool untouched() const { return target == std::vector<std::byte>(target.size()); }

  Live live;
  std::vector<std::byte> inbox = std::vector<std::byte>(1024);
  std::vector<std::byte> target = std::vector<std::byte>(4096);
  std::uint32_t key = live.reg(target.data(), target.size());
};

// ---- [1] dropped without a word

struct Dropped {
  const char* name;
  roce::Drop why;
  std::function<void(Live&, const Pkt& good)> feed;
};
class RuleSilence : public RuleResponder, public ::testing::WithParamInterface<Dropped> {};
INSTANTIATE_TEST_SUITE_P(
    Packets, RuleSilence,
    ::testing::Values(Dropped{"shorter_than_its_headers", roce::Drop::too_short,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.qpn = live.queue->qpn;
                                Bytes bytes = bytes_of(p);
                                bytes.resize(24);
                                live.inject(std::move(bytes));
                              }},
                      Dropped{"version", roce::Drop::bad_version,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.version = 1;
                                live.inject(p);
                              }},
                      Dropped{"unknown_opcode", roce::Drop::unknown_opcode,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.opcode = 0x1c;
                                live.inject(p);
                              }},
                      Dropped{"partition_key", roce::Drop::bad_pkey,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.pkey = 0x8001;
                                live.inject(p);
                              }},
                      Dropped{"pad_larger_than_payload", roce::Drop::bad_pad,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.payload.clear();
                                p.qpn = live.queue->qpn;
                                Bytes bytes = bytes_of(p);
                                bytes[1] |= std::byte{0x30};
                                live.inject(std::move(bytes));
                              }},
                      Dropped{"payload_in_a_read_request", roce::Drop::bad_length,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.opcode = read_request;
                                live.inject(p);
                              }},
                      Dropped{"unknown_queue_pair", roce::Drop::unknown_qpn,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.qpn = live.queue->qpn + 1;
                                live.inject(p);
                              }},
                      Dropped{"queue_pair_of_another_generation", roce::Drop::unknown_qpn,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.qpn = live.queue->qpn ^ 0x10000;
                                live.inject(p);
                              }},
                      Dropped{"opcode_of_another_transport", roce::Drop::wrong_transport,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.opcode += uc;
                                live.inject(p);
                              }},
                      Dropped{"from_another_address", roce::Drop::wrong_address,
                              [](Live& live, const Pkt& good) {
                                const roce::Flow right = live.flow;
                                live.flow.source = roce::IpAddress::v4(10, 0, 0, 3);
                                live.inject(good);
                                live.flow = right;
                              }},
                      Dropped{"to_another_address", roce::Drop::wrong_address,
                              [](Live& live, const Pkt& good) {
                                const roce::Flow right = live.flow;
                                live.flow.destination = roce::IpAddress::v4(10, 0, 0, 3);
                                live.inject(good);
                                live.flow = right;
                              }},
                      Dropped{"wrong_crc", roce::Drop::bad_icrc,
                              [](Live& live, const Pkt& good) {
                                Pkt p = good;
                                p.qpn = live.queue->qpn;
                                live.port->inject({live.flow, false, false, bytes_of(p)});
                              }},
                      Dropped{"response_to_nothing", roce::Drop::unexpected_response,
                              [](Live& live, const Pkt&) {
                                live.inject({.opcode = read_only, .psn = live.ours(0), .payload = pattern(8, 1)});
                              }},
                      Dropped{"refusal_of_nothing", roce::Drop::unexpected_response,
                              [](Live& live, const Pkt&) { live.inject(live.ack(live.ours(0), 0x62)); }}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_P(RuleSilence, NoAnswerAndNoTrace) {
  GetParam().feed(live, write(8));
  live.drive();
  EXPECT_TRUE(live.sent().empty());
  EXPECT_EQ(live.drops(GetParam().why), 1u);
  EXPECT_TRUE(untouched());
  EXPECT_FALSE(live.queue->poll());
  EXPECT_FALSE(live.failed());
  EXPECT_EQ(live.answer(write(8)).syndrome, 0x1fu) << "the queue pair goes on where it was";
}

TEST_F(RuleResponder, ALimitedMemberOfThePartitionIsHeard) {
  Pkt p = write(8);
  p.pkey = 0x7fff;
  EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
}

TEST(RuleSilent, AQueuePairThatIsNotConnectedHearsNothing) {
  LiveConfig config;
  config.connected = false;
  Live live(config);
  live.inject({.opcode = send_only, .psn = live.at(0)});
  // Without connections the port is looked at only now and then.
  EXPECT_TRUE(live.drive_until([&] { return live.drops(roce::Drop::wrong_state) == 1; }));
  EXPECT_TRUE(live.sent().empty());
}

// From RTR on it is asked, from RTS on it is answered.
TEST(RuleSilent, AQueuePairThatDoesNotSendYetHearsNoAnswers) {
  LiveConfig config;
  config.connected = false;
  Live live(config);
  QpAttributes attributes = attributes_to(live.flow.source, config.remote_qpn, config.send_psn, config.receive_psn);
  attributes.path_mtu = 1;
  step(*live.engine, live.queue->qpn, attributes, QpState::rtr, rtr_mask(QpType::rc) | kQpAccess).value();
  std::array<std::byte, 64> memory{};
  const Pkt write{.opcode = write_only,
                  .psn = live.at(0),
                  .va = address_of(memory.data()),
                  .rkey = live.reg(memory.data(), memory.size()),
                  .length = 8,
                  .payload = pattern(8, 1)};
  EXPECT_EQ(live.answer(write).syndrome, 0x1fu);
  EXPECT_EQ(live.drops(roce::Drop::wrong_state), 0u);
  EXPECT_TRUE(live.feed(live.ack(live.ours(0))).empty());
  EXPECT_EQ(live.drops(roce::Drop::wrong_state), 1u);
  EXPECT_TRUE(live.feed({.opcode = read_only, .psn = live.ours(0), .payload = pattern(8, 2)}).empty());
  EXPECT_EQ(live.drops(roce::Drop::wrong_state), 2u);
  EXPECT_TRUE(live.feed(live.ack(live.ours(0), 0x62)).empty());
  EXPECT_EQ(live.drops(roce::Drop::wrong_state), 3u);
  EXPECT_EQ(live.qp().state, QpState::rtr);
  step(*live.engine, live.queue->qpn, attributes, QpState::ready, rts_mask(QpType::rc)).value();
  live.feed(live.ack(live.ours(0)));
  EXPECT_EQ(live.drops(roce::Drop::wrong_state), 3u) << "now it listens, even to what it did not ask for";
}

TEST_F(RuleResponder, AQueuePairInErrorHearsNothing) {
  live.queue->post({.opcode = m::Opcode::rdma_write, .raddr = 1, .rkey = 2, .inlined = pattern(8, 1)});
  EXPECT_EQ(live.sent().size(), 1u);
  ASSERT_TRUE(live.engine->fail_qp(live.queue->qpn));
  for (int i = 0; i < 2; ++i) {
    const auto event = live.queue->poll();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->syndrome, m::Syndrome::flushed) << "the request and the receive";
  }
  EXPECT_TRUE(live.feed(write(8)).empty());
  EXPECT_TRUE(live.feed({.opcode = send_only, .psn = live.at(0), .payload = pattern(8, 1)}).empty());
  EXPECT_TRUE(live.feed(live.ack(live.ours(0))).empty());
  EXPECT_EQ(live.drops(roce::Drop::wrong_state), 3u);
  EXPECT_TRUE(untouched());
  EXPECT_FALSE(live.queue->poll());
}

// ---- [2] sequence number

TEST_F(RuleResponder, AGapIsReportedOnceUntilItIsFilled) {
  const Pkt nak = live.answer(write(8, 2));
  EXPECT_EQ(nak.syndrome, 0x60u);
  EXPECT_EQ(nak.psn, live.at(0)) << "the one that is missing";
  EXPECT_TRUE(live.feed(write(8, 3)).empty());
  EXPECT_TRUE(live.feed(write(8, 1)).empty());
  EXPECT_TRUE(untouched());
  EXPECT_EQ(live.answer(write(8, 0)).syndrome, 0x1fu);
  EXPECT_EQ(live.answer(write(8, 5)).syndrome, 0x60u) << "a new gap, a new NAK";
}

// ---- [3] place in the message

struct Sequence {
  const char* name;
  std::vector<unsigned> opcodes;  // the last one is wrong
};
class RuleSequence : public RuleResponder, public ::testing::WithParamInterface<Sequence> {};
INSTANTIATE_TEST_SUITE_P(
    Wrong, RuleSequence,
    ::testing::Values(
        Sequence{"send_middle_without_first", {send_middle}}, Sequence{"send_last_without_first", {send_last}},
        Sequence{"write_middle_without_first", {write_middle}}, Sequence{"write_last_without_first", {write_last}},
        Sequence{"send_last_inval_without_first", {send_last_inval}},
        Sequence{"two_send_firsts", {send_first, send_first}}, Sequence{"only_inside_a_send", {send_first, send_only}},
        Sequence{"write_inside_a_send", {send_first, write_middle}},
        Sequence{"write_first_inside_a_send", {send_first, send_middle, write_first}},
        Sequence{"send_inside_a_write", {write_first, send_last}},
        Sequence{"send_after_write_middle", {write_first, write_middle, send_middle}},
        Sequence{"read_inside_a_write", {write_first, read_request}},
        Sequence{"atomic_inside_a_send", {send_first, fetch_add}},
        Sequence{"middle_after_last", {send_first, send_last, send_middle}}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_P(RuleSequence, IsAnInvalidRequest) {
  const auto& opcodes = GetParam().opcodes;
  for (std::uint32_t i = 0; i < opcodes.size(); ++i) {
    Pkt p{.opcode = opcodes[i], .psn = live.at(i), .va = address_of(target.data()), .rkey = key, .length = 768};
    if (opcodes[i] != read_request && opcodes[i] != fetch_add) p.payload = pattern(kPmtu, i);
    if (i + 1 < opcodes.size()) {
      EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
      while (live.queue->poll()) live.queue->post_receive({});
      continue;
    }
    expect_fatal(p, 0x61, GetParam().name);
  }
}

// ---- [4] what the queue pair allows, [5] what it has room for

struct Denied {
  unsigned opcode;
  std::uint32_t missing;
};
class RuleAccess : public ::testing::TestWithParam<Denied> {};
INSTANTIATE_TEST_SUITE_P(Of, RuleAccess,
                         ::testing::Values(Denied{write_only, STRAIT_NIC_REMOTE_WRITE},
                                           Denied{read_request, STRAIT_NIC_REMOTE_READ},
                                           Denied{fetch_add, STRAIT_NIC_REMOTE_ATOMIC},
                                           Denied{compare_swap, STRAIT_NIC_REMOTE_ATOMIC}),
                         [](const auto& each) { return fmt::format("x{:02x}", each.param.opcode); });

TEST_P(RuleAccess, DeniedByTheQueuePairIsAnInvalidRequest) {
  for (const bool allowed : {true, false}) {
    LiveConfig config;
    if (!allowed) config.access &= ~GetParam().missing;
    Live live(config);
    alignas(8) std::array<std::byte, 64> memory{};
    Pkt p{.opcode = GetParam().opcode,
          .psn = live.at(0),
          .va = address_of(memory.data()),
          .rkey = live.reg(memory.data(), memory.size()),
          .length = 8,
          .swap_or_add = 5};
    if (p.opcode == write_only) p.payload = pattern(8, 1);
    const Pkt answer = live.answer(p);
    EXPECT_EQ(answer.syndrome, allowed ? 0x1fu : 0x61u);
    EXPECT_EQ(live.failed(), !allowed);
  }
}

TEST(RuleResources, AResponderWithoutRoomForReadsRefusesThem) {
  for (const unsigned opcode : {read_request + 0u, fetch_add + 0u}) {
    LiveConfig config;
    config.max_reads_in = 0;
    Live live(config);
    alignas(8) std::array<std::byte, 64> memory{};
    EXPECT_EQ(live.answer({.opcode = opcode,
                           .psn = live.at(0),
                           .va = address_of(memory.data()),
                           .rkey = live.reg(memory.data(), memory.size()),
                           .length = 8})
                  .syndrome,
              0x61u);
    EXPECT_TRUE(live.failed());
  }
}

TEST(RuleResources, ASendWithoutAReceiveIsAskedToComeBack) {
  LiveConfig config;
  config.rnr_timer = 14;
  Live live(config);
  std::array<std::byte, 64> inbox{};
  const Pkt send{.opcode = send_only, .psn = live.at(0), .payload = pattern(20, 3)};
  Pkt answer = live.answer(send);
  EXPECT_EQ(answer.syndrome, 0x20u | 14);
  EXPECT_EQ(answer.psn, live.at(0));
  EXPECT_EQ(answer.msn, 0u);
  // What was under way behind it is not a new loss.
  Pkt next = send;
  next.psn = live.at(1);
  EXPECT_TRUE(live.feed(next).empty()) << "one complaint at a time";
  answer = live.answer(send);
  EXPECT_EQ(answer.syndrome, 0x20u | 14) << "each try is answered";
  live.queue->post_receive({{address_of(inbox.data()), 64, live.reg(inbox.data(), 64)}});
  EXPECT_EQ(live.answer(send).syndrome, 0x1fu);
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->bytes, 20u);
  EXPECT_EQ(std::memcmp(inbox.data(), pattern(20, 3).data(), 20), 0);
}

TEST(RuleResources, TheLastPacketOfAWriteWithImmediateNeedsTheReceive) {
  Live live;
  std::vector<std::byte> target(512);
  const Pkt first{.opcode = write_first,
                  .psn = live.at(0),
                  .va = address_of(target.data()),
                  .rkey = live.reg(target.data(), target.size()),
                  .length = 300,
                  .payload = pattern(256, 1)};
  EXPECT_EQ(live.answer(first).syndrome, 0x1fu) << "not yet";
  const Pkt last{.opcode = write_last_imm, .psn = live.at(1), .imm = 0x01020304, .payload = pattern(44, 2)};
  const Pkt answer = live.answer(last);
  EXPECT_EQ(answer.syndrome & 0xe0, 0x20u);
  EXPECT_EQ(answer.psn, live.at(1));
  live.queue->post_receive({});
  EXPECT_EQ(live.answer(last).syndrome, 0x1fu);
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_write_imm);
  EXPECT_EQ(event->bytes, 300u) << "the length that the RETH gave";
  EXPECT_EQ(event->imm, 0x01020304u);
}

// ---- [6] length

TEST_F(RuleResponder, AFirstPacketThatIsNotFullIsInvalid) {
  Pkt p = write(kPmtu - 4);
  p.opcode = write_first;
  p.length = 1000;
  expect_fatal(p, 0x61, "write first");
  EXPECT_TRUE(untouched());
}
TEST_F(RuleResponder, ASendFirstThatIsNotFullIsInvalid) {
  expect_fatal({.opcode = send_first, .psn = live.at(0), .payload = pattern(kPmtu - 4, 1)}, 0x61, "send first");
}
TEST_F(RuleResponder, APacketLongerThanThePathMtuIsInvalid) {
  expect_fatal({.opcode = send_only, .psn = live.at(0), .payload = pattern(kPmtu + 4, 1)}, 0x61, "send only");
}
TEST_F(RuleResponder, AFirstPacketLongerThanThePathMtuIsInvalid) {
  Pkt p = write(2 * kPmtu);
  p.opcode = write_first;
  p.length = 4 * kPmtu;
  expect_fatal(p, 0x61, "the peer uses another MTU");
  EXPECT_TRUE(untouched());
}
TEST_F(RuleResponder, AMiddlePacketThatIsNotFullIsInvalid) {
  Pkt p = write(kPmtu);
  p.opcode = write_first;
  p.length = 1000;
  EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
  expect_fatal({.opcode = write_middle, .psn = live.at(1), .payload = pattern(kPmtu - 1, 1)}, 0x61, "write middle");
}
TEST_F(RuleResponder, AnEmptyLastPacketIsInvalid) {
  EXPECT_EQ(live.answer({.opcode = send_first, .psn = live.at(0), .payload = pattern(kPmtu, 1)}).syndrome, 0x1fu);
  expect_fatal({.opcode = send_last, .psn = live.at(1)}, 0x61, "send last");
}
TEST_F(RuleResponder, AWriteThatEndsTooSoonIsInvalid) {
  Pkt p = write(kPmtu);
  p.opcode = write_first;
  p.length = 3 * kPmtu;
  EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
  expect_fatal({.opcode = write_last, .psn = live.at(1), .payload = pattern(kPmtu, 1)}, 0x61, "a packet is missing");
}
TEST_F(RuleResponder, AWriteThatDoesNotEndIsInvalid) {
  Pkt p = write(kPmtu);
  p.opcode = write_first;
  p.length = 2 * kPmtu;
  EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
  expect_fatal({.opcode = write_middle, .psn = live.at(1), .payload = pattern(kPmtu, 1)}, 0x61, "it should be a last");
}
TEST_F(RuleResponder, AWriteWhoseLengthIsNotItsPayloadIsInvalid) {
  Pkt p = write(16);
  p.length = 17;
  expect_fatal(p, 0x61, "write only");
  EXPECT_TRUE(untouched());
}
// The key is looked at after the length: of the longest message its range is what is wrong.
class RuleLongest : public RuleResponder, public ::testing::WithParamInterface<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Of, RuleLongest, ::testing::Values(write_first + 0u, read_request + 0u),
                         [](const auto& each) { return each.param == write_first ? "write" : "read"; });
TEST_P(RuleLongest, MessageIsOfTwoGibibytes) {
  Pkt p{.opcode = GetParam(), .psn = live.at(0), .va = address_of(target.data()), .rkey = key, .length = 0x80000000};
  if (p.opcode == write_first) p.payload = pattern(kPmtu, 1);
  expect_fatal(p, 0x62, "the longest");
  EXPECT_TRUE(untouched());
}
TEST_P(RuleLongest, MessageAndOneByteIsInvalid) {
  Pkt p{.opcode = GetParam(), .psn = live.at(0), .va = address_of(target.data()), .rkey = key, .length = 0x80000001};
  if (p.opcode == write_first) p.payload = pattern(kPmtu, 1);
  expect_fatal(p, 0x61, "one more");
  EXPECT_TRUE(untouched());
}
// Where there is memory for it: two packets of it, and its end is not forgotten.
TEST_F(RuleResponder, TheLongestWriteBegins) {
  const auto large = sys::map_anonymous(std::size_t{1} << 31, sys::Protect::read_write, nullptr).value();
  Pkt p = write(kPmtu);
  p.opcode = write_first;
  p.va = address_of(large.data());
  p.length = 0x80000000;
  p.rkey = live.reg(large.data(), large.size());
  EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
  EXPECT_EQ(live.answer({.opcode = write_middle, .psn = live.at(1), .payload = pattern(kPmtu, 8)}).syndrome, 0x1fu);
  EXPECT_EQ(std::memcmp(large.data(), pattern(kPmtu, 7).data(), kPmtu), 0);
  EXPECT_EQ(std::memcmp(large.data() + kPmtu, pattern(kPmtu, 8).data(), kPmtu), 0);
  expect_fatal({.opcode = write_last, .psn = live.at(2), .payload = pattern(kPmtu, 1)}, 0x61, "it is far from its end");
}

// ---- [7] keys

struct Key {
  const char* name;
  unsigned opcode;
  std::function<void(Live&, std::vector<std::byte>&, Pkt&)> spoil;
};
class RuleKey : public RuleResponder, public ::testing::WithParamInterface<std::tuple<Key, unsigned>> {};

void unknown_key(Live&, std::vector<std::byte>&, Pkt& p) {
  p.rkey ^= 0x5500;
}
void another_variant(Live&, std::vector<std::byte>&, Pkt& p) {
  p.rkey ^= 1;
}
void past_the_end(Live&, std::vector<std::byte>& target, Pkt& p) {
  p.va = address_of(target.data()) + target.size();
}
void before_the_start(Live&, std::vector<std::byte>&, Pkt& p) {
  p.va -= 8;
}
void wraps(Live&, std::vector<std::byte>&, Pkt& p) {
  p.va = ~std::uint64_t{7};
}
void other_domain(Live& live, std::vector<std::byte>& target, Pkt& p) {
  p.rkey = live.reg(target.data(), target.size(), 0xf, live.engine->alloc_pd());
}
void not_granted(Live& live, std::vector<std::byte>& target, Pkt& p) {
  p.rkey = live.reg(target.data(), target.size(), STRAIT_NIC_LOCAL_WRITE);
}
INSTANTIATE_TEST_SUITE_P(
    Wrong, RuleKey,
    ::testing::Combine(::testing::Values(Key{"unknown", 0, unknown_key}, Key{"another_variant", 0, another_variant},
                                         Key{"past_the_end", 0, past_the_end},
                                         Key{"before_the_start", 0, before_the_start}, Key{"wraps", 0, wraps},
                                         Key{"other_domain", 0, other_domain}, Key{"not_granted", 0, not_granted}),
                       ::testing::Values(write_only + 0u, read_request + 0u, fetch_add + 0u, compare_swap + 0u)),
    [](const auto& each) { return fmt::format("{}_x{:02x}", std::get<0>(each.param).name, std::get<1>(each.param)); });

TEST_P(RuleKey, IsARemoteAccessError) {
  Pkt p = write(8);
  p.opcode = std::get<1>(GetParam());
  if (p.opcode != write_only) p.payload.clear();
  p.swap_or_add = 1;
  std::get<0>(GetParam()).spoil(live, target, p);
  expect_fatal(p, 0x62, std::get<0>(GetParam()).name);
  EXPECT_TRUE(untouched());
}

TEST_F(RuleResponder, TheWholeRangeIsCheckedAtTheFirstPacket) {
  Pkt p = write(kPmtu);
  p.opcode = write_first;
  p.va = address_of(target.data()) + target.size() - 300;
  p.length = 301;
  expect_fatal(p, 0x62, "its second packet would not fit");
  EXPECT_TRUE(untouched());
}
TEST_F(RuleResponder, NoBytesNeedNoKey) {
  Pkt p = write(0);
  p.rkey = 0xdead;
  p.va = 0x13;
  EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
  p.opcode = read_request;
  p.psn = live.at(1);
  const Pkt answer = live.answer(p);
  EXPECT_EQ(answer.opcode, read_only);
  EXPECT_TRUE(answer.payload.empty());
}
TEST_F(RuleResponder, AnAtomicThatIsNotAlignedIsInvalid) {
  Pkt p = write(8);
  p.opcode = fetch_add;
  p.payload.clear();
  p.va += 4;
  p.swap_or_add = 1;
  expect_fatal(p, 0x61, "fetch and add");
  EXPECT_TRUE(untouched());
}

// ---- [8] execution

TEST_F(RuleResponder, ASendLargerThanItsReceiveFailsOnBothSides) {
  live.queue->post_receive({});
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(live.answer({.opcode = i == 0 ? send_first + 0u : send_middle + 0u,
                           .psn = live.at(i),
                           .payload = pattern(kPmtu, i)})
                  .syndrome,
              0x1fu);
  }
  const Pkt nak = live.answer({.opcode = send_last, .psn = live.at(4), .payload = pattern(1, 1)});
  EXPECT_EQ(nak.syndrome, 0x61u);
  EXPECT_EQ(nak.psn, live.at(4));
  auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_length) << "as ConnectX says it";
  event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  EXPECT_TRUE(live.failed());
}
TEST_F(RuleResponder, AReceiveWithABadKeyFailsLocallyAndAsARemoteOperationError) {
  Live other;
  other.queue->post_receive({{address_of(inbox.data()), 64, 0x4711}});
  const Pkt nak = other.answer({.opcode = send_only, .psn = other.at(0), .payload = pattern(8, 1)});
  EXPECT_EQ(nak.syndrome, 0x63u);
  const auto event = other.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::local_protection);
}
TEST_F(RuleResponder, InvalidateRevokesTheKeyAndNamesItInTheCompletion) {
  const Pkt send{.opcode = send_only_inval, .psn = live.at(0), .imm = key, .payload = pattern(8, 1)};
  EXPECT_EQ(live.answer(send).syndrome, 0x1fu);
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send_inval);
  EXPECT_EQ(event->imm, key);
  live.queue->post_receive({});
  expect_fatal(write(8, 1), 0x62, "the key is gone");
}

struct NotToInvalidate {
  const char* name;
  std::function<std::uint32_t(Live&, std::uint32_t key)> make;  // of a key that is fine
};
class RuleInvalidate : public RuleResponder, public ::testing::WithParamInterface<NotToInvalidate> {};
INSTANTIATE_TEST_SUITE_P(
    Of, RuleInvalidate,
    ::testing::Values(
        NotToInvalidate{"unknown", [](Live&, std::uint32_t key) { return key ^ 0x5500; }},
        NotToInvalidate{"another_variant", [](Live&, std::uint32_t key) { return key ^ 1; }},
        NotToInvalidate{"other_domain",
                        [](Live& live, std::uint32_t) {
                          static std::array<std::byte, 8> bytes;
                          return live.reg(bytes.data(), bytes.size(), 0xf, live.engine->alloc_pd());
                        }},
        NotToInvalidate{"not_for_peers",
                        [](Live& live, std::uint32_t) {
                          static std::array<std::byte, 8> bytes;
                          return live.reg(bytes.data(), bytes.size(), STRAIT_NIC_LOCAL_WRITE);
                        }},
        NotToInvalidate{"window_of_type_1",
                        [](Live& live, std::uint32_t) { return live.engine->alloc_window(live.pd, 1).value(); }},
        NotToInvalidate{"window_that_is_not_bound",
                        [](Live& live, std::uint32_t) { return live.engine->alloc_window(live.pd, 2).value(); }},
        NotToInvalidate{"alias",
                        [](Live& live, std::uint32_t) {
                          static std::array<std::byte, 8> bytes;
                          return live.engine
                              ->add_alias({.of = live.reg(bytes.data(), bytes.size()),
                                           .pd = live.pd,
                                           .access = 0xf,
                                           .inner_address = address_of(bytes.data()),
                                           .length_bytes = 8})
                              .value();
                        }}),
    [](const auto& each) { return std::string(each.param.name); });

// As rdma_rxe does it: no NAK, but the receive and then the queue pair fail.
TEST_P(RuleInvalidate, OfAKeyThatCannotBeIsAcknowledgedAndFailsTheQueuePair) {
  const std::uint32_t bad = GetParam().make(live, key);
  live.queue->post_receive({});
  EXPECT_EQ(live.answer({.opcode = send_first, .psn = live.at(0), .payload = pattern(kPmtu, 1)}).syndrome, 0x1fu);
  const Pkt ack = live.answer({.opcode = send_last_inval, .psn = live.at(1), .imm = bad, .payload = pattern(8, 2)});
  EXPECT_EQ(ack.opcode, ack_op);
  EXPECT_EQ(ack.syndrome, 0x1fu);
  EXPECT_EQ(ack.psn, live.at(1));
  EXPECT_TRUE(live.failed());
  auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_error);
  EXPECT_EQ(event->syndrome, m::Syndrome::remote_invalid_request);
  EXPECT_EQ(event->counter, 0u);
  ASSERT_TRUE(event = live.queue->poll());
  EXPECT_EQ(event->syndrome, m::Syndrome::flushed);
  EXPECT_FALSE(live.queue->poll());
  EXPECT_TRUE(live.feed(write(4, 2)).empty()) << "a failed queue pair answers nobody";
  EXPECT_TRUE(untouched());
}

TEST_F(RuleResponder, SolicitedAndImmediateArriveWithTheLastPacket) {
  EXPECT_EQ(live.answer({.opcode = send_first, .psn = live.at(0), .payload = pattern(kPmtu, 1)}).syndrome, 0x1fu);
  EXPECT_FALSE(live.queue->poll());
  live.answer(
      {.opcode = send_last_imm, .psn = live.at(1), .solicited = true, .imm = 0xa1b2c3d4, .payload = pattern(3, 2)});
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->opcode, m::CqeOpcode::responder_send_imm);
  EXPECT_EQ(event->bytes, kPmtu + 3);
  EXPECT_EQ(event->imm, 0xa1b2c3d4u);
  EXPECT_EQ(std::memcmp(inbox.data() + kPmtu, pattern(3, 2).data(), 3), 0);
  EXPECT_EQ(inbox[kPmtu + 3], std::byte{0}) << "the pad stays on the wire";
}
TEST_F(RuleResponder, AtomicsReturnWhatWasThere) {
  alignas(8) std::uint64_t word = 40;
  const std::uint32_t word_key = live.reg(&word, 8);
  Pkt p{.opcode = fetch_add, .psn = live.at(0), .va = address_of(&word), .rkey = word_key, .swap_or_add = 2};
  Pkt answer = live.answer(p);
  EXPECT_EQ(answer.opcode, atomic_ack);
  EXPECT_EQ(answer.psn, live.at(0));
  EXPECT_EQ(answer.original, 40u);
  EXPECT_EQ(word, 42u);
  p = {.opcode = compare_swap, .psn = live.at(1), .va = p.va, .rkey = word_key, .swap_or_add = 7, .compare = 41};
  EXPECT_EQ(live.answer(p).original, 42u);
  EXPECT_EQ(word, 42u);
  p.psn = live.at(2);
  p.compare = 42;
  EXPECT_EQ(live.answer(p).original, 42u);
  EXPECT_EQ(word, 7u);
}

class RuleRead : public RuleResponder, public ::testing::WithParamInterface<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Of, RuleRead,
                         ::testing::Values(0u, 1u, 3u, 4u, kPmtu - 1, kPmtu, kPmtu + 1, 2 * kPmtu, 3 * kPmtu - 2,
                                           4 * kPmtu),
                         ::testing::PrintToStringParamName());

TEST_P(RuleRead, ResponsesHaveTheRightShape) {
  const std::uint32_t n = GetParam();
  target = pattern(target.size(), 4);
  const std::uint32_t target_key = live.reg(target.data(), target.size());
  const auto responses = live.feed({.opcode = read_request,
                                    .psn = live.at(0),
                                    .va = address_of(target.data()) + 1,
                                    .rkey = target_key,
                                    .length = n});
  const std::uint32_t count = n == 0 ? 1 : (n + kPmtu - 1) / kPmtu;
  ASSERT_EQ(responses.size(), count);
  std::vector<std::byte> got;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Pkt& p = responses[i];
    const unsigned expected = count == 1 ? read_only : i == 0 ? read_first : i + 1 == count ? read_last : read_middle;
    EXPECT_EQ(p.opcode, expected) << i;
    EXPECT_EQ(p.psn, live.at(i));
    EXPECT_EQ(p.payload.size(), i + 1 == count ? n - i * kPmtu : kPmtu);
    EXPECT_EQ(p.pad, static_cast<int>(-p.payload.size() & 3));
    if (p.opcode != read_middle) {
      EXPECT_EQ(p.syndrome, 0x1fu);
      EXPECT_EQ(p.msn, 1u);
    }
    got.insert(got.end(), p.payload.begin(), p.payload.end());
  }
  ASSERT_EQ(got.size(), n);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), target.begin() + 1));
}

TEST_F(RuleResponder, AKeyRevokedHalfWayEndsTheResponseWithANak) {
  std::vector<std::byte> large(200 * kPmtu);
  const std::uint32_t large_key = live.reg(large.data(), large.size());
  live.inject({.opcode = read_request,
               .psn = live.at(0),
               .va = address_of(large.data()),
               .rkey = large_key,
               .length = 200 * kPmtu});
  live.engine->drive(0);
  const auto before = live.sent();
  ASSERT_GT(before.size(), 0u);
  ASSERT_LT(before.size(), 200u);
  ASSERT_TRUE(live.engine->deregister_memory(large_key));
  live.drive();
  const auto after = live.sent();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].opcode, ack_op);
  EXPECT_EQ(after[0].syndrome, 0x62u);
  EXPECT_EQ(after[0].psn, live.at(static_cast<std::uint32_t>(before.size())));
  EXPECT_TRUE(live.failed());
}

TEST_F(RuleResponder, AKeyRevokedHalfWayEndsAWriteWithANak) {
  Pkt p = write(kPmtu);
  p.opcode = write_first;
  p.length = 2 * kPmtu;
  EXPECT_EQ(live.answer(p).syndrome, 0x1fu);
  ASSERT_TRUE(live.engine->deregister_memory(key));
  const Pkt nak = live.answer({.opcode = write_last, .psn = live.at(1), .payload = pattern(kPmtu, 2)});
  EXPECT_EQ(nak.syndrome, 0x62u);
  EXPECT_EQ(target[kPmtu], std::byte{0});
}

}  // namespace
}  // namespace strait::soft::nic::testing
