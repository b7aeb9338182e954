// SPDX-License-Identifier: Apache-2.0
// DevX as libmlx5 asks for it: umems, doorbell pages, mailboxes good and bad. A bad one is answered with a status and a
// syndrome, and leaves nothing behind.
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <array>
#include <cerrno>
#include <vector>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/mailbox.hpp"
#include "soft/uverbs/testing.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {
namespace {

namespace prm = wire::prm;

struct Letter {
  std::vector<std::uint8_t> in;
  std::vector<std::uint8_t> out = std::vector<std::uint8_t>(272);
  std::uint32_t handle = 0;

  explicit Letter(prm::Command command, std::size_t bytes = 272) : in(bytes) {
    put(prm::kOpcode, static_cast<std::uint64_t>(command));
  }
  Letter& put(prm::Field field, std::uint64_t value) {
    prm::put(in.data(), field, value);
    return *this;
  }
  [[nodiscard]] std::uint64_t get(prm::Field field) const { return prm::get(out.data(), field); }
  [[nodiscard]] std::uint32_t number() const { return static_cast<std::uint32_t>(get(prm::kNumber)); }
};

class Devx : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(open(context_, MLX5_IB_ALLOC_UCTX_DEVX), 0);
    umem_ = reg_umem(memory_.data(), memory_.size());
    ASSERT_NE(umem_, 0u);
    ASSERT_EQ(alloc_uar(context_, uar_), 0);
  }
  static int open(Context& context, std::uint32_t flags) {
    mlx5_ib_alloc_ucontext_req_v2 asked{};
    asked.total_num_bfregs = 16;
    asked.num_low_latency_bfregs = 4;
    asked.flags = flags;
    asked.max_cqe_version = 1;
    asked.lib_caps = MLX5_LIB_CAP_DYN_UAR;
    mlx5_ib_alloc_ucontext_resp answer{};
    Call call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    const int result = call.in(UVERBS_ATTR_UHW_IN, asked).out(UVERBS_ATTR_UHW_OUT, answer).run(context);
    EXPECT_EQ(answer.tot_bfregs, 0u);
    return result;
  }
  std::uint32_t reg_umem(void* at, std::uint64_t bytes, std::uint32_t access = IB_UVERBS_ACCESS_LOCAL_WRITE) {
    std::uint32_t id = 0;
    const std::uint64_t length = bytes;
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(at);
    Call call(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
    umem_result_ = call.handle(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0)
                       .in(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, address)
                       .in(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, length)
                       .in(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, access)
                       .out(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, id)
                       .run(context_);
    return umem_result_ == 0 ? id : 0;
  }
  static int alloc_uar(Context& context, std::uint32_t& page) {
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    const std::uint64_t type = MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC;
    Call call(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
    const int result = call.handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0)
                           .in(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type)
                           .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset)
                           .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, length)
                           .out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, page)
                           .run(context);
    EXPECT_EQ(offset, page * std::uint64_t{sys::page_bytes()});
    return result;
  }
  static int send(Context& context, Letter& letter, std::uint16_t object, std::uint16_t method,
                  std::uint32_t handle = 0) {
    // All of these have the handle first, where there is one, then command and answer.
    Call call(object, method);
    const bool has_handle = object == MLX5_IB_OBJECT_DEVX_OBJ;
    if (has_handle) call.handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, handle);
    const std::uint16_t first =
        has_handle ? std::uint16_t{MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN} : std::uint16_t{MLX5_IB_ATTR_DEVX_OTHER_CMD_IN};
    call.raw(first, static_cast<std::uint16_t>(letter.in.size()), reinterpret_cast<std::uintptr_t>(letter.in.data()));
    call.raw(static_cast<std::uint16_t>(first + 1), static_cast<std::uint16_t>(letter.out.size()),
             reinterpret_cast<std::uintptr_t>(letter.out.data()));
    const int result = call.run(context);
    if (has_handle) letter.handle = static_cast<std::uint32_t>(call.attribute(0).data);
    return result;
  }
  int create(Letter& letter) { return send(context_, letter, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE); }
  int general(Letter& letter) { return send(context_, letter, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER); }
  int modify(Letter& letter, std::uint32_t handle) {
    return send(context_, letter, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, handle);
  }
  int query(Letter& letter, std::uint32_t handle) {
    return send(context_, letter, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, handle);
  }
  int destroy(std::uint32_t handle) {
    return Call(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY)
        .handle(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle)
        .run(context_);
  }
  int dereg_umem(std::uint32_t id) {
    return Call(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG)
        .handle(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, id)
        .run(context_);
  }
  void expect_refusal(Letter& letter, prm::Status status, Syndrome syndrome) {
    EXPECT_EQ(create(letter), syndrome == Syndrome::not_supported ? -EOPNOTSUPP : -EREMOTEIO);
    EXPECT_EQ(letter.get(prm::kStatus), static_cast<std::uint64_t>(status));
    EXPECT_EQ(letter.get(prm::kSyndrome), static_cast<std::uint64_t>(syndrome));
    EXPECT_EQ(letter.number(), 0u);
  }

  // Good ones, for tests to spoil.
  Letter cq() const {
    Letter out(prm::Command::create_cq);
    const auto at = [](prm::Field field) { return prm::at(prm::create_cq::kContext, field); };
    out.put(at(prm::cqc::kLogSize), 4).put(at(prm::cqc::kUarPage), uar_);
    out.put(at(prm::cqc::kRecordUmemId), umem_).put(at(prm::cqc::kRecordAddress), 8192);
    return out.put(prm::create_cq::kUmemId, umem_).put(prm::create_cq::kUmemOffset, 0);
  }
  Letter qp(std::uint32_t pd, std::uint32_t cqn) const {
    Letter out(prm::Command::create_qp);
    const auto at = [](prm::Field field) { return prm::at(prm::create_qp::kContext, field); };
    out.put(at(prm::qpc::kPd), pd).put(at(prm::qpc::kSendCqn), cqn).put(at(prm::qpc::kReceiveCqn), cqn);
    out.put(at(prm::qpc::kUarPage), uar_).put(at(prm::qpc::kLogSqSize), 4).put(at(prm::qpc::kLogRqSize), 3);
    out.put(at(prm::qpc::kRecordUmemId), umem_).put(at(prm::qpc::kRecordAddress), 8256);
    return out.put(prm::create_qp::kUmemId, umem_).put(prm::create_qp::kUmemOffset, 4096);
  }
  Letter key(std::uint32_t pd) const {
    Letter out(prm::Command::create_mkey);
    const auto at = [](prm::Field field) { return prm::at(prm::create_mkey::kContext, field); };
    out.put(at(prm::mkc::kAccessMode), 1).put(at(prm::mkc::kLocalWrite), 1).put(at(prm::mkc::kQpn), 0xffffff);
    out.put(at(prm::mkc::kVariant), 0x77).put(at(prm::mkc::kPd), pd).put(at(prm::mkc::kStart), 0x7000'0000'0000);
    return out.put(at(prm::mkc::kLength), 4096).put(prm::create_mkey::kUmemId, umem_);
  }
  Letter made(Letter letter) {
    EXPECT_EQ(create(letter), 0) << std::hex << letter.get(prm::kStatus) << " " << letter.get(prm::kSyndrome);
    return letter;
  }

  std::shared_ptr<Device> device_ = make_device();
  Context context_{device_};
  alignas(4096) std::array<std::byte, 16384> memory_{};
  std::uint32_t umem_ = 0;
  std::uint32_t uar_ = 0;
  int umem_result_ = 0;
};

