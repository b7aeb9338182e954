// SPDX-License-Identifier: Apache-2.0
// Contexts, questions, domains and memory, asked as libibverbs asks.
#include "soft/uverbs/context.hpp"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>

#include "soft/uverbs/testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {
namespace {

int open_context(Context& context, std::uint32_t flags = 0) {
  mlx5_ib_alloc_ucontext_req_v2 asked{};
  asked.total_num_bfregs = 16;
  asked.num_low_latency_bfregs = 4;
  asked.flags = flags;
  asked.max_cqe_version = 1;
  mlx5_ib_alloc_ucontext_resp answer{};
  std::uint32_t vectors = 0;
  std::uint64_t support = 0;
  Call call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
  const int result = call.out(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors)
                         .out(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, support)
                         .in(UVERBS_ATTR_UHW_IN, asked)
                         .out(UVERBS_ATTR_UHW_OUT, answer)
                         .run(context);
  if (result == 0) {
    EXPECT_EQ(answer.cqe_version, 1);
    EXPECT_EQ(answer.num_ports, 1);
    EXPECT_EQ(answer.log_uar_size, 12u);
    EXPECT_EQ(vectors, 1u);
  }
  return result;
}

class Contexts : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(open_context(context_), 0); }
  std::uint32_t pd() {
    ib_uverbs_alloc_pd in{};
    ib_uverbs_alloc_pd_resp out{};
    EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_ALLOC_PD, in, out), 0);
    return out.pd_handle;
  }
  int reg(std::uint32_t pd, const void* at, std::uint64_t length, std::uint32_t access, ib_uverbs_reg_mr_resp& out) {
    ib_uverbs_reg_mr in{};
    in.start = in.hca_va = reinterpret_cast<std::uintptr_t>(at);
    in.length = length;
    in.pd_handle = pd;
    in.access_flags = access;
    return write_command(context_, IB_USER_VERBS_CMD_REG_MR, in, out);
  }
  int destroy(std::uint16_t object, std::uint16_t method, std::uint64_t handle) {
    return Call(object, method).handle(0, handle).run(context_);
  }
  int destroy_pd(std::uint64_t handle) { return destroy(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, handle); }
  int destroy_mr(std::uint64_t handle) { return destroy(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, handle); }
  Context context_{make_device()};
};

TEST(Context, OpensOnceWithDevxOrWithout) {
  Context context(make_device());
  EXPECT_EQ(open_context(context, MLX5_IB_ALLOC_UCTX_DEVX), 0);
  EXPECT_EQ(open_context(context), -EINVAL);
  Context other(make_device());
  EXPECT_EQ(open_context(other, MLX5_IB_ALLOC_UCTX_DEVX << 1), -EINVAL);  // a flag of the future
  EXPECT_EQ(open_context(other), 0);
}

TEST_F(Contexts, WindowsHoldTheirDomain) {
  const std::uint32_t domain = pd();
  ib_uverbs_alloc_mw in{};
  ib_uverbs_alloc_mw_resp out{};
  in.pd_handle = domain + 1;
  in.mw_type = 1;
  EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_ALLOC_MW, in, out), -EINVAL);
  in.pd_handle = domain;
  for (const unsigned wrong : {0u, 3u}) {
    in.mw_type = static_cast<std::uint8_t>(wrong);
    EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_ALLOC_MW, in, out), -EINVAL);
  }
  for (const unsigned type : {1u, 2u}) {
    in.mw_type = static_cast<std::uint8_t>(type);
    ASSERT_EQ(write_command(context_, IB_USER_VERBS_CMD_ALLOC_MW, in, out), 0);
    EXPECT_NE(out.rkey, 0u);
    EXPECT_EQ(destroy_pd(domain), -EBUSY);
    EXPECT_EQ(destroy(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, out.mw_handle), 0);
    EXPECT_EQ(destroy(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, out.mw_handle), -ENOENT);
  }
  EXPECT_EQ(destroy_pd(domain), 0);
}

