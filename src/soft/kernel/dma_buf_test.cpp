// SPDX-License-Identifier: Apache-2.0
// The dma-buf's rules, and each vendor's exporter.
#include "soft/kernel/dma_buf.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "soft/kernel/testing.hpp"

namespace strait::soft::kernel {
namespace {

using testing::Machine;
using testing::settings;

ImporterOps telling(int* told = nullptr, bool peers = true) {
  return {peers, [told](Attachment&) {
            if (told != nullptr) ++*told;
          }};
}

TEST(DmaBuf, OutlivesTheAllocationItWasMadeFrom) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 8192);
  auto buffer = kernel.get(memory.file.get());
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size_bytes(), 8192u);
  EXPECT_STREQ(buffer->exporter_name(), "nv_dmabuf");
  EXPECT_EQ(kernel.get(memory.file.get()), buffer) << "one file, one object";
  machine.free(memory);
  EXPECT_EQ(kernel.get(memory.file.get()), buffer) << "a reference holds it";
  const ImporterOps ops = telling();
  Attachment* attachment = nullptr;
  ASSERT_EQ(buffer->attach(machine.nic, &ops, attachment), 0);
  DmaList list;
  {
    const std::lock_guard lock(buffer->reservation());
    ASSERT_EQ(buffer->map(*attachment, list), 0);
    std::memcpy(list.segments[0].at, "alive", 5);
    buffer->unmap(*attachment, list);
  }
  buffer->detach(*attachment);
  EXPECT_EQ(testing::device_text(memory, 0, 5), "alive");
  buffer.reset();
  EXPECT_FALSE(kernel.get(memory.file.get())) << "the last reference has gone, and so has the announcement";
  EXPECT_EQ(kernel.unbalanced(), "");
}

TEST(DmaBuf, ADynamicMapWantsTheLockHeldAndAMoveNotify) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  auto buffer = kernel.get(machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 4096).file.get());
  const ImporterOps none{true, nullptr};
  Attachment* attachment = nullptr;
  EXPECT_EQ(buffer->attach(machine.nic, &none, attachment), -EINVAL);
  const ImporterOps ops = telling();
  ASSERT_EQ(buffer->attach(machine.nic, &ops, attachment), 0);
  DmaList list;
  EXPECT_EQ(buffer->map(*attachment, list), -EDEADLK);
  EXPECT_EQ(buffer->pin(*attachment), -EDEADLK);
  {
    const std::lock_guard lock(buffer->reservation());
    EXPECT_EQ(buffer->map(*attachment, list), 0);
    buffer->unmap(*attachment, list);
  }
  buffer->detach(*attachment);
  EXPECT_EQ(buffer->attachments(), 0u);
}

TEST(DmaBuf, AMoveTellsWhoHasItMappedWithTheLockHeldAndNobodyElse) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  auto buffer = kernel.get(machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 4096).file.get());
  int told = 0;
  DmaList list;
  ImporterOps ops{true, [&](Attachment& mine) {
                    ++told;
                    EXPECT_TRUE(buffer->reservation().held_here());
                    EXPECT_NE(list.segments.size(), 0u) << "what was mapped is good until the importer drops it";
                    buffer->unmap(mine, list);
                  }};
  int other = 0;
  const ImporterOps idle = telling(&other);
  Attachment* a = nullptr;
  Attachment* b = nullptr;
  ASSERT_EQ(buffer->attach(machine.nic, &ops, a), 0);
  ASSERT_EQ(buffer->attach(machine.nic, &idle, b), 0);
  {
    const std::lock_guard lock(buffer->reservation());
    ASSERT_EQ(buffer->map(*a, list), 0);
  }
  EXPECT_EQ(buffer->move(), 0);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(other, 0) << "it had nothing mapped";
  EXPECT_EQ(buffer->move(), 0);
  EXPECT_EQ(told, 1);
  buffer->detach(*a);
  buffer->detach(*b);
  EXPECT_EQ(kernel.unbalanced(), "dmabuf_get=1") << "only the reference held here";
}

