// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/memory_port.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "soft/accel/plugin.hpp"
#include "strait/result.hpp"

namespace strait::soft::accel {
namespace {

constexpr std::int32_t kInvalid = static_cast<std::int32_t>(Code::invalid);

class MemoryPortTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ops_->open("devices=1,memory=1048576,export=0", &soft_, nullptr), 0);
    ASSERT_EQ(ops_->allocate(soft_, 0, 4096, &base_, nullptr), 0);
    ASSERT_EQ(strait_soft_memory_port(soft_, &port_), 0);
  }
  void TearDown() override { ops_->close(soft_); }
  std::uint64_t word(std::uint64_t offset) {
    std::uint64_t value = 0;
    EXPECT_EQ(port_.read(port_.context, base_ + offset, &value, sizeof value), 0);
    return value;
  }
  void set(std::uint64_t offset, std::uint64_t value) {
    ASSERT_EQ(port_.write(port_.context, base_ + offset, &value, sizeof value), 0);
  }

  const strait_provider_ops* ops_ = strait_provider_plugin();
  strait_provider* soft_ = nullptr;
  std::uint64_t base_ = 0;
  strait_memory_port port_{};
};

TEST_F(MemoryPortTest, ReadsWhatWasWrittenAndWhatTheDeviceCopied) {
  set(4088, 0x1122334455667788);
  EXPECT_EQ(word(4088), 0x1122334455667788u);
  const std::uint64_t value = 42;
  std::uint64_t ticket = 1;
  ASSERT_EQ(ops_->copy(soft_, base_, reinterpret_cast<std::uint64_t>(&value), 8, &ticket, nullptr), 0);
  EXPECT_EQ(ticket, 0u) << "small, and the engine is idle: done at once";
  EXPECT_EQ(word(0), 42u);
  port_.order(port_.context);
}

TEST_F(MemoryPortTest, AddressesAreChecked) {
  char bytes[8] = {};
  EXPECT_EQ(port_.read(port_.context, base_ + 4089, bytes, 8), kInvalid);
  EXPECT_EQ(port_.write(port_.context, base_ + 4096, bytes, 1), kInvalid);
  EXPECT_EQ(port_.write(port_.context, reinterpret_cast<std::uint64_t>(bytes), bytes, 1), kInvalid)
      << "host memory is not its own";
  EXPECT_EQ(port_.read(port_.context, base_, bytes, UINT64_MAX), kInvalid);
  ASSERT_EQ(ops_->free(soft_, base_, nullptr), 0);
  EXPECT_EQ(port_.read(port_.context, base_, bytes, 1), kInvalid) << "freed";
}

