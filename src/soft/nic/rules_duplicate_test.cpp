// SPDX-License-Identifier: Apache-2.0
// The rules of RoCEv2, one by one: duplicates (docs/wire-roce.md). What was executed is never executed again.
#include "soft/nic/rules_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

class RuleDuplicate : public ::testing::Test {
 protected:
  [[nodiscard]] Pkt write(std::uint32_t step, unsigned seed) const {
    return {.opcode = write_only,
            .psn = live.at(step),
            .va = address_of(memory.data()),
            .rkey = key,
            .length = 8,
            .payload = pattern(8, seed)};
  }
  [[nodiscard]] Pkt read(std::uint32_t step, std::uint32_t offset, std::uint32_t n) const {
    return {.opcode = read_request,
            .psn = live.at(step),
            .va = address_of(memory.data()) + offset,
            .rkey = key,
            .length = n};
  }
  Live live;
  alignas(8) std::vector<std::byte> memory = pattern(8 * kPmtu, 5);
  std::uint32_t key = live.reg(memory.data(), memory.size());
};

TEST_F(RuleDuplicate, AWriteIsAcknowledgedAgainAndNotExecuted) {
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(live.answer(write(i, i)).syndrome, 0x1fu);
  for (const std::uint32_t step : {0u, 2u, 3u}) {
    const Pkt again = live.answer(write(step, 77));
    EXPECT_EQ(again.syndrome, 0x1fu);
    EXPECT_EQ(again.psn, live.at(3)) << "the last one in order, whatever number the duplicate had";
    EXPECT_EQ(again.msn, 4u);
  }
  EXPECT_EQ(std::memcmp(memory.data(), pattern(8, 3).data(), 8), 0);
  EXPECT_EQ(live.counts().duplicates, 3u);
}

TEST_F(RuleDuplicate, ASendTakesNoSecondReceive) {
  std::vector<std::byte> inbox(64);
  const std::uint32_t inbox_key = live.reg(inbox.data(), 64);
  live.queue->post_receive({{address_of(inbox.data()), 32, inbox_key}});
  live.queue->post_receive({{address_of(inbox.data()) + 32, 32, inbox_key}});
  const Pkt send{.opcode = send_only, .psn = live.at(0), .payload = pattern(8, 1)};
  live.answer(send);
  const Pkt again = live.answer(send);
  EXPECT_EQ(again.psn, live.at(0));
  EXPECT_EQ(again.msn, 1u);
  EXPECT_TRUE(live.queue->poll());
  EXPECT_FALSE(live.queue->poll());
}

TEST_F(RuleDuplicate, InTheMiddleOfAMessageItDoesNotDisturbIt) {
  Pkt first = write(0, 1);
  first.opcode = write_first;
  first.payload = pattern(kPmtu, 1);
  first.length = 2 * kPmtu;
  live.answer(first);
  const Pkt again = live.answer(first);
  EXPECT_EQ(again.psn, live.at(0));
  EXPECT_EQ(again.msn, 0u);
  EXPECT_EQ(live.answer({.opcode = write_last, .psn = live.at(1), .payload = pattern(kPmtu, 2)}).msn, 1u);
  EXPECT_EQ(std::memcmp(memory.data() + kPmtu, pattern(kPmtu, 2).data(), kPmtu), 0);
}

TEST_F(RuleDuplicate, AReadIsReadFromMemoryAgain) {
  ASSERT_EQ(live.feed(read(0, 0, 3 * kPmtu - 5)).size(), 3u);
  ASSERT_EQ(live.feed(write(3, 9)).size(), 1u);
  const auto again = live.feed(read(0, 0, 3 * kPmtu - 5));
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].opcode, read_first);
  EXPECT_EQ(again[0].psn, live.at(0));
  EXPECT_EQ(std::memcmp(again[0].payload.data(), pattern(8, 9).data(), 8), 0) << "as it is now";
  EXPECT_EQ(again[2].opcode, read_last);
  EXPECT_EQ(again[2].payload.size(), kPmtu - 5);
  EXPECT_EQ(live.counts().reads_replayed, 1u);
  EXPECT_EQ(live.answer(write(4, 1)).syndrome, 0x1fu) << "the expected number did not move";
}

TEST_F(RuleDuplicate, ARestartInTheMiddleIsAnsweredFromThere) {
  ASSERT_EQ(live.feed(read(0, 0, 4 * kPmtu)).size(), 4u);
  const auto again = live.feed(read(2, 2 * kPmtu, 2 * kPmtu));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].opcode, read_first);
  EXPECT_EQ(again[0].psn, live.at(2));
  EXPECT_EQ(std::memcmp(again[0].payload.data(), memory.data() + 2 * kPmtu, kPmtu), 0);
  EXPECT_EQ(again[1].opcode, read_last);
  const auto last = live.feed(read(3, 3 * kPmtu, kPmtu));
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].opcode, read_only);
  EXPECT_EQ(last[0].psn, live.at(3));
}

