// SPDX-License-Identifier: Apache-2.0
// The monitor of host memory: what it makes the cache forget, and the traps of a thread that others wait for.
//
// Where the kernel lets nobody have a userfaultfd the tests are skipped, with its sentence; that it lets nobody is
// itself checked, by the system call.
#include "keys/monitor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <vector>

#include "keys/cache.hpp"
#include "keys/fake_nic.hpp"

namespace strait::keys {
namespace {

using testing_nic::FakeNic;

std::uint64_t map_pages(std::size_t bytes, std::uint64_t at = 0) {
  void* const made = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (at != 0 ? MAP_FIXED : 0), -1, 0);
  EXPECT_NE(made, MAP_FAILED);
  return reinterpret_cast<std::uint64_t>(made);
}

void unmap(std::uint64_t at, std::size_t bytes) {
  ASSERT_EQ(::munmap(reinterpret_cast<void*>(at), bytes), 0);
}

struct MonitorTest : testing::Test {
  FakeNic nic;
  Cache cache{nic.registering(), nic.deregistering()};
  std::unique_ptr<Monitor> monitor;

  // The cache's own, unless the test has another.
  void start(Monitor::Forget forget = nullptr, Monitor::Reap reap = nullptr) {
    if (!forget) forget = [this](std::uint64_t a, std::uint64_t n) { return cache.try_forget(a, n); };
    if (!reap) reap = [this] { cache.reap(); };
    auto started = Monitor::start(std::move(forget), std::move(reap));
    if (started) {
      monitor = std::move(*started);
      return;
    }
    EXPECT_EQ(started.error().code, Code::unsupported);
    EXPECT_NE(started.error().text.find("userfaultfd"), std::string::npos);
    GTEST_SKIP() << started.error().explain();
  }
  // As a Node does with host memory.
  std::uint32_t use(std::uint64_t at, std::size_t bytes) {
    monitor->settle();
    EXPECT_TRUE(monitor->watch(at, bytes));
    const Lease lease = cache.acquire({at, bytes, 0, true}, 1).value();
    return lease.lkey();
  }
  // The worker deregisters in its own time.
  bool comes_to(std::size_t registered) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
         std::chrono::steady_clock::now() < until; std::this_thread::yield()) {
      if (nic.count() == registered) return true;
    }
    return false;
  }
};

// Nothing may hide that it does not work: user mode needs no privilege from Linux 5.11 on, so where the system call
// gives a descriptor the monitor starts, and where it gives none the kernel or a filter forbids it.
TEST_F(MonitorTest, IsThereWhereverTheKernelAllowsIt) {
  constexpr int kUserModeOnly = 1;  // UFFD_USER_MODE_ONLY
  const auto raw = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly));
  const int why = errno;
  const auto started = Monitor::start([](std::uint64_t, std::uint64_t) { return true; }, [] {});
  if (raw >= 0) {
    ::close(raw);
    ASSERT_TRUE(started) << started.error().explain();
    return;
  }
  ASSERT_TRUE(why == ENOSYS || why == EPERM || why == EINVAL) << "errno " << why;
  if (started) return;  // before 5.11, with the privilege
  EXPECT_EQ(started.error().code, Code::unsupported);
  GTEST_SKIP() << started.error().explain();
}

TEST_F(MonitorTest, UnmappedMemoryIsForgottenWhenMunmapReturns) {
  start();
  if (IsSkipped()) return;
  const std::uint64_t at = map_pages(65536);
  const std::uint32_t key = use(at, 65536);
  EXPECT_EQ(use(at, 65536), key) << "remembered";
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t before = use(at, 65536);
    unmap(at, 65536);
    ASSERT_EQ(map_pages(65536, at), at) << "the same address, other memory";
    ASSERT_NE(use(at, 65536), before) << "round " << round;
  }
  unmap(at, 65536);
  EXPECT_TRUE(comes_to(0));
  monitor->settle();
  EXPECT_EQ(cache.stats().dead_bytes, 0u);
  EXPECT_EQ(monitor->stats().overflows, 0u);
}

TEST_F(MonitorTest, EveryWayMemoryGoesAway) {
  start();
  if (IsSkipped()) return;
  const std::uint64_t at = map_pages(1 << 20);
  const auto used_anew = [&](const char* how) {
    const std::uint32_t key = use(at, 8192);
    EXPECT_EQ(use(at, 8192), key) << how;
    return key;
  };
  std::uint32_t key = used_anew("first");
  map_pages(1 << 20, at);  // mapped over
  EXPECT_NE(use(at, 8192), key);
  key = used_anew("after MAP_FIXED");
  ASSERT_EQ(::madvise(reinterpret_cast<void*>(at), 4096, MADV_DONTNEED), 0);
  EXPECT_NE(use(at, 8192), key) << "the pages were given back";
  key = used_anew("after madvise");
  const std::uint64_t elsewhere = map_pages(1 << 20);
  ASSERT_NE(::mremap(reinterpret_cast<void*>(at), 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED,
                     reinterpret_cast<void*>(elsewhere)),
            MAP_FAILED);
  map_pages(8192, at);
  EXPECT_NE(use(at, 8192), key) << "the pages moved";
  key = used_anew("after mremap");
  unmap(at + 4096, 4096);  // in the middle
  ASSERT_EQ(map_pages(4096, at + 4096), at + 4096);
  EXPECT_NE(use(at, 8192), key);
  unmap(at, 1 << 20);
  unmap(elsewhere, 1 << 20);
  EXPECT_TRUE(comes_to(0));
}

