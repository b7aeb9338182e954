// SPDX-License-Identifier: Apache-2.0
// Plug-ins: loading them, and what happens when they are wrong.
#include "buffer/provider.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "buffer/providers.hpp"

namespace strait::buffer {
namespace {

TEST(LoadPlugin, TheSoftwareDevicesAreOne) {
  const int fds_before = sys::count_open_fds();
  {
    std::vector<Plugin> plugins;
    auto plugin = load_plugin(STRAIT_SOFT_LIBRARY, "devices=1,memory=1048576");
    ASSERT_TRUE(plugin) << plugin.error().text;
    plugins.push_back(std::move(*plugin));
    auto all = Providers::open(std::move(plugins)).value();
    const Memory memory = all->allocate("soft:0", 5000).value();
    char in[5000];
    char out[5000] = {};
    for (std::size_t i = 0; i < sizeof in; ++i) in[i] = static_cast<char>(i);
    ASSERT_TRUE(all->copy(memory.data(), in, sizeof in, sys::Deadline::after_ns(10'000'000'000)));
    ASSERT_TRUE(all->copy(out, memory.data(), sizeof out, sys::Deadline::after_ns(10'000'000'000)));
    EXPECT_EQ(std::memcmp(in, out, sizeof in), 0);
    EXPECT_NE(all->providers()[1]->counters().find("bytes_copied=10000"), std::string::npos);
  }
  EXPECT_EQ(sys::count_open_fds(), fds_before);
}

TEST(LoadPlugin, NoSuchFileAndNoSuchSymbol) {
  const auto missing = load_plugin("/nowhere/libnothing.so");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::unsupported);
  EXPECT_NE(missing.error().text.find("/nowhere/libnothing.so"), std::string::npos);
  const auto no_symbol = load_plugin("libm.so.6");
  ASSERT_FALSE(no_symbol);
  EXPECT_NE(no_symbol.error().text.find("strait_provider_plugin"), std::string::npos) << no_symbol.error().text;
}

// A provider that can be made to misbehave.
struct Odd {
  std::int32_t open_code = 0;
  std::int32_t copy_state = 0;
  strait_claim claim{};
  bool ended_text = true;
  int opens = 0;
  int closes = 0;
};
Odd g_odd;

strait_provider_ops odd_ops() {
  strait_provider_ops ops{};
  ops.abi_version = STRAIT_PROVIDER_ABI;
  ops.struct_size = sizeof ops;
  ops.kind = "odd";
  ops.open = [](const char*, strait_provider** out, strait_plugin_error* error) -> std::int32_t {
    *out = reinterpret_cast<strait_provider*>(&g_odd);
    if (g_odd.open_code == 0) {
      ++g_odd.opens;
    } else if (!g_odd.ended_text) {
      std::memset(error->text, 'x', sizeof error->text);
    } else if (g_odd.open_code == 7) {
      *error = {7, EMFILE, "no descriptors"};
    }
    return g_odd.open_code;
  };
  ops.close = [](strait_provider*) { ++g_odd.closes; };
  ops.device_count = [](strait_provider*) { return std::uint32_t{1}; };
  ops.device_info = [](strait_provider*, std::uint32_t, strait_device_info* out) -> std::int32_t {
    std::memset(out->name, 'n', sizeof out->name);  // not terminated
    return 0;
  };
  ops.classify = [](strait_provider*, std::uint64_t, strait_claim* out) -> std::int32_t {
    *out = g_odd.claim;
    return 1;
  };
  return ops;
}

TEST(OddPlugin, WrongStructsAreRefused) {
  EXPECT_EQ(use_plugin(nullptr).error().code, Code::invalid);
  strait_provider_ops ops = odd_ops();
  ops.abi_version = 1;
  EXPECT_NE(use_plugin(&ops).error().text.find("speaks provider version 1, this library 2"), std::string::npos);
  ops = odd_ops();
  ops.struct_size = 16;
  EXPECT_NE(use_plugin(&ops).error().text.find("a struct of 16 bytes"), std::string::npos);
  ops = odd_ops();
  ops.kind = "";
  EXPECT_FALSE(use_plugin(&ops));
  ops = odd_ops();
  ops.classify = nullptr;
  EXPECT_NE(use_plugin(&ops).error().text.find("lacks a function"), std::string::npos);
}

// One that was built before export_pages was added: its struct ends earlier, and what lies behind it is not looked at.
TEST(OddPlugin, AnOlderStructIsEnough) {
  strait_provider_ops ops = odd_ops();
  ops.struct_size = STRAIT_PROVIDER_OPS_LEAST;
  ops.export_pages = [](strait_provider*, std::uint64_t, std::uint64_t, std::int32_t*, std::uint64_t*,
                        strait_plugin_error*) -> std::int32_t { std::abort(); };
  g_odd = {};
  auto provider = Provider::open(use_plugin(&ops).value()).value();
  EXPECT_EQ(provider->export_pages({1, 1}).error().code, Code::unsupported);
  ops.struct_size = STRAIT_PROVIDER_OPS_LEAST - 1;
  EXPECT_FALSE(use_plugin(&ops));
}

TEST(OddPlugin, ItsErrorsAreTakenWithCare) {
  const strait_provider_ops ops = odd_ops();
  g_odd = {};
  g_odd.open_code = 4711;
  EXPECT_EQ(Provider::open(use_plugin(&ops).value()).error().text,
            "the odd provider failed to open with the unknown code 4711");
  g_odd.open_code = 2;
  EXPECT_EQ(Provider::open(use_plugin(&ops).value()).error().text,
            "the odd provider failed to open and gave no reason");
  g_odd.ended_text = false;
  EXPECT_EQ(Provider::open(use_plugin(&ops).value()).error().text.size(), sizeof(strait_plugin_error{}.text));
  g_odd.ended_text = true;
  g_odd.open_code = 7;
  const auto limit = Provider::open(use_plugin(&ops).value());
  EXPECT_EQ(limit.error().code, Code::limit);
  EXPECT_EQ(limit.error().sys_errno, EMFILE);
  EXPECT_NE(limit.error().remedy.find("ulimit -n"), std::string::npos);
  EXPECT_EQ(g_odd.closes, 0) << "what did not open is not closed";
}

TEST(OddPlugin, MissingFunctionsAreUnsupportedAndImpossibleClaimsIgnored) {
  strait_provider_ops ops = odd_ops();
  g_odd = {};
  {
    auto provider = Provider::open(use_plugin(&ops).value()).value();
    EXPECT_EQ(provider->devices()[0].name, std::string(32, 'n'));
    EXPECT_EQ(provider->allocate(0, 1).error().text, "the odd provider cannot allocate memory");
    EXPECT_EQ(provider->free(1).error().code, Code::unsupported);
    EXPECT_EQ(provider->start_copy(1, 2, 3).error().code, Code::unsupported);
    EXPECT_EQ(provider->export_fd({1, 1}).error().code, Code::unsupported);
    EXPECT_EQ(provider->export_pages({1, 1}).error().code, Code::unsupported);
    EXPECT_EQ(provider->counters(), "");
    g_odd.claim.base = 0x1000;
    g_odd.claim.length_bytes = 0x1000;
    g_odd.claim.identity = 1;
    EXPECT_TRUE(provider->classify(0x1fff));
    EXPECT_FALSE(provider->classify(0x2000)) << "it claims an address its range does not hold";
    g_odd.claim.device = 1;
    EXPECT_FALSE(provider->classify(0x1fff)) << "there is no such device";
  }
  EXPECT_EQ(g_odd.opens, 1);
  EXPECT_EQ(g_odd.closes, 1);
}

TEST(OddPlugin, CopiesThatHangOrFailEndWithTheDeadline) {
  strait_provider_ops ops = odd_ops();
  ops.copy = [](strait_provider*, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t* ticket,
                strait_plugin_error*) -> std::int32_t {
    *ticket = 5;
    return 0;
  };
  ops.copy_done = [](strait_provider*, std::uint64_t) { return g_odd.copy_state; };
  g_odd = {};
  auto provider = Provider::open(use_plugin(&ops).value()).value();
  const std::int64_t started = sys::now_ns();
  const auto late = provider->wait_copy(5, sys::Deadline::after_ns(20'000'000));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_GE(sys::now_ns() - started, 20'000'000);
  g_odd.copy_state = -8;
  const auto failed = provider->wait_copy(5, sys::Deadline::after_ns(20'000'000));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::device);
}

}  // namespace
}  // namespace strait::buffer
