// SPDX-License-Identifier: Apache-2.0
#include "export/through_host.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "soft/accel/plugin.hpp"

namespace strait::exports {
namespace {

sys::Deadline in_time() {
  return sys::Deadline::after_ns(20'000'000'000);
}

std::atomic<bool> g_other_stuck{false};

// A second vendor: the software accelerator under another name, whose copies can be made to look unfinished.
const strait_provider_ops* other_vendor() {
  static strait_provider_ops ops = [] {
    strait_provider_ops made = *strait_provider_plugin();
    made.kind = "other";
    made.device_info = [](strait_provider* provider, std::uint32_t device, strait_device_info* out) {
      const std::int32_t answer = strait_provider_plugin()->device_info(provider, device, out);
      std::strcpy(out->name, "other:0");
      return answer;
    };
    made.copy_done = [](strait_provider* provider, std::uint64_t ticket) {
      return g_other_stuck ? 0 : strait_provider_plugin()->copy_done(provider, ticket);
    };
    return made;
  }();
  return &ops;
}

class ThroughHost : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 1'000'003;
  void SetUp() override {
    g_other_stuck = false;
    std::vector<buffer::Plugin> plugins;
    plugins.push_back(buffer::use_plugin(strait_provider_plugin(), "devices=1,memory=4194304").value());
    plugins.push_back(buffer::use_plugin(other_vendor(), "devices=1,memory=4194304").value());
    all_ = buffer::Providers::open(std::move(plugins)).value();
    from_ = all_->allocate("soft:0", kBytes).value();
    to_ = all_->allocate("other:0", kBytes).value();
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<unsigned char>(i * 131 + i / 256);
    ASSERT_TRUE(all_->copy(from_.data(), bytes_.data(), kBytes, in_time()));
  }
  [[nodiscard]] Status copy(std::uint64_t bytes, std::uint64_t piece, sys::Deadline deadline) {
    const auto from = all_->classify(from_.data(), bytes).value();
    const auto to = all_->classify(to_.data(), bytes).value();
    HostRelay relay(*all_, piece);
    return relay.copy(to, from, deadline);
  }
  [[nodiscard]] std::string host_counters() const { return all_->providers()[0]->counters(); }
  std::unique_ptr<buffer::Providers> all_;
  buffer::Memory from_, to_;
  std::vector<unsigned char> bytes_ = std::vector<unsigned char>(kBytes);
};

TEST_F(ThroughHost, EveryByteWhateverThePieces) {
  const std::string before = host_counters();
  for (const std::uint64_t piece :
       {std::uint64_t{4096}, std::uint64_t{65536}, kBytes / 2, kBytes - 1, kBytes, 2 * kBytes}) {
    std::vector<unsigned char> zero(kBytes), got(kBytes);
    ASSERT_TRUE(all_->copy(to_.data(), zero.data(), kBytes, in_time()));
    const Status done = copy(kBytes, piece, in_time());
    ASSERT_TRUE(done) << done.error().text;
    ASSERT_TRUE(all_->copy(got.data(), to_.data(), kBytes, in_time()));
    EXPECT_EQ(got, bytes_) << "in pieces of " << piece;
  }
  EXPECT_TRUE(copy(1, 4096, in_time()));
  EXPECT_NE(host_counters(), before) << "it went through host memory";
  EXPECT_NE(host_counters().find("live_allocations=0"), std::string::npos) << host_counters();
}

// The buffers are kept: a second copy makes none.
TEST_F(ThroughHost, TheSameBuffersAgain) {
  HostRelay relay(*all_, 65536);
  const auto from = all_->classify(from_.data(), kBytes).value();
  const auto to = all_->classify(to_.data(), kBytes).value();
  ASSERT_TRUE(relay.copy(to, from, in_time()));
  const std::string before = host_counters();
  ASSERT_TRUE(relay.copy(to, from, in_time()));
  EXPECT_EQ(host_counters(), before);
}

TEST_F(ThroughHost, DirectCopiesStayRefused) {
  EXPECT_EQ(all_->copy(to_.data(), from_.data(), kBytes, in_time()).error().code, Code::unsupported);
}

TEST_F(ThroughHost, ACopyThatDoesNotEndKeepsItsBuffer) {
  g_other_stuck = true;
  const Status late = copy(kBytes, 65536, sys::Deadline::after_ns(50'000'000));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_EQ(host_counters().find("live_allocations=0"), std::string::npos) << "the piece under way is not given back";
}

TEST_F(ThroughHost, LengthsMustAgree) {
  const auto from = all_->classify(from_.data(), 100).value();
  const auto to = all_->classify(to_.data(), 99).value();
  HostRelay relay(*all_);
  EXPECT_EQ(relay.copy(to, from, in_time()).error().code, Code::invalid);
}

}  // namespace
}  // namespace strait::exports
