// SPDX-License-Identifier: Apache-2.0
// What only mlx5 has: import, doorbell pages, the clock, memory of the device.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>

#include "soft/uverbs/limits.hpp"
#include "soft/uverbs/pages.hpp"
#include "soft/uverbs/testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {
namespace {

class DriverMethods : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(get_context(context_), 0); }
  int destroy(std::uint16_t object, std::uint16_t method, std::uint16_t attribute, std::uint64_t handle) {
    return Call(object, method).handle(attribute, handle).run(context_);
  }
  std::uint32_t pd() {
    ib_uverbs_alloc_pd in{};
    ib_uverbs_alloc_pd_resp out{};
    EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_ALLOC_PD, in, out), 0);
    return out.pd_handle;
  }
  struct Page {
    std::uint64_t handle = 0;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t number = 0;
  };
  int alloc_uar(std::uint64_t type, Page& out) {
    Call call(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
    const int result = call.handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0)
                           .in(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type)
                           .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, out.offset)
                           .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, out.length)
                           .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, out.number)
                           .run(context_);
    out.handle = call.attribute(0).data;
    return result;
  }
  int free_uar(const Page& page) {
    return destroy(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE,
                   page.handle);
  }
  int alloc_dm(std::uint64_t length, std::uint32_t align_log2, std::uint64_t& handle, std::uint16_t& page) {
    std::uint64_t offset = 0;
    Call call(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
    const int result = call.handle(UVERBS_ATTR_ALLOC_DM_HANDLE, 0)
                           .in(UVERBS_ATTR_ALLOC_DM_LENGTH, length)
                           .in(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, align_log2)
                           .out(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, offset)
                           .out(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, page)
                           .run(context_);
    handle = call.attribute(0).data;
    return result;
  }
  int free_dm(std::uint64_t handle) {
    return destroy(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, UVERBS_ATTR_FREE_DM_HANDLE, handle);
  }
  int reg_dm(std::uint32_t pd, std::uint64_t dm, std::uint64_t offset, std::uint64_t length, std::uint32_t access,
             std::uint64_t& handle) {
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    Call call(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
    const int result = call.handle(UVERBS_ATTR_REG_DM_MR_HANDLE, 0)
                           .in(UVERBS_ATTR_REG_DM_MR_OFFSET, offset)
                           .in(UVERBS_ATTR_REG_DM_MR_LENGTH, length)
                           .handle(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd)
                           .in(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, access)
                           .handle(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm)
                           .out(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, lkey)
                           .out(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, rkey)
                           .run(context_);
    handle = call.attribute(0).data;
    return result;
  }

  sys::Fd pages_ = sys::make_sealed_memfd("driver-test", pages::kBytes).value();
  Context context_{make_device(), pages_.duplicate().value()};
};

TEST_F(DriverMethods, WhoImportsFindsTheDomainAndNoSharedDoorbells) {
  mlx5_ib_alloc_ucontext_resp context{};
  ASSERT_EQ(Call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT)
                .out(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, context)
                .run(context_),
            0);
  EXPECT_EQ(context.tot_bfregs, 0u);
  EXPECT_EQ(context.num_ports, 1);
  std::uint32_t number = 0;
  const auto query = [&](std::uint64_t handle) {
    return Call(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY)
        .handle(MLX5_IB_ATTR_QUERY_PD_HANDLE, handle)
        .out(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, number)
        .run(context_);
  };
  const std::uint32_t domain = pd();
  EXPECT_EQ(query(domain), 0);
  EXPECT_NE(number, 0u);
  EXPECT_EQ(query(domain + 1), -ENOENT);
}

TEST_F(DriverMethods, DoorbellPagesAreInTheDescriptor) {
  Page first, second;
  ASSERT_EQ(alloc_uar(MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF, first), 0);
  ASSERT_EQ(alloc_uar(MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC, second), 0);
  EXPECT_NE(first.number, second.number);
  for (const Page& page : {first, second}) {
    EXPECT_TRUE(sys::map_file(pages_.get(), page.offset, page.length, sys::Protect::read_write));
    EXPECT_LE(page.offset + page.length, pages::kBytes);
  }
  Page wrong;
  EXPECT_EQ(alloc_uar(2, wrong), -EINVAL);
  EXPECT_EQ(free_uar(first), 0);
  EXPECT_EQ(free_uar(first), -ENOENT);
  ASSERT_EQ(alloc_uar(MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF, wrong), 0);
  EXPECT_EQ(wrong.number, first.number) << "the gap is taken again";
}

