// SPDX-License-Identifier: Apache-2.0
// One test for each of the 15 defects of RDMaxcel that docs/rdmaxcel.md lists, on queues on paper; the last digits of
// its name are the row. Rows 11 and 12 are in rdmaxcel_launch_test.cpp.
#include <thread>
#include <type_traits>
#include <vector>

#include "rdmaxcel_rig.hpp"

extern "C" {
ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel*, int) {
  if (++paper::verbs.made == paper::verbs.fail_cq_at) return errno = ENOMEM, nullptr;
  ++paper::verbs.cqs;
  auto* const cq = new ibv_cq{};
  cq->context = context;
  return cq;
}
int ibv_destroy_cq(ibv_cq* cq) {
  --paper::verbs.cqs;
  delete cq;
  return 0;
}
static ibv_qp* paper_qp(ibv_cq* send_cq, ibv_cq* recv_cq) {
  if (paper::verbs.fail_qp) return errno = ENOMEM, nullptr;
  ++paper::verbs.qps;
  auto* const qp = new ibv_qp{};
  qp->send_cq = send_cq;
  qp->recv_cq = recv_cq;
  return qp;
}
ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr* init) {
  return paper_qp(init->send_cq, init->recv_cq);
}
ibv_qp* mlx5dv_create_qp(ibv_context*, ibv_qp_init_attr_ex* init, mlx5dv_qp_init_attr*) {
  return paper_qp(init->send_cq, init->recv_cq);
}
int ibv_destroy_qp(ibv_qp* qp) {
  --paper::verbs.qps;
  delete qp;
  return 0;
}
int mlx5dv_init_obj(mlx5dv_obj* object, std::uint64_t type) {
  if ((type & MLX5DV_OBJ_QP) != 0) {
    const auto at = paper::verbs.rings.find(object->qp.in);
    if (at == paper::verbs.rings.end()) return EOPNOTSUPP;
    *object->qp.out = at->second;
  }
  if ((type & MLX5DV_OBJ_CQ) != 0) {
    const auto at = paper::verbs.completions.find(object->cq.in);
    if (at == paper::verbs.completions.end()) return EOPNOTSUPP;
    *object->cq.out = at->second;
  }
  return 0;
}
}

