// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "soft/cassini/engine_testing.hpp"

namespace strait::soft::cassini {
namespace {

using bench::CounterCommand;
using bench::Rig;
using wire::CtOp;
using wire::ReturnCode;

constexpr std::uint64_t kMost = wire::kCtSuccessMask;

struct Counting : Rig {
  using Rig::Rig;
  std::unique_ptr<bench::Queue> told = events();
  std::unique_ptr<bench::Ring> ring = queue(true, true, told->eq, 4096);
  std::unique_ptr<Counter> one = counter();
  std::unique_ptr<Counter> two = counter();

  CounterCommand on(CtOp op, Counter& counter, std::uint64_t success = 0, std::uint32_t failure = 0) {
    CounterCommand command(op);
    command.ct().set_ct(counter.ct->id);
    command.ct().set_ct_success(success);
    command.ct().set_ct_failure(failure);
    return command;
  }
  // When `watched` is at `threshold`, `acted` is counted up by `success`.
  CounterCommand when(Counter& watched, std::uint64_t threshold, CtOp op, Counter& acted, std::uint64_t success) {
    CounterCommand command = on(op, acted, success);
    command.ct().set_trig_ct(watched.ct->id);
    command.ct().set_threshold(threshold);
    command.ct().set_with_success(true);
    return command;
  }
  void run(const CounterCommand& command) {
    ring->emit(command);
    ring->ring();
    drive();
  }
};

TEST(CassiniCounter, SetGetIncrement) {
  Counting c;
  auto set = c.on(CtOp::set, *c.one, 100, 5);
  set.ct().set_with_success(true);
  c.run(set);
  EXPECT_EQ(c.one->ct->success, 100u);
  EXPECT_EQ(c.one->ct->failure, 0u) << "not marked";
  EXPECT_TRUE(c.one->stored().written());
  EXPECT_EQ(c.one->stored().success(), 100u);
  set = c.on(CtOp::set, *c.one, 7, 5);
  set.ct().set_with_failure(true);
  c.run(set);
  EXPECT_EQ(c.one->ct->success, 100u);
  EXPECT_EQ(c.one->ct->failure, 5u);

  c.one->word = 0;
  auto increment = c.on(CtOp::inc, *c.one, 11, 3);
  increment.ct().set_with_success(true);
  c.run(increment);
  EXPECT_EQ(c.one->ct->success, 111u);
  EXPECT_EQ(c.one->ct->failure, 5u);
  EXPECT_EQ(c.one->word, 0u) << "counting is not told";
  c.run(c.on(CtOp::inc, *c.one, 9, 2));
  EXPECT_EQ(c.one->ct->success, 120u);
  EXPECT_EQ(c.one->ct->failure, 7u);
  c.run(c.on(CtOp::get, *c.one));
  EXPECT_TRUE(c.one->stored().written());
  EXPECT_EQ(c.one->stored().success(), 120u);
  EXPECT_EQ(c.one->stored().failure(), 7u);
}

TEST(CassiniCounter, SuccessesGoRoundAndFailuresStop) {
  Counting c;
  c.card->count(*c.one->ct, kMost, 0);
  c.card->count(*c.one->ct, 3, 0);
  EXPECT_EQ(c.one->ct->success, 2u);
  c.card->count(*c.one->ct, 0, 100);
  c.card->count(*c.one->ct, 0, 100);
  EXPECT_EQ(c.one->ct->failure, 127u);
}

TEST(CassiniCounter, OnlyTheFirstFailureIsWrittenBack) {
  Counting c;
  c.card->count(*c.one->ct, 5, 0);
  EXPECT_EQ(c.one->word, 0u);
  c.card->count(*c.one->ct, 1, 1);
  EXPECT_EQ(c.one->stored().success(), 6u);
  EXPECT_EQ(c.one->stored().failure(), 1u);
  c.one->word = 0;
  c.card->count(*c.one->ct, 0, 1);
  EXPECT_EQ(c.one->word, 0u);
}

TEST(CassiniCounter, TheLenientModelWritesEverythingBack) {
  Counting c({.index = 0, .nid = Rig::kNid, .lenient_write_back = true});
  c.card->count(*c.one->ct, 5, 0);
  EXPECT_EQ(c.one->stored().success(), 5u);
}

TEST(CassiniCounter, WithoutAWordNothingIsWritten) {
  Counting c;
  c.one->ct->write_back = {};
  c.run(c.on(CtOp::get, *c.one));
  EXPECT_EQ(c.one->word, 0u);
  EXPECT_FALSE(c.ring->cq->failed);
}

TEST(CassiniCounter, Doorbells) {
  Counting c;
  std::uint64_t* const page = c.one->page.data();
  __atomic_fetch_add(page, 10, __ATOMIC_RELAXED);
  __atomic_fetch_add(page, 10, __ATOMIC_RELAXED);
  c.drive();
  EXPECT_EQ(c.one->ct->success, 20u);
  EXPECT_EQ(c.one->word, 0u);
  page[8] = 0x3f;
  c.drive();
  EXPECT_EQ(c.one->ct->failure, 0x3fu);
  EXPECT_EQ(c.one->stored().failure(), 0x3fu);
  EXPECT_EQ(c.one->stored().success(), 20u);
  c.one->word = 0;
  page[16] = 0;
  c.drive();
  EXPECT_EQ(c.one->ct->success, 0u);
  EXPECT_EQ(c.one->ct->failure, 0x3fu);
  EXPECT_TRUE(c.one->stored().written());
  page[24] = 12345;
  c.drive();
  EXPECT_EQ(c.one->ct->failure, 0u);
  EXPECT_EQ(page[0], 0u);
  EXPECT_EQ(page[8], 0u);
  EXPECT_EQ(page[16], ~std::uint64_t{0});
  EXPECT_EQ(page[24], ~std::uint64_t{0});
}

// An accelerator's own words: only it writes them, and their sum goes round.
TEST(CassiniCounter, DoorbellsOfAnAccelerator) {
  Counting c;
  std::uint64_t* const success = c.one->page.data() + wire::kCtSumsOffset / 8;
  std::uint64_t* const failure = success + 8;
  __atomic_fetch_add(success, 10, __ATOMIC_RELAXED);
  c.one->page[0] = 5;
  c.drive();
  c.drive();
  EXPECT_EQ(c.one->ct->success, 15u);
  __atomic_fetch_add(success, 10, __ATOMIC_RELAXED);
  __atomic_fetch_add(failure, 3, __ATOMIC_RELAXED);
  c.drive();
  EXPECT_EQ(c.one->ct->success, 25u);
  EXPECT_EQ(c.one->ct->failure, 3u);
  EXPECT_EQ(*success, 20u) << "never written by the device";
  EXPECT_EQ(*failure, 3u);
  c.one->ct->summed_success = *success = ~std::uint64_t{0} - 1;
  __atomic_fetch_add(success, 4, __ATOMIC_RELAXED);
  c.drive();
  EXPECT_EQ(c.one->ct->success, 29u);
  // Added and reset, both seen at once: the reset came last.
  __atomic_fetch_add(success, 7, __ATOMIC_RELAXED);
  c.one->page[16] = 0;
  c.drive();
  EXPECT_EQ(c.one->ct->success, 0u);
}

TEST(CassiniCounter, ADoorbellBeforeACommandIsSeenByIt) {
  Counting c;
  c.one->page[0] = 10;
  c.ring->emit(c.on(CtOp::get, *c.one));
  c.ring->ring();
  c.card->drive();
  EXPECT_EQ(c.one->stored().success(), 10u);
}

TEST(CassiniCounter, NoStoreOfManyThreadsIsLost) {
  Counting c;
  constexpr int kThreads = 8;
  constexpr std::uint64_t kEach = 5000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kEach; ++n) __atomic_fetch_add(c.one->page.data(), 1, __ATOMIC_RELEASE);
    });
  }
  while (c.one->ct->success < kThreads * kEach) c.card->drive();
  for (std::thread& thread : threads) thread.join();
  c.drive();
  EXPECT_EQ(c.one->ct->success, kThreads * kEach);
}

