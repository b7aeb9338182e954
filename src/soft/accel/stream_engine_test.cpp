// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/stream_engine.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace strait::soft::accel {
namespace {

using Kind = StreamEngine::Kind;

// Words in the order in which steps ran; only the engine's thread writes, and it is read after a wait.
struct Diary {
  std::string text;
  std::function<bool()> entry(char word) {
    return [this, word] {
      text += word;
      return true;
    };
  }
};

TEST(StreamEngineTest, AQueueKeepsItsOrder) {
  StreamEngine engine;
  Diary diary;
  const auto queue = engine.make_queue(Kind::independent, nullptr);
  EXPECT_EQ(engine.last(*queue), nullptr);
  std::shared_ptr<Step> last;
  for (const char word : std::string("abcdefgh")) last = engine.submit(*queue, diary.entry(word)).value();
  engine.wait(*last);
  EXPECT_EQ(diary.text, "abcdefgh");
  EXPECT_TRUE(last->finished());
  EXPECT_GT(last->finished_ns(), 0);
  EXPECT_EQ(engine.last(*queue), last);
}

TEST(StreamEngineTest, AStepThatWaitsHoldsUpItsOwnQueueOnly) {
  StreamEngine engine;
  Diary diary;
  std::atomic<bool> arrived{false};
  const auto one = engine.make_queue(Kind::independent, nullptr);
  const auto two = engine.make_queue(Kind::independent, nullptr);
  ASSERT_TRUE(engine.submit(*one, [&] { return arrived.load(); }));
  const auto behind = engine.submit(*one, diary.entry('1')).value();
  const auto beside = engine.submit(*two, diary.entry('2')).value();
  engine.wait(*beside);
  EXPECT_EQ(diary.text, "2");
  EXPECT_FALSE(behind->finished());
  arrived = true;
  engine.wait(*behind);
  EXPECT_EQ(diary.text, "21");
}

TEST(StreamEngineTest, TheLegacyQueueAndTheBlockingOnesWaitForEachOther) {
  StreamEngine engine;
  Diary diary;
  const int group = 0;
  const int other_group = 0;
  std::atomic<bool> first{false};
  std::atomic<bool> second{false};
  const auto legacy = engine.make_queue(Kind::legacy, &group);
  const auto blocking = engine.make_queue(Kind::blocking, &group);
  const auto free = engine.make_queue(Kind::independent, &group);
  const auto stranger = engine.make_queue(Kind::blocking, &other_group);
  ASSERT_TRUE(engine.submit(*blocking, [&] { return first.load(); }));
  const auto of_legacy = engine.submit(*legacy, [&] { return second.load(); }).value();
  const auto after = engine.submit(*blocking, diary.entry('b')).value();
  engine.wait(*engine.submit(*free, diary.entry('f')).value());
  engine.wait(*engine.submit(*stranger, diary.entry('s')).value());
  EXPECT_EQ(diary.text, "fs");
  EXPECT_FALSE(of_legacy->finished());
  first = true;
  engine.wait(*engine.submit(*free, diary.entry('g')).value());
  EXPECT_FALSE(after->finished()) << "given after a step of the legacy queue";
  second = true;
  engine.wait(*after);
  EXPECT_TRUE(of_legacy->finished());
  EXPECT_EQ(diary.text, "fsgb");
}

TEST(StreamEngineTest, WhatAStepHoldsIsLetGoOfBeforeAnybodyHears) {
  StreamEngine engine;
  const auto queue = engine.make_queue(Kind::independent, nullptr);
  auto held = std::make_shared<int>(7);
  const std::weak_ptr<int> seen = held;
  const auto step = engine.submit(*queue, [held = std::move(held)] { return *held == 7; }).value();
  engine.wait(*step);
  EXPECT_TRUE(seen.expired());
}

TEST(StreamEngineTest, AQueueThatItsOwnerDroppedIsStillWorkedOff) {
  StreamEngine engine;
  Diary diary;
  std::atomic<bool> arrived{false};
  auto queue = engine.make_queue(Kind::independent, &diary);
  ASSERT_TRUE(engine.submit(*queue, [&] { return arrived.load(); }));
  const auto last = engine.submit(*queue, diary.entry('x')).value();
  queue.reset();
  EXPECT_EQ(engine.last_of_group(&diary), (std::vector{last}));
  arrived = true;
  engine.wait(*last);
  EXPECT_EQ(diary.text, "x");
}

TEST(StreamEngineTest, EndsWithStepsThatNeverFinish) {
  StreamEngine engine;
  const auto queue = engine.make_queue(Kind::independent, nullptr);
  ASSERT_TRUE(engine.submit(*queue, [] { return false; }));
}

}  // namespace
}  // namespace strait::soft::accel
