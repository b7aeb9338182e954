// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/syndrome.hpp"

namespace strait::rail::cxi {
namespace m = wire::mlx5;
using wire::cxi::ReturnCode;

m::Syndrome syndrome_of(ReturnCode code) {
  switch (code) {
    case ReturnCode::ok: return m::Syndrome::none;
    // The target was there and said no: no such key, no such right, not inside, or its memory has gone.
    case ReturnCode::no_match:
    case ReturnCode::perm_violation:
    case ReturnCode::op_violation:
    case ReturnCode::addr_out_of_range:
    case ReturnCode::entry_not_found:
    case ReturnCode::no_space:
    case ReturnCode::invalid_ac:
    case ReturnCode::page_perm_error:
    case ReturnCode::no_translation:
    case ReturnCode::ats_error:
    case ReturnCode::page_req_error: return m::Syndrome::remote_access;
    // Nobody is there.
    case ReturnCode::undeliverable:
    case ReturnCode::pt_disabled:
    case ReturnCode::dropped:
    case ReturnCode::no_target_conn:
    case ReturnCode::no_target_mst:
    case ReturnCode::no_target_trs:
    case ReturnCode::sequence_error:
    case ReturnCode::no_matching_conn:
    case ReturnCode::no_matching_trs:
    case ReturnCode::no_matching_mst:
    case ReturnCode::mst_cancelled:
    case ReturnCode::vni_not_found:
    case ReturnCode::ptlte_not_found:
    case ReturnCode::ptlte_sw_managed:
    case ReturnCode::invalid_dfa_format:
    case ReturnCode::invalid_endpoint:
    case ReturnCode::conn_closed:
    case ReturnCode::canceled:
    case ReturnCode::resource_busy: return m::Syndrome::transport_retry_exceeded;
    case ReturnCode::amo_inval_op_error:
    case ReturnCode::amo_align_error:
    case ReturnCode::amo_length_error:
    case ReturnCode::illegal_op:
    case ReturnCode::restricted_unicast: return m::Syndrome::remote_invalid_request;
    // What the device could not read or write here, or a command it could not read.
    case ReturnCode::src_error: return m::Syndrome::local_protection;
    case ReturnCode::cmd_align_error:
    case ReturnCode::cmd_invalid_arg: return m::Syndrome::local_qp_operation;
    default: return m::Syndrome::remote_operation;
  }
}

m::Syndrome receive_syndrome_of(ReturnCode code) {
  switch (code) {
    case ReturnCode::ok: return m::Syndrome::none;
    case ReturnCode::invalid_ac:
    case ReturnCode::page_perm_error:
    case ReturnCode::no_translation:
    case ReturnCode::ats_error:
    case ReturnCode::page_req_error: return m::Syndrome::local_protection;
    default: return m::Syndrome::local_qp_operation;
  }
}

}  // namespace strait::rail::cxi
