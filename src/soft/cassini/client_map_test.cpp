// SPDX-License-Identifier: Apache-2.0
// Memory descriptors: every flag and every hint, what is widened, what is refused.
#include "soft/cassini/address_context.hpp"
#include "soft/cassini/testing.hpp"
#include "soft/cassini/translation.hpp"

namespace strait::soft::cassini::testing {
namespace {

constexpr std::uint32_t kReadWrite = wire::kMapRead | wire::kMapWrite;
constexpr std::uint64_t kDeviceAddress = 0x700000000000;

struct CassiniMap : ::testing::Test {
  Fabric fabric{1};
  Card& card = *fabric.card(0);
  TestClient client{card};
  std::uint32_t lni = client.lni();
  Pages pages{4};
  wire::AtuMapResp answer{};

  template <class Fill>
  int map(std::uint32_t flags, Fill fill) {
    wire::AtuMapCmd c{};
    c.lni = lni;
    c.va = pages.address();
    c.len = pages.size();
    c.flags = flags;
    fill(c);
    answer = {};
    return client.send(c, answer);
  }
  int map(std::uint32_t flags) {
    return map(flags, [](auto&) {});
  }
  wire::ReturnCode reach(bool write) {
    Extents extents;
    return translate(*card.lnis.find(lni), answer.md.lac, answer.md.iova, 1, write, extents);
  }
  int update(std::uint64_t va, std::uint64_t bytes, std::uint32_t flags) {
    wire::AtuUpdateMdCmd c{};
    c.id = answer.id;
    c.va = va;
    c.len = bytes;
    c.flags = flags;
    return client.send(c);
  }
};

// Constants lie on pages that cannot be written.
alignas(4096) constexpr char kConstants[4096] = {1};

TEST_F(CassiniMap, PagesThatMayOnlyBeRead) {
  const auto constants = [](auto& c) {
    c.va = reinterpret_cast<std::uint64_t>(&kConstants);
    c.len = sizeof kConstants;
  };
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, constants), EINVAL) << "so that the client asks for less";
  EXPECT_EQ(map(wire::kMapPin | wire::kMapRead, constants), 0);
  EXPECT_EQ(reach(false), wire::ReturnCode::ok);
  EXPECT_EQ(reach(true), wire::ReturnCode::page_perm_error);
}

TEST_F(CassiniMap, WhatIsRefused) {
  EXPECT_EQ(map(wire::kMapPin, [](auto& c) { c.lni = 99; }), EINVAL);
  EXPECT_EQ(map(wire::kMapPin, [](auto& c) { c.len = 0; }), EINVAL);
  EXPECT_EQ(map(wire::kMapPin, [](auto& c) { c.va = ~std::uint64_t{0} - 10, c.len = 100; }), EOVERFLOW);
  EXPECT_EQ(map(wire::kMapPin | wire::kMapFault), EINVAL);
  EXPECT_EQ(map(wire::kMapPin | wire::kMapPrefetch), EINVAL);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite | wire::kMapAts), EOPNOTSUPP);
  EXPECT_EQ(map(wire::kMapAts | wire::kMapAtsDynamic | kReadWrite), EOPNOTSUPP);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, [](auto& c) { c.va = 4096; }), EFAULT);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, [](auto& c) { c.len += 1 << 30; }), EFAULT) << "not all of it is there";
  EXPECT_EQ(map(kReadWrite, [](auto& c) { c.va = std::uint64_t{1} << 50; }), EFAULT) << "no mapping is above";
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(1), EINVAL);
  EXPECT_EQ(card.mds.taken(), 0u);
  EXPECT_EQ(card.lnis.find(lni)->refs, 0u);
}