TEST_F(MemoryPortTest, MaskedCompareSwap) {
  set(8, 0xaaaa'bbbb'cccc'dddd);
  std::uint64_t old = 0;
  ASSERT_EQ(port_.compare_swap(port_.context, base_ + 8, 8, 0xdddd, 0xffff, 0x1111'0000'0000'2222,
                               0xffff'0000'0000'ffff, &old),
            0);
  EXPECT_EQ(old, 0xaaaa'bbbb'cccc'ddddu);
  EXPECT_EQ(word(8), 0x1111'bbbb'cccc'2222u);
  ASSERT_EQ(port_.compare_swap(port_.context, base_ + 8, 8, 0xdddd, 0xffff, 0, ~0ull, &old), 0);
  EXPECT_EQ(old, 0x1111'bbbb'cccc'2222u);
  EXPECT_EQ(word(8), 0x1111'bbbb'cccc'2222u) << "did not compare equal";
  ASSERT_EQ(port_.compare_swap(port_.context, base_ + 12, 4, 0x1111'bbbb, 0xffff'ffff, 7, 0xffff'ffff, &old), 0);
  EXPECT_EQ(old, 0x1111'bbbbu);
  EXPECT_EQ(word(8), 0x0000'0007'cccc'2222u);
}

TEST_F(MemoryPortTest, CarriesStopAtBoundaries) {
  std::uint64_t old = 0;
  set(0, UINT64_MAX);
  ASSERT_EQ(port_.fetch_add(port_.context, base_, 8, 2, 0, &old), 0);
  EXPECT_EQ(old, UINT64_MAX);
  EXPECT_EQ(word(0), 1u) << "no boundary: an ordinary addition";
  set(0, 0x0000'0000'ffff'ffff);
  ASSERT_EQ(port_.fetch_add(port_.context, base_, 8, 0x0000'0001'0000'0001, 0x8000'0000, &old), 0);
  EXPECT_EQ(word(0), 0x0000'0001'0000'0000u) << "the low half wraps by itself";
  set(0, 0x00ff'00ff'00ff'00ff);
  ASSERT_EQ(port_.fetch_add(port_.context, base_, 8, 0x0001'0001'0001'0001, 0x0080'0080'0080'0080, &old), 0);
  EXPECT_EQ(word(0), 0u);
  set(0, 0xffff'ffff);
  ASSERT_EQ(port_.fetch_add(port_.context, base_, 4, 1, 0, &old), 0);
  EXPECT_EQ(word(0), 0u) << "four bytes do not carry into the next four";
}

TEST_F(MemoryPortTest, BadAtomicsAreRefused) {
  std::uint64_t old = 0;
  EXPECT_EQ(port_.fetch_add(port_.context, base_ + 4, 8, 1, 0, &old), kInvalid);
  EXPECT_EQ(port_.fetch_add(port_.context, base_, 2, 1, 0, &old), kInvalid);
  EXPECT_EQ(port_.fetch_add(port_.context, base_ + 4096, 8, 1, 0, &old), kInvalid);
  EXPECT_EQ(port_.fetch_add(port_.context, base_, 8, 1, 0, nullptr), kInvalid);
  EXPECT_EQ(word(0), 0u);
  strait_memory_port unused{};
  EXPECT_EQ(strait_soft_memory_port(nullptr, &unused), kInvalid);
  EXPECT_EQ(strait_soft_memory_port(soft_, nullptr), kInvalid);
}

TEST_F(MemoryPortTest, AdditionsFromManyThreadsAllCount) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::uint64_t old = 0;
      for (int i = 0; i < 2000; ++i) ASSERT_EQ(port_.fetch_add(port_.context, base_, 8, 1, 0, &old), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(word(0), 8000u);
}

TEST_F(MemoryPortTest, GoneInAForkedChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::_exit(port_.read(port_.context, base_, &byte, 1));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Code::gone));
}

// Every C entry point with a null argument, and an error text that is cut rather than overrun.
TEST(Plugin, NullArgumentsAreRefused) {
  const strait_provider_ops* ops = strait_provider_plugin();
  strait_plugin_error error{};
  EXPECT_EQ(ops->open("", nullptr, &error), kInvalid);
  EXPECT_STREQ(error.text, "soft accelerator: a required argument is null");
  strait_provider* soft = nullptr;
  EXPECT_EQ(ops->open("devices=9999", &soft, &error), kInvalid);
  EXPECT_EQ(error.code, kInvalid);
  EXPECT_EQ(ops->open(std::string(1000, 'x').c_str(), &soft, &error), kInvalid);
  EXPECT_EQ(std::strlen(error.text), sizeof error.text - 1);
  ASSERT_EQ(ops->open(nullptr, &soft, nullptr), 0);
  std::uint64_t number = 0;
  EXPECT_EQ(ops->allocate(soft, 0, 1, nullptr, nullptr), kInvalid);
  EXPECT_EQ(ops->copy(soft, 1, 2, 3, nullptr, nullptr), kInvalid);
  EXPECT_EQ(ops->export_fd(soft, 1, 1, 0, nullptr, &number, nullptr), kInvalid);
  EXPECT_EQ(ops->device_info(soft, 0, nullptr), kInvalid);
  char text[10];
  ops->counters(soft, text, sizeof text);
  EXPECT_EQ(std::strlen(text), sizeof text - 1);
  ops->close(soft);
  ops->close(nullptr);
}

}  // namespace
}  // namespace strait::soft::accel
