// SPDX-License-Identifier: Apache-2.0
// Segments by the words of the hardware's manual; docs/wire-mlx5.md has the layouts.
#pragma once

#include <infiniband/verbs.h>

enum { MLX5_RCV_DBR = 0, MLX5_SND_DBR = 1, MLX5_SEND_WQE_SHIFT = 6 };
enum { MLX5_WQE_CTRL_SOLICITED = 2, MLX5_WQE_CTRL_CQ_UPDATE = 8 };

struct mlx5dv_qp;
struct mlx5dv_mkey;
struct mlx5dv_cq {
  void* buf;
  uint32_t* dbrec;
  uint32_t cqe_cnt;
  uint32_t cqe_size;
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
