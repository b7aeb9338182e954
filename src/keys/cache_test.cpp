// SPDX-License-Identifier: Apache-2.0
// The registration cache against a counting NIC: hits, staleness, loans, limits.
#include "keys/cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "keys/fake_nic.hpp"

namespace strait::keys {
namespace {

using testing_nic::device;
using testing_nic::FakeNic;
using testing_nic::one_rail;

struct CacheTest : testing::Test {
  FakeNic nic;
  Cache cache{nic.registering(), nic.deregistering(), {4, std::uint64_t{64} << 20}};

  std::uint32_t touch(const Allocation& allocation, std::uint32_t access = 1) {
    const Lease lease = cache.acquire(allocation, access).value();
    return lease.lkey();
  }
};

TEST_F(CacheTest, RegistersOnceAndHitsAfterwards) {
  const std::uint32_t key = touch(device(1, 10));
  EXPECT_EQ(touch(device(1, 10)), key);
  EXPECT_EQ(nic.registered, 1);
  const CacheStats stats = cache.stats();
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.entries, 1u);
  EXPECT_EQ(stats.bytes, 1u << 20);
  EXPECT_EQ(stats.leases, 0u);
}

TEST_F(CacheTest, RightsArePartOfTheKey) {
  EXPECT_NE(touch(device(1, 10), 1), touch(device(1, 10), 3));
  EXPECT_EQ(cache.stats().entries, 2u);
  cache.invalidate(1 << 20, 1);
  EXPECT_EQ(nic.count(), 0u);
}

TEST_F(CacheTest, ReusedAddressWithAnotherIdentityMisses) {
  const std::uint32_t old = touch(device(1, 10));
  EXPECT_NE(touch(device(1, 11)), old);
  EXPECT_EQ(nic.count(), 1u) << "the old registration was given back";
  EXPECT_EQ(cache.stats().stale, 1u);
}

TEST_F(CacheTest, OtherLengthAtTheSameAddressMisses) {
  const std::uint32_t old = touch({1 << 20, 4096, 10, false});
  EXPECT_NE(touch({1 << 20, 8192, 10, false}), old);
  EXPECT_EQ(nic.count(), 1u);
}

TEST_F(CacheTest, NewAllocationOverOldOnesForgetsThem) {
  touch({0x100000, 0x1000, 1, false});
  touch({0x101000, 0x1000, 2, false});
  touch({0x200000, 0x1000, 3, false});
  touch({0x0ff000, 0x3000, 4, false});  // covers the first two, begins before them
  EXPECT_EQ(cache.stats().stale, 2u);
  EXPECT_EQ(nic.count(), 2u);
  touch({0x100800, 0x100, 5, false});  // begins inside the fourth
  EXPECT_EQ(cache.stats().stale, 3u);
  EXPECT_EQ(nic.count(), 2u);
}

TEST_F(CacheTest, LeaseSurvivesInvalidation) {
  Lease lease = cache.acquire(device(1, 10), 1).value();
  Lease second = cache.acquire(device(1, 10), 1).value();
  cache.invalidate(1 << 20, 1 << 20);
  EXPECT_EQ(nic.count(), 1u) << "still lent";
  EXPECT_EQ(cache.stats().entries, 0u) << "but nobody finds it";
  Lease fresh = cache.acquire(device(1, 10), 1).value();
  EXPECT_NE(fresh.lkey(), lease.lkey());
  lease.reset();
  EXPECT_EQ(nic.count(), 2u);
  second = Lease();
  EXPECT_EQ(nic.count(), 1u);
  EXPECT_FALSE(lease.valid());
  Lease moved = std::move(fresh);
  EXPECT_FALSE(fresh.valid());  // NOLINT: what moving leaves behind is the point
  EXPECT_EQ(cache.stats().leases, 1u);
}

TEST_F(CacheTest, HostMemoryWithoutIdentityIsNotRemembered) {
  const Allocation host{0x5000, 0x1000, 0, false};
  EXPECT_NE(touch(host), touch(host));
  EXPECT_EQ(nic.count(), 0u);
  EXPECT_EQ(cache.stats().uncached, 2u);
  const Allocation ours{0x5000, 0x1000, 0, true};
  EXPECT_EQ(touch(ours), touch(ours));
  cache.invalidate(0x5fff, 1);
  EXPECT_EQ(nic.count(), 0u);
}

TEST_F(CacheTest, EvictsTheLeastRecentlyUsed) {
  for (std::uint64_t i = 1; i <= 4; ++i) touch(device(i, i));
  touch(device(1, 1));
  touch(device(2, 2));
  touch(device(5, 5));  // 3 is the oldest now
  touch(device(6, 6));  // then 4
  EXPECT_EQ(cache.stats().evicted, 2u);
  nic.registered = 0;
  for (const std::uint64_t i : {1u, 2u, 5u, 6u}) touch(device(i, i));
  EXPECT_EQ(nic.registered, 0);
  touch(device(3, 3));
  EXPECT_EQ(nic.registered, 1);
}

TEST_F(CacheTest, LimitsBytesAndNeverEvictsWhatIsLent) {
  touch({0, std::uint64_t{40} << 20, 1, false});
  touch({std::uint64_t{1} << 40, std::uint64_t{40} << 20, 2, false});
  EXPECT_EQ(cache.stats().evicted, 1u);
  EXPECT_EQ(cache.stats().bytes, std::uint64_t{40} << 20);
  touch({std::uint64_t{1} << 41, std::uint64_t{65} << 20, 3, false});  // larger than everything allowed
  EXPECT_EQ(cache.stats().uncached, 1u);
  EXPECT_EQ(cache.stats().entries, 1u) << "and it drove nothing out";

  std::vector<Lease> lent;
  cache.trim();
  for (std::uint64_t i = 1; i <= 6; ++i) lent.push_back(cache.acquire(device(i, i), 1).value());
  EXPECT_EQ(cache.stats().entries, 4u);
  EXPECT_EQ(nic.count(), 6u);
  lent.clear();
  EXPECT_EQ(nic.count(), 4u);
}

TEST_F(CacheTest, FullNicIsAskedAgainAfterGivingBackWhatIsIdle) {
  nic.capacity = 2;
  touch(device(1, 1));
  Lease held = cache.acquire(device(2, 2), 1).value();
  ASSERT_TRUE(cache.acquire(device(3, 3), 1));  // 1 made room
  Lease third = cache.acquire(device(3, 3), 1).value();
  const auto refused = cache.acquire(device(4, 4), 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "no room for another key");
  EXPECT_EQ(cache.stats().failed, 1u);
  EXPECT_EQ(nic.count(), 2u);
}

TEST_F(CacheTest, ImpossibleRangesAreRefused) {
  EXPECT_EQ(cache.acquire({4096, 0, 1, false}, 1).error().code, Code::invalid);
  EXPECT_EQ(cache.acquire({UINT64_MAX - 10, 4096, 1, false}, 1).error().text,
            "an allocation of 4096 bytes at 0xfffffffffffffff5 cannot be registered");
  EXPECT_EQ(nic.registered, 0);
}

TEST_F(CacheTest, InvalidationDuringRegistrationIsNotLost) {
  nic.while_registering = [this] { cache.invalidate(1 << 20, 1 << 20); };
  touch({1 << 20, 1 << 20, 0, true});
  nic.while_registering = nullptr;
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_EQ(nic.count(), 0u);
}

TEST_F(CacheTest, TwoThreadsThatMissTogetherEndWithOneEntry) {
  std::atomic<int> inside{0};
  nic.while_registering = [&] {
    ++inside;
    while (inside < 2) std::this_thread::yield();  // both are past the lookup
  };
  std::thread other([&] { touch(device(1, 1)); });
  touch(device(1, 1));
  other.join();
  EXPECT_EQ(nic.registered, 2);
  EXPECT_EQ(nic.count(), 1u);
  EXPECT_EQ(cache.stats().discarded, 1u);
  EXPECT_EQ(cache.stats().entries, 1u);
}

TEST(CacheKeeps, TheExportUntilAfterDeregistration) {
  auto exported = std::make_shared<int>(1);
  bool alive = false;
  {
    Cache cache([&](const Allocation&, std::uint32_t) -> Result<Registration> { return one_rail(1, exported); },
                [&](const Registration&) { alive = exported.use_count() == 2; });
    (void)cache.acquire(device(1, 1), 1).value();
  }
  EXPECT_TRUE(alive);
  EXPECT_EQ(exported.use_count(), 1);
}

// Two cache lines a lookup: the bucket and the entry. Counted, not timed, so that it holds on any machine. Bases come
// evenly spaced, as allocators hand them out, and every spacing has to spread; 106496 is as full as the table gets.
class CacheIndexSpread : public ::testing::TestWithParam<std::pair<std::uint64_t, std::uint64_t>> {};

TEST_P(CacheIndexSpread, ReadsTwoLinesAtAnySize) {
  const auto [stride, length_bytes] = GetParam();
  std::uint32_t made = 0;
  std::uint32_t returned = 0;
  auto cache = std::make_unique<Cache>(
      [&](const Allocation&, std::uint32_t) -> Result<Registration> {
        ++made;
        return one_rail(made);
      },
      [&](const Registration&) { ++returned; }, CacheLimits{200'000, UINT64_MAX});
  std::vector<Allocation> all;
  for (const std::size_t size : {std::size_t{1}, std::size_t{1'000}, std::size_t{100'000}, std::size_t{106'496}}) {
    while (all.size() < size) {
      all.push_back({0x7e00'0000'0000 + all.size() * stride, length_bytes, all.size() + 1, false});
      ASSERT_TRUE(cache->acquire(all.back(), 1));
    }
    std::size_t lines = 0;
    std::size_t over = 0;
    std::size_t most = 0;
    for (const Allocation& each : all) {
      const std::size_t read = cache->lines_read(each, 1);
      lines += read;
      over += read > 2;
      most = std::max(most, read);
    }
    EXPECT_LE(static_cast<double>(lines) / static_cast<double>(size), 2.02) << size;
    EXPECT_LE(static_cast<double>(over) / static_cast<double>(size), 0.01) << size;
    EXPECT_LE(most, 7u) << size;
  }
  const double each = static_cast<double>(cache->stats().memory_bytes) / static_cast<double>(all.size());
  EXPECT_LT(each, 256) << "bytes of memory per entry";
  RecordProperty("bytes_per_entry", std::to_string(each));
  cache.reset();
  EXPECT_EQ(made, all.size());
  EXPECT_EQ(returned, all.size());
}

INSTANTIATE_TEST_SUITE_P(Evenly, CacheIndexSpread,
                         ::testing::Values(std::pair{0x1000u, 0x1000u}, std::pair{0x10000u, 0x1000u},
                                           std::pair{0x10000u, 0x10000u}, std::pair{0x100000u, 0x100000u},
                                           std::pair{0x200000u, 0x200000u}, std::pair{0x3000u, 0x2000u}),
                         [](const auto& about) {
                           return "every" + std::to_string(about.param.first >> 10) + "K" +
                                  std::to_string(about.param.second >> 10) + "Klong";
                         });

TEST(CacheIndex, ManyInsertionsAndRemovalsLeaveItSmall) {
  FakeNic nic;
  Cache cache(nic.registering(), nic.deregistering(), {64, UINT64_MAX});
  for (std::uint64_t i = 1; i <= 5'000; ++i) {
    ASSERT_TRUE(cache.acquire(device(i % 500, i), 1));
    if (i % 3 == 0) cache.invalidate((i % 500) << 20, 1);
  }
  EXPECT_LE(cache.stats().entries, 64u);
  EXPECT_EQ(nic.count(), cache.stats().entries);
  EXPECT_LT(cache.stats().memory_bytes, 200'000u);
}

TEST_F(CacheTest, OneEntryForEveryRail) {
  Cache both(
      [&](const Allocation&, std::uint32_t) -> Result<Registration> {
        Registration made;
        for (std::uint32_t rail = 0; rail < kMaxRails; ++rail) made.rails[rail] = {100 + rail, 200 + rail};
        return made;
      },
      [&](const Registration& made) { EXPECT_EQ(made.rails[3].rkey, 203u); });
  const Lease lease = both.acquire(device(1, 1), 1).value();
  for (std::uint32_t rail = 0; rail < kMaxRails; ++rail) {
    EXPECT_EQ(lease.lkey(rail), 100 + rail);
    EXPECT_EQ(lease.rkey(rail), 200 + rail);
  }
  EXPECT_EQ(both.stats().entries, 1u);
}

TEST_F(CacheTest, AMillionUsesAreOneRegistration) {
  for (int i = 0; i < 1'000'000; ++i) touch(device(1, 10));
  EXPECT_EQ(nic.registered, 1);
  const CacheStats stats = cache.stats();
  EXPECT_EQ(stats.hits, 999'999u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.registered, 1u);
  EXPECT_EQ(stats.leases, 0u);
}

TEST_F(CacheTest, HostRangesMayOverlap) {
  const std::uint32_t part = touch({0x10000, 0x1000, 0, true});
  const std::uint32_t more = touch({0x10000, 0x4000, 0, true});
  const std::uint32_t across = touch({0x0f000, 0x3000, 0, true});
  EXPECT_EQ(touch({0x10000, 0x1000, 0, true}), part);
  EXPECT_EQ(touch({0x10000, 0x4000, 0, true}), more);
  EXPECT_EQ(touch({0x0f000, 0x3000, 0, true}), across);
  EXPECT_EQ(nic.count(), 3u);
  cache.invalidate(0x12000, 1);  // only the long one and, no longer, the one across
  EXPECT_EQ(nic.count(), 2u);
  cache.invalidate(0x10800, 1);
  EXPECT_EQ(nic.count(), 0u);
  EXPECT_EQ(cache.stats().invalidated, 3u);
}

// The address was the process's own memory and is a device's now, or the other way round.
TEST_F(CacheTest, DeviceMemoryWhereHostMemoryWasForgetsIt) {
  const std::uint32_t host = touch({0x100000, 0x2000, 0, true});
  const std::uint32_t moved = touch({0x101000, 0x1000, 77, false});
  EXPECT_NE(host, moved);
  EXPECT_EQ(nic.count(), 1u);
  touch({0x101800, 0x100, 0, true});
  EXPECT_EQ(nic.count(), 1u) << "the device's entry went";
  EXPECT_EQ(cache.stats().stale, 2u);
}

TEST_F(CacheTest, DeadBytesAreBoundedVisibleAndAnErrorBeyond) {
  Cache small(nic.registering(), nic.deregistering(),
              {.entries = 100, .bytes = UINT64_MAX, .dead_bytes = std::uint64_t{2} << 20});
  std::vector<Lease> lent;
  for (std::uint64_t i = 1; i <= 3; ++i) lent.push_back(small.acquire(device(i, i), 1).value());
  Lease alive = small.acquire(device(9, 9), 1).value();
  small.invalidate(1 << 20, 3 << 20);
  EXPECT_EQ(small.stats().dead_entries, 3u);
  EXPECT_EQ(small.stats().dead_bytes, 3u << 20);
  EXPECT_EQ(nic.count(), 4u);
  const auto refused = small.acquire(device(20, 20), 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::limit);
  EXPECT_EQ(
      refused.error().text,
      "3145728 bytes of 3 allocations that no longer exist are still registered, because operations under way use "
      "them; the bound is 2097152 bytes");
  EXPECT_EQ(small.stats().dead_refused, 1u);
  EXPECT_TRUE(small.acquire(device(9, 9), 1)) << "what is remembered is still found";
  lent.pop_back();
  EXPECT_TRUE(small.acquire(device(20, 20), 1)) << "at the bound, not beyond it";
  lent.clear();
  EXPECT_EQ(small.stats().dead_bytes, 0u);
  EXPECT_EQ(small.stats().dead_entries, 0u);
}

TEST_F(CacheTest, DescriptorsAreLimitedToo) {
  std::uint32_t next = 1;
  std::uint32_t open = 0;
  Cache small(
      [&](const Allocation& a, std::uint32_t) -> Result<Registration> {
        Registration made = one_rail(next++);
        made.fds = a.identity == 100 ? 4 : 1;
        open += made.fds;
        return made;
      },
      [&](const Registration& made) { open -= made.fds; }, {.fds = 3});
  for (std::uint64_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(small.acquire(device(i, i), 1));
    EXPECT_LE(open, 3u);
  }
  EXPECT_EQ(small.stats().fds, 3u);
  EXPECT_EQ(small.stats().evicted, 7u);
  ASSERT_TRUE(small.acquire(device(50, 100), 1)) << "more than all allowed together: used once";
  EXPECT_EQ(open, 3u);
  EXPECT_EQ(small.stats().uncached, 1u);
}

TEST_F(CacheTest, RefusalsAreRememberedAndExpire) {
  int asked = 0;
  Code code = Code::unsupported;
  const auto refusing = [&](const Allocation&, std::uint32_t) -> Result<Registration> {
    ++asked;
    return fail(code, "this memory cannot be reached");
  };
  Cache forever(refusing, nic.deregistering(), {.refusal_ns = std::int64_t{3'600'000'000'000}});
  EXPECT_EQ(forever.acquire(device(1, 1), 1).error().text, "this memory cannot be reached");
  EXPECT_EQ(forever.acquire(device(1, 1), 1).error().code, Code::unsupported);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(forever.stats().refused_again, 1u);
  EXPECT_FALSE(forever.acquire(device(1, 2), 1)) << "other memory at the same address is asked about";
  EXPECT_EQ(asked, 2);
  forever.invalidate(1 << 20, 1);
  EXPECT_FALSE(forever.acquire(device(1, 2), 1));
  EXPECT_EQ(asked, 3);
  code = Code::again;  // for want of something: the next time may differ
  EXPECT_FALSE(forever.acquire(device(2, 1), 1));
  EXPECT_FALSE(forever.acquire(device(2, 1), 1));
  EXPECT_EQ(asked, 5);

  code = Code::unsupported;
  Cache briefly(refusing, nic.deregistering(), {.refusal_ns = 1});
  EXPECT_FALSE(briefly.acquire(device(1, 1), 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(briefly.acquire(device(1, 1), 1));
  EXPECT_EQ(asked, 7);
}

// What the monitor's thread does: forgets at once, without a NIC call; somebody else deregisters.
TEST_F(CacheTest, ForgettingWithoutTheNic) {
  touch({0x5000, 0x1000, 0, true});
  ASSERT_TRUE(cache.try_forget(0x5000, 0x1000));
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_EQ(nic.count(), 1u) << "not yet";
  EXPECT_EQ(cache.stats().dead_entries, 1u);
  cache.reap();
  EXPECT_EQ(nic.count(), 0u);
  EXPECT_EQ(cache.stats().dead_entries, 0u);
}

TEST_F(CacheTest, AForkedChildDropsEverythingWithoutTheNic) {
  auto mine = std::make_unique<Cache>(nic.registering(), nic.deregistering());
  Lease lease = mine->acquire(device(1, 1), 1).value();
  touch(device(2, 2));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool gone = mine->acquire(device(1, 1), 1).error().code == Code::gone;
    mine->invalidate(0, UINT64_MAX);
    mine->trim();
    lease.reset();
    mine.reset();
    _exit(gone && nic.live.size() == 2 && nic.registered == 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(nic.count(), 2u);
}

}  // namespace
}  // namespace strait::keys