TEST(Context, NothingWorksBeforeItIsOpened) {
  Context context(make_device());
  ib_uverbs_query_port_resp_ex port{};
  const std::uint64_t number = 1;
  Call call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
  EXPECT_EQ(call.in(UVERBS_ATTR_QUERY_PORT_PORT_NUM, number).out(UVERBS_ATTR_QUERY_PORT_RESP, port).run(context),
            -EINVAL);
  ib_uverbs_alloc_pd in{};
  ib_uverbs_alloc_pd_resp out{};
  EXPECT_EQ(write_command(context, IB_USER_VERBS_CMD_ALLOC_PD, in, out), -EINVAL);
  int nothing = 0;
  EXPECT_EQ(context.ioctl(0x1234, &nothing), -ENOTTY);
  // But for the question by which libibverbs finds out which way of asking works.
  Call probe(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
  const std::uint64_t command = IB_USER_VERBS_CMD_QUERY_DEVICE;
  EXPECT_EQ(probe.in(UVERBS_ATTR_WRITE_CMD, command).run(context), -ENOSPC);
}

TEST_F(Contexts, AnswersQuestions) {
  ib_uverbs_query_device in{};
  ib_uverbs_query_device_resp device{};
  ASSERT_EQ(write_command(context_, IB_USER_VERBS_CMD_QUERY_DEVICE, in, device), 0);
  EXPECT_EQ(device.vendor_part_id, 0x1019u);
  EXPECT_EQ(device.phys_port_cnt, 1);

  ib_uverbs_query_port_resp_ex port{};
  std::uint64_t number = 1;
  Call call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
  ASSERT_EQ(call.in(UVERBS_ATTR_QUERY_PORT_PORT_NUM, number).out(UVERBS_ATTR_QUERY_PORT_RESP, port).run(context_), 0);
  EXPECT_EQ(port.legacy_resp.state, 4);
  EXPECT_EQ(port.legacy_resp.gid_tbl_len, 256u);
  EXPECT_EQ(port.legacy_resp.active_mtu, 5);
  number = 2;
  Call other(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
  EXPECT_EQ(other.in(UVERBS_ATTR_QUERY_PORT_PORT_NUM, number).out(UVERBS_ATTR_QUERY_PORT_RESP, port).run(context_),
            -EINVAL);
}

TEST_F(Contexts, AnswersForItsGids) {
  ib_uverbs_gid_entry entry{};
  const std::uint64_t port = 1;
  std::uint64_t index = 0;
  const std::uint32_t flags = 0;
  const auto ask = [&] {
    Call call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
    return call.in(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port)
        .in(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index)
        .in(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, flags)
        .out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry)
        .run(context_);
  };
  ASSERT_EQ(ask(), 0);
  EXPECT_EQ(entry.gid_type, 2u);
  std::array<std::uint8_t, 16> gid{};
  std::memcpy(gid.data(), entry.gid, 16);
  EXPECT_EQ(gid, roce::IpAddress::v4(127, 0, 0, 1).gid);
  index = 1;
  EXPECT_EQ(ask(), -ENODATA);  // there is room for one
  index = 256;
  EXPECT_EQ(ask(), -EINVAL);

  std::array<ib_uverbs_gid_entry, 4> table{};
  std::uint64_t count = 0;
  const std::uint64_t size = sizeof(ib_uverbs_gid_entry);
  Call call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
  ASSERT_EQ(call.in(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, size)
                .in(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, flags)
                .out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table)
                .out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count)
                .run(context_),
            0);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(std::memcmp(table[0].gid, gid.data(), 16), 0);
}

TEST_F(Contexts, ADomainStaysWhileItIsUsed) {
  const std::uint32_t domain = pd();
  std::vector<std::byte> memory(4096);
  ib_uverbs_reg_mr_resp mr{};
  ASSERT_EQ(reg(domain, memory.data(), memory.size(), IB_UVERBS_ACCESS_LOCAL_WRITE, mr), 0);
  EXPECT_NE(mr.lkey, 0u);
  EXPECT_EQ(destroy_pd(domain), -EBUSY);
  EXPECT_EQ(destroy_mr(domain), -ENOENT);  // not of that kind
  EXPECT_EQ(destroy_mr(mr.mr_handle), 0);
  EXPECT_EQ(destroy_mr(mr.mr_handle), -ENOENT);
  EXPECT_EQ(destroy_pd(domain), 0);
  EXPECT_EQ(destroy_pd(domain), -ENOENT);
}

