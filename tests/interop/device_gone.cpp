// SPDX-License-Identifier: Apache-2.0
// The device is removed under a verbs program (`strait run --faults gone=3`): the event, the flushed work, and what
// every later call answers.
//
//   device_gone GID
#include <poll.h>

#include <cerrno>
#include <chrono>

#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;

ibv_wc next(ibv_cq* cq) {
  const auto begun = std::chrono::steady_clock::now();
  ibv_wc done{};
  while (ibv_poll_cq(cq, 1, &done) == 0)
    require(std::chrono::steady_clock::now() - begun < std::chrono::nanoseconds(kPatienceNs), "it completes in time");
  return done;
}

}  // namespace

int main(int, char** arguments) {
  Host host = open_host(std::atoi(arguments[1]), false);
  ibv_cq* const cq = ibv_create_cq(host.context, 16, nullptr, nullptr, 0);
  require(cq != nullptr, "a completion queue");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {8, 8, 1, 1, 0};
  ibv_qp* const qp = ibv_create_qp(host.pd, &init);
  require(qp != nullptr, "a queue pair");
  connect(host, qp, qp->qp_num, host.gid);
  {
    Registered from(host.pd, 1 << 16, 1);
    Registered to(host.pd, 1 << 16, 2);
    ibv_sge piece{from.at(), 1 << 16, from.mr->lkey};
    ibv_recv_wr receive{};
    receive.wr_id = 9;
    receive.sg_list = &piece;
    receive.num_sge = 1;
    ibv_recv_wr* bad_receive = nullptr;
    require(ibv_post_recv(qp, &receive, &bad_receive) == 0, "a receive is posted");
    const auto post = [&](std::uint64_t id) {
      ibv_send_wr wr{};
      wr.wr_id = id;
      wr.sg_list = &piece;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_RDMA_WRITE;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.rdma = {to.at(), to.mr->rkey};
      ibv_send_wr* bad = nullptr;
      return ibv_post_send(qp, &wr, &bad);
    };
    for (std::uint64_t id = 1; id <= 2; ++id) {
      require(post(id) == 0 && next(cq).status == IBV_WC_SUCCESS, "two writes are done while it is there");
    }
    require(to.bytes == from.bytes, "they moved the bytes");
    for (std::uint64_t id = 3; id <= 5; ++id) require(post(id) == 0, "three more are posted");
    for (int i = 0; i < 4; ++i) {  // and the receive
      const ibv_wc done = next(cq);
      require(done.status == IBV_WC_WR_FLUSH_ERR, "everything else is flushed");
      require(done.wr_id >= 3, "and nothing twice");
    }
    pollfd told{host.context->async_fd, POLLIN, 0};
    require(::poll(&told, 1, 60'000) == 1, "there is an event");
    ibv_async_event event{};
    require(ibv_get_async_event(host.context, &event) == 0 && event.event_type == IBV_EVENT_DEVICE_FATAL,
            "it is IBV_EVENT_DEVICE_FATAL");
    ibv_ack_async_event(&event);
    require(post(6) == 0 && next(cq).status == IBV_WC_WR_FLUSH_ERR, "what is posted to it comes back");
    errno = 0;
    require(ibv_reg_mr(host.pd, from.bytes.data(), 4096, kAccess) == nullptr && errno == EIO,
            "no new registration: EIO");
    errno = 0;
    require(ibv_create_qp(host.pd, &init) == nullptr && errno == EIO, "no new queue pair: EIO");
  }
  require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "what is there can be given back");
  close_host(host);
  return 0;
}
