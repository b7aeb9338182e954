// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/trap.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>
#include <vector>

#include "sys/mapping.hpp"

namespace strait::soft::cassini {
namespace {

// A doorbell page as a program gets it, and a device that takes what is there.
class TrapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = sys::make_sealed_memfd("doorbell", 4096);
    ASSERT_TRUE(file);
    file_ = std::move(*file);
    auto shown = sys::map_file(file_.get(), 0, 4096, sys::Protect::read);
    auto page = sys::map_file(file_.get(), 0, 4096, sys::Protect::read_write);
    auto devices = sys::map_file(file_.get(), 0, 4096, sys::Protect::read_write);
    ASSERT_TRUE(shown && page && devices);
    shown_ = std::move(*shown);
    page_ = std::move(*page);
    devices_ = std::move(*devices);
    word(kResetSuccess).store(kResetAtRest);
    word(kResetFailure).store(kResetAtRest);
    ASSERT_TRUE(add_doorbell(shown_.data(), page_.data()));
    device_ = std::thread([this] { take(); });
    while (!takes_) std::this_thread::yield();  // a death test forks: not while a thread is being made
  }
  void TearDown() override {
    stop_ = true;
    device_.join();
    EXPECT_EQ(drop_doorbell(shown_.data()), page_.data());
    EXPECT_EQ(drop_doorbell(shown_.data()), nullptr);
  }
  std::atomic_ref<std::uint64_t> word(std::uint64_t offset) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(devices_.data() + offset));
  }
  // As the engine does: additions, then resets.
  void take() {
    takes_ = true;
    while (!stop_) {
      taken_success_ += word(kAddSuccess).exchange(0);
      taken_failure_ += word(kAddFailure).exchange(0);
      if (word(kResetSuccess).load() != kResetAtRest) {
        taken_success_ = 0;
        word(kResetSuccess).store(kResetAtRest);
      }
      std::this_thread::yield();
    }
    taken_success_ += word(kAddSuccess).exchange(0);
    taken_failure_ += word(kAddFailure).exchange(0);
  }
  [[nodiscard]] volatile std::uint64_t* doorbell(std::uint64_t offset) {
    return reinterpret_cast<volatile std::uint64_t*>(shown_.data() + offset);
  }
  void finish() {
    while (word(kAddSuccess).load() != 0 || word(kAddFailure).load() != 0) std::this_thread::yield();
    stop_ = true;
    device_.join();
    device_ = std::thread([] {});
  }

  sys::Fd file_;
  sys::Mapping shown_, page_, devices_;
  std::atomic<bool> stop_{false}, takes_{false};
  std::atomic<std::uint64_t> taken_success_{0}, taken_failure_{0};
  std::thread device_;
};

TEST_F(TrapTest, EqualStoresAllCount) {
  *doorbell(0) = 10;
  *doorbell(0) = 10;
  finish();
  EXPECT_EQ(taken_success_, 20u);
}

TEST_F(TrapTest, AMillionEqualStoresOfManyThreadsAllCount) {
  constexpr std::uint64_t kThreads = 1000, kStores = 1000;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kStores; ++n) __atomic_store_n(doorbell(0), 1, __ATOMIC_RELAXED);
    });
  }
  for (std::thread& thread : threads) thread.join();
  finish();
  EXPECT_EQ(taken_success_, kThreads * kStores);
}

TEST_F(TrapTest, KindsKeepTheirOrder) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    *doorbell(0) = 5;
    *doorbell(64) = 1;
    *doorbell(128) = i;  // whatever is stored
    EXPECT_EQ(taken_success_, 0u) << "a reset has been taken when the store is over";
    *doorbell(0) = 7;
  }
  finish();
  EXPECT_EQ(taken_success_, 7u);
  EXPECT_EQ(taken_failure_, 100u);
}

TEST_F(TrapTest, LoadsAndTheRestOfThePageAreHarmless) {
  EXPECT_EQ(*doorbell(256), 0u);
  *doorbell(256) = 1;
  EXPECT_EQ(*doorbell(256), 0u);
}

using TrapDeathTest = TrapTest;

// By SIGSEGV, or by a sanitizer that sees it first and exits.
TEST_F(TrapDeathTest, OtherFaultsAreStillFatal) {
  EXPECT_DEATH(
      {
        void* nothing = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile int*>(nothing) = 1;
      },
      "");
}

TEST_F(TrapDeathTest, WhatCannotBeDecodedIsSaid) {
  EXPECT_DEATH(__atomic_fetch_add(const_cast<std::uint64_t*>(doorbell(0)), 1, __ATOMIC_SEQ_CST), "cannot be decoded");
}

TEST_F(TrapDeathTest, TheProgramsOwnHandlerIsAsked) {
  // Set after ours: the next page puts ours in front of it again, and it is still asked.
  EXPECT_EXIT(
      {
        signal(SIGSEGV, [](int) { _exit(42); });
        auto again = sys::map_file(file_.get(), 0, 4096, sys::Protect::read);
        (void)add_doorbell(again->data(), page_.data());
        *reinterpret_cast<volatile std::uint64_t*>(again->data()) = 1;
        void* nothing = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile int*>(nothing) = 1;
      },
      ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace strait::soft::cassini
