// SPDX-License-Identifier: Apache-2.0
// Whole pages, once each, counted, undone in reverse: against a driver that refuses what CUDA's refuses.
#include "buffer/host_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sys/mapping.hpp"

namespace strait::buffer {
namespace {

constexpr std::int32_t kRefused = 8;              // STRAIT_DEVICE
constexpr std::uint64_t kMoved = 0x10'0000'0000;  // the device sees host memory this far up

// What the driver has registered, in order. One at a time: the C functions carry no test.
struct FakeDriver {
  std::vector<Range> held;
  std::vector<std::uint64_t> released;  // by first address, in the order of release
  std::vector<std::uint32_t> flags;
  int calls = 0;
  int fail_at = 0;     // of the calls, counted from 1; 0: none
  bool apart = false;  // each registration is seen somewhere else
};
FakeDriver g_driver;

std::int32_t refuse(strait_plugin_error* error, const char* text) {
  *error = {kRefused, 0, {}};
  std::strncpy(error->text, text, sizeof error->text - 1);
  return kRefused;
}

std::int32_t fake_reach(strait_provider*, std::uint32_t, void* host, std::uint64_t length_bytes, std::uint32_t flags,
                        std::uint64_t* device_address, strait_plugin_error* error) {
  const Range range{reinterpret_cast<std::uint64_t>(host), length_bytes};
  EXPECT_EQ(range.address % sys::page_bytes(), 0u);
  EXPECT_EQ(range.length_bytes % sys::page_bytes(), 0u);
  if (++g_driver.calls == g_driver.fail_at) return refuse(error, "out of something");
  for (const Range& other : g_driver.held) {
    if (range.address < other.end() && other.address < range.end()) return refuse(error, "already registered");
  }
  g_driver.held.push_back(range);
  g_driver.flags.push_back(flags);
  *device_address =
      range.address + kMoved + (g_driver.apart ? 0x1000'0000u * static_cast<unsigned>(g_driver.calls) : 0);
  return 0;
}

std::int32_t fake_release(strait_provider*, void* host, strait_plugin_error* error) {
  const auto address = reinterpret_cast<std::uint64_t>(host);
  const auto found = std::find_if(g_driver.held.begin(), g_driver.held.end(),
                                  [address](const Range& range) { return range.address == address; });
  if (found == g_driver.held.end()) return refuse(error, "not registered");
  g_driver.held.erase(found);
  g_driver.released.push_back(address);
  return 0;
}

strait_provider_ops driver_ops() {
  strait_provider_ops ops{};
  ops.abi_version = STRAIT_PROVIDER_ABI;
  ops.struct_size = sizeof ops;
  ops.kind = "fake";
  ops.open = [](const char*, strait_provider** out, strait_plugin_error*) -> std::int32_t {
    *out = reinterpret_cast<strait_provider*>(&g_driver);
    return 0;
  };
  ops.close = [](strait_provider*) {};
  ops.device_count = [](strait_provider*) { return std::uint32_t{1}; };
  ops.device_info = [](strait_provider*, std::uint32_t, strait_device_info* out) -> std::int32_t {
    std::memcpy(out->name, "fake:0", 7);
    return 0;
  };
  ops.classify = [](strait_provider*, std::uint64_t, strait_claim*) -> std::int32_t { return 0; };
  ops.reach_host = fake_reach;
  ops.release_host = fake_release;
  return ops;
}

class HostPagesTest : public testing::Test {
 protected:
  HostPagesTest() { g_driver = {}; }
  ~HostPagesTest() override { EXPECT_TRUE(g_driver.held.empty()) << "left registered"; }
  // Made-up addresses: nothing here touches the memory.
  static std::uint64_t page(std::uint64_t n) { return 0x7000'0000'0000 + n * sys::page_bytes(); }
  static Range pages(std::uint64_t first, std::uint64_t count) { return {page(first), count * sys::page_bytes()}; }
  Result<HostPages::Hold> reach(Range range, std::uint32_t flags = 0) {
    return table.reach(*provider, 0, range, flags);
  }
  const strait_provider_ops ops = driver_ops();
  std::unique_ptr<Provider> provider = Provider::open(use_plugin(&ops).value()).value();
  HostPages table;
};

TEST_F(HostPagesTest, BytesInsideAPageRegisterThatPage) {
  const auto hold = reach({page(3) + 100, 8}).value();
  ASSERT_EQ(g_driver.held.size(), 1u);
  EXPECT_EQ(g_driver.held[0], pages(3, 1));
  EXPECT_EQ(hold.device_address(), page(3) + 100 + kMoved);
}

TEST_F(HostPagesTest, BytesAcrossAPageBoundaryRegisterBoth) {
  const auto hold = reach({page(4) - 4, 8}).value();
  ASSERT_EQ(g_driver.held.size(), 1u);
  EXPECT_EQ(g_driver.held[0], pages(3, 2));
  EXPECT_EQ(hold.device_address(), page(4) - 4 + kMoved);
}

TEST_F(HostPagesTest, APageIsRegisteredOnceAndGoesWithTheLast) {
  auto first = reach({page(1), 8}).value();
  auto second = reach({page(1) + 64, 8}).value();
  EXPECT_EQ(table.counts().registered, 1u);
  EXPECT_EQ(second.device_address(), first.device_address() + 64);
  first.reset();
  EXPECT_EQ(g_driver.held.size(), 1u);
  second.reset();
  EXPECT_TRUE(g_driver.held.empty());
  EXPECT_EQ(table.counts().released, 1u);
  EXPECT_EQ(table.counts().now, 0u);
}

TEST_F(HostPagesTest, OnlyTheMissingPagesAreRegistered) {
  const auto middle = reach(pages(2, 2)).value();
  const auto end = reach(pages(6, 1)).value();
  const auto all = reach(pages(0, 8)).value();
  EXPECT_EQ(all.device_address(), page(0) + kMoved);
  const std::vector<Range> want = {pages(2, 2), pages(6, 1), pages(0, 2), pages(4, 2), pages(7, 1)};
  EXPECT_EQ(g_driver.held, want);
}

TEST_F(HostPagesTest, WhatIsReleasedIsReleasedInReverse) {
  {
    const auto middle = reach(pages(2, 1)).value();
    const auto all = reach(pages(0, 5)).value();
  }
  const std::vector<std::uint64_t> want = {page(3), page(0), page(2)};
  EXPECT_EQ(g_driver.released, want);
}

// The ring code's invariant 14: rings and doorbells are registered here, and queues share the pages of doorbells. After
// any failure nothing stays registered, and they come and go in any order.
using Invariant14_NothingStaysRegistered = HostPagesTest;

// The one who came first may also leave first: the others keep what they share.
TEST_F(Invariant14_NothingStaysRegistered, WhoLeavesFirstTakesNothingFromTheOthers) {
  auto left = reach(pages(0, 3)).value();
  const auto right = reach(pages(2, 3)).value();
  left.reset();
  const std::vector<Range> want = {pages(0, 3), pages(3, 2)};
  EXPECT_EQ(g_driver.held, want) << "its page 2 is still needed, and a driver registers and releases ranges";
  EXPECT_EQ(reach(pages(0, 1)).value().device_address(), page(0) + kMoved);
  EXPECT_EQ(g_driver.calls, 2);
}

TEST_F(Invariant14_NothingStaysRegistered, AFailureAtAnyStepLeavesTheTableAsItWas) {
  const auto before = reach(pages(2, 1)).value();
  const auto also = reach(pages(5, 1)).value();
  const std::vector<Range> held = g_driver.held;
  for (int step = 1; step <= 3; ++step) {  // [0,2), [3,5), [6,8)
    g_driver.calls = 0;
    g_driver.fail_at = step;
    const auto failed = reach(pages(0, 8));
    ASSERT_FALSE(failed) << step;
    EXPECT_NE(failed.error().text.find("out of something"), std::string::npos) << failed.error().text;
    EXPECT_EQ(g_driver.held, held) << step;
    EXPECT_EQ(table.counts().now, 2u);
  }
  g_driver.calls = 0;
  g_driver.fail_at = 4;
  EXPECT_TRUE(reach(pages(0, 8)));
}

TEST_F(HostPagesTest, PagesThatTheDeviceSeesApartAreNoRange) {
  g_driver.apart = true;
  const auto first = reach(pages(0, 1)).value();
  const auto both = reach(pages(0, 2));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, Code::unsupported);
  EXPECT_NE(both.error().text.find("fake:0"), std::string::npos) << both.error().text;
  EXPECT_EQ(g_driver.held.size(), 1u);
}

TEST_F(HostPagesTest, RegistersAndMemoryAreNotTheSame) {
  const auto memory = reach(pages(0, 1)).value();
  const auto registers = reach(pages(1, 1), STRAIT_HOST_IO_MEMORY).value();
  const std::vector<std::uint32_t> want = {0, STRAIT_HOST_IO_MEMORY};
  EXPECT_EQ(g_driver.flags, want);
  const auto mixed = reach(pages(0, 2));
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().text.find("registered as I/O memory"), std::string::npos) << mixed.error().text;
  EXPECT_EQ(g_driver.held.size(), 2u);
}

TEST_F(HostPagesTest, WhatIsNoMemoryIsRefused) {
  EXPECT_EQ(reach({0, 8}).error().code, Code::invalid);
  EXPECT_EQ(reach({page(0), 0}).error().code, Code::invalid);
  EXPECT_EQ(reach({page(0), UINT64_MAX}).error().code, Code::invalid);
  EXPECT_EQ(g_driver.calls, 0);
}

TEST_F(HostPagesTest, OneTablePerVendorAndProcess) {
  EXPECT_EQ(&HostPages::of_process("cuda"), &HostPages::of_process("cuda"));
  EXPECT_NE(&HostPages::of_process("cuda"), &HostPages::of_process("rocm"));
}

TEST_F(HostPagesTest, AProviderWithoutTheFunctionSaysSo) {
  strait_provider_ops older = driver_ops();
  older.struct_size = offsetof(strait_provider_ops, reach_host);
  auto old = Provider::open(use_plugin(&older).value()).value();
  const auto refused = table.reach(*old, 0, pages(0, 1), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().text.find("cannot let its devices at host memory"), std::string::npos);
  EXPECT_EQ(table.counts().registered, 0u);
}

}  // namespace
}  // namespace strait::buffer