TEST_F(DriverMethods, TheClockPageSaysWhatTimeItIs) {
  const std::size_t page = sys::page_bytes();
  const auto mapped = sys::map_file(pages_.get(), pages::kClock * page, page, sys::Protect::read).value();
  mlx5_ib_clock_info info{};
  std::memcpy(&info, mapped.data(), sizeof info);
  EXPECT_EQ(info.sign & MLX5_IB_CLOCK_INFO_KERNEL_UPDATING, 0u);
  EXPECT_EQ(info.mult, 1u);
  EXPECT_NE(info.cycles, 0u);
  EXPECT_GT(info.nsec, 1'600'000'000'000'000'000u);
}

TEST_F(DriverMethods, MemoryOfTheDeviceIsGivenInPieces) {
  std::uint64_t handle = 0;
  std::uint16_t page = 0;
  EXPECT_EQ(alloc_dm(0, 0, handle, page), -EINVAL);
  EXPECT_EQ(alloc_dm(64, 63, handle, page), -EINVAL) << "no page is aligned like that";
  EXPECT_EQ(alloc_dm(64, 200, handle, page), -EINVAL);
  EXPECT_EQ(alloc_dm(limits::kDeviceMemoryBytes + 1, 0, handle, page), -ENOMEM);
  std::vector<std::uint64_t> all;
  while (alloc_dm(limits::kDeviceMemoryBytes, 0, handle, page) == 0) all.push_back(handle);
  EXPECT_EQ(all.size(), pages::kMemoryPages * sys::page_bytes() / limits::kDeviceMemoryBytes);
  EXPECT_EQ(free_dm(all[1]), 0);
  EXPECT_EQ(free_dm(all[1]), -ENOENT);
  ASSERT_EQ(alloc_dm(100, 6, handle, page), 0) << "in the gap";
  EXPECT_EQ(page, limits::kDeviceMemoryBytes / sys::page_bytes());
}

TEST_F(DriverMethods, MemoryOfTheDeviceStaysWhileItIsRegistered) {
  const std::uint32_t domain = pd();
  constexpr std::uint32_t kZeroBased = IB_UVERBS_ACCESS_ZERO_BASED;
  std::uint64_t dm = 0;
  std::uint16_t page = 0;
  ASSERT_EQ(alloc_dm(4096, 0, dm, page), 0);
  std::uint64_t mr = 0;
  EXPECT_EQ(reg_dm(domain, dm, 0, 4097, kZeroBased, mr), -EINVAL);
  EXPECT_EQ(reg_dm(domain, dm, 4097, 0, kZeroBased, mr), -EINVAL);
  EXPECT_EQ(reg_dm(domain, dm, 1, ~0ull, kZeroBased, mr), -EINVAL);
  EXPECT_EQ(reg_dm(domain, dm, 0, 64, 0, mr), -EINVAL) << "it has no other address";
  EXPECT_EQ(reg_dm(domain, dm, 0, 64, kZeroBased | IB_UVERBS_ACCESS_MW_BIND, mr), -EINVAL);
  EXPECT_EQ(reg_dm(domain, dm, 0, 64, kZeroBased | IB_UVERBS_ACCESS_REMOTE_WRITE, mr), -EINVAL);
  EXPECT_EQ(reg_dm(domain, dm + 100, 0, 64, kZeroBased, mr), -ENOENT);
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{96}}) {
    ASSERT_EQ(reg_dm(domain, dm, 4000, length, kZeroBased | IB_UVERBS_ACCESS_LOCAL_WRITE, mr), 0);
    EXPECT_EQ(free_dm(dm), -EBUSY);
    EXPECT_EQ(destroy(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, UVERBS_ATTR_DESTROY_MR_HANDLE, mr), 0);
  }
  EXPECT_EQ(free_dm(dm), 0);
}

}  // namespace
}  // namespace strait::soft::uverbs
