// SPDX-License-Identifier: Apache-2.0
// The structures of rdmaxcel.h: the document's, and where that leaves one open, RDMaxcel's own field names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/wire/target.hpp"

// op_type: MLX5_OPCODE_RDMA_WRITE, _RDMA_READ or _SEND. wr_id: the caller's, handed back with the completion; it is not
// an index here. wqe_cnt: the size of the ring, dv_qp->sq.wqe_cnt (rq for a receive), or 0 for "as it was made".
typedef struct {
  uintptr_t laddr;
  uint32_t lkey;
  size_t length;
  uint64_t wr_id;
  bool signaled;
  uint32_t op_type;
  uintptr_t raddr;
  uint32_t rkey;
  uint32_t qp_num;
  uint8_t* buf;
  uint32_t* dbrec;
  uint32_t wqe_cnt;
} wqe_params_t;

// consumer_index: how many completions the caller has taken so far (low 32 bits); another one than the queue's own
// count is refused.
typedef struct {
  uint8_t* cqe_buf;
  uint32_t cqe_size;
  uint32_t consumer_index;
  uint32_t cqe_cnt;
  uint32_t* dbrec;
} cqe_poll_params_t;

typedef enum {
  CQE_POLL_ERROR = -1,  // a work request failed (syndrome), or the poll was refused (status)
  CQE_POLL_FALSE = 0,   // nothing there
  CQE_POLL_TRUE = 1,
} cqe_poll_state_t;

// Compares and switches as the plain enumeration does: `launch_cqe_poll(cq, n) == CQE_POLL_TRUE`.
struct cqe_poll_result_t {
  cqe_poll_state_t state;
  int32_t status;  // RDMAXCEL_SUCCESS, or why the poll was refused, or RDMAXCEL_COMPLETION_FAILED
  uint64_t wr_id;  // of the work request, if wr_id_known
  uint64_t index;  // 64 bits: of its first block in the send ring, or of the receive
  uint32_t qp_num;
  uint32_t byte_count;  // all 32 bits of it
  uint32_t imm;         // as the sender gave it, or the invalidated key
  uint8_t opcode;       // of the completion: 0 ours, 1 write-imm, 2 send, 3 send-imm, 4 send-inval, 13 and 14 errors
  uint8_t send_opcode;  // ours: MLX5_OPCODE_*
  uint8_t syndrome;     // 0 unless the work request failed; strait::wire::mlx5::sentence() says it in words
  uint8_t vendor_syndrome;
  bool wr_id_known;  // false: posted by other means, or on a queue that is not known here

  STRAIT_HD constexpr operator cqe_poll_state_t() const { return state; }
};

// RDMaxcel's selection of create_qp. EFA has no mlx5 rings and is refused here.
typedef enum {
  RDMA_QP_TYPE_STANDARD = 1,
  RDMA_QP_TYPE_MLX5DV = 2,
  RDMA_QP_TYPE_EFA = 3,
} rdma_qp_type_t;

// RDMaxcel's numbers where it has one; from -100 on ours.
typedef enum {
  RDMAXCEL_SUCCESS = 0,
  RDMAXCEL_INVALID_PARAMS = -1,
  RDMAXCEL_COMPLETION_FAILED = -17,
  RDMAXCEL_UNSUPPORTED_OP = -20,
  RDMAXCEL_NULL_ARG = -22,
  RDMAXCEL_QUEUE_UNKNOWN = -100,
  RDMAXCEL_QUEUE_FULL = -101,
  RDMAXCEL_TOO_LONG = -102,
  RDMAXCEL_MIXED_POSTING = -103,
  RDMAXCEL_WRONG_INDEX = -104,
  RDMAXCEL_NOT_REGISTERED = -105,
  RDMAXCEL_LAUNCH_FAILED = -106,
} rdmaxcel_error_code_t;

constexpr const char* rdmaxcel_error_string(int code) {
  switch (code) {
    case RDMAXCEL_SUCCESS: return "no refusal";
    case RDMAXCEL_INVALID_PARAMS: return "doorbell record, ring size or register are not those of the queue";
    case RDMAXCEL_COMPLETION_FAILED: return "the work request failed; its syndrome says why";
    case RDMAXCEL_UNSUPPORTED_OP:
      return "wqe_params_t cannot say this operation; post it with strait/device on rdmaxcel_send_ring()";
    case RDMAXCEL_NULL_ARG: return "a pointer is null";
    case RDMAXCEL_QUEUE_UNKNOWN: return "no queue of that buffer and number; create_mlx5dv_qp() makes it known";
    case RDMAXCEL_QUEUE_FULL: return "the ring is full until a completion is polled; nothing was changed";
    case RDMAXCEL_TOO_LONG: return "longer than one message can be; cut it";
    case RDMAXCEL_MIXED_POSTING: return "somebody else, such as ibv_post_send or ibv_poll_cq, has used this queue too";
    case RDMAXCEL_WRONG_INDEX: return "consumer_index is not the number of completions taken so far";
    case RDMAXCEL_NOT_REGISTERED: return "the queue is not with the GPU; register_cuda_memory() brings it there";
    case RDMAXCEL_LAUNCH_FAILED: return "the kernel did not start; rdmaxcel_last_launch_status() has the CUDA error";
    default: return "not a status of this header";
  }
}
