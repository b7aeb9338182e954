// SPDX-License-Identifier: Apache-2.0
// Queues that libmlx5 made and this program drives itself: mlx5dv_init_obj says where rings, records and registers are,
// strait/device posts and polls. Beside it another queue pair of the same process goes on through ibv_post_send.
//
//   raw_queues GID    both ends in this process, over the address of that GID
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/wait.hpp"
#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;
namespace device = strait::device;
namespace wire = strait::wire;
constexpr auto kOne = device::Sharing::one_thread;
constexpr std::size_t kBytes = 3 * 4096;
constexpr int kRounds = 300;  // more than any ring here has entries

std::uint32_t log2_of(std::uint32_t n) {
  require(n != 0 && (n & (n - 1)) == 0, "a ring has a power of two of entries");
  return static_cast<std::uint32_t>(__builtin_ctz(n));
}

// A queue pair of verbs, and its rings as strait/device sees them.
struct Raw {
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  mlx5dv_qp dv_qp{};
  mlx5dv_cq dv_cq{};
  device::SendRing send{};
  device::ReceiveRing receive{};
  device::CompletionRing completions{};

  explicit Raw(const Host& host, ibv_srq* srq = nullptr) {
    cq = ibv_create_cq(host.context, 63, nullptr, nullptr, 0);
    require(cq != nullptr, "a completion queue");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {16, srq == nullptr ? 16u : 0u, 2, 2, 64};
    qp = ibv_create_qp(host.pd, &init);
    require(qp != nullptr, "a queue pair");
    mlx5dv_obj objects{};
    objects.qp = {qp, &dv_qp};
    objects.cq = {cq, &dv_cq};
    require(mlx5dv_init_obj(&objects, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) == 0, "mlx5dv_init_obj shows the rings");
    require(dv_qp.sq.stride == 64, "send blocks of 64 bytes");
    auto* const record = reinterpret_cast<wire::mlx5::QueueRecord*>(dv_qp.dbrec);
    require(device::open_send_ring(
                send, {dv_qp.sq.buf, log2_of(dv_qp.sq.wqe_cnt), qp->qp_num, record, dv_qp.bf.reg, nullptr, 0}),
            "the send ring fits strait/device");
    if (srq == nullptr)
      require(device::open_receive_ring(
                  receive, {dv_qp.rq.buf, log2_of(dv_qp.rq.wqe_cnt), log2_of(dv_qp.rq.stride), record, nullptr, 0}),
              "the receive ring fits strait/device");
    require(device::open_completion_ring(completions, {dv_cq.buf, log2_of(dv_cq.cqe_cnt), dv_cq.cqe_size,
                                                       reinterpret_cast<wire::mlx5::CqRecord*>(dv_cq.dbrec), 0}),
            "the completion ring fits strait/device");
  }
  ~Raw() {
    require(ibv_destroy_qp(qp) == 0, "the queue pair goes");
    require(ibv_destroy_cq(cq) == 0, "the completion queue goes");
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  void wait_sent(const device::Pending& pending) {
    require(pending.ok(), "a post has room");
    device::ring_doorbell<kOne>(send);
    device::Completion completion{};
    const auto waited = device::wait_until_done<kOne, device::CompletionMode::normal>(
        send, completions, pending.start, device::Deadline::after_ns(kPatienceNs), completion);
    if (waited == device::Waited::error) std::fprintf(stderr, "%s\n", wire::mlx5::sentence(completion.syndrome));
    require(waited == device::Waited::ok, "a work request completes");
  }
  device::Completion wait_received() {
    device::Completion completion{};
    require(device::wait_for_completion(completions, device::Deadline::after_ns(kPatienceNs), completion) ==
                device::Waited::ok,
            "a message arrives");
    return completion;
  }
};

void connect_both(const Host& host, ibv_qp* a, ibv_qp* b) {
  connect(host, a, b->qp_num, host.gid);
  connect(host, b, a->qp_num, host.gid);
}

// Every operation of strait/device on rings of libmlx5, round and round.
void drive_raw(const Host& host) {
  Raw a(host);
  Raw b(host);
  connect_both(host, a.qp, b.qp);
  Registered from(host.pd, kBytes, 1);
  Registered to(host.pd, kBytes, 2);
  Registered back(host.pd, kBytes, 3);
  for (int i = 0; i < kRounds; ++i) {
    from.bytes[static_cast<std::size_t>(i) % kBytes] ^= 0x5a;
    const device::Piece piece{from.at(), kBytes, from.mr->lkey};
    const device::Remote remote{to.at(), to.mr->rkey};
    a.wait_sent(device::post_write<kOne>(a.send, remote, piece, device::kSignaled));
    require(to.bytes == from.bytes, "a write carries the bytes");
    a.wait_sent(device::post_read<kOne>(a.send, remote, {back.at(), kBytes, back.mr->lkey}, device::kSignaled));
    require(back.bytes == from.bytes, "a read brings them back");

    const std::uint64_t word = 0x0123456789abcdef + static_cast<std::uint64_t>(i);
    a.wait_sent(device::post_write_inline<kOne>(a.send, remote, &word, sizeof word, device::kSignaled));
    require(std::memcmp(to.bytes.data(), &word, sizeof word) == 0, "an inline write carries its word");
    a.wait_sent(device::post_fetch_add<kOne>(a.send, remote, 5, {back.at(), 8, back.mr->lkey}, device::kSignaled));
    std::uint64_t old = 0;
    std::memcpy(&old, back.bytes.data(), 8);
    std::uint64_t sum = 0;
    std::memcpy(&sum, to.bytes.data(), 8);
    require(old == word && sum == word + 5, "fetch-and-add");

    // A message with an immediate, into a receive of two pieces.
    const device::Piece pieces[] = {{to.at(), 100, to.mr->lkey}, {to.at(4096), 8192, to.mr->lkey}};
    require(device::post_receive<kOne>(b.receive, pieces, 2).ok(), "a receive has room");
    device::publish_receives<kOne>(b.receive);
    const auto number = static_cast<std::uint32_t>(i);
    a.wait_sent(
        device::post_send_imm<kOne>(a.send, {from.at(), 4000, from.mr->lkey}, wire::be32{number}, device::kSignaled));
    const device::Completion got = b.wait_received();
    require(got.opcode == wire::mlx5::CqeOpcode::responder_send_imm && got.byte_count == 4000 &&
                got.imm.value() == number && got.qpn == b.qp->qp_num,
            "the receive's completion says what came");
    require(device::take_receive<kOne>(b.receive, got.wqe_counter).known, "it names the receive");
    require(std::memcmp(to.bytes.data(), from.bytes.data(), 100) == 0 &&
                std::memcmp(to.bytes.data() + 4096, from.bytes.data() + 100, 3900) == 0,
            "the message lies in both pieces");
  }
}

// A shared receive queue by hand: link and data segments in the ring, one counter in the record.
void drive_shared(const Host& host) {
  ibv_srq_init_attr init{};
  init.attr = {15, 1, 0};
  ibv_srq* const srq = ibv_create_srq(host.pd, &init);
  require(srq != nullptr, "a shared receive queue");
  mlx5dv_srq dv{};
  mlx5dv_obj objects{};
  objects.srq = {srq, &dv};
  require(mlx5dv_init_obj(&objects, MLX5DV_OBJ_SRQ) == 0, "mlx5dv_init_obj shows the shared receive queue");
  {
    Raw a(host);
    Raw b(host, srq);
    connect_both(host, a.qp, b.qp);
    Registered from(host.pd, 4096, 4);
    Registered to(host.pd, 4096, 5);
    std::uint32_t head = dv.head;
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      auto* const entry = static_cast<std::uint8_t*>(dv.buf) + std::size_t{head} * dv.stride;
      auto* const link = reinterpret_cast<wire::mlx5::SrqNextSeg*>(entry);
      device::store_data(entry + 16, to.at(), 4096, to.mr->lkey);
      const std::uint32_t filled = head;
      head = link->next_wqe_index.value();
      device::order_stores_before_dma(device::Reach::system);
      device::store_record(reinterpret_cast<std::uint32_t*>(dv.dbrec), wire::be32{(i + 1) & 0xffff}.raw());
      from.bytes[i] ^= 0xff;
      a.wait_sent(device::post_send<kOne>(a.send, {from.at(), 4096, from.mr->lkey}, device::kSignaled));
      const device::Completion got = b.wait_received();
      require(got.wqe_counter == filled, "the completion names the entry");
      require(to.bytes == from.bytes, "a shared receive gets the bytes");
      // Behind the last one of the list again, as libmlx5 does it.
      auto* const tail = static_cast<std::uint8_t*>(dv.buf) + std::size_t{dv.tail} * dv.stride;
      reinterpret_cast<wire::mlx5::SrqNextSeg*>(tail)->next_wqe_index = wire::be16{static_cast<std::uint16_t>(filled)};
      dv.tail = filled;
    }
  }
  require(ibv_destroy_srq(srq) == 0, "the shared receive queue goes");
}