TEST_F(Contexts, MemoryThatCannotBeRegistered) {
  const std::uint32_t domain = pd();
  const auto locked = sys::map_anonymous(sys::page_bytes(), sys::Protect::read).value();
  std::vector<std::byte> memory(8192);
  ib_uverbs_reg_mr_resp out{};
  EXPECT_EQ(reg(domain, locked.data(), 100, 0, out), 0);  // to read from
  EXPECT_EQ(reg(domain, locked.data(), 100, IB_UVERBS_ACCESS_LOCAL_WRITE, out), -EFAULT);
  EXPECT_EQ(reg(domain, nullptr, 100, 0, out), -EFAULT);
  EXPECT_EQ(reg(domain, memory.data(), 0, 0, out), -EINVAL);
  EXPECT_EQ(reg(domain, memory.data(), 100, IB_UVERBS_ACCESS_REMOTE_WRITE, out), -EINVAL);
  EXPECT_EQ(reg(domain, memory.data(), 100, 1u << 15, out), -EINVAL);
  EXPECT_EQ(reg(domain + 77, memory.data(), 100, 0, out), -EINVAL);
  ib_uverbs_reg_mr in{};
  in.start = reinterpret_cast<std::uintptr_t>(memory.data());
  in.hca_va = in.start + 1;
  in.length = 100;
  in.pd_handle = domain;
  EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_REG_MR, in, out), -EINVAL);
}

TEST_F(Contexts, ReregisteringGivesNewRights) {
  const std::uint32_t domain = pd();
  const std::uint32_t second = pd();
  std::vector<std::byte> memory(8192);
  ib_uverbs_reg_mr_resp mr{};
  ASSERT_EQ(reg(domain, memory.data(), 4096, IB_UVERBS_ACCESS_LOCAL_WRITE, mr), 0);
  ib_uverbs_rereg_mr in{};
  ib_uverbs_rereg_mr_resp out{};
  in.mr_handle = mr.mr_handle;
  EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_REREG_MR, in, out), -EINVAL);
  in.flags = 8;
  EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_REREG_MR, in, out), -EOPNOTSUPP);
  in.flags = 1 | 2 | 4;
  in.pd_handle = second;
  in.access_flags = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE;
  in.start = in.hca_va = 64;
  in.length = 8;
  EXPECT_EQ(write_command(context_, IB_USER_VERBS_CMD_REREG_MR, in, out), -EFAULT);  // and the old one is still there
  in.start = in.hca_va = reinterpret_cast<std::uintptr_t>(memory.data());
  in.length = 8192;
  ASSERT_EQ(write_command(context_, IB_USER_VERBS_CMD_REREG_MR, in, out), 0);
  EXPECT_EQ(out.lkey, mr.lkey);
  EXPECT_EQ(destroy_pd(domain), 0);  // it belongs to the other now
  EXPECT_EQ(destroy_pd(second), -EBUSY);
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint64_t length = 0;
  Call query(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
  ASSERT_EQ(query.handle(UVERBS_ATTR_QUERY_MR_HANDLE, mr.mr_handle)
                .out(UVERBS_ATTR_QUERY_MR_RESP_LKEY, lkey)
                .out(UVERBS_ATTR_QUERY_MR_RESP_RKEY, rkey)
                .out(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, length)
                .run(context_),
            0);
  EXPECT_EQ(lkey, out.lkey);
  EXPECT_EQ(length, 8192u);
}

TEST_F(Contexts, DmabufErrnosAreTheKernels) {
  const std::uint32_t domain = pd();
  const auto file = sys::make_sealed_memfd("test", 16384).value();
  std::uint64_t offset = 4096;
  std::uint64_t length = 4096;
  std::uint64_t iova = 0x10000;
  std::uint32_t access = IB_UVERBS_ACCESS_LOCAL_WRITE;
  int fd = file.get();
  std::uint64_t handle = 0;
  const auto ask = [&] {
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    Call call(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
    const int result = call.handle(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0)
                           .handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, domain)
                           .in(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset)
                           .in(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length)
                           .in(UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova)
                           .in(UVERBS_ATTR_REG_DMABUF_MR_FD, fd)
                           .in(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, access)
                           .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, lkey)
                           .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, rkey)
                           .run(context_);
    handle = call.attribute(0).data;
    return result;
  };
  EXPECT_EQ(ask(), 0);
  EXPECT_EQ(destroy_mr(handle), 0);
  length = 12288 + 1;
  EXPECT_EQ(ask(), -EINVAL);  // past the end
  length = ~0ull - 100;
  EXPECT_EQ(ask(), -EINVAL);
  length = 4096;
  iova = 0x10001;
  EXPECT_EQ(ask(), -EINVAL);
  iova = 0x10000;
  fd = -1;
  EXPECT_EQ(ask(), -EBADF);
  fd = 1000;
  EXPECT_EQ(ask(), -EBADF);
  fd = 2;  // no memory at all
  EXPECT_EQ(ask(), -EINVAL);
  fd = file.get();
  access = IB_UVERBS_ACCESS_MW_BIND;
  EXPECT_EQ(ask(), -EINVAL);
}

