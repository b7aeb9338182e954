// SPDX-License-Identifier: Apache-2.0
// What a NIC does with device memory while that moves, is freed, or is taken away in the middle of a transfer.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "soft/accel/window.hpp"
#include "soft/kernel/testing.hpp"

namespace strait::soft::kernel {
namespace {

using testing::get;
using testing::Machine;
using testing::put;
using testing::settings;

TEST(NicMemory, ADmabufIsCheckedAndTrimmedToItsRange) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 20'480);
  NicMemoryOwner mr;
  const int fd = memory.file.get();
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, fd, 4096, 16'385, 0x1000, mr), -EINVAL) << "one byte past the end";
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, fd, ~std::uint64_t{0}, 2, 0x1000, mr), -EINVAL) << "wraps around";
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, fd, 0, 0, 0x1000, mr), -EINVAL);
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, -1, 0, 1, 0x1000, mr), 1);
  const sys::Fd stranger = sys::make_sealed_memfd("stranger", 4096).value();
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, stranger.get(), 0, 4096, 0x1000, mr), 1) << "no accelerator's";
  ASSERT_EQ(kernel.import_dmabuf(machine.nic, fd, 4100, 1000, 0x7004, mr), 0);
  EXPECT_TRUE(mr->stays()) << "NVIDIA's exporter never moves";
  EXPECT_EQ(put(*mr, 0x7004, "x"), 0);
  EXPECT_EQ(testing::device_text(memory, 4100, 1), "x");
  EXPECT_EQ(put(*mr, 0x7003, "x"), EFAULT);
  EXPECT_EQ(put(*mr, 0x7004 + 999, "xy"), EFAULT);
  mr.reset();
  EXPECT_EQ(kernel.unbalanced(), "");
}

TEST(NicMemory, AWindowStandsForPartsOfSeveralFiles) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  Machine::Memory& a = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 16'384);
  Machine::Memory& b = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 16'384);
  const accel::WindowPiece both[] = {{a.file.get(), 8192, 8192}, {b.file.get(), 4096, 4096}};
  const sys::Fd window = accel::make_window(both).value();
  NicMemoryOwner mr;
  ASSERT_EQ(kernel.import_dmabuf(machine.nic, window.get(), 8000, 4000, 0x1f40, mr), 0);
  EXPECT_EQ(mr->text(), "dma-buf of nv_dmabuf");
  EXPECT_FALSE(mr->stays()) << "no one file holds it";
  EXPECT_EQ(put(*mr, 0x1f40 + 190, "over"), 0);
  EXPECT_EQ(testing::device_text(a, 16'382, 2), "ov");
  EXPECT_EQ(testing::device_text(b, 4096, 2), "er");
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, window.get(), 8192, 8192, 0, mr), -EINVAL) << "past its end";
  const accel::WindowPiece part[] = {{b.file.get(), 8192, 4096}};
  const sys::Fd one = accel::make_window(part).value();
  ASSERT_EQ(kernel.import_dmabuf(machine.nic, one.get(), 16, 100, 0x10, mr), 0);
  EXPECT_TRUE(mr->stays());
  EXPECT_EQ(mr->file().offset, 8208u) << "where it is in the file behind the window";
  mr.reset();
  EXPECT_EQ(kernel.unbalanced(), "");
}

TEST(NicMemory, AMoveInTheMiddleOfATransferIsFaultedBackIn) {
  for (const std::uint32_t vendor : {STRAIT_SOFT_VENDOR_ROCM, STRAIT_SOFT_VENDOR_SOFT}) {
    Machine machine;
    Kernel kernel(machine.drivers, settings("none", "move@10"));
    Machine::Memory& memory = machine.allocate(vendor, 4096);
    NicMemoryOwner mr;
    ASSERT_EQ(kernel.import_dmabuf(machine.nic, memory.file.get(), 0, 4096, 0, mr), 0);
    EXPECT_FALSE(mr->stays());
    EXPECT_EQ(put(*mr, 100, "0123456789abcdef"), 0) << "the NIC waits for the page, the program sees nothing";
    EXPECT_EQ(testing::device_text(memory, 100, 16), "0123456789abcdef");
    EXPECT_EQ(get(*mr, 100, 16), "0123456789abcdef");
    EXPECT_EQ(kernel.counters().get("moves").load(), 1u);
    EXPECT_EQ(kernel.counters().get("move_notify").load(), 1u);
    EXPECT_EQ(kernel.counters().get("map").load(), 2u);
    mr.reset();
    EXPECT_EQ(kernel.unbalanced(), "");
  }
}

