// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/doorbell_trap.hpp"

#include <gtest/gtest.h>

#include "soft/uverbs/pages.hpp"
#include "sys/file_mappings.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {
namespace {

class DoorbellTrapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = nic::Engine::open({});
    ASSERT_TRUE(engine);
    engine_ = std::move(*engine);
    auto progress = Progress::start(*engine_, {.background = false, .spin_ns = 0, .traps = true});
    ASSERT_TRUE(progress);
    progress_ = std::move(*progress);
    auto file = sys::make_sealed_memfd("doorbells", pages::kBytes);
    ASSERT_TRUE(file);
    file_ = std::move(*file);
    page_ = map(pages::kFirstDoorbell + 2);
    device_memory_ = map(pages::kMemory);
  }
  [[nodiscard]] sys::Mapping map(std::uint64_t page) const {
    auto made = sys::map_file(file_.get(), page * sys::page_bytes(), sys::page_bytes(), sys::Protect::read_write);
    EXPECT_TRUE(made);
    return made ? std::move(*made) : sys::Mapping();
  }
  static volatile std::uint64_t* word(const sys::Mapping& page, std::size_t offset) {
    return reinterpret_cast<volatile std::uint64_t*>(page.data() + offset);
  }
  // Reads and writes in one instruction. Not by a builtin, which a sanitizer makes a call into itself.
  static void add(volatile std::uint64_t* at, std::uint64_t value) {
#if defined(__x86_64__)
    asm volatile("lock addq %1, %0" : "+m"(*at) : "r"(value) : "memory");
#else
    __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
#endif
  }

  std::unique_ptr<nic::Engine> engine_;
  std::unique_ptr<Progress> progress_;
  sys::Fd file_;
  sys::Mapping page_, device_memory_;
};

TEST_F(DoorbellTrapTest, NamesTheQueuePair) {
  const std::uint8_t stored[8] = {0, 0, 7, 0x0a, 0x12, 0x34, 0x56, 3};  // as it lies in memory
  std::uint64_t value = 0;
  std::memcpy(&value, stored, sizeof value);
  EXPECT_EQ(queue_in_doorbell(value), 0x123456u);
}

TEST_F(DoorbellTrapTest, CountsStoresUntilItIsReleased) {
  trap_doorbells(file_.get(), *progress_, this);
  *word(page_, 0x800) = 1;
  *word(page_, 0xa00) = 2;
  *word(page_, 0x20) = 3;
  EXPECT_EQ(progress_->trapped(), 3u);
  *word(device_memory_, 0) = 4;  // no doorbells
  EXPECT_EQ(*word(device_memory_, 0), 4u);
  {
    const RingsItself call(progress_.get());
    *word(page_, 0x800) = 5;
  }
  EXPECT_EQ(progress_->trapped(), 3u) << "the call looks at the queue itself";
  *word(page_, 0x800) = 6;
  EXPECT_EQ(progress_->trapped(), 4u);
  EXPECT_EQ(*word(page_, 0x800), 0u);
  release_doorbells(file_.get(), this);
  *word(page_, 0x800) = 7;
  EXPECT_EQ(*word(page_, 0x800), 7u);
  EXPECT_EQ(progress_->trapped(), 4u);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_F(DoorbellTrapTest, CopiesOfVectorsAreTrapped) {
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  trap_doorbells(file_.get(), *progress_, this);
  *reinterpret_cast<volatile Vector*>(page_.data() + 0x800) = Vector{1, 2};
  EXPECT_EQ(progress_->trapped(), 1u);
  EXPECT_EQ(*word(page_, 0x808), 0u);
  release_doorbells(file_.get(), this);
}
#endif

TEST_F(DoorbellTrapTest, WhatCannotBeDecodedIsTrappedNoMore) {
  trap_doorbells(file_.get(), *progress_, this);
  add(word(page_, 0x800), 9);
  EXPECT_EQ(*word(page_, 0x800), 9u);
  *word(page_, 0x800) = 10;
  EXPECT_EQ(*word(page_, 0x800), 10u);
  trap_doorbells(file_.get(), *progress_, this);  // with the next queue pair it is tried again
  *word(page_, 0x800) = 11;
  EXPECT_EQ(*word(page_, 0x800), 10u);
  release_doorbells(file_.get(), this);
}

TEST_F(DoorbellTrapTest, PagesThatWereUnmappedAreForgotten) {
  trap_doorbells(file_.get(), *progress_, this);
  page_ = {};
  page_ = map(pages::kFirstDoorbell + 3);
  trap_doorbells(file_.get(), *progress_, this);
  *word(page_, 0x800) = 1;
  EXPECT_EQ(progress_->trapped(), 1u);
  release_doorbells(file_.get(), this);
}

}  // namespace
}  // namespace strait::soft::uverbs
