// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "peer.hpp"
#include "rings.hpp"
#include "strait/rdmaxcel.h"

namespace bench::gpu {
namespace {

constexpr std::uint32_t kBlocks = 4096;
constexpr unsigned kTimes = 150;  // of each launch; all together fit into the ring, since nobody empties it

// A queue pair on paper, laid out as a driver would: records in one page, registers in another, rings.
class PaperQueue {
 public:
  PaperQueue() {
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    auto* const bytes = static_cast<std::uint8_t*>(memory_);
    qp_.dbrec = reinterpret_cast<decltype(qp_.dbrec)>(bytes);
    qp_.bf.reg = bytes + kPage;
    qp_.bf.size = 256;
    qp_.sq.buf = bytes + 2 * kPage;
    qp_.sq.wqe_cnt = kBlocks;
    qp_.sq.stride = 64;
    furnish(send_, bytes + 2 * kPage + 64 * kBlocks, bytes + 64);
    furnish(receive_, bytes + 3 * kPage + 64 * kBlocks, bytes + 128);
    if (rdmaxcel_register_cq(&send_) != 0 || rdmaxcel_register_cq(&receive_) != 0 ||
        rdmaxcel_register_qp(kQpn, &qp_, &receive_, &send_) != 0)
      throw std::runtime_error("strait/rdmaxcel.h does not take the benchmark's queue");
    if (register_cuda_memory(&qp_, &receive_, &send_) != cudaSuccess)
      throw std::runtime_error("register_cuda_memory failed");
  }
  PaperQueue(const PaperQueue&) = delete;
  PaperQueue& operator=(const PaperQueue&) = delete;
  ~PaperQueue() {
    (void)unregister_cuda_memory(&qp_, &receive_, &send_);
    rdmaxcel_unregister_qp(&qp_);
    rdmaxcel_unregister_cq(&send_);
    rdmaxcel_unregister_cq(&receive_);
    (void)::munmap(memory_, kBytes);
  }

  double run(bool waited) {
    wqe_params_t params{};
    params.laddr = 0x7f0000002000;
    params.lkey = 0x1111;
    params.length = 8;
    params.signaled = true;
    params.op_type = 8;  // an RDMA write
    params.raddr = 0x7f0000001000;
    params.rkey = 0x2222;
    params.qp_num = kQpn;
    params.buf = static_cast<std::uint8_t*>(qp_.sq.buf);
    params.dbrec = const_cast<std::uint32_t*>(reinterpret_cast<const volatile std::uint32_t*>(qp_.dbrec));
    params.wqe_cnt = kBlocks;
    check(cudaDeviceSynchronize(), "before launches");
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < kTimes; ++i) {
      params.wr_id = posted_ + i;
      launch_send_wqe(params);
      launch_db_ring(qp_.bf.reg, params.buf + 64 * ((posted_ + i) % kBlocks));
      if (waited) check(cudaStreamSynchronize(nullptr), "a launch");
    }
    check(cudaDeviceSynchronize(), "launches");
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
    posted_ += kTimes;
    if (const int status = rdmaxcel_last_status(kQpn); status != RDMAXCEL_SUCCESS)
      throw std::runtime_error(std::string("a launch was refused: ") + rdmaxcel_error_string(status));
    const std::uint32_t shown = __builtin_bswap32(reinterpret_cast<const volatile std::uint32_t*>(qp_.dbrec)[1]);
    if (shown != posted_) throw std::runtime_error("the record does not show what was launched");
    return passed.count() / kTimes;
  }

 private:
  static constexpr std::uint32_t kQpn = 0x77;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::uint32_t kCqes = 64;  // a page; nothing completes
  static constexpr std::size_t kBytes = 4 * kPage + 64 * kBlocks;

  static void furnish(mlx5dv_cq& cq, std::uint8_t* entries, std::uint8_t* record) {
    cq.buf = entries;
    cq.dbrec = reinterpret_cast<decltype(cq.dbrec)>(record);
    cq.cqe_cnt = kCqes;
    cq.cqe_size = 64;
    for (std::uint32_t i = 0; i < kCqes; ++i) entries[64 * i + 63] = strait::wire::mlx5::kCqeInvalid;
  }

  void* memory_;
  mlx5dv_qp qp_{};
  mlx5dv_cq send_{}, receive_{};
  std::uint64_t posted_ = 0;
};

}  // namespace

Launches launch_pairs(bool waited, unsigned launches) {
  PaperQueue ours;
  Rings rings(1, 12, strait::device::Sharing::one_thread);
  const BareRing bare = rings.bare_of(0);
  const PeerRing ring{bare.blocks, bare.record - 1, bare.doorbell, kBlocks, Rings::kFirstQpn};
  Launches out;
  (void)ours.run(waited);
  if (rdmaxcel().launch != nullptr) (void)rdmaxcel().launch(ring, kTimes);
  launches = std::min(launches, kBlocks / kTimes - 1);
  for (unsigned i = 0; i < launches; ++i) {
    out.ours.push_back(ours.run(waited));
    if (rdmaxcel().launch == nullptr) continue;
    out.peer.push_back(rdmaxcel().launch(ring, kTimes));
    if (out.peer.back() < 0) throw std::runtime_error("the peer's launches failed");
  }
  return out;
}

}  // namespace bench::gpu