TEST_F(Devx, QueuesLiveAndGo) {
  const Letter pd = made(Letter(prm::Command::alloc_pd, 16));
  const Letter cq_made = made(cq());
  const Letter qp_made = made(qp(pd.number(), cq_made.number()));
  EXPECT_EQ(destroy(pd.handle), -EBUSY);
  EXPECT_EQ(destroy(cq_made.handle), -EBUSY);
  EXPECT_EQ(dereg_umem(umem_), -EBUSY);

  Letter init(prm::Command::rst2init_qp);
  init.put(prm::kNumber, qp_made.number());
  init.put(prm::at(prm::modify_qp::kContext + prm::qpc::kPath, prm::ads::kPort), 1);
  init.put(prm::at(prm::modify_qp::kContext, prm::qpc::kRemoteWrite), 1);
  EXPECT_EQ(modify(init, qp_made.handle), 0);
  EXPECT_EQ(modify(init, qp_made.handle), -EREMOTEIO);  // it is in INIT by now
  EXPECT_EQ(init.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_qp_state));

  Letter ask(prm::Command::query_qp, 16);
  ask.put(prm::kNumber, qp_made.number());
  ASSERT_EQ(query(ask, qp_made.handle), 0);
  const auto says = [&](prm::Field field) { return ask.get(prm::at(prm::query_qp::kContext, field)); };
  EXPECT_EQ(says(prm::qpc::kState), 1u);
  EXPECT_EQ(says(prm::qpc::kRemoteWrite), 1u);
  EXPECT_EQ(says(prm::qpc::kRemoteRead), 0u);
  EXPECT_EQ(says(prm::qpc::kSendCqn), cq_made.number());
  EXPECT_EQ(says(prm::qpc::kLogSqSize), 4u);

  Letter reset(prm::Command::to_rst_qp, 16);
  reset.put(prm::kNumber, qp_made.number());
  EXPECT_EQ(modify(reset, qp_made.handle), 0);
  EXPECT_EQ(destroy(qp_made.handle), 0);
  EXPECT_EQ(destroy(qp_made.handle), -ENOENT);
  EXPECT_EQ(destroy(cq_made.handle), 0);
  EXPECT_EQ(destroy(pd.handle), 0);
  EXPECT_EQ(dereg_umem(umem_), 0);
}

