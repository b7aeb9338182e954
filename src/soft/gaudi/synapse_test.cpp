// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "soft/accel/window.hpp"
#include "soft/gaudi/testing.hpp"

namespace strait::soft::gaudi::testing {
namespace {

using syn::kDramToDram, syn::kDramToHost, syn::kHostToDram;
constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// Two devices acquired, a stream on each.
class Synapse : public GaudiTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(SYN(Initialize)(), syn::kSuccess);
    for (std::uint32_t i = 0; i < 2; ++i) {
      ASSERT_EQ(SYN(DeviceAcquireByModuleId)(&device_[i], i), syn::kSuccess);
      ASSERT_EQ(SYN(StreamCreateGeneric)(&stream_[i], device_[i], 0), syn::kSuccess);
    }
  }
  void TearDown() override {
    EXPECT_EQ(SYN(Destroy)(), syn::kSuccess);
    GaudiTest::TearDown();
  }
  std::uint64_t allocate(int which, std::uint64_t size) {
    std::uint64_t buffer = 0;
    EXPECT_EQ(SYN(DeviceMalloc)(device_[which], size, 0, 0, &buffer), syn::kSuccess);
    return buffer;
  }
  void put(int which, std::uint64_t to, const std::vector<std::byte>& bytes) {
    ASSERT_EQ(SYN(HostMap)(device_[which], bytes.size(), bytes.data()), syn::kSuccess);
    EXPECT_EQ(SYN(MemCopyAsync)(stream_[which], address_of(bytes.data()), bytes.size(), to, kHostToDram),
              syn::kSuccess);
    EXPECT_EQ(SYN(StreamSynchronize)(stream_[which]), syn::kSuccess);
    EXPECT_EQ(SYN(HostUnmap)(device_[which], bytes.data()), syn::kSuccess);
  }
  std::vector<std::byte> get(int which, std::uint64_t from, std::size_t size) {
    std::vector<std::byte> bytes(size);
    EXPECT_EQ(SYN(HostMap)(device_[which], size, bytes.data()), syn::kSuccess);
    EXPECT_EQ(SYN(MemCopyAsync)(stream_[which], from, size, address_of(bytes.data()), kDramToHost), syn::kSuccess);
    EXPECT_EQ(SYN(StreamSynchronize)(stream_[which]), syn::kSuccess);
    EXPECT_EQ(SYN(HostUnmap)(device_[which], bytes.data()), syn::kSuccess);
    return bytes;
  }
  syn::DeviceId device_[2] = {};
  syn::StreamHandle stream_[2] = {};
};

TEST_F(Synapse, DevicesAreCountedAcquiredAndDescribed) {
  std::uint32_t count = 0;
  EXPECT_EQ(SYN(DeviceGetCount)(&count), syn::kSuccess);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(SYN(DeviceGetCountByDeviceType)(&count, syn::kTypeGaudi), syn::kSuccess);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(SYN(Initialize)(), syn::kAlreadyInitialized);
  syn::DeviceId again = 9;
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&again, 0), syn::kDeviceAlreadyAcquired);
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&again, 7), syn::kNoDeviceFound);
  syn::DeviceInfoV2 info{};
  EXPECT_EQ(SYN(DeviceGetInfoV2)(UINT32_MAX, &info), syn::kSuccess) << "the one this process has";
  EXPECT_EQ(info.device_id, 0u);
  EXPECT_EQ(info.type, syn::kTypeGaudi2);
  EXPECT_EQ(HL(get_device_name_from_fd)(static_cast<int>(info.fd)), hl::kNameGaudi2);
  syn::DeviceInfo old{};
  EXPECT_EQ(SYN(DeviceGetInfo)(device_[1], &old), syn::kSuccess);
  EXPECT_EQ(old.device_id, 1u);
  EXPECT_EQ(SYN(DeviceGetInfo)(3, &old), syn::kNoDeviceFound);
  char text[32] = {};
  EXPECT_EQ(SYN(DeviceGetPCIBusId)(text, sizeof text, device_[1]), syn::kSuccess);
  EXPECT_STREQ(text, "0000:31:00.0");
  EXPECT_EQ(SYN(DeviceGetPCIBusId)(text, 3, device_[1]), syn::kInvalidArgument);
  EXPECT_EQ(SYN(StatusGetBriefDescription)(syn::kDeviceReset, text, sizeof text), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceAcquire)(&again, "0000:32:00.0"), syn::kSuccess);
  EXPECT_EQ(again, 2u);
  ::setenv("HABANA_VISIBLE_MODULES", "0,1,2", 1);
  EXPECT_EQ(SYN(DeviceAcquire)(&again, nullptr), syn::kNoDeviceFound) << "all that may be seen are taken";
  ::setenv("HABANA_VISIBLE_MODULES", "3", 1);
  EXPECT_EQ(SYN(DeviceAcquireByDeviceType)(&again, syn::kTypeGaudi2), syn::kSuccess);
  ::unsetenv("HABANA_VISIBLE_MODULES");
  EXPECT_EQ(again, 3u);
  EXPECT_EQ(SYN(DeviceRelease)(again), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceRelease)(again), syn::kInvalidArgument);
}