TEST(NicMemory, ADeviceThatDoesNotFollowLosesWhatMoves) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none", "move@10"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 4096);
  DmaDevice nic = machine.nic;
  nic.follows = false;
  NicMemoryOwner mr;
  ASSERT_EQ(kernel.import_dmabuf(nic, memory.file.get(), 0, 4096, 0, mr), 0);
  EXPECT_NE(put(*mr, 100, "0123456789abcdef"), 0);
  EXPECT_EQ(testing::device_text(memory, 100, 10), "0123456789") << "what came before the move";
  EXPECT_NE(testing::device_text(memory, 110, 6), "abcdef");
  EXPECT_TRUE(mr->revoked());
  EXPECT_EQ(kernel.counters().get("map").load(), 1u);
  mr.reset();
  EXPECT_EQ(kernel.unbalanced(), "");
}

TEST(NicMemory, AMapThatFailsAfterAMoveFailsTheAccessAndTheNextMayWork) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none", "move@0,map=ENOMEM@2"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 4096);
  NicMemoryOwner mr;
  ASSERT_EQ(kernel.import_dmabuf(machine.nic, memory.file.get(), 0, 4096, 0, mr), 0);
  EXPECT_EQ(put(*mr, 0, "one"), ENOMEM);
  EXPECT_EQ(put(*mr, 0, "two"), 0);
  EXPECT_EQ(testing::device_text(memory, 0, 3), "two");
  mr.reset();
  EXPECT_EQ(kernel.unbalanced(), "");
}

TEST(NicMemory, MovesWhileFourThreadsTransferLoseNoByte) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 4 * 4096);
  NicMemoryOwner mr;
  ASSERT_EQ(kernel.import_dmabuf(machine.nic, memory.file.get(), 0, 4 * 4096, 0, mr), 0);
  auto buffer = kernel.get(memory.file.get());
  std::atomic<int> running{4};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 500; ++round) {
        const std::string text = std::to_string(i) + ":" + std::to_string(round + 1000);
        if (put(*mr, i * 4096 + 7, text) != 0 || get(*mr, i * 4096 + 7, text.size()) != text) ++wrong;
      }
      --running;
    });
  }
  while (running != 0) {
    EXPECT_EQ(buffer->move(), 0);
    std::this_thread::yield();
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
  mr.reset();
  buffer.reset();
  EXPECT_EQ(kernel.unbalanced(), "");
}

struct Plain {
  const char* peer_memory;
  std::uint32_t vendor;
};
class PlainWays : public ::testing::TestWithParam<Plain> {};