TEST_F(Devx, KeysHaveTheLowByteThatWasAskedFor) {
  const Letter pd = made(Letter(prm::Command::alloc_pd, 16));
  const Letter direct = made(key(pd.number()));
  // Another key for peers, made of it: two parts of 2 KiB that lie one behind the other.
  Letter list(prm::Command::create_mkey, 272 + 2 * prm::klm::kBytes);
  const auto at = [](prm::Field field) { return prm::at(prm::create_mkey::kContext, field); };
  list.put(at(prm::mkc::kAccessMode), 3).put(at(prm::mkc::kRemoteWrite), 1).put(at(prm::mkc::kQpn), 0xffffff);
  list.put(at(prm::mkc::kPd), pd.number()).put(at(prm::mkc::kStart), 0x1000).put(at(prm::mkc::kLength), 4096);
  list.put(at(prm::mkc::kLogPageSize), 11).put(prm::create_mkey::kEntries, 2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t entry = (272 + 16 * i) * 8;
    list.put(prm::at(entry, prm::klm::kKey), direct.number() << 8 | 0x77);
    list.put(prm::at(entry, prm::klm::kAddress), 0x7000'0000'0000 + 2048 * i);
  }
  const Letter alias = made(list);
  EXPECT_NE(alias.number(), direct.number());
  list.put(prm::at((272 + 16) * 8, prm::klm::kAddress), 0x7000'0000'0000);  // both parts the same: no range
  const Letter twice = made(list);
  EXPECT_NE(twice.number(), alias.number());
  list.put(prm::create_mkey::kEntries, 3);
  expect_refusal(list, prm::Status::bad_input_length, Syndrome::input_too_short);
  list.put(prm::create_mkey::kEntries, 1).put(prm::at(272 * 8, prm::klm::kKey), 0x123456);
  expect_refusal(list, prm::Status::bad_resource, Syndrome::no_such_key);
  EXPECT_EQ(destroy(direct.handle), 0);
  EXPECT_EQ(destroy(alias.handle), 0);
  EXPECT_EQ(destroy(pd.handle), -EBUSY);
  EXPECT_EQ(destroy(twice.handle), 0);
  EXPECT_EQ(destroy(pd.handle), 0);
}