TEST_F(Synapse, AnotherProcessFindsADeviceBusy) {
  Peer peer;
  EXPECT_EQ(peer.ask("acquire 0"), syn::kBusy);
  EXPECT_EQ(peer.ask("acquire 3"), syn::kSuccess);
  syn::DeviceId device = 0;
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device, 3), syn::kBusy);
  peer.end();
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device, 3), syn::kSuccess);
}

TEST_F(Synapse, BytesGoInAndOutAndAround) {
  const std::size_t size = (1 << 20) + 13;
  const auto bytes = pattern(size, 3);
  const std::uint64_t first = allocate(0, size), second = allocate(0, size);
  EXPECT_NE(first % kPageBytes, second % kPageBytes) << "carved, not page by page";
  put(0, first, bytes);
  EXPECT_EQ(SYN(MemCopyAsync)(stream_[0], first, size, second, kDramToDram), syn::kSuccess);
  EXPECT_EQ(get(0, second, size), bytes);
  EXPECT_EQ(SYN(MemsetD8Async)(second, 9, 10, stream_[0]), syn::kSuccess);
  EXPECT_EQ(SYN(MemsetD32Async)(second + 16, 0x01020304, 2, stream_[0]), syn::kSuccess);
  const auto head = get(0, second, 24);
  EXPECT_EQ(head[9], std::byte{9});
  EXPECT_EQ(head[10], bytes[10]);
  EXPECT_EQ(head[23], std::byte{1});
  EXPECT_EQ(SYN(DeviceFree)(device_[0], first, 0), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], first, 0), syn::kFailedToFreeDeviceMemory);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], second, 0), syn::kSuccess);
}

TEST_F(Synapse, ATransferBetweenDevicesGoesOverTheirLinkAndNotThroughTheHost) {
  const std::size_t size = 2 << 20;
  const auto bytes = pattern(size, 6);
  const std::uint64_t from = allocate(0, size), to = allocate(1, size);
  EXPECT_NE(from >> 43, to >> 43) << "an address says whose it is";
  put(0, from, bytes);
  const std::uint64_t host_before = counter("host_bytes"), link_before = counter("link0to1_bytes");
  const std::uint64_t back_before = counter("link1to0_bytes"), transfers = counter("link0to1_transfers");
  EXPECT_EQ(SYN(MemCopyAsync)(stream_[0], from, size, to, kDramToDram), syn::kSuccess);
  EXPECT_EQ(SYN(StreamSynchronize)(stream_[0]), syn::kSuccess);
  EXPECT_EQ(counter("host_bytes"), host_before) << "no byte passed host memory";
  EXPECT_EQ(counter("link0to1_bytes"), link_before + size);
  EXPECT_EQ(counter("link0to1_transfers"), transfers + 1);
  EXPECT_EQ(SYN(MemCopyAsync)(stream_[0], to, 100, from, kDramToDram), syn::kSuccess) << "the other way";
  EXPECT_EQ(SYN(StreamSynchronize)(stream_[0]), syn::kSuccess);
  EXPECT_EQ(counter("link1to0_bytes"), back_before + 100);
  EXPECT_EQ(get(1, to, size), bytes);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], from, 0), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceFree)(device_[1], to, 0), syn::kSuccess);
}