namespace {

using namespace paper;
namespace rx = strait::rdmaxcel;

// The document's signatures. cudaError_t is int here.
static_assert(std::is_same_v<decltype(&send_wqe), void (*)(wqe_params_t)>);
static_assert(std::is_same_v<decltype(&recv_wqe), void (*)(wqe_params_t)>);
static_assert(std::is_same_v<decltype(&db_ring), void (*)(void*, void*)>);
static_assert(std::is_same_v<decltype(&cqe_poll), void (*)(int32_t*, cqe_poll_params_t)>);
static_assert(std::is_same_v<decltype(&cu_send_wqe), void (*)(wqe_params_t)>);
static_assert(std::is_same_v<decltype(&cu_recv_wqe), void (*)(wqe_params_t)>);
static_assert(std::is_same_v<decltype(&cu_db_ring), void (*)(void*, void*)>);
static_assert(std::is_same_v<decltype(&cu_cqe_poll), void (*)(int32_t*, cqe_poll_params_t)>);
static_assert(std::is_same_v<decltype(&launch_send_wqe), void (*)(wqe_params_t)>);
static_assert(std::is_same_v<decltype(&launch_recv_wqe), void (*)(wqe_params_t)>);
static_assert(std::is_same_v<decltype(&launch_db_ring), void (*)(void*, void*)>);
static_assert(std::is_same_v<decltype(&launch_cqe_poll), cqe_poll_result_t (*)(void*, int32_t)>);
static_assert(std::is_same_v<decltype(&register_cuda_memory), int (*)(mlx5dv_qp*, mlx5dv_cq*, mlx5dv_cq*)>);
static_assert(std::is_same_v<decltype(&create_mlx5dv_qp), mlx5dv_qp* (*)(ibv_qp*)>);
static_assert(std::is_same_v<decltype(&create_mlx5dv_send_cq), mlx5dv_cq* (*)(ibv_qp*)>);
static_assert(std::is_same_v<decltype(&create_mlx5dv_recv_cq), mlx5dv_cq* (*)(ibv_qp*)>);
// It crosses from a kernel to the host as bytes.
static_assert(std::is_trivially_copyable_v<cqe_poll_result_t>);

TEST_F(Rdmaxcel, TheIndexIsCutTo16BitsOnTheWireOnly_01) {
  PaperQp qp(0xa1b2);
  std::uint32_t receives = 0;
  for (std::uint64_t i = 0; i < 0x10000 + 300; ++i) {
    send_wqe(qp.write(i));
    qp.ring_bell();
    const Wqe wqe = qp.at(i);
    ASSERT_EQ(wqe.opmod, 0u) << i;
    ASSERT_EQ(wqe.index, i & 0xffff);
    ASSERT_EQ(qp.record(1), (i + 1) & 0xffff);
    qp.complete_send(i);
    const cqe_poll_result_t done = qp.poll(static_cast<std::uint32_t>(i));
    ASSERT_EQ(done, CQE_POLL_TRUE);
    ASSERT_EQ(done.index, i);
    ASSERT_EQ(done.wr_id, i);

    recv_wqe(qp.receive(i));
    ASSERT_EQ(qp.record(0), (i + 1) & 0xffff);
    qp.complete_receive(i, mlx5::CqeOpcode::responder_send, 1);
    ASSERT_EQ(qp.poll(receives++, true).index, i);
  }
  EXPECT_EQ(qp.status(), RDMAXCEL_SUCCESS);
}

TEST_F(Rdmaxcel, ReceivesGoRoundAndAreTerminated_02) {
  PaperQp qp(7);
  for (std::uint64_t i = 0; i < kReceives; ++i) recv_wqe(qp.receive(100 + i, 1000 + i));
  for (std::uint64_t i = 0; i < kReceives; ++i) {
    EXPECT_EQ(big(qp.receive_at(i), 4), 1000 + i);
    EXPECT_EQ(big(qp.receive_at(i) + 16, 4), 0u);
    EXPECT_EQ(big(qp.receive_at(i) + 20, 4), 0x100u) << "the list is shorter than its stride";
  }
  EXPECT_EQ(qp.record(0), kReceives);
  EXPECT_EQ(rdmaxcel_recv_wqe(qp.receive(0)), RDMAXCEL_QUEUE_FULL);
  for (std::uint64_t i = 0; i < kReceives; ++i) {
    qp.complete_receive(i, mlx5::CqeOpcode::responder_send, 9);
    const cqe_poll_result_t got = qp.poll(static_cast<std::uint32_t>(i), true);
    EXPECT_EQ(got, CQE_POLL_TRUE);
    EXPECT_EQ(got.wr_id, 100 + i);
  }
  EXPECT_EQ(rdmaxcel_recv_wqe(qp.receive(0)), RDMAXCEL_SUCCESS);
  // A stride of one segment has no room for a terminator and needs none; nothing is written behind the last slot.
  PaperQp narrow(8, 0, 0, true, 16);
  for (std::uint64_t i = 0; i < kReceives; ++i) recv_wqe(narrow.receive(i, 1));
  EXPECT_EQ(narrow.ring()[0], 0xa5);
  EXPECT_EQ(qp.status(), RDMAXCEL_QUEUE_FULL);
}

TEST_F(Rdmaxcel, SendHasNoRemoteSegmentAndWhatCannotBeSaidIsRefused_03) {
  PaperQp qp(7);
  wqe_params_t p = qp.write(1);
  p.op_type = MLX5_OPCODE_SEND;
  send_wqe(p);
  const Wqe wqe = qp.at(0);
  EXPECT_TRUE(wqe.well_formed);
  EXPECT_EQ(wqe.ds, 2u);
  EXPECT_EQ(wqe.pointers, (std::vector<Pointer>{{0x7f0000001000, 512, 0x112233}}));
  for (const std::uint32_t op : {MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_SEND_INVAL,
                                 MLX5_OPCODE_ATOMIC_CS, MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_UMR, MLX5_OPCODE_NOP}) {
    p.op_type = op;
    send_wqe(p);
    EXPECT_EQ(qp.status(), RDMAXCEL_UNSUPPORTED_OP) << op;
  }
  p.op_type = MLX5_OPCODE_RDMA_WRITE | 0x100;
  EXPECT_EQ(rdmaxcel_send_wqe(p), RDMAXCEL_UNSUPPORTED_OP);

  // The ring code carries it, on the same ring, in the same order.
  sd::SendRing* const ring = rdmaxcel_send_ring(7, qp.ring());
  ASSERT_NE(ring, nullptr);
  const std::uint8_t payload[100] = {1, 2, 3};
  const sd::Piece pieces[] = {{0x1000, 8, 1}, {0x2000, 9, 2}};
  EXPECT_TRUE(sd::post_write_imm<kMany>(*ring, {0x10, 5}, pieces, 2, sw::be32{0x01020304}, sd::kFenced).ok());
  EXPECT_TRUE(sd::post_write_inline<kMany>(*ring, {0x10, 5}, payload, sizeof payload, sd::kNoFlags).ok());
  EXPECT_TRUE(sd::post_fetch_add<kMany>(*ring, {0x40, 5}, 1, {0x1000, 8, 1}, sd::kSignaled).ok());
  qp.ring_bell();
  EXPECT_EQ(qp.record(1), 6u) << "send 1 block, write with immediate 1, inline 3, atomic 1";
  EXPECT_EQ(qp.at(1).imm[3], 4);
  EXPECT_EQ(qp.at(1).pointers.size(), 2u);
  EXPECT_EQ(qp.at(1).flags, 0x80u);
  EXPECT_EQ(qp.at(2).payload.size(), sizeof payload);
  qp.complete_send(5);
  const cqe_poll_result_t done = qp.poll(0);
  EXPECT_EQ(done, CQE_POLL_TRUE);
  EXPECT_EQ(done.index, 5u);
  EXPECT_FALSE(done.wr_id_known) << "it was not posted with one";
}

TEST_F(Rdmaxcel, NoLengthIsTruncated_04) {
  PaperQp qp(7);
  for (const std::size_t length : {std::size_t{5} << 30, (std::size_t{1} << 30) + 1, std::size_t{1} << 31,
                                   std::size_t{1} << 32, ~std::size_t{0}}) {
    send_wqe(qp.write(1, length));
    EXPECT_EQ(qp.status(), RDMAXCEL_TOO_LONG) << length;
  }
  EXPECT_EQ(rdmaxcel_recv_wqe(qp.receive(1, std::size_t{1} << 31)), RDMAXCEL_TOO_LONG);
  EXPECT_EQ(rdmaxcel_recv_wqe(qp.receive(1, (std::size_t{1} << 32) + 5)), RDMAXCEL_TOO_LONG);
  EXPECT_EQ(rdmaxcel_send_wqe(qp.write(1, std::size_t{1} << 30)), RDMAXCEL_SUCCESS);
  EXPECT_EQ(qp.at(0).pointers.at(0).length, 1u << 30);
  EXPECT_EQ(rdmaxcel_send_wqe(qp.write(2, 0)), RDMAXCEL_SUCCESS);
  EXPECT_EQ(qp.at(1).ds, 2u) << "nothing to carry: no data segment";
  EXPECT_TRUE(qp.at(1).pointers.empty());
  EXPECT_EQ(rdmaxcel_recv_wqe(qp.receive(3, 0)), RDMAXCEL_SUCCESS);
  EXPECT_EQ(big(qp.receive_at(0) + 4, 4), 0x100u);
  EXPECT_EQ(qp.record(0), 1u) << "the refused ones were not shown";
  (void)qp.status();
}

TEST_F(Rdmaxcel, SignaledIsNotSolicited_05) {
  PaperQp qp(7);
  wqe_params_t p = qp.write(1);
  send_wqe(p);
  p.signaled = false;
  send_wqe(p);
  EXPECT_EQ(qp.at(0).flags, 0x08u);
  EXPECT_EQ(qp.at(1).flags, 0x00u);
}

// The device reads with plain loads: under ThreadSanitizer a missing handover is a race.
TEST_F(Rdmaxcel, WqeBeforeRecordBeforeDoorbell_06) {
  PaperQp qp(7);
  constexpr std::uint64_t kPosts = 3000;
  std::atomic<bool> failed{false};
  std::thread device([&] {
    const sd::Deadline deadline = sd::Deadline::after_ns(30'000'000'000);
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < kPosts && !failed; ++i) {
      std::uint64_t bell = 0;
      while ((bell = qp.bell()) == last || bell == 0) {
        if (deadline.passed()) {
          failed = true;
          return;
        }
        std::this_thread::yield();
      }
      last = bell;
      // The doorbell is here, so are the record and every byte of the WQE.
      if (qp.record(1) != ((i + 1) & 0xffff)) failed = true;
      const Wqe wqe = qp.at(i);
      if (!wqe.well_formed || wqe.index != (i & 0xffff) || wqe.pointers.at(0).length != 1 + i % 1000) failed = true;
      qp.complete_send(i);
    }
  });
  for (std::uint64_t i = 0; i < kPosts && !failed; ++i) {
    const std::uint32_t before = qp.record(1);
    send_wqe(qp.write(i, 1 + i % 1000));
    EXPECT_EQ(qp.record(1), before) << "a posted WQE is not shown before it is rung";
    qp.ring_bell();
    while (qp.poll(static_cast<std::uint32_t>(i)) == CQE_POLL_FALSE && !failed) std::this_thread::yield();
  }
  device.join();
  EXPECT_FALSE(failed);
}

TEST_F(Rdmaxcel, AFullRingIsRefusedUntilSomethingCompletes_07) {
  PaperQp qp(7);
  for (std::uint64_t i = 0; i < kSends; ++i) ASSERT_EQ(rdmaxcel_send_wqe(qp.write(i)), RDMAXCEL_SUCCESS);
  send_wqe(qp.write(kSends));
  EXPECT_EQ(qp.status(), RDMAXCEL_QUEUE_FULL);
  qp.ring_bell();
  EXPECT_EQ(qp.record(1), kSends);
  EXPECT_EQ(rdmaxcel_send_wqe(qp.write(kSends)), RDMAXCEL_QUEUE_FULL) << "rung is not completed";
  EXPECT_EQ(qp.at(0).pointers.size(), 1u);
  EXPECT_EQ(qp.at(0).index, 0u) << "the device may still read it";
  qp.complete_send(9);
  EXPECT_EQ(qp.poll(0).wr_id, 9u);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(rdmaxcel_send_wqe(qp.write(kSends + i)), RDMAXCEL_SUCCESS);
  EXPECT_EQ(rdmaxcel_send_wqe(qp.write(0)), RDMAXCEL_QUEUE_FULL);
  EXPECT_EQ(qp.at(0).index, kSends);
  (void)qp.status();
}

TEST_F(Rdmaxcel, ManyPostersLoseNothing_08) {
  PaperQp qp(7);
  constexpr std::uint64_t kThreads = 6, kEach = 400, kTotal = kThreads * kEach;
  std::atomic<bool> stop{false};
  const char* error = nullptr;
  std::vector<int> seen(kTotal, 0), reaped(kTotal, 0);
  std::thread device([&] {
    const sd::Deadline deadline = sd::Deadline::after_ns(60'000'000'000);
    for (std::uint64_t at = 0; at < kTotal && error == nullptr;) {
      const auto ahead = static_cast<std::uint16_t>(qp.record(1) - static_cast<std::uint16_t>(at));
      if (ahead > kSends) error = "the record ran away or went backwards";
      if (deadline.passed()) error = "a doorbell was lost";
      if (ahead == 0) std::this_thread::yield();
      for (unsigned i = 0; i < ahead && error == nullptr; ++i, ++at) {
        const Wqe wqe = qp.at(at);
        if (!wqe.well_formed || wqe.index != (at & 0xffff) || wqe.raddr >= kTotal || seen[wqe.raddr]++ != 0) {
          error = "an entry is torn, lost or doubled";
          break;
        }
        if (wqe.pointers.at(0).length != wqe.raddr + 1) error = "an entry of two posters";
        qp.complete_send(at);
      }
    }
    stop = error != nullptr;
  });
  std::atomic<std::uint64_t> taken{0};
  std::thread poller([&] {
    while (taken < kTotal && !stop) {
      const cqe_poll_result_t done = qp.poll(static_cast<std::uint32_t>(taken));
      if (done == CQE_POLL_FALSE) std::this_thread::yield();
      if (done == CQE_POLL_ERROR) stop = true;
      if (done != CQE_POLL_TRUE) continue;
      if (done.wr_id_known && done.wr_id < kTotal) ++reaped[done.wr_id];
      ++taken;
    }
  });
  std::vector<std::thread> posters;
  for (std::uint64_t t = 0; t < kThreads; ++t)
    posters.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach && !stop; ++i) {
        wqe_params_t p = qp.write(t * kEach + i, t * kEach + i + 1);
        p.raddr = t * kEach + i;
        while (rdmaxcel_send_wqe(p) == RDMAXCEL_QUEUE_FULL && !stop) std::this_thread::yield();
        qp.ring_bell();
      }
    });
  for (std::thread& poster : posters) poster.join();
  device.join();
  poller.join();
  EXPECT_EQ(error, nullptr) << error;
  EXPECT_FALSE(stop);
  EXPECT_EQ(seen, std::vector<int>(kTotal, 1));
  EXPECT_EQ(reaped, std::vector<int>(kTotal, 1)) << "every wr_id comes back, once";
  (void)qp.status();
}

