// SPDX-License-Identifier: Apache-2.0
// Our CXI commands, events and status words, field by field, against bytes that the public headers made.
#include "strait/wire/cxi.hpp"

#include <gtest/gtest.h>

#include "cxi_fields.hpp"

namespace {

using namespace strait::wire::cxi;
using namespace cxi_fields;

void compare_commands(Comparison& c) {
  c.check<NomatchDmaCmd>(
      "NomatchDmaCmd",
      {header<NomatchDmaCmd>(),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::index_ext, &NomatchDmaCmd::set_index_ext>("index_ext"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::lac, &NomatchDmaCmd::set_lac>("lac"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::event_send_disable, &NomatchDmaCmd::set_event_send_disable>(
           "event_send_disable"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::event_success_disable, &NomatchDmaCmd::set_event_success_disable>(
           "event_success_disable"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::event_ct_send, &NomatchDmaCmd::set_event_ct_send>("event_ct_send"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::event_ct_reply, &NomatchDmaCmd::set_event_ct_reply>("event_ct_reply"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::event_ct_ack, &NomatchDmaCmd::set_event_ct_ack>("event_ct_ack"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::event_ct_bytes, &NomatchDmaCmd::set_event_ct_bytes>("event_ct_bytes"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::get_with_local_flag, &NomatchDmaCmd::set_get_with_local_flag>(
           "get_with_local_flag"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::restricted, &NomatchDmaCmd::set_restricted>("restricted"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::reduction, &NomatchDmaCmd::set_reduction>("reduction"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::flush, &NomatchDmaCmd::set_flush>("flush"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::use_offset_for_get, &NomatchDmaCmd::set_use_offset_for_get>(
           "use_offset_for_get"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::dfa, &NomatchDmaCmd::set_dfa>("dfa"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::remote_offset, &NomatchDmaCmd::set_remote_offset>("remote_offset"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::local_addr, &NomatchDmaCmd::set_local_addr>("local_addr"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::request_len, &NomatchDmaCmd::set_request_len>("request_len"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::ct, &NomatchDmaCmd::set_ct>("ct"),
       accessor<NomatchDmaCmd, &NomatchDmaCmd::eq, &NomatchDmaCmd::set_eq>("eq")});
  c.check<FullDmaCmd>(
      "FullDmaCmd",
      {header<FullDmaCmd>(),
       accessor<FullDmaCmd, &FullDmaCmd::index_ext, &FullDmaCmd::set_index_ext>("index_ext"),
       accessor<FullDmaCmd, &FullDmaCmd::lac, &FullDmaCmd::set_lac>("lac"),
       accessor<FullDmaCmd, &FullDmaCmd::event_send_disable, &FullDmaCmd::set_event_send_disable>("event_send_disable"),
       accessor<FullDmaCmd, &FullDmaCmd::event_success_disable, &FullDmaCmd::set_event_success_disable>(
           "event_success_disable"),
       accessor<FullDmaCmd, &FullDmaCmd::event_ct_send, &FullDmaCmd::set_event_ct_send>("event_ct_send"),
       accessor<FullDmaCmd, &FullDmaCmd::event_ct_reply, &FullDmaCmd::set_event_ct_reply>("event_ct_reply"),
       accessor<FullDmaCmd, &FullDmaCmd::event_ct_ack, &FullDmaCmd::set_event_ct_ack>("event_ct_ack"),
       accessor<FullDmaCmd, &FullDmaCmd::event_ct_bytes, &FullDmaCmd::set_event_ct_bytes>("event_ct_bytes"),
       accessor<FullDmaCmd, &FullDmaCmd::get_with_local_flag, &FullDmaCmd::set_get_with_local_flag>(
           "get_with_local_flag"),
       accessor<FullDmaCmd, &FullDmaCmd::restricted, &FullDmaCmd::set_restricted>("restricted"),
       accessor<FullDmaCmd, &FullDmaCmd::reduction, &FullDmaCmd::set_reduction>("reduction"),
       accessor<FullDmaCmd, &FullDmaCmd::flush, &FullDmaCmd::set_flush>("flush"),
       accessor<FullDmaCmd, &FullDmaCmd::use_offset_for_get, &FullDmaCmd::set_use_offset_for_get>("use_offset_for_get"),
       accessor<FullDmaCmd, &FullDmaCmd::dfa, &FullDmaCmd::set_dfa>("dfa"),
       accessor<FullDmaCmd, &FullDmaCmd::remote_offset, &FullDmaCmd::set_remote_offset>("remote_offset"),
       accessor<FullDmaCmd, &FullDmaCmd::local_addr, &FullDmaCmd::set_local_addr>("local_addr"),
       accessor<FullDmaCmd, &FullDmaCmd::request_len, &FullDmaCmd::set_request_len>("request_len"),
       accessor<FullDmaCmd, &FullDmaCmd::ct, &FullDmaCmd::set_ct>("ct"),
       accessor<FullDmaCmd, &FullDmaCmd::eq, &FullDmaCmd::set_eq>("eq"),
       accessor<FullDmaCmd, &FullDmaCmd::eager_length, &FullDmaCmd::set_eager_length>("eager_length"),
       accessor<FullDmaCmd, &FullDmaCmd::rendezvous_id, &FullDmaCmd::set_rendezvous_id>("rendezvous_id"),
       accessor<FullDmaCmd, &FullDmaCmd::initiator, &FullDmaCmd::set_initiator>("initiator"),
       accessor<FullDmaCmd, &FullDmaCmd::match_bits, &FullDmaCmd::set_match_bits>("match_bits"),
       accessor<FullDmaCmd, &FullDmaCmd::header_data, &FullDmaCmd::set_header_data>("header_data"),
       accessor<FullDmaCmd, &FullDmaCmd::user_ptr, &FullDmaCmd::set_user_ptr>("user_ptr")});
  c.check<AmoDmaCmd>(
      "AmoDmaCmd",
      {header<AmoDmaCmd>(),
       accessor<AmoDmaCmd, &AmoDmaCmd::index_ext, &AmoDmaCmd::set_index_ext>("index_ext"),
       accessor<AmoDmaCmd, &AmoDmaCmd::lac, &AmoDmaCmd::set_lac>("lac"),
       accessor<AmoDmaCmd, &AmoDmaCmd::event_send_disable, &AmoDmaCmd::set_event_send_disable>("event_send_disable"),
       accessor<AmoDmaCmd, &AmoDmaCmd::event_success_disable, &AmoDmaCmd::set_event_success_disable>(
           "event_success_disable"),
       accessor<AmoDmaCmd, &AmoDmaCmd::event_ct_send, &AmoDmaCmd::set_event_ct_send>("event_ct_send"),
       accessor<AmoDmaCmd, &AmoDmaCmd::event_ct_reply, &AmoDmaCmd::set_event_ct_reply>("event_ct_reply"),
       accessor<AmoDmaCmd, &AmoDmaCmd::event_ct_ack, &AmoDmaCmd::set_event_ct_ack>("event_ct_ack"),
       accessor<AmoDmaCmd, &AmoDmaCmd::event_ct_bytes, &AmoDmaCmd::set_event_ct_bytes>("event_ct_bytes"),
       accessor<AmoDmaCmd, &AmoDmaCmd::get_with_local_flag, &AmoDmaCmd::set_get_with_local_flag>("get_with_local_flag"),
       accessor<AmoDmaCmd, &AmoDmaCmd::restricted, &AmoDmaCmd::set_restricted>("restricted"),
       accessor<AmoDmaCmd, &AmoDmaCmd::reduction, &AmoDmaCmd::set_reduction>("reduction"),
       accessor<AmoDmaCmd, &AmoDmaCmd::flush, &AmoDmaCmd::set_flush>("flush"),
       accessor<AmoDmaCmd, &AmoDmaCmd::use_offset_for_get, &AmoDmaCmd::set_use_offset_for_get>("use_offset_for_get"),
       accessor<AmoDmaCmd, &AmoDmaCmd::dfa, &AmoDmaCmd::set_dfa>("dfa"),
       accessor<AmoDmaCmd, &AmoDmaCmd::remote_offset, &AmoDmaCmd::set_remote_offset>("remote_offset"),
       accessor<AmoDmaCmd, &AmoDmaCmd::local_addr, &AmoDmaCmd::set_local_addr>("local_addr"),
       accessor<AmoDmaCmd, &AmoDmaCmd::request_len, &AmoDmaCmd::set_request_len>("request_len"),
       accessor<AmoDmaCmd, &AmoDmaCmd::ct, &AmoDmaCmd::set_ct>("ct"),
       accessor<AmoDmaCmd, &AmoDmaCmd::eq, &AmoDmaCmd::set_eq>("eq"),
       accessor<AmoDmaCmd, &AmoDmaCmd::initiator, &AmoDmaCmd::set_initiator>("initiator"),
       accessor<AmoDmaCmd, &AmoDmaCmd::match_bits, &AmoDmaCmd::set_match_bits>("match_bits"),
       accessor<AmoDmaCmd, &AmoDmaCmd::header_data, &AmoDmaCmd::set_header_data>("header_data"),
       accessor<AmoDmaCmd, &AmoDmaCmd::user_ptr, &AmoDmaCmd::set_user_ptr>("user_ptr"),
       accessor<AmoDmaCmd, &AmoDmaCmd::local_write_addr, &AmoDmaCmd::set_local_write_addr>("local_write_addr"),
       accessor<AmoDmaCmd, &AmoDmaCmd::atomic_op, &AmoDmaCmd::set_atomic_op>("atomic_op"),
       accessor<AmoDmaCmd, &AmoDmaCmd::atomic_type, &AmoDmaCmd::set_atomic_type>("atomic_type"),
       accessor<AmoDmaCmd, &AmoDmaCmd::cswap_op, &AmoDmaCmd::set_cswap_op>("cswap_op"),
       accessor<AmoDmaCmd, &AmoDmaCmd::write_lac, &AmoDmaCmd::set_write_lac>("write_lac"),
       accessor<AmoDmaCmd, &AmoDmaCmd::op2_word1, &AmoDmaCmd::set_op2_word1>("op2_word1"),
       accessor<AmoDmaCmd, &AmoDmaCmd::op2_word2, &AmoDmaCmd::set_op2_word2>("op2_word2")});
  c.check<CStateCmd>(
      "CStateCmd",
      {header<CStateCmd>(), accessor<CStateCmd, &CStateCmd::length, &CStateCmd::set_length>("length"),
       accessor<CStateCmd, &CStateCmd::write_lac, &CStateCmd::set_write_lac>("write_lac"),
       accessor<CStateCmd, &CStateCmd::event_send_disable, &CStateCmd::set_event_send_disable>("event_send_disable"),
       accessor<CStateCmd, &CStateCmd::event_success_disable, &CStateCmd::set_event_success_disable>(
           "event_success_disable"),
       accessor<CStateCmd, &CStateCmd::event_ct_send, &CStateCmd::set_event_ct_send>("event_ct_send"),
       accessor<CStateCmd, &CStateCmd::event_ct_reply, &CStateCmd::set_event_ct_reply>("event_ct_reply"),
       accessor<CStateCmd, &CStateCmd::event_ct_ack, &CStateCmd::set_event_ct_ack>("event_ct_ack"),
       accessor<CStateCmd, &CStateCmd::event_ct_bytes, &CStateCmd::set_event_ct_bytes>("event_ct_bytes"),
       accessor<CStateCmd, &CStateCmd::get_with_local_flag, &CStateCmd::set_get_with_local_flag>("get_with_local_flag"),
       accessor<CStateCmd, &CStateCmd::restricted, &CStateCmd::set_restricted>("restricted"),
       accessor<CStateCmd, &CStateCmd::reduction, &CStateCmd::set_reduction>("reduction"),
       accessor<CStateCmd, &CStateCmd::flush, &CStateCmd::set_flush>("flush"),
       accessor<CStateCmd, &CStateCmd::use_offset_for_get, &CStateCmd::set_use_offset_for_get>("use_offset_for_get"),
       accessor<CStateCmd, &CStateCmd::initiator, &CStateCmd::set_initiator>("initiator"),
       accessor<CStateCmd, &CStateCmd::index_ext, &CStateCmd::set_index_ext>("index_ext"),
       accessor<CStateCmd, &CStateCmd::user_ptr, &CStateCmd::set_user_ptr>("user_ptr"),
       accessor<CStateCmd, &CStateCmd::ct, &CStateCmd::set_ct>("ct"),
       accessor<CStateCmd, &CStateCmd::eq, &CStateCmd::set_eq>("eq")});
  c.check<IdcHeader>("IdcHeader",
                     {header<IdcHeader>(), accessor<IdcHeader, &IdcHeader::length, &IdcHeader::set_length>("length"),
                      accessor<IdcHeader, &IdcHeader::dfa, &IdcHeader::set_dfa>("dfa"),
                      accessor<IdcHeader, &IdcHeader::remote_offset, &IdcHeader::set_remote_offset>("remote_offset")});
  c.check<IdcSmallAmoCmd>(
      "IdcSmallAmoCmd",
      {header<IdcSmallAmoCmd>(),
       accessor<IdcSmallAmoCmd, &IdcSmallAmoCmd::length, &IdcSmallAmoCmd::set_length>("length"),
       accessor<IdcSmallAmoCmd, &IdcSmallAmoCmd::dfa, &IdcSmallAmoCmd::set_dfa>("dfa"),
       accessor<IdcSmallAmoCmd, &IdcSmallAmoCmd::remote_offset, &IdcSmallAmoCmd::set_remote_offset>("remote_offset"),
       accessor<IdcSmallAmoCmd, &IdcSmallAmoCmd::atomic_op, &IdcSmallAmoCmd::set_atomic_op>("atomic_op"),
       accessor<IdcSmallAmoCmd, &IdcSmallAmoCmd::atomic_type, &IdcSmallAmoCmd::set_atomic_type>("atomic_type"),
       accessor<IdcSmallAmoCmd, &IdcSmallAmoCmd::op1_word1, &IdcSmallAmoCmd::set_op1_word1>("op1_word1")});
  c.check<IdcAmoCmd>("IdcAmoCmd",
                     {header<IdcAmoCmd>(), accessor<IdcAmoCmd, &IdcAmoCmd::length, &IdcAmoCmd::set_length>("length"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::dfa, &IdcAmoCmd::set_dfa>("dfa"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::remote_offset, &IdcAmoCmd::set_remote_offset>("remote_offset"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::local_addr, &IdcAmoCmd::set_local_addr>("local_addr"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::atomic_op, &IdcAmoCmd::set_atomic_op>("atomic_op"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::atomic_type, &IdcAmoCmd::set_atomic_type>("atomic_type"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::cswap_op, &IdcAmoCmd::set_cswap_op>("cswap_op"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::op1_word1, &IdcAmoCmd::set_op1_word1>("op1_word1"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::op1_word2, &IdcAmoCmd::set_op1_word2>("op1_word2"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::op2_word1, &IdcAmoCmd::set_op2_word1>("op2_word1"),
                      accessor<IdcAmoCmd, &IdcAmoCmd::op2_word2, &IdcAmoCmd::set_op2_word2>("op2_word2")});
  c.check<IdcMsgHeader>(
      "IdcMsgHeader",
      {header<IdcMsgHeader>(), accessor<IdcMsgHeader, &IdcMsgHeader::length, &IdcMsgHeader::set_length>("length"),
       accessor<IdcMsgHeader, &IdcMsgHeader::dfa, &IdcMsgHeader::set_dfa>("dfa"),
       accessor<IdcMsgHeader, &IdcMsgHeader::match_bits, &IdcMsgHeader::set_match_bits>("match_bits"),
       accessor<IdcMsgHeader, &IdcMsgHeader::header_data, &IdcMsgHeader::set_header_data>("header_data"),
       accessor<IdcMsgHeader, &IdcMsgHeader::user_ptr, &IdcMsgHeader::set_user_ptr>("user_ptr")});
  c.check<CtCmd>("CtCmd", {header<CtCmd>(), accessor<CtCmd, &CtCmd::ct, &CtCmd::set_ct>("ct"),
                           accessor<CtCmd, &CtCmd::trig_ct, &CtCmd::set_trig_ct>("trig_ct"),
                           accessor<CtCmd, &CtCmd::eq, &CtCmd::set_eq>("eq"),
                           accessor<CtCmd, &CtCmd::ct_success, &CtCmd::set_ct_success>("ct_success"),
                           accessor<CtCmd, &CtCmd::ct_failure, &CtCmd::set_ct_failure>("ct_failure"),
                           accessor<CtCmd, &CtCmd::with_success, &CtCmd::set_with_success>("with_success"),
                           accessor<CtCmd, &CtCmd::with_failure, &CtCmd::set_with_failure>("with_failure"),
                           accessor<CtCmd, &CtCmd::threshold, &CtCmd::set_threshold>("threshold")});
  c.check<CqCmd>("CqCmd", {header<CqCmd>(), accessor<CqCmd, &CqCmd::lcid, &CqCmd::set_lcid>("lcid")});
  c.check<TargetCmd>(
      "TargetCmd",
      {header<TargetCmd>(),
       accessor<TargetCmd, &TargetCmd::ptl_list, &TargetCmd::set_ptl_list>("ptl_list"),
       accessor<TargetCmd, &TargetCmd::ptlte_index, &TargetCmd::set_ptlte_index>("ptlte_index"),
       accessor<TargetCmd, &TargetCmd::event_ct_bytes, &TargetCmd::set_event_ct_bytes>("event_ct_bytes"),
       accessor<TargetCmd, &TargetCmd::event_ct_overflow, &TargetCmd::set_event_ct_overflow>("event_ct_overflow"),
       accessor<TargetCmd, &TargetCmd::event_ct_comm, &TargetCmd::set_event_ct_comm>("event_ct_comm"),
       accessor<TargetCmd, &TargetCmd::event_unlink_disable, &TargetCmd::set_event_unlink_disable>(
           "event_unlink_disable"),
       accessor<TargetCmd, &TargetCmd::event_success_disable, &TargetCmd::set_event_success_disable>(
           "event_success_disable"),
       accessor<TargetCmd, &TargetCmd::event_comm_disable, &TargetCmd::set_event_comm_disable>("event_comm_disable"),
       accessor<TargetCmd, &TargetCmd::event_link_disable, &TargetCmd::set_event_link_disable>("event_link_disable"),
       accessor<TargetCmd, &TargetCmd::unrestricted_end_ro, &TargetCmd::set_unrestricted_end_ro>("unrestricted_end_ro"),
       accessor<TargetCmd, &TargetCmd::unrestricted_body_ro, &TargetCmd::set_unrestricted_body_ro>(
           "unrestricted_body_ro"),
       accessor<TargetCmd, &TargetCmd::unexpected_hdr_disable, &TargetCmd::set_unexpected_hdr_disable>(
           "unexpected_hdr_disable"),
       accessor<TargetCmd, &TargetCmd::use_once, &TargetCmd::set_use_once>("use_once"),
       accessor<TargetCmd, &TargetCmd::no_truncate, &TargetCmd::set_no_truncate>("no_truncate"),
       accessor<TargetCmd, &TargetCmd::manage_local, &TargetCmd::set_manage_local>("manage_local"),
       accessor<TargetCmd, &TargetCmd::op_get, &TargetCmd::set_op_get>("op_get"),
       accessor<TargetCmd, &TargetCmd::op_put, &TargetCmd::set_op_put>("op_put"),
       accessor<TargetCmd, &TargetCmd::ct, &TargetCmd::set_ct>("ct"),
       accessor<TargetCmd, &TargetCmd::buffer_id, &TargetCmd::set_buffer_id>("buffer_id"),
       accessor<TargetCmd, &TargetCmd::lac, &TargetCmd::set_lac>("lac"),
       accessor<TargetCmd, &TargetCmd::restart_seq, &TargetCmd::set_restart_seq>("restart_seq"),
       accessor<TargetCmd, &TargetCmd::start, &TargetCmd::set_start>("start"),
       accessor<TargetCmd, &TargetCmd::length, &TargetCmd::set_length>("length"),
       accessor<TargetCmd, &TargetCmd::min_free, &TargetCmd::set_min_free>("min_free"),
       accessor<TargetCmd, &TargetCmd::match_id, &TargetCmd::set_match_id>("match_id"),
       accessor<TargetCmd, &TargetCmd::match_bits, &TargetCmd::set_match_bits>("match_bits"),
       accessor<TargetCmd, &TargetCmd::ignore_bits, &TargetCmd::set_ignore_bits>("ignore_bits")});
  c.check<SetStateCmd>(
      "SetStateCmd", {header<SetStateCmd>(),
                      accessor<SetStateCmd, &SetStateCmd::ptlte_state, &SetStateCmd::set_ptlte_state>("ptlte_state"),
                      accessor<SetStateCmd, &SetStateCmd::ptlte_index, &SetStateCmd::set_ptlte_index>("ptlte_index"),
                      accessor<SetStateCmd, &SetStateCmd::current_addr, &SetStateCmd::set_current_addr>("current_addr"),
                      accessor<SetStateCmd, &SetStateCmd::drop_count, &SetStateCmd::set_drop_count>("drop_count")});
}

void compare_words(Comparison& c) {
  c.check<QueueStatus>(
      "QueueStatus",
      {accessor<QueueStatus, &QueueStatus::rd_ptr, &QueueStatus::set_rd_ptr>("rd_ptr"),
       accessor<QueueStatus, &QueueStatus::num_write_cmds_rejected, &QueueStatus::set_num_write_cmds_rejected>(
           "num_write_cmds_rejected"),
       accessor<QueueStatus, &QueueStatus::fail_command, &QueueStatus::set_fail_command>("fail_command"),
       accessor<QueueStatus, &QueueStatus::return_code, &QueueStatus::set_return_code>("return_code"),
       accessor<QueueStatus, &QueueStatus::fail_loc_32, &QueueStatus::set_fail_loc_32>("fail_loc_32"),
       accessor<QueueStatus, &QueueStatus::fail_ll, &QueueStatus::set_fail_ll>("fail_ll"),
       accessor<QueueStatus, &QueueStatus::ll_disabled, &QueueStatus::set_ll_disabled>("ll_disabled")});
  c.check<CtWriteback>("CtWriteback",
                       {accessor<CtWriteback, &CtWriteback::success, &CtWriteback::set_success>("success"),
                        accessor<CtWriteback, &CtWriteback::failure, &CtWriteback::set_failure>("failure"),
                        accessor<CtWriteback, &CtWriteback::written, &CtWriteback::set_written>("written")});
  c.check<EqSwState>(
      "EqSwState",
      {accessor<EqSwState, &EqSwState::rd_ptr, &EqSwState::set_rd_ptr>("rd_ptr"),
       accessor<EqSwState, &EqSwState::reading_buffer_b, &EqSwState::set_reading_buffer_b>("reading_buffer_b"),
       accessor<EqSwState, &EqSwState::event_int_disable, &EqSwState::set_event_int_disable>("event_int_disable"),
       accessor<EqSwState, &EqSwState::eq_sts_int_disable, &EqSwState::set_eq_sts_int_disable>("eq_sts_int_disable"),
       accessor<EqSwState, &EqSwState::event_drop_seq_no, &EqSwState::set_event_drop_seq_no>("event_drop_seq_no")});
  c.check<EqStatus>(
      "EqStatus",
      {accessor<EqStatus, &EqStatus::timestamp_ns_copy, &EqStatus::set_timestamp_ns_copy>("timestamp_ns_copy"),
       accessor<EqStatus, &EqStatus::timestamp_sec_copy, &EqStatus::set_timestamp_sec_copy>("timestamp_sec_copy"),
       accessor<EqStatus, &EqStatus::thld_sts, &EqStatus::set_thld_sts>("thld_sts"),
       accessor<EqStatus, &EqStatus::thld_id, &EqStatus::set_thld_id>("thld_id"),
       accessor<EqStatus, &EqStatus::unackd_dropped_event, &EqStatus::set_unackd_dropped_event>("unackd_dropped_event"),
       accessor<EqStatus, &EqStatus::event_drop_seq_no, &EqStatus::set_event_drop_seq_no>("event_drop_seq_no"),
       accessor<EqStatus, &EqStatus::event_slots_free, &EqStatus::set_event_slots_free>("event_slots_free"),
       accessor<EqStatus, &EqStatus::event_slots_rsrvd, &EqStatus::set_event_slots_rsrvd>("event_slots_rsrvd"),
       accessor<EqStatus, &EqStatus::wr_ptr, &EqStatus::set_wr_ptr>("wr_ptr"),
       accessor<EqStatus, &EqStatus::using_buffer_b, &EqStatus::set_using_buffer_b>("using_buffer_b"),
       accessor<EqStatus, &EqStatus::timestamp_ns, &EqStatus::set_timestamp_ns>("timestamp_ns"),
       accessor<EqStatus, &EqStatus::timestamp_sec, &EqStatus::set_timestamp_sec>("timestamp_sec")});
}

void compare_events(Comparison& c) {
  c.check<InitiatorShort>(
      "InitiatorShort",
      {accessor<InitiatorShort, &InitiatorShort::user_ptr, &InitiatorShort::set_user_ptr>("user_ptr"),
       accessor<InitiatorShort, &InitiatorShort::mlength, &InitiatorShort::set_mlength>("mlength"),
       accessor<InitiatorShort, &InitiatorShort::ptl_list, &InitiatorShort::set_ptl_list>("ptl_list"),
       accessor<InitiatorShort, &InitiatorShort::rendezvous, &InitiatorShort::set_rendezvous>("rendezvous"),
       accessor<InitiatorShort, &InitiatorShort::retry, &InitiatorShort::set_retry>("retry"),
       accessor<InitiatorShort, &InitiatorShort::tgt_error, &InitiatorShort::set_tgt_error>("tgt_error"),
       accessor<InitiatorShort, &InitiatorShort::event_size, &InitiatorShort::set_event_size>("event_size"),
       accessor<InitiatorShort, &InitiatorShort::event_type, &InitiatorShort::set_event_type>("event_type"),
       accessor<InitiatorShort, &InitiatorShort::return_code, &InitiatorShort::set_return_code>("return_code")});
  c.check<InitiatorLong>(
      "InitiatorLong",
      {accessor<InitiatorLong, &InitiatorLong::user_ptr, &InitiatorLong::set_user_ptr>("user_ptr"),
       accessor<InitiatorLong, &InitiatorLong::mlength, &InitiatorLong::set_mlength>("mlength"),
       accessor<InitiatorLong, &InitiatorLong::ptl_list, &InitiatorLong::set_ptl_list>("ptl_list"),
       accessor<InitiatorLong, &InitiatorLong::rendezvous, &InitiatorLong::set_rendezvous>("rendezvous"),
       accessor<InitiatorLong, &InitiatorLong::retry, &InitiatorLong::set_retry>("retry"),
       accessor<InitiatorLong, &InitiatorLong::tgt_error, &InitiatorLong::set_tgt_error>("tgt_error"),
       accessor<InitiatorLong, &InitiatorLong::event_size, &InitiatorLong::set_event_size>("event_size"),
       accessor<InitiatorLong, &InitiatorLong::event_type, &InitiatorLong::set_event_type>("event_type"),
       accessor<InitiatorLong, &InitiatorLong::return_code, &InitiatorLong::set_return_code>("return_code"),
       accessor<InitiatorLong, &InitiatorLong::timestamp_ns, &InitiatorLong::set_timestamp_ns>("timestamp_ns"),
       accessor<InitiatorLong, &InitiatorLong::timestamp_sec, &InitiatorLong::set_timestamp_sec>("timestamp_sec")});
  c.check<TriggeredShort>(
      "TriggeredShort",
      {accessor<TriggeredShort, &TriggeredShort::threshold, &TriggeredShort::set_threshold>("threshold"),
       accessor<TriggeredShort, &TriggeredShort::ct_handle, &TriggeredShort::set_ct_handle>("ct_handle"),
       accessor<TriggeredShort, &TriggeredShort::event_size, &TriggeredShort::set_event_size>("event_size"),
       accessor<TriggeredShort, &TriggeredShort::event_type, &TriggeredShort::set_event_type>("event_type"),
       accessor<TriggeredShort, &TriggeredShort::return_code, &TriggeredShort::set_return_code>("return_code")});
  c.check<TriggeredLong>(
      "TriggeredLong",
      {accessor<TriggeredLong, &TriggeredLong::threshold, &TriggeredLong::set_threshold>("threshold"),
       accessor<TriggeredLong, &TriggeredLong::ct_handle, &TriggeredLong::set_ct_handle>("ct_handle"),
       accessor<TriggeredLong, &TriggeredLong::event_size, &TriggeredLong::set_event_size>("event_size"),
       accessor<TriggeredLong, &TriggeredLong::event_type, &TriggeredLong::set_event_type>("event_type"),
       accessor<TriggeredLong, &TriggeredLong::return_code, &TriggeredLong::set_return_code>("return_code"),
       accessor<TriggeredLong, &TriggeredLong::timestamp_ns, &TriggeredLong::set_timestamp_ns>("timestamp_ns"),
       accessor<TriggeredLong, &TriggeredLong::timestamp_sec, &TriggeredLong::set_timestamp_sec>("timestamp_sec")});
  c.check<CommandFailure>(
      "CommandFailure",
      {accessor<CommandFailure, &CommandFailure::cq_id, &CommandFailure::set_cq_id>("cq_id"),
       accessor<CommandFailure, &CommandFailure::is_target, &CommandFailure::set_is_target>("is_target"),
       accessor<CommandFailure, &CommandFailure::fail_loc, &CommandFailure::set_fail_loc>("fail_loc"),
       accessor<CommandFailure, &CommandFailure::fail_command, &CommandFailure::set_fail_command>("fail_command"),
       accessor<CommandFailure, &CommandFailure::event_size, &CommandFailure::set_event_size>("event_size"),
       accessor<CommandFailure, &CommandFailure::event_type, &CommandFailure::set_event_type>("event_type"),
       accessor<CommandFailure, &CommandFailure::return_code, &CommandFailure::set_return_code>("return_code")});
  c.check<TargetShort>(
      "TargetShort",
      {accessor<TargetShort, &TargetShort::initiator, &TargetShort::set_initiator>("initiator"),
       accessor<TargetShort, &TargetShort::header_data, &TargetShort::set_header_data>("header_data"),
       accessor<TargetShort, &TargetShort::ptlte_index, &TargetShort::set_ptlte_index>("ptlte_index"),
       accessor<TargetShort, &TargetShort::ptl_list, &TargetShort::set_ptl_list>("ptl_list"),
       accessor<TargetShort, &TargetShort::auto_unlinked, &TargetShort::set_auto_unlinked>("auto_unlinked"),
       accessor<TargetShort, &TargetShort::match_bits, &TargetShort::set_match_bits>("match_bits"),
       accessor<TargetShort, &TargetShort::buffer_id, &TargetShort::set_buffer_id>("buffer_id"),
       accessor<TargetShort, &TargetShort::vni, &TargetShort::set_vni>("vni"),
       accessor<TargetShort, &TargetShort::event_size, &TargetShort::set_event_size>("event_size"),
       accessor<TargetShort, &TargetShort::event_type, &TargetShort::set_event_type>("event_type"),
       accessor<TargetShort, &TargetShort::return_code, &TargetShort::set_return_code>("return_code"),
       accessor<TargetShort, &TargetShort::length, &TargetShort::set_length>("length")});
  c.check<TargetLong>(
      "TargetLong",
      {accessor<TargetLong, &TargetLong::initiator, &TargetLong::set_initiator>("initiator"),
       accessor<TargetLong, &TargetLong::header_data, &TargetLong::set_header_data>("header_data"),
       accessor<TargetLong, &TargetLong::ptlte_index, &TargetLong::set_ptlte_index>("ptlte_index"),
       accessor<TargetLong, &TargetLong::ptl_list, &TargetLong::set_ptl_list>("ptl_list"),
       accessor<TargetLong, &TargetLong::auto_unlinked, &TargetLong::set_auto_unlinked>("auto_unlinked"),
       accessor<TargetLong, &TargetLong::match_bits, &TargetLong::set_match_bits>("match_bits"),
       accessor<TargetLong, &TargetLong::buffer_id, &TargetLong::set_buffer_id>("buffer_id"),
       accessor<TargetLong, &TargetLong::vni, &TargetLong::set_vni>("vni"),
       accessor<TargetLong, &TargetLong::event_size, &TargetLong::set_event_size>("event_size"),
       accessor<TargetLong, &TargetLong::event_type, &TargetLong::set_event_type>("event_type"),
       accessor<TargetLong, &TargetLong::return_code, &TargetLong::set_return_code>("return_code"),
       accessor<TargetLong, &TargetLong::rendezvous, &TargetLong::set_rendezvous>("rendezvous"),
       accessor<TargetLong, &TargetLong::get_issued, &TargetLong::set_get_issued>("get_issued"),
       accessor<TargetLong, &TargetLong::timestamp_ns, &TargetLong::set_timestamp_ns>("timestamp_ns"),
       accessor<TargetLong, &TargetLong::timestamp_sec_low, &TargetLong::set_timestamp_sec_low>("timestamp_sec_low"),
       accessor<TargetLong, &TargetLong::mlength, &TargetLong::set_mlength>("mlength"),
       accessor<TargetLong, &TargetLong::rlength, &TargetLong::set_rlength>("rlength"),
       accessor<TargetLong, &TargetLong::remote_offset, &TargetLong::set_remote_offset>("remote_offset"),
       accessor<TargetLong, &TargetLong::start, &TargetLong::set_start>("start"),
       accessor<TargetLong, &TargetLong::lpe_stat_1, &TargetLong::set_lpe_stat_1>("lpe_stat_1"),
       accessor<TargetLong, &TargetLong::lpe_stat_2, &TargetLong::set_lpe_stat_2>("lpe_stat_2"),
       accessor<TargetLong, &TargetLong::atomic_type, &TargetLong::set_atomic_type>("atomic_type"),
       accessor<TargetLong, &TargetLong::atomic_op, &TargetLong::set_atomic_op>("atomic_op"),
       accessor<TargetLong, &TargetLong::cswap_op, &TargetLong::set_cswap_op>("cswap_op"),
       accessor<TargetLong, &TargetLong::rendezvous_id, &TargetLong::set_rendezvous_id>("rendezvous_id")});
  c.check<TargetLong>("TargetLong/StateChange",
                      {accessor<TargetLong, &TargetLong::ptlte_state, &TargetLong::set_ptlte_state>("ptlte_state"),
                       accessor<TargetLong, &TargetLong::sc_reason, &TargetLong::set_sc_reason>("sc_reason"),
                       accessor<TargetLong, &TargetLong::sc_nic_auto, &TargetLong::set_sc_nic_auto>("sc_nic_auto"),
                       accessor<TargetLong, &TargetLong::ptlte_index, &TargetLong::set_ptlte_index>("ptlte_index"),
                       accessor<TargetLong, &TargetLong::event_size, &TargetLong::set_event_size>("event_size"),
                       accessor<TargetLong, &TargetLong::event_type, &TargetLong::set_event_type>("event_type"),
                       accessor<TargetLong, &TargetLong::return_code, &TargetLong::set_return_code>("return_code")});
  c.check<TargetEthernet>(
      "TargetEthernet",
      {accessor<TargetEthernet, &TargetEthernet::checksum, &TargetEthernet::set_checksum>("checksum"),
       accessor<TargetEthernet, &TargetEthernet::pkt_cnt, &TargetEthernet::set_pkt_cnt>("pkt_cnt"),
       accessor<TargetEthernet, &TargetEthernet::seg_cnt, &TargetEthernet::set_seg_cnt>("seg_cnt"),
       accessor<TargetEthernet, &TargetEthernet::rss_hash_value, &TargetEthernet::set_rss_hash_value>("rss_hash_value"),
       accessor<TargetEthernet, &TargetEthernet::ptlte_index, &TargetEthernet::set_ptlte_index>("ptlte_index"),
       accessor<TargetEthernet, &TargetEthernet::ptl_list, &TargetEthernet::set_ptl_list>("ptl_list"),
       accessor<TargetEthernet, &TargetEthernet::auto_unlinked, &TargetEthernet::set_auto_unlinked>("auto_unlinked"),
       accessor<TargetEthernet, &TargetEthernet::start, &TargetEthernet::set_start>("start"),
       accessor<TargetEthernet, &TargetEthernet::buffer_id, &TargetEthernet::set_buffer_id>("buffer_id"),
       accessor<TargetEthernet, &TargetEthernet::rss_hash_type, &TargetEthernet::set_rss_hash_type>("rss_hash_type"),
       accessor<TargetEthernet, &TargetEthernet::more_frags, &TargetEthernet::set_more_frags>("more_frags"),
       accessor<TargetEthernet, &TargetEthernet::is_roce, &TargetEthernet::set_is_roce>("is_roce"),
       accessor<TargetEthernet, &TargetEthernet::roce_icrc_ok, &TargetEthernet::set_roce_icrc_ok>("roce_icrc_ok"),
       accessor<TargetEthernet, &TargetEthernet::timestamp, &TargetEthernet::set_timestamp>("timestamp"),
       accessor<TargetEthernet, &TargetEthernet::fmt, &TargetEthernet::set_fmt>("fmt"),
       accessor<TargetEthernet, &TargetEthernet::parser_err, &TargetEthernet::set_parser_err>("parser_err"),
       accessor<TargetEthernet, &TargetEthernet::length, &TargetEthernet::set_length>("length"),
       accessor<TargetEthernet, &TargetEthernet::event_size, &TargetEthernet::set_event_size>("event_size"),
       accessor<TargetEthernet, &TargetEthernet::event_type, &TargetEthernet::set_event_type>("event_type"),
       accessor<TargetEthernet, &TargetEthernet::return_code, &TargetEthernet::set_return_code>("return_code")});
  c.check<EthernetFgfc>(
      "EthernetFgfc",
      {accessor<EthernetFgfc, &EthernetFgfc::identifier, &EthernetFgfc::set_identifier>("identifier"),
       accessor<EthernetFgfc, &EthernetFgfc::fgfc_type, &EthernetFgfc::set_fgfc_type>("fgfc_type"),
       accessor<EthernetFgfc, &EthernetFgfc::xoff, &EthernetFgfc::set_xoff>("xoff"),
       accessor<EthernetFgfc, &EthernetFgfc::srcip_tag, &EthernetFgfc::set_srcip_tag>("srcip_tag"),
       accessor<EthernetFgfc, &EthernetFgfc::credits, &EthernetFgfc::set_credits>("credits"),
       accessor<EthernetFgfc, &EthernetFgfc::event_size, &EthernetFgfc::set_event_size>("event_size"),
       accessor<EthernetFgfc, &EthernetFgfc::event_type, &EthernetFgfc::set_event_type>("event_type"),
       accessor<EthernetFgfc, &EthernetFgfc::return_code, &EthernetFgfc::set_return_code>("return_code")});
  c.check<PctEvent>("PctEvent",
                    {accessor<PctEvent, &PctEvent::dfa, &PctEvent::set_dfa>("dfa"),
                     accessor<PctEvent, &PctEvent::seq_num, &PctEvent::set_seq_num>("seq_num"),
                     accessor<PctEvent, &PctEvent::pct_event_type, &PctEvent::set_pct_event_type>("pct_event_type"),
                     accessor<PctEvent, &PctEvent::spt_idx, &PctEvent::set_spt_idx>("spt_idx"),
                     accessor<PctEvent, &PctEvent::tct_idx, &PctEvent::set_tct_idx>("tct_idx"),
                     accessor<PctEvent, &PctEvent::event_size, &PctEvent::set_event_size>("event_size"),
                     accessor<PctEvent, &PctEvent::event_type, &PctEvent::set_event_type>("event_type"),
                     accessor<PctEvent, &PctEvent::return_code, &PctEvent::set_return_code>("return_code")});
  c.check<PctEvent>("PctEvent/Source",
                    {accessor<PctEvent, &PctEvent::sct_idx, &PctEvent::set_sct_idx>("sct_idx"),
                     accessor<PctEvent, &PctEvent::event_size, &PctEvent::set_event_size>("event_size"),
                     accessor<PctEvent, &PctEvent::event_type, &PctEvent::set_event_type>("event_type"),
                     accessor<PctEvent, &PctEvent::return_code, &PctEvent::set_return_code>("return_code")});
  c.check<TimestampEvent>(
      "TimestampEvent",
      {accessor<TimestampEvent, &TimestampEvent::timestamp_ns, &TimestampEvent::set_timestamp_ns>("timestamp_ns"),
       accessor<TimestampEvent, &TimestampEvent::timestamp_sec, &TimestampEvent::set_timestamp_sec>("timestamp_sec"),
       accessor<TimestampEvent, &TimestampEvent::event_size, &TimestampEvent::set_event_size>("event_size"),
       accessor<TimestampEvent, &TimestampEvent::event_type, &TimestampEvent::set_event_type>("event_type"),
       accessor<TimestampEvent, &TimestampEvent::return_code, &TimestampEvent::set_return_code>("return_code")});
  c.check<EventHead>("EventHead",
                     {accessor<EventHead, &EventHead::event_size, &EventHead::set_event_size>("event_size"),
                      accessor<EventHead, &EventHead::event_type, &EventHead::set_event_type>("event_type"),
                      accessor<EventHead, &EventHead::return_code, &EventHead::set_return_code>("return_code")});
}

TEST(CxiWire, EveryFormat) {
  Comparison c{golden_cxi::hardware()};
  compare_commands(c);
  compare_words(c);
  compare_events(c);
  EXPECT_EQ(c.done, golden_cxi::hardware().size());
}

TEST(CxiWire, HeaderByte) {
  for (const golden_cxi::Header& h : golden_cxi::headers()) {
    const auto type = static_cast<CmdType>(h.type);
    const auto size = static_cast<CmdSize>(h.size);
    EXPECT_EQ(header_byte(type, size, static_cast<DmaOp>(h.opcode)), h.byte);
    CqCmd c{};
    c.words[0] = ~std::uint64_t{0};
    c.set_header(type, size, static_cast<CtOp>(h.opcode));
    EXPECT_EQ(c.words[0], ~std::uint64_t{0xff} | h.byte);
    EXPECT_TRUE(c.is(type, static_cast<TargetOp>(h.opcode)));
    EXPECT_EQ(c.cmd_type(), type);
    EXPECT_EQ(c.cmd_size(), size);
    EXPECT_EQ(c.opcode(), h.opcode);
  }
}

TEST(CxiWire, FlagsTogetherAreTheFlagsOneByOne) {
  FullDmaCmd dma{};
  dma.set_flags(kEventSuccessDisable | kEventCtAck | kRestricted | kUseOffsetForGet);
  EXPECT_TRUE(dma.event_success_disable() && dma.event_ct_ack() && dma.restricted() && dma.use_offset_for_get());
  EXPECT_FALSE(dma.event_send_disable() || dma.event_ct_send() || dma.event_ct_reply() || dma.event_ct_bytes());
  EXPECT_FALSE(dma.get_with_local_flag() || dma.reduction() || dma.flush());
  CStateCmd state{};
  state.set_event_send_disable(true);
  state.set_event_ct_send(true);
  state.set_event_ct_reply(true);
  state.set_event_ct_bytes(true);
  state.set_get_with_local_flag(true);
  state.set_reduction(true);
  state.set_flush(true);
  EXPECT_EQ(state.flags(),
            kEventSendDisable | kEventCtSend | kEventCtReply | kEventCtBytes | kGetWithLocalFlag | kReduction | kFlush);
  TargetCmd le{};
  le.set_flags(kLeUseOnce | kLeOpPut | kLeEventCtComm);
  EXPECT_TRUE(le.use_once() && le.op_put() && le.event_ct_comm());
  EXPECT_FALSE(le.op_get() || le.manage_local() || le.no_truncate() || le.event_ct_bytes() || le.event_ct_overflow());
}

TEST(CxiWire, AnEmbeddedCommandKeepsItsOwnHeader) {
  TrigDmaCmd c{};
  c.trigger.set_header(CmdType::ct, CmdSize::b128, CtOp::trig_dma);
  FullDmaCmd put{};
  put.set_header(CmdType::dma, CmdSize::b64, DmaOp::put);
  put.set_user_ptr(0x1122334455667788);
  std::memcpy(c.dma, put.words, sizeof put);
  unsigned char bytes[sizeof c];
  std::memcpy(bytes, &c, sizeof c);
  EXPECT_EQ(bytes[0], 0x5a);
  EXPECT_EQ(bytes[24], 0x15);
  EXPECT_EQ(bytes[24 + 56], 0x88);
  EXPECT_EQ(bytes[24 + 63], 0x11);
}

TEST(CxiWire, TheStatusOfANewRing) {
  EXPECT_EQ(initial_queue_status().word, 0x0001000000000004u);
}

TEST(CxiWire, Addresses) {
  for (const golden_cxi::Address& a : golden_cxi::addresses()) {
    EXPECT_EQ(unicast_dfa(a.nid, endpoint_of(a.pid, a.pid_bits, a.index)), a.dfa);
    EXPECT_EQ(index_ext_of(a.index), a.index_ext);
    EXPECT_EQ(nid_of_dfa(a.dfa), a.nid);
    EXPECT_EQ(pid_of_dfa(a.dfa, a.pid_bits), a.pid);
    EXPECT_EQ(index_of_dfa(a.dfa, a.pid_bits, a.index_ext), a.index);
    EXPECT_EQ(match_id(a.pid_bits, a.pid, a.nid), a.initiator);
    EXPECT_EQ(pid_of_match_id(a.pid_bits, a.initiator), a.pid);
    EXPECT_EQ(endpoint_of_match_id(a.pid_bits, a.initiator), a.nid);
  }
  for (const golden_cxi::Multicast& m : golden_cxi::multicasts()) {
    EXPECT_EQ(multicast_dfa(m.id, m.reduction), m.dfa);
    EXPECT_TRUE(is_multicast(m.dfa));
    EXPECT_EQ(multicast_id_of_dfa(m.dfa), m.id);
    EXPECT_EQ(reduction_id_of_dfa(m.dfa), m.reduction);
    EXPECT_EQ(multicast_pid_offset(m.id, m.index), m.pid_offset);
  }
  EXPECT_FALSE(is_multicast(unicast_dfa(0x12345, 0xfff)));
}

TEST(CxiWire, SizesOfTypesAndEvents) {
  for (unsigned i = 0; i < golden_cxi::atomic_sizes().size(); ++i)
    EXPECT_EQ(bytes_of(static_cast<AtomicType>(i)), golden_cxi::atomic_sizes()[i]) << i;
  EXPECT_EQ(bytes_of(EventSize::none), 0u);
  EXPECT_EQ(bytes_of(EventSize::b16), 16u);
  EXPECT_EQ(bytes_of(EventSize::b32), 32u);
  EXPECT_EQ(bytes_of(EventSize::b64), 64u);
  EXPECT_EQ(bytes_of(CmdSize::b32), 32u);
  EXPECT_EQ(bytes_of(CmdSize::b256), 256u);
}

}  // namespace
