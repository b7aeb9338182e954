// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "soft/hsa/testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::hsa::testing {
namespace {

constexpr std::size_t kPart = std::size_t{2} << 20;

class HsaVmem : public HsaTest {
 protected:
  VmemHandle handle(std::size_t size) {
    VmemHandle made{};
    EXPECT_EQ(HSA(hsa_amd_vmem_handle_create)(pool(gpu_, kFlagCoarseGrained), size, 1, 0, &made), kSuccess);
    return made;
  }
};

TEST_F(HsaVmem, TwoHandlesSideBySideAreTwoRangesOfOneReservation) {
  void* room = nullptr;
  ASSERT_EQ(HSA(hsa_amd_vmem_address_reserve_align)(&room, 3 * kPart, 0, kPart, 0), kSuccess);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % kPart, 0u);
  auto* at = static_cast<std::byte*>(room);
  PointerInfo info = info_of(at + 5);
  EXPECT_EQ(info.type, kPointerReserved);
  EXPECT_EQ(info.agent_base, nullptr);
  EXPECT_EQ(info.size_in_bytes, 3 * kPart);

  const VmemHandle first = handle(kPart), second = handle(kPart);
  ASSERT_EQ(HSA(hsa_amd_vmem_map)(at, kPart, 0, first, 0), kSuccess);
  ASSERT_EQ(HSA(hsa_amd_vmem_map)(at + kPart, kPart, 0, second, 0), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_vmem_map)(at + kPart, kPart, 0, second, 0), kInvalidArgument) << "taken";
  EXPECT_EQ(HSA(hsa_amd_vmem_map)(at + 3 * kPart, kPart, 0, second, 0), kInvalidArgument) << "not reserved";
  EXPECT_EQ(HSA(hsa_amd_vmem_map)(at + 2 * kPart, kPart, 4096, second, 0), kInvalidArgument) << "past the handle";
  info = info_of(at + kPart + 9);
  EXPECT_EQ(info.type, kPointerVmem);
  EXPECT_EQ(info.agent_base, at + kPart);
  EXPECT_EQ(info.size_in_bytes, kPart);
  EXPECT_EQ(info.agent_owner.handle, gpu_.handle);

  const AccessDesc mine{kAccessReadWrite, gpu_};
  EXPECT_EQ(HSA(hsa_amd_vmem_set_access)(at, 2 * kPart, &mine, 1), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_vmem_set_access)(at, 3 * kPart, &mine, 1), kInvalidAllocation) << "a hole at the end";
  std::int32_t permissions = 9;
  EXPECT_EQ(HSA(hsa_amd_vmem_get_access)(at + kPart, &permissions, gpu_), kSuccess);
  EXPECT_EQ(permissions, kAccessReadWrite);
  EXPECT_EQ(HSA(hsa_amd_vmem_get_access)(at, &permissions, agents_[2]), kSuccess);
  EXPECT_EQ(permissions, kAccessNone);
  const AccessDesc cpus{kAccessReadWrite, cpu_};
  EXPECT_EQ(HSA(hsa_amd_vmem_set_access)(at, kPart, &cpus, 1), kError) << "no large BAR";

  const auto bytes = pattern(1000, 4);
  put(at + kPart, bytes);
  EXPECT_EQ(get(at + kPart, 1000), bytes);
  int fd = -1;
  std::uint64_t offset = 1;
  ASSERT_EQ(HSA(hsa_amd_portable_export_dmabuf)(at + kPart + 4096, 4096, &fd, &offset), kSuccess);
  EXPECT_EQ(offset, 4096u);
  EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(fd), kSuccess);

  EXPECT_EQ(HSA(hsa_amd_memory_pool_free)(at), kInvalidArgument) << "a mapping is unmapped, not freed";
  EXPECT_EQ(HSA(hsa_amd_vmem_address_free)(room, 3 * kPart), kResourceFree) << "still mapped";
  EXPECT_EQ(HSA(hsa_amd_vmem_handle_release)(second), kSuccess);
  EXPECT_EQ(get(at + kPart, 1000), bytes) << "the mapping keeps it";
  EXPECT_EQ(HSA(hsa_amd_vmem_unmap)(at + kPart, 4096), kInvalidArgument) << "only whole";
  EXPECT_EQ(HSA(hsa_amd_vmem_unmap)(at + kPart, kPart), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_vmem_handle_release)(second), kInvalidAllocation);
  EXPECT_EQ(HSA(hsa_amd_vmem_unmap)(at, kPart), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_vmem_handle_release)(first), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_vmem_address_free)(room, kPart), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_vmem_address_free)(room, 3 * kPart), kSuccess);
  EXPECT_EQ(info_of(at).type, kPointerUnknown);
}

