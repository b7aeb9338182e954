// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "soft/gaudi/testing.hpp"
#include "soft/kernel/driver.h"
#include "sys/files.hpp"

namespace strait::soft::gaudi::testing {
namespace {

constexpr std::uint32_t kReadWrite = 2, kCloseOnExec = 02000000;

class HlThunk : public GaudiTest {};

TEST_F(HlThunk, DevicesAreCountedNamedAndDescribed) {
  EXPECT_EQ(HL(get_device_count)(hl::kNameDontCare), 4);
  EXPECT_EQ(HL(get_device_count)(hl::kNameGaudi2), 4);
  EXPECT_EQ(HL(get_device_count)(hl::kNameGaudi), 0);
  const int control = HL(open_control)(2, nullptr);
  ASSERT_GE(control, 0);
  EXPECT_EQ(HL(get_device_name_from_fd)(control), hl::kNameGaudi2);
  EXPECT_EQ(HL(get_device_id_from_fd)(control), 0x1020u);
  char bus[20] = {};
  EXPECT_EQ(HL(get_pci_bus_id_from_fd)(control, bus, sizeof bus), 0);
  EXPECT_STREQ(bus, "0000:32:00.0");
  EXPECT_EQ(HL(get_device_index_from_pci_bus_id)(bus), 2);
  EXPECT_EQ(HL(get_device_index_from_pci_bus_id)("0000:99:00.0"), -ENODEV);
  hl::HwIpInfo info{};
  EXPECT_EQ(HL(get_hw_ip_info)(control, &info), 0);
  EXPECT_EQ(info.dram_size, 16u << 20);
  EXPECT_EQ(info.module_id, 2u);
  EXPECT_NE(info.device_mem_alloc_default_page_size, 0u);
  EXPECT_EQ(HL(close)(control), 0);
  EXPECT_EQ(HL(close)(control), -EBADF);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(HL(open_control)(9, nullptr), -ENODEV);
}

TEST_F(HlThunk, AComputeNodeHasOneOwner) {
  Peer peer;
  const int fd = HL(open_by_module_id)(1);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(HL(open_by_module_id)(1), -EBUSY);
  EXPECT_EQ(peer.ask("open 1"), -EBUSY);
  EXPECT_GE(peer.ask("control 1"), 0) << "the control node is anybody's";
  EXPECT_EQ(peer.ask("active 1"), 1);
  EXPECT_GE(peer.ask("open 2"), 0);
  EXPECT_EQ(HL(open_by_module_id)(2), -EBUSY);
  const int any = HL(open)(hl::kNameDontCare, nullptr);
  EXPECT_GE(any, 0) << "one of the others";
  EXPECT_EQ(HL(open)(hl::kNameDontCare, "0000:32:00.0"), -EBUSY);
  EXPECT_EQ(HL(close)(any), 0);
  EXPECT_EQ(HL(close)(fd), 0);
  EXPECT_EQ(peer.ask("active 1"), 0);
  EXPECT_GE(peer.ask("open 1"), 0);
  peer.end();  // without closing: the kernel does it
  const int again = HL(open_by_module_id)(1);
  EXPECT_GE(again, 0);
  EXPECT_EQ(HL(close)(again), 0);
}

TEST_F(HlThunk, ADuplicateIsAsGoodAndKeepsItOpen) {
  const int fd = HL(open_by_module_id)(0);
  const int copy = ::dup(fd);
  const std::uint64_t handle = HL(device_memory_alloc)(fd, 1 << 20, 0, true, false);
  EXPECT_EQ(HL(close)(fd), 0);
  EXPECT_EQ(HL(open_by_module_id)(0), -EBUSY);
  EXPECT_NE(HL(device_memory_map)(copy, handle, 0), 0u);
  EXPECT_EQ(HL(close)(copy), 0);
  const int again = HL(open_by_module_id)(0);
  EXPECT_GE(again, 0);
  ::close(again);  // without the library: the next open finds out
  const int last = HL(open_by_module_id)(0);
  EXPECT_GE(last, 0);
  EXPECT_EQ(HL(close)(last), 0);
}

TEST_F(HlThunk, MemoryIsAllocatedMappedExportedAndSeenByOthers) {
  const int fd = HL(open_by_module_id)(0);
  const std::uint64_t size = 3 << 20;
  const std::uint64_t handle = HL(device_memory_alloc)(fd, size, 0, true, false);
  ASSERT_NE(handle, 0u);
  EXPECT_EQ(HL(device_memory_alloc)(fd, std::uint64_t{64} << 20, 0, true, false), 0u) << "more than there is";
  EXPECT_EQ(HL(device_memory_alloc)(fd, 0, 0, true, false), 0u);
  EXPECT_EQ(HL(device_memory_alloc)(fd, UINT64_MAX, 0, true, false), 0u);
  EXPECT_EQ(HL(device_memory_alloc)(fd, 65536, 12345, true, false), 0u) << "no such page size";
  hl::DramUsage usage{};
  EXPECT_EQ(HL(get_dram_usage)(fd, &usage), 0);
  EXPECT_EQ(usage.context_bytes, size);
  EXPECT_EQ(usage.free_bytes, (16u << 20) - size);
  const std::uint64_t address = HL(device_memory_map)(fd, handle, 0);
  ASSERT_NE(address, 0u);
  EXPECT_EQ(address >> 48, 0x1001u) << "no address of a CPU";
  EXPECT_EQ(HL(device_memory_map)(fd, handle, 0), 0u) << "mapped already";
  EXPECT_EQ(HL(device_memory_free)(fd, handle), -EINVAL) << "mapped";

  const int dmabuf = HL(device_mapped_memory_export_dmabuf_fd)(fd, address, size, 0, kReadWrite | kCloseOnExec);
  ASSERT_GE(dmabuf, 0);
  void* look = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
  ASSERT_NE(look, MAP_FAILED);
  std::memset(look, 0x6b, size);
  ::munmap(look, size);
  EXPECT_EQ(HL(memory_unmap)(fd, address), -EINVAL) << "exported";
  ::close(dmabuf);
  EXPECT_EQ(HL(memory_unmap)(fd, address), 0);
  EXPECT_EQ(HL(memory_unmap)(fd, address), -EINVAL);
  EXPECT_EQ(HL(device_memory_free)(fd, handle), 0);
  EXPECT_EQ(HL(device_memory_free)(fd, handle), -EINVAL);
  // The next allocation is clean.
  const std::uint64_t next = HL(device_memory_alloc)(fd, size, 0, true, false);
  const std::uint64_t next_address = HL(device_memory_map)(fd, next, 0);
  const int next_fd = HL(device_mapped_memory_export_dmabuf_fd)(fd, next_address, size, 0, kReadWrite);
  char byte = 1;
  EXPECT_EQ(::pread(next_fd, &byte, 1, 4096), 1);
  EXPECT_EQ(byte, 0);
  ::close(next_fd);
  EXPECT_EQ(HL(close)(fd), 0) << "what was mapped goes with it";
}

TEST_F(HlThunk, TheExportersRules) {
  const int fd = HL(open_by_module_id)(0);
  const std::uint64_t handle = HL(device_memory_alloc)(fd, 1 << 20, 0, true, false);
  const auto exported = HL(device_mapped_memory_export_dmabuf_fd);
  EXPECT_EQ(exported(fd, handle, 4096, 0, kReadWrite), -EINVAL) << "not mapped yet";
  const std::uint64_t at = HL(device_memory_map)(fd, handle, 0);
  EXPECT_EQ(exported(fd, at + 1, 4096, 0, kReadWrite), -EINVAL);
  EXPECT_EQ(exported(fd, at + 4096, 4096, 0, kReadWrite), -EINVAL) << "exactly what map gave";
  EXPECT_EQ(exported(fd, at, 100, 0, kReadWrite), -EINVAL) << "less than a page";
  EXPECT_EQ(exported(fd, at, 4096, 1, kReadWrite), -EINVAL);
  EXPECT_EQ(exported(fd, at, (1 << 20) + 4096, 0, kReadWrite), -EINVAL);
  EXPECT_EQ(exported(fd, at, 1 << 20, 4096, kReadWrite), -EINVAL);
  EXPECT_EQ(exported(fd, at, 4096, UINT64_MAX - 4095, kReadWrite), -EINVAL);
  EXPECT_EQ(exported(fd, at, UINT64_MAX, 4096, kReadWrite), -EINVAL);
  EXPECT_EQ(exported(fd, at, 4096, 0, 0x400), -EINVAL) << "a flag that is none";
  EXPECT_EQ(exported(fd, 0, 4096, 0, kReadWrite), -EINVAL);
  EXPECT_EQ(exported(-1, at, 4096, 0, kReadWrite), -EBADF);
  EXPECT_EQ(exported(0, at, 4096, 0, kReadWrite), -ENOTTY);
  const int control = HL(open_control)(0, nullptr);
  EXPECT_EQ(exported(control, at, 4096, 0, kReadWrite), -ENOTTY);
  EXPECT_EQ(HL(device_memory_export_dmabuf_fd)(fd, at, 4096, kReadWrite), -EINVAL) << "first generation only";
  EXPECT_EQ(HL(close)(control), 0);
  EXPECT_EQ(HL(close)(fd), 0);
}

TEST_F(HlThunk, ALeakedDescriptorKeepsTheDeviceBusyForOthers) {
  Peer peer;
  const int fd = HL(open_by_module_id)(3);
  const std::uint64_t handle = HL(device_memory_alloc)(fd, 65536, 0, true, false);
  const std::uint64_t address = HL(device_memory_map)(fd, handle, 0);
  const int dmabuf = HL(device_mapped_memory_export_dmabuf_fd)(fd, address, 65536, 0, kReadWrite);
  ASSERT_GE(dmabuf, 0);
  const int copy = ::dup(dmabuf);
  EXPECT_EQ(HL(close)(fd), 0);
  EXPECT_EQ(peer.ask("open 3"), -EBUSY);
  EXPECT_EQ(HL(open_by_module_id)(3), -EBUSY) << "for its old owner too";
  ::close(dmabuf);
  EXPECT_EQ(peer.ask("open 3"), -EBUSY) << "the duplicate";
  ::close(copy);
  EXPECT_GE(peer.ask("open 3"), 0);
  EXPECT_EQ(peer.ask("close"), 0);
  EXPECT_GE(peer.ask("leak 3"), 0);
  EXPECT_EQ(HL(open_by_module_id)(3), -EBUSY) << "the other way round";
  peer.end();
  const int again = HL(open_by_module_id)(3);
  EXPECT_GE(again, 0);
  EXPECT_EQ(HL(close)(again), 0);
}

TEST_F(HlThunk, AResetIsHeardAndTheDescriptorIsDeadAfterwards) {
  const int fd = HL(open_by_module_id)(1);
  const int notifier = HL(notifier_create)(fd);
  ASSERT_GT(notifier, 0);
  EXPECT_EQ(HL(notifier_create)(fd), -EINVAL) << "one for each open";
  std::uint64_t events = 9, count = 9;
  EXPECT_EQ(HL(notifier_recv)(fd, notifier, &events, &count, 0, 0), 0);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(HL(get_device_status_info)(fd), 0);
  std::thread later([] {
    EXPECT_EQ(named<decltype(&strait_soft_gaudi_reset)>("libstrait-gaudi.so", "strait_soft_gaudi_reset")(1), 0);
  });
  EXPECT_EQ(HL(notifier_recv)(fd, notifier, &events, &count, 0, 60'000), 0);
  later.join();
  EXPECT_EQ(events, 4u) << "HL_NOTIFIER_EVENT_DEVICE_RESET";
  EXPECT_EQ(count, 1u);
  EXPECT_NE(HL(get_device_status_info)(fd), 0);
  EXPECT_EQ(HL(device_memory_alloc)(fd, 65536, 0, true, false), 0u);
  EXPECT_EQ(HL(memory_unmap)(fd, 1), -ENODEV);
  hl::ResetCount resets{};
  EXPECT_EQ(HL(get_reset_count_info)(fd, &resets), 0);
  EXPECT_GE(resets.hard, 1u);
  EXPECT_EQ(HL(notifier_recv)(fd, notifier + 1, &events, &count, 0, 0), -EINVAL);
  EXPECT_EQ(HL(notifier_release)(fd, notifier), 0);
  EXPECT_EQ(HL(close)(fd), 0);
  const int again = HL(open_by_module_id)(1);
  EXPECT_GE(again, 0);
  EXPECT_EQ(HL(get_device_status_info)(again), 0);
  EXPECT_EQ(HL(close)(again), 0);
}

TEST_F(HlThunk, HostMemoryIsMappedForTheDevice) {
  const int fd = HL(open_by_module_id)(0);
  std::vector<std::byte> mine(10'000);
  const std::uint64_t first = HL(host_memory_map)(fd, mine.data(), 0, mine.size());
  const std::uint64_t second = HL(host_memory_map_flags)(fd, mine.data(), 0, 100, 0);
  EXPECT_NE(first, 0u);
  EXPECT_NE(second, 0u);
  EXPECT_NE(first, second);
  EXPECT_EQ(HL(host_memory_map)(fd, nullptr, 0, 100), 0u);
  EXPECT_EQ(HL(host_memory_map)(fd, mine.data(), 0, 0), 0u);
  EXPECT_EQ(HL(memory_unmap)(fd, first), 0);
  EXPECT_EQ(HL(memory_unmap)(fd, first), -EINVAL);
  EXPECT_EQ(HL(memory_unmap)(fd, second), 0);
  EXPECT_EQ(HL(cs_flush_pci_hbw_writes)(fd), 0);
  EXPECT_EQ(HL(close)(fd), 0);
}

TEST_F(HlThunk, TheKernelKnowsMappedMemory) {
  auto soft = sys::Library::open(STRAIT_STAND_INS "/../libstrait-soft.so.0");
  ASSERT_TRUE(soft) << soft.error().text;
  const auto find = soft->symbol<decltype(&strait_soft_driver_find)>("strait_soft_driver_find");
  ASSERT_TRUE(find);
  const int fd = HL(open_by_module_id)(2);
  const std::uint64_t handle = HL(device_memory_alloc)(fd, 1 << 20, 0, true, false);
  const std::uint64_t address = HL(device_memory_map)(fd, handle, 0);
  strait_soft_driver_memory known{};
  known.struct_size = sizeof known;
  ASSERT_EQ((*find)(address + 100, &known), 1);
  EXPECT_EQ(known.vendor, static_cast<std::uint32_t>(STRAIT_SOFT_VENDOR_GAUDI));
  EXPECT_EQ(known.device, 2u);
  EXPECT_EQ(known.flags & STRAIT_SOFT_P2P_CAPABLE, 0u) << "no peer-memory client knows it";
  const int dmabuf = HL(device_mapped_memory_export_dmabuf_fd)(fd, address, 1 << 20, 0, kReadWrite);
  EXPECT_EQ(sys::file_id(dmabuf), sys::file_id(known.memfd));
  ::close(dmabuf);
  EXPECT_EQ(HL(close)(fd), 0);
  EXPECT_EQ((*find)(address, &known), 0);
}

TEST_F(HlThunk, ChildOfForkIsRefused) {
  const int fd = HL(open_by_module_id)(0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = HL(open_by_module_id)(1) == -ENODEV &&
                         HL(device_memory_alloc)(fd, 65536, 0, true, false) == 0 && HL(memory_unmap)(fd, 1) == -EPERM;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(HL(close)(fd), 0);
}

// Its driver lives to the end of the process. The library of 2021: nothing else here has it open.
TEST_F(HlThunk, ALibraryThatWasClosedStaysLoaded) {
  constexpr const char* kFile = STRAIT_STAND_INS "/gaudi2021/libhl-thunk.so";
  void* const opened = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(opened, nullptr) << ::dlerror();
  EXPECT_EQ(::dlclose(opened), 0);
  EXPECT_NE(::dlopen(kFile, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST_F(HlThunk, HashTablesCountAndWalk) {
  void* table = HL(hash_create)();
  int values[3] = {};
  for (unsigned long key = 0; key < 3; ++key) EXPECT_EQ(HL(hash_insert)(table, key * 7, &values[key]), 0);
  EXPECT_EQ(HL(hash_insert)(table, 7, nullptr), 1) << "there already";
  void* value = nullptr;
  EXPECT_EQ(HL(hash_lookup)(table, 7, &value), 0);
  EXPECT_EQ(value, &values[1]);
  EXPECT_NE(HL(hash_lookup)(table, 8, &value), 0);
  unsigned long key = 0;
  int seen = 0;
  for (int more = HL(hash_first)(table, &key, &value); more == 1; more = HL(hash_next)(table, &key, &value)) ++seen;
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(HL(hash_delete)(table, 14), 0);
  EXPECT_EQ(HL(hash_delete)(table, 14), 1);
  EXPECT_EQ(HL(hash_destroy)(table), 0);
  char* version = HL(get_version)();
  EXPECT_NE(version, nullptr);
  HL(free)(version);
}

TEST_F(HlThunk, EveryOtherNameIsThereAndSaysItCannot) {
  int names = 0;
  for (const auto& [name, answer] : std::vector<std::pair<const char*, int>>{
#define HL_UNSUPPORTED(name) {#name, -EOPNOTSUPP},
#define HL_NOTHING(name) {#name, 0},
#include "soft/gaudi/hlthunk_unsupported_current.inc"
       }) {
    EXPECT_EQ(static_cast<int>(named<std::int64_t (*)()>("libhl-thunk.so", name)()), answer) << name;
    ++names;
  }
  EXPECT_EQ(names, 112) << "with the 43 that work, the header's 155";
}

}  // namespace
}  // namespace strait::soft::gaudi::testing