TEST_F(Rdmaxcel, TheDoorbellIs8BytesForEverythingPosted_09) {
  PaperQp qp(7);
  auto* const page = qp.here + 4096;
  std::memset(page, 0xee, 4096);
  for (std::uint64_t i = 0; i < 5; ++i) send_wqe(qp.write(i));
  qp.ring_bell();
  EXPECT_EQ(qp.record(1), 5u);
  const std::uint8_t next[8] = {0, 0, 5, 0, 0, 0, 7, 0};
  EXPECT_EQ(std::memcmp(page + 0x800, next, 8), 0) << "the next index, and the queue";
  for (std::size_t i = 0; i < 4096; ++i) ASSERT_TRUE(page[i] == 0xee || (i >= 0x800 && i < 0x808)) << i;
  // As RDMaxcel's programs do it: once per WQE, each with its own source. All but the first find nothing to do.
  std::memset(page + 0x800, 0xee, 8);
  for (std::size_t i = 0; i < 5; ++i) db_ring(qp.dv.bf.reg, qp.ring() + i * 64);
  EXPECT_EQ(page[0x800], 0xee);
  // A WQE of three blocks is rung as any other.
  const std::uint8_t payload[120] = {};
  ASSERT_TRUE(sd::post_write_inline<kMany>(*rdmaxcel_send_ring(7, qp.ring()), {1, 2}, payload, 120, 0).ok());
  db_ring(page + 0x900, qp.ring());  // the other half is the same register
  EXPECT_EQ(qp.record(1), 8u);
  EXPECT_EQ(page[0x900], 0xee);
  EXPECT_EQ(qp.status(), RDMAXCEL_SUCCESS);

  EXPECT_EQ(rdmaxcel_db_ring(page + 0x20, qp.ring()), RDMAXCEL_INVALID_PARAMS) << "somebody else's register";
  EXPECT_EQ(rdmaxcel_db_ring(qp.dv.bf.reg, page), RDMAXCEL_QUEUE_UNKNOWN) << "no WQE of a queue known here";
  EXPECT_EQ(rdmaxcel_last_status(0), RDMAXCEL_QUEUE_UNKNOWN);
  EXPECT_EQ(qp.status(), RDMAXCEL_INVALID_PARAMS);

  PaperQp no_blueflame(8, 0, 0, false);
  no_blueflame.dv.bf.size = 0;
  no_blueflame.show();
  send_wqe(no_blueflame.write(1));
  no_blueflame.ring_bell();
  EXPECT_NE(no_blueflame.bell(), 0u);
  EXPECT_EQ(reinterpret_cast<std::uint64_t*>(no_blueflame.dv.bf.reg)[1], 0u);
}