TEST_P(PlainWays, AnInvalidateInTheMiddleStopsTheTransferThere) {
  Machine machine;
  Kernel kernel(machine.drivers, settings(GetParam().peer_memory, "invalidate@4"));
  Machine::Memory& memory = machine.allocate(GetParam().vendor, 65'536);
  NicMemoryOwner mr;
  ASSERT_EQ(kernel.import_address(machine.nic, memory.base, 65'536, memory.base, true, mr), 0);
  EXPECT_EQ(put(*mr, memory.base, "12345678"), kRevoked);
  EXPECT_EQ(testing::device_text(memory, 0, 8), std::string("1234\0\0\0\0", 8)) << "not a byte further";
  EXPECT_TRUE(mr->revoked());
  EXPECT_EQ(get(*mr, memory.base, 4), "failed with " + std::to_string(kRevoked));
  std::uint64_t old = 0;
  EXPECT_EQ(mr->port()->fetch_add(mr->port()->context, memory.base, 8, 1, 0, &old), kRevoked);
  machine.free(memory);
  mr.reset();
  EXPECT_EQ(kernel.unbalanced(), "");
}

TEST_P(PlainWays, AFreeWhileThreadsTransferNeverTouchesWhatIsGone) {
  for (int round = 0; round < 30; ++round) {
    Machine machine;
    Kernel kernel(machine.drivers, settings(GetParam().peer_memory));
    Machine::Memory& memory = machine.allocate(GetParam().vendor, 65'536);
    NicMemoryOwner mr;
    ASSERT_EQ(kernel.import_address(machine.nic, memory.base, 65'536, 0, true, mr), 0);
    std::vector<std::thread> threads;
    std::atomic<int> started{0};
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, at = 8192 + 4096 * static_cast<std::uint64_t>(i)] {
        std::string text(4096, 'x');
        std::int32_t failed = 0;
        for (++started; failed == 0;) failed = put(*mr, at, text);
        EXPECT_EQ(failed, kRevoked);
      });
    }
    while (started != 3) std::this_thread::yield();
    machine.free(memory);
    // Free has returned: from here on the bytes are somebody else's.
    const sys::Mapping mine = std::move(memory.bytes);
    std::memset(mine.data(), 0, 65'536);
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(std::count(mine.data(), mine.data() + 65'536, std::byte{0}), 65'536);
    mr.reset();
    EXPECT_EQ(kernel.unbalanced(), "");
  }
}

TEST_P(PlainWays, NothingHoldsTheMemoryAfterwards) {
  for (const bool freed_first : {false, true}) {
    Machine machine;
    Kernel kernel(machine.drivers, settings(GetParam().peer_memory));
    Machine::Memory& memory = machine.allocate(GetParam().vendor, 65'536);
    const std::weak_ptr<DeviceMemory> held = machine.drivers.find(memory.base);
    NicMemoryOwner mr;
    ASSERT_EQ(kernel.import_address(machine.nic, memory.base, 65'536, 0, true, mr), 0);
    if (freed_first) machine.free(memory);
    mr.reset();
    if (!freed_first) machine.free(memory);
    EXPECT_TRUE(held.expired()) << "a descriptor of it would stay open for ever";
  }
}

TEST_P(PlainWays, DeregisteringRacesTheFree) {
  for (int round = 0; round < 200; ++round) {
    Machine machine;
    Kernel kernel(machine.drivers, settings(GetParam().peer_memory));
    Machine::Memory& memory = machine.allocate(GetParam().vendor, 65'536);
    NicMemoryOwner mr;
    ASSERT_EQ(kernel.import_address(machine.nic, memory.base, 4096, 0, true, mr), 0);
    std::atomic<bool> go{false};
    std::thread freeing([&] {
      while (!go) {
      }
      machine.free(memory);
    });
    go = true;
    mr.reset();
    freeing.join();
    EXPECT_EQ(kernel.unbalanced(), "") << "round " << round;
  }
}

TEST_P(PlainWays, RegisteringRacesTheFree) {
  int worked = 0;
  for (int round = 0; round < 200; ++round) {
    Machine machine;
    Kernel kernel(machine.drivers, settings(GetParam().peer_memory));
    Machine::Memory& memory = machine.allocate(GetParam().vendor, 65'536);
    std::atomic<bool> go{false};
    std::thread freeing([&] {
      while (!go) {
      }
      machine.free(memory);
    });
    NicMemoryOwner mr;
    go = true;
    const int registered = kernel.import_address(machine.nic, memory.base, 4096, 0, true, mr);
    worked += registered == 0 ? 1 : 0;
    freeing.join();
    if (registered == 0) {
      EXPECT_TRUE(mr->revoked());
    }
    mr.reset();
    EXPECT_EQ(kernel.unbalanced(), "") << "round " << round << ", answered " << registered;
  }
  RecordProperty("registered_first", worked);
}

INSTANTIATE_TEST_SUITE_P(NicMemory, PlainWays,
                         ::testing::Values(Plain{"nvidia", STRAIT_SOFT_VENDOR_CUDA},
                                           Plain{"amd", STRAIT_SOFT_VENDOR_ROCM}, Plain{"p2p", STRAIT_SOFT_VENDOR_CUDA},
                                           Plain{"nvidia,amd", STRAIT_SOFT_VENDOR_SOFT}),
                         [](const auto& each) {
                           std::string name = each.param.peer_memory;
                           std::replace(name.begin(), name.end(), ',', '_');
                           return name;
                         });

TEST(NicMemory, P2pPagesAreRoundedAndTrimmed) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("p2p"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 100'000);
  NicMemoryOwner mr;
  ASSERT_EQ(kernel.import_address(machine.nic, memory.base + 65'000, 35'000, 0, true, mr), 0);
  EXPECT_EQ(mr->text(), "nvidia_p2p pages");
  EXPECT_EQ(kernel.bar().used(BarSpace::of(STRAIT_SOFT_VENDOR_CUDA, 0)), 2 * kP2pPageBytes);
  EXPECT_EQ(put(*mr, 34'999, "z"), 0);
  EXPECT_EQ(testing::device_text(memory, 99'999, 1), "z");
  EXPECT_EQ(put(*mr, 34'999, "zz"), EFAULT) << "the rest of the page is not the caller's";
  mr.reset();
  EXPECT_EQ(kernel.import_address(machine.nic, memory.base + 65'000, 35'001, 0, true, mr), -EINVAL);
  EXPECT_EQ(kernel.unbalanced(), "");
}

TEST(NicMemory, SmallAllocationsMayShareAPage) {
  Machine machine;
  const sys::Fd block = sys::make_sealed_memfd("block", 8192).value();
  const sys::Mapping bytes = sys::map_file(block.get(), 0, 8192, sys::Protect::read_write).value();
  constexpr std::uint64_t kBase = std::uint64_t{0x20} << 40;
  for (std::uint64_t i = 0; i < 2; ++i) {
    strait_soft_driver_memory said{};
    said.struct_size = sizeof said;
    said.vendor = STRAIT_SOFT_VENDOR_CUDA;
    said.flags = STRAIT_SOFT_P2P_CAPABLE;
    said.base = kBase + i * 512;
    said.length_bytes = 512;
    said.identity = i + 1;
    said.memfd = block.get();
    said.memfd_offset = i * 512;
    ASSERT_EQ(machine.drivers.add(said), 0);
  }
  for (const char* way : {"nvidia", "p2p", "nvidia_persistent"}) {
    Kernel kernel(machine.drivers, settings(way));
    NicMemoryOwner second;
    ASSERT_EQ(kernel.import_address(machine.nic, kBase + 512 + 8, 100, 0, true, second), 0) << way;
    EXPECT_EQ(put(*second, 0, way), 0);
    EXPECT_EQ(std::memcmp(bytes.data() + 520, way, std::strlen(way)), 0) << way;
    EXPECT_EQ(kernel.import_address(machine.nic, kBase + 500, 100, 0, true, second), -EINVAL) << "over both";
  }
  Kernel kernel(machine.drivers, settings("nvidia"));
  NicMemoryOwner second;
  ASSERT_EQ(kernel.import_address(machine.nic, kBase + 512, 100, 0, true, second), 0);
  ASSERT_EQ(machine.drivers.remove(kBase, 1), 0);
  EXPECT_FALSE(second->revoked()) << "its neighbour was freed, not it";
  ASSERT_EQ(machine.drivers.remove(kBase + 512, 2), 0);
  EXPECT_TRUE(second->revoked());
}

TEST(NicMemory, AtomicsOfEitherWidthGoThroughTheTable) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("p2p"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 4096);
  NicMemoryOwner mr;
  ASSERT_EQ(kernel.import_address(machine.nic, memory.base, 4096, 0, true, mr), 0);
  const strait_memory_port& port = *mr->port();
  std::uint64_t old = 99;
  EXPECT_EQ(port.fetch_add(port.context, 8, 8, 41, 0, &old), 0);
  EXPECT_EQ(old, 0u);
  EXPECT_EQ(port.compare_swap(port.context, 8, 8, 41, ~0ull, 7, ~0ull, &old), 0);
  EXPECT_EQ(old, 41u);
  EXPECT_EQ(port.compare_swap(port.context, 8, 4, 6, ~0ull, 5, ~0ull, &old), 0);
  EXPECT_EQ(old, 7u) << "not equal: left as it is";
  EXPECT_EQ(port.fetch_add(port.context, 8, 4, 1, 0, &old), 0);
  EXPECT_EQ(old, 7u);
  EXPECT_EQ(port.fetch_add(port.context, 12, 8, 1, 0, &old), EINVAL) << "not aligned";
  EXPECT_EQ(port.fetch_add(port.context, 8, 3, 1, 0, &old), EINVAL);
}

TEST(KernelSettings, WordsAreChecked) {
  EXPECT_TRUE(KernelSettings::parse("", "").value().nvidia == false);
  const KernelSettings all = KernelSettings::parse("nvidia;amd,p2p", "reset").value();
  EXPECT_TRUE(all.nvidia && all.amd && all.p2p && all.faults.reset && !all.persistent);
  EXPECT_FALSE(KernelSettings::parse("intel", ""));
  EXPECT_FALSE(KernelSettings::parse("none", "what"));
}

}  // namespace
}  // namespace strait::soft::kernel
