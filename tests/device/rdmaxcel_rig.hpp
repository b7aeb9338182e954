// SPDX-License-Identifier: Apache-2.0
// A queue pair on paper for rdmaxcel.h: its memory laid out as libmlx5 does (receive ring and send ring in one buffer,
// so that the second begins in the middle of a page; records of several queues in one page; a page of registers),
// mapped twice, the second time as a GPU would see it. Verbs calls, counted; a runtime, counted and told where to fail.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>

#include "rig.hpp"
#include "strait/rdmaxcel.h"

namespace paper {

// Verbs objects that exist.
struct Verbs {
  int qps = 0, cqs = 0, made = 0;
  int fail_cq_at = 0;  // the n-th completion queue is not to be had
  bool fail_qp = false;
  std::map<ibv_qp*, mlx5dv_qp> rings;
  std::map<ibv_cq*, mlx5dv_cq> completions;
};
inline Verbs verbs;

// What the runtime was asked for.
struct Gpu {
  std::map<std::uintptr_t, std::size_t> pinned;
  int pins = 0, fail_pin_at = 0;  // that one fails, and all after it
  bool refuses_io = false;
  bool saw_io = false;
  int allocations = 0, settles = 0, views = 0;
  int launch_answer = 0, settle_answer = 0;
  std::uintptr_t here = 0, bytes = 0, there = 0;  // [here, here + bytes) is seen at `there`
};
inline Gpu gpu;

inline strait::rdmaxcel::Runtime paper_runtime() {
  using strait::rdmaxcel::Runtime;
  Runtime r;
  r.pin = [](void* p, std::size_t n, bool io) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    if (begin % 4096 != 0 || n % 4096 != 0) return 1;  // whole pages
    if (++gpu.pins >= gpu.fail_pin_at && gpu.fail_pin_at != 0) return 2;
    for (const auto& [at, bytes] : gpu.pinned)
      if (begin < at + bytes && at < begin + n) return int{Runtime::kAlready};
    if (io && gpu.refuses_io) return 801;
    gpu.saw_io = gpu.saw_io || io;
    gpu.pinned[begin] = n;
    return 0;
  };
  r.unpin = [](void* p) { return gpu.pinned.erase(reinterpret_cast<std::uintptr_t>(p)) == 1 ? 0 : 1; };
  r.view = [](void** out, void* host) {
    ++gpu.views;
    const auto at = reinterpret_cast<std::uintptr_t>(host);
    *out = at - gpu.here < gpu.bytes ? reinterpret_cast<void*>(at - gpu.here + gpu.there) : host;
    return 0;
  };
  r.allocate = [](std::size_t n, bool shared) {
    ++gpu.allocations;
    return strait::rdmaxcel::allocate_here(n, shared);
  };
  r.release = [](void* p, bool shared) { strait::rdmaxcel::release_here(p, shared); };
  r.started = [] { return gpu.launch_answer; };
  r.settle = [] { return ++gpu.settles, gpu.settle_answer; };
  return r;
}

inline constexpr std::uint32_t kSends = 64, kReceives = 16, kCqes = 128;
inline constexpr std::size_t kMapped = 16 * 4096;

class PaperQp {
 public:
  explicit PaperQp(std::uint32_t qpn, std::uint32_t send_used = 0, std::uint32_t cq_used = 0, bool shown = true,
                   std::uint32_t receive_stride = 32)
      : qpn_(qpn), produced_{cq_used, 0} {
    const int fd = ::memfd_create("rdmaxcel", 0);
    EXPECT_EQ(::ftruncate(fd, kMapped), 0);
    here = map(fd);
    there = map(fd);
    ::close(fd);
    dv.dbrec = reinterpret_cast<__be32*>(here);
    dv.dbrec[1] = be(send_used);
    dv.bf.reg = here + 4096 + 0x800;
    dv.bf.size = 256;
    dv.rq.buf = here + 2 * 4096;
    dv.rq.wqe_cnt = kReceives;
    dv.rq.stride = receive_stride;
    dv.sq.buf = here + 2 * 4096 + kReceives * receive_stride;
    dv.sq.wqe_cnt = kSends;
    dv.sq.stride = 64;
    std::memset(dv.rq.buf, 0xa5, kReceives * receive_stride + kSends * 64);
    send_cq = cq_at(here + 4 * 4096, 64);
    recv_cq = cq_at(here + 6 * 4096, 128);
    send_cq.dbrec[0] = be(cq_used);
    if (shown) show();
  }
  ~PaperQp() {
    if (shown_) hide();
    ::munmap(here, kMapped);
    ::munmap(there, kMapped);
  }
  PaperQp(const PaperQp&) = delete;
  PaperQp& operator=(const PaperQp&) = delete;

  void show() {
    EXPECT_EQ(rdmaxcel_register_cq(&send_cq), 0);
    EXPECT_EQ(rdmaxcel_register_cq(&recv_cq), 0);
    EXPECT_EQ(rdmaxcel_register_qp(qpn_, &dv, &recv_cq, &send_cq), 0);
    shown_ = true;
  }
  void hide() {
    rdmaxcel_unregister_qp(&dv);
    rdmaxcel_unregister_cq(&send_cq);
    rdmaxcel_unregister_cq(&recv_cq);
    shown_ = false;
  }