TEST_F(Rdmaxcel, PollTellsEmptyDoneAndErrorApart_10) {
  PaperQp qp(7);
  for (std::uint64_t i = 0; i < 4; ++i) {
    send_wqe(qp.write(50 + i));
    recv_wqe(qp.receive(60 + i));
  }
  qp.ring_bell();
  int32_t result = 123;  // whatever it held before
  cqe_poll(&result, qp.poll_params(0));
  EXPECT_EQ(result, -1);
  qp.complete_receive(0, mlx5::CqeOpcode::responder_send_inval, 77);
  cqe_poll(&result, qp.poll_params(0, true));
  EXPECT_EQ(result, 77) << "SEND with invalidate is no error";
  qp.complete_receive(1, mlx5::CqeOpcode::responder_send_imm, 0x80000001u);
  result = -1;
  cqe_poll(&result, qp.poll_params(1, true));
  EXPECT_EQ(result, 0x7fffffff) << "a large count is not negative";
  qp.complete_receive(2, mlx5::CqeOpcode::responder_write_imm, 0x80000001u);
  const cqe_poll_result_t all = qp.poll(2, true);
  EXPECT_EQ(all, CQE_POLL_TRUE);
  EXPECT_EQ(all.byte_count, 0x80000001u);
  EXPECT_EQ(all.imm, sw::be32{0x11223344}.raw());
  EXPECT_EQ(all.opcode, 1);
  EXPECT_EQ(all.wr_id, 62u);

  qp.complete(error_cqe(7, 1, mlx5::Opcode::rdma_write, mlx5::Syndrome::remote_access, 0x88));
  const cqe_poll_result_t error = qp.poll(0);
  EXPECT_EQ(error, CQE_POLL_ERROR);
  EXPECT_EQ(error.status, RDMAXCEL_COMPLETION_FAILED);
  EXPECT_EQ(error.syndrome, 0x13);
  EXPECT_EQ(error.vendor_syndrome, 0x88);
  EXPECT_EQ(error.qp_num, 7u);
  EXPECT_EQ(error.index, 1u);
  EXPECT_EQ(error.wr_id, 51u);
  EXPECT_EQ(error.send_opcode, MLX5_OPCODE_RDMA_WRITE);
  qp.complete(error_cqe(7, 2, mlx5::Opcode::rdma_write, mlx5::Syndrome::flushed, 0));
  cqe_poll(&result, qp.poll_params(1));
  EXPECT_EQ(result, -2);
}