TEST(DmaBuf, WhatIsPinnedOrStaticallyMappedStays) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  auto buffer = kernel.get(machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 4096).file.get());
  int told = 0;
  const ImporterOps ops = telling(&told);
  Attachment* dynamic = nullptr;
  ASSERT_EQ(buffer->attach(machine.nic, &ops, dynamic), 0);
  {
    const std::lock_guard lock(buffer->reservation());
    ASSERT_EQ(buffer->pin(*dynamic), 0);
  }
  EXPECT_EQ(buffer->move(), -EBUSY);
  {
    const std::lock_guard lock(buffer->reservation());
    buffer->unpin(*dynamic);
  }
  Attachment* fixed = nullptr;
  ASSERT_EQ(buffer->attach(machine.nic, nullptr, fixed), 0);
  DmaList list;
  ASSERT_EQ(buffer->map(*fixed, list), 0) << "a static importer need not hold the lock";
  EXPECT_EQ(buffer->move(), -EBUSY);
  {
    const std::lock_guard lock(buffer->reservation());
    EXPECT_EQ(buffer->pin(*dynamic), -EBUSY) << "pinned in system memory for the static one";
  }
  buffer->unmap(*fixed, list);
  EXPECT_EQ(buffer->move(), 0);
  EXPECT_EQ(told, 0);
  buffer->detach(*fixed);
  buffer->detach(*dynamic);
}

TEST(DmaBuf, ExportersThatNeverMoveSaySo) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  for (const std::uint32_t vendor : {STRAIT_SOFT_VENDOR_CUDA, STRAIT_SOFT_VENDOR_GAUDI, STRAIT_SOFT_VENDOR_SOFT}) {
    auto buffer = kernel.get(machine.allocate(vendor, 4096).file.get());
    EXPECT_EQ(buffer->move(), -EOPNOTSUPP) << vendor;
  }
}

TEST(DmaBuf, ListsAreCutAtTheImportersLongestSegmentAndMayHaveHoles) {
  Machine machine;
  machine.nic.max_segment_bytes = 3 * 4096;
  Kernel kernel(machine.drivers, settings("none"));
  Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_ROCM, (std::uint64_t{2} << 20) + 8192);
  auto buffer = kernel.get(memory.file.get());
  const ImporterOps ops = telling();
  Attachment* attachment = nullptr;
  ASSERT_EQ(buffer->attach(machine.nic, &ops, attachment), 0);
  const std::lock_guard lock(buffer->reservation());
  DmaList list;
  ASSERT_EQ(buffer->map(*attachment, list), 0);
  std::uint64_t total = 0;
  for (const Segment& each : list.segments) {
    EXPECT_LE(each.length_bytes, 3u * 4096);
    total += each.length_bytes;
  }
  EXPECT_EQ(total, buffer->size_bytes());
  EXPECT_EQ(list.mappings.size(), 2u);
  DmaList again;
  ASSERT_EQ(buffer->map(*attachment, again), 0);
  EXPECT_NE(again.segments[0].at, list.segments[0].at) << "every map has addresses of its own";
  buffer->unmap(*attachment, again);
  buffer->unmap(*attachment, list);
}