TEST(CassiniCounter, ManyCountersTakeTurns) {
  Counting c;
  std::vector<std::unique_ptr<Rig::Counter>> many;
  for (int i = 0; i < 300; ++i) many.push_back(c.counter());
  for (auto& counter : many) counter->page[0] = 3;
  for (int i = 0; i < 6; ++i) c.card->drive();
  for (auto& counter : many) EXPECT_EQ(counter->ct->success, 3u);
}

TEST(CassiniTrigger, FiresWhenItsNumberIsReached) {
  Counting c;
  c.run(c.when(*c.one, 10, CtOp::trig_inc, *c.two, 7));
  EXPECT_EQ(c.card->tles_in_use, 1u);
  EXPECT_EQ(c.ring->cq->unacknowledged, 1u);
  c.card->count(*c.one->ct, 9, 5);
  EXPECT_EQ(c.two->ct->success, 0u) << "failures do not count";
  c.card->count(*c.one->ct, 1, 0);
  EXPECT_EQ(c.two->ct->success, 7u);
  EXPECT_EQ(c.card->tles_in_use, 0u);
  EXPECT_EQ(c.ring->cq->unacknowledged, 0u);
  c.card->count(*c.one->ct, 10, 0);
  EXPECT_EQ(c.two->ct->success, 7u) << "once";
  c.run(c.when(*c.one, 15, CtOp::trig_set, *c.two, 100));
  EXPECT_EQ(c.two->ct->success, 100u) << "already there: at once";
  EXPECT_EQ(c.two->stored().success(), 100u) << "a setting is told";
}