// No driver here exports what cannot be mapped, so this is asked of the rule alone.
TEST(Dmabufs, ThatCannotBeMappedAreAnotherDevices) {
  EXPECT_EQ(dmabuf_errno(-ENODEV, true), -EOPNOTSUPP);
  EXPECT_EQ(dmabuf_errno(-EINVAL, true), -EOPNOTSUPP);
  EXPECT_EQ(dmabuf_errno(-ENODEV, false), -EINVAL);
  EXPECT_EQ(dmabuf_errno(-ENOMEM, true), -ENOMEM);
}

TEST_F(Contexts, MemoryOnDemandNeedNotBeThere) {
  const std::uint32_t domain = pd();
  constexpr std::uint32_t kAsked = IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_LOCAL_WRITE;
  ib_uverbs_reg_mr_resp everything{};
  ASSERT_EQ(reg(domain, nullptr, ~0ull, kAsked, everything), 0);
  std::vector<std::byte> memory(4096);
  const auto advise = [&](const void* at, std::uint32_t length, std::uint32_t key, std::uint64_t advice) {
    const struct {
      ib_uverbs_sge piece;
    } list{{reinterpret_cast<std::uintptr_t>(at), length, key}};
    const std::uint32_t flags = IB_UVERBS_ADVISE_MR_FLAG_FLUSH;
    return Call(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR)
        .handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, domain)
        .in(UVERBS_ATTR_ADVISE_MR_ADVICE, advice)
        .in(UVERBS_ATTR_ADVISE_MR_FLAGS, flags)
        .in(UVERBS_ATTR_ADVISE_MR_SGE_LIST, list)
        .run(context_);
  };
  EXPECT_EQ(advise(memory.data(), 4096, everything.lkey, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE), 0);
  EXPECT_EQ(advise(nullptr, 4096, everything.lkey, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH), -EFAULT);
  EXPECT_EQ(advise(nullptr, 4096, everything.lkey, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT), 0);
  EXPECT_EQ(advise(memory.data(), 4096, everything.lkey, 3), -EOPNOTSUPP);
  EXPECT_EQ(advise(memory.data(), 4096, everything.lkey + 1, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH), -ENOENT);
  EXPECT_EQ(destroy_mr(everything.mr_handle), 0);
}

TEST(Context, ClosingItDestroysWhatWasMade) {
  auto device = make_device();
  nic::Engine* engine = nullptr;
  std::vector<std::byte> memory(4096);
  {
    Context context(device);
    ASSERT_EQ(open_context(context), 0);
    ib_uverbs_alloc_pd in{};
    ib_uverbs_alloc_pd_resp pd{};
    ASSERT_EQ(write_command(context, IB_USER_VERBS_CMD_ALLOC_PD, in, pd), 0);
    ib_uverbs_reg_mr reg{};
    ib_uverbs_reg_mr_resp mr{};
    reg.start = reg.hca_va = reinterpret_cast<std::uintptr_t>(memory.data());
    reg.length = 4096;
    reg.pd_handle = pd.pd_handle;
    ASSERT_EQ(write_command(context, IB_USER_VERBS_CMD_REG_MR, reg, mr), 0);
    engine = device->engine().value();
    EXPECT_NE(engine->counters_text().find("registrations=1"), std::string::npos);
  }
  EXPECT_NE(engine->counters_text().find("registrations=0"), std::string::npos);
}

}  // namespace
}  // namespace strait::soft::uverbs
