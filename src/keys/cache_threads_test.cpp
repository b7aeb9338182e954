// SPDX-License-Identifier: Apache-2.0
// The registration cache under many threads: what a race checker looks at.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "keys/cache.hpp"
#include "keys/fake_nic.hpp"
#include "keys/shard.hpp"

namespace strait::keys {
namespace {

using testing_nic::device;
using testing_nic::FakeNic;

void on_threads(unsigned count, const std::function<void(unsigned)>& body) {
  std::barrier start(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      body(t);
    });
  }
  for (std::thread& each : threads) each.join();
}

// With the kernel's fences, and as where it refuses them.
class CacheThreads : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    sys::prepare_thread_fences();
    granted_ = sys::fenced_by_others();
    sys::detail::use_kernel_fences(granted_ && GetParam());
  }
  void TearDown() override { sys::detail::use_kernel_fences(granted_); }

 private:
  bool granted_ = false;
};
INSTANTIATE_TEST_SUITE_P(Fences, CacheThreads, testing::Bool(),
                         [](const auto& by_kernel) { return by_kernel.param ? "Kernel" : "Own"; });

TEST_P(CacheThreads, StormOfLeasesAndInvalidationsBalances) {
  FakeNic nic;
  {
    Cache cache(nic.registering(), nic.deregistering(), {16, UINT64_MAX});
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        std::vector<Lease> held;
        for (int i = 0; i < 3'000; ++i) {
          const std::uint64_t number = 1 + random() % 32;
          auto lease = cache.acquire(device(number, number + (random() % 8 == 0 ? 1000 : 0)), 1 + random() % 2);
          ASSERT_TRUE(lease);
          if (random() % 4 == 0) held.push_back(std::move(*lease));
          if (held.size() > 8) held.clear();
          if (random() % 64 == 0) cache.invalidate(number << 20, 4096);
          if (random() % 512 == 0) cache.trim();
        }
      });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(cache.stats().leases, 0u);
    EXPECT_EQ(nic.count(), cache.stats().entries);
    EXPECT_LE(cache.stats().entries, 16u);
  }
  EXPECT_EQ(nic.count(), 0u);
}

TEST_P(CacheThreads, SixteenDoTheFirstUseTogether) {
  FakeNic nic;
  {
    Cache cache(nic.registering(), nic.deregistering());
    std::array<std::atomic<std::uint32_t>, 16> keys{};
    on_threads(16, [&](unsigned t) {
      const Lease lease = cache.acquire(device(1, 1), 1).value();
      keys[t] = lease.lkey();
      for (int i = 0; i < 200; ++i) {
        const Lease again = cache.acquire(device(1, 1), 1).value();
        EXPECT_EQ(again.lkey(), cache.acquire(device(1, 1), 1).value().lkey());
      }
    });
    const CacheStats stats = cache.stats();
    EXPECT_EQ(stats.entries, 1u);
    EXPECT_EQ(stats.leases, 0u);
    EXPECT_EQ(stats.registered, 1 + stats.discarded) << "who came too late gave its registration back";
    EXPECT_EQ(stats.hits + stats.misses, 16u * 401);
    for (const auto& key : keys) EXPECT_EQ(key, keys[0]) << "and used the other's";
  }
  EXPECT_EQ(nic.count(), 0u);
}

// More threads than there are numbers for; each thread's leases end on another one.
TEST_P(CacheThreads, ACrowdSharesTheLastNumber) {
  FakeNic nic;
  {
    Cache cache(nic.registering(), nic.deregistering());
    std::vector<Lease> lent(kThreads + 16);
    on_threads(kThreads + 16, [&](unsigned t) {
      for (std::uint64_t i = 0; i < 50; ++i) lent[t] = cache.acquire(device(1 + i % 3, 1), 1).value();
    });
    EXPECT_EQ(cache.stats().leases, kThreads + 16);
    cache.invalidate(0, UINT64_MAX);
    EXPECT_GT(nic.count(), 0u);
    lent.clear();
    EXPECT_EQ(nic.count(), 0u);
    EXPECT_EQ(cache.stats().dead_bytes, 0u);
    EXPECT_EQ(cache.stats().hits + cache.stats().misses, 50u * (kThreads + 16));
  }
}

