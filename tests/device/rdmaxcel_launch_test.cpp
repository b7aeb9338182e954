// SPDX-License-Identifier: Apache-2.0
// Rows 11 and 12 of the defects of RDMaxcel (rdmaxcel_test.cpp has the others): launches and pages. launch_*() and
// cu_*() run on this CPU, through the addresses that the runtime gave.
#include <map>

#include "rdmaxcel_rig.hpp"
#include "strait/device/cpu_grid.hpp"

namespace {

using namespace paper;
namespace rx = strait::rdmaxcel;

TEST_F(Rdmaxcel, LaunchesReportErrorsAndNeitherAllocateNorWait_11) {
  PaperQp qp(7);
  launch_send_wqe(qp.write(1));
  EXPECT_EQ(qp.status(), RDMAXCEL_NOT_REGISTERED);
  EXPECT_EQ(launch_cqe_poll(&qp.send_cq, 0).status, RDMAXCEL_NOT_REGISTERED);
  ASSERT_EQ(register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
  gpu.allocations = gpu.settles = gpu.views = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    launch_send_wqe(qp.write(i));
    launch_recv_wqe(qp.receive(i));
    launch_db_ring(qp.dv.bf.reg, qp.ring());
  }
  EXPECT_EQ(gpu.settles, 0) << "posting and ringing wait for nothing";
  EXPECT_EQ(qp.record(1), 3u);
  EXPECT_EQ(launch_cqe_poll(&qp.send_cq, 0), CQE_POLL_FALSE);
  EXPECT_EQ(gpu.settles, 1);
  qp.complete(error_cqe(7, 2, mlx5::Opcode::rdma_write, mlx5::Syndrome::transport_retry_exceeded, 0));
  const cqe_poll_result_t error = launch_cqe_poll(&qp.send_cq, 0);
  EXPECT_EQ(error, CQE_POLL_ERROR) << "a failed queue is not a slow one";
  EXPECT_EQ(error.syndrome, 0x15);
  EXPECT_EQ(error.wr_id, 2u);
  EXPECT_EQ(gpu.allocations, 0);
  EXPECT_EQ(gpu.views, 0);
  launch_db_ring(qp.dv.bf.reg, &qp);
  EXPECT_EQ(rdmaxcel_last_status(0), RDMAXCEL_QUEUE_UNKNOWN);
  launch_db_ring(qp.here, qp.ring());
  EXPECT_EQ(qp.status(), RDMAXCEL_INVALID_PARAMS);
  EXPECT_EQ(launch_cqe_poll(nullptr, 0).status, RDMAXCEL_NULL_ARG);
  int32_t result = 5;
  cu_cqe_poll(&result, qp.poll_params(1));
  EXPECT_EQ(result, -1);
  EXPECT_EQ(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
}

TEST_F(Rdmaxcel, ALaunchThatDoesNotStartOrEndSaysSo_11) {
  PaperQp qp(7);
  ASSERT_EQ(register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
  gpu.launch_answer = 98;  // cudaErrorInvalidDeviceFunction
  launch_send_wqe(qp.write(1));
  EXPECT_EQ(rdmaxcel_last_launch_status(), 98);
  EXPECT_EQ(qp.status(), RDMAXCEL_LAUNCH_FAILED);
  launch_recv_wqe(qp.receive(1));
  EXPECT_EQ(rdmaxcel_last_launch_status(), 98);
  EXPECT_EQ(qp.status(), RDMAXCEL_LAUNCH_FAILED);
  launch_db_ring(qp.dv.bf.reg, qp.ring());
  EXPECT_EQ(rdmaxcel_last_launch_status(), 98);
  EXPECT_EQ(qp.status(), RDMAXCEL_LAUNCH_FAILED);
  EXPECT_EQ(launch_cqe_poll(&qp.send_cq, 0).status, RDMAXCEL_LAUNCH_FAILED) << "not: nothing there";
  EXPECT_EQ(rdmaxcel_last_launch_status(), 98);
  EXPECT_NE(std::strstr(rdmaxcel_error_string(RDMAXCEL_LAUNCH_FAILED), "rdmaxcel_last_launch_status"), nullptr);
  gpu.launch_answer = 0;
  gpu.settle_answer = 700;  // cudaErrorIllegalAddress: it started, and did not end well
  EXPECT_EQ(launch_cqe_poll(&qp.send_cq, 0).status, RDMAXCEL_LAUNCH_FAILED);
  EXPECT_EQ(rdmaxcel_last_launch_status(), 700);
  gpu.settle_answer = 0;
  // None of them left anything, and the next ones go.
  launch_send_wqe(qp.write(5));
  EXPECT_EQ(rdmaxcel_last_launch_status(), 0);
  launch_db_ring(qp.dv.bf.reg, qp.ring());
  EXPECT_EQ(qp.status(), RDMAXCEL_SUCCESS);
  EXPECT_EQ(qp.record(0), 0u);
  EXPECT_EQ(qp.record(1), 1u);
  qp.complete_send(0);
  EXPECT_EQ(launch_cqe_poll(&qp.send_cq, 0).wr_id, 5u);
  EXPECT_EQ(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
}

// The kernels themselves, in a grid of one thread.
TEST_F(Rdmaxcel, KernelsPostRingAndPoll_11) {
  PaperQp qp(7);
  const auto run = [](const auto& body) { strait::device::run_on_cpu({}, [&](unsigned, unsigned) { body(); }); };
  const auto refused = [&] {
    run([&] { cu_send_wqe(qp.write(1)); });
    EXPECT_EQ(qp.status(), RDMAXCEL_NOT_REGISTERED);
    run([&] { cu_recv_wqe(qp.receive(1)); });
    EXPECT_EQ(qp.status(), RDMAXCEL_NOT_REGISTERED);
    run([&] { cu_db_ring(qp.dv.bf.reg, qp.ring()); });
    EXPECT_EQ(qp.status(), RDMAXCEL_NOT_REGISTERED);
    int32_t result = 5;
    run([&] { cu_cqe_poll(&result, qp.poll_params(0)); });
    EXPECT_EQ(result, -2);
  };
  refused();
  // What they post goes through the addresses that a GPU has, and nowhere else.
  gpu.here = reinterpret_cast<std::uintptr_t>(qp.here);
  gpu.there = reinterpret_cast<std::uintptr_t>(qp.there);
  gpu.bytes = kMapped;
  ASSERT_EQ(register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
  for (std::uint32_t i = 0; i < 3; ++i) {
    int32_t result = 5;
    ASSERT_EQ(::mprotect(qp.here, kMapped, PROT_NONE), 0);
    run([&] {
      cu_recv_wqe(qp.receive(10 + i));
      cu_send_wqe(qp.write(20 + i));
    });
    run([&] { cu_cqe_poll(&result, qp.poll_params(i)); });
    EXPECT_EQ(result, -1) << "nothing is there";
    ASSERT_EQ(::mprotect(qp.here, kMapped, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(qp.record(0), i + 1) << "a receive is shown at once";
    EXPECT_EQ(big(qp.receive_at(i), 4), 512u);
    EXPECT_EQ(qp.record(1), i) << "a send not before the doorbell";
    run([&] { cu_db_ring(qp.dv.bf.reg, qp.ring()); });
    EXPECT_EQ(qp.record(1), i + 1);
    EXPECT_EQ(qp.at(i).index, i);
    EXPECT_EQ(qp.at(i).qpn, 7u);
    qp.complete_send(i);
    qp.complete_receive(i, mlx5::CqeOpcode::responder_send, 300 + i);
    run([&] { cu_cqe_poll(&result, qp.poll_params(i)); });
    EXPECT_GE(result, 0);
    run([&] { cu_cqe_poll(&result, qp.poll_params(i, true)); });
    EXPECT_EQ(result, static_cast<int32_t>(300 + i));
    EXPECT_EQ(qp.status(), RDMAXCEL_SUCCESS);
  }
  EXPECT_EQ(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
  refused();
  EXPECT_EQ(qp.record(0), 3u);
  EXPECT_EQ(qp.record(1), 3u);
}

TEST_F(Rdmaxcel, RegistrationIsWholeCountedAndUndone_12) {
  {
    // A GPU sees the memory elsewhere. What is launched goes there, and nowhere else: here it faults.
    PaperQp qp(7);
    gpu.here = reinterpret_cast<std::uintptr_t>(qp.here);
    gpu.there = reinterpret_cast<std::uintptr_t>(qp.there);
    gpu.bytes = kMapped;
    ASSERT_EQ(register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
    EXPECT_TRUE(gpu.saw_io);
    EXPECT_FALSE(rdmaxcel_doorbell_is_plain(&qp.dv));
    ASSERT_EQ(::mprotect(qp.here, kMapped, PROT_NONE), 0);
    launch_recv_wqe(qp.receive(1));
    launch_send_wqe(qp.write(2));
    launch_db_ring(qp.dv.bf.reg, qp.ring());
    EXPECT_EQ(launch_cqe_poll(&qp.send_cq, 0), CQE_POLL_FALSE);
    ASSERT_EQ(::mprotect(qp.here, kMapped, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(qp.status(), RDMAXCEL_SUCCESS);
    EXPECT_EQ(qp.record(0), 1u);
    EXPECT_EQ(qp.record(1), 1u);
    EXPECT_EQ(big(qp.receive_at(0), 4), 512u);
    // The CPU takes it home, the next launch takes it out again; the counters go with it.
    ASSERT_EQ(::mprotect(qp.there, kMapped, PROT_NONE), 0);
    send_wqe(qp.write(3));
    qp.ring_bell();
    qp.complete_send(0);
    EXPECT_EQ(qp.poll(0).wr_id, 2u);
    cu_send_wqe(qp.write(4));
    EXPECT_EQ(qp.status(), RDMAXCEL_NOT_REGISTERED) << "a kernel cannot fetch it";
    ASSERT_EQ(::mprotect(qp.there, kMapped, PROT_READ | PROT_WRITE), 0);
    launch_send_wqe(qp.write(4));
    launch_db_ring(qp.dv.bf.reg, qp.ring());
    EXPECT_EQ(qp.record(1), 3u);
    EXPECT_EQ(qp.at(2).index, 2u);
    EXPECT_EQ(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
    EXPECT_TRUE(gpu.pinned.empty());
    launch_send_wqe(qp.write(5));
    EXPECT_EQ(qp.status(), RDMAXCEL_NOT_REGISTERED);
    EXPECT_NE(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0) << "once more than registered";
  }
  gpu = {};
  {
    // Fails at each page in turn, and leaves nothing; then it works.
    PaperQp qp(7);
    int failures = 0;
    for (;; ++failures) {
      gpu.pins = 0;
      gpu.fail_pin_at = failures + 1;
      if (register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq) == 0) break;
      ASSERT_TRUE(gpu.pinned.empty());
      ASSERT_EQ(rx::registry.pages.pieces(), 0u);
      send_wqe(qp.write(1));  // and the queue goes on as it was
      ASSERT_EQ(qp.status(), RDMAXCEL_SUCCESS);
      ASSERT_LT(failures, 20);
    }
    EXPECT_EQ(failures, 5) << "rings, record, doorbell and both completion queues, each in turn";
    EXPECT_FALSE(rdmaxcel_doorbell_is_plain(&qp.dv));
    EXPECT_EQ(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
    gpu = {};
    gpu.refuses_io = true;
    ASSERT_EQ(register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
    EXPECT_TRUE(rdmaxcel_doorbell_is_plain(&qp.dv)) << "not taken as I/O memory, and said";
    EXPECT_EQ(rdmaxcel_why_doorbell_is_plain(&qp.dv), 801) << "with the cause";
    EXPECT_EQ(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
    // Not taken as plain memory either: what it said to the register is the cause, not what it said to the attempt.
    gpu.pins = 0;
    gpu.fail_pin_at = 4;
    EXPECT_EQ(register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 801);
    EXPECT_TRUE(gpu.pinned.empty());
    gpu = {};
    ASSERT_EQ(register_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
    EXPECT_EQ(rdmaxcel_why_doorbell_is_plain(&qp.dv), 0);
    EXPECT_EQ(unregister_cuda_memory(&qp.dv, &qp.recv_cq, &qp.send_cq), 0);
  }
  gpu = {};
  {
    // Two queues share the pages of records and registers; they go in either order.
    PaperQp a(7);
    PaperQp b(8, 0, 0, false);
    b.dv.dbrec = a.dv.dbrec + 64;
    b.dv.bf.reg = static_cast<std::uint8_t*>(a.dv.bf.reg) + 512;
    b.show();
    for (const bool first_first : {true, false}) {
      ASSERT_EQ(register_cuda_memory(&a.dv, &a.recv_cq, &a.send_cq), 0);
      ASSERT_EQ(register_cuda_memory(&b.dv, &b.recv_cq, &b.send_cq), 0);
      PaperQp& goes = first_first ? a : b;
      PaperQp& stays = first_first ? b : a;
      ASSERT_EQ(unregister_cuda_memory(&goes.dv, &goes.recv_cq, &goes.send_cq), 0);
      EXPECT_EQ(gpu.pinned.count(reinterpret_cast<std::uintptr_t>(a.here)), 1u) << "still in use";
      launch_send_wqe(stays.write(1));
      EXPECT_EQ(stays.status(), RDMAXCEL_SUCCESS);
      ASSERT_EQ(unregister_cuda_memory(&stays.dv, &stays.recv_cq, &stays.send_cq), 0);
      EXPECT_TRUE(gpu.pinned.empty());
    }
    // Twice is counted; what is destroyed is unregistered with it (TearDown looks).
    ASSERT_EQ(register_cuda_memory(&a.dv, &a.recv_cq, &a.send_cq), 0);
    ASSERT_EQ(register_cuda_memory(&a.dv, &a.recv_cq, &a.send_cq), 0);
    ASSERT_EQ(unregister_cuda_memory(&a.dv, &a.recv_cq, &a.send_cq), 0);
    EXPECT_FALSE(gpu.pinned.empty());
  }
  gpu = {};
  {
    // A range around a page that is there already: the gaps are registered, and undone where the second one fails.
    PaperQp qp(7, 0, 0, false);
    const rx::Runtime runtime = paper_runtime();
    rx::Pages pages;
    rx::Pages::Held middle, whole;
    void* there = nullptr;
    int plain = 0;
    ASSERT_EQ(pages.hold(runtime, qp.here + 5 * 4096 + 8, 8, false, middle, there, plain), 0);
    gpu.fail_pin_at = gpu.pins + 2;
    EXPECT_EQ(pages.hold(runtime, qp.here + 4 * 4096, 3 * 4096, false, whole, there, plain), 2);
    EXPECT_EQ(pages.pieces(), 1u);
    EXPECT_EQ(gpu.pinned.size(), 1u);
    gpu.fail_pin_at = 0;
    // Seen at two distances it is no ring over there.
    gpu.here = reinterpret_cast<std::uintptr_t>(qp.here) + std::size_t{6} * 4096;
    gpu.there = reinterpret_cast<std::uintptr_t>(qp.there);
    gpu.bytes = 4096;
    EXPECT_EQ(pages.hold(runtime, qp.here + 4 * 4096, 3 * 4096, false, whole, there, plain), 1);
    EXPECT_EQ(gpu.pinned.size(), 1u);
    gpu.bytes = 0;
    EXPECT_EQ(pages.hold(runtime, qp.here + 4 * 4096, 3 * 4096, false, whole, there, plain), 0);
    EXPECT_EQ(there, qp.here + 4 * 4096);
    EXPECT_EQ(pages.pieces(), 3u);
    pages.drop(runtime, middle);
    EXPECT_EQ(gpu.pinned.size(), 3u) << "the larger range needs it still";
    pages.drop(runtime, whole);
    EXPECT_TRUE(gpu.pinned.empty());
    // Registered by somebody else: used, and left to them.
    gpu.pinned[reinterpret_cast<std::uintptr_t>(qp.here)] = 4096;
    EXPECT_EQ(pages.hold(runtime, qp.here, 8, false, whole, there, plain), 0);
    pages.drop(runtime, whole);
    EXPECT_EQ(gpu.pinned.size(), 1u);
    gpu.pinned.clear();
    // Of three pages somebody else has registered one, whichever: the other two are registered, and they alone undone.
    for (const std::size_t other : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
      const std::uintptr_t theirs = reinterpret_cast<std::uintptr_t>(qp.here) + other * 4096;
      gpu.pinned[theirs] = 4096;
      ASSERT_EQ(pages.hold(runtime, qp.here, 3 * 4096, false, whole, there, plain), 0);
      std::size_t registered = 0;
      for (const auto& [at, bytes] : gpu.pinned) registered += bytes;
      EXPECT_EQ(registered, 3u * 4096) << "page " << other << " is somebody else's";
      pages.drop(runtime, whole);
      EXPECT_EQ(gpu.pinned, (std::map<std::uintptr_t, std::size_t>{{theirs, 4096}}));
      // Seen elsewhere, it and ours are no ring over there.
      gpu.here = theirs;
      gpu.there = reinterpret_cast<std::uintptr_t>(qp.there);
      gpu.bytes = 4096;
      EXPECT_EQ(pages.hold(runtime, qp.here, 3 * 4096, false, whole, there, plain), 1);
      EXPECT_EQ(gpu.pinned, (std::map<std::uintptr_t, std::size_t>{{theirs, 4096}}));
      gpu.bytes = 0;
      gpu.pinned.clear();
    }
    EXPECT_EQ(pages.pieces(), 0u);
  }
}

}  // namespace