TEST(CassiniTrigger, InTheOrderOfNumbersAndThenOfArming) {
  Counting c;
  std::vector<std::uint32_t> order;
  c.card->meanwhile = [&](const Request& request) { order.push_back(request.length); };
  const auto arm = [&](std::uint64_t threshold, std::uint32_t mark) {
    std::vector<std::uint64_t> words(16);
    CounterCommand head = c.when(*c.one, threshold, CtOp::trig_dma, *c.one, 0);
    head.set_header(wire::CmdType::ct, wire::CmdSize::b128, CtOp::trig_dma);
    std::copy_n(head.words, 3, words.begin());
    const wire::FullDmaCmd put = bench::put(Rig::kIova, mark);
    std::copy_n(put.words, 8, words.begin() + 3);
    while (c.ring->slot % 4 != 0) c.ring->emit(CounterCommand(CtOp::noop));
    c.ring->emit_words(words, 128);
    c.ring->ring();
    c.drive();
  };
  arm(5, 1);
  arm(3, 2);
  arm(5, 3);
  arm(3, 4);
  arm(9, 5);
  c.card->count(*c.one->ct, 6, 0);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{2, 4, 1, 3}));
  c.card->count(*c.one->ct, 6, 0);
  EXPECT_EQ(order.back(), 5u);
  EXPECT_FALSE(c.ring->cq->failed);
}

TEST(CassiniTrigger, EmbeddedCommandsOfAllSizesAndNothingElse) {
  const auto arm = [](Counting& c, const std::vector<std::uint64_t>& embedded) {
    std::vector<std::uint64_t> words(16);
    CounterCommand head = c.when(*c.one, 0, CtOp::trig_dma, *c.one, 0);
    head.set_header(wire::CmdType::ct, wire::CmdSize::b128, CtOp::trig_dma);
    std::copy_n(head.words, 3, words.begin());
    std::copy_n(embedded.begin(), std::min<std::size_t>(embedded.size(), 13), words.begin() + 3);
    c.ring->emit_words(words, 128);
    c.ring->ring();
    c.drive();
  };
  {
    Counting c;
    wire::NomatchDmaCmd small{};
    small.set_header(wire::CmdType::dma, wire::CmdSize::b32, wire::DmaOp::nomatch_put);
    small.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
    arm(c, {small.words, small.words + 4});
    wire::AmoDmaCmd atomic{};
    atomic.set_header(wire::CmdType::dma, wire::CmdSize::b128, wire::DmaOp::atomic);
    atomic.set_dfa(wire::unicast_dfa(Rig::kNid, 1));
    atomic.set_lac(Rig::kLac);
    atomic.set_local_addr(Rig::kIova);
    atomic.set_request_len(8);
    atomic.set_atomic_op(wire::AtomicOp::sum);
    atomic.set_atomic_type(wire::AtomicType::uint64);
    arm(c, {atomic.words, atomic.words + 12});
    EXPECT_EQ(c.card->requests.size(), 2u);
    EXPECT_EQ(c.card->requests[1].op, wire::DmaOp::atomic);
  }
  for (const std::uint64_t header :
       {std::uint64_t{wire::header_byte(wire::CmdType::idc, wire::CmdSize::b64, wire::DmaOp::put)},
        std::uint64_t{wire::header_byte(wire::CmdType::dma, wire::CmdSize::b128, wire::DmaOp::put)},
        std::uint64_t{wire::header_byte(wire::CmdType::dma, wire::CmdSize::b64, wire::DmaOp::close)}}) {
    Counting c;
    arm(c, {header});
    EXPECT_EQ(c.ring->status().return_code(), ReturnCode::illegal_op);
    EXPECT_EQ(c.card->tles_in_use, 0u);
  }
}