TEST_F(RuleDuplicate, APartOfARestartIsAllowedToo) {
  ASSERT_EQ(live.feed(read(0, 0, 4 * kPmtu)).size(), 4u);
  const auto again = live.feed(read(1, kPmtu, kPmtu + 4));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[1].psn, live.at(2));
  EXPECT_EQ(again[1].payload.size(), 4u);
}

TEST_F(RuleDuplicate, AReadOutsideWhatWasGrantedIsDropped) {
  ASSERT_EQ(live.feed(read(0, kPmtu, 2 * kPmtu)).size(), 2u);
  std::uint64_t dropped = 0;
  const auto expect_dropped = [&](const Pkt& p, const char* what) {
    EXPECT_TRUE(live.feed(p).empty()) << what;
    EXPECT_EQ(live.drops(roce::Drop::stale_psn), ++dropped) << what;
    EXPECT_FALSE(live.failed()) << what;
  };
  expect_dropped(read(0, 0, 2 * kPmtu), "before it");
  expect_dropped(read(0, kPmtu, 3 * kPmtu), "longer");
  expect_dropped(read(1, 2 * kPmtu, 2 * kPmtu), "its rest, and more");
  expect_dropped(read(1, kPmtu, 2 * kPmtu), "more packets than numbers are left");
  Pkt other_key = read(0, kPmtu, 2 * kPmtu);
  other_key.rkey = live.reg(memory.data(), memory.size());
  expect_dropped(other_key, "another key");
  expect_dropped(read(0x900000, kPmtu, 2 * kPmtu), "from long ago");
  Pkt as_atomic = read(0, kPmtu, 8);
  as_atomic.opcode = fetch_add;
  expect_dropped(as_atomic, "it was no atomic");
}

TEST_F(RuleDuplicate, AnAtomicIsExecutedOnce) {
  Pkt add = read(0, 0, 8);
  add.opcode = fetch_add;
  add.swap_or_add = 5;
  std::uint64_t before = 0;
  std::memcpy(&before, memory.data(), 8);
  EXPECT_EQ(live.answer(add).original, before);
  EXPECT_EQ(live.answer(write(1, 3)).syndrome, 0x1fu);
  for (int i = 0; i < 3; ++i) {
    const Pkt again = live.answer(add);
    EXPECT_EQ(again.opcode, atomic_ack);
    EXPECT_EQ(again.psn, live.at(0));
    EXPECT_EQ(again.original, before) << "what it answered the first time";
  }
  EXPECT_EQ(std::memcmp(memory.data(), pattern(8, 3).data(), 8), 0) << "nothing was added";
  EXPECT_EQ(live.engine->counts().atomics, 1u);
  EXPECT_EQ(live.counts().atomics_replayed, 3u);
}

TEST_F(RuleDuplicate, AnAtomicThatIsNotRememberedIsDropped) {
  LiveConfig config;
  config.max_reads_in = 2;
  Live small(config);
  alignas(8) std::uint64_t word = 0;
  const std::uint32_t word_key = small.reg(&word, 8);
  Pkt add{.opcode = fetch_add, .psn = small.at(0), .va = address_of(&word), .rkey = word_key, .swap_or_add = 1};
  for (std::uint32_t i = 0; i < 3; ++i) {
    add.psn = small.at(i);
    EXPECT_EQ(small.answer(add).original, i);
  }
  add.psn = small.at(0);
  EXPECT_TRUE(small.feed(add).empty()) << "the oldest of three was overwritten";
  EXPECT_EQ(small.drops(roce::Drop::stale_psn), 1u);
  add.psn = small.at(1);
  EXPECT_EQ(small.answer(add).original, 1u);
  EXPECT_EQ(word, 3u);
}

// Who asks again and again while the answer waits gets it once: a small packet must not be worth megabytes.
TEST_F(RuleDuplicate, ImpatienceIsNotMultiplied) {
  std::vector<std::byte> large(400 * kPmtu);
  const std::uint32_t large_key = live.reg(large.data(), large.size());
  const Pkt ask{.opcode = read_request,
                .psn = live.at(0),
                .va = address_of(large.data()),
                .rkey = large_key,
                .length = 400 * kPmtu};
  Pkt rest = ask;
  rest.psn = live.at(200);
  rest.va += 200 * kPmtu;
  rest.length -= 200 * kPmtu;
  live.inject(ask);
  for (int i = 0; i < 20; ++i) {
    live.inject(ask);
    live.inject(rest);
  }
  live.drive(20);
  EXPECT_EQ(live.sent().size(), 400u);
  for (int i = 0; i < 20; ++i) live.inject(rest);
  live.drive(20);
  EXPECT_EQ(live.sent().size(), 200u);
}

// The peer takes responses in order only: what is sent before the one that it misses is sent in vain.
TEST_F(RuleDuplicate, IsAnsweredBeforeWhatCameAfterIt) {
  std::vector<std::byte> large(200 * kPmtu);
  const std::uint32_t large_key = live.reg(large.data(), large.size());
  Pkt ask{.opcode = read_request,
          .psn = live.at(0),
          .va = address_of(large.data()),
          .rkey = large_key,
          .length = 200 * kPmtu};
  Pkt after = ask;
  after.psn = live.at(200);
  live.inject(ask);
  live.drive(20);
  EXPECT_EQ(live.sent().size(), 200u);
  live.inject(after);
  live.inject(ask);
  live.drive(20);
  const auto sent = live.sent();
  ASSERT_EQ(sent.size(), 400u);
  for (std::uint32_t i = 0; i < 400; ++i) ASSERT_EQ(sent[i].psn, live.at(i));
}