// What mlx5dv_create_mkey asks for.
TEST_F(Devx, KeysForWorkRequestsHaveNothingInThemYet) {
  const Letter pd = made(Letter(prm::Command::alloc_pd, 16));
  const auto at = [](prm::Field field) { return prm::at(prm::create_mkey::kContext, field); };
  Letter empty(prm::Command::create_mkey);
  empty.put(at(prm::mkc::kFree), 1).put(at(prm::mkc::kUmr), 1).put(at(prm::mkc::kAccessMode), 2);
  empty.put(at(prm::mkc::kLocalRead), 1).put(at(prm::mkc::kQpn), 0xffffff).put(at(prm::mkc::kPd), pd.number());
  empty.put(at(prm::mkc::kTranslations), 4);
  const Letter key_made = made(empty);
  EXPECT_NE(key_made.number(), 0u);
  EXPECT_EQ(destroy(pd.handle), -EBUSY);
  EXPECT_EQ(destroy(key_made.handle), 0);
  Letter spoilt = empty;
  expect_refusal(spoilt.put(at(prm::mkc::kSignature), 1), prm::Status::bad_opcode, Syndrome::not_supported);
  spoilt = empty;
  expect_refusal(spoilt.put(at(prm::mkc::kCrypto), 1), prm::Status::bad_opcode, Syndrome::not_supported);
  spoilt = empty;
  expect_refusal(spoilt.put(at(prm::mkc::kAccessMode), 1), prm::Status::bad_opcode, Syndrome::not_supported);
  spoilt = empty;
  expect_refusal(spoilt.put(at(prm::mkc::kUmr), 0), prm::Status::bad_parameter, Syndrome::bad_value);
  spoilt = empty;
  expect_refusal(spoilt.put(at(prm::mkc::kPd), 0x7777), prm::Status::bad_resource, Syndrome::no_such_pd);
  EXPECT_EQ(destroy(pd.handle), 0);
}

TEST_F(Devx, UnknownCommandsAreRefusedInTheDevicesWords) {
  Letter unknown(static_cast<prm::Command>(0x7ff), 16);
  unknown.out.resize(16);
  EXPECT_EQ(general(unknown), -EREMOTEIO);
  EXPECT_EQ(unknown.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_opcode));
  EXPECT_EQ(unknown.get(prm::kSyndrome), static_cast<std::uint64_t>(Syndrome::unknown_command));
  expect_refusal(unknown, prm::Status::bad_opcode, Syndrome::unknown_command);
}

TEST_F(Devx, ShortMailboxesAreRefused) {
  Letter tiny(prm::Command::alloc_pd, 15);
  EXPECT_EQ(create(tiny), -EINVAL);  // not even a header
  Letter no_room(prm::Command::alloc_pd, 16);
  no_room.out.resize(8);
  EXPECT_EQ(create(no_room), -EINVAL);
  for (const auto command :
       {prm::Command::create_cq, prm::Command::create_qp, prm::Command::create_mkey, prm::Command::create_rmp}) {
    Letter letter(command, 64);
    expect_refusal(letter, prm::Status::bad_input_length, Syndrome::input_too_short);
  }
  Letter caps(prm::Command::query_hca_cap, 16);
  caps.out.resize(64);
  EXPECT_EQ(general(caps), -EREMOTEIO);
  EXPECT_EQ(caps.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_output_length));
}

