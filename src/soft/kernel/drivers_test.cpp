// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/drivers.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "sys/mapping.hpp"

namespace strait::soft::kernel {
namespace {

struct Announced {
  sys::Fd file;
  strait_soft_driver_memory memory{};
};

Announced announced(std::uint64_t base, std::uint64_t bytes, std::uint64_t identity) {
  Announced out;
  out.file = sys::make_sealed_memfd("drivers test", sys::round_up(bytes, sys::page_bytes())).value();
  out.memory.struct_size = sizeof out.memory;
  out.memory.vendor = STRAIT_SOFT_VENDOR_CUDA;
  out.memory.base = base;
  out.memory.length_bytes = bytes;
  out.memory.identity = identity;
  out.memory.memfd = out.file.get();
  return out;
}

TEST(Drivers, MemoryIsFoundByAnyOfItsAddressesAndByItsFile) {
  Drivers drivers;
  const Announced a = announced(0x7000'0000, 10'000, 1);
  ASSERT_EQ(drivers.add(a.memory), 0);
  for (const std::uint64_t address : {0x7000'0000ull, 0x7000'0001ull, 0x7000'0000ull + 9'999})
    ASSERT_TRUE(drivers.find(address)) << address;
  EXPECT_FALSE(drivers.find(0x6fff'ffff));
  EXPECT_FALSE(drivers.find(0x7000'0000 + 10'000));
  const auto by_file = drivers.find_file(*sys::file_id(a.file.get()), 4096);
  ASSERT_TRUE(by_file);
  EXPECT_EQ(by_file->said().identity, 1u);
  EXPECT_NE(by_file->file(), a.file.get()) << "the kernel holds a descriptor of its own";
  EXPECT_EQ(drivers.remove(0x7000'0000, 1), 0);
  EXPECT_FALSE(drivers.find(0x7000'0000));
  EXPECT_FALSE(drivers.find_file(*sys::file_id(a.file.get()), 0));
}

TEST(Drivers, OneFileMayHoldSeveralAllocations) {
  Drivers drivers;
  Announced a = announced(0x7000'0000, 8192, 1);
  a.memory.length_bytes = 4096;
  ASSERT_EQ(drivers.add(a.memory), 0);
  a.memory.base = 0x7100'0000;
  a.memory.identity = 2;
  a.memory.memfd_offset = 4096;
  ASSERT_EQ(drivers.add(a.memory), 0);
  const sys::FileId id = *sys::file_id(a.file.get());
  EXPECT_EQ(drivers.find_file(id, 4095)->said().identity, 1u);
  EXPECT_EQ(drivers.find_file(id, 4096)->said().identity, 2u);
  EXPECT_EQ(drivers.find_file(id, 4096)->file_offset(0x7100'0010), 4112u);
  EXPECT_EQ(drivers.remove(0x7000'0000, 1), 0);
  EXPECT_FALSE(drivers.find_file(id, 0));
  EXPECT_TRUE(drivers.find_file(id, 4096));
}

TEST(Drivers, WrongAnnouncementsAreRefused) {
  Drivers drivers;
  const Announced good = announced(0x7000'0000, 8192, 1);
  auto refused = [&](auto change) {
    strait_soft_driver_memory bad = good.memory;
    change(bad);
    return drivers.add(bad);
  };
  EXPECT_EQ(refused([](auto& m) { m.struct_size = 8; }), -EINVAL);
  EXPECT_EQ(refused([](auto& m) { m.base = 0; }), -EINVAL);
  EXPECT_EQ(refused([](auto& m) { m.length_bytes = 0; }), -EINVAL);
  EXPECT_EQ(refused([](auto& m) { m.base = ~std::uint64_t{0} - 10; }), -EINVAL);
  EXPECT_EQ(refused([](auto& m) { m.vendor = 9; }), -EINVAL);
  EXPECT_EQ(refused([](auto& m) { m.memfd = -1; }), -EINVAL);
  EXPECT_EQ(refused([](auto& m) { m.memfd_offset = 4096; }), -EINVAL) << "the file ends before the memory does";
  EXPECT_EQ(refused([](auto& m) { m.memfd_offset = ~std::uint64_t{0}; }), -EINVAL);
  ASSERT_EQ(drivers.add(good.memory), 0);
  EXPECT_EQ(refused([](auto&) {}), -EEXIST);
  EXPECT_EQ(refused([](auto& m) { m.base += 8191; }), -EEXIST);
  EXPECT_EQ(refused([](auto& m) { m.base -= 8191; }), -EEXIST);
  EXPECT_EQ(refused([](auto& m) { m.base += 8192; }), 0) << "touching is not overlapping";
  EXPECT_EQ(drivers.remove(0x7000'0000, 2), -ENOENT) << "another identity at the same address";
  EXPECT_EQ(drivers.remove(0x7000'0001, 1), -ENOENT);
}

TEST(Drivers, WatchersHaveRunWhenTheMemoryIsGone) {
  Drivers drivers;
  const Announced a = announced(0x7000'0000, 4096, 1);
  ASSERT_EQ(drivers.add(a.memory), 0);
  const auto memory = drivers.find(0x7000'0000);
  int first = 0;
  int second = 0;
  const std::uint64_t dropped = memory->watch([&] { ++first; });
  const std::uint64_t kept = memory->watch([&] { second += drivers.find(0x7000'0000) == nullptr ? 1 : 100; });
  EXPECT_TRUE(memory->unwatch(dropped));
  EXPECT_EQ(drivers.remove(0x7000'0000, 1), 0);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1) << "once, and after the address is nobody's";
  EXPECT_FALSE(memory->unwatch(kept)) << "it has run";
  EXPECT_EQ(memory->watch([] {}), 0u) << "nobody can start to use freed memory";
}

TEST(Drivers, TheCFaceAnswersAndAForkedChildBeginsAnew) {
  const Announced a = announced(0x7300'0000, 4096, 77);
  ASSERT_EQ(strait_soft_driver_add(&a.memory), 0);
  EXPECT_EQ(strait_soft_driver_add(nullptr), -EINVAL);
  strait_soft_driver_memory out{};
  EXPECT_EQ(strait_soft_driver_find(0x7300'0000, &out), 0) << "without its size nothing is written";
  out.struct_size = sizeof out;
  ASSERT_EQ(strait_soft_driver_find(0x7300'0fff, &out), 1);
  EXPECT_EQ(out.identity, 77u);
  EXPECT_EQ(strait_soft_driver_find(0x7300'1000, &out), 0);
  EXPECT_EQ(strait_soft_driver_find(0x7300'0000, nullptr), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool empty = strait_soft_driver_find(0x7300'0000, &out) == 0 &&
                       strait_soft_driver_remove(0x7300'0000, 77) == -ENOENT &&
                       strait_soft_driver_add(&a.memory) == 0 && strait_soft_driver_remove(0x7300'0000, 77) == 0;
    ::_exit(empty ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(strait_soft_driver_remove(0x7300'0000, 77), 0);
  EXPECT_EQ(strait_soft_driver_remove(0x7300'0000, 77), -ENOENT);
}

}  // namespace
}  // namespace strait::soft::kernel
