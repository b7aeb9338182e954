// SPDX-License-Identifier: Apache-2.0
// Stands in where rdma-core's headers are not installed: as much as RDMaxcel's sources and strait/rdmaxcel.h name, so
// that both compile. Queues of the benchmark are on paper; nothing declared here is called, or linked.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t __be32;

enum { IBV_QPT_RC = 2 };
enum { IBV_QP_INIT_ATTR_PD = 1, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS = 64 };
enum { IBV_QP_EX_WITH_RDMA_WRITE = 1, IBV_QP_EX_WITH_SEND = 4, IBV_QP_EX_WITH_RDMA_READ = 16 };

struct ibv_qp_ex;
struct ibv_cq;
struct ibv_pd;
struct ibv_mr;
struct ibv_ah;
struct ibv_context;
struct ibv_qp {
  struct ibv_cq *send_cq, *recv_cq;
  uint32_t qp_num;
};
struct ibv_wc {
  uint64_t wr_id;
};
struct ibv_qp_cap {
  uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};
struct ibv_qp_init_attr {
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_qp_cap cap;
  int qp_type;
};
struct ibv_qp_init_attr_ex {
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_qp_cap cap;
  int qp_type;
  uint32_t comp_mask;
  struct ibv_pd* pd;
  uint64_t send_ops_flags;
};

#ifdef __cplusplus
extern "C" {
#endif
struct ibv_cq* ibv_create_cq(struct ibv_context*, int, void*, void*, int);
int ibv_destroy_cq(struct ibv_cq*);
struct ibv_qp* ibv_create_qp(struct ibv_pd*, struct ibv_qp_init_attr*);
int ibv_destroy_qp(struct ibv_qp*);
#ifdef __cplusplus
}
#endif