TEST_F(Devx, MemoryMustBeAUmemOfThisProgram) {
  const auto cq_at = [](prm::Field field) { return prm::at(prm::create_cq::kContext, field); };
  Letter other = cq();
  other.put(prm::create_cq::kUmemId, umem_ + 1000);
  expect_refusal(other, prm::Status::bad_resource, Syndrome::no_such_umem);
  Letter record = cq();
  record.put(cq_at(prm::cqc::kRecordUmemId), 0);
  expect_refusal(record, prm::Status::bad_resource, Syndrome::no_such_umem);
  Letter beyond = cq();
  beyond.put(prm::create_cq::kUmemOffset, memory_.size() - 64);
  expect_refusal(beyond, prm::Status::bad_parameter, Syndrome::outside_umem);
  Letter wraps = cq();
  wraps.put(prm::create_cq::kUmemOffset, ~std::uint64_t{0} - 63);
  expect_refusal(wraps, prm::Status::bad_parameter, Syndrome::outside_umem);
  Letter huge = cq();
  huge.put(cq_at(prm::cqc::kLogSize), 31);
  expect_refusal(huge, prm::Status::over_limit, Syndrome::bad_value);
  Letter crooked = cq();
  crooked.put(prm::create_cq::kUmemOffset, 4);
  expect_refusal(crooked, prm::Status::bad_parameter, Syndrome::refused);
  const std::uint32_t reads = reg_umem(memory_.data(), memory_.size(), 0);
  ASSERT_NE(reads, 0u);
  Letter read_only = cq();
  read_only.put(prm::create_cq::kUmemId, reads);
  expect_refusal(read_only, prm::Status::bad_parameter, Syndrome::umem_read_only);
  Letter no_page = cq();
  no_page.put(cq_at(prm::cqc::kUarPage), uar_ + 1);
  expect_refusal(no_page, prm::Status::bad_resource, Syndrome::no_such_uar);
  EXPECT_EQ(dereg_umem(umem_), 0);  // nobody holds it after all that
}

// The device reads it and nothing else; UCX 1.23 registers all its doorbell records so.
TEST_F(Devx, ADoorbellRecordMayBeReadOnly) {
  const std::uint32_t reads = reg_umem(memory_.data(), memory_.size(), 0);
  ASSERT_NE(reads, 0u);
  Letter letter = cq();
  letter.put(prm::at(prm::create_cq::kContext, prm::cqc::kRecordUmemId), reads);
  EXPECT_NE(made(letter).number(), 0u);
}

TEST_F(Devx, UmemsMustBeThere) {
  EXPECT_EQ(reg_umem(nullptr, 4096), 0u);
  EXPECT_EQ(umem_result_, -EFAULT);
  EXPECT_EQ(reg_umem(memory_.data(), 0), 0u);
  EXPECT_EQ(umem_result_, -EINVAL);
  EXPECT_EQ(reg_umem(memory_.data(), ~std::uint64_t{0}), 0u);
  EXPECT_EQ(umem_result_, -EINVAL);
  EXPECT_EQ(reg_umem(memory_.data(), 4096, 1u << 30), 0u);
  EXPECT_EQ(umem_result_, -EINVAL);
  EXPECT_EQ(dereg_umem(12345), -ENOENT);
}

// Another context is another program to the firmware: what is in the mailbox under "uid" makes no difference.
TEST_F(Devx, NumbersOfOtherContextsAreNotThere) {
  const Letter pd = made(Letter(prm::Command::alloc_pd, 16));
  const Letter cq_made = made(cq());
  Context other(device_);
  ASSERT_EQ(open(other, MLX5_IB_ALLOC_UCTX_DEVX), 0);
  std::uint32_t page = 0;
  ASSERT_EQ(alloc_uar(other, page), 0);
  const auto in_other = [&](Letter letter, Syndrome syndrome) {
    letter.put(prm::kUid, 1);
    EXPECT_EQ(send(other, letter, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE), -EREMOTEIO);
    EXPECT_EQ(letter.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_resource));
    EXPECT_EQ(letter.get(prm::kSyndrome), static_cast<std::uint64_t>(syndrome));
  };
  in_other(cq(), Syndrome::no_such_umem);
  in_other(qp(pd.number(), cq_made.number()), Syndrome::no_such_pd);
  in_other(key(pd.number()), Syndrome::no_such_pd);
  Letter own_pd(prm::Command::alloc_pd, 16);
  ASSERT_EQ(send(other, own_pd, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE), 0);
  in_other(qp(own_pd.number(), cq_made.number()), Syndrome::no_such_cq);
  in_other(key(own_pd.number()), Syndrome::no_such_umem);
}

