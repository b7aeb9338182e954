// SPDX-License-Identifier: Apache-2.0
// Completions: which entries are valid, what they complete, how errors and waits end.
#include <gtest/gtest.h>

#include "requests.hpp"

namespace {

using namespace paper;
using namespace strait::device;

// ---- 8: the phase rule
// -------------------------------------------------------------------------------------------------

TEST(Invariant08_PhaseAcceptsExactlyWhatWasWritten, EverySizeOverManyLaps) {
  for (std::uint32_t bytes : {64u, 128u})
    for (std::uint32_t log = 0; log <= 7; ++log)
      for (std::uint64_t first :
           {std::uint64_t{0}, (std::uint64_t{1} << 24) - (2u << log), (std::uint64_t{1} << 32) - (1u << log)}) {
        CqRig cq(log, bytes, first);
        ASSERT_TRUE(cq.opened);
        // A ring that starts in an odd lap has seen the even one: its entries look written, but stale.
        if ((first >> log & 1) != 0)
          for (std::size_t i = 0; i < 1u << log; ++i) cq.memory.data()[(i + 1) * bytes - 1] = 0x00;
        Random random{log + first + bytes};
        Completion c{};
        std::uint64_t taken = first;
        while (taken < first + (5u << log)) {
          const std::uint64_t room = (std::uint64_t{1} << log) - (cq.produced - taken);
          for (std::uint32_t n = random.below(static_cast<std::uint32_t>(room) + 1); n > 0; --n)
            cq.write(requester_cqe(7, cq.produced, mlx5::Opcode::rdma_write));
          for (std::uint32_t n = random.below(4); n > 0 && taken < cq.produced; --n) {
            ASSERT_EQ(poll(cq.ring, c), Polled::done);
            ASSERT_EQ(c.wqe_counter, taken & 0xffff);
            ++taken;
            ASSERT_EQ(cq.consumer(), taken & 0xffffff);
          }
          if (taken == cq.produced) {
            ASSERT_EQ(poll(cq.ring, c), Polled::empty) << "a stale entry was accepted";
          }
        }
        ASSERT_TRUE(cq.memory.intact());
      }
}

TEST(Invariant08_PhaseAcceptsExactlyWhatWasWritten, FreshMemoryOfEitherKindIsEmpty) {
  CqRig cq(3, 64);
  Completion c{};
  EXPECT_EQ(poll(cq.ring, c), Polled::empty);
  std::memset(cq.memory.data(), 0xff, cq.memory.size());  // as device libraries initialise
  EXPECT_EQ(poll(cq.ring, c), Polled::empty);
  EXPECT_EQ(cq.consumer(), 0u);
}

TEST(Invariant08_PhaseAcceptsExactlyWhatWasWritten, BothSizesAndCollapsedAgree) {
  // First indices chosen so that 16-bit counters turn over in the middle.
  for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{65536 - 60}, (std::uint64_t{1} << 32) - 60}) {
    SendRig a(5, first), b(5, first), c(5, first);
    CqRig small(3, 64), large(3, 128), collapsed(0, 64);
    Random random{first + 8};
    std::vector<std::uint64_t> pending;
    for (int round = 0; round < 400; ++round) {
      for (std::uint32_t n = 1 + random.below(4); n > 0; --n) {
        const Request r = make_request(random, static_cast<Kind>(random.below(17)), random.below(8), random.below(120));
        const Pending p = post<kOne>(a.ring, r);
        ASSERT_EQ(post<kOne>(b.ring, r).posted, p.posted);
        ASSERT_EQ(post<kMany>(c.ring, r).posted, p.posted);
        if (p.ok()) pending.push_back(p.start);
      }
      ring_doorbell<kOne>(a.ring);
      ring_doorbell<kOne>(b.ring);
      ring_doorbell<kMany>(c.ring);
      if (pending.empty()) continue;
      const std::uint32_t upto =
          random.below(static_cast<std::uint32_t>(pending.size()));  // the ones before: unsignaled
      const mlx5::Cqe cqe = requester_cqe(0xa1b2, pending[upto], mlx5::Opcode::rdma_write);
      pending.erase(pending.begin(), pending.begin() + upto + 1);
      small.write(cqe);
      large.write(cqe);
      collapsed.write_collapsed(cqe);
      Completion x{}, y{}, z{};
      ASSERT_EQ(poll(small.ring, x), Polled::done);
      ASSERT_EQ(poll(large.ring, y), Polled::done);
      ASSERT_TRUE(complete_up_to<kOne>(a.ring, x.wqe_counter).known);
      ASSERT_TRUE(complete_up_to<kOne>(b.ring, y.wqe_counter).known);
      ASSERT_EQ(poll_collapsed<kMany>(c.ring, collapsed.ring, z), Polled::done);
      ASSERT_EQ(a.ring.slots.completed, b.ring.slots.completed);
      ASSERT_EQ(a.ring.slots.completed, c.ring.slots.completed);
      ASSERT_EQ(x.byte_count, y.byte_count);
      ASSERT_EQ(x.user_index, y.user_index);
      ASSERT_EQ(poll_collapsed<kMany>(c.ring, collapsed.ring, z), Polled::empty) << "the same CQE completed twice";
    }
    ASSERT_GT(a.ring.slots.completed, first + 500);
  }
}

