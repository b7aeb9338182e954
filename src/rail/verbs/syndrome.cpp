// SPDX-License-Identifier: Apache-2.0
#include "rail/verbs/syndrome.hpp"

namespace strait::rail::verbs {
namespace m = wire::mlx5;

m::Syndrome syndrome_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS: return m::Syndrome::none;
    case IBV_WC_LOC_LEN_ERR: return m::Syndrome::local_length;
    case IBV_WC_LOC_PROT_ERR: return m::Syndrome::local_protection;
    case IBV_WC_WR_FLUSH_ERR: return m::Syndrome::flushed;
    case IBV_WC_MW_BIND_ERR: return m::Syndrome::memory_window_bind;
    case IBV_WC_BAD_RESP_ERR: return m::Syndrome::bad_response;
    case IBV_WC_LOC_ACCESS_ERR: return m::Syndrome::local_access;
    case IBV_WC_REM_INV_REQ_ERR: return m::Syndrome::remote_invalid_request;
    case IBV_WC_REM_ACCESS_ERR: return m::Syndrome::remote_access;
    case IBV_WC_REM_OP_ERR: return m::Syndrome::remote_operation;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR: return m::Syndrome::transport_retry_exceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR: return m::Syndrome::rnr_retry_exceeded;
    case IBV_WC_REM_ABORT_ERR: return m::Syndrome::remote_aborted;
    default: return m::Syndrome::local_qp_operation;  // also the device's own troubles: the vendor byte has the number
  }
}

}  // namespace strait::rail::verbs