TEST_F(Devx, AContextThatWasNotOpenedForItHasNone) {
  Context plain(device_);
  ASSERT_EQ(open(plain, 0), 0);
  Letter caps(prm::Command::query_hca_cap, 16);
  EXPECT_EQ(send(plain, caps, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER), -EINVAL);
  Letter pd(prm::Command::alloc_pd, 16);
  EXPECT_EQ(send(plain, pd, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE), -EINVAL);
}

TEST_F(Devx, MailboxAndHandleNameTheSameQueuePair) {
  const Letter pd = made(Letter(prm::Command::alloc_pd, 16));
  const Letter cq_made = made(cq());
  const Letter qp_made = made(qp(pd.number(), cq_made.number()));
  Letter reset(prm::Command::to_rst_qp, 16);
  reset.put(prm::kNumber, qp_made.number() + 1);
  EXPECT_EQ(modify(reset, qp_made.handle), -EINVAL);
  reset.put(prm::kNumber, cq_made.number());
  EXPECT_EQ(modify(reset, cq_made.handle), -EINVAL);
  EXPECT_EQ(modify(reset, 9999), -ENOENT);
  Letter short_step(prm::Command::rst2init_qp, 64);
  short_step.put(prm::kNumber, qp_made.number());
  EXPECT_EQ(modify(short_step, qp_made.handle), -EREMOTEIO);
  EXPECT_EQ(short_step.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_input_length));
  Letter ask_cq(prm::Command::query_cq, 16);
  EXPECT_EQ(query(ask_cq, cq_made.handle), -EINVAL);
  ask_cq.put(prm::kNumber, cq_made.number());
  EXPECT_EQ(query(ask_cq, cq_made.handle), 0);
  ask_cq.put(prm::kNumber, qp_made.number());
  EXPECT_EQ(query(ask_cq, qp_made.handle), -EREMOTEIO);
  EXPECT_EQ(ask_cq.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_resource));
  Letter unknown(static_cast<prm::Command>(0x7ff), 16);
  unknown.put(prm::kNumber, cq_made.number());
  EXPECT_EQ(query(unknown, cq_made.handle), -EREMOTEIO);
  EXPECT_EQ(unknown.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_opcode));
}

