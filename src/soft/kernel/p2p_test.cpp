// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/p2p.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "soft/kernel/testing.hpp"

namespace strait::soft::kernel {
namespace {

using testing::Machine;
using testing::settings;

constexpr std::uint64_t kPage = kP2pPageBytes;

class P2pTest : public ::testing::Test {
 protected:
  Machine machine_;
  Kernel kernel_{machine_.drivers, settings("none")};
  P2p& p2p_ = kernel_.p2p();
};

TEST_F(P2pTest, AddressAndLengthAreMultiplesOf64KiB) {
  const std::uint64_t base = machine_.allocate(STRAIT_SOFT_VENDOR_CUDA, 4 * kPage).base;
  P2pTable table;
  const auto nothing = [] {};
  EXPECT_EQ(p2p_.get_pages(0, 0, base + 4096, kPage, table, nothing), -EINVAL);
  EXPECT_EQ(p2p_.get_pages(0, 0, base, kPage + 4096, table, nothing), -EINVAL);
  EXPECT_EQ(p2p_.get_pages(0, 0, base, 0, table, nothing), -EINVAL);
  EXPECT_EQ(p2p_.get_pages(0, 0, base, 5 * kPage, table, nothing), -EINVAL) << "past the end";
  EXPECT_EQ(p2p_.get_pages(0, 0, base - kPage, 2 * kPage, table, nothing), -EINVAL) << "before the start";
  EXPECT_EQ(p2p_.get_pages(0, 0, base, kPage, table, nullptr), -EINVAL) << "without a callback: the persistent call";
  ASSERT_EQ(p2p_.get_pages(0, 0, base + kPage, 2 * kPage, table, nothing), 0);
  EXPECT_EQ(table->version, 0x00020000u);
  EXPECT_EQ(table->page_size, 1u);
  EXPECT_EQ(table->pages.size(), 2u);
  EXPECT_EQ(table->pages[1] - table->pages[0], kPage);
  EXPECT_EQ(p2p_.put_pages(0, 0, base, table), -EINVAL) << "of another address";
  EXPECT_EQ(p2p_.put_pages(0, 0, base + kPage, table), 0);
  EXPECT_EQ(p2p_.put_pages(0, 0, base + kPage, table), -EINVAL) << "twice";
  EXPECT_EQ(kernel_.unbalanced(), "");
}

TEST_F(P2pTest, MappingsGiveEachPageAnAddressOfTheDevice) {
  Machine::Memory& memory = machine_.allocate(STRAIT_SOFT_VENDOR_CUDA, 3 * kPage - 100);
  P2pTable table;
  ASSERT_EQ(p2p_.get_pages(0, 0, memory.base, 3 * kPage, table, [] {}), 0) << "the last page belongs to it whole";
  P2pMapping mapping;
  ASSERT_EQ(p2p_.dma_map_pages(machine_.nic, table, mapping), 0);
  EXPECT_EQ(mapping->version, 0x00020003u);
  ASSERT_EQ(mapping->addresses.size(), 3u);
  std::memcpy(reinterpret_cast<void*>(mapping->addresses[1]), "page", 4);
  EXPECT_EQ(testing::device_text(memory, kPage, 4), "page");
  EXPECT_EQ(mapping->segment(memory.base + 3 * kPage - 200, 200).length_bytes, 100u) << "no byte behind the memory";
  EXPECT_EQ(p2p_.dma_unmap_pages(table, mapping), 0);
  EXPECT_EQ(p2p_.dma_unmap_pages(table, mapping), -EINVAL);
  EXPECT_EQ(mapping->segment(memory.base, 1).at, nullptr);
  EXPECT_EQ(p2p_.put_pages(0, 0, memory.base, table), 0);
  EXPECT_EQ(kernel_.unbalanced(), "");
}

TEST_F(P2pTest, TheCallbackComesOnceAndOnlyFreesInsideIt) {
  Machine::Memory& memory = machine_.allocate(STRAIT_SOFT_VENDOR_CUDA, kPage);
  P2pTable table;
  P2pMapping mapping;
  int called = 0;
  ASSERT_EQ(p2p_.get_pages(0, 0, memory.base, kPage, table,
                           [&] {
                             ++called;
                             EXPECT_EQ(p2p_.dma_unmap_pages(table, mapping), -EINVAL);
                             EXPECT_EQ(p2p_.put_pages(0, 0, memory.base, table), -EINVAL);
                             EXPECT_EQ(p2p_.free_dma_mapping(mapping), 0);
                             EXPECT_EQ(p2p_.free_page_table(table), 0);
                           }),
            0);
  ASSERT_EQ(p2p_.dma_map_pages(machine_.nic, table, mapping), 0);
  EXPECT_EQ(p2p_.free_page_table(table), -EINVAL) << "outside the callback";
  machine_.free(memory);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(p2p_.put_pages(0, 0, memory.base, table), -EINVAL) << "after it, gently";
  EXPECT_EQ(p2p_.free_page_table(table), -EINVAL);
  EXPECT_EQ(p2p_.get_pages(0, 0, memory.base, kPage, table, [] {}), -EINVAL) << "freed";
  EXPECT_EQ(kernel_.unbalanced(), "");
  EXPECT_EQ(kernel_.bar().used(BarSpace::of(STRAIT_SOFT_VENDOR_CUDA, 0)), 0u);
}

TEST_F(P2pTest, AForgottenTableIsCounted) {
  Machine::Memory& memory = machine_.allocate(STRAIT_SOFT_VENDOR_CUDA, kPage);
  P2pTable table;
  ASSERT_EQ(p2p_.get_pages(0, 0, memory.base, kPage, table, [] {}), 0);
  machine_.free(memory);
  EXPECT_EQ(kernel_.counters().get("p2p_forgotten").load(), 1u);
  EXPECT_EQ(kernel_.unbalanced(), "p2p_get=1");
}

TEST_F(P2pTest, PutRacingTheCallbackFailsGentlyOrWins) {
  for (int round = 0; round < 200; ++round) {
    Machine::Memory& memory = machine_.allocate(STRAIT_SOFT_VENDOR_CUDA, kPage);
    P2pTable table;
    std::atomic<int> called{0};
    ASSERT_EQ(p2p_.get_pages(0, 0, memory.base, kPage, table,
                             [&] {
                               ++called;
                               EXPECT_EQ(p2p_.free_page_table(table), 0);
                             }),
              0);
    std::atomic<bool> go{false};
    int put = 0;
    std::thread putter([&] {
      while (!go) {
      }
      put = p2p_.put_pages(0, 0, memory.base, table);
    });
    go = true;
    machine_.free(memory);
    putter.join();
    EXPECT_EQ(called + (put == 0 ? 1 : 0), 1) << "exactly one of the two owned the teardown";
  }
  EXPECT_EQ(kernel_.unbalanced(), "");
}

TEST_F(P2pTest, PersistentPagesSurviveTheFree) {
  Machine::Memory& memory = machine_.allocate(STRAIT_SOFT_VENDOR_CUDA, kPage);
  P2pTable table;
  EXPECT_EQ(p2p_.get_pages_persistent(memory.base, kPage, table, 2), -EINVAL) << "no such flag";
  ASSERT_EQ(p2p_.get_pages_persistent(memory.base, kPage, table, 1), 0);
  P2pMapping mapping;
  ASSERT_EQ(p2p_.dma_map_pages(machine_.nic, table, mapping), 0);
  machine_.free(memory);
  std::memcpy(reinterpret_cast<void*>(mapping->addresses[0]), "still", 5);
  EXPECT_EQ(testing::device_text(memory, 0, 5), "still");
  EXPECT_EQ(p2p_.put_pages(0, 0, memory.base, table), -EINVAL) << "the other kind of put";
  EXPECT_EQ(p2p_.dma_unmap_pages(table, mapping), 0);
  EXPECT_EQ(p2p_.put_pages_persistent(memory.base, table, 0), 0);
  EXPECT_EQ(p2p_.put_pages_persistent(memory.base, table, 0), -EINVAL);
  EXPECT_EQ(kernel_.unbalanced(), "");
}

TEST_F(P2pTest, OnlyNvidiasCapableMemoryHasPages) {
  P2pTable table;
  const std::uint64_t amd = machine_.allocate(STRAIT_SOFT_VENDOR_ROCM, kPage).base;
  const std::uint64_t pool = machine_.allocate(STRAIT_SOFT_VENDOR_CUDA, kPage, 0).base;
  EXPECT_EQ(p2p_.get_pages(0, 0, amd, kPage, table, [] {}), -EINVAL);
  EXPECT_EQ(p2p_.get_pages(0, 0, pool, kPage, table, [] {}), -EINVAL) << "attribute 15 is 0";
  EXPECT_EQ(p2p_.get_pages(0, 0, kPage, kPage, table, [] {}), -EINVAL) << "nobody's memory";
}

TEST(P2pFaults, EachStepFailsAsItIsTold) {
  Machine machine;
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, kPage);
  const auto get = [&](const char* faults) {
    Kernel kernel(machine.drivers, settings("none", faults));
    P2pTable table;
    const int failed = kernel.p2p().get_pages(0, 0, memory.base, kPage, table, [] {});
    if (failed == 0) (void)kernel.p2p().put_pages(0, 0, memory.base, table);
    EXPECT_EQ(kernel.unbalanced(), "") << faults;
    return failed;
  };
  EXPECT_EQ(get(""), 0);
  EXPECT_EQ(get("p2p_get=EIO"), -EIO);
  EXPECT_EQ(get("topology"), -524);
  EXPECT_EQ(get("bar=4096"), -ENOMEM);
}

}  // namespace
}  // namespace strait::soft::kernel
