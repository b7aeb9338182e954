// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/accelerator.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "soft/accel/testing.hpp"
#include "sys/clock.hpp"
#include "sys/files.hpp"

namespace strait::soft::accel {
namespace {

using testing::count;
using testing::finish;
using testing::host;
using testing::pattern;

constexpr std::uint64_t kMiB = 1 << 20;

class AcceleratorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fds_before_ = sys::count_open_fds();
    soft_ = Accelerator::open("devices=2,memory=16777216,udmabuf=off").value();
  }
  void TearDown() override {
    soft_.reset();
    EXPECT_EQ(sys::count_open_fds(), fds_before_);
  }
  std::uint64_t make(std::uint64_t length_bytes, std::uint32_t device = 0) {
    return soft_->allocate(device, length_bytes).value();
  }
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t n) { finish(*soft_, soft_->copy(to, from, n).value()); }
  std::vector<std::byte> read_back(std::uint64_t from, std::uint64_t n) {
    std::vector<std::byte> bytes(n);
    copy(host(bytes), from, n);
    return bytes;
  }

  int fds_before_ = 0;
  std::unique_ptr<Accelerator> soft_;
};

TEST_F(AcceleratorTest, ClassifiesFirstAndLastByteAndNothingAround) {
  const std::uint64_t base = make(10'000, 1);
  strait_claim claim{};
  ASSERT_TRUE(soft_->classify(base, claim));
  EXPECT_EQ(claim.base, base);
  EXPECT_EQ(claim.length_bytes, 10'000u);
  EXPECT_EQ(claim.device, 1u);
  EXPECT_NE(claim.identity, 0u);
  EXPECT_NE(claim.capabilities & STRAIT_CAN_EXPORT_DMABUF, 0u);
  EXPECT_EQ(claim.capabilities & STRAIT_CPU_ACCESSIBLE, 0u);
  EXPECT_TRUE(soft_->classify(base + 9'999, claim));
  EXPECT_FALSE(soft_->classify(base + 10'000, claim)) << "the rest of the last page is nobody's";
  EXPECT_FALSE(soft_->classify(base + 12'288, claim));
  EXPECT_FALSE(soft_->classify(base - 1, claim));
  EXPECT_FALSE(soft_->classify(0, claim));
  EXPECT_FALSE(soft_->classify(UINT64_MAX, claim));
  EXPECT_FALSE(soft_->classify(reinterpret_cast<std::uint64_t>(&claim), claim));
}

TEST_F(AcceleratorTest, NeighboursDoNotTouch) {
  const std::uint64_t first = make(4096);
  const std::uint64_t second = make(4096);
  EXPECT_GE(second, first + 2 * 4096) << "one past the end must not be the next allocation";
}

// Against a plain list, while allocations of many sizes come and go.
TEST_F(AcceleratorTest, ManyAllocationsAreFoundByEveryEdge) {
  std::map<std::uint64_t, std::uint64_t> live;
  std::uint32_t state = 7;
  const auto random = [&state] { return (state = state * 1664525u + 1013904223u) >> 8; };
  const auto check_all = [&] {
    for (const auto& [base, n] : live) {
      strait_claim claim{};
      for (const std::uint64_t address : {base, base + n / 2, base + n - 1}) {
        ASSERT_TRUE(soft_->classify(address, claim));
        ASSERT_EQ(claim.base, base);
        ASSERT_EQ(claim.length_bytes, n);
      }
      ASSERT_FALSE(soft_->classify(base + n, claim));
      ASSERT_FALSE(soft_->classify(base - 1, claim));
    }
  };
  for (int turn = 0; turn < 400; ++turn) {
    if (live.size() > 60 || (!live.empty() && random() % 3 == 0)) {
      const auto victim = std::next(live.begin(), random() % live.size());
      ASSERT_TRUE(soft_->free(victim->first));
      live.erase(victim);
    } else {
      const std::uint64_t n = 1 + random() % 150'000;
      live.emplace(make(n), n);
    }
    if (turn % 20 == 0) check_all();
  }
  check_all();
  EXPECT_EQ(count(*soft_, "live_allocations"), live.size());
}

TEST_F(AcceleratorTest, AReusedAddressHasANewIdentity) {
  const std::uint64_t first = make(kMiB);
  strait_claim before{};
  ASSERT_TRUE(soft_->classify(first, before));
  ASSERT_TRUE(soft_->free(first));
  strait_claim after{};
  EXPECT_FALSE(soft_->classify(first, after)) << "freed memory is nobody's";
  ASSERT_EQ(make(kMiB), first);
  ASSERT_TRUE(soft_->classify(first, after));
  EXPECT_NE(after.identity, before.identity);
}

TEST_F(AcceleratorTest, ReusedMemoryIsEmpty) {
  const auto bytes = pattern(8192);
  const std::uint64_t first = make(8192);
  copy(first, host(bytes), bytes.size());
  ASSERT_TRUE(soft_->free(first));
  ASSERT_EQ(make(8192), first);
  EXPECT_EQ(read_back(first, 8192), std::vector<std::byte>(8192));
}

TEST_F(AcceleratorTest, LargeAllocationsSitOnHugePages) {
  EXPECT_EQ(make(3 * kMiB) % (2 * kMiB), 0u);
}

TEST_F(AcceleratorTest, CpuAccessDiesOfSegv) {
  const std::uint64_t base = make(4096);
  for (const bool freed : {false, true}) {
    if (freed) {
      ASSERT_TRUE(soft_->free(base));
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would catch it
      ::_exit(*reinterpret_cast<volatile char*>(base));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "freed: " << freed;
    EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  }
}

// Inline size, one more than that, a huge page and some.
TEST_F(AcceleratorTest, CopiesToDeviceAcrossDevicesAndBack) {
  for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{4097}, 2 * kMiB + 13}) {
    const auto bytes = pattern(n);
    const std::uint64_t a = make(n, 0);
    const std::uint64_t b = make(n, 1);
    copy(a, host(bytes), n);
    copy(b, a, n);
    EXPECT_EQ(read_back(b, n), bytes) << n;
  }
  EXPECT_EQ(count(*soft_, "copies"), 12u);
  EXPECT_EQ(count(*soft_, "copies_done"), 12u);
  EXPECT_EQ(count(*soft_, "bytes_copied"), 3 * (1 + 4096 + 4097 + 2 * kMiB + 13));
}

TEST_F(AcceleratorTest, OverlappingCopyMovesLikeMemmove) {
  auto bytes = pattern(100'000);
  const std::uint64_t base = make(bytes.size());
  copy(base, host(bytes), bytes.size());
  copy(base + 7, base, bytes.size() - 7);
  std::memmove(bytes.data() + 7, bytes.data(), bytes.size() - 7);
  EXPECT_EQ(read_back(base, bytes.size()), bytes);
}

// A small copy that follows a large one must not overtake it: the engine works in order.
TEST_F(AcceleratorTest, SmallCopiesDoNotOvertake) {
  const auto large = pattern(8 * kMiB);
  const std::byte mark{0x5a};
  const std::uint64_t base = make(large.size());
  for (int turn = 0; turn < 10; ++turn) {
    const auto first = soft_->copy(base, host(large), large.size());
    ASSERT_TRUE(first);
    const auto second = soft_->copy(base + large.size() - 1, reinterpret_cast<std::uint64_t>(&mark), 1);
    ASSERT_TRUE(second);
    finish(*soft_, *second);
    EXPECT_EQ(soft_->copy_done(*first), 1) << "later work is done, so earlier work is";
    EXPECT_EQ(read_back(base + large.size() - 1, 1).front(), mark);
  }
}

TEST_F(AcceleratorTest, ATicketNobodyGaveIsAnError) {
  EXPECT_LT(soft_->copy_done(99), 0);
}

TEST_F(AcceleratorTest, CopiesOutOfBoundsAreRefused) {
  const std::uint64_t base = make(1000);
  std::vector<std::byte> bytes(5000);
  const struct {
    std::uint64_t to, from, n;
    const char* says;
  } cases[] = {
      {base, host(bytes), 1001, "end 1 bytes past the allocation of 1000 bytes"},
      {host(bytes), base + 999, 2, "end 1 bytes past"},
      {base, host(bytes), UINT64_MAX, "past the allocation"},
      {base + 1000, host(bytes), 1, "freed, or never allocated"},
      {host(bytes), host(bytes) + 2000, 10, "neither"},
      {base, 0, 10, "null address"},
      {base, UINT64_MAX - 3, 10, "wrap around"},
  };
  for (const auto& each : cases) {
    const auto refused = soft_->copy(each.to, each.from, each.n);
    ASSERT_FALSE(refused) << each.says;
    EXPECT_EQ(refused.error().code, Code::invalid);
    EXPECT_NE(refused.error().text.find(each.says), std::string::npos) << refused.error().text;
  }
  EXPECT_EQ(count(*soft_, "copies_refused"), std::size(cases));
  EXPECT_EQ(count(*soft_, "bytes_copied"), 0u);
}

TEST_F(AcceleratorTest, FreedWhileACopyIsQueuedIsSafe) {
  const auto bytes = pattern(4 * kMiB);
  const std::uint64_t base = make(bytes.size());
  const auto ticket = soft_->copy(base, host(bytes), bytes.size());
  ASSERT_TRUE(ticket);
  ASSERT_TRUE(soft_->free(base));
  finish(*soft_, *ticket);
}

TEST_F(AcceleratorTest, WrongFreesAreRefused) {
  const std::uint64_t base = make(8192);
  int on_the_stack = 0;
  EXPECT_NE(soft_->free(base + 1).error().text.find("free takes the first byte"), std::string::npos);
  ASSERT_TRUE(soft_->free(base));
  EXPECT_NE(soft_->free(base).error().text.find("freed already"), std::string::npos);
  EXPECT_NE(
      soft_->free(reinterpret_cast<std::uint64_t>(&on_the_stack)).error().text.find("not memory of a soft device"),
      std::string::npos);
  EXPECT_EQ(count(*soft_, "frees"), 1u);
}

TEST_F(AcceleratorTest, AnExhaustedPoolSaysHowMuchIsLeft) {
  const std::uint64_t most = make(12 * kMiB);
  const auto refused = soft_->allocate(0, 5 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::limit);
  EXPECT_EQ(refused.error().text, "soft:0 has 4194304 of its 16777216 bytes left, 5242880 were asked for");
  EXPECT_TRUE(soft_->allocate(1, 5 * kMiB)) << "the other device has its own memory";
  ASSERT_TRUE(soft_->free(most));
  EXPECT_TRUE(soft_->allocate(0, 16 * kMiB));
  for (const std::uint64_t huge : {std::uint64_t{1} << 31, UINT64_MAX, UINT64_MAX - 4095}) {
    EXPECT_EQ(soft_->allocate(0, huge).error().code, Code::limit) << huge;
  }
  EXPECT_EQ(soft_->allocate(0, 0).error().code, Code::invalid);
  EXPECT_EQ(soft_->allocate(2, 1).error().code, Code::invalid);
}

TEST_F(AcceleratorTest, AnotherProcessSeesWhatTheDeviceCopied) {
  const auto bytes = pattern(3 * 4096);
  const std::uint64_t base = make(4 * 4096);
  const auto exported = soft_->export_fd(base + 4096, bytes.size());
  ASSERT_TRUE(exported);
  EXPECT_EQ(exported->offset, 4096u);
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char token = 0;
    auto mapped = sys::map_file(exported->fd, 4096, bytes.size(), sys::Protect::read_write);
    if (!mapped || ::read(go[0], &token, 1) != 1) ::_exit(2);
    const bool same = std::memcmp(mapped->data(), bytes.data(), bytes.size()) == 0;
    mapped->data()[5] = std::byte{0xee};
    ::_exit(same ? 0 : 1);
  }
  copy(base + 4096, host(bytes), bytes.size());  // after the child mapped or while it does: the pages are the same
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(read_back(base + 4096 + 5, 1).front(), std::byte{0xee})
      << "and the device sees what the other process wrote";
  soft_->close_fd(exported->fd);
  ::close(go[0]);
  ::close(go[1]);
}

TEST_F(AcceleratorTest, ExportsAreSealedAgainstShrinking) {
  const std::uint64_t base = make(10'000);
  const auto exported = soft_->export_fd(base, 10'000);
  ASSERT_TRUE(exported);
  EXPECT_TRUE(sys::check_sealed(exported->fd, 10'000));
  EXPECT_EQ(::ftruncate(exported->fd, 0), -1);
  EXPECT_EQ(::ftruncate(exported->fd, 1 << 20), -1);
  EXPECT_NE(::fcntl(exported->fd, F_GETFD) & FD_CLOEXEC, 0);
  soft_->close_fd(exported->fd);
}

// As measured on hardware: free succeeds, and the memory is gone only with the last descriptor.
TEST_F(AcceleratorTest, AnOpenDescriptorKeepsTheMemory) {
  const auto bytes = pattern(16 * kMiB);
  const std::uint64_t base = make(16 * kMiB);
  copy(base, host(bytes), bytes.size());
  const auto one = soft_->export_fd(base, 16 * kMiB);
  const auto two = soft_->export_fd(base, 4096);
  ASSERT_TRUE(one && two);
  ASSERT_TRUE(soft_->free(base));
  {
    const auto mapped = sys::map_file(one->fd, 0, bytes.size(), sys::Protect::read);
    ASSERT_TRUE(mapped);
    EXPECT_EQ(std::memcmp(mapped->data(), bytes.data(), bytes.size()), 0);
  }
  soft_->close_fd(one->fd);
  EXPECT_EQ(soft_->allocate(0, 4096).error().code, Code::limit) << "the second descriptor still holds it";
  soft_->close_fd(two->fd);
  EXPECT_TRUE(soft_->allocate(0, 16 * kMiB));
}

TEST_F(AcceleratorTest, BadExportsAndCloses) {
  const std::uint64_t base = make(4096);
  EXPECT_EQ(soft_->export_fd(base, 4097).error().code, Code::invalid);
  EXPECT_EQ(soft_->export_fd(base, 0).error().code, Code::invalid);
  EXPECT_EQ(soft_->export_fd(base + 4096, 1).error().code, Code::invalid);
  EXPECT_EQ(soft_->export_fd(1, 1).error().code, Code::invalid);
  const auto exported = soft_->export_fd(base, 1);
  ASSERT_TRUE(exported);
  soft_->close_fd(exported->fd);
  const int reused = ::dup(0);  // takes the number that was just given back
  ASSERT_EQ(reused, exported->fd);
  soft_->close_fd(exported->fd);
  EXPECT_NE(::fcntl(reused, F_GETFD), -1) << "closing twice must not close somebody else's file";
  ::close(reused);
  EXPECT_EQ(count(*soft_, "bad_fd_closes"), 1u);
}

TEST_F(AcceleratorTest, CountersBalance) {
  const std::uint64_t a = make(4096);
  const std::uint64_t b = make(4096, 1);
  const auto fd = soft_->export_fd(a, 4096);
  ASSERT_TRUE(fd);
  EXPECT_EQ(count(*soft_, "live_allocations"), 2u);
  EXPECT_EQ(count(*soft_, "live_fds"), 1u);
  EXPECT_EQ(count(*soft_, "used_bytes"), 8192u);
  soft_->close_fd(fd->fd);
  ASSERT_TRUE(soft_->free(a));
  ASSERT_TRUE(soft_->free(b));
  EXPECT_EQ(count(*soft_, "allocations"), count(*soft_, "frees"));
  EXPECT_EQ(count(*soft_, "exports"), count(*soft_, "fd_closes"));
  EXPECT_EQ(count(*soft_, "live_allocations"), 0u);
  EXPECT_EQ(count(*soft_, "live_fds"), 0u);
  EXPECT_EQ(count(*soft_, "used_bytes"), 0u);
}

TEST_F(AcceleratorTest, ClosingCountsWhatWasLeftBehind) {
  const auto before = Accelerator::process_counters();
  auto other = Accelerator::open("devices=1,memory=1048576,udmabuf=off").value();
  const std::uint64_t base = other->allocate(0, 4096).value();
  const auto fd = other->export_fd(base, 4096);
  ASSERT_TRUE(fd);
  other.reset();
  const auto after = Accelerator::process_counters();
  for (const char* name : {"opens", "closes", "leaked_allocations", "leaked_fds"}) {
    EXPECT_EQ(testing::number_in(after, name), testing::number_in(before, name) + 1) << name;
  }
  EXPECT_TRUE(sys::check_sealed(fd->fd, 4096)) << "the descriptor is the caller's and stays good";
  ::close(fd->fd);
}

TEST_F(AcceleratorTest, InAForkedChildEverythingIsGone) {
  const std::uint64_t base = make(4 * kMiB);
  const auto bytes = pattern(4 * kMiB);
  copy(base, host(bytes), bytes.size());  // the worker thread exists now
  const pid_t child = ::fork();
  if (child == 0) {
    strait_claim claim{};
    strait_device_info info{};
    const bool gone = soft_->allocate(0, 1).error().code == Code::gone &&
                      soft_->free(base).error().code == Code::gone &&
                      soft_->copy(base, host(bytes), 1).error().code == Code::gone &&
                      soft_->export_fd(base, 1).error().code == Code::gone &&
                      soft_->device_info(0, info).error().code == Code::gone &&
                      soft_->copy_done(1) == -static_cast<int>(Code::gone) && !soft_->classify(base, claim) &&
                      soft_->counters().empty();
    soft_->close_fd(0);
    soft_.reset();  // neither hangs nor aborts
    ::_exit(gone ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(read_back(base, bytes.size()), bytes) << "the parent's is untouched";
}

// Finds, while others come and go, its own allocation and never a torn answer. Run under TSan.
TEST_F(AcceleratorTest, ClassifyWhileOthersAllocateAndFree) {
  const std::uint64_t mine = make(64 * 1024);
  strait_claim expected{};
  ASSERT_TRUE(soft_->classify(mine, expected));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t n = 4096u << (i % 5);
        const auto made = soft_->allocate(t, n);
        ASSERT_TRUE(made);
        std::byte byte{static_cast<unsigned char>(i)};
        finish(*soft_, soft_->copy(*made + n - 1, reinterpret_cast<std::uint64_t>(&byte), 1).value());
        strait_claim claim{};
        EXPECT_TRUE(soft_->classify(*made + n - 1, claim));
        EXPECT_EQ(claim.base, *made);
        EXPECT_EQ(claim.length_bytes, n);
        ASSERT_TRUE(soft_->free(*made));
      }
      stop = true;
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      strait_claim claim{};
      ASSERT_TRUE(soft_->classify(mine + 100, claim));
      EXPECT_EQ(std::memcmp(&claim, &expected, sizeof claim), 0);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count(*soft_, "live_allocations"), 1u);
}

// ---- running out of things ------------------------------------------------------------------------------------------

int no_memfd(const char*, unsigned) {
  return errno = EMFILE, -1;
}
int no_ftruncate(int, off_t) {
  return errno = ENOSPC, -1;
}
int g_mmaps_left = 0;
void* few_mmaps(void* at, std::size_t n, int prot, int flags, int fd, off_t offset) {
  if (g_mmaps_left-- <= 0) return errno = ENOMEM, MAP_FAILED;
  return ::mmap(at, n, prot, flags, fd, offset);
}

TEST(AcceleratorLimits, AFailingSystemCallLeavesNothingBehind) {
  const int fds_before = sys::count_open_fds();
  sys::Calls calls = sys::real_calls();
  calls.mmap = few_mmaps;
  g_mmaps_left = 1;
  auto soft = Accelerator::open("devices=1,memory=16777216,udmabuf=off", calls).value();
  const auto expect_limit = [&](const char* what) {
    const int fds = sys::count_open_fds();
    const auto refused = soft->allocate(0, 4 * kMiB);
    ASSERT_FALSE(refused) << what;
    EXPECT_EQ(refused.error().code, Code::limit) << what;
    EXPECT_NE(refused.error().sys_errno, 0) << what;
    EXPECT_EQ(sys::count_open_fds(), fds) << what;
    EXPECT_EQ(count(*soft, "used_bytes"), 0u) << what;
    EXPECT_EQ(count(*soft, "live_allocations"), 0u) << what;
  };
  g_mmaps_left = 0;
  expect_limit("no addresses");
  g_mmaps_left = 1;  // the reservation works, the mapping does not
  expect_limit("no mapping");
  g_mmaps_left = 1000;
  calls.memfd_create = no_memfd;
  expect_limit("no descriptors");
  calls.memfd_create = sys::real_calls().memfd_create;
  calls.ftruncate = no_ftruncate;
  expect_limit("no memory");
  calls.ftruncate = sys::real_calls().ftruncate;
  EXPECT_TRUE(soft->allocate(0, 16 * kMiB)) << "all of it is still there";
  soft.reset();
  EXPECT_EQ(sys::count_open_fds(), fds_before);
  g_mmaps_left = 1;
  EXPECT_EQ(Accelerator::open("devices=2,udmabuf=off", calls).error().code, Code::limit);
  EXPECT_EQ(sys::count_open_fds(), fds_before);
}

TEST(AcceleratorLimits, OutOfDescriptors) {
  auto soft = Accelerator::open("devices=1,udmabuf=off").value();
  const std::uint64_t base = soft->allocate(0, 4096).value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int fds = sys::count_open_fds();
  rlimit none = before;
  const int lowest = ::dup(0);
  ::close(lowest);
  none.rlim_cur = static_cast<rlim_t>(lowest);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto memory = soft->allocate(0, 4096);
  const auto exported = soft->export_fd(base, 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Code::limit);
  EXPECT_EQ(memory.error().sys_errno, EMFILE);
  ASSERT_FALSE(exported);
  EXPECT_EQ(exported.error().code, Code::limit);
  EXPECT_EQ(sys::count_open_fds(), fds);
  EXPECT_EQ(count(*soft, "live_fds"), 0u);
  EXPECT_EQ(count(*soft, "used_bytes"), 4096u);
}

// ---- configuration --------------------------------------------------------------------------------------------------

TEST(AcceleratorConfig, DeviceThatCannotExport) {
  auto soft = Accelerator::open("export=0,devices=1").value();
  const std::uint64_t base = soft->allocate(0, 4096).value();
  strait_claim claim{};
  ASSERT_TRUE(soft->classify(base, claim));
  EXPECT_EQ(claim.capabilities & STRAIT_CAN_EXPORT_DMABUF, 0u);
  const auto refused = soft->export_fd(base, 4096);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_EQ(count(*soft, "exports"), 0u);
}

TEST(AcceleratorConfig, DefaultsAndInfo) {
  auto soft = Accelerator::open("udmabuf=off").value();
  ASSERT_EQ(soft->device_count(), 2u);
  strait_device_info info{};
  ASSERT_TRUE(soft->device_info(1, info));
  EXPECT_STREQ(info.name, "soft:1");
  EXPECT_STREQ(info.description, "software accelerator, exports sealed memfd");
  EXPECT_EQ(info.memory_bytes, 256 * kMiB);
  EXPECT_EQ(info.software, 1u);
  EXPECT_FALSE(soft->device_info(2, info));
}

TEST(AcceleratorConfig, BadSettingsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"devices=0", "devices=\"0\" is not a number from 1 to 64"},
      {"devices=65", "from 1 to 64"},
      {"devices=2x", "\"2x\""},
      {"memory=100", "from 4096"},
      {"memory=99999999999999999999999", "is not a number"},
      {"export=2", "from 0 to 1"},
      {"colour=red", "there is no setting \"colour\""},
      {"devices", "\"devices\" is not name=value"},
      {"devices=1,,", "\"\" is not name=value"},
      {"udmabuf=", "a device path, or off"},
  };
  for (const auto& [text, says] : cases) {
    const auto opened = Accelerator::open(text);
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().code, Code::invalid);
    EXPECT_NE(opened.error().text.find(says), std::string::npos) << opened.error().text;
  }
}

// A path that is no udmabuf: the reason is kept and exports fall back to the memfd.
TEST(AcceleratorConfig, WithoutUdmabufTheMemfdIsExported) {
  for (const char* path : {"/nowhere/udmabuf", "/dev/null"}) {
    auto soft = Accelerator::open(fmt::format("devices=1,udmabuf={}", path)).value();
    EXPECT_NE(soft->no_udmabuf_because().find(path), std::string::npos) << soft->no_udmabuf_because();
    const std::uint64_t base = soft->allocate(0, 4096).value();
    const auto exported = soft->export_fd(base, 4096);
    ASSERT_TRUE(exported);
    EXPECT_TRUE(sys::check_sealed(exported->fd, 4096));
    EXPECT_EQ(count(*soft, "udmabuf_exports"), 0u);
    soft->close_fd(exported->fd);
  }
}

// With whatever this machine has: a real dma-buf where the kernel makes them, the memfd elsewhere; the bytes are the
// same.
TEST(AcceleratorConfig, ThePagesBehindAnExportAreTheSame) {
  auto soft = Accelerator::open("devices=1").value();
  const auto bytes = pattern(5000);
  const std::uint64_t base = soft->allocate(0, 3 * 4096).value();
  finish(*soft, soft->copy(base + 5000, host(bytes), bytes.size()).value());
  const auto pages = soft->export_pages(base + 5000, bytes.size());
  ASSERT_TRUE(pages);
  EXPECT_FALSE(sys::is_dmabuf(pages->fd));
  EXPECT_TRUE(sys::check_sealed(pages->fd, pages->offset + bytes.size()));
  {
    const auto mapped = sys::map_file(pages->fd, 0, pages->offset + bytes.size(), sys::Protect::read);
    ASSERT_TRUE(mapped);
    EXPECT_EQ(std::memcmp(mapped->data() + pages->offset, bytes.data(), bytes.size()), 0);
  }
  soft->close_fd(pages->fd);
  EXPECT_EQ(count(*soft, "exports"), 1u);
  EXPECT_EQ(count(*soft, "fd_closes"), 1u);
  EXPECT_EQ(soft->export_pages(base, 3 * 4096 + 1).error().code, Code::invalid);
}

TEST(AcceleratorConfig, ExportsTheBestThisKernelHas) {
  auto soft = Accelerator::open("devices=1").value();
  const auto bytes = pattern(5000);
  const std::uint64_t base = soft->allocate(0, 3 * 4096).value();
  finish(*soft, soft->copy(base + 5000, host(bytes), bytes.size()).value());
  const auto exported = soft->export_fd(base + 5000, bytes.size());
  ASSERT_TRUE(exported);
  EXPECT_EQ(sys::is_dmabuf(exported->fd), soft->no_udmabuf_because().empty());
  EXPECT_EQ(count(*soft, "udmabuf_exports"), soft->no_udmabuf_because().empty() ? 1u : 0u);
  {
    const auto mapped = sys::map_file(exported->fd, 0, exported->offset + bytes.size(), sys::Protect::read);
    ASSERT_TRUE(mapped);
    EXPECT_EQ(std::memcmp(mapped->data() + exported->offset, bytes.data(), bytes.size()), 0);
  }
  soft->close_fd(exported->fd);
}

}  // namespace
}  // namespace strait::soft::accel