// A thread that holds the cache's lock, or any other that forgetting needs, is stuck in munmap until its event is read.
// A monitor that waited for the lock would never read it. More unmappings than the monitor can note, too.
TEST_F(MonitorTest, AThreadStuckInMunmapWithTheLockIsLetGo) {
  std::mutex lock;  // stands for whatever forgetting needs
  std::atomic<int> forgotten{0};
  start(
      [&](std::uint64_t, std::uint64_t) {
        const std::unique_lock mine(lock, std::try_to_lock);
        if (mine.owns_lock()) ++forgotten;
        return mine.owns_lock();
      },
      [] {});
  if (IsSkipped()) return;
  constexpr int kRanges = 1000;
  std::vector<std::uint64_t> ranges;
  for (int i = 0; i < kRanges; ++i) {
    ranges.push_back(map_pages(4096));
    ASSERT_TRUE(monitor->watch(ranges.back(), 4096));
  }
  {
    const std::lock_guard held(lock);
    for (const std::uint64_t at : ranges) unmap(at, 4096);  // each waits for the monitor, and it for us
    EXPECT_EQ(forgotten, 0);
  }
  monitor->settle();
  EXPECT_GT(forgotten, 0);
  EXPECT_EQ(monitor->stats().overflows, 1u) << "too many to note: everything was forgotten";
}

// The allocator holds its own lock while it gives memory back: a monitor that allocated could wait for that.
TEST_F(MonitorTest, TheHeapMayShrink) {
  start();
  if (IsSkipped()) return;
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < 64; ++i) blocks.push_back(std::malloc(100'000));  // below what malloc maps by itself
    for (void* block : blocks) use(reinterpret_cast<std::uint64_t>(block), 100'000);
    for (void* block : blocks) std::free(block);
    ::malloc_trim(0);
  }
  monitor->settle();
  cache.invalidate(0, UINT64_MAX);
  EXPECT_TRUE(comes_to(0));
}

// Deregistering unmaps watched memory: the worker waits for the reader, never for itself.
TEST_F(MonitorTest, DeregisteringMayUnmap) {
  Cache owning(
      [&](const Allocation&, std::uint32_t) -> Result<Registration> {
        Registration made;
        const std::uint64_t at = map_pages(8192);
        EXPECT_TRUE(monitor->watch(at, 8192));
        made.keep = std::shared_ptr<void>(reinterpret_cast<void*>(at), [](void* p) { ::munmap(p, 8192); });
        return made;
      },
      [](const Registration&) {});
  start([&](std::uint64_t a, std::uint64_t n) { return owning.try_forget(a, n); }, [&] { owning.reap(); });
  if (IsSkipped()) return;
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t at = map_pages(4096);
    monitor->settle();  // the address may have been another range's
    ASSERT_TRUE(monitor->watch(at, 4096));
    ASSERT_TRUE(owning.acquire({at, 4096, 0, true}, 1));
    unmap(at, 4096);
  }
  owning.invalidate(0, UINT64_MAX);
  monitor.reset();
  EXPECT_EQ(owning.stats().deregistered, 50u);
}

// A registration that something else was forgotten beside is used once and not remembered: it lives as long as its
// loan.
TEST_F(MonitorTest, ManyThreadsUnmapAndUse) {
  start();
  if (IsSkipped()) return;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const std::uint64_t at = map_pages(8192);
        monitor->settle();
        ASSERT_TRUE(monitor->watch(at, 8192));
        {
          const Lease lease = cache.acquire({at, 8192, 0, true}, 1).value();
          const std::lock_guard lock(nic.mutex);
          ASSERT_EQ(nic.live.count(lease.lkey()), 1u);
        }
        unmap(at, 8192);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_TRUE(comes_to(0));
}

TEST_F(MonitorTest, AForkedChildMayUnmapWithoutTheMonitor) {
  start();
  if (IsSkipped()) return;
  const std::uint64_t at = map_pages(8192);
  use(at, 8192);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::munmap(reinterpret_cast<void*>(at), 8192);
    const bool refused = !monitor->watch(at, 8192);
    monitor->settle();
    monitor.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(nic.count(), 1u) << "the parent's registration stands";
  unmap(at, 8192);
  EXPECT_TRUE(comes_to(0));
}

TEST_F(MonitorTest, WhatCannotBeWatchedIsRefused) {
  start();
  if (IsSkipped()) return;
  EXPECT_FALSE(monitor->watch(0x1000, 4096)) << "nothing is mapped there";
  EXPECT_EQ(monitor->stats().unwatched, 1u);
}

}  // namespace
}  // namespace strait::keys