TEST_F(Rdmaxcel, CreateQpLeavesNothingBehind_13) {
  ibv_context context{};
  ibv_pd pd{};
  const auto make = [&](rdma_qp_type_t type) { return create_qp(&context, &pd, 16, 8, 8, 1, 1, type); };
  EXPECT_EQ(make(static_cast<rdma_qp_type_t>(0)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(make(RDMA_QP_TYPE_EFA), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(verbs.cqs, 0);
  EXPECT_EQ(create_qp(&context, &pd, 16, -1, 8, 1, 1, RDMA_QP_TYPE_STANDARD), nullptr);
  EXPECT_EQ(verbs.cqs, 0);
  for (int at = 1; at <= 2; ++at) {
    verbs.made = 0;
    verbs.fail_cq_at = at;
    EXPECT_EQ(make(RDMA_QP_TYPE_STANDARD), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(verbs.cqs, 0);
  }
  verbs.fail_cq_at = 0;
  verbs.fail_qp = true;
  EXPECT_EQ(make(RDMA_QP_TYPE_STANDARD), nullptr);
  EXPECT_EQ(make(RDMA_QP_TYPE_MLX5DV), nullptr);
  EXPECT_EQ(verbs.cqs, 0);
  verbs.fail_qp = false;

  for (const auto type : {RDMA_QP_TYPE_STANDARD, RDMA_QP_TYPE_MLX5DV}) {
    ibv_qp* const qp = make(type);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(verbs.cqs, 2);
    EXPECT_EQ(destroy_qp(qp), 0);
    EXPECT_EQ(verbs.cqs, 0);
  }

  // On completion queues of the caller's: two queue pairs on one, told apart by their number.
  ibv_cq* const cq = ibv_create_cq(&context, 16, nullptr, nullptr, 0);
  ibv_qp* const a = rdmaxcel_create_qp_on(&context, &pd, cq, cq, 8, 8, 1, 1, RDMA_QP_TYPE_STANDARD);
  ibv_qp* const b = rdmaxcel_create_qp_on(&context, &pd, cq, cq, 8, 8, 1, 1, RDMA_QP_TYPE_STANDARD);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  EXPECT_EQ(create_mlx5dv_qp(a), nullptr) << "not an mlx5 queue pair";
  EXPECT_EQ(errno, EOPNOTSUPP);
  {
    PaperQp first(21, 0, 0, false), second(22, 0, 0, false);
    a->qp_num = 21;
    b->qp_num = 22;
    verbs.rings = {{a, first.dv}, {b, second.dv}};
    verbs.completions = {{cq, first.send_cq}};
    mlx5dv_qp* const dv_a = create_mlx5dv_qp(a);
    mlx5dv_qp* const dv_b = create_mlx5dv_qp(b);
    mlx5dv_cq* const dv_cq = create_mlx5dv_send_cq(a);
    ASSERT_TRUE(dv_a != nullptr && dv_b != nullptr && dv_cq != nullptr);
    send_wqe(first.write(1001));
    send_wqe(second.write(2002));
    first.ring_bell();
    second.ring_bell();
    first.complete(requester_cqe(22, 0, mlx5::Opcode::rdma_write));
    first.complete(requester_cqe(21, 0, mlx5::Opcode::rdma_write));
    EXPECT_EQ(first.poll(0).wr_id, 2002u);
    EXPECT_EQ(first.poll(1).wr_id, 1001u);
    destroy_mlx5dv_cq(dv_cq);
    destroy_mlx5dv_qp(dv_b);
    destroy_mlx5dv_qp(dv_a);
    EXPECT_EQ(rdmaxcel_send_wqe(first.write(1)), RDMAXCEL_QUEUE_UNKNOWN) << "forgotten with its last dv object";
    (void)rdmaxcel_last_status(0);
  }
  EXPECT_EQ(ibv_destroy_qp(a), 0);
  EXPECT_EQ(ibv_destroy_qp(b), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Rdmaxcel, VerbsAndRawPostingAreNotMixed_14) {
  // Verbs has posted five blocks and taken two completions: it goes on from there, in blocks, not in work requests.
  PaperQp qp(7, 5, 2);
  send_wqe(qp.write(1));
  qp.ring_bell();
  EXPECT_EQ(qp.at(5).index, 5u);
  EXPECT_EQ(qp.record(1), 6u);
  qp.complete_send(5);
  EXPECT_EQ(qp.poll(2).wr_id, 1u);

  // Verbs posts after that: the record is not ours any more. Nothing is shown, and the queue is refused.
  qp.dv.dbrec[1] = PaperQp::be(1);
  const std::uint64_t bell = qp.bell();
  send_wqe(qp.write(2));
  qp.ring_bell();
  EXPECT_EQ(qp.status(), RDMAXCEL_MIXED_POSTING);
  EXPECT_EQ(qp.record(1), 1u);
  EXPECT_EQ(qp.bell(), bell);
  EXPECT_EQ(rdmaxcel_send_wqe(qp.write(3)), RDMAXCEL_MIXED_POSTING);
  EXPECT_EQ(rdmaxcel_recv_wqe(qp.receive(3)), RDMAXCEL_MIXED_POSTING);
  // ibv_poll_cq took one: the consumer is not ours either.
  qp.send_cq.dbrec[0] = PaperQp::be(9);
  EXPECT_EQ(qp.poll(3).status, RDMAXCEL_MIXED_POSTING);

  // Shown again, as after a reset, it is taken over as it is now.
  qp.dv.dbrec[1] = 0;
  qp.send_cq.dbrec[0] = PaperQp::be(3);
  EXPECT_EQ(rdmaxcel_register_qp(7, &qp.dv, &qp.recv_cq, &qp.send_cq), 0);
  EXPECT_EQ(rdmaxcel_register_cq(&qp.send_cq), 0);
  send_wqe(qp.write(4));
  qp.ring_bell();
  EXPECT_EQ(qp.at(0).index, 0u);
  EXPECT_EQ(qp.record(1), 1u);
  qp.complete_send(0);
  EXPECT_EQ(qp.poll(3).wr_id, 4u);
  EXPECT_EQ(qp.status(), RDMAXCEL_SUCCESS);
  // Whoever knew it before still does.
  rdmaxcel_unregister_qp(&qp.dv);
  rdmaxcel_unregister_cq(&qp.send_cq);
  EXPECT_EQ(rdmaxcel_send_wqe(qp.write(5)), RDMAXCEL_SUCCESS);
  EXPECT_EQ(qp.poll(4), CQE_POLL_FALSE);

  // A receive ring that another one fills.
  PaperQp other(8);
  other.dv.dbrec[0] = PaperQp::be(4);
  EXPECT_EQ(rdmaxcel_recv_wqe(other.receive(1)), RDMAXCEL_MIXED_POSTING);
  EXPECT_EQ(other.record(0), 4u);
  // Parameters of another ring than the one they name.
  wqe_params_t p = qp.write(1);
  p.wqe_cnt = 2 * kSends;
  EXPECT_EQ(rdmaxcel_send_wqe(p), RDMAXCEL_INVALID_PARAMS);
  p = qp.write(1);
  p.dbrec = other.dv.dbrec;
  EXPECT_EQ(rdmaxcel_send_wqe(p), RDMAXCEL_INVALID_PARAMS);
  p = qp.write(1);
  p.qp_num = 9;
  EXPECT_EQ(rdmaxcel_send_wqe(p), RDMAXCEL_QUEUE_UNKNOWN);
  (void)rdmaxcel_last_status(0);
}

TEST_F(Rdmaxcel, TheConsumerIndexIsTheQueuesOwn64Bits_15) {
  PaperQp qp(7);
  for (std::uint64_t i = 0; i < 8; ++i) send_wqe(qp.write(i));
  qp.ring_bell();
  qp.complete_send(0);
  EXPECT_EQ(qp.poll(1).status, RDMAXCEL_WRONG_INDEX);
  EXPECT_EQ(qp.poll(kCqes).status, RDMAXCEL_WRONG_INDEX) << "the same slot, another lap";
  int32_t result = 0;
  cqe_poll(&result, qp.poll_params(1));
  EXPECT_EQ(result, -2);
  EXPECT_EQ(PaperQp::be(qp.send_cq.dbrec[0]), 0u) << "nothing was taken";
  EXPECT_EQ(qp.poll(0), CQE_POLL_TRUE);
  EXPECT_EQ(qp.poll(0).status, RDMAXCEL_WRONG_INDEX) << "taken once";
  cqe_poll_params_t p = qp.poll_params(1);
  p.cqe_cnt /= 2;
  EXPECT_EQ(rdmaxcel_cqe_poll(p).status, RDMAXCEL_INVALID_PARAMS);

  // Past 2^32 and, on the wire, past 2^24.
  constexpr std::uint64_t kLate = (std::uint64_t{1} << 32) - 2;
  rx::find_cq(rx::host_table, qp.send_cq.buf)->state->ring.consumed = kLate;
  qp.send_cq.dbrec[0] = PaperQp::be(kLate & 0xffffff);
  qp.skip_completions(kLate);
  for (std::uint64_t i = 0; i < 4; ++i) {
    qp.complete_send(1 + i);
    EXPECT_EQ(qp.poll(static_cast<std::uint32_t>(kLate + i)), CQE_POLL_TRUE) << i;
    EXPECT_EQ(PaperQp::be(qp.send_cq.dbrec[0]), (kLate + i + 1) & 0xffffff);
    EXPECT_EQ(qp.poll(static_cast<std::uint32_t>(kLate + i + 1)), CQE_POLL_FALSE) << "the lap before is not taken";
  }

  // Several pollers: every completion goes to one of them, and none of them waits for another.
  PaperQp shared(8);
  std::uint64_t& busy = rx::find_cq(rx::host_table, shared.send_cq.buf)->state->busy;
  send_wqe(shared.write(0));
  shared.ring_bell();
  shared.complete_send(0);
  busy = 1;
  EXPECT_EQ(shared.poll(0), CQE_POLL_FALSE);
  busy = 0;
  EXPECT_EQ(shared.poll(0), CQE_POLL_TRUE);
  constexpr std::uint64_t kEach = 1000;
  std::atomic<std::uint64_t> taken{1};
  std::vector<int> reaped(kEach + 1, 0);
  std::vector<std::thread> pollers;
  for (int t = 0; t < 3; ++t)
    pollers.emplace_back([&] {
      for (std::uint64_t at = 0; (at = taken) <= kEach;) {
        const cqe_poll_result_t done = shared.poll(static_cast<std::uint32_t>(at));
        if (done == CQE_POLL_TRUE) {
          ++reaped[done.wr_id];
          ++taken;
        } else {
          std::this_thread::yield();
        }
      }
    });
  for (std::uint64_t i = 1; i <= kEach; ++i) {
    while (rdmaxcel_send_wqe(shared.write(i)) == RDMAXCEL_QUEUE_FULL) std::this_thread::yield();
    shared.ring_bell();
    shared.complete_send(i);
  }
  for (std::thread& poller : pollers) poller.join();
  reaped[0] = 1;
  EXPECT_EQ(reaped, std::vector<int>(kEach + 1, 1));
  (void)shared.status();
}

}  // namespace
