// SPDX-License-Identifier: Apache-2.0
// Guarded pages: a touch is noted once and works, everything is readable again afterwards, and a fault that is nobody's
// still ends the process.
#include "sys/guard.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "sys/mapping.hpp"

namespace strait::sys {
namespace {

// Pages of its own, so that no neighbour of a test is ever behind a guard.
struct Pages {
  explicit Pages(std::size_t n) : bytes(n * page_bytes()) {
    at = static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Pages() { ::munmap(at, bytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::size_t bytes;
  std::byte* at;
};

std::byte look(const std::byte* at) {
  return *static_cast<const volatile std::byte*>(at);
}

const int kMe = 0, kOther = 0;  // owners are addresses

TEST(Guard, ATouchIsNotedAndWorks) {
  catch_guarded_reads();
  Pages pages(4);
  pages.at[5000] = std::byte{7};
  guard_pages(&kMe, pages.at, pages.bytes, 42);
  EXPECT_EQ(look(pages.at + 5000), std::byte{7});
  EXPECT_EQ(look(pages.at), std::byte{0});  // the first touch has opened all of it
  GuardedRead seen{};
  EXPECT_FALSE(take_guarded_read(&kOther, seen));
  ASSERT_TRUE(take_guarded_read(&kMe, seen));
  EXPECT_EQ(seen.address, reinterpret_cast<std::uint64_t>(pages.at));
  EXPECT_EQ(seen.length, pages.bytes);
  EXPECT_EQ(seen.offset, 5000u);
  EXPECT_EQ(seen.tag, 42u);
  EXPECT_FALSE(take_guarded_read(&kMe, seen));
  unguard_pages(&kMe, pages.at, pages.bytes);
}

TEST(Guard, OnlyWholePagesInsideTheRange) {
  catch_guarded_reads();
  Pages pages(3);
  const std::size_t page = page_bytes();
  guard_pages(&kMe, pages.at + 1, 2 * page, 1);  // page 1 alone lies inside
  EXPECT_EQ(look(pages.at), std::byte{0});
  EXPECT_EQ(look(pages.at + 2 * page), std::byte{0});
  GuardedRead seen{};
  EXPECT_FALSE(take_guarded_read(&kMe, seen));
  pages.at[page] = std::byte{1};  // writing is touching too
  EXPECT_TRUE(take_guarded_read(&kMe, seen));
  unguard_pages(&kMe, pages.at + 1, 2 * page);
  guard_pages(&kMe, pages.at + 1, page, 1);  // no whole page at all
  EXPECT_EQ(look(pages.at + page), std::byte{1});
  EXPECT_FALSE(take_guarded_read(&kMe, seen));
  unguard_pages(&kMe, pages.at + 1, page);
}

TEST(Guard, LettingGoMakesItReadable) {
  catch_guarded_reads();
  Pages pages(2);
  for (int i = 0; i < 300; ++i) {  // more often than there are slots
    guard_pages(&kMe, pages.at, pages.bytes, 1);
    unguard_pages(&kMe, pages.at, pages.bytes);
    EXPECT_EQ(look(pages.at), std::byte{0});
  }
  GuardedRead seen{};
  EXPECT_FALSE(take_guarded_read(&kMe, seen));
}

TEST(Guard, WhoMayTouchOpensThemAndIsNotNoted) {
  catch_guarded_reads();
  Pages pages(4);
  const std::size_t page = page_bytes();
  GuardedRead seen{};
  guard_pages(&kMe, pages.at, 2 * page, 1);
  guard_pages(&kOther, pages.at + 2 * page, 2 * page, 2);
  open_guarded_pages(pages.at + page, page);  // next to the other range, and not in it
  EXPECT_EQ(look(pages.at), std::byte{0});
  EXPECT_FALSE(take_guarded_read(&kMe, seen));
  EXPECT_EQ(look(pages.at + 2 * page), std::byte{0});
  EXPECT_TRUE(take_guarded_read(&kOther, seen));
  unguard_pages(&kMe, pages.at, 2 * page);
  unguard_pages(&kOther, pages.at + 2 * page, 2 * page);
}

TEST(Guard, ATouchByAnotherHandIsNotedToo) {
  catch_guarded_reads();
  Pages pages(3);
  const std::size_t page = page_bytes();
  GuardedRead seen{};
  guard_pages(&kMe, pages.at + 10, 2 * page, 3);  // page 1
  touch_guarded_pages(pages.at, page);
  EXPECT_FALSE(take_guarded_read(&kMe, seen));
  touch_guarded_pages(pages.at, page + 1);
  ASSERT_TRUE(take_guarded_read(&kMe, seen));
  EXPECT_EQ(seen.offset, page - 10);
  EXPECT_EQ(seen.tag, 3u);
  EXPECT_EQ(look(pages.at + page), std::byte{0});
  EXPECT_FALSE(take_guarded_read(&kMe, seen));
  unguard_pages(&kMe, pages.at + 10, 2 * page);
}

TEST(Guard, MoreRangesThanThereIsRoomForAreLeftAlone) {
  catch_guarded_reads();
  constexpr std::size_t kMany = 100;
  Pages pages(kMany);
  const std::size_t page = page_bytes();
  for (std::size_t i = 0; i < kMany; ++i) guard_pages(&kMe, pages.at + i * page, page, i);
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(look(pages.at + i * page), std::byte{0});
  GuardedRead seen{};
  std::size_t noted = 0;
  while (take_guarded_read(&kMe, seen)) ++noted;
  EXPECT_EQ(noted, 64u);
  for (std::size_t i = 0; i < kMany; ++i) unguard_pages(&kMe, pages.at + i * page, page);
}

// A reader that faults just before the pages are let go, and whose handler runs just after, must not die of it.
TEST(Guard, ReadersRaceWithLettingGo) {
  catch_guarded_reads();
  Pages pages(1);
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) (void)__atomic_load_n(reinterpret_cast<const unsigned char*>(pages.at), __ATOMIC_RELAXED);
    });
  }
  GuardedRead seen{};
  for (int i = 0; i < 2000; ++i) {
    guard_pages(&kMe, pages.at, pages.bytes, 1);
    unguard_pages(&kMe, pages.at, pages.bytes);
    while (take_guarded_read(&kMe, seen)) {
    }
  }
  stop = true;
  for (auto& reader : readers) reader.join();
}

// The handler is installed once a process, and the tests above have done so: started again, this program is a process
// where it is installed by what the child does.
class GuardDeath : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  // The next suite was not set up for it: its re-run child would fork once more and end well.
  static void TearDownTestSuite() { GTEST_FLAG_SET(death_test_style, "fast"); }
  static void begin() {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(SIGSEGV, SIG_DFL);
    catch_guarded_reads();
  }
};

