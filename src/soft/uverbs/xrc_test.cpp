// SPDX-License-Identifier: Apache-2.0
// XRC domains and targets, which the contexts of a process share.
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>

#include <cerrno>

#include "soft/uverbs/testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {
namespace {

class XrcContexts : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(get_context(a_), 0);
    ASSERT_EQ(get_context(b_), 0);
  }
  static int open(Context& context, int fd, int flags, std::uint32_t& handle) {
    ib_uverbs_open_xrcd in{};
    in.fd = static_cast<std::uint32_t>(fd);
    in.oflags = static_cast<std::uint32_t>(flags);
    ib_uverbs_open_xrcd_resp out{};
    const int result = write_command(context, IB_USER_VERBS_CMD_OPEN_XRCD, in, out);
    handle = out.xrcd_handle;
    return result;
  }
  static int close(Context& context, std::uint32_t handle) {
    return Call(UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY)
        .handle(UVERBS_ATTR_DESTROY_XRCD_HANDLE, handle)
        .run(context);
  }
  static int make_target(Context& context, std::uint32_t xrcd, std::uint32_t& handle, std::uint32_t& qpn) {
    const std::uint64_t user = 77;
    const std::uint64_t type = IB_UVERBS_QPT_XRC_TGT;
    const ib_uverbs_qp_cap cap{};
    ib_uverbs_qp_cap got{};
    mlx5_ib_create_qp in{};
    mlx5_ib_create_qp_resp out{};
    Call call(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
    const int result = call.handle(UVERBS_ATTR_CREATE_QP_HANDLE, 0)
                           .handle(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, xrcd)
                           .in(UVERBS_ATTR_CREATE_QP_USER_HANDLE, user)
                           .in(UVERBS_ATTR_CREATE_QP_TYPE, type)
                           .in(UVERBS_ATTR_CREATE_QP_CAP, cap)
                           .out(UVERBS_ATTR_CREATE_QP_RESP_CAP, got)
                           .out(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qpn)
                           .in(UVERBS_ATTR_UHW_IN, in)
                           .out(UVERBS_ATTR_UHW_OUT, out)
                           .run(context);
    handle = static_cast<std::uint32_t>(call.attribute(0).data);
    return result;
  }
  static int open_target(Context& context, std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t& handle) {
    ib_uverbs_open_qp in{};
    in.user_handle = 78;
    in.pd_handle = xrcd;
    in.qpn = qpn;
    in.qp_type = IB_UVERBS_QPT_XRC_TGT;
    ib_uverbs_create_qp_resp out{};
    const int result = write_command(context, IB_USER_VERBS_CMD_OPEN_QP, in, out);
    handle = out.qp_handle;
    return result;
  }
  static int destroy_qp(Context& context, std::uint32_t handle) {
    ib_uverbs_destroy_qp_resp out{};
    return Call(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY)
        .handle(UVERBS_ATTR_DESTROY_QP_HANDLE, handle)
        .out(UVERBS_ATTR_DESTROY_QP_RESP, out)
        .run(context);
  }

  std::shared_ptr<Device> device_ = make_device();
  sys::Fd file_ = sys::make_sealed_memfd("xrc", 4096).value();
  Context a_{device_};
  Context b_{device_};
};

TEST_F(XrcContexts, ADomainGoesByItsFile) {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  EXPECT_EQ(open(a_, file_.get(), 0, first), -EAGAIN) << "there is none, and none was to be made";
  EXPECT_EQ(open(a_, 100000, O_CREAT, first), -EBADF);
  EXPECT_EQ(open(a_, -2, O_CREAT, first), -EBADF);
  ASSERT_EQ(open(a_, file_.get(), O_CREAT | O_EXCL, first), 0);
  EXPECT_EQ(open(b_, file_.get(), O_CREAT | O_EXCL, second), -EINVAL);
  ASSERT_EQ(open(b_, file_.get(), 0, second), 0);
  EXPECT_EQ(close(a_, first), 0);
  EXPECT_EQ(close(a_, first), -ENOENT);
  std::uint32_t third = 0;
  EXPECT_EQ(open(a_, file_.get(), 0, third), 0) << "the other context holds it";
  EXPECT_EQ(close(a_, third), 0);
  EXPECT_EQ(close(b_, second), 0);
  EXPECT_EQ(open(a_, file_.get(), 0, third), -EAGAIN) << "the last one took it along";
}

TEST_F(XrcContexts, ATargetIsSharedByWhoOpensIt) {
  std::uint32_t here = 0;
  std::uint32_t there = 0;
  ASSERT_EQ(open(a_, file_.get(), O_CREAT, here), 0);
  ASSERT_EQ(open(b_, file_.get(), 0, there), 0);
  std::uint32_t made = 0;
  std::uint32_t qpn = 0;
  ASSERT_EQ(make_target(a_, here, made, qpn), 0);
  std::uint32_t opened = 0;
  EXPECT_EQ(open_target(b_, there, qpn + 1, opened), -EINVAL);
  ASSERT_EQ(open_target(b_, there, qpn, opened), 0);
  EXPECT_EQ(close(a_, here), -EBUSY);
  EXPECT_EQ(close(b_, there), -EBUSY);
  EXPECT_EQ(destroy_qp(a_, made), 0);
  nic::Engine& engine = *device_->engine().value();
  EXPECT_TRUE(engine.query_qp(qpn)) << "the other context has it still";
  EXPECT_EQ(close(a_, here), 0);
  EXPECT_EQ(destroy_qp(b_, opened), 0);
  EXPECT_FALSE(engine.query_qp(qpn));
  EXPECT_EQ(close(b_, there), 0);
}

TEST_F(XrcContexts, ADomainWithoutAFileIsNobodyElses) {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  ASSERT_EQ(open(a_, -1, 0, first), 0);
  ASSERT_EQ(open(b_, -1, 0, second), 0);
  std::uint32_t made = 0;
  std::uint32_t qpn = 0;
  ASSERT_EQ(make_target(a_, first, made, qpn), 0);
  std::uint32_t opened = 0;
  EXPECT_EQ(open_target(b_, second, qpn, opened), -EINVAL);
  EXPECT_EQ(make_target(b_, first + 100, made, qpn), -ENOENT);
}  // what is left is closed with the contexts

}  // namespace
}  // namespace strait::soft::uverbs