TEST(CassiniTrigger, AnEventWritesBackAndTells) {
  Counting c;
  CounterCommand event(CtOp::trig_event);
  event.ct().set_trig_ct(c.one->ct->id);
  event.ct().set_threshold(4);
  c.run(event);
  event.ct().set_eq(c.told->eq->id);
  event.ct().set_threshold(5);
  c.run(event);
  c.card->count(*c.one->ct, 4, 0);
  EXPECT_EQ(c.one->stored().success(), 4u);
  EXPECT_EQ(c.told->next(), nullptr) << "without a queue only the word";
  c.one->word = 0;
  c.card->count(*c.one->ct, 4, 0);
  EXPECT_EQ(c.one->stored().success(), 8u);
  const auto* const told = static_cast<const wire::TriggeredShort*>(static_cast<const void*>(c.told->next()));
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->event_type(), wire::EventType::triggered_op);
  EXPECT_EQ(told->threshold(), 5u);
  EXPECT_EQ(told->ct_handle(), c.one->ct->id);
  EXPECT_EQ(told->return_code(), ReturnCode::ok);
}

TEST(CassiniTrigger, LongQueuesGetLongEvents) {
  Counting c;
  c.told->eq->flags = wire::kEqInitLong;
  CounterCommand event(CtOp::trig_event);
  event.ct().set_trig_ct(c.one->ct->id);
  event.ct().set_eq(c.told->eq->id);
  c.run(event);
  const wire::EventHead* const told = c.told->next();
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->event_size(), wire::EventSize::b32);
}

TEST(CassiniTrigger, CancelAndFreeDropWhatWaits) {
  Counting c;
  for (std::uint64_t i = 1; i <= 5; ++i) c.run(c.when(*c.one, i, CtOp::trig_inc, *c.two, 1));
  c.run(c.when(*c.two, 1, CtOp::trig_inc, *c.one, 1));
  EXPECT_EQ(c.ring->cq->unacknowledged, 6u);
  c.run(c.on(CtOp::cancel, *c.one));
  EXPECT_EQ(c.ring->cq->unacknowledged, 1u);
  EXPECT_EQ(c.card->tles_in_use, 1u);
  c.card->count(*c.one->ct, 10, 0);
  EXPECT_EQ(c.two->ct->success, 0u);
  c.card->stopping(*c.two->ct);
  EXPECT_EQ(c.ring->cq->unacknowledged, 0u);
  EXPECT_EQ(c.card->tles_in_use, 0u);
}

TEST(CassiniTrigger, AChainOfAllEntriesNeedsNoStack) {
  Counting c;
  // Each fires the next: one -> two -> one ...
  for (std::uint32_t i = 0; i < wire::kNumTles; ++i) {
    auto& watched = i % 2 == 0 ? *c.one : *c.two;
    auto& acted = i % 2 == 0 ? *c.two : *c.one;
    c.run(c.when(watched, i / 2 + 1, CtOp::trig_inc, acted, 1));
  }
  EXPECT_EQ(c.card->tles_in_use, wire::kNumTles);
  c.card->count(*c.one->ct, 1, 0);
  EXPECT_EQ(c.card->tles_in_use, 0u);
  EXPECT_EQ(c.two->ct->success, wire::kNumTles / 2);
  EXPECT_EQ(c.card->tally.triggered.load(), wire::kNumTles);
}

TEST(CassiniTrigger, TheDeviceHasSoManyEntries) {
  Counting c;
  for (std::uint32_t i = 0; i < wire::kNumTles; ++i) c.run(c.when(*c.one, 1000, CtOp::trig_inc, *c.two, 1));
  EXPECT_FALSE(c.ring->cq->failed);
  c.run(c.when(*c.one, 1000, CtOp::trig_inc, *c.two, 1));
  EXPECT_TRUE(c.ring->cq->failed);
  EXPECT_EQ(c.ring->status().return_code(), ReturnCode::no_space);
  EXPECT_EQ(c.card->tles_in_use, wire::kNumTles);
}

TEST(CassiniTrigger, AServiceHasAsManyEntriesAsItsLimit) {
  Counting c;
  Service* const service = c.card->services.make();
  service->desc.flags = wire::kSvcResourceLimits;
  service->desc.limits[static_cast<std::size_t>(Resource::tle)].max = 2;
  c.lni->service = service;
  for (int i = 0; i < 2; ++i) c.run(c.when(*c.one, 1000, CtOp::trig_inc, *c.two, 1));
  EXPECT_FALSE(c.ring->cq->failed);
  c.run(c.when(*c.one, 1000, CtOp::trig_inc, *c.two, 1));
  EXPECT_EQ(c.ring->status().return_code(), ReturnCode::no_space);
}

