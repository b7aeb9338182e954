// SPDX-License-Identifier: Apache-2.0
// Mappings and memory files: what they hold, what seals stop, and every system call behind them failing once.
#include "sys/mapping.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace strait::sys {
namespace {

TEST(Mapping, TwoMappingsOfOneFileShareTheirBytes) {
  const Fd fd = make_sealed_memfd("test", 2 * page_bytes()).value();
  const Mapping whole = map_file(fd.get(), 0, 2 * page_bytes(), Protect::read_write).value();
  const Mapping second = map_file(fd.get(), page_bytes(), page_bytes(), Protect::read).value();
  whole.data()[page_bytes()] = std::byte{42};
  EXPECT_EQ(second.data()[0], std::byte{42});
  EXPECT_EQ(second.size(), page_bytes());
}

TEST(Mapping, AnonymousMemoryIsZeroAndReservedAddressesAreNot) {
  const Mapping memory = map_anonymous(4096, Protect::read_write).value();
  EXPECT_EQ(memory.data()[4095], std::byte{0});
  const Mapping reserved = map_anonymous(std::size_t{1} << 30, Protect::none).value();
  EXPECT_DEATH(std::exit(static_cast<int>(reserved.data()[0])), "") << "reserved addresses must not be readable";
}

TEST(Mapping, UnmapsOnce) {
  Mapping first = map_anonymous(page_bytes(), Protect::read_write).value();
  void* const at = first.data();
  unsigned char resident = 0;
  Mapping second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT: moved-from on purpose
  EXPECT_EQ(::mincore(at, page_bytes(), &resident), 0);
  second = Mapping();
  EXPECT_EQ(::mincore(at, page_bytes(), &resident), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Mapping, WhatIsKeptFromChildrenIsNotThereInAFork) {
  const Mapping kept = map_anonymous(page_bytes(), Protect::read_write).value();
  const Mapping shared = map_anonymous(page_bytes(), Protect::read_write).value();
  keep_from_children(kept);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    unsigned char resident = 0;
    const bool gone = ::mincore(kept.data(), page_bytes(), &resident) == -1 && errno == ENOMEM;
    const bool there = ::mincore(shared.data(), page_bytes(), &resident) == 0;
    ::_exit((gone ? 0 : 1) + (there ? 0 : 2));
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "of exit: 1: it is there; 2: so is not what was not kept";
  kept.data()[0] = std::byte{1};  // here nothing has changed
}

TEST(Mapping, NothingIsNotMapped) {
  EXPECT_EQ(map_anonymous(0, Protect::read).error().code, Code::invalid);
  EXPECT_EQ(map_file(0, 0, 0, Protect::read).error().code, Code::invalid);
  EXPECT_EQ(make_sealed_memfd("test", 0).error().code, Code::invalid);
}

TEST(Mapping, HugeAndUnalignedRequestsFailWithTheCause) {
  EXPECT_EQ(map_anonymous(SIZE_MAX / 2, Protect::read_write).error().code, Code::limit);
  const Fd fd = make_sealed_memfd("test", 4096).value();
  EXPECT_EQ(map_file(fd.get(), 1, 4096, Protect::read).error().sys_errno, EINVAL);
  EXPECT_EQ(map_file(-1, 0, 4096, Protect::read).error().sys_errno, EBADF);
  EXPECT_EQ(make_sealed_memfd("test", SIZE_MAX).error().sys_errno, EINVAL);
}

TEST(SealedMemory, CanNeitherShrinkNorGrowNorLoseItsSeals) {
  const Fd fd = make_sealed_memfd("test", 4096).value();
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(::ftruncate(fd.get(), 8192), -1);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_TRUE(check_sealed(fd.get(), 4096));
}

TEST(SealedMemory, ForeignFilesAreRefusedWithTheReason) {
  const Fd unsealed(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  const Status open = check_sealed(unsealed.get(), 4096);
  EXPECT_EQ(open.error().code, Code::denied);
  EXPECT_NE(open.error().text.find("not sealed against shrinking"), std::string::npos);

  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(check_sealed(null.get(), 1).error().code, Code::denied);
  EXPECT_EQ(check_sealed(-1, 1).error().sys_errno, EBADF);

  const Fd small = make_sealed_memfd("small", 4096).value();
  const Status too_small = check_sealed(small.get(), 4097);
  EXPECT_EQ(too_small.error().code, Code::invalid);
  EXPECT_NE(too_small.error().text.find("holds 4096 bytes, 4097 were expected"), std::string::npos);
}

TEST(SealedMemory, EveryCallBehindItMayFail) {
  const int before = count_open_fds();
  Calls calls = real_calls();
  calls.memfd_create = [](const char*, unsigned) { return errno = EMFILE, -1; };
  EXPECT_EQ(make_sealed_memfd("test", 4096, calls).error().code, Code::limit);

  calls = real_calls();
  calls.ftruncate = [](int, off_t) { return errno = ENOSPC, -1; };
  const Result<Fd> full = make_sealed_memfd("test", 4096, calls);
  EXPECT_EQ(full.error().code, Code::limit);
  EXPECT_NE(full.error().text.find("\"test\" to 4096 bytes"), std::string::npos);

  // Without the permission to seal, F_ADD_SEALS itself fails.
  calls = real_calls();
  calls.memfd_create = [](const char* name, unsigned) { return ::memfd_create(name, MFD_CLOEXEC); };
  EXPECT_EQ(make_sealed_memfd("test", 4096, calls).error().sys_errno, EPERM);
  EXPECT_EQ(count_open_fds(), before) << "a failure must not leak the file";
}

TEST(Mapping, AFailingMmapIsALimit) {
  Calls calls = real_calls();
  calls.mmap = [](void*, std::size_t, int, int, int, off_t) { return errno = ENOMEM, MAP_FAILED; };
  EXPECT_EQ(map_anonymous(4096, Protect::read, nullptr, calls).error().code, Code::limit);
  const Fd fd = make_sealed_memfd("test", 4096).value();
  EXPECT_EQ(map_file(fd.get(), 0, 4096, Protect::read, calls).error().code, Code::limit);
}

TEST(Mapping, RoundsUpToPages) {
  EXPECT_EQ(round_up(0, 4096), 0U);
  EXPECT_EQ(round_up(1, 4096), 4096U);
  EXPECT_EQ(round_up(4096, 4096), 4096U);
}

TEST(Mapping, FileIsPutOverAReservationAndTakenAway) {
  auto room = map_anonymous(3 * page_bytes(), Protect::none);
  auto memfd = make_sealed_memfd("over", 2 * page_bytes());
  ASSERT_TRUE(room && memfd);
  std::byte* middle = room->data() + page_bytes();
  ASSERT_TRUE(map_file_over(middle, memfd->get(), page_bytes(), page_bytes(), Protect::read_write));
  middle[7] = std::byte{42};
  auto look = map_file(memfd->get(), 0, 2 * page_bytes(), Protect::read);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->data()[page_bytes() + 7], std::byte{42});
  ASSERT_TRUE(map_file_over(middle, -1, 0, page_bytes(), Protect::none));
  EXPECT_DEATH(middle[7] = std::byte{1}, "");
  EXPECT_EQ(map_file_over(middle, -1, 0, page_bytes(), Protect::read).error().sys_errno, EBADF);
  EXPECT_FALSE(map_file_over(middle, memfd->get(), 0, 0, Protect::read));
}

TEST(WillNeed, TakesMappedPagesAndRefusesHoles) {
  const auto pages = map_anonymous(4 * page_bytes(), Protect::read_write).value();
  const auto address = reinterpret_cast<std::uint64_t>(pages.data());
  EXPECT_TRUE(will_need(address + 5, 2 * page_bytes()));
  EXPECT_EQ(will_need(16, 1).error().code, Code::invalid);
  EXPECT_EQ(will_need(address, UINT64_MAX - address).error().code, Code::invalid);
}

}  // namespace
}  // namespace strait::sys