TEST_F(GuardDeath, AnotherFaultStillEndsTheProcess) {
  EXPECT_EXIT(
      {
        begin();
        Pages pages(1);
        ::mprotect(pages.at, pages.bytes, PROT_NONE);
        (void)look(pages.at);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(GuardDeath, SoDoesASignalThatWasSent) {
  EXPECT_EXIT(
      {
        begin();
        ::raise(SIGSEGV);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(GuardDeath, SoDoesMemoryThatIsGoneAfterTheGuard) {
  EXPECT_EXIT(
      {
        begin();
        Pages pages(1);
        guard_pages(&kMe, pages.at, pages.bytes, 1);
        unguard_pages(&kMe, pages.at, pages.bytes);
        ::munmap(pages.at, pages.bytes);
        (void)look(pages.at);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(GuardDeath, AndMemoryThatIsGoneUnderTheGuard) {
  EXPECT_EXIT(
      {
        begin();
        // A hole of one page between others: too small for whatever else in the process maps memory.
        Pages pages(3);
        guard_pages(&kMe, pages.at, pages.bytes, 1);
        ::munmap(pages.at + pages.bytes / 3, pages.bytes / 3);
        (void)look(pages.at + pages.bytes / 3);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(GuardDeath, TheHandlerThatWasThereIsAsked) {
  EXPECT_EXIT(
      {
        struct sigaction action {};
        action.sa_handler = [](int) { ::_exit(77); };
        ::sigaction(SIGSEGV, &action, nullptr);
        catch_guarded_reads();
        Pages pages(1);
        ::mprotect(pages.at, pages.bytes, PROT_NONE);
        (void)look(pages.at);
      },
      ::testing::ExitedWithCode(77), "");
}

// A program that takes the signal for itself later does not get our faults.
TEST_F(GuardDeath, AHandlerInstalledLaterKeepsTheGuardsAway) {
  EXPECT_EXIT(
      {
        begin();
        struct sigaction action {};
        action.sa_handler = [](int) { ::_exit(77); };
        ::sigaction(SIGSEGV, &action, nullptr);
        Pages pages(1);
        guard_pages(&kMe, pages.at, pages.bytes, 1);
        (void)look(pages.at);
        ::_exit(5);
      },
      ::testing::ExitedWithCode(5), "");
}

}  // namespace
}  // namespace strait::sys
