// SPDX-License-Identifier: Apache-2.0
// Events of memory that goes away. A machine without userfaultfd must say why in a sentence.
#include "sys/user_fault.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <thread>

namespace strait::sys {
namespace {

std::byte* pages(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<std::byte*>(at);
}

TEST(UserFault, TellsOfUnmappingAndLetsTheOtherThreadWait) {
  const auto fault = UserFault::open();
  if (!fault) {
    EXPECT_EQ(fault.error().code, Code::unsupported) << fault.error().text;
    EXPECT_NE(fault.error().text.find("userfaultfd"), std::string::npos);
    return;
  }
  std::byte* const at = pages(65536);
  at[0] = std::byte{1};
  ASSERT_TRUE(fault->watch(reinterpret_cast<std::uint64_t>(at) + 100, 8192));
  at[4096] = std::byte{2};  // nobody's page fault is delivered
  std::array<AddressChange, 4> seen;
  EXPECT_EQ(fault->read(seen), 0u);
  std::thread other([&] { ::munmap(at, 65536); });
  pollfd ready{fault->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 30'000), 1);
  std::size_t count = 0;
  while ((count = fault->read(seen)) == 0) std::this_thread::yield();
  other.join();
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(seen[0].address, reinterpret_cast<std::uint64_t>(at));
  EXPECT_GE(seen[0].length_bytes, 12288u);
}

TEST(UserFault, SaysWhyNot) {
  const auto denied = UserFault::open([](int) {
    errno = EPERM;
    return -1;
  });
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, Code::unsupported);
  EXPECT_NE(denied.error().remedy.find("vm.unprivileged_userfaultfd"), std::string::npos);
  const auto unknown = UserFault::open([](int) {
    errno = ENOSYS;
    return -1;
  });
  EXPECT_NE(unknown.error().text.find("CONFIG_USERFAULTFD"), std::string::npos);
  const auto full = UserFault::open([](int) {
    errno = EMFILE;
    return -1;
  });
  EXPECT_EQ(full.error().code, Code::limit);
  const auto old = UserFault::open([](int flags) {
    errno = EINVAL;
    return (flags & 1) != 0 ? -1 : userfaultfd_call(flags | 1);
  });
  EXPECT_EQ(old.has_value(), UserFault::open().has_value()) << "a kernel that does not know the restricted kind";
}

}  // namespace
}  // namespace strait::sys