TEST(DmaBuf, AFenceIsWaitedForWithTheLockHeld) {
  Reservation reservation;
  auto fence = std::make_shared<Fence>();
  std::atomic<bool> locked{false};
  std::thread mover([&] {
    while (!locked) std::this_thread::yield();
    fence->signal();  // takes no lock that the waiter holds
  });
  {
    const std::lock_guard lock(reservation);
    reservation.add_kernel_fence(fence);
    EXPECT_FALSE(reservation.wait_kernel_fences(sys::Deadline::after_ns(0))) << "not signalled yet";
    locked = true;
    EXPECT_TRUE(reservation.wait_kernel_fences(sys::Deadline::after_ns(60'000'000'000)));
    EXPECT_TRUE(reservation.wait_kernel_fences(sys::Deadline::after_ns(0))) << "none is left";
  }
  mover.join();
}

struct Refusal {
  const char* name;
  std::uint32_t vendor;
  const char* faults;
  bool has_path;
  int at_attach;
  int at_map;
};

class Refusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refusals, AreTheVendorsOwn) {
  const Refusal& is = GetParam();
  Machine machine;
  machine.nic.peer_path = is.has_path;
  Kernel kernel(machine.drivers, settings("none", is.faults));
  auto buffer = kernel.get(machine.allocate(is.vendor, 4096).file.get());
  const ImporterOps ops = telling();
  Attachment* attachment = nullptr;
  ASSERT_EQ(buffer->attach(machine.nic, &ops, attachment), is.at_attach);
  if (attachment == nullptr) return;
  {
    const std::lock_guard lock(buffer->reservation());
    DmaList list;
    const int mapped = buffer->map(*attachment, list);
    EXPECT_EQ(mapped, is.at_map);
    if (mapped == 0) buffer->unmap(*attachment, list);
  }
  buffer->detach(*attachment);
  buffer.reset();
  EXPECT_EQ(kernel.unbalanced(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Exporters, Refusals,
    ::testing::Values(Refusal{"nvidia_fine", STRAIT_SOFT_VENDOR_CUDA, "", true, 0, 0},
                      Refusal{"nvidia_topology", STRAIT_SOFT_VENDOR_CUDA, "topology", true, -524, 0},
                      Refusal{"nvidia_no_path", STRAIT_SOFT_VENDOR_CUDA, "", false, -524, 0},
                      Refusal{"gaudi_fine", STRAIT_SOFT_VENDOR_GAUDI, "", true, 0, 0},
                      Refusal{"gaudi_no_path", STRAIT_SOFT_VENDOR_GAUDI, "no_p2p", true, 0, -EPERM},
                      Refusal{"gaudi_reset", STRAIT_SOFT_VENDOR_GAUDI, "reset", true, 0, -EBUSY},
                      Refusal{"amd_no_path", STRAIT_SOFT_VENDOR_ROCM, "", false, 0, 0},
                      Refusal{"nvidia_bar", STRAIT_SOFT_VENDOR_CUDA, "bar=4095", true, 0, -ENOMEM},
                      Refusal{"any_attach", STRAIT_SOFT_VENDOR_SOFT, "attach=EIO", true, -EIO, 0},
                      Refusal{"any_map", STRAIT_SOFT_VENDOR_SOFT, "map=ENOMEM", true, 0, -ENOMEM}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Exporters, NvidiaRefusesAnImporterThatTakesNoPeerMemory) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none"));
  auto buffer = kernel.get(machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 4096).file.get());
  const ImporterOps ops = telling(nullptr, false);
  Attachment* attachment = nullptr;
  EXPECT_EQ(buffer->attach(machine.nic, &ops, attachment), -524);
  EXPECT_EQ(buffer->attach(machine.nic, nullptr, attachment), -524) << "a static one never does";
}

TEST(Exporters, AmdgpuMovesAStaticBufferSilentlyWhenToldTo) {
  for (const bool silently : {false, true}) {
    Machine machine;
    Kernel kernel(machine.drivers, settings("none", silently ? "static_moves" : ""));
    Machine::Memory& memory = machine.allocate(STRAIT_SOFT_VENDOR_ROCM, 4096);
    std::memcpy(memory.bytes.data(), "before", 6);
    auto buffer = kernel.get(memory.file.get());
    Attachment* attachment = nullptr;
    ASSERT_EQ(buffer->attach(machine.nic, nullptr, attachment), 0);
    DmaList list;
    ASSERT_EQ(buffer->map(*attachment, list), 0) << "no error anywhere";
    EXPECT_EQ(std::memcmp(list.segments[0].at, "before", 6), 0);
    std::memcpy(list.segments[0].at, "after!", 6);
    EXPECT_EQ(testing::device_text(memory, 0, 6), silently ? "before" : "after!");
    buffer->unmap(*attachment, list);
    buffer->detach(*attachment);
  }
}

TEST(Exporters, BarSpaceIsGivenBack) {
  Machine machine;
  Kernel kernel(machine.drivers, settings("none", "bar=8192"));
  Machine::Memory& a = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 8192);
  Machine::Memory& b = machine.allocate(STRAIT_SOFT_VENDOR_CUDA, 4096);
  NicMemoryOwner first;
  NicMemoryOwner second;
  ASSERT_EQ(kernel.import_dmabuf(machine.nic, a.file.get(), 0, 8192, 0, first), 0);
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, b.file.get(), 0, 4096, 0, second), -ENOMEM);
  first.reset();
  EXPECT_EQ(kernel.import_dmabuf(machine.nic, b.file.get(), 0, 4096, 0, second), 0);
  second.reset();
  EXPECT_EQ(kernel.bar().used(BarSpace::of(STRAIT_SOFT_VENDOR_CUDA, 0)), 0u);
  EXPECT_EQ(kernel.unbalanced(), "");
}

}  // namespace
}  // namespace strait::soft::kernel