TEST_F(CassiniMap, ItIsWidenedToPages) {
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, [](auto& c) { c.va += 4097, c.len = 2; }), 0);
  EXPECT_EQ(answer.md.va, pages.address() + 4096);
  EXPECT_EQ(answer.md.len, 4096u);
  EXPECT_EQ(answer.md.page_shift, 12);
  EXPECT_EQ(answer.md.huge_shift, 21);
  EXPECT_EQ(answer.md.id, answer.id);
  EXPECT_NE(answer.md.iova, 0u);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, [](auto& c) { c.va += 4095, c.len = 2; }), 0);
  EXPECT_EQ(answer.md.len, 8192u);
}

TEST_F(CassiniMap, ReadAndWriteAreWhatTheDeviceMay) {
  ASSERT_EQ(map(wire::kMapPin | wire::kMapRead), 0);
  EXPECT_EQ(reach(false), wire::ReturnCode::ok);
  EXPECT_EQ(reach(true), wire::ReturnCode::page_perm_error);
  ASSERT_EQ(map(wire::kMapPin | wire::kMapWrite), 0);
  EXPECT_EQ(reach(false), wire::ReturnCode::page_perm_error);
  EXPECT_EQ(reach(true), wire::ReturnCode::ok);
}

TEST_F(CassiniMap, OnDemandLooksWhenItIsUsed) {
  EXPECT_EQ(map(kReadWrite, [](auto& c) { c.va = 0x10000, c.len = std::uint64_t{32} << 30; }), 0) << "nothing there";
  EXPECT_EQ(map(kReadWrite | wire::kMapPrefetch, [](auto& c) { c.va = 0x10000; }), 0);
  EXPECT_EQ(map(kReadWrite | wire::kMapFault, [](auto& c) { c.va = 0x10000; }), EINVAL);
  ASSERT_EQ(map(kReadWrite | wire::kMapFault), 0);
  EXPECT_EQ(reach(true), wire::ReturnCode::ok);
  EXPECT_EQ(card.mds.find(answer.id)->flags & (wire::kMapFault | wire::kMapPrefetch), 0u);
}

TEST(CassiniMapOldHardware, HasNothingOnDemand) {
  Fabric fabric(0);
  auto made = std::make_unique<Card>(fabric, CardSettings{.version = wire::CassiniVersion::v1_0});
  Card& card = *made;
  fabric.add(std::move(made));
  TestClient client(card);
  Pages pages(1);
  wire::AtuMapCmd c{};
  c.lni = client.lni();
  c.va = pages.address();
  c.len = pages.size();
  wire::AtuMapResp answer{};
  for (const std::uint32_t more : {0u, wire::kMapFault, wire::kMapPrefetch}) {
    c.flags = kReadWrite | more;
    EXPECT_EQ(client.send(c, answer), EOPNOTSUPP) << more;
  }
  c.flags = kReadWrite | wire::kMapPin;
  EXPECT_EQ(client.send(c, answer), 0);
}

TEST_F(CassiniMap, FaultingAPartLater) {
  ASSERT_EQ(map(kReadWrite), 0);
  EXPECT_EQ(update(pages.address(), 4096, wire::kMapFault), 0);
  EXPECT_EQ(update(pages.address(), pages.size() + 1, wire::kMapFault), EINVAL);
  EXPECT_EQ(update(0, 4096, wire::kMapFault), EINVAL);
  EXPECT_EQ(update(~std::uint64_t{0}, 4096, wire::kMapFault), EOVERFLOW);
  EXPECT_EQ(update(pages.address(), 4096, wire::kMapPrefetch), EINVAL) << "nothing else can be asked";
  ASSERT_EQ(map(kReadWrite, [](auto& c) { c.va = 0x10000; }), 0);
  EXPECT_EQ(update(0x10000, 4096, wire::kMapFault), EINVAL) << "nothing is there";
  ASSERT_EQ(map(wire::kMapPin | kReadWrite), 0);
  EXPECT_EQ(update(pages.address(), 4096, wire::kMapFault), EINVAL) << "pinned";
  answer.id = 12345;
  EXPECT_EQ(update(pages.address(), 4096, wire::kMapFault), EINVAL);
}