TEST_F(Devx, QueuesAndKeysSayWhatTheyWereMadeOf) {
  const Letter pd = made(Letter(prm::Command::alloc_pd, 16));
  const auto ask = [&](prm::Command command, const Letter& object, std::size_t room = 272) {
    Letter out(command, 16);
    out.out.resize(room);
    out.put(prm::kNumber, object.number());
    out.handle = object.handle;
    return out;
  };
  const Letter cq_made = made(cq());
  Letter of_cq = ask(prm::Command::query_cq, cq_made);
  ASSERT_EQ(query(of_cq, cq_made.handle), 0);
  EXPECT_EQ(of_cq.get(prm::at(prm::create_cq::kContext, prm::cqc::kLogSize)), 4u);
  EXPECT_EQ(of_cq.get(prm::at(prm::create_cq::kContext, prm::cqc::kRecordAddress)), 8192u);
  EXPECT_EQ(of_cq.get(prm::kStatus), 0u);
  Letter no_room = ask(prm::Command::query_cq, cq_made, 79);
  EXPECT_EQ(query(no_room, cq_made.handle), -EREMOTEIO);
  EXPECT_EQ(no_room.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_output_length));

  const Letter key_made = made(key(pd.number()));
  Letter of_key = ask(prm::Command::query_mkey, key_made);
  ASSERT_EQ(query(of_key, key_made.handle), 0);
  EXPECT_EQ(of_key.get(prm::at(prm::create_mkey::kContext, prm::mkc::kStart)), 0x7000'0000'0000u);
  EXPECT_EQ(of_key.get(prm::at(prm::create_mkey::kContext, prm::mkc::kLength)), 4096u);
  EXPECT_EQ(of_key.get(prm::at(prm::create_mkey::kContext, prm::mkc::kPd)), pd.number());

  const auto wq_at = [](prm::Field field) { return prm::at(prm::create_rmp::kWq, field); };
  Letter receives(prm::Command::create_rmp);
  receives.put(prm::create_rmp::kState, prm::create_rmp::kStateReady).put(wq_at(prm::wq::kType), 1);
  receives.put(wq_at(prm::wq::kPd), pd.number()).put(wq_at(prm::wq::kLogStride), 6).put(wq_at(prm::wq::kLogSize), 3);
  receives.put(wq_at(prm::wq::kUmemId), umem_).put(wq_at(prm::wq::kRecordUmemId), umem_);
  const Letter rmp = made(receives.put(wq_at(prm::wq::kRecordAddress), 8320));
  Letter of_rmp = ask(prm::Command::query_rmp, rmp);
  ASSERT_EQ(query(of_rmp, rmp.handle), 0);
  EXPECT_EQ(of_rmp.get(prm::create_rmp::kState), prm::create_rmp::kStateReady);
  EXPECT_EQ(of_rmp.get(wq_at(prm::wq::kLogSize)), 3u);
  EXPECT_EQ(of_rmp.get(wq_at(prm::wq::kRecordAddress)), 8320u);
  Letter wrong = ask(prm::Command::query_rmp, key_made);
  EXPECT_EQ(query(wrong, key_made.handle), -EREMOTEIO);
  EXPECT_EQ(wrong.get(prm::kStatus), static_cast<std::uint64_t>(prm::Status::bad_resource));

  // What work requests make of a key is not known here.
  const auto at = [](prm::Field field) { return prm::at(prm::create_mkey::kContext, field); };
  Letter empty(prm::Command::create_mkey);
  empty.put(at(prm::mkc::kFree), 1).put(at(prm::mkc::kUmr), 1).put(at(prm::mkc::kAccessMode), 2);
  empty.put(at(prm::mkc::kQpn), 0xffffff).put(at(prm::mkc::kPd), pd.number()).put(at(prm::mkc::kTranslations), 4);
  const Letter filled = made(empty);
  Letter of_filled = ask(prm::Command::query_mkey, filled);
  EXPECT_EQ(query(of_filled, filled.handle), -EOPNOTSUPP);
}

TEST_F(Devx, CapabilitiesAgreeWithTheDevice) {
  Letter caps(prm::Command::query_hca_cap, 16);
  caps.out.resize(16 + prm::kCapabilityBytes);
  caps.put(prm::kOpMod, 1);
  ASSERT_EQ(general(caps), 0);
  const auto says = [&](prm::Field field) { return caps.get(prm::at(prm::kCapability, field)); };
  EXPECT_EQ(says(prm::cap::kLogMaxMessage), 30u);
  EXPECT_EQ(says(prm::cap::kNumPorts), 1u);
  EXPECT_EQ(says(prm::cap::kCqeVersion), 1u);
  EXPECT_EQ(says(prm::cap::kLogMaxQp), 16u);
  caps.put(prm::kOpMod, 0x7f << 1);
  EXPECT_EQ(general(caps), -EREMOTEIO);  // a group that does not exist
}

}  // namespace
}  // namespace strait::soft::uverbs
