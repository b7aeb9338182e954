// SPDX-License-Identifier: Apache-2.0
#include "export/staging.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "soft/accel/plugin.hpp"

namespace strait::exports {
namespace {

sys::Deadline soon() {
  return sys::Deadline::after_ns(20'000'000'000);
}

// The soft accelerator, whose copies can be made to look unfinished.
std::atomic<bool> g_stuck{false};

std::unique_ptr<buffer::Providers> open_soft() {
  static strait_provider_ops ops = *strait_provider_plugin();
  ops.copy_done = [](strait_provider* provider, std::uint64_t ticket) {
    return g_stuck ? 0 : strait_provider_plugin()->copy_done(provider, ticket);
  };
  std::vector<buffer::Plugin> plugins;
  plugins.push_back(buffer::use_plugin(&ops, "devices=1,memory=4194304,export=0").value());
  return buffer::Providers::open(std::move(plugins)).value();
}

class StagingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_stuck = false;
    all_ = open_soft();
    memory_ = all_->allocate("soft:0", 100'000).value();
    claim_ = all_->classify(memory_.range()).value();
  }
  [[nodiscard]] std::string host_counters() const { return all_->providers()[0]->counters(); }
  std::unique_ptr<buffer::Providers> all_;
  buffer::Memory memory_;
  buffer::Claim claim_;
};

TEST_F(StagingTest, BytesGoOutAndComeBack) {
  std::vector<unsigned char> bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 31 + i / 256);
  ASSERT_TRUE(all_->copy(memory_.data(), bytes.data(), bytes.size(), soon()));
  {
    auto staging = Staging::make(*all_, claim_, {memory_.range().address + 1000, 50'000});
    ASSERT_TRUE(staging) << staging.error().text;
    ASSERT_EQ(staging->size(), 50'000u);
    ASSERT_TRUE(staging->fill(0, 50'000, soon()));
    EXPECT_EQ(std::memcmp(staging->data(), bytes.data() + 1000, 50'000), 0);

    std::memset(staging->data(), 0xab, 50'000);
    ASSERT_TRUE(staging->drain(100, 20, soon()));
    EXPECT_EQ(staging->bytes_copied(), 50'020u);
  }
  std::memset(bytes.data() + 1100, 0xab, 20);
  std::vector<unsigned char> out(bytes.size());
  ASSERT_TRUE(all_->copy(out.data(), memory_.data(), out.size(), soon()));
  EXPECT_EQ(out, bytes) << "exactly the drained bytes changed";
  EXPECT_NE(host_counters().find("live_allocations=0"), std::string::npos) << host_counters();
}

TEST_F(StagingTest, OutOfBoundsIsRefused) {
  auto staging = Staging::make(*all_, claim_, {memory_.range().address, 1000}).value();
  EXPECT_EQ(staging.fill(0, 1001, soon()).error().code, Code::invalid);
  EXPECT_EQ(staging.fill(1000, 1, soon()).error().code, Code::invalid);
  EXPECT_EQ(staging.drain(1, UINT64_MAX, soon()).error().code, Code::invalid);
  EXPECT_EQ(staging.drain(0, 0, soon()).error().code, Code::invalid);
  EXPECT_EQ(Staging::make(*all_, claim_, {memory_.range().address, 100'001}).error().code, Code::invalid);
  EXPECT_EQ(Staging::make(*all_, claim_, {memory_.range().address - 1, 1}).error().code, Code::invalid);
  EXPECT_EQ(staging.bytes_copied(), 0u);
}

TEST_F(StagingTest, ADeadlineDoesNotGiveTheBounceBufferBack) {
  {
    auto staging = Staging::make(*all_, claim_, claim_.whole).value();
    g_stuck = true;
    const auto late = staging.fill(0, 100'000, sys::Deadline::after_ns(5'000'000));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::timeout);
    EXPECT_EQ(staging.drain(0, 1, sys::Deadline::after_ns(5'000'000)).error().code, Code::timeout)
        << "waits for the first";
    g_stuck = false;
    EXPECT_TRUE(staging.drain(0, 1, soon())) << "and goes on when that is over";
    g_stuck = true;
    EXPECT_FALSE(staging.fill(0, 100'000, sys::Deadline::after_ns(5'000'000)));
  }
  EXPECT_NE(host_counters().find("live_allocations=1"), std::string::npos) << "kept until the provider closes";
  g_stuck = false;
}

TEST_F(StagingTest, MemoryFreedMeanwhileIsAnError) {
  auto staging = Staging::make(*all_, claim_, claim_.whole).value();
  ASSERT_TRUE(memory_.free());
  EXPECT_EQ(staging.fill(0, 10, soon()).error().code, Code::invalid);
}

}  // namespace
}  // namespace strait::exports