TEST_F(Synapse, HostMemoryMustBeMapped) {
  const std::uint64_t memory = allocate(0, 8192);
  std::vector<std::byte> mine(8192);
  const auto copy = [&](std::size_t at, std::uint64_t size) {
    return SYN(MemCopyAsync)(stream_[0], address_of(mine.data() + at), size, memory, kHostToDram);
  };
  EXPECT_EQ(copy(0, 8192), syn::kMappingNotFound);
  EXPECT_EQ(SYN(HostMap)(device_[0], 4096, mine.data()), syn::kSuccess);
  EXPECT_EQ(SYN(HostMap)(device_[0], 4096, mine.data()), syn::kFail) << "twice";
  EXPECT_EQ(copy(0, 4096), syn::kSuccess);
  EXPECT_EQ(copy(1, 4096), syn::kMappingNotFound) << "beyond what is mapped";
  EXPECT_EQ(copy(0, UINT64_MAX), syn::kMappingNotFound);
  EXPECT_EQ(SYN(MemCopyAsync)(stream_[1], address_of(mine.data()), 64, memory, kHostToDram), syn::kMappingNotFound)
      << "mapped for another device";
  EXPECT_EQ(SYN(HostUnmap)(device_[0], mine.data()), syn::kSuccess);
  EXPECT_EQ(SYN(HostUnmap)(device_[0], mine.data()), syn::kInvalidArgument);
  void* buffer = nullptr;
  EXPECT_EQ(SYN(HostMalloc)(device_[0], 10'000, 0, &buffer), syn::kSuccess);
  std::memset(buffer, 1, 10'000);
  EXPECT_EQ(SYN(MemCopyAsync)(stream_[0], address_of(buffer) + 100, 8192, memory, kHostToDram), syn::kSuccess);
  EXPECT_EQ(SYN(HostUnmap)(device_[0], buffer), syn::kInvalidArgument) << "freed, not unmapped";
  EXPECT_EQ(SYN(HostFree)(device_[0], buffer, 0), syn::kSuccess);
  EXPECT_EQ(SYN(HostFree)(device_[0], buffer, 0), syn::kInvalidArgument);
  EXPECT_EQ(SYN(HostMalloc)(device_[0], UINT64_MAX, 0, &buffer), syn::kOutOfHostMemory);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], memory, 0), syn::kSuccess);
}

TEST_F(Synapse, WrongAddressesAndHandlesAreAnswered) {
  const std::uint64_t memory = allocate(0, 4096);
  const auto copy = [&](std::uint64_t from, std::uint64_t size, std::uint64_t to, int direction) {
    return SYN(MemCopyAsync)(stream_[0], from, size, to, direction);
  };
  EXPECT_EQ(copy(memory, 0, memory, kDramToDram), syn::kInvalidArgument);
  EXPECT_EQ(copy(memory, 64, memory, 3), syn::kInvalidArgument);
  EXPECT_EQ(copy(memory, std::uint64_t{32} << 20, memory, kDramToDram), syn::kInvalidArgument) << "past the pool";
  EXPECT_EQ(copy(memory, 64, 0, kDramToDram), syn::kInvalidArgument);
  EXPECT_EQ(copy(UINT64_MAX - 8, 64, memory, kDramToDram), syn::kInvalidArgument);
  EXPECT_EQ(copy(memory, 64, address_of(&device_), kDramToDram), syn::kInvalidArgument);
  EXPECT_EQ(SYN(MemCopyAsync)(nullptr, memory, 64, memory, kDramToDram), syn::kInvalidArgument);
  EXPECT_EQ(SYN(StreamSynchronize)(nullptr), syn::kInvalidArgument);
  EXPECT_EQ(SYN(StreamDestroy)(reinterpret_cast<syn::StreamHandle>(&device_)), syn::kInvalidArgument);
  EXPECT_EQ(SYN(EventQuery)(nullptr), syn::kInvalidEventHandle);
  std::uint64_t buffer = 0;
  EXPECT_EQ(SYN(DeviceMalloc)(device_[0], 0, 0, 0, &buffer), syn::kInvalidArgument);
  EXPECT_EQ(SYN(DeviceMalloc)(device_[0], UINT64_MAX, 0, 0, &buffer), syn::kOutOfDeviceMemory);
  EXPECT_EQ(SYN(DeviceMalloc)(3, 64, 0, 0, &buffer), syn::kInvalidArgument);
  EXPECT_EQ(SYN(DeviceMalloc)(device_[0], 64, memory, 0, &buffer), syn::kOutOfDeviceMemory) << "that address is taken";
  EXPECT_EQ(SYN(DeviceMalloc)(device_[0], 64, memory + 65536, 0, &buffer), syn::kSuccess);
  EXPECT_EQ(buffer, memory + 65536);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], buffer, 0), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], memory, 0), syn::kSuccess);
}