// ---- 9: cumulative
// ---------------------------------------------------------------------------------------------------

TEST(Invariant09_CompletionIsCumulative, EverythingEarlierOnThatQueueAndNothingElsewhere) {
  SendRig one(5, 0, 0x11), two(5, 0, 0x22);
  CqRig cq(4, 64);
  std::vector<std::uint64_t> starts;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::vector<std::uint8_t> payload(40 + 20 * i % 60, 1);
    const Pending p = post_send_inline<kOne>(one.ring, payload.data(), payload.size(), 0);
    ASSERT_TRUE(p.ok());
    starts.push_back(p.start);
    ASSERT_TRUE(post_nop<kOne>(two.ring, 0).ok());
  }
  ring_doorbell<kOne>(one.ring);
  ring_doorbell<kOne>(two.ring);
  cq.write(requester_cqe(0x11, starts[5], mlx5::Opcode::send));
  Completion c{};
  ASSERT_EQ(poll(cq.ring, c), Polled::done);
  ASSERT_EQ(c.qpn, 0x11u);
  const Finished f = complete_up_to<kOne>(one.ring, c.wqe_counter);
  EXPECT_TRUE(f.known);
  EXPECT_EQ(f.start, starts[5]);
  EXPECT_EQ(f.end, starts[6]);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(is_done<kOne>(one.ring, starts[i]), i <= 5) << i;
  EXPECT_EQ(two.ring.slots.completed, 0u);
}

template <Sharing S>
void refuse_unknown_counters() {
  SendRig rig(4, 65530);
  const std::vector<std::uint8_t> payload(60, 0);
  ASSERT_TRUE(post_send_inline<S>(rig.ring, payload.data(), 60, 0).ok());  // 65530 and 65531
  ASSERT_TRUE(post_nop<S>(rig.ring, 0).ok());
  EXPECT_FALSE(complete_up_to<S>(rig.ring, 65530).known) << "not rung yet";
  ring_doorbell<S>(rig.ring);
  EXPECT_FALSE(complete_up_to<S>(rig.ring, 65529).known) << "before the ring's first";
  EXPECT_FALSE(complete_up_to<S>(rig.ring, 65531).known) << "in the middle of a WQE";
  EXPECT_FALSE(complete_up_to<S>(rig.ring, 65533).known) << "beyond what was rung";
  EXPECT_EQ(rig.ring.slots.completed, 65530u);
  EXPECT_TRUE(complete_up_to<S>(rig.ring, 65532).known);
  EXPECT_FALSE(complete_up_to<S>(rig.ring, 65532).known) << "twice";
  EXPECT_EQ(rig.ring.slots.completed, 65533u);
}

TEST(Invariant09_CompletionIsCumulative, ACounterThatNobodyPostedChangesNothing) {
  refuse_unknown_counters<kOne>();
  refuse_unknown_counters<kMany>();
}

// A thread that was stopped between reading `completed` and reading a counter, while the ring turned many times.
TEST(Invariant09_CompletionIsCumulative, ALateLookCompletesNothingWrong) {
  for (std::uint64_t lag :
       {std::uint64_t{16}, std::uint64_t{40000}, std::uint64_t{65536}, std::uint64_t{65536 * 3 + 5}}) {
    SendRig rig(4, 1000);
    while (rig.ring.slots.reserved < 1000 + lag) {
      ASSERT_TRUE(post_nop<kMany>(rig.ring, 0).ok());
      ring_doorbell<kMany>(rig.ring);
      rig.ring.slots.completed = rig.ring.slots.reserved;
    }
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(post_nop<kMany>(rig.ring, 0).ok());
    ring_doorbell<kMany>(rig.ring);
    const std::uint64_t in_flight = rig.ring.slots.completed;
    for (std::uint64_t i = 0; i < 10; ++i) {
      (void)complete_since<kMany>(rig.ring, 1000, static_cast<std::uint16_t>(in_flight + i));
      ASSERT_LE(rig.ring.slots.completed, in_flight + i + 1) << "lag " << lag;
    }
  }
}