TEST_F(RuleDuplicate, WhoAsksForMoreThanAgreedIsNotRemembered) {
  std::vector<std::byte> large(4000 * kPmtu);
  const std::uint32_t large_key = live.reg(large.data(), large.size());
  for (std::uint32_t i = 0; i < 250; ++i) {
    live.inject({.opcode = read_request,
                 .psn = live.at(i * 4000),
                 .va = address_of(large.data()),
                 .rkey = large_key,
                 .length = 4000 * kPmtu});
  }
  live.engine->drive(0);
  EXPECT_LE(live.state().answers.size(), 128u + 1);
  EXPECT_GT(live.drops(roce::Drop::no_room), 0u);
  EXPECT_FALSE(live.failed());
}

// The last acknowledgement is not lost with the queue pair that owes it.
TEST_F(RuleDuplicate, AQueuePairThatIsDestroyedSaysWhatItOwes) {
  auto& out = live.port->on_the_way();
  out.resize(1024);  // the port is full
  live.inject(write(0, 1));
  live.drive();
  ASSERT_EQ(out.size(), 1024u);
  out.clear();
  live.queue.reset();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(live.sent()[0].psn, live.at(0));
}

// ---- the requester

TEST_F(RuleDuplicate, ResponsesThatWereUsedAreIgnored) {
  live.queue->post({.opcode = m::Opcode::rdma_read,
                    .raddr = 0x1000,
                    .rkey = 1,
                    .data = {{address_of(memory.data()), 2 * kPmtu, key}}});
  live.sent();
  const Pkt first{.opcode = read_first, .psn = live.ours(0), .payload = pattern(kPmtu, 1)};
  const Pkt last{.opcode = read_last, .psn = live.ours(1), .payload = pattern(kPmtu, 2)};
  live.feed(first);
  Pkt changed = first;
  changed.payload = pattern(kPmtu, 9);
  live.feed(changed);
  live.feed(last);
  ASSERT_TRUE(live.queue->poll());
  live.feed(last);
  live.feed(first);
  EXPECT_FALSE(live.queue->poll());
  EXPECT_EQ(live.drops(roce::Drop::unexpected_response), 3u);
  EXPECT_EQ(std::memcmp(memory.data(), pattern(kPmtu, 1).data(), kPmtu), 0);
}

TEST_F(RuleDuplicate, AResponseAheadOfTheExpectedOneIsDroppedAndAskedForAgain) {
  live.queue->post({.opcode = m::Opcode::rdma_read,
                    .raddr = 0x1000,
                    .rkey = 1,
                    .data = {{address_of(memory.data()), 3 * kPmtu, key}}});
  live.sent();
  const auto before = memory;
  live.feed({.opcode = read_first, .psn = live.ours(0), .payload = pattern(kPmtu, 1)});
  const auto again = live.feed({.opcode = read_last, .psn = live.ours(2), .payload = pattern(kPmtu, 3)});
  EXPECT_TRUE(std::equal(memory.begin() + kPmtu, memory.end(), before.begin() + kPmtu));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].opcode, read_request);
  EXPECT_EQ(again[0].psn, live.ours(1));
  EXPECT_EQ(again[0].va, 0x1000u + kPmtu);
  EXPECT_EQ(again[0].length, 2 * kPmtu);
  // Both forms of an answer to a restart are fine: as a new message, or as the rest of the old one.
  live.feed({.opcode = read_first, .psn = live.ours(1), .payload = pattern(kPmtu, 2)});
  live.feed({.opcode = read_last, .psn = live.ours(2), .payload = pattern(kPmtu, 3)});
  ASSERT_TRUE(live.queue->poll());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(std::memcmp(memory.data() + i * kPmtu, pattern(kPmtu, static_cast<unsigned>(i + 1)).data(), kPmtu), 0);
  }
}

TEST_F(RuleDuplicate, ARestartMayBeAnsweredWithMiddleAndLast) {
  live.queue->post({.opcode = m::Opcode::rdma_read,
                    .raddr = 0x1000,
                    .rkey = 1,
                    .data = {{address_of(memory.data()), 3 * kPmtu, key}}});
  live.sent();
  live.feed({.opcode = read_first, .psn = live.ours(0), .payload = pattern(kPmtu, 1)});
  EXPECT_TRUE(live.drive_until([&] { return !live.port->on_the_way().empty(); }));
  live.feed({.opcode = read_middle, .psn = live.ours(1), .payload = pattern(kPmtu, 2)});
  live.feed({.opcode = read_last, .psn = live.ours(2), .payload = pattern(kPmtu, 3)});
  const auto event = live.queue->poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->syndrome, m::Syndrome::none);
}

}  // namespace
}  // namespace strait::soft::nic::testing