TEST_F(CassiniMap, ADescriptorWithoutPages) {
  ASSERT_EQ(map(wire::kMapPin | kReadWrite | wire::kMapAllocMd, [](auto& c) { c.va = 0x10000; }), 0);
  EXPECT_EQ(reach(true), wire::ReturnCode::no_translation);
}

TEST_F(CassiniMap, FlagsThatMakeAnotherKindOfMemory) {
  std::set<std::uint32_t> lacs;
  const auto lac_of = [&](std::uint32_t flags) {
    EXPECT_EQ(map(flags), 0) << flags;
    return static_cast<std::uint32_t>(answer.md.lac);
  };
  const std::uint32_t pinned = lac_of(wire::kMapPin | kReadWrite);
  EXPECT_EQ(lac_of(wire::kMapPin | wire::kMapRead), pinned);
  EXPECT_EQ(lac_of(wire::kMapPin | kReadWrite | wire::kMapAllocMd), pinned);
  EXPECT_EQ(lac_of(wire::kMapPin | kReadWrite | wire::kMapUserAddr), pinned) << "set for every client";
  EXPECT_EQ(lac_of(kReadWrite), lac_of(kReadWrite | wire::kMapFault));
  lacs = {pinned,
          lac_of(kReadWrite),
          lac_of(wire::kMapPin | kReadWrite | wire::kMapNocache),
          lac_of(wire::kMapPin | kReadWrite | wire::kMapAtsPassthrough),
          lac_of(wire::kMapPin | kReadWrite | wire::kMapAtsDynamic),
          lac_of(wire::kMapPin | kReadWrite | wire::kMapUnused),
          lac_of(wire::kMapPin | kReadWrite | 0x80000)};
  EXPECT_EQ(lacs.size(), 7u);
  (void)lac_of(wire::kMapPin | kReadWrite | 0x100000);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite | 0x200000), ENOSPC) << "eight contexts to a group";
}

TEST_F(CassiniMap, AContextIsFullAndTheNextOneIsMade) {
  ASSERT_EQ(map(kReadWrite, [](auto& c) { c.va = 0x10000, c.len = kContextBytes; }), 0);
  const wire::Md first = answer.md;
  ASSERT_EQ(map(kReadWrite), 0);
  EXPECT_NE(answer.md.lac, first.lac);
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(first.id), 0);
  ASSERT_EQ(map(kReadWrite), 0);
  EXPECT_EQ(answer.md.lac, first.lac) << "there is room again";
  // The service says how many.
  card.services.find(1)->desc.limits[7].max = 2;
  EXPECT_EQ(map(wire::kMapPin | kReadWrite), ENOSPC);
}

TEST_F(CassiniMap, IovasDoNotMeetAndAreUsedAgain) {
  std::map<std::uint64_t, std::uint32_t> seen;
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(map(wire::kMapPin | kReadWrite), 0);
    EXPECT_TRUE(seen.emplace(answer.md.iova, answer.id).second);
    EXPECT_EQ(answer.md.lac, 0u);
  }
  for (auto each = seen.begin(); std::next(each) != seen.end(); ++each)
    EXPECT_GE(std::next(each)->first - each->first, pages.size());
  AddressContext& context = *card.lnis.find(lni)->acs[0];
  context.next = context.base + context.bytes;  // as after many more
  const auto gone = std::next(seen.begin(), 17);
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(gone->second), 0);
  ASSERT_EQ(map(wire::kMapPin | kReadWrite), 0);
  EXPECT_EQ(answer.md.iova, gone->first);
}

TEST_F(CassiniMap, HintsOfAnAdministrator) {
  const auto mode = [](std::int32_t value) {
    return [value](auto& c) { c.hints.ptg_mode = value, c.hints.ptg_mode_valid = 1; };
  };
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, mode(4)), EINVAL);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, mode(-1)), EINVAL);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, mode(0)), 0);
  EXPECT_EQ(answer.md.huge_shift, answer.md.page_shift) << "one level of tables";
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, mode(3)), 0);
  EXPECT_EQ(answer.md.huge_shift, 21);
  client.client->become(kUser);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, mode(4)), 0) << "others' hints are not looked at";
}

