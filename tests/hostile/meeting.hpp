// SPDX-License-Identifier: Apache-2.0
// Connections by librdmacm, step by step: whoever commands this decides how far they get.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

// What is used of librdmacm (rdma/rdma_cma.h), whose headers are in a package of their own that nothing else here
// needs.
extern "C" {
struct rdma_cm_id;
struct rdma_event_channel {
  int fd;
};
struct rdma_cm_event {
  rdma_cm_id* id;
  rdma_cm_id* listen_id;
  int event;
  int status;  // and more
};
struct rdma_conn_param {
  const void* private_data;
  std::uint8_t private_data_len;
  std::uint8_t responder_resources;
  std::uint8_t initiator_depth;
  std::uint8_t flow_control;
  std::uint8_t retry_count;
  std::uint8_t rnr_retry_count;
  std::uint8_t srq;
  std::uint32_t qp_num;
};
struct sockaddr;
rdma_event_channel* rdma_create_event_channel(void);
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, int port_space);
int rdma_bind_addr(rdma_cm_id* id, sockaddr* address);
int rdma_listen(rdma_cm_id* id, int backlog);
int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout_ms);
int rdma_resolve_route(rdma_cm_id* id, int timeout_ms);
int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* wanted);
int rdma_connect(rdma_cm_id* id, rdma_conn_param* parameters);
int rdma_accept(rdma_cm_id* id, rdma_conn_param* parameters);
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event);
int rdma_ack_cm_event(rdma_cm_event* event);
const char* rdma_event_str(int event);
}

namespace hostile {

class Meeting {
 public:
  // Empty text: done. Both at 127.0.0.1.
  std::string listen(int port);
  std::string connect(int port);  // the request is on its way; what comes of it is an event
  std::string accept();           // the request that was the last event
  // Fetches one: "CONNECT_REQUEST" and so on; "NONE" when there is none within the time.
  std::string event(int milliseconds);

 private:
  std::string begin();
  std::string expect(const char* name);
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  rdma_cm_id* asking_ = nullptr;
};

}  // namespace hostile