TEST_F(Synapse, StreamsAndEventsKeepOrder) {
  const std::size_t size = 4 << 20;
  const std::uint64_t memory = allocate(0, size);
  syn::EventHandle before = nullptr, after = nullptr;
  ASSERT_EQ(SYN(EventCreate)(&before, device_[0], 0), syn::kSuccess);
  ASSERT_EQ(SYN(EventCreate)(&after, device_[0], 0), syn::kSuccess);
  EXPECT_EQ(SYN(EventRecord)(before, stream_[0]), syn::kSuccess);
  const std::uint64_t half = size / 2;
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(SYN(MemCopyAsync)(stream_[0], memory, half, memory + half, kDramToDram), syn::kSuccess);
  EXPECT_EQ(SYN(EventRecord)(after, stream_[0]), syn::kSuccess);
  EXPECT_EQ(SYN(StreamWaitEvent)(stream_[1], after, 0), syn::kSuccess);
  EXPECT_EQ(SYN(EventSynchronize)(after), syn::kSuccess);
  EXPECT_EQ(SYN(EventQuery)(after), syn::kSuccess);
  EXPECT_EQ(SYN(StreamQuery)(stream_[0]), syn::kSuccess);
  std::uint64_t ns = 0;
  EXPECT_EQ(SYN(EventElapsedTime)(&ns, before, after), syn::kSuccess);
  EXPECT_EQ(SYN(EventElapsedTime)(&ns, after, before), syn::kInvalidArgument);
  EXPECT_EQ(SYN(EventDestroy)(before), syn::kSuccess);
  EXPECT_EQ(SYN(EventDestroy)(before), syn::kInvalidEventHandle);
  EXPECT_EQ(SYN(DeviceSynchronize)(device_[0]), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], memory, 0), syn::kSuccess);
}

TEST_F(Synapse, AResetDeviceSaysSo) {
  const std::uint64_t memory = allocate(1, 4096);
  EXPECT_EQ(named<decltype(&strait_soft_gaudi_reset)>("libstrait-gaudi.so", "strait_soft_gaudi_reset")(1), 0);
  EXPECT_EQ(SYN(MemCopyAsync)(stream_[1], memory, 64, memory + 128, kDramToDram), syn::kDeviceReset);
  EXPECT_EQ(SYN(StreamSynchronize)(stream_[1]), syn::kDeviceReset);
  std::uint64_t buffer = 0;
  EXPECT_EQ(SYN(DeviceMalloc)(device_[1], 64, 0, 0, &buffer), syn::kDeviceReset);
  EXPECT_EQ(SYN(DeviceRelease)(device_[1]), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device_[1], 1), syn::kSuccess) << "and is well after that";
}

