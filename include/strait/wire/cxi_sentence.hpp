// SPDX-License-Identifier: Apache-2.0
// What a CXI return code means, for the one who has to do something about it. There is no public text about most of
// them: where public code does nothing with a code, the sentence says what its name says.
#pragma once

#include "strait/wire/cxi_values.hpp"

namespace strait::wire::cxi {

STRAIT_HD constexpr const char* sentence(ReturnCode code) {
  switch (code) {
    case ReturnCode::no_event: return "there is no event here";
    case ReturnCode::ok: return "the operation succeeded";
    case ReturnCode::undeliverable: return "the peer did not answer; it is gone, unreachable or was reset";
    case ReturnCode::pt_disabled: return "the peer's portal entry is disabled; it enables it when it has room again";
    case ReturnCode::dropped: return "the message was dropped at the target";
    case ReturnCode::perm_violation: return "the target does not take this from us: the match id is another's";
    case ReturnCode::op_violation: return "the target's list entry does not allow this operation, or not that far";
    case ReturnCode::no_match: return "no list entry of the target matches; check match bits and that it is appended";
    case ReturnCode::uncor:
    case ReturnCode::uncor_transient: return "the NIC met a memory error it could not correct";
    case ReturnCode::no_space: return "the target has no list entry left";
    case ReturnCode::entry_not_found: return "there is no list entry with that buffer id to unlink";
    case ReturnCode::no_target_conn:
    case ReturnCode::no_target_mst:
    case ReturnCode::no_target_trs:
    case ReturnCode::no_matching_conn:
    case ReturnCode::no_matching_trs:
    case ReturnCode::no_matching_mst:
    case ReturnCode::resource_busy:
    case ReturnCode::trs_pend_rsp: return "the target NIC had no room for the connection or the message; try again";
    case ReturnCode::sequence_error: return "a packet was lost or came twice; the retry handler did not mend it";
    case ReturnCode::invalid_dfa_format: return "the fabric address has no known format";
    case ReturnCode::vni_not_found: return "the target does not know this VNI; both sides need the same";
    case ReturnCode::ptlte_not_found: return "nothing is mapped at that PID and index of the target";
    case ReturnCode::ptlte_sw_managed: return "the target's portal entry is managed by its software now; try again";
    case ReturnCode::src_error: return "the initiator failed while it sent";
    case ReturnCode::mst_cancelled:
    case ReturnCode::canceled: return "the operation was cancelled";
    case ReturnCode::hrp_config_error:
    case ReturnCode::hrp_rsp_error:
    case ReturnCode::hrp_rsp_discard:
      return "the fabric refused the reply of a high-rate put; use another traffic class";
    case ReturnCode::invalid_ac: return "the address context does not exist; the memory was unmapped";
    case ReturnCode::page_perm_error:
      return "the memory is not mapped for this direction; map it for reading or writing";
    case ReturnCode::ats_error:
    case ReturnCode::page_req_error: return "the host could not translate the address";
    case ReturnCode::no_translation: return "the address is not mapped for the NIC";
    case ReturnCode::flush_translation: return "the translation went away during the operation";
    case ReturnCode::pcie_error_poisoned:
    case ReturnCode::pcie_unsuccess_cmpl: return "an access over PCIe failed";
    case ReturnCode::amo_inval_op_error: return "this atomic operation does not exist for this type";
    case ReturnCode::amo_align_error: return "an atomic needs an address that is a multiple of its size";
    case ReturnCode::amo_length_error: return "the length of an atomic is not that of its type";
    case ReturnCode::amo_fp_invalid:
    case ReturnCode::amo_fp_underflow:
    case ReturnCode::amo_fp_overflow:
    case ReturnCode::amo_fp_inexact: return "the floating-point result of an atomic was signalled, as the target asked";
    case ReturnCode::illegal_op: return "the command is not allowed on this queue";
    case ReturnCode::invalid_endpoint: return "the endpoint of the fabric address is out of range";
    case ReturnCode::restricted_unicast: return "the target's entry manages its own offset and takes no restricted put";
    case ReturnCode::cmd_align_error: return "the command does not lie on a multiple of its size";
    case ReturnCode::cmd_invalid_arg: return "a field of the command has a value it cannot have";
    case ReturnCode::invalid_event: return "the command asks for events it cannot make";
    case ReturnCode::addr_out_of_range: return "the address is outside the address context";
    case ReturnCode::conn_closed: return "the connection to the target is closed";
    case ReturnCode::delayed: return "the target will answer later";
    case ReturnCode::pktbuf_error: return "the NIC's packet buffer had an error";
  }
  return "the device reported a return code that is not known to this version";
}

}  // namespace strait::wire::cxi