TEST_F(CassiniMap, HugePages) {
  client.memory.pretended_huge_shift = 21;
  Pages many(1024 + 512);
  const std::uint64_t huge = (many.address() + (1 << 21) - 1) >> 21 << 21;
  const auto at = [&](auto& c) { c.va = huge + 5, c.len = 100; };
  ASSERT_EQ(map(wire::kMapPin | kReadWrite, at), 0);
  EXPECT_EQ(answer.md.va, huge);
  EXPECT_EQ(answer.md.len, 1u << 21);
  EXPECT_EQ(answer.md.huge_shift, 21);
  const auto sizes = [&](std::int32_t page, std::int32_t large) {
    return [=](auto& c) { at(c), c.hints.page_shift = page, c.hints.huge_shift = large; };
  };
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, sizes(12, 22)), EINVAL) << "larger than they are";
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, sizes(14, 16)), EINVAL) << "too few to a table";
  ASSERT_EQ(map(wire::kMapPin | kReadWrite, sizes(13, 17)), 0);
  EXPECT_EQ(answer.md.page_shift, 13);
  EXPECT_EQ(answer.md.huge_shift, 17);
  EXPECT_EQ(answer.md.len, 1u << 17);
  const std::uint8_t lac = answer.md.lac;
  ASSERT_EQ(map(wire::kMapPin | kReadWrite, sizes(13, 17)), 0);
  EXPECT_NE(answer.md.lac, lac) << "who tries sizes is alone";
  // Without a page_shift the driver does not look at it; and that is an administrator's.
  ASSERT_EQ(map(wire::kMapPin | kReadWrite, sizes(0, 17)), 0);
  EXPECT_EQ(answer.md.huge_shift, 21);
  client.client->become(kUser);
  ASSERT_EQ(map(wire::kMapPin | kReadWrite, sizes(13, 17)), 0);
  EXPECT_EQ(answer.md.huge_shift, 21);
  EXPECT_EQ(answer.md.page_shift, 12);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, sizes(13, 22)), 0) << "larger than they are, and not looked at";
  client.client->become(kRoot);
  // A context less for others each time, so only where the sizes are really tried: not on ordinary pages.
  client.memory.pretended_huge_shift = 0;
  ASSERT_EQ(map(wire::kMapPin | kReadWrite), 0);
  const std::uint8_t shared = answer.md.lac;
  ASSERT_EQ(map(wire::kMapPin | kReadWrite, sizes(12, 21)), 0);
  EXPECT_EQ(answer.md.lac, shared);
  EXPECT_EQ(answer.md.len, 4096u);
  // Pages of 1 GiB have larger base pages. On demand, because there is no such memory.
  client.memory.pretended_huge_shift = 30;
  ASSERT_EQ(map(kReadWrite, at), 0);
  EXPECT_EQ(answer.md.huge_shift, 30);
  EXPECT_EQ(answer.md.page_shift, 16);
  EXPECT_EQ(answer.md.len, 1u << 30);
  EXPECT_EQ(map(kReadWrite, sizes(12, 28)), EINVAL) << "too many to a table";
  EXPECT_EQ(map(kReadWrite, sizes(13, 28)), 0) << "2^15 to a table, which is the most";
}

