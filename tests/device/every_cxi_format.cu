// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: every field of the CXI formats set and read in a kernel, and a put stored in whole words.
#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"
#include "strait/wire/cxi_sentence.hpp"

namespace strait::wire::cxi {

STRAIT_HD inline void every_field(NomatchDmaCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_index_ext(c.index_ext());
  c.set_lac(c.lac());
  c.set_event_send_disable(c.event_send_disable());
  c.set_event_success_disable(c.event_success_disable());
  c.set_event_ct_send(c.event_ct_send());
  c.set_event_ct_reply(c.event_ct_reply());
  c.set_event_ct_ack(c.event_ct_ack());
  c.set_event_ct_bytes(c.event_ct_bytes());
  c.set_get_with_local_flag(c.get_with_local_flag());
  c.set_restricted(c.restricted());
  c.set_reduction(c.reduction());
  c.set_flush(c.flush());
  c.set_use_offset_for_get(c.use_offset_for_get());
  c.set_dfa(c.dfa());
  c.set_remote_offset(c.remote_offset());
  c.set_local_addr(c.local_addr());
  c.set_request_len(c.request_len());
  c.set_ct(c.ct());
  c.set_eq(c.eq());
}

STRAIT_HD inline void every_field(FullDmaCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_index_ext(c.index_ext());
  c.set_lac(c.lac());
  c.set_event_send_disable(c.event_send_disable());
  c.set_event_success_disable(c.event_success_disable());
  c.set_event_ct_send(c.event_ct_send());
  c.set_event_ct_reply(c.event_ct_reply());
  c.set_event_ct_ack(c.event_ct_ack());
  c.set_event_ct_bytes(c.event_ct_bytes());
  c.set_get_with_local_flag(c.get_with_local_flag());
  c.set_restricted(c.restricted());
  c.set_reduction(c.reduction());
  c.set_flush(c.flush());
  c.set_use_offset_for_get(c.use_offset_for_get());
  c.set_dfa(c.dfa());
  c.set_remote_offset(c.remote_offset());
  c.set_local_addr(c.local_addr());
  c.set_request_len(c.request_len());
  c.set_ct(c.ct());
  c.set_eq(c.eq());
  c.set_eager_length(c.eager_length());
  c.set_rendezvous_id(c.rendezvous_id());
  c.set_initiator(c.initiator());
  c.set_match_bits(c.match_bits());
  c.set_header_data(c.header_data());
  c.set_user_ptr(c.user_ptr());
  c.set_flags(c.flags());
}

STRAIT_HD inline void every_field(AmoDmaCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_index_ext(c.index_ext());
  c.set_lac(c.lac());
  c.set_event_send_disable(c.event_send_disable());
  c.set_event_success_disable(c.event_success_disable());
  c.set_event_ct_send(c.event_ct_send());
  c.set_event_ct_reply(c.event_ct_reply());
  c.set_event_ct_ack(c.event_ct_ack());
  c.set_event_ct_bytes(c.event_ct_bytes());
  c.set_get_with_local_flag(c.get_with_local_flag());
  c.set_restricted(c.restricted());
  c.set_reduction(c.reduction());
  c.set_flush(c.flush());
  c.set_use_offset_for_get(c.use_offset_for_get());
  c.set_dfa(c.dfa());
  c.set_remote_offset(c.remote_offset());
  c.set_local_addr(c.local_addr());
  c.set_request_len(c.request_len());
  c.set_ct(c.ct());
  c.set_eq(c.eq());
  c.set_initiator(c.initiator());
  c.set_match_bits(c.match_bits());
  c.set_header_data(c.header_data());
  c.set_user_ptr(c.user_ptr());
  c.set_local_write_addr(c.local_write_addr());
  c.set_atomic_op(c.atomic_op());
  c.set_atomic_type(c.atomic_type());
  c.set_cswap_op(c.cswap_op());
  c.set_write_lac(c.write_lac());
  c.set_op2_word1(c.op2_word1());
  c.set_op2_word2(c.op2_word2());
}

STRAIT_HD inline void every_field(CStateCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_length(c.length());
  c.set_write_lac(c.write_lac());
  c.set_event_send_disable(c.event_send_disable());
  c.set_event_success_disable(c.event_success_disable());
  c.set_event_ct_send(c.event_ct_send());
  c.set_event_ct_reply(c.event_ct_reply());
  c.set_event_ct_ack(c.event_ct_ack());
  c.set_event_ct_bytes(c.event_ct_bytes());
  c.set_get_with_local_flag(c.get_with_local_flag());
  c.set_restricted(c.restricted());
  c.set_reduction(c.reduction());
  c.set_flush(c.flush());
  c.set_use_offset_for_get(c.use_offset_for_get());
  c.set_initiator(c.initiator());
  c.set_index_ext(c.index_ext());
  c.set_user_ptr(c.user_ptr());
  c.set_ct(c.ct());
  c.set_eq(c.eq());
  c.set_flags(c.flags());
}

STRAIT_HD inline void every_field(IdcHeader& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_length(c.length());
  c.set_dfa(c.dfa());
  c.set_remote_offset(c.remote_offset());
}

STRAIT_HD inline void every_field(IdcSmallAmoCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_length(c.length());
  c.set_dfa(c.dfa());
  c.set_remote_offset(c.remote_offset());
  c.set_atomic_op(c.atomic_op());
  c.set_atomic_type(c.atomic_type());
  c.set_op1_word1(c.op1_word1());
}

STRAIT_HD inline void every_field(IdcAmoCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_length(c.length());
  c.set_dfa(c.dfa());
  c.set_remote_offset(c.remote_offset());
  c.set_local_addr(c.local_addr());
  c.set_atomic_op(c.atomic_op());
  c.set_atomic_type(c.atomic_type());
  c.set_cswap_op(c.cswap_op());
  c.set_op1_word1(c.op1_word1());
  c.set_op1_word2(c.op1_word2());
  c.set_op2_word1(c.op2_word1());
  c.set_op2_word2(c.op2_word2());
}

STRAIT_HD inline void every_field(IdcMsgHeader& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_length(c.length());
  c.set_dfa(c.dfa());
  c.set_match_bits(c.match_bits());
  c.set_header_data(c.header_data());
  c.set_user_ptr(c.user_ptr());
}

STRAIT_HD inline void every_field(CtCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_ct(c.ct());
  c.set_trig_ct(c.trig_ct());
  c.set_eq(c.eq());
  c.set_ct_success(c.ct_success());
  c.set_ct_failure(c.ct_failure());
  c.set_with_success(c.with_success());
  c.set_with_failure(c.with_failure());
  c.set_threshold(c.threshold());
}

STRAIT_HD inline void every_field(CqCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_lcid(c.lcid());
}

STRAIT_HD inline void every_field(TargetCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_ptl_list(c.ptl_list());
  c.set_ptlte_index(c.ptlte_index());
  c.set_event_ct_bytes(c.event_ct_bytes());
  c.set_event_ct_overflow(c.event_ct_overflow());
  c.set_event_ct_comm(c.event_ct_comm());
  c.set_event_unlink_disable(c.event_unlink_disable());
  c.set_event_success_disable(c.event_success_disable());
  c.set_event_comm_disable(c.event_comm_disable());
  c.set_event_link_disable(c.event_link_disable());
  c.set_unrestricted_end_ro(c.unrestricted_end_ro());
  c.set_unrestricted_body_ro(c.unrestricted_body_ro());
  c.set_unexpected_hdr_disable(c.unexpected_hdr_disable());
  c.set_use_once(c.use_once());
  c.set_no_truncate(c.no_truncate());
  c.set_manage_local(c.manage_local());
  c.set_op_get(c.op_get());
  c.set_op_put(c.op_put());
  c.set_ct(c.ct());
  c.set_buffer_id(c.buffer_id());
  c.set_lac(c.lac());
  c.set_restart_seq(c.restart_seq());
  c.set_start(c.start());
  c.set_length(c.length());
  c.set_min_free(c.min_free());
  c.set_match_id(c.match_id());
  c.set_match_bits(c.match_bits());
  c.set_ignore_bits(c.ignore_bits());
  c.set_flags(c.flags());
}

STRAIT_HD inline void every_field(SetStateCmd& c) {
  if (c.is(CmdType::dma, DmaOp::noop)) c.set_header(c.cmd_type(), c.cmd_size(), DmaOp::put);
  c.set_ptlte_state(c.ptlte_state());
  c.set_ptlte_index(c.ptlte_index());
  c.set_current_addr(c.current_addr());
  c.set_drop_count(c.drop_count());
}

STRAIT_HD inline void every_field(QueueStatus& c) {
  c.set_rd_ptr(c.rd_ptr());
  c.set_num_write_cmds_rejected(c.num_write_cmds_rejected());
  c.set_fail_command(c.fail_command());
  c.set_return_code(c.return_code());
  c.set_fail_loc_32(c.fail_loc_32());
  c.set_fail_ll(c.fail_ll());
  c.set_ll_disabled(c.ll_disabled());
}

STRAIT_HD inline void every_field(CtWriteback& c) {
  c.set_success(c.success());
  c.set_failure(c.failure());
  c.set_written(c.written());
}

STRAIT_HD inline void every_field(EqSwState& c) {
  c.set_rd_ptr(c.rd_ptr());
  c.set_reading_buffer_b(c.reading_buffer_b());
  c.set_event_int_disable(c.event_int_disable());
  c.set_eq_sts_int_disable(c.eq_sts_int_disable());
  c.set_event_drop_seq_no(c.event_drop_seq_no());
}

STRAIT_HD inline void every_field(EqStatus& c) {
  c.set_timestamp_ns_copy(c.timestamp_ns_copy());
  c.set_timestamp_sec_copy(c.timestamp_sec_copy());
  c.set_thld_sts(c.thld_sts());
  c.set_thld_id(c.thld_id());
  c.set_unackd_dropped_event(c.unackd_dropped_event());
  c.set_event_drop_seq_no(c.event_drop_seq_no());
  c.set_event_slots_free(c.event_slots_free());
  c.set_event_slots_rsrvd(c.event_slots_rsrvd());
  c.set_wr_ptr(c.wr_ptr());
  c.set_using_buffer_b(c.using_buffer_b());
  c.set_timestamp_ns(c.timestamp_ns());
  c.set_timestamp_sec(c.timestamp_sec());
}

STRAIT_HD inline void every_field(InitiatorShort& c) {
  c.set_user_ptr(c.user_ptr());
  c.set_mlength(c.mlength());
  c.set_ptl_list(c.ptl_list());
  c.set_rendezvous(c.rendezvous());
  c.set_retry(c.retry());
  c.set_tgt_error(c.tgt_error());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
}

STRAIT_HD inline void every_field(InitiatorLong& c) {
  c.set_user_ptr(c.user_ptr());
  c.set_mlength(c.mlength());
  c.set_ptl_list(c.ptl_list());
  c.set_rendezvous(c.rendezvous());
  c.set_retry(c.retry());
  c.set_tgt_error(c.tgt_error());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
  c.set_timestamp_ns(c.timestamp_ns());
  c.set_timestamp_sec(c.timestamp_sec());
}

STRAIT_HD inline void every_field(TriggeredShort& c) {
  c.set_threshold(c.threshold());
  c.set_ct_handle(c.ct_handle());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
}

STRAIT_HD inline void every_field(TriggeredLong& c) {
  c.set_threshold(c.threshold());
  c.set_ct_handle(c.ct_handle());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
  c.set_timestamp_ns(c.timestamp_ns());
  c.set_timestamp_sec(c.timestamp_sec());
}

STRAIT_HD inline void every_field(CommandFailure& c) {
  c.set_cq_id(c.cq_id());
  c.set_is_target(c.is_target());
  c.set_fail_loc(c.fail_loc());
  c.set_fail_command(c.fail_command());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
}

STRAIT_HD inline void every_field(TargetShort& c) {
  c.set_initiator(c.initiator());
  c.set_header_data(c.header_data());
  c.set_ptlte_index(c.ptlte_index());
  c.set_ptl_list(c.ptl_list());
  c.set_auto_unlinked(c.auto_unlinked());
  c.set_match_bits(c.match_bits());
  c.set_buffer_id(c.buffer_id());
  c.set_vni(c.vni());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
  c.set_length(c.length());
}

STRAIT_HD inline void every_field(TargetLong& c) {
  c.set_initiator(c.initiator());
  c.set_header_data(c.header_data());
  c.set_ptlte_index(c.ptlte_index());
  c.set_ptl_list(c.ptl_list());
  c.set_auto_unlinked(c.auto_unlinked());
  c.set_match_bits(c.match_bits());
  c.set_buffer_id(c.buffer_id());
  c.set_vni(c.vni());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
  c.set_rendezvous(c.rendezvous());
  c.set_get_issued(c.get_issued());
  c.set_timestamp_ns(c.timestamp_ns());
  c.set_timestamp_sec_low(c.timestamp_sec_low());
  c.set_mlength(c.mlength());
  c.set_rlength(c.rlength());
  c.set_remote_offset(c.remote_offset());
  c.set_start(c.start());
  c.set_lpe_stat_1(c.lpe_stat_1());
  c.set_lpe_stat_2(c.lpe_stat_2());
  c.set_atomic_type(c.atomic_type());
  c.set_atomic_op(c.atomic_op());
  c.set_cswap_op(c.cswap_op());
  c.set_rendezvous_id(c.rendezvous_id());
  c.set_ptlte_state(c.ptlte_state());
  c.set_sc_reason(c.sc_reason());
  c.set_sc_nic_auto(c.sc_nic_auto());
}

STRAIT_HD inline void every_field(TargetEthernet& c) {
  c.set_checksum(c.checksum());
  c.set_pkt_cnt(c.pkt_cnt());
  c.set_seg_cnt(c.seg_cnt());
  c.set_rss_hash_value(c.rss_hash_value());
  c.set_ptlte_index(c.ptlte_index());
  c.set_ptl_list(c.ptl_list());
  c.set_auto_unlinked(c.auto_unlinked());
  c.set_start(c.start());
  c.set_buffer_id(c.buffer_id());
  c.set_rss_hash_type(c.rss_hash_type());
  c.set_more_frags(c.more_frags());
  c.set_is_roce(c.is_roce());
  c.set_roce_icrc_ok(c.roce_icrc_ok());
  c.set_timestamp(c.timestamp());
  c.set_fmt(c.fmt());
  c.set_parser_err(c.parser_err());
  c.set_length(c.length());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
}

STRAIT_HD inline void every_field(EthernetFgfc& c) {
  c.set_identifier(c.identifier());
  c.set_fgfc_type(c.fgfc_type());
  c.set_xoff(c.xoff());
  c.set_srcip_tag(c.srcip_tag());
  c.set_credits(c.credits());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
}

STRAIT_HD inline void every_field(PctEvent& c) {
  c.set_dfa(c.dfa());
  c.set_seq_num(c.seq_num());
  c.set_pct_event_type(c.pct_event_type());
  c.set_spt_idx(c.spt_idx());
  c.set_tct_idx(c.tct_idx());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
  c.set_sct_idx(c.sct_idx());
}

STRAIT_HD inline void every_field(TimestampEvent& c) {
  c.set_timestamp_ns(c.timestamp_ns());
  c.set_timestamp_sec(c.timestamp_sec());
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
}

STRAIT_HD inline void every_field(EventHead& c) {
  c.set_event_size(c.event_size());
  c.set_event_type(c.event_type());
  c.set_return_code(c.return_code());
}

template <class Format>
__global__ void fields_in_a_kernel(Format* format) {
  every_field(*format);
}
template __global__ void fields_in_a_kernel<NomatchDmaCmd>(NomatchDmaCmd*);
template __global__ void fields_in_a_kernel<FullDmaCmd>(FullDmaCmd*);
template __global__ void fields_in_a_kernel<AmoDmaCmd>(AmoDmaCmd*);
template __global__ void fields_in_a_kernel<CStateCmd>(CStateCmd*);
template __global__ void fields_in_a_kernel<IdcHeader>(IdcHeader*);
template __global__ void fields_in_a_kernel<IdcSmallAmoCmd>(IdcSmallAmoCmd*);
template __global__ void fields_in_a_kernel<IdcAmoCmd>(IdcAmoCmd*);
template __global__ void fields_in_a_kernel<IdcMsgHeader>(IdcMsgHeader*);
template __global__ void fields_in_a_kernel<CtCmd>(CtCmd*);
template __global__ void fields_in_a_kernel<CqCmd>(CqCmd*);
template __global__ void fields_in_a_kernel<TargetCmd>(TargetCmd*);
template __global__ void fields_in_a_kernel<SetStateCmd>(SetStateCmd*);
template __global__ void fields_in_a_kernel<QueueStatus>(QueueStatus*);
template __global__ void fields_in_a_kernel<CtWriteback>(CtWriteback*);
template __global__ void fields_in_a_kernel<EqSwState>(EqSwState*);
template __global__ void fields_in_a_kernel<EqStatus>(EqStatus*);
template __global__ void fields_in_a_kernel<InitiatorShort>(InitiatorShort*);
template __global__ void fields_in_a_kernel<InitiatorLong>(InitiatorLong*);
template __global__ void fields_in_a_kernel<TriggeredShort>(TriggeredShort*);
template __global__ void fields_in_a_kernel<TriggeredLong>(TriggeredLong*);
template __global__ void fields_in_a_kernel<CommandFailure>(CommandFailure*);
template __global__ void fields_in_a_kernel<TargetShort>(TargetShort*);
template __global__ void fields_in_a_kernel<TargetLong>(TargetLong*);
template __global__ void fields_in_a_kernel<TargetEthernet>(TargetEthernet*);
template __global__ void fields_in_a_kernel<EthernetFgfc>(EthernetFgfc*);
template __global__ void fields_in_a_kernel<PctEvent>(PctEvent*);
template __global__ void fields_in_a_kernel<TimestampEvent>(TimestampEvent*);
template __global__ void fields_in_a_kernel<EventHead>(EventHead*);

// What a kernel does with a command: built in registers, stored a word at a time.
__global__ void put_in_a_kernel(std::uint64_t* slot, std::uint32_t nid, std::uint32_t pid, std::uint64_t from,
                                std::uint64_t to, std::uint32_t length, std::uint32_t ct) {
  FullDmaCmd put{};
  put.set_header(CmdType::dma, CmdSize::b64, DmaOp::put);
  put.set_flags(kEventSuccessDisable | kEventCtAck);
  put.set_dfa(unicast_dfa(nid, endpoint_of(pid, kMaxPidBits, 40)));
  put.set_index_ext(index_ext_of(40));
  put.set_local_addr(from);
  put.set_remote_offset(to);
  put.set_request_len(length);
  put.set_ct(ct);
  put.set_initiator(match_id(kMaxPidBits, pid, nid));
  for (unsigned i = 0; i < 8; ++i) slot[i] = put.words[i];
}

__global__ void others_in_a_kernel(std::uint32_t* out, std::uint32_t dfa, Op op, AtomicType type) {
  out[0] = nid_of_dfa(dfa) + endpoint_of_dfa(dfa) + pid_of_dfa(dfa, kMaxPidBits) + index_of_dfa(dfa, kMaxPidBits, 1);
  out[1] = is_multicast(dfa) ? multicast_id_of_dfa(dfa) + reduction_id_of_dfa(dfa) : multicast_dfa(dfa, 1);
  out[2] = multicast_pid_offset(dfa, 2) + pid_granule(kMaxPidBits) + low_latency_offset(dfa);
  out[3] = pid_of_match_id(kMaxPidBits, dfa) + endpoint_of_match_id(kMaxPidBits, dfa);
  out[4] = bytes_of(type) + bytes_of(CmdSize::b64) + bytes_of(EventSize::b16);
  out[5] = is_obsolete(op) || is_profile_op(op) ? 1 : static_cast<std::uint32_t>(initial_queue_status().word);
  out[6] = static_cast<std::uint32_t>(sentence(ReturnCode::ok)[0]);
}

}  // namespace strait::wire::cxi
