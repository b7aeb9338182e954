// SPDX-License-Identifier: Apache-2.0
// Stands in where rdma-core's headers are not installed: as much as RDMaxcel's header and .cu file name, no more.
// Nothing of it is called.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_qp;
struct ibv_qp_ex;
struct ibv_cq;
struct ibv_pd;
struct ibv_mr;
struct ibv_ah;
struct ibv_context;
struct ibv_wc {
  uint64_t wr_id;
};