// The way the merged UCX does it: one dma-buf for the whole pool, offsets from its base.
TEST_F(Synapse, TheWholePoolIsExportedOnce) {
  syn::DeviceInfoV2 info{};
  ASSERT_EQ(SYN(DeviceGetInfoV2)(device_[0], &info), syn::kSuccess);
  const int fd = static_cast<int>(info.fd);
  scal::Handle handle = nullptr;
  ASSERT_EQ(SCAL(get_handle_from_fd)(fd, &handle), scal::kSuccess);
  EXPECT_EQ(SCAL(get_fd)(handle), fd);
  scal::PoolHandle pool = nullptr;
  EXPECT_EQ(SCAL(get_pool_handle_by_name)(handle, "no_such_pool", &pool), scal::kNotFound);
  ASSERT_EQ(SCAL(get_pool_handle_by_name)(handle, "global_hbm", &pool), scal::kSuccess);
  scal::PoolInfoV2 hbm{};
  ASSERT_EQ(SCAL(pool_get_infoV2)(pool, &hbm), scal::kSuccess);
  EXPECT_STREQ(hbm.name, "global_hbm");
  EXPECT_EQ(hbm.scal, handle);
  EXPECT_EQ(hbm.device_base_allocated, info.global_hbm_base);
  EXPECT_GT(hbm.device_base, hbm.device_base_allocated) << "scal keeps the first part";

  const std::uint64_t memory = allocate(0, 10'000);
  const std::uint64_t second = allocate(0, 10'000);
  EXPECT_GE(memory, hbm.device_base);
  ASSERT_EQ(SCAL(pool_get_infoV2)(pool, &hbm), scal::kSuccess);
  EXPECT_LT(hbm.free_bytes, hbm.total_bytes);
  const auto bytes = pattern(10'000, 12);
  put(0, second, bytes);
  const int dmabuf = HL(device_mapped_memory_export_dmabuf_fd)(fd, hbm.device_base_allocated, hbm.total_bytes,
                                                               hbm.device_base - hbm.device_base_allocated, 2);
  ASSERT_GE(dmabuf, 0);
  std::vector<std::byte> seen(bytes.size());
  const auto offset = static_cast<off_t>(second - hbm.device_base);
  EXPECT_EQ(::pread(dmabuf, seen.data(), seen.size(), offset), static_cast<ssize_t>(seen.size()));
  EXPECT_EQ(seen, bytes);
  // And back: what a NIC writes there, the device has.
  const auto other = pattern(10'000, 13);
  EXPECT_EQ(::pwrite(dmabuf, other.data(), other.size(), offset), static_cast<ssize_t>(other.size()));
  EXPECT_EQ(get(0, second, other.size()), other);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], memory, 0), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], second, 0), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceRelease)(device_[0]), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device_[0], 0), syn::kBusy) << "the dma-buf holds it";
  ::close(dmabuf);
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device_[0], 0), syn::kSuccess);
}

std::vector<std::byte> bytes_behind(int dmabuf) {
  const auto window = accel::open_window(dmabuf);
  EXPECT_TRUE(window && *window);
  std::vector<std::byte> out;
  if (!window || !*window) return out;
  for (const accel::OpenedPiece& piece : **window) {
    const std::size_t had = out.size();
    out.resize(had + piece.length_bytes);
    EXPECT_EQ(::pread(piece.file.get(), out.data() + had, piece.length_bytes, static_cast<off_t>(piece.offset)),
              static_cast<ssize_t>(piece.length_bytes));
  }
  return out;
}

