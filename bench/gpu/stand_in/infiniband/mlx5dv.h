// SPDX-License-Identifier: Apache-2.0
// Segments by the words of the hardware's manual; docs/wire-mlx5.md has the layouts. See verbs.h.
#pragma once

#include <infiniband/verbs.h>

enum { MLX5_RCV_DBR = 0, MLX5_SND_DBR = 1, MLX5_SEND_WQE_SHIFT = 6 };
enum { MLX5_WQE_CTRL_SOLICITED = 2, MLX5_WQE_CTRL_CQ_UPDATE = 8 };
enum { MLX5_OPCODE_RDMA_WRITE = 8, MLX5_OPCODE_SEND = 10, MLX5_OPCODE_RDMA_READ = 16 };
enum { MLX5DV_OBJ_QP = 1, MLX5DV_OBJ_CQ = 2 };
enum { MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS = 8 };
enum { MLX5DV_QP_EX_WITH_MR_LIST = 2, MLX5DV_QP_EX_WITH_MKEY_CONFIGURE = 16 };

struct mlx5dv_mkey;
struct mlx5dv_qp {
  __be32* dbrec;
  struct {
    void* buf;
    uint32_t wqe_cnt, stride;
  } sq, rq;
  struct {
    void* reg;
    uint32_t size;
  } bf;
};
struct mlx5dv_cq {
  void* buf;
  __be32* dbrec;
  uint32_t cqe_cnt;
  uint32_t cqe_size;
};
struct mlx5dv_obj {
  struct {
    struct ibv_qp* in;
    struct mlx5dv_qp* out;
  } qp;
  struct {
    struct ibv_cq* in;
    struct mlx5dv_cq* out;
  } cq;
};
struct mlx5dv_qp_init_attr {
  uint64_t comp_mask, send_ops_flags;
};
struct mlx5_wqe_ctrl_seg {
  uint32_t opmod_idx_opcode;
  uint32_t qpn_ds;
  uint8_t signature;
  uint8_t reserved[2];
  uint8_t fm_ce_se;
  uint32_t imm;
} __attribute__((packed, aligned(4)));
struct mlx5_wqe_raddr_seg {
  uint64_t raddr;
  uint32_t rkey;
  uint32_t reserved;
};
struct mlx5_wqe_data_seg {
  uint32_t byte_count;
  uint32_t lkey;
  uint64_t addr;
};

#ifdef __cplusplus
extern "C" {
#endif
int mlx5dv_init_obj(struct mlx5dv_obj*, uint64_t);
struct ibv_qp* mlx5dv_create_qp(struct ibv_context*, struct ibv_qp_init_attr_ex*, struct mlx5dv_qp_init_attr*);
#ifdef __cplusplus
}
#endif
