// SPDX-License-Identifier: Apache-2.0
#include "queue.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <cerrno>
#include <cstring>

namespace hostile {
namespace {

constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint8_t kPattern = 0xa5;

std::string failed(const char* what, int error) {
  return std::string(what) + ": " + std::strerror(error);
}

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

std::string open_device(Device& out) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list == nullptr || list[0] == nullptr) return "there is no device";
  out.context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (out.context == nullptr) return failed("opening the device", errno);
  out.domain = ibv_alloc_pd(out.context);
  if (out.domain == nullptr) return failed("no protection domain", errno);
  if (ibv_query_gid(out.context, 1, 0, &out.gid) != 0) return failed("no GID", errno);
  return {};
}

std::string Queue::make(const Device& device) {
  device_ = &device;
  // Nothing, a page of pattern, the memory, a page of pattern, nothing.
  const std::size_t whole = kMemory + 4 * kPage;
  void* const at = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return failed("no memory", errno);
  auto* const begin = static_cast<std::uint8_t*>(at) + kPage;
  if (::mprotect(begin, kMemory + 2 * kPage, PROT_READ | PROT_WRITE) != 0) return failed("no memory", errno);
  memory_ = begin + kPage;
  std::memset(begin, kPattern, kPage);
  std::memset(memory_ + kMemory, kPattern, kPage);
  mr_ = ibv_reg_mr(device.domain, memory_, kMemory, kAccess);
  if (mr_ == nullptr) return failed("registering", errno);
  cq_ = ibv_create_cq(device.context, 4 * kDepth, nullptr, nullptr, 0);
  if (cq_ == nullptr) return failed("no completion queue", errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = cq_;
  wanted.recv_cq = cq_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap = {kDepth, kDepth, 1, 1, 0};
  qp_ = ibv_create_qp(device.domain, &wanted);
  if (qp_ == nullptr) return failed("no queue pair", errno);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = kAccess;
  const int error =
      ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  return error == 0 ? "" : failed("to INIT", error);
}

std::string Queue::connect(const ibv_gid& gid, std::uint32_t qpn, unsigned timeout, unsigned retries) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = qpn;
  attributes.max_dest_rd_atomic = 4;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid = gid;
  attributes.ah_attr.grh.hop_limit = 64;
  if (const int error = ibv_modify_qp(qp_, &attributes,
                                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
      error != 0)
    return failed("to RTR", error);
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<std::uint8_t>(timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(retries);
  attributes.rnr_retry = 6;
  attributes.max_rd_atomic = 4;
  const int error = ibv_modify_qp(
      qp_, &attributes,
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? "" : failed("to RTS", error);
}

std::string Queue::post(ibv_wr_opcode opcode, std::uint32_t bytes, std::uint64_t remote, std::uint32_t rkey,
                        std::uint8_t seed) {
  if (bytes > kMemory) return "longer than the memory";
  if (opcode != IBV_WR_RDMA_READ) {
    for (std::size_t i = 0; i < bytes; ++i) memory_[i] = byte_of(i, seed);
  }
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_), bytes, mr_->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.wr.rdma.remote_addr = remote;
  request.wr.rdma.rkey = rkey;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp_, &request, &bad);
  return error == 0 ? "" : failed("posting", error);
}

std::string Queue::receive(std::uint32_t bytes) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_), bytes, mr_->lkey};
  ibv_recv_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp_, &request, &bad);
  return error == 0 ? "" : failed("posting a receive", error);
}

int Queue::wait(int milliseconds) {
  const std::int64_t until = now_ms() + milliseconds;
  for (;;) {
    ibv_wc completion{};
    if (ibv_poll_cq(cq_, 1, &completion) == 1) return static_cast<int>(completion.status);
    if (now_ms() > until) return -1;
    ::sched_yield();
  }
}

bool Queue::holds(std::size_t bytes, std::uint8_t seed) const {
  for (std::size_t i = 0; i < bytes && i < kMemory; ++i) {
    if (memory_[i] != byte_of(i, seed)) return false;
  }
  return true;
}

std::size_t Queue::strays() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < kPage; ++i)
    count += (memory_[-1 - static_cast<std::ptrdiff_t>(i)] != kPattern ? 1u : 0u) +
             (memory_[kMemory + i] != kPattern ? 1u : 0u);
  return count;
}

}  // namespace hostile