// The same, stopped after reading a counter that was not new: 65536 blocks later it is that of a WQE in flight.
TEST(Invariant09_CompletionIsCumulative, ALateLookAtAnOldCounterCompletesNothing) {
  SendRig rig(4, 1000);
  while (rig.ring.slots.reserved < 999 + 65536) {
    ASSERT_TRUE(post_nop<kMany>(rig.ring, 0).ok());
    ring_doorbell<kMany>(rig.ring);
    rig.ring.slots.completed = rig.ring.slots.reserved;
  }
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(post_nop<kMany>(rig.ring, 0).ok());
  ring_doorbell<kMany>(rig.ring);
  const std::uint64_t in_flight = rig.ring.slots.completed;
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_FALSE(complete_since<kMany>(rig.ring, 1000, static_cast<std::uint16_t>(999 - i)).known);
    ASSERT_EQ(rig.ring.slots.completed, in_flight);
  }
}

// ---- 10: errors
// --------------------------------------------------------------------------------------------------------

TEST(Invariant10_ErrorsAreDistinctAndInOrder, EverySyndromeOnceThenFlushes) {
  for (int s : {0x01, 0x02, 0x04, 0x06, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x22, 0x77}) {
    for (std::uint32_t bytes : {64u, 128u}) {
      SendRig rig(4);
      CqRig cq(3, bytes);
      for (int i = 0; i < 6; ++i) ASSERT_TRUE(post_nop<kOne>(rig.ring, kSignaled).ok());
      ring_doorbell<kOne>(rig.ring);
      cq.write(requester_cqe(0xa1b2, 1, mlx5::Opcode::nop));
      cq.write(error_cqe(0xa1b2, 2, mlx5::Opcode::nop, static_cast<mlx5::Syndrome>(s), 0x88));
      for (std::uint64_t i = 3; i < 6; ++i)
        cq.write(error_cqe(0xa1b2, i, mlx5::Opcode::nop, mlx5::Syndrome::flushed, 0));
      Completion c{};
      ASSERT_EQ(poll(cq.ring, c), Polled::done);
      EXPECT_EQ(c.syndrome, mlx5::Syndrome::none);
      ASSERT_EQ(poll(cq.ring, c), Polled::error);
      EXPECT_EQ(static_cast<int>(c.syndrome), s);
      EXPECT_EQ(c.vendor_syndrome, 0x88);
      EXPECT_EQ(complete_up_to<kOne>(rig.ring, c.wqe_counter).start, 2u);
      for (std::uint64_t i = 3; i < 6; ++i) {
        ASSERT_EQ(poll(cq.ring, c), Polled::error);
        EXPECT_EQ(c.syndrome, mlx5::Syndrome::flushed);
        EXPECT_EQ(complete_up_to<kOne>(rig.ring, c.wqe_counter).start, i);
      }
      ASSERT_EQ(poll(cq.ring, c), Polled::empty) << "an error is delivered once, and then there is nothing";
    }
  }
}

TEST(Invariant10_ErrorsAreDistinctAndInOrder, SendInvalidateIsNotAnError) {
  CqRig cq(2, 64);
  mlx5::Cqe cqe{};
  cqe.op_own = mlx5::make_op_own(mlx5::CqeOpcode::responder_send_inval, 0);
  cqe.imm_inval_pkey = sw::be32{0x55667788};
  cq.write(cqe);
  Completion c{};
  EXPECT_EQ(poll(cq.ring, c), Polled::done);
  EXPECT_EQ(c.imm.value(), 0x55667788u);
}

TEST(Invariant10_ErrorsAreDistinctAndInOrder, PayloadInsideTheCqeIsNotSilentlyLost) {
  CqRig cq(2, 64);
  mlx5::Cqe cqe = requester_cqe(1, 0, mlx5::Opcode::rdma_read, 8);
  cqe.op_own = mlx5::make_op_own(mlx5::CqeOpcode::requester, 0, mlx5::kCqeFormatInline32);
  cq.write(cqe);
  Completion c{};
  EXPECT_EQ(poll(cq.ring, c), Polled::error);
  EXPECT_EQ(c.format, mlx5::kCqeFormatInline32);
}

TEST(Invariant10_ErrorsAreDistinctAndInOrder, CollapsedErrorsStay) {
  SendRig rig(4);
  CqRig cq(0, 64);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post_nop<kMany>(rig.ring, kSignaled).ok());
  ring_doorbell<kMany>(rig.ring);
  cq.write_collapsed(error_cqe(0xa1b2, 1, mlx5::Opcode::nop, mlx5::Syndrome::remote_access, 0x89));
  Completion c{};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(poll_collapsed<kMany>(rig.ring, cq.ring, c), Polled::error);
    EXPECT_EQ(c.syndrome, mlx5::Syndrome::remote_access);
    EXPECT_EQ(c.vendor_syndrome, 0x89);
    EXPECT_EQ(c.wqe_counter, 1);
  }
  EXPECT_EQ((wait_until_done<kMany, CompletionMode::collapsed>(rig.ring, cq.ring, 2, Deadline::after_ns(1000000), c)),
            Waited::error);
}