  wqe_params_t write(std::uint64_t wr_id, std::size_t length = 512) const {
    return {0x7f0000001000,
            0x112233,
            length,
            wr_id,
            true,
            MLX5_OPCODE_RDMA_WRITE,
            0xabcdef,
            0x44556677,
            qpn_,
            ring(),
            const_cast<std::uint32_t*>(dv.dbrec),
            kSends};
  }
  wqe_params_t receive(std::uint64_t wr_id, std::size_t length = 512) const {
    wqe_params_t p = write(wr_id, length);
    p.buf = static_cast<std::uint8_t*>(dv.rq.buf);
    p.wqe_cnt = kReceives;
    return p;
  }
  cqe_poll_params_t poll_params(std::uint32_t index, bool receives = false) const {
    const mlx5dv_cq& cq = receives ? recv_cq : send_cq;
    return {static_cast<std::uint8_t*>(cq.buf), cq.cqe_size, index, cq.cqe_cnt, const_cast<std::uint32_t*>(cq.dbrec)};
  }
  cqe_poll_result_t poll(std::uint32_t index, bool receives = false) const {
    return rdmaxcel_cqe_poll(poll_params(index, receives));
  }
  void ring_bell() const { db_ring(dv.bf.reg, dv.sq.buf); }

  std::uint8_t* ring() const { return static_cast<std::uint8_t*>(dv.sq.buf); }
  Wqe at(std::uint64_t index) const { return decode(ring(), kSends, index); }
  const std::uint8_t* receive_at(std::uint64_t index) const {
    return static_cast<const std::uint8_t*>(dv.rq.buf) + index % kReceives * dv.rq.stride;
  }
  std::uint32_t record(unsigned word) const { return be(__atomic_load_n(&dv.dbrec[word], __ATOMIC_ACQUIRE)); }
  std::uint64_t bell() const {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(dv.bf.reg), __ATOMIC_ACQUIRE);
  }
  int status() const { return rdmaxcel_last_status(qpn_); }
  std::uint32_t qpn() const { return qpn_; }

  // The device: the next entry of a completion queue.
  void complete(mlx5::Cqe cqe, bool receives = false) {
    const mlx5dv_cq& cq = receives ? recv_cq : send_cq;
    std::uint64_t& n = produced_[receives ? 1 : 0];
    auto* const entry = static_cast<std::uint8_t*>(cq.buf) + (n % kCqes + 1) * cq.cqe_size - 64;
    std::uint8_t image[64];
    std::memcpy(image, &cqe, 64);
    for (unsigned i = 0; i < 63; ++i) entry[i] = image[i];
    const auto owner = static_cast<std::uint8_t>(n / kCqes & 1);
    __atomic_store_n(entry + 63, static_cast<std::uint8_t>((image[63] & ~1u) | owner), __ATOMIC_RELEASE);
    ++n;
  }
  void complete_send(std::uint64_t index) { complete(requester_cqe(qpn_, index, mlx5::Opcode::rdma_write)); }
  void complete_receive(std::uint64_t index, mlx5::CqeOpcode opcode, std::uint32_t bytes) {
    mlx5::Cqe c = requester_cqe(qpn_, index, mlx5::Opcode::nop, bytes);
    c.op_own = mlx5::make_op_own(opcode, 0);
    c.imm_inval_pkey = sw::be32{0x11223344};
    complete(c, true);
  }
  // As if the send completion queue had taken and lost so many entries.
  void skip_completions(std::uint64_t n) {
    produced_[0] = n;
    for (std::uint32_t i = 0; i < kCqes; ++i)
      static_cast<std::uint8_t*>(send_cq.buf)[(i + 1) * 64 - 1] = mlx5::make_op_own(
          mlx5::CqeOpcode::requester, static_cast<unsigned>((n / kCqes - (i < n % kCqes ? 0 : 1)) & 1));
  }

  static std::uint32_t be(std::uint32_t v) { return __builtin_bswap32(v); }

  mlx5dv_qp dv{};
  mlx5dv_cq send_cq{}, recv_cq{};
  std::uint8_t* here = nullptr;
  std::uint8_t* there = nullptr;

 private:
  static std::uint8_t* map(int fd) {
    void* const p = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(p, MAP_FAILED);
    return static_cast<std::uint8_t*>(p);
  }
  mlx5dv_cq cq_at(std::uint8_t* buf, std::uint32_t entry_bytes) {
    mlx5dv_cq cq{};
    cq.buf = buf;
    cq.cqe_cnt = kCqes;
    cq.cqe_size = entry_bytes;
    cq.dbrec = reinterpret_cast<__be32*>(here + entry_bytes);  // 64 and 128
    for (std::uint32_t i = 0; i < kCqes; ++i) buf[(i + 1) * entry_bytes - 1] = mlx5::kCqeInvalid;
    return cq;
  }

  std::uint32_t qpn_;
  std::uint64_t produced_[2];
  bool shown_ = false;
};

// Whatever a test did, nothing of it is left.
class Rdmaxcel : public testing::Test {
 protected:
  void SetUp() override {
    gpu = {};
    verbs = {};
    strait::rdmaxcel::registry.runtime = paper_runtime();
    (void)rdmaxcel_last_status(0);
  }
  void TearDown() override {
    EXPECT_TRUE(gpu.pinned.empty()) << "pages are left registered";
    EXPECT_EQ(verbs.qps, 0);
    EXPECT_EQ(verbs.cqs, 0);
    EXPECT_EQ(strait::rdmaxcel::registry.pages.pieces(), 0u);
    for (const strait::rdmaxcel::QueueEntry& e : strait::rdmaxcel::host_table.queues)
      EXPECT_EQ(e.life & 1, 0u) << "a queue is still known";
    for (const strait::rdmaxcel::CqEntry& e : strait::rdmaxcel::host_table.cqs)
      EXPECT_EQ(e.life & 1, 0u) << "a completion queue is still known";
  }
};

}  // namespace paper