// The way libfabric's test program has it: a dma-buf for each buffer, at its offset from the pool's base.
TEST_F(Synapse, BuffersOfOnePoolAreExportedEachAtItsOffset) {
  constexpr std::uint64_t kBuffer = 3 * kPageBytes;
  syn::DeviceInfoV2 info{};
  ASSERT_EQ(SYN(DeviceGetInfoV2)(device_[0], &info), syn::kSuccess);
  const int fd = static_cast<int>(info.fd);
  const std::uint64_t base = info.global_hbm_base;
  constexpr std::uint64_t kFirst = 16 * kPageBytes;
  const std::uint64_t first = allocate(0, kFirst);  // at the base: the file itself
  const std::uint64_t buffers[] = {allocate(0, kBuffer), allocate(0, kBuffer)};
  int dmabufs[] = {-1, -1};
  for (const unsigned i : {0u, 1u}) {
    ASSERT_EQ(buffers[i] % kPageBytes, 0u);
    put(0, buffers[i], pattern(kBuffer, 40 + i));
    // 4 bytes short: the export is of whole pages.
    dmabufs[i] = HL(device_mapped_memory_export_dmabuf_fd)(fd, base, kBuffer - 4, buffers[i] - base, 2);
    ASSERT_GE(dmabufs[i], 0) << i;
  }
  // And around the pool's beginning, before which lies what scal keeps for itself.
  scal::Handle handle = nullptr;
  scal::PoolHandle pool = nullptr;
  scal::PoolInfoV2 hbm{};
  ASSERT_EQ(SCAL(get_handle_from_fd)(fd, &handle), scal::kSuccess);
  ASSERT_EQ(SCAL(get_pool_handle_by_name)(handle, "global_hbm", &pool), scal::kSuccess);
  ASSERT_EQ(SCAL(pool_get_infoV2)(pool, &hbm), scal::kSuccess);
  const std::uint64_t reserve = hbm.device_base - hbm.device_base_allocated;
  const int around = HL(device_mapped_memory_export_dmabuf_fd)(fd, base, 2 * kPageBytes, reserve - kPageBytes, 2);
  ASSERT_GE(around, 0);
  const auto at_base = pattern(kFirst, 50);
  put(0, first, at_base);
  const auto pages = bytes_behind(around);
  ASSERT_EQ(pages.size(), 2 * kPageBytes);
  EXPECT_EQ(first, hbm.device_base);
  EXPECT_TRUE(std::equal(pages.begin() + kPageBytes, pages.end(), at_base.begin()));
  EXPECT_EQ(std::count(pages.begin(), pages.begin() + kPageBytes, std::byte{0}), std::ptrdiff_t{kPageBytes});
  ::close(around);
  for (const unsigned i : {0u, 1u}) {
    EXPECT_EQ(::lseek(dmabufs[i], 0, SEEK_END), static_cast<off_t>(kBuffer)) << "as long as the buffer";
    EXPECT_EQ(bytes_behind(dmabufs[i]), pattern(kBuffer, 40 + i)) << i;
    EXPECT_EQ(::mmap(nullptr, kBuffer, PROT_READ | PROT_WRITE, MAP_SHARED, dmabufs[i], 0), MAP_FAILED);
  }
  const auto past = [&](std::uint64_t bytes, std::uint64_t offset) {
    return HL(device_mapped_memory_export_dmabuf_fd)(fd, base, bytes, offset, 2);
  };
  EXPECT_EQ(past(kPageBytes, buffers[0] - base + 8), -EINVAL) << "not at a page";
  EXPECT_EQ(past(kPageBytes, reserve + hbm.total_bytes), -EINVAL);
  EXPECT_EQ(past(hbm.total_bytes, reserve + kPageBytes), -EINVAL);
  // Each of them holds the device, and the last one lets it go.
  for (const std::uint64_t buffer : {first, buffers[0], buffers[1]})
    EXPECT_EQ(SYN(DeviceFree)(device_[0], buffer, 0), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceRelease)(device_[0]), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device_[0], 0), syn::kBusy);
  ::close(dmabufs[0]);
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device_[0], 0), syn::kBusy);
  ::close(dmabufs[1]);
  EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&device_[0], 0), syn::kSuccess);
}