// ---- Waits
// ---------------------------------------------------------------------------------------------------------------

constexpr auto kNormal = CompletionMode::normal;

TEST(Waits, EndAtTheirDeadline) {
  SendRig rig(2);
  CqRig cq(2, 64);
  Completion c{};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post_nop<kOne>(rig.ring, kSignaled).ok());
  ring_doorbell<kOne>(rig.ring);
  const std::uint64_t begin = now_ns();
  const auto deadline = Deadline::after_ns(2000000);
  EXPECT_EQ((wait_until_done<kOne, kNormal>(rig.ring, cq.ring, 3, deadline, c)), Waited::timeout);
  EXPECT_GE(now_ns() - begin, 2000000u);
  EXPECT_EQ((wait_for_space<kOne, kNormal>(rig.ring, cq.ring, 1, deadline, c)), Waited::timeout);
  EXPECT_EQ(wait_for_completion(cq.ring, deadline, c), Waited::timeout);
  EXPECT_LT(now_ns() - begin, 2000000000u);
  EXPECT_FALSE(Deadline::after_ns(~std::uint64_t{0}).passed()) << "the longest wait must not wrap into the past";
}

TEST(Waits, EndWhenTheHostRaisesItsWord) {
  SendRig rig(2);
  CqRig cq(2, 64);
  Completion c{};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post_nop<kOne>(rig.ring, kSignaled).ok());
  ring_doorbell<kOne>(rig.ring);
  const std::uint32_t raised = 1;
  const auto never = Deadline::after_ns(~std::uint64_t{0});
  EXPECT_EQ((wait_until_done<kOne, kNormal>(rig.ring, cq.ring, 3, never, c, &raised)), Waited::aborted);
  EXPECT_EQ((wait_for_space<kOne, kNormal>(rig.ring, cq.ring, 1, never, c, &raised)), Waited::aborted);
  EXPECT_EQ(wait_for_completion(cq.ring, never, c, &raised), Waited::aborted);
  cq.write(requester_cqe(0xa1b2, 3, mlx5::Opcode::nop));
  EXPECT_EQ((wait_until_done<kOne, kNormal>(rig.ring, cq.ring, 3, never, c, &raised)), Waited::ok) << "it is there";
}

TEST(Waits, EndWithTheAnswer) {
  SendRig rig(2);
  CqRig cq(2, 64);
  Completion c{};
  const auto deadline = Deadline::after_ns(1000000000);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post_nop<kOne>(rig.ring, kSignaled).ok());
  ring_doorbell<kOne>(rig.ring);
  cq.write(requester_cqe(0xa1b2, 0, mlx5::Opcode::nop));
  cq.write(requester_cqe(0xa1b2, 2, mlx5::Opcode::nop));
  EXPECT_EQ((wait_for_space<kOne, kNormal>(rig.ring, cq.ring, 1, deadline, c)), Waited::ok);
  EXPECT_EQ(free_blocks<kOne>(rig.ring), 1u);
  EXPECT_EQ((wait_until_done<kOne, kNormal>(rig.ring, cq.ring, 1, deadline, c)), Waited::ok);
  EXPECT_EQ(rig.ring.slots.completed, 3u);
  mlx5::Cqe foreign = requester_cqe(0x999, 3, mlx5::Opcode::nop);
  cq.write(foreign);
  EXPECT_EQ((wait_until_done<kOne, kNormal>(rig.ring, cq.ring, 3, deadline, c)), Waited::other);
  EXPECT_EQ(c.qpn, 0x999u);
  cq.write(error_cqe(0xa1b2, 3, mlx5::Opcode::nop, mlx5::Syndrome::rnr_retry_exceeded, 0));
  EXPECT_EQ((wait_until_done<kOne, kNormal>(rig.ring, cq.ring, 3, deadline, c)), Waited::error);
  EXPECT_EQ(c.syndrome, mlx5::Syndrome::rnr_retry_exceeded);
}

TEST(Refusals, CompletionRingsThatCannotBe) {
  alignas(64) static std::uint8_t memory[256];
  CompletionRing ring{};
  EXPECT_TRUE(open_completion_ring(ring, {memory, 1, 128, nullptr, 0}));
  EXPECT_FALSE(open_completion_ring(ring, {memory, 1, 96, nullptr, 0}));
  EXPECT_FALSE(open_completion_ring(ring, {memory + 4, 1, 64, nullptr, 0}));
  EXPECT_FALSE(open_completion_ring(ring, {nullptr, 1, 64, nullptr, 0}));
  EXPECT_FALSE(open_completion_ring(ring, {memory, 23, 64, nullptr, 0}));
}

}  // namespace