TEST_F(HsaVmem, AHandleGoesThroughADescriptor) {
  void* room = nullptr;
  ASSERT_EQ(HSA(hsa_amd_vmem_address_reserve)(&room, 2 * kPart, 0, 0), kSuccess);
  auto* at = static_cast<std::byte*>(room);
  const VmemHandle made = handle(kPart);
  int fd = -1;
  ASSERT_EQ(HSA(hsa_amd_vmem_export_shareable_handle)(&fd, made, 0), kSuccess);
  VmemHandle came{};
  ASSERT_EQ(HSA(hsa_amd_vmem_import_shareable_handle)(fd, &came), kSuccess);
  ::close(fd);
  ASSERT_EQ(HSA(hsa_amd_vmem_map)(at, kPart, 0, made, 0), kSuccess);
  ASSERT_EQ(HSA(hsa_amd_vmem_map)(at + kPart, kPart, 0, came, 0), kSuccess);
  const auto bytes = pattern(500, 8);
  put(at + 77, bytes);
  EXPECT_EQ(get(at + kPart + 77, 500), bytes) << "the same pages at two addresses";
  VmemHandle again{};
  EXPECT_EQ(HSA(hsa_amd_vmem_retain_alloc_handle)(&again, at + 100), kSuccess);
  EXPECT_EQ(again.handle, made.handle);
  MemoryPool from{};
  std::int32_t type = 9;
  EXPECT_EQ(HSA(hsa_amd_vmem_get_alloc_properties_from_handle)(made, &from, &type), kSuccess);
  EXPECT_EQ(from.handle, pool(gpu_, kFlagCoarseGrained).handle);
  EXPECT_EQ(type, 1);
  EXPECT_EQ(HSA(hsa_amd_vmem_unmap)(at, kPart), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_vmem_unmap)(at + kPart, kPart), kSuccess);
  for (const VmemHandle each : {made, again, came}) EXPECT_EQ(HSA(hsa_amd_vmem_handle_release)(each), kSuccess);
  EXPECT_EQ(HSA(hsa_amd_vmem_address_free)(room, 2 * kPart), kSuccess);
}

TEST_F(HsaVmem, NonsenseIsAnswered) {
  void* room = nullptr;
  VmemHandle made{};
  EXPECT_EQ(HSA(hsa_amd_vmem_address_reserve)(&room, 100, 0, 0), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_vmem_address_reserve)(&room, SIZE_MAX & ~std::size_t{4095}, 0, 0), kOutOfResources);
  EXPECT_EQ(HSA(hsa_amd_vmem_handle_create)(pool(gpu_, kFlagCoarseGrained), 100, 1, 0, &made), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_vmem_handle_create)(MemoryPool{1}, 4096, 1, 0, &made), kInvalidMemoryPool);
  EXPECT_EQ(HSA(hsa_amd_vmem_handle_release)(VmemHandle{99}), kInvalidAllocation);
  EXPECT_EQ(HSA(hsa_amd_vmem_import_shareable_handle)(0, &made), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_vmem_import_shareable_handle)(-1, &made), kInvalidArgument);
  EXPECT_EQ(HSA(hsa_amd_vmem_address_free)(&room, 4096), kInvalidAllocation);
  EXPECT_EQ(HSA(hsa_amd_vmem_unmap)(&room, 4096), kInvalidAllocation);
}

}  // namespace
}  // namespace strait::soft::hsa::testing