// The way libfabric has it: from libSynapse.so by name, one descriptor that stays the library's.
TEST_F(Synapse, HcclLooksUpTheOneDescriptorOfThePool) {
  const auto lookup = named<decltype(&syn::hcclLookupDMABuff)>("libSynapse.so", "hcclLookupDMABuff");
  ASSERT_NE(lookup, nullptr);
  EXPECT_EQ(lookup(0, 0, nullptr), syn::kHcclInvalidArgument);
  const std::uint64_t exports = counter("exports");
  const std::uint64_t first = allocate(0, 10'000), memory = allocate(0, 10'000);
  int fd = -7, again = -7;
  ASSERT_EQ(lookup(memory, 10'000, &fd), syn::kHcclSuccess);
  ASSERT_EQ(lookup(first, 4096, &again), syn::kHcclSuccess);
  EXPECT_EQ(fd, again) << "it is kept";
  EXPECT_EQ(counter("exports"), exports + 1);
  // Its first byte is the first of scal's pool.
  syn::DeviceInfoV2 info{};
  ASSERT_EQ(SYN(DeviceGetInfoV2)(device_[0], &info), syn::kSuccess);
  scal::Handle handle = nullptr;
  scal::PoolHandle pool = nullptr;
  scal::PoolInfoV2 hbm{};
  ASSERT_EQ(SCAL(get_handle_from_fd)(static_cast<int>(info.fd), &handle), scal::kSuccess);
  ASSERT_EQ(SCAL(get_pool_handle_by_name)(handle, "global_hbm", &pool), scal::kSuccess);
  ASSERT_EQ(SCAL(pool_get_infoV2)(pool, &hbm), scal::kSuccess);
  const auto bytes = pattern(10'000, 14);
  put(0, memory, bytes);
  std::vector<std::byte> seen(bytes.size());
  EXPECT_EQ(::pread(fd, seen.data(), seen.size(), static_cast<off_t>(memory - hbm.device_base)),
            static_cast<ssize_t>(seen.size()));
  EXPECT_EQ(seen, bytes);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], first, 0), syn::kSuccess);
  EXPECT_EQ(SYN(DeviceFree)(device_[0], memory, 0), syn::kSuccess);
  // It goes with the device, which the next owner then finds free.
  EXPECT_EQ(SYN(DeviceRelease)(device_[0]), syn::kSuccess);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(SYN(DeviceRelease)(device_[1]), syn::kSuccess);
  EXPECT_EQ(lookup(memory, 10'000, &fd), syn::kHcclUninitialized) << "no device";
  for (syn::DeviceId& each : device_)
    EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&each, static_cast<std::uint32_t>(&each - device_)), syn::kSuccess);
  EXPECT_EQ(SYN(Destroy)(), syn::kSuccess);
  EXPECT_EQ(lookup(memory, 10'000, &fd), syn::kHcclUninitialized) << "no SynapseAI";
  EXPECT_EQ(SYN(Initialize)(), syn::kSuccess);
}

TEST_F(Synapse, ManyThreadsCopyAndAllocate) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const int which = t % 2;
      syn::StreamHandle stream = nullptr;
      ASSERT_EQ(SYN(StreamCreateGeneric)(&stream, device_[which], 0), syn::kSuccess);
      void* host = nullptr;
      ASSERT_EQ(SYN(HostMalloc)(device_[which], 20'000, 0, &host), syn::kSuccess);
      for (int i = 0; i < 30; ++i) {
        const std::uint64_t memory = allocate(which, 10'000);
        std::memset(host, t + i, 10'000);
        EXPECT_EQ(SYN(MemCopyAsync)(stream, address_of(host), 10'000, memory, kHostToDram), syn::kSuccess);
        EXPECT_EQ(SYN(MemCopyAsync)(stream, memory, 10'000, address_of(host) + 10'000, kDramToHost), syn::kSuccess);
        EXPECT_EQ(SYN(StreamSynchronize)(stream), syn::kSuccess);
        EXPECT_EQ(static_cast<unsigned char*>(host)[19'999], static_cast<unsigned char>(t + i));
        EXPECT_EQ(SYN(DeviceFree)(device_[which], memory, 0), syn::kSuccess);
      }
      EXPECT_EQ(SYN(HostFree)(device_[which], host, 0), syn::kSuccess);
      EXPECT_EQ(SYN(StreamDestroy)(stream), syn::kSuccess);
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST(SynapseNames, EveryOtherNameIsThereAndSaysItCannot) {
  int names = 0;
  for (const char* name : std::vector<const char*>{
#define SYN_UNSUPPORTED(name) #name,
#include "soft/gaudi/synapse_unsupported.inc"
       }) {
    EXPECT_EQ(named<std::int64_t (*)()>("libSynapse.so", name)(), syn::kUnsupported) << name;
    ++names;
  }
  EXPECT_EQ(names, 115);
  for (const char* name : std::vector<const char*>{
#define SCAL_UNSUPPORTED(name) #name,
#include "soft/gaudi/scal_unsupported.inc"
       }) {
    EXPECT_EQ(named<std::int64_t (*)()>("libscal.so", name)(), scal::kNotImplemented) << name;
    ++names;
  }
  EXPECT_EQ(names, 115 + 55);
}

TEST(SynapseNames, NothingWorksBeforeInitialize) {
  std::uint32_t count = 0;
  EXPECT_EQ(SYN(DeviceGetCount)(&count), syn::kUninitialized);
  EXPECT_EQ(SYN(Destroy)(), syn::kUninitialized);
  EXPECT_EQ(SYN(MemCopyAsync)(nullptr, 0, 0, 0, 0), syn::kUninitialized);
}

}  // namespace
}  // namespace strait::soft::gaudi::testing