// The usual way, by another thread meanwhile.
void drive_verbs(const Host& host) {
  ibv_cq* const cq = ibv_create_cq(host.context, 16, nullptr, nullptr, 0);
  require(cq != nullptr, "a completion queue");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {16, 16, 1, 1, 0};
  ibv_qp* const a = ibv_create_qp(host.pd, &init);
  ibv_qp* const b = ibv_create_qp(host.pd, &init);
  require(a != nullptr && b != nullptr, "two queue pairs");
  connect_both(host, a, b);
  {
    Registered from(host.pd, kBytes, 6);
    Registered to(host.pd, kBytes, 7);
    for (int i = 0; i < kRounds; ++i) {
      from.bytes[static_cast<std::size_t>(i)] ^= 0x3c;
      ibv_sge piece{from.at(), kBytes, from.mr->lkey};
      ibv_send_wr work{};
      work.sg_list = &piece;
      work.num_sge = 1;
      work.opcode = IBV_WR_RDMA_WRITE;
      work.send_flags = IBV_SEND_SIGNALED;
      work.wr.rdma = {to.at(), to.mr->rkey};
      ibv_send_wr* bad = nullptr;
      require(ibv_post_send(a, &work, &bad) == 0, "ibv_post_send");
      ibv_wc done{};
      int n = 0;
      const device::Deadline deadline = device::Deadline::after_ns(kPatienceNs);
      while ((n = ibv_poll_cq(cq, 1, &done)) == 0) require(!deadline.passed(), "ibv_poll_cq finds it in time");
      require(n == 1 && done.status == IBV_WC_SUCCESS, "the write of verbs succeeds");
      require(to.bytes == from.bytes, "and carries the bytes");
    }
  }
  require(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 && ibv_destroy_cq(cq) == 0, "all of it goes");
}

}  // namespace

int main(int argc, char** argv) {
  Host host = open_host(argc > 1 ? std::atoi(argv[1]) : 0, false);
  std::thread other([&] { drive_verbs(host); });
  drive_raw(host);
  drive_shared(host);
  other.join();
  close_host(host);
  std::puts("raw queues: all as posted");
  return 0;
}