TEST(CassiniTrigger, RegistersSayHowManyWaitAndWaitedAtMost) {
  Counting c;
  alignas(64) std::array<std::uint64_t, 512> page{};
  c.card->registers.show(page.data());
  const auto in_use = [&](std::uint32_t pool) { return page[wire::kCsrTlesInUse / 8 + pool]; };
  const auto most = [&](std::uint32_t pool) { return page[wire::kCsrMostTlesInUse / 8 + pool]; };
  c.lni->service = c.card->services.make();
  c.run(c.when(*c.one, 1000, CtOp::trig_inc, *c.two, 1));
  EXPECT_TRUE(std::all_of(page.begin(), page.end(), [](std::uint64_t each) { return each == 0; })) << "of no pool";
  c.card->cancel(*c.one->ct);
  c.lni->service->tle_pool = 2;
  for (std::uint64_t i = 1; i <= 3; ++i) c.run(c.when(*c.one, i, CtOp::trig_inc, *c.two, 1));
  EXPECT_EQ(in_use(2), 3u);
  EXPECT_EQ(most(2), 3u);
  c.card->count(*c.one->ct, 1, 0);
  EXPECT_EQ(in_use(2), 2u);
  EXPECT_EQ(most(2), 3u);
  c.card->cancel(*c.one->ct);
  EXPECT_EQ(in_use(2), 0u);
  EXPECT_EQ(most(2), 3u);
  EXPECT_EQ(in_use(0) + in_use(1) + in_use(3) + most(0) + most(1) + most(3), 0u);
  c.card->registers.hide(page.data());
}

TEST(CassiniTrigger, NumbersOf48BitsAndARoundTrip) {
  Counting c;
  c.run(c.when(*c.one, kMost, CtOp::trig_inc, *c.two, 1));
  c.card->count(*c.one->ct, kMost - 1, 0);
  EXPECT_EQ(c.two->ct->success, 0u);
  c.card->count(*c.one->ct, 5, 0);
  EXPECT_EQ(c.two->ct->success, 1u) << "it was at that number on its way round";
  EXPECT_EQ(c.one->ct->success, 3u);
}

TEST(CassiniTrigger, ADoorbellReleasesWhatWaits) {
  Counting c;
  c.run(c.when(*c.one, 3, CtOp::trig_inc, *c.two, 1));
  c.one->page[0] = 3;
  c.drive();
  EXPECT_EQ(c.two->ct->success, 1u);
}

TEST(CassiniCounter, BadCommandsStopTheQueue) {
  const auto code_of = [](auto change) {
    Counting c;
    CounterCommand command = c.on(CtOp::get, *c.one);
    change(c, command);
    c.run(command);
    return c.ring->status().return_code();
  };
  EXPECT_EQ(code_of([](Counting&, CounterCommand& cmd) { cmd.ct().set_ct(0); }), ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(code_of([](Counting&, CounterCommand& cmd) { cmd.ct().set_ct(2000); }), ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(code_of([](Counting& c, CounterCommand&) { c.one->ct->lni = c.card->lnis.make(); }),
            ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(code_of([](Counting&, CounterCommand& cmd) {
              cmd.set_header(wire::CmdType::ct, wire::CmdSize::b64, static_cast<CtOp>(9));
            }),
            ReturnCode::illegal_op);
  EXPECT_EQ(code_of([](Counting&, CounterCommand& cmd) {
              cmd.set_header(wire::CmdType::ct, wire::CmdSize::b64, CtOp::trig_dma);
            }),
            ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(
      code_of([](Counting&, CounterCommand& cmd) { cmd.set_header(wire::CmdType::ct, wire::CmdSize::b32, CtOp::get); }),
      ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(code_of([](Counting&, CounterCommand& cmd) {
              cmd.set_header(wire::CmdType::ct, wire::CmdSize::b64, CtOp::trig_inc);
              cmd.ct().set_trig_ct(0);
            }),
            ReturnCode::cmd_invalid_arg);
  EXPECT_EQ(code_of([](Counting& c, CounterCommand& cmd) {
              cmd.set_header(wire::CmdType::ct, wire::CmdSize::b64, CtOp::trig_event);
              cmd.ct().set_trig_ct(c.one->ct->id);
              cmd.ct().set_eq(1999);
            }),
            ReturnCode::invalid_event);
  EXPECT_EQ(code_of([](Counting&, CounterCommand&) {}), ReturnCode::ok);
}

}  // namespace
}  // namespace strait::soft::cassini