// Taken by threads that end, ended by others or by who has the same number now; forgotten before or after.
TEST_P(CacheThreads, ALeaseOutlivesItsThreadAndEndsAnywhere) {
  for (const bool forget_first : {false, true}) {
    FakeNic nic;
    Cache cache(nic.registering(), nic.deregistering());
    std::vector<Lease> lent;
    lent.push_back(cache.acquire(device(1, 1), 1).value());  // the first thread counts in the entry
    for (int t = 0; t < 3; ++t) {
      std::thread([&] {
        lent.push_back(cache.acquire(device(1, 1), 1).value());
        lent.push_back(cache.acquire(device(1, 1), 1).value());
      }).join();
    }
    EXPECT_EQ(cache.stats().leases, 7u);
    if (forget_first) cache.invalidate(0, UINT64_MAX);
    std::thread([&] {  // has the number of the three, and ends what they and the first took
      lent.erase(lent.begin(), lent.begin() + 3);
    })
        .join();
    EXPECT_EQ(cache.stats().leases, 4u);
    std::thread([&] {
      const Lease more = cache.acquire(device(1, 2), 1).value();  // while another number is taken
      std::thread([&] { lent.pop_back(); }).join();
    }).join();
    EXPECT_EQ(cache.stats().leases, 3u);
    if (!forget_first) cache.invalidate(0, UINT64_MAX);
    EXPECT_EQ(cache.stats().dead_entries, 1u);
    lent.clear();
    EXPECT_EQ(cache.stats().dead_entries, 0u);
    EXPECT_EQ(cache.stats().leases, 0u);
    EXPECT_EQ(nic.count(), cache.stats().entries);
  }
}

// A thread takes and gives back while another forgets: whichever saw the other, the memory is deregistered once, and
// never while it is lent.
TEST_P(CacheThreads, ForgettingMeetsTaking) {
  FakeNic nic;
  {
    Cache cache(nic.registering(), nic.deregistering());
    std::atomic<bool> stop{false};
    std::thread forgetting([&] {
      while (!stop) cache.invalidate(0, UINT64_MAX);
    });
    for (int i = 0; i < 20'000; ++i) {
      const Lease lease = cache.acquire(device(1, 1), 1).value();
      const std::lock_guard lock(nic.mutex);
      ASSERT_TRUE(nic.live.contains(lease.lkey()));
    }
    stop = true;
    forgetting.join();
    cache.invalidate(0, UINT64_MAX);
    EXPECT_EQ(cache.stats().dead_entries, 0u);
    EXPECT_EQ(nic.count(), 0u);
  }
}

// A lease must never name a key that was given back: the NIC knows.
TEST_P(CacheThreads, WhatIsLentIsRegistered) {
  FakeNic nic;
  {
    Cache cache(nic.registering(), nic.deregistering(), {.entries = 8});
    std::atomic<bool> stop{false};
    std::thread disturber([&] {
      std::mt19937 random(1);
      while (!stop) {
        cache.invalidate((1 + random() % 16) << 20, 1 << 20);
        if (random() % 16 == 0) cache.trim();
      }
    });
    on_threads(4, [&](unsigned t) {
      std::mt19937 random(t + 7);
      for (int i = 0; i < 4'000; ++i) {
        const std::uint64_t number = 1 + random() % 16;
        const Lease lease = cache.acquire(device(number, number), 1).value();
        const std::lock_guard lock(nic.mutex);
        const auto found = nic.live.find(lease.lkey());
        ASSERT_NE(found, nic.live.end());
        ASSERT_EQ(found->second.base, number << 20);
      }
    });
    stop = true;
    disturber.join();
    EXPECT_EQ(nic.count(), cache.stats().entries);
  }
  EXPECT_EQ(nic.count(), 0u);
}

// The table grows under the readers; nobody ever registers twice what another has.
TEST_P(CacheThreads, ReadersKeepTheirFootingWhileTheTableGrows) {
  FakeNic nic;
  Cache cache(nic.registering(), nic.deregistering());
  constexpr std::uint64_t kFirst = 8;
  for (std::uint64_t i = 1; i <= kFirst; ++i) ASSERT_TRUE(cache.acquire(device(i, i), 1));
  on_threads(4, [&](unsigned t) {
    for (std::uint64_t i = 0; i < 2'000; ++i) {
      const std::uint64_t number = t == 0 ? kFirst + 1 + i : 1 + i % kFirst;
      ASSERT_TRUE(cache.acquire(device(number, number), 1));
    }
  });
  EXPECT_EQ(cache.stats().entries, kFirst + 2'000);
  EXPECT_EQ(cache.stats().registered, kFirst + 2'000);
}

}  // namespace
}  // namespace strait::keys