TEST_F(CassiniMap, DeviceMemoryByADescriptor) {
  std::vector<std::byte>& bytes = client.files.buffers[5];
  bytes.resize(3 * 4096);
  client.client->become(kUser);
  const auto by_file = [](int fd, std::uint64_t offset, std::uint64_t length) {
    return [=](auto& c) {
      c.va = kDeviceAddress + 100;
      c.len = length;
      c.hints.dmabuf_valid = 1;
      c.hints.dmabuf_fd = fd;
      c.hints.dmabuf_offset = offset;
    };
  };
  const std::uint32_t device = wire::kMapDevice | wire::kMapPin | kReadWrite;
  EXPECT_EQ(map(device, by_file(5, 4096 + 100, 4096)), 0);
  EXPECT_EQ(answer.md.va, kDeviceAddress);
  EXPECT_EQ(answer.md.len, 8192u);
  EXPECT_EQ(answer.md.page_shift, 12);
  Extents extents;
  ASSERT_EQ(translate(*card.lnis.find(lni), answer.md.lac, answer.md.iova + 100, 4, true, extents),
            wire::ReturnCode::ok);
  EXPECT_EQ(write(extents, "abcd", 4), wire::ReturnCode::ok);
  EXPECT_EQ(std::memcmp(bytes.data() + 4096 + 100, "abcd", 4), 0);
  EXPECT_EQ(map(device, by_file(6, 0, 4096)), EBADF);
  EXPECT_EQ(map(device, by_file(5, 8192, 8192)), EFAULT) << "longer than the buffer";
  EXPECT_EQ(map(device, by_file(5, ~std::uint64_t{0} - 10, 4096)), EINVAL);
  EXPECT_EQ(map(wire::kMapPin | kReadWrite, by_file(5, 0, 4096)), EFAULT) << "without DEVICE it is an address";
}

TEST_F(CassiniMap, DeviceMemoryByItsAddress) {
  const std::uint32_t device = wire::kMapDevice | wire::kMapPin | kReadWrite;
  const auto at = [](std::uint64_t offset) {
    return [offset](auto& c) { c.va = kDeviceAddress + offset, c.len = 100; };
  };
  EXPECT_EQ(map(device, at(0)), EOPNOTSUPP);
  client.files.device.resize(1 << 17);
  client.files.device_address = kDeviceAddress;
  EXPECT_EQ(map(device, at(0x10010)), 0);
  EXPECT_EQ(answer.md.va, kDeviceAddress + 0x10000);
  EXPECT_EQ(answer.md.len, 0x10000u) << "pages of 64 KiB";
  EXPECT_EQ(answer.md.page_shift, 16);
  EXPECT_EQ(map(device), EINVAL) << "the host's memory is no device's";
}

// The context remembers which descriptor it found last: whatever changes about it is seen by the next access.
TEST_F(CassiniMap, WhatWasFoundLastIsFoundOnlyWhileItIsThere) {
  ASSERT_EQ(map(wire::kMapPin | kReadWrite), 0);
  const wire::AtuMapResp first = answer;
  ASSERT_EQ(reach(true), wire::ReturnCode::ok);
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(first.id), 0);
  EXPECT_EQ(reach(true), wire::ReturnCode::no_translation);
  // Another of the same place, that may not be written, and one beside it that may.
  ASSERT_EQ(map(wire::kMapPin | wire::kMapRead), 0);
  EXPECT_EQ(reach(false), wire::ReturnCode::ok);
  EXPECT_EQ(reach(true), wire::ReturnCode::page_perm_error);
  const wire::AtuMapResp second = answer;
  ASSERT_EQ(map(wire::kMapPin | kReadWrite), 0);
  EXPECT_EQ(reach(true), wire::ReturnCode::ok);
  answer = second;
  EXPECT_EQ(reach(true), wire::ReturnCode::page_perm_error);
  card.mds.find(second.id)->dead = true;
  EXPECT_EQ(reach(false), wire::ReturnCode::no_translation);
}

TEST_F(CassiniMap, MemoryThatMovesAway) {
  client.files.buffers[5].resize(4096);
  ASSERT_EQ(map(wire::kMapDevice | kReadWrite,
                [](auto& c) { c.va = kDeviceAddress, c.len = 4096, c.hints.dmabuf_valid = 1, c.hints.dmabuf_fd = 5; }),
            0);
  EXPECT_EQ(reach(true), wire::ReturnCode::ok);
  client.client->tear_down(answer.id);
  client.client->tear_down(4711);
  EXPECT_EQ(reach(true), wire::ReturnCode::no_translation);
  EXPECT_EQ(client.free<wire::AtuUnmapCmd>(answer.id), 0);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
