// SPDX-License-Identifier: Apache-2.0
// What a provider tells of a free reaches the registration cache: for each that says it can, the software accelerator
// and, under `strait run --accelerators rocm:1`, AMD's runtime.
#include "node/free_watch.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <vector>

#include "buffer/built_in.hpp"
#include "buffer/providers.hpp"

namespace strait::node {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;

// A Node's cache, without the NIC.
struct Remembered {
  explicit Remembered(buffer::Plugin plugin) {
    std::vector<buffer::Plugin> plugins;
    plugins.push_back(std::move(plugin));
    providers = buffer::Providers::open(std::move(plugins)).value();
    sleeper.open().value();
    freed.sleeper = &sleeper;
    cache = std::make_unique<keys::Cache>(
        [this](const keys::Allocation& allocation, std::uint32_t) -> Result<keys::Registration> {
          STRAIT_TRY(const buffer::Claim claim, providers->classify({allocation.base, allocation.length_bytes}));
          keys::Registration made;
          made.rails[0] = {++registered, registered};
          made.keep = std::make_shared<FreeWatch>(claim, cache.get(), &freed);
          return made;
        },
        [](const keys::Registration&) {});
  }
  keys::Lease use(std::uint64_t address) {
    const buffer::Claim claim = providers->classify({address, kBytes}).value();
    return cache->acquire({claim.whole.address, claim.whole.length_bytes, claim.identity, false}, 0).value();
  }
  std::unique_ptr<buffer::Providers> providers;
  Sleeper sleeper;
  FreedMemory freed;
  std::uint32_t registered = 0;
  std::unique_ptr<keys::Cache> cache;  // goes before what it watches
};

// The kind that the launcher furnished the machine with; the software accelerator otherwise.
buffer::Plugin plugin_to_test() {
  const char* const kind = std::getenv("STRAIT_TEST_KIND");
  if (kind == nullptr) return buffer::load_plugin(STRAIT_SOFT_LIBRARY, "devices=1,memory=67108864").value();
  return buffer::use_plugin(buffer::built_in_provider(kind), "").value();
}

TEST(FreeWatch, WhatIsFreedIsForgottenBeforeTheFreeReturns) {
  Remembered node(plugin_to_test());
  buffer::Provider& provider = *node.providers->providers().back();
  ASSERT_NE(provider.devices()[0].capabilities & STRAIT_CAN_WATCH, 0u) << provider.devices()[0].kind;
  const std::uint64_t address = provider.allocate(0, kBytes).value();
  (void)node.use(address);
  (void)node.use(address);
  EXPECT_EQ(node.registered, 1u);
  EXPECT_EQ(node.cache->stats().entries, 1u);
  ASSERT_TRUE(provider.free(address));
  EXPECT_EQ(node.cache->stats().entries, 0u) << "told, not asked";
  EXPECT_TRUE(node.freed.some.load()) << "and somebody is to deregister it";
  node.cache->reap();
  // At the same address, sooner or later: other memory, so another registration.
  std::vector<std::uint64_t> others;
  for (int i = 0; i < 64 && (others.empty() || others.back() != address); ++i)
    others.push_back(provider.allocate(0, kBytes / 2).value());
  for (const std::uint64_t each : others) ASSERT_TRUE(provider.free(each));
  const std::uint64_t again = provider.allocate(0, kBytes).value();
  (void)node.use(again);
  EXPECT_EQ(node.registered, 2u);
  ASSERT_TRUE(provider.free(again));
  EXPECT_EQ(node.cache->stats().entries, 0u);
}

TEST(FreeWatch, WhatIsInUseLivesUntilItIsReleased) {
  Remembered node(plugin_to_test());
  buffer::Provider& provider = *node.providers->providers().back();
  const std::uint64_t address = provider.allocate(0, kBytes).value();
  keys::Lease lease = node.use(address);
  ASSERT_TRUE(provider.free(address));
  EXPECT_EQ(node.cache->stats().entries, 0u);
  EXPECT_EQ(node.cache->stats().dead_entries, 1u);
  lease.reset();
  node.cache->reap();
  EXPECT_EQ(node.cache->stats().dead_entries, 0u);
}

}  // namespace
}  // namespace strait::node
