// SPDX-License-Identifier: Apache-2.0
// Writes ../golden_cxi.hpp and ../golden_cxi_abi.hpp: where the public CXI headers put every field, and bytes that
// their compiler made of them. None of those headers is here; this file has the names of their structs and fields, in
// an order of our own, each beside the name it has in strait/wire. To make the file anew, with the folders that hold
// cassini_user_defs.h, cxi_prov_hw.h and cxi-abi.h:
//
//   cc -w -ICASSINI_HEADERS -ICXI_ABI -o record_cxi record_cxi.c
//   ./record_cxi > ../golden_cxi.hpp && ./record_cxi calls > ../golden_cxi_abi.hpp
//
// Each field is set to all ones alone, to see which bits it has, and then to a value of its own, which goes into the
// bytes. Fields that lie over each other are in cases of their own; two in one case end the program.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cxi-abi.h>
#include <cxi_prov_hw.h>

static unsigned char scratch[512] __attribute__((aligned(16)));
static unsigned char image[512];
static size_t size;
static int column;
static uint64_t seed = 0x243f6a8885a308d3;

static uint64_t next(void) {  // splitmix64
  uint64_t z = seed += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static unsigned bit_at(size_t i) {
  return scratch[i / 8] >> i % 8 & 1;
}

static uint64_t measure(const char* name) {
  size_t first = 0, last = 8 * size;
  while (first < 8 * size && !bit_at(first)) ++first;
  while (last > first && !bit_at(last - 1)) --last;
  size_t width = last - first;
  for (size_t i = first; i < last; ++i)
    if (!bit_at(i)) exit(2);
  if (width == 0 || width > 64) exit(3);
  uint64_t value = (next() | UINT64_C(1) << (width - 1) * (width > 1)) & ~UINT64_C(0) >> (64 - width);
  if (width == 1) value = next() & 1;
  if (column > 80) column = printf("\n       ") - 1;
  column += printf(" {\"%s\", %zu, %zu, 0x%llx},", name, first, width, (unsigned long long)value);
  memset(scratch, 0, sizeof scratch);
  return value;
}

static void merge(void) {
  for (size_t i = 0; i < size; ++i) {
    if (image[i] & scratch[i]) exit(4);
    image[i] |= scratch[i];
  }
  memset(scratch, 0, sizeof scratch);
}

static void begin(const char* name, size_t bytes) {
  size = bytes;
  memset(scratch, 0, sizeof scratch);
  memset(image, 0, sizeof image);
  printf("      {\"%s\", {\n       ", name);
  column = 7;
}

static void end(void) {
  printf("},\n       \"");
  for (size_t i = 0; i < size; ++i) {
    if (i && i % 48 == 0) printf("\"\n       \"");
    printf("%02x", image[i]);
  }
  printf("\"},\n");
}

static void constant(const char* name, uint64_t value) {
  if (column > 80) column = printf("\n     ") - 1;
  column += printf(" {\"%s\", 0x%llx},", name, (unsigned long long)value);
}

// clang-format off
// A number, and anything else of up to eight bytes: a pointer, a union, a struct.
#define NUMBER(name, place) do { x->place = -1; uint64_t v = measure(name); x->place = v; merge(); } while (0)
#define WHOLE(name, place) \
  do { memset(&x->place, 0xff, sizeof x->place); uint64_t v = measure(name); memcpy(&x->place, &v, sizeof x->place); \
       merge(); } while (0)
#define FIRST_BYTE(name, place) \
  do { *(uint8_t*)&(place) = 0xff; uint64_t v = measure(name); *(uint8_t*)&(place) = v; merge(); } while (0)
#define N(field) NUMBER(#field, field)
#define W(field) WHOLE(#field, field)
#define CASE(name, type) { type* x = (type*)scratch; begin(name, sizeof(type));
#define END end(); }
#define C(name) constant(#name, (uint64_t)(name))
#define P(field) \
  do { union { struct cxi_pt_alloc_opts bits; uint64_t number; } u = {.number = 0}; u.bits.field = -1; \
       constant(#field, u.number); } while (0)

struct small_amo {
  struct c_idc_hdr idc_header;
  struct c_small_amo_payload payload;
};

static void commands(void) {
  CASE("NomatchDmaCmd", struct c_nomatch_dma_cmd) WHOLE("header", command); N(index_ext); N(lac);
  N(event_send_disable); N(event_success_disable); N(event_ct_send); N(event_ct_reply); N(event_ct_ack);
  N(event_ct_bytes); N(get_with_local_flag); N(restricted); N(reduction); N(flush); N(use_offset_for_get); W(dfa);
  N(remote_offset); N(local_addr); N(request_len); N(ct); N(eq); END
  CASE("FullDmaCmd", struct c_full_dma_cmd) WHOLE("header", command); N(index_ext); N(lac); N(event_send_disable);
  N(event_success_disable); N(event_ct_send); N(event_ct_reply); N(event_ct_ack); N(event_ct_bytes);
  N(get_with_local_flag); N(restricted); N(reduction); N(flush); N(use_offset_for_get); W(dfa); N(remote_offset);
  N(local_addr); N(request_len); N(ct); N(eq); N(eager_length); N(rendezvous_id); N(initiator); N(match_bits);
  N(header_data); N(user_ptr); END
  CASE("AmoDmaCmd", struct c_dma_amo_cmd) WHOLE("header", command); N(index_ext); N(lac); N(event_send_disable);
  N(event_success_disable); N(event_ct_send); N(event_ct_reply); N(event_ct_ack); N(event_ct_bytes);
  N(get_with_local_flag); N(restricted); N(reduction); N(flush); N(use_offset_for_get); W(dfa); N(remote_offset);
  NUMBER("local_addr", local_read_addr); N(request_len); N(ct); N(eq); N(initiator); N(match_bits); N(header_data);
  N(user_ptr); N(local_write_addr); N(atomic_op); N(atomic_type); N(cswap_op); N(write_lac); N(op2_word1);
  N(op2_word2); END
  CASE("CStateCmd", struct c_cstate_cmd) WHOLE("header", command); N(length); N(write_lac); N(event_send_disable);
  N(event_success_disable); N(event_ct_send); N(event_ct_reply); N(event_ct_ack); N(event_ct_bytes);
  N(get_with_local_flag); N(restricted); N(reduction); N(flush); N(use_offset_for_get); N(initiator); N(index_ext);
  N(user_ptr); N(ct); N(eq); END
  CASE("IdcHeader", struct c_idc_hdr) WHOLE("header", command); N(length); W(dfa); N(remote_offset); END
  CASE("IdcSmallAmoCmd", struct small_amo) WHOLE("header", idc_header.command); NUMBER("length", idc_header.length);
  WHOLE("dfa", idc_header.dfa); NUMBER("remote_offset", idc_header.remote_offset);
  NUMBER("atomic_op", payload.amo_op); NUMBER("atomic_type", payload.amo_type);
  NUMBER("op1_word1", payload.op1_word1); END
  CASE("IdcAmoCmd", struct c_idc_amo_cmd) WHOLE("header", idc_header.command); NUMBER("length", idc_header.length);
  WHOLE("dfa", idc_header.dfa); NUMBER("remote_offset", idc_header.remote_offset); N(local_addr); N(atomic_op);
  N(atomic_type); N(cswap_op); N(op1_word1); N(op1_word2); N(op2_word1); N(op2_word2); END
  CASE("IdcMsgHeader", struct c_idc_msg_hdr) WHOLE("header", command); N(length); W(dfa); N(match_bits);
  N(header_data); N(user_ptr); END
  CASE("CtCmd", struct c_ct_cmd) WHOLE("header", command); N(ct); N(trig_ct); N(eq); N(ct_success); N(ct_failure);
  NUMBER("with_success", set_ct_success); NUMBER("with_failure", set_ct_failure); N(threshold); END
  CASE("CqCmd", struct c_cq_cmd) WHOLE("header", command); N(lcid); END
  CASE("TargetCmd", struct c_target_cmd) WHOLE("header", command); N(ptl_list); N(ptlte_index); N(event_ct_bytes);
  N(event_ct_overflow); N(event_ct_comm); N(event_unlink_disable); N(event_success_disable); N(event_comm_disable);
  N(event_link_disable); N(unrestricted_end_ro); N(unrestricted_body_ro); N(unexpected_hdr_disable); N(use_once);
  N(no_truncate); N(manage_local); N(op_get); N(op_put); N(ct); N(buffer_id); N(lac); N(restart_seq); N(start);
  N(length); N(min_free); N(match_id); N(match_bits); N(ignore_bits); END
  CASE("SetStateCmd", struct c_set_state_cmd) WHOLE("header", command); N(ptlte_state); N(ptlte_index);
  N(current_addr); N(drop_count); END
}

static void words(void) {
  CASE("QueueStatus", struct c_cq_status) N(rd_ptr); N(num_write_cmds_rejected); N(fail_command); N(return_code);
  N(fail_loc_32); N(fail_ll); N(ll_disabled); END
  CASE("CtWriteback", struct c_ct_writeback) NUMBER("success", ct_success); NUMBER("failure", ct_failure);
  NUMBER("written", ct_writeback); END
  CASE("EqSwState", union c_ee_cfg_eq_sw_state) N(rd_ptr); N(reading_buffer_b); N(event_int_disable);
  N(eq_sts_int_disable); N(event_drop_seq_no); END
  CASE("EqStatus", struct c_eq_status) NUMBER("timestamp_ns_copy", timestamp_ns_cpy);
  NUMBER("timestamp_sec_copy", timestamp_sec_cpy); N(thld_sts); N(thld_id); N(unackd_dropped_event);
  N(event_drop_seq_no); N(event_slots_free); N(event_slots_rsrvd); N(wr_ptr); N(using_buffer_b); N(timestamp_ns);
  N(timestamp_sec); END
}

static void events(void) {
  CASE("InitiatorShort", struct c_event_initiator_short) N(user_ptr); N(mlength); N(ptl_list); N(rendezvous);
  N(retry); N(tgt_error); N(event_size); N(event_type); N(return_code); END
  CASE("InitiatorLong", struct c_event_initiator_long) N(user_ptr); N(mlength); N(ptl_list); N(rendezvous); N(retry);
  N(tgt_error); N(event_size); N(event_type); N(return_code); N(timestamp_ns); N(timestamp_sec); END
  CASE("TriggeredShort", struct c_event_trig_op_short) N(threshold); N(ct_handle); N(event_size); N(event_type);
  N(return_code); END
  CASE("TriggeredLong", struct c_event_trig_op_long) N(threshold); N(ct_handle); N(event_size); N(event_type);
  N(return_code); N(timestamp_ns); N(timestamp_sec); END
  CASE("CommandFailure", struct c_event_cmd_fail) N(cq_id); N(is_target); N(fail_loc); W(fail_command);
  N(event_size); N(event_type); N(return_code); END
  CASE("TargetShort", struct c_event_target_short) N(initiator); N(header_data); N(ptlte_index); N(ptl_list);
  N(auto_unlinked); N(match_bits); N(buffer_id); N(vni); N(event_size); N(event_type); N(return_code); N(length); END
  CASE("TargetLong", struct c_event_target_long) WHOLE("initiator", initiator.initiator); N(header_data);
  N(ptlte_index); N(ptl_list); N(auto_unlinked); N(match_bits); N(buffer_id); N(vni); N(event_size); N(event_type);
  N(return_code); N(rendezvous); N(get_issued); N(timestamp_ns); N(timestamp_sec_low); N(mlength); N(rlength);
  N(remote_offset); N(start); N(lpe_stat_1); N(lpe_stat_2); N(atomic_type); N(atomic_op); N(cswap_op);
  N(rendezvous_id); END
  CASE("TargetLong/StateChange", struct c_event_target_long)
  NUMBER("ptlte_state", initiator.state_change.ptlte_state); NUMBER("sc_reason", initiator.state_change.sc_reason);
  NUMBER("sc_nic_auto", initiator.state_change.sc_nic_auto); N(ptlte_index); N(event_size); N(event_type);
  N(return_code); END
  CASE("TargetEthernet", struct c_event_target_enet) N(checksum); N(pkt_cnt); N(seg_cnt); N(rss_hash_value);
  N(ptlte_index); N(ptl_list); N(auto_unlinked); N(start); N(buffer_id); N(rss_hash_type); N(more_frags); N(is_roce);
  N(roce_icrc_ok); N(timestamp); N(fmt); N(parser_err); N(length); N(event_size); N(event_type); N(return_code); END
  CASE("EthernetFgfc", struct c_event_enet_fgfc) N(identifier); N(fgfc_type); N(xoff); N(srcip_tag); N(credits);
  N(event_size); N(event_type); N(return_code); END
  CASE("PctEvent", struct c_event_pct) W(dfa); N(seq_num); N(pct_event_type); N(spt_idx);
  NUMBER("tct_idx", conn_idx.tct_idx.tct_idx); N(event_size); N(event_type); N(return_code); END
  CASE("PctEvent/Source", struct c_event_pct) NUMBER("sct_idx", conn_idx.padded_sct_idx.sct_idx); N(event_size);
  N(event_type); N(return_code); END
  CASE("TimestampEvent", struct c_event_timestamp) N(timestamp_ns); N(timestamp_sec); N(event_size); N(event_type);
  N(return_code); END
  CASE("EventHead", struct c_event_eq_switch) N(event_size); N(event_type); N(return_code); END
}

static void client_calls(void) {
  CASE("CmdHead", struct cxi_common_cmd) N(op); W(resp); END
  CASE("MmInfo", struct cxi_mminfo) N(offset); N(size); END
  CASE("LniAllocCmd", struct cxi_lni_alloc_cmd) N(op); W(resp); N(svc_id); END
  CASE("LniAllocResp", struct cxi_lni_alloc_resp) N(lni); END
  CASE("LniFreeCmd", struct cxi_lni_free_cmd) N(op); N(lni); END
  CASE("DomainReserveCmd", struct cxi_domain_reserve_cmd) N(op); W(resp); N(lni); N(vni); N(pid); N(count); END
  CASE("DomainReserveResp", struct cxi_domain_reserve_resp) N(pid); END
  CASE("DomainAllocCmd", struct cxi_domain_alloc_cmd) N(op); W(resp); N(lni); N(vni); N(pid); END
  CASE("DomainAllocResp", struct cxi_domain_alloc_resp) N(domain); N(vni); N(pid); END
  CASE("DomainFreeCmd", struct cxi_domain_free_cmd) N(op); N(domain); END
  CASE("CpAllocCmd", struct cxi_cp_alloc_cmd) N(op); W(resp); N(lni); N(vni); N(tc); N(tc_type); END
  CASE("TrigCpAllocCmd", struct cxi_trig_cp_alloc_cmd) N(op); W(resp); N(lni); N(vni); N(tc); N(tc_type); N(cp_type);
  END
  CASE("CpAllocResp", struct cxi_cp_alloc_resp) N(cp_hndl); N(lcid); END
  CASE("CpFreeCmd", struct cxi_cp_free_cmd) N(op); N(cp_hndl); END
  CASE("CpModifyCmd", struct cxi_cp_modify_cmd) N(op); N(cp_hndl); N(vni); END
  CASE("MdHints", struct cxi_md_hints) N(page_shift); N(huge_shift); N(ptg_mode); N(ptg_mode_valid); N(dmabuf_fd);
  N(dmabuf_offset); N(dmabuf_valid); END
  CASE("Md", struct cxi_md) N(iova); N(va); N(len); N(lac); N(page_shift); N(huge_shift); N(id); END
  CASE("AtuMapCmd", struct cxi_atu_map_cmd) N(op); W(resp); N(lni); N(va); N(len); N(flags); N(hints.page_shift);
  N(hints.huge_shift); N(hints.ptg_mode); N(hints.ptg_mode_valid); N(hints.dmabuf_fd); N(hints.dmabuf_offset);
  N(hints.dmabuf_valid); END
  CASE("AtuMapResp", struct cxi_atu_map_resp) N(id); N(md.iova); N(md.va); N(md.len); N(md.lac); N(md.page_shift);
  N(md.huge_shift); N(md.id); END
  CASE("AtuUnmapCmd", struct cxi_atu_unmap_cmd) N(op); N(id); END
  CASE("AtuUpdateMdCmd", struct cxi_atu_update_md_cmd) N(op); N(id); N(va); N(len); N(flags); END
  CASE("PhysLacAllocCmd", struct cxi_phys_lac_alloc_cmd) N(op); W(resp); N(lni); END
  CASE("PhysLacAllocResp", struct cxi_phys_lac_alloc_resp) N(lac); END
  CASE("PhysLacFreeCmd", struct cxi_phys_lac_free_cmd) N(op); N(lni); N(lac); END
  CASE("WaitAllocCmd", struct cxi_wait_alloc_cmd) N(op); W(resp); N(lni); END
  CASE("WaitAllocResp", struct cxi_wait_alloc_resp) N(client_id); N(wait); END
  CASE("WaitFreeCmd", struct cxi_wait_free_cmd) N(op); W(resp); N(wait); END
  CASE("InboundWaitCmd", struct cxi_inbound_wait_cmd) N(op); END
  CASE("MapCsrsCmd", struct cxi_map_csrs_cmd) N(op); W(resp); END
  CASE("MapCsrsResp", struct cxi_map_csrs_resp) N(csr.offset); N(csr.size); END
  CASE("DevInfoGetCmd", struct cxi_dev_info_get_cmd) N(op); W(resp); END
  CASE("DevInfo", struct cxi_dev_info_use) N(nid); N(pid_bits); N(pid_count); N(pid_granule); N(min_free_shift);
  N(rdzv_get_idx); N(vendor_id); N(device_id); N(device_rev); N(device_proto); N(device_platform); N(pct_eq);
  N(uc_nic); N(link_mtu); N(link_speed); N(link_state); N(num_ptes); N(num_txqs); N(num_tgqs); N(num_eqs);
  N(num_cts); N(num_acs); N(num_tles); N(num_les); N(fru_description[0]); N(fru_description[1]);
  N(fru_description[2]); N(fru_description[3]); N(fru_description[4]); N(fru_description[5]); N(fru_description[6]);
  N(fru_description[7]); N(fru_description[8]); N(fru_description[9]); N(fru_description[10]);
  N(fru_description[11]); N(fru_description[12]); N(fru_description[13]); N(fru_description[14]);
  N(fru_description[15]); N(cassini_version); N(system_type_identifier); END
  CASE("RetryHandlerRunningCmd", struct cxi_retry_handler_running_cmd) N(op); W(resp); END
  CASE("RetryHandlerRunningResp", struct cxi_retry_handler_running_resp) N(running); END
}

static void queue_calls(void) {
  CASE("CqAllocOpts", struct cxi_cq_alloc_opts) N(count); N(policy); N(stat_cnt_pool); N(flags); N(lcid);
  N(lpe_cdt_thresh_id); END
  CASE("CqAllocOptsBuf", struct cxi_cq_alloc_opts_buf) N(opts.count); N(opts.policy); N(opts.stat_cnt_pool);
  N(opts.flags); N(opts.lcid); N(opts.lpe_cdt_thresh_id); W(buf); N(is_host_mem); N(dmabuf_fd); N(dmabuf_offset); END
  CASE("CqAllocCmd", struct cxi_cq_alloc_cmd) N(op); W(resp); N(lni); N(eq); N(opts.count); N(opts.policy);
  N(opts.stat_cnt_pool); N(opts.flags); N(opts.lcid); N(opts.lpe_cdt_thresh_id); END
  CASE("CqAllocBufCmd", struct cxi_cq_alloc_buf_cmd) N(op); W(resp); N(lni); N(eq); N(opts.opts.count);
  N(opts.opts.policy); N(opts.opts.stat_cnt_pool); N(opts.opts.flags); N(opts.opts.lcid);
  N(opts.opts.lpe_cdt_thresh_id); W(opts.buf); N(opts.is_host_mem); N(opts.dmabuf_fd); N(opts.dmabuf_offset); END
  CASE("CqAllocResp", struct cxi_cq_alloc_resp) N(cq); N(count); N(cmds.offset); N(cmds.size); N(wp_addr.offset);
  N(wp_addr.size); END
  CASE("CqFreeCmd", struct cxi_cq_free_cmd) N(op); N(cq); END
  CASE("CqAckCounterCmd", struct cxi_cq_ack_counter_cmd) N(op); W(resp); N(cq); END
  CASE("CqAckCounterResp", struct cxi_cq_ack_counter_resp) N(ack_counter); END
  CASE("EqAttr", struct cxi_eq_attr) W(queue); N(queue_len); N(flags); N(status_thresh_base); N(status_thresh_delta);
  N(status_thresh_count); N(ec_delay); N(cpu_affinity); END
  CASE("EqAllocCmd", struct cxi_eq_alloc_cmd) N(op); W(resp); N(lni); N(queue_md); N(event_wait); N(status_wait);
  W(attr.queue); N(attr.queue_len); N(attr.flags); N(attr.status_thresh_base); N(attr.status_thresh_delta);
  N(attr.status_thresh_count); N(attr.ec_delay); N(attr.cpu_affinity); END
  CASE("EqAllocResp", struct cxi_eq_alloc_resp) N(eq); N(csr.offset); N(csr.size); END
  CASE("EqFreeCmd", struct cxi_eq_free_cmd) N(op); N(eq); END
  CASE("EqResizeCmd", struct cxi_eq_resize_cmd) N(op); N(eq_hndl); W(queue); N(queue_len); N(queue_md); END
  CASE("EqResizeCompleteCmd", struct cxi_eq_resize_complete_cmd) N(op); N(eq_hndl); END
  CASE("EqAdjustReservedFcCmd", struct cxi_eq_adjust_reserved_fc_cmd) N(op); W(resp); N(eq_hndl); N(value); END
  CASE("EqAdjustReservedFcResp", struct cxi_eq_adjust_reserved_fc_resp) END
  CASE("CtAllocCmd", struct cxi_ct_alloc_cmd) N(op); W(resp); N(lni); W(wb); END
  CASE("CtAllocResp", struct cxi_ct_alloc_resp) N(ctn); N(doorbell.offset); N(doorbell.size); END
  CASE("CtFreeCmd", struct cxi_ct_free_cmd) N(op); N(ctn); END
  CASE("CtWbUpdateCmd", struct cxi_ct_wb_update_cmd) N(op); N(ctn); W(wb); END
  CASE("PteAllocCmd", struct cxi_pte_alloc_cmd) N(op); W(resp); N(lni_hndl); N(evtq_hndl); W(opts); END
  CASE("PteAllocResp", struct cxi_pte_alloc_resp) N(pte_number); END
  CASE("PteFreeCmd", struct cxi_pte_free_cmd) N(op); W(resp); N(pte_number); END
  CASE("PteMapCmd", struct cxi_pte_map_cmd) N(op); W(resp); N(pte_number); N(domain_hndl); N(pid_offset);
  N(is_multicast); END
  CASE("PteMapResp", struct cxi_pte_map_resp) N(pte_index); END
  CASE("PteUnmapCmd", struct cxi_pte_unmap_cmd) N(op); W(resp); N(pte_index); END
  CASE("PteLeInvalidateCmd", struct cxi_pte_le_invalidate_cmd) N(op); N(pte_index); N(buffer_id); N(list); END
  CASE("PteStatusCmd", struct cxi_pte_status_cmd) N(op); W(resp); N(pte_index); END
  CASE("PteStatus", struct cxi_pte_status) N(drop_count); N(state); N(les_reserved); N(les_allocated); N(les_max);
  W(ule_offsets); N(ule_count); END
  CASE("PteTransitionSmCmd", struct cxi_pte_transition_sm_cmd) N(op); W(resp); N(pte_index); N(drop_count); END
}

static void service_calls(void) {
  CASE("Limits", struct cxi_limits) N(max); N(res); END
  CASE("SvcDesc", struct cxi_svc_desc) FIRST_BYTE("flags", *x); N(num_vld_vnis); N(vnis[0]); N(vnis[1]); N(vnis[2]);
  N(vnis[3]); N(tcs[0]); N(tcs[1]); N(tcs[2]); N(tcs[3]); N(tcs[4]);
  NUMBER("members[0].id", members[0].svc_member.uid); N(members[0].type);
  NUMBER("members[1].id", members[1].svc_member.uid); N(members[1].type);
  NUMBER("limits[0].max", limits.type[0].max); NUMBER("limits[0].res", limits.type[0].res);
  NUMBER("limits[1].max", limits.type[1].max); NUMBER("limits[1].res", limits.type[1].res);
  NUMBER("limits[2].max", limits.type[2].max); NUMBER("limits[2].res", limits.type[2].res);
  NUMBER("limits[3].max", limits.type[3].max); NUMBER("limits[3].res", limits.type[3].res);
  NUMBER("limits[4].max", limits.type[4].max); NUMBER("limits[4].res", limits.type[4].res);
  NUMBER("limits[5].max", limits.type[5].max); NUMBER("limits[5].res", limits.type[5].res);
  NUMBER("limits[6].max", limits.type[6].max); NUMBER("limits[6].res", limits.type[6].res);
  NUMBER("limits[7].max", limits.type[7].max); NUMBER("limits[7].res", limits.type[7].res); N(svc_id); END
  CASE("SvcFailInfo", struct cxi_svc_fail_info) N(rsrc_avail[0]); N(rsrc_avail[1]); N(rsrc_avail[2]);
  N(rsrc_avail[3]); N(rsrc_avail[4]); N(rsrc_avail[5]); N(rsrc_avail[6]); N(rsrc_avail[7]); N(no_le_pools);
  N(no_tle_pools); N(no_cntr_pools); END
  CASE("RsrcUse", struct cxi_rsrc_use) N(svc_id); N(tle_pool_id); N(in_use[0]); N(in_use[1]); N(in_use[2]);
  N(in_use[3]); N(in_use[4]); N(in_use[5]); N(in_use[6]); N(in_use[7]); END
  CASE("SvcAllocCmd", struct cxi_svc_alloc_cmd) N(op); W(resp); FIRST_BYTE("svc_desc.flags", x->svc_desc);
  N(svc_desc.num_vld_vnis); N(svc_desc.vnis[0]); N(svc_desc.vnis[1]); N(svc_desc.vnis[2]); N(svc_desc.vnis[3]);
  N(svc_desc.tcs[0]); N(svc_desc.tcs[1]); N(svc_desc.tcs[2]); N(svc_desc.tcs[3]); N(svc_desc.tcs[4]);
  NUMBER("svc_desc.members[0].id", svc_desc.members[0].svc_member.uid); N(svc_desc.members[0].type);
  NUMBER("svc_desc.members[1].id", svc_desc.members[1].svc_member.uid); N(svc_desc.members[1].type);
  NUMBER("svc_desc.limits[0].max", svc_desc.limits.type[0].max);
  NUMBER("svc_desc.limits[0].res", svc_desc.limits.type[0].res);
  NUMBER("svc_desc.limits[1].max", svc_desc.limits.type[1].max);
  NUMBER("svc_desc.limits[1].res", svc_desc.limits.type[1].res);
  NUMBER("svc_desc.limits[2].max", svc_desc.limits.type[2].max);
  NUMBER("svc_desc.limits[2].res", svc_desc.limits.type[2].res);
  NUMBER("svc_desc.limits[3].max", svc_desc.limits.type[3].max);
  NUMBER("svc_desc.limits[3].res", svc_desc.limits.type[3].res);
  NUMBER("svc_desc.limits[4].max", svc_desc.limits.type[4].max);
  NUMBER("svc_desc.limits[4].res", svc_desc.limits.type[4].res);
  NUMBER("svc_desc.limits[5].max", svc_desc.limits.type[5].max);
  NUMBER("svc_desc.limits[5].res", svc_desc.limits.type[5].res);
  NUMBER("svc_desc.limits[6].max", svc_desc.limits.type[6].max);
  NUMBER("svc_desc.limits[6].res", svc_desc.limits.type[6].res);
  NUMBER("svc_desc.limits[7].max", svc_desc.limits.type[7].max);
  NUMBER("svc_desc.limits[7].res", svc_desc.limits.type[7].res); N(svc_desc.svc_id); END
  CASE("SvcAllocResp", struct cxi_svc_alloc_resp) N(svc_id); N(fail_info.rsrc_avail[0]); N(fail_info.rsrc_avail[1]);
  N(fail_info.rsrc_avail[2]); N(fail_info.rsrc_avail[3]); N(fail_info.rsrc_avail[4]); N(fail_info.rsrc_avail[5]);
  N(fail_info.rsrc_avail[6]); N(fail_info.rsrc_avail[7]); N(fail_info.no_le_pools); N(fail_info.no_tle_pools);
  N(fail_info.no_cntr_pools); END
  CASE("SvcUpdateCmd", struct cxi_svc_update_cmd) N(op); W(resp); FIRST_BYTE("svc_desc.flags", x->svc_desc);
  N(svc_desc.num_vld_vnis); N(svc_desc.vnis[0]); N(svc_desc.vnis[1]); N(svc_desc.vnis[2]); N(svc_desc.vnis[3]);
  N(svc_desc.tcs[0]); N(svc_desc.tcs[1]); N(svc_desc.tcs[2]); N(svc_desc.tcs[3]); N(svc_desc.tcs[4]);
  NUMBER("svc_desc.members[0].id", svc_desc.members[0].svc_member.uid); N(svc_desc.members[0].type);
  NUMBER("svc_desc.members[1].id", svc_desc.members[1].svc_member.uid); N(svc_desc.members[1].type);
  NUMBER("svc_desc.limits[0].max", svc_desc.limits.type[0].max);
  NUMBER("svc_desc.limits[0].res", svc_desc.limits.type[0].res);
  NUMBER("svc_desc.limits[1].max", svc_desc.limits.type[1].max);
  NUMBER("svc_desc.limits[1].res", svc_desc.limits.type[1].res);
  NUMBER("svc_desc.limits[2].max", svc_desc.limits.type[2].max);
  NUMBER("svc_desc.limits[2].res", svc_desc.limits.type[2].res);
  NUMBER("svc_desc.limits[3].max", svc_desc.limits.type[3].max);
  NUMBER("svc_desc.limits[3].res", svc_desc.limits.type[3].res);
  NUMBER("svc_desc.limits[4].max", svc_desc.limits.type[4].max);
  NUMBER("svc_desc.limits[4].res", svc_desc.limits.type[4].res);
  NUMBER("svc_desc.limits[5].max", svc_desc.limits.type[5].max);
  NUMBER("svc_desc.limits[5].res", svc_desc.limits.type[5].res);
  NUMBER("svc_desc.limits[6].max", svc_desc.limits.type[6].max);
  NUMBER("svc_desc.limits[6].res", svc_desc.limits.type[6].res);
  NUMBER("svc_desc.limits[7].max", svc_desc.limits.type[7].max);
  NUMBER("svc_desc.limits[7].res", svc_desc.limits.type[7].res); N(svc_desc.svc_id); END
  CASE("SvcUpdateResp", struct cxi_svc_update_resp) N(fail_info.rsrc_avail[0]); N(fail_info.rsrc_avail[1]);
  N(fail_info.rsrc_avail[2]); N(fail_info.rsrc_avail[3]); N(fail_info.rsrc_avail[4]); N(fail_info.rsrc_avail[5]);
  N(fail_info.rsrc_avail[6]); N(fail_info.rsrc_avail[7]); N(fail_info.no_le_pools); N(fail_info.no_tle_pools);
  N(fail_info.no_cntr_pools); END
  CASE("SvcDestroyCmd", struct cxi_svc_destroy_cmd) N(op); N(svc_id); END
  CASE("SvcGetCmd", struct cxi_svc_get_cmd) N(op); W(resp); N(svc_id); END
  CASE("SvcGetResp", struct cxi_svc_get_resp) FIRST_BYTE("svc_desc.flags", x->svc_desc); N(svc_desc.num_vld_vnis);
  N(svc_desc.vnis[0]); N(svc_desc.vnis[1]); N(svc_desc.vnis[2]); N(svc_desc.vnis[3]); N(svc_desc.tcs[0]);
  N(svc_desc.tcs[1]); N(svc_desc.tcs[2]); N(svc_desc.tcs[3]); N(svc_desc.tcs[4]);
  NUMBER("svc_desc.members[0].id", svc_desc.members[0].svc_member.uid); N(svc_desc.members[0].type);
  NUMBER("svc_desc.members[1].id", svc_desc.members[1].svc_member.uid); N(svc_desc.members[1].type);
  NUMBER("svc_desc.limits[0].max", svc_desc.limits.type[0].max);
  NUMBER("svc_desc.limits[0].res", svc_desc.limits.type[0].res);
  NUMBER("svc_desc.limits[1].max", svc_desc.limits.type[1].max);
  NUMBER("svc_desc.limits[1].res", svc_desc.limits.type[1].res);
  NUMBER("svc_desc.limits[2].max", svc_desc.limits.type[2].max);
  NUMBER("svc_desc.limits[2].res", svc_desc.limits.type[2].res);
  NUMBER("svc_desc.limits[3].max", svc_desc.limits.type[3].max);
  NUMBER("svc_desc.limits[3].res", svc_desc.limits.type[3].res);
  NUMBER("svc_desc.limits[4].max", svc_desc.limits.type[4].max);
  NUMBER("svc_desc.limits[4].res", svc_desc.limits.type[4].res);
  NUMBER("svc_desc.limits[5].max", svc_desc.limits.type[5].max);
  NUMBER("svc_desc.limits[5].res", svc_desc.limits.type[5].res);
  NUMBER("svc_desc.limits[6].max", svc_desc.limits.type[6].max);
  NUMBER("svc_desc.limits[6].res", svc_desc.limits.type[6].res);
  NUMBER("svc_desc.limits[7].max", svc_desc.limits.type[7].max);
  NUMBER("svc_desc.limits[7].res", svc_desc.limits.type[7].res); N(svc_desc.svc_id); END
  CASE("SvcListGetCmd", struct cxi_svc_list_get_cmd) N(op); W(resp); N(count); W(svc_list); END
  CASE("SvcListGetResp", struct cxi_svc_list_get_resp) N(count); END
  CASE("SvcRsrcGetCmd", struct cxi_svc_rsrc_get_cmd) N(op); W(resp); N(svc_id); END
  CASE("SvcRsrcGetResp", struct cxi_svc_rsrc_get_resp) N(rsrcs.svc_id); N(rsrcs.tle_pool_id); N(rsrcs.in_use[0]);
  N(rsrcs.in_use[1]); N(rsrcs.in_use[2]); N(rsrcs.in_use[3]); N(rsrcs.in_use[4]); N(rsrcs.in_use[5]);
  N(rsrcs.in_use[6]); N(rsrcs.in_use[7]); END
  CASE("SvcRsrcListGetCmd", struct cxi_svc_rsrc_list_get_cmd) N(op); W(resp); N(count); W(rsrc_list); END
  CASE("SvcRsrcListGetResp", struct cxi_svc_rsrc_list_get_resp) N(count); END
  CASE("SvcEnableCmd", struct cxi_svc_enable_cmd) N(op); W(resp); N(svc_id); N(enable); END
  CASE("SvcLprCmd", struct cxi_svc_lpr_cmd) N(op); W(resp); N(svc_id); N(lnis_per_rgid); END
  CASE("SvcSetExclusiveCpCmd", struct cxi_svc_set_exclusive_cp_cmd) N(op); N(svc_id); N(exclusive_cp); END
  CASE("SvcGetExclusiveCpCmd", struct cxi_svc_get_exclusive_cp_cmd) N(op); W(resp); N(svc_id); END
  CASE("SvcGetExclusiveCpResp", struct cxi_svc_get_exclusive_cp_resp) N(exclusive_cp); END
  CASE("SvcVniRangeCmd", struct cxi_svc_vni_range_cmd) N(op); W(resp); N(svc_id); N(vni_min); N(vni_max); END
  CASE("SvcGetVniRangeResp", struct cxi_svc_get_vni_range_resp) N(vni_min); N(vni_max); END
  CASE("SvcSetNetnsCmd", struct cxi_svc_set_netns_cmd) N(op); N(svc_id); N(netns); END
  CASE("SvcGetNetnsCmd", struct cxi_svc_get_netns_cmd) N(op); W(resp); N(svc_id); END
  CASE("SvcGetValueResp", struct cxi_svc_get_value_resp) N(value); END
  CASE("GetDevPropertiesCmd", struct cxi_get_dev_properties_cmd) N(op); W(resp); END
  CASE("DevProperties", struct cxi_properties_info) N(nid); N(nid_configured); N(pid_bits); N(pid_count);
  N(pid_granule); N(min_free_shift); N(rdzv_get_idx); NUMBER("rsrcs[0].max", rsrcs.type[0].max);
  NUMBER("rsrcs[0].res", rsrcs.type[0].res); NUMBER("rsrcs[1].max", rsrcs.type[1].max);
  NUMBER("rsrcs[1].res", rsrcs.type[1].res); NUMBER("rsrcs[2].max", rsrcs.type[2].max);
  NUMBER("rsrcs[2].res", rsrcs.type[2].res); NUMBER("rsrcs[3].max", rsrcs.type[3].max);
  NUMBER("rsrcs[3].res", rsrcs.type[3].res); NUMBER("rsrcs[4].max", rsrcs.type[4].max);
  NUMBER("rsrcs[4].res", rsrcs.type[4].res); NUMBER("rsrcs[5].max", rsrcs.type[5].max);
  NUMBER("rsrcs[5].res", rsrcs.type[5].res); NUMBER("rsrcs[6].max", rsrcs.type[6].max);
  NUMBER("rsrcs[6].res", rsrcs.type[6].res); NUMBER("rsrcs[7].max", rsrcs.type[7].max);
  NUMBER("rsrcs[7].res", rsrcs.type[7].res); N(device_rev); N(device_proto); N(device_platform); N(cassini_version);
  N(rdzv_get_en); N(amo_remap_to_pcie_fadd); END
}

static void abi_constants(void) {
  C(CXI_OP_INVALID); C(CXI_OP_LNI_ALLOC); C(CXI_OP_LNI_FREE); C(CXI_OP_DOMAIN_RESERVE); C(CXI_OP_DOMAIN_ALLOC);
  C(CXI_OP_DOMAIN_FREE); C(CXI_OP_CP_ALLOC); C(CXI_OP_CP_FREE); C(CXI_OP_CQ_ALLOC); C(CXI_OP_CQ_FREE);
  C(CXI_OP_CQ_ACK_COUNTER); C(CXI_OP_ATU_MAP); C(CXI_OP_ATU_UNMAP); C(CXI_OP_EQ_ALLOC); C(CXI_OP_EQ_FREE);
  C(CXI_OP_EQ_RESIZE); C(CXI_OP_EQ_RESIZE_COMPLETE); C(CXI_OP_PTE_ALLOC); C(CXI_OP_PTE_FREE); C(CXI_OP_PTE_MAP);
  C(CXI_OP_PTE_UNMAP); C(CXI_OP_PTE_LE_INVALIDATE); C(CXI_OP_PTE_STATUS); C(CXI_OP_WAIT_ALLOC); C(CXI_OP_WAIT_FREE);
  C(CXI_OP_CT_ALLOC); C(CXI_OP_CT_FREE); C(CXI_OP_SVC_LIST_GET); C(CXI_OP_SVC_ALLOC); C(CXI_OP_SVC_DESTROY);
  C(CXI_OP_MAP_CSRS); C(CXI_OP_SBUS_OP_RESET); C(CXI_OP_SBUS_OP); C(CXI_OP_SERDES_OP); C(CXI_OP_GET_DEV_PROPERTIES);
  C(_OBSOLETED_CXI_OP_MAP_TELEMETRY); C(_OBSOLETED_CXI_OP_UNMAP_TELEMETRY); C(CXI_OP_EQ_ADJUST_RESERVED_FC);
  C(CXI_OP_CT_WB_UPDATE); C(_OBSOLETED_CXI_OP_RESERVE_CNTR_POOL_ID); C(_OBSOLETED_CXI_OP_RELEASE_CNTR_POOL_ID);
  C(_OBSOLETED_CXI_OP_GET_TELEMETRY_REFRESH_INTERVAL); C(_OBSOLETED_CXI_OP_SET_TELEMETRY_REFRESH_INTERVAL);
  C(CXI_OP_INBOUND_WAIT); C(CXI_OP_SVC_UPDATE); C(CXI_OP_SVC_GET); C(_OBSOLETED_CXI_OP_START_TELEMETRY);
  C(_OBSOLETED_CXI_OP_STOP_TELEMETRY); C(CXI_OP_PTE_TRANSITION_SM); C(CXI_OP_SVC_RSRC_LIST_GET);
  C(CXI_OP_SVC_RSRC_GET); C(CXI_OP_ATU_UPDATE_MD); C(CXI_OP_DEV_INFO_GET); C(CXI_OP_SVC_SET_LPR);
  C(CXI_OP_SVC_GET_LPR); C(CXI_OP_DEV_ALLOC_RX_PROFILE); C(CXI_OP_DEV_GET_RX_PROFILE_IDS);
  C(CXI_OP_RX_PROFILE_RELEASE); C(CXI_OP_RX_PROFILE_REVOKE); C(CXI_OP_RX_PROFILE_GET_INFO);
  C(CXI_OP_RX_PROFILE_ADD_AC_ENTRY); C(CXI_OP_RX_PROFILE_REMOVE_AC_ENTRY); C(CXI_OP_RX_PROFILE_GET_AC_ENTRY_IDS);
  C(CXI_OP_RX_PROFILE_GET_AC_ENTRY_DATA_BY_ID); C(CXI_OP_RX_PROFILE_GET_AC_ENTRY_ID_BY_DATA);
  C(CXI_OP_RX_PROFILE_GET_AC_ENTRY_ID_BY_USER); C(CXI_OP_DEV_ALLOC_TX_PROFILE); C(CXI_OP_DEV_GET_TX_PROFILE_IDS);
  C(CXI_OP_TX_PROFILE_RELEASE); C(CXI_OP_TX_PROFILE_REVOKE); C(CXI_OP_TX_PROFILE_GET_INFO);
  C(CXI_OP_TX_PROFILE_ADD_AC_ENTRY); C(CXI_OP_TX_PROFILE_REMOVE_AC_ENTRY); C(CXI_OP_TX_PROFILE_GET_AC_ENTRY_IDS);
  C(CXI_OP_TX_PROFILE_GET_AC_ENTRY_DATA_BY_ID); C(CXI_OP_TX_PROFILE_GET_AC_ENTRY_ID_BY_DATA);
  C(CXI_OP_TX_PROFILE_GET_AC_ENTRY_ID_BY_USER); C(CXI_OP_CP_MODIFY); C(CXI_OP_SVC_SET_EXCLUSIVE_CP);
  C(CXI_OP_SVC_GET_EXCLUSIVE_CP); C(CXI_OP_SVC_ENABLE); C(CXI_OP_SVC_SET_VNI_RANGE); C(CXI_OP_SVC_GET_VNI_RANGE);
  C(CXI_OP_TRIG_CP_ALLOC); C(CXI_OP_SVC_SET_NETNS); C(CXI_OP_SVC_GET_NETNS); C(CXI_OP_CQ_ALLOC_BUF);
  C(CXI_OP_VF_GET_TOKEN); C(CXI_OP_PHYS_LAC_ALLOC); C(CXI_OP_PHYS_LAC_FREE); C(CXI_OP_ATU_MAP_SGT);
  C(CXI_OP_ATU_UPDATE_SGT); C(CXI_OP_ATU_CLEAR_MD); C(CXI_OP_RETRY_HANDLER_RUNNING); C(CXI_OP_ETH_DEV_INFO_GET);
  C(CXI_OP_ETH_TC_REQ_PCP_GET); C(CXI_OP_ETH_PAUSE_GET); C(CXI_OP_ETH_MAX_RXSIZE_GET); C(CXI_OP_ETH_LINK_STATE_GET);
  C(CXI_OP_RMU_ETH_ALLOC); C(CXI_OP_RMU_ETH_FREE); C(CXI_OP_RMU_ETH_HASH_KEY_GET); C(CXI_OP_RMU_ETH_ADD_MAC_FILTER);
  C(CXI_OP_RMU_ETH_REMOVE_FILTER); C(CXI_OP_RMU_ETH_ADD_PROMISC_FILTER); C(CXI_OP_RMU_ETH_SET_RSS_QUEUES);
  C(CXI_OP_RMU_ETH_SET_INDIR_TABLE); C(CXI_OP_RMU_ETH_ADD_ALL_MCAST_FILTER); C(CXI_OP_ETH_VF_MAC_GET);
  C(CXI_OP_ETH_VF_MAC_VALIDATE); C(CXI_OP_MAX); C(CXI_TC_DEDICATED_ACCESS); C(CXI_TC_LOW_LATENCY);
  C(CXI_TC_BULK_DATA); C(CXI_TC_BEST_EFFORT); C(CXI_TC_ETH); C(CXI_TC_MAX); C(CXI_TC_TYPE_DEFAULT);
  C(CXI_TC_TYPE_HRP); C(CXI_TC_TYPE_RESTRICTED); C(CXI_TC_TYPE_COLL_LEAF); C(CXI_TC_TYPE_MAX); C(TRIG_LCID);
  C(NON_TRIG_LCID); C(ANY_LCID); C(CXI_CQ_UPDATE_ALWAYS); C(CXI_CQ_UPDATE_HIGH_FREQ_EMPTY);
  C(CXI_CQ_UPDATE_LOW_FREQ_EMPTY); C(CXI_CQ_UPDATE_LOW_FREQ); C(CXI_CQ_USER); C(CXI_CQ_IS_TX); C(CXI_CQ_TX_ETHERNET);
  C(CXI_CQ_TX_WITH_TRIG_CMDS); C(CXI_MAX_CQ_COUNT); C(CXI_EQ_USER); C(CXI_EQ_PASSTHROUGH); C(CXI_EQ_INIT_LONG);
  C(CXI_EQ_TGT_LONG); C(CXI_EQ_DROP_STATUS_DISABLE); C(CXI_EQ_TIMESTAMP_EVENTS); C(CXI_EQ_EC_DISABLE);
  C(CXI_EQ_REGISTER_PCT); C(CXI_MAP_PIN); C(CXI_MAP_ATS); C(CXI_MAP_WRITE); C(CXI_MAP_READ); C(CXI_MAP_FAULT);
  C(CXI_MAP_NOCACHE); C(CXI_MAP_USER_ADDR); C(CXI_MAP_ATS_PT); C(CXI_MAP_ATS_DYN); C(CXI_MAP_DEVICE);
  C(CXI_MAP_UNUSED); C(CXI_MAP_ALLOC_MD); C(CXI_MAP_PREFETCH); C(INVALID_DMABUF_FD); C(CXI_MD_NONE);
  C(CXI_WAIT_NONE); C(CXI_DEFAULT_SVC_ID); C(CXI_SVC_MAX_MEMBERS); C(CXI_SVC_MAX_VNIS); C(CXI_RSRC_TYPE_PTE);
  C(CXI_RSRC_TYPE_TXQ); C(CXI_RSRC_TYPE_TGQ); C(CXI_RSRC_TYPE_EQ); C(CXI_RSRC_TYPE_CT); C(CXI_RSRC_TYPE_LE);
  C(CXI_RSRC_TYPE_TLE); C(CXI_RSRC_TYPE_AC); C(CXI_RSRC_TYPE_MAX); C(CXI_SVC_MEMBER_IGNORE); C(CXI_SVC_MEMBER_UID);
  C(CXI_SVC_MEMBER_GID); C(CXI_SVC_MEMBER_NET_NS); C(CXI_SVC_MEMBER_MAX); C(CASSINI_1); C(CASSINI_2); C(CASSINI_1_0);
  C(CASSINI_1_1); C(CASSINI_2_0); C(CASSINI_MIX); C(CASSINI_1_ONLY); C(CASSINI_2_ONLY); C(C_PLATFORM_ASIC);
  C(C_PLATFORM_NETSIM); C(C_PLATFORM_Z1); C(C_PLATFORM_FPGA);
}

static void hardware_constants(void) {
  C(C_CMD_TYPE_IDC); C(C_CMD_TYPE_DMA); C(C_CMD_TYPE_CT); C(C_CMD_TYPE_CQ); C(C_CMD_SIZE_32B); C(C_CMD_SIZE_64B);
  C(C_CMD_SIZE_128B); C(C_CMD_SIZE_256B); C(C_CMD_NOOP); C(C_CMD_PUT); C(C_CMD_GET); C(C_CMD_RENDEZVOUS_PUT);
  C(C_CMD_ATOMIC); C(C_CMD_FETCHING_ATOMIC); C(C_CMD_ETHERNET_TX); C(C_CMD_SMALL_MESSAGE); C(C_CMD_NOMATCH_PUT);
  C(C_CMD_NOMATCH_GET); C(C_CMD_CSTATE); C(C_CMD_CLOSE); C(C_CMD_CLEAR); C(C_CMD_REDUCTION); C(C_CMD_CT_NOOP);
  C(C_CMD_CT_SET); C(C_CMD_CT_GET); C(C_CMD_CT_INC); C(C_CMD_CT_CANCEL); C(C_CMD_CT_TRIG_DMA); C(C_CMD_CT_TRIG_SET);
  C(C_CMD_CT_TRIG_INC); C(C_CMD_CT_TRIG_EVENT); C(C_CMD_CQ_NOOP); C(C_CMD_CQ_FENCE); C(C_CMD_CQ_LCID);
  C(C_CMD_TGT_APPEND); C(C_CMD_TGT_SEARCH); C(C_CMD_TGT_SEARCH_AND_DELETE); C(C_CMD_TGT_UNLINK);
  C(C_CMD_TGT_SETSTATE); C(C_PTL_LIST_PRIORITY); C(C_PTL_LIST_OVERFLOW); C(C_PTL_LIST_REQUEST);
  C(C_PTL_LIST_UNEXPECTED); C(C_PTLTE_RESET); C(C_PTLTE_DISABLED); C(C_PTLTE_ENABLED); C(C_PTLTE_SOFTWARE_MANAGED);
  C(C_PTLTE_ETHERNET); C(C_AMO_OP_MIN); C(C_AMO_OP_MAX); C(C_AMO_OP_SUM); C(C_AMO_OP_LOR); C(C_AMO_OP_LAND);
  C(C_AMO_OP_BOR); C(C_AMO_OP_BAND); C(C_AMO_OP_LXOR); C(C_AMO_OP_BXOR); C(C_AMO_OP_SWAP); C(C_AMO_OP_CSWAP);
  C(C_AMO_OP_AXOR); C(C_AMO_OP_CSWAP_EQ); C(C_AMO_OP_CSWAP_NE); C(C_AMO_OP_CSWAP_LE); C(C_AMO_OP_CSWAP_LT);
  C(C_AMO_OP_CSWAP_GE); C(C_AMO_OP_CSWAP_GT); C(C_AMO_TYPE_INT8_T); C(C_AMO_TYPE_UINT8_T); C(C_AMO_TYPE_INT16_T);
  C(C_AMO_TYPE_UINT16_T); C(C_AMO_TYPE_INT32_T); C(C_AMO_TYPE_UINT32_T); C(C_AMO_TYPE_INT64_T);
  C(C_AMO_TYPE_UINT64_T); C(C_AMO_TYPE_FLOAT_T); C(C_AMO_TYPE_FLOAT_COMPLEX_T); C(C_AMO_TYPE_DOUBLE_T);
  C(C_AMO_TYPE_DOUBLE_COMPLEX_T); C(C_AMO_TYPE_UINT128_T); C(C_EVENT_SIZE_NO_EVENT); C(C_EVENT_SIZE_16_BYTE);
  C(C_EVENT_SIZE_32_BYTE); C(C_EVENT_SIZE_64_BYTE); C(C_EVENT_PUT); C(C_EVENT_GET); C(C_EVENT_ATOMIC);
  C(C_EVENT_FETCH_ATOMIC); C(C_EVENT_PUT_OVERFLOW); C(C_EVENT_GET_OVERFLOW); C(C_EVENT_ATOMIC_OVERFLOW);
  C(C_EVENT_FETCH_ATOMIC_OVERFLOW); C(C_EVENT_SEND); C(C_EVENT_ACK); C(C_EVENT_REPLY); C(C_EVENT_LINK);
  C(C_EVENT_SEARCH); C(C_EVENT_STATE_CHANGE); C(C_EVENT_UNLINK); C(C_EVENT_RENDEZVOUS); C(C_EVENT_ETHERNET);
  C(C_EVENT_COMMAND_FAILURE); C(C_EVENT_TRIGGERED_OP); C(C_EVENT_ETHERNET_FGFC); C(C_EVENT_PCT); C(C_EVENT_MATCH);
  C(C_EVENT_ERROR); C(C_EVENT_TIMESTAMP); C(C_EVENT_EQ_SWITCH); C(C_EVENT_NULL_EVENT); C(C_SC_FC_EQ_FULL);
  C(C_SC_FC_NO_MATCH); C(C_SC_FC_UNEXPECTED_FAIL); C(C_SC_FC_REQUEST_FULL); C(C_SC_SM_UNEXPECTED_FAIL);
  C(C_SC_SM_APPEND_FAIL); C(C_SC_DIS_UNCOR); C(C_PCT_REQUEST_NACK); C(C_PCT_REQUEST_TIMEOUT); C(C_PCT_SCT_TIMEOUT);
  C(C_PCT_TCT_TIMEOUT); C(C_PCT_ACCEL_CLOSE_COMPLETE); C(C_PCT_RETRY_COMPLETE); C(C_RC_NO_EVENT); C(C_RC_OK);
  C(C_RC_UNDELIVERABLE); C(C_RC_PT_DISABLED); C(C_RC_DROPPED); C(C_RC_PERM_VIOLATION); C(C_RC_OP_VIOLATION);
  C(C_RC_NO_MATCH); C(C_RC_UNCOR); C(C_RC_UNCOR_TRNSNT); C(C_RC_NO_SPACE); C(C_RC_ENTRY_NOT_FOUND);
  C(C_RC_NO_TARGET_CONN); C(C_RC_NO_TARGET_MST); C(C_RC_NO_TARGET_TRS); C(C_RC_SEQUENCE_ERROR);
  C(C_RC_NO_MATCHING_CONN); C(C_RC_INVALID_DFA_FORMAT); C(C_RC_VNI_NOT_FOUND); C(C_RC_PTLTE_NOT_FOUND);
  C(C_RC_PTLTE_SW_MANAGED); C(C_RC_SRC_ERROR); C(C_RC_MST_CANCELLED); C(C_RC_HRP_CONFIG_ERROR);
  C(C_RC_HRP_RSP_ERROR); C(C_RC_HRP_RSP_DISCARD); C(C_RC_INVALID_AC); C(C_RC_PAGE_PERM_ERROR); C(C_RC_ATS_ERROR);
  C(C_RC_NO_TRANSLATION); C(C_RC_PAGE_REQ_ERROR); C(C_RC_PCIE_ERROR_POISONED); C(C_RC_PCIE_UNSUCCESS_CMPL);
  C(C_RC_AMO_INVAL_OP_ERROR); C(C_RC_AMO_ALIGN_ERROR); C(C_RC_AMO_FP_INVALID); C(C_RC_AMO_FP_UNDERFLOW);
  C(C_RC_AMO_FP_OVERFLOW); C(C_RC_AMO_FP_INEXACT); C(C_RC_ILLEGAL_OP); C(C_RC_INVALID_ENDPOINT);
  C(C_RC_RESTRICTED_UNICAST); C(C_RC_CMD_ALIGN_ERROR); C(C_RC_CMD_INVALID_ARG); C(C_RC_INVALID_EVENT);
  C(C_RC_ADDR_OUT_OF_RANGE); C(C_RC_CONN_CLOSED); C(C_RC_CANCELED); C(C_RC_NO_MATCHING_TRS); C(C_RC_NO_MATCHING_MST);
  C(C_RC_DELAYED); C(C_RC_AMO_LENGTH_ERROR); C(C_RC_PKTBUF_ERROR); C(C_RC_RESOURCE_BUSY); C(C_RC_FLUSH_TRANSLATION);
  C(C_RC_TRS_PEND_RSP); C(C_NUM_CTS); C(C_NUM_EQS); C(C_NUM_PTLTES); C(C_NUM_TRANSMIT_CQS); C(C_NUM_TARGET_CQS);
  C(C_NUM_ACS); C(C_NUM_LACS); C(C_NUM_RGIDS); C(C_RESERVED_RGID); C(C_COMM_PROF_PER_CQ); C(C_NUM_TLES);
  C(C_PE_COUNT); C(C_NUM_VFS); C(C_CT_NONE); C(C_EQ_NONE); C(C_MAX_IDC_PAYLOAD_RES); C(C_MAX_IDC_PAYLOAD_UNR);
  C(C_CQ_FIRST_WR_PTR); C(C_CQ_FIRST_WR_PTR_32); C(C_CQ_CMD_SIZE); C(C_EE_CFG_ECB_SIZE); C(C_CQ_LAUNCH_TXQ_BASE);
  C(C_CQ_LAUNCH_TGT_BASE); C(C_MEMORG_CQ_TOU); C(C_MEMORG_EE); C(C_MEMORG_CSR); C(C_MEMORG_CSR_SIZE);
  C(C_CQ_STS_TLE_IN_USE_ENTRIES); C(C_CQ_STS_TLE_IN_USE(0)); C(C_CQ_STS_MAX_TLE_IN_USE(0));
  C(C_CQ_LAUNCH_PAGE_SIZE); C(C_TOU_LAUNCH_PAGE_SIZE); C(C_EE_SW_STATE_PAGE_SIZE); C(CT_INC_SUCCESS_OFFSET);
  C(CT_INC_FAILURE_OFFSET); C(CT_RESET_SUCCESS_OFFSET); C(CT_RESET_FAILURE_OFFSET); C(CT_SUCCESS_MASK);
  C(CT_FAILURE_MASK); C(C_NID_ANY); C(C_PID_ANY); C(C_RANK_ANY); C(CXI_MATCH_ID_ANY); C(C_DFA_PID_BITS_MIN);
  C(C_DFA_PID_BITS_MAX); C(C_DFA_NIC_BITS); C(C_DFA_MULTICAST_ID_BITS); C(C_DFA_INDEX_EXT_BITS);
  C(C_DFA_ENDPOINT_DEFINED_BITS); C(CXI_MCAST_FA_FORMAT); C(CXI_MCAST_FA_ACTION); C(offsetof(struct c_cmdq, wr_ptr));
  C(offsetof(struct c_cmdq, ll_wr64a0123)); C(offsetof(struct c_cmdq, ll_wr128a02));
  C(offsetof(struct c_cmdq, ll_wr128a13)); C(sizeof(struct c_cmdq)); C(offsetof(struct c_ct_cmd, embedded_dma));
  C(offsetof(struct c_idc_msg_hdr, data)); C(offsetof(struct c_idc_put_cmd, data)); C(LL_OFFSET(45));
  C(C_LE_EVENT_CT_BYTES); C(C_LE_EVENT_CT_OVERFLOW); C(C_LE_EVENT_CT_COMM); C(C_LE_EVENT_UNLINK_DISABLE);
  C(C_LE_EVENT_SUCCESS_DISABLE); C(C_LE_EVENT_COMM_DISABLE); C(C_LE_EVENT_LINK_DISABLE); C(C_LE_UNRESTRICTED_END_RO);
  C(C_LE_UNRESTRICTED_BODY_RO); C(C_LE_UNEXPECTED_HDR_DISABLE); C(C_LE_USE_ONCE); C(C_LE_NO_TRUNCATE);
  C(C_LE_MANAGE_LOCAL); C(C_LE_OP_GET); C(C_LE_OP_PUT);
}

// A union of a whole description would not fit a word: the first byte is looked at.
#define S(field) \
  do { struct cxi_svc_desc d; memset(&d, 0, sizeof d); d.field = -1; \
       constant(#field, *(uint8_t*)&d); } while (0)

static void options(void) {
  P(en_event_match); P(clr_remote_offset); P(en_flowctrl); P(use_long_event); P(lossless);
  P(en_restricted_unicast_lm); P(use_logical); P(is_matching); P(do_space_check); P(en_align_lm);
  P(en_sw_hw_st_chng); P(ethernet); P(signal_invalid); P(signal_underflow); P(signal_overflow); P(signal_inexact);
  P(en_match_on_vni); S(restricted_members); S(restricted_vnis); S(restricted_tcs); S(resource_limits); S(enable);
  S(is_system_svc); S(cntr_pool_id);
}
// clang-format on

static void headers(void) {
  for (unsigned type = 0; type < 4; ++type)
    for (unsigned op = type; op < 16; op += 5) {
      struct c_cmd c = {.cmd_type = type, .cmd_size = (op + type) % 4, .opcode = op};
      printf("      {%u, %u, %u, 0x%02x},\n", type, (op + type) % 4, op, *(uint8_t*)&c);
    }
}

static void addresses(void) {
  static const struct {
    unsigned nid, pid, pid_bits, index;
  } all[] = {{0, 0, 9, 0},          {0xfffff, 510, 9, 255}, {0x12345, 17, 9, 31},
             {0x54321, 300, 9, 32}, {7, 63, 6, 1000},       {9, 1, 8, 500}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    union {
      union c_fab_addr dfa;
      uint32_t word;
    } u = {.word = 0};
    uint8_t ext;
    cxi_build_dfa(all[i].nid, all[i].pid, all[i].pid_bits, all[i].index, &u.dfa, &ext);
    printf("      {0x%x, %u, %u, %u, 0x%08x, %u, 0x%08x},\n", all[i].nid, all[i].pid, all[i].pid_bits, all[i].index,
           u.word, ext, cxi_dfa_to_init(u.word, all[i].pid_bits));
  }
}

static void multicasts(void) {
  static const struct {
    unsigned id, reduction, index;
  } all[] = {{0, 0, 0}, {0x1fff, 7, 31}, {0x1234, 5, 9}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    union {
      union c_fab_addr dfa;
      uint32_t word;
    } u;
    uint8_t ext;
    cxi_build_mcast_dfa(all[i].id, all[i].reduction, all[i].index, &u.dfa, &ext);
    union cxi_pte_map_offset map = {.mcast_id = all[i].id, .mcast_pte_index = all[i].index};
    printf("      {0x%x, %u, %u, 0x%08x, 0x%x},\n", all[i].id, all[i].reduction, all[i].index, u.word, map.uintval);
  }
}

static void sizes(void) {
  for (unsigned i = 0; i < sizeof amo_size; ++i) printf("%s%u", i ? ", " : "      ", amo_size[i]);
  printf("\n");
}

static void list(const char* type, const char* name, void (*fill)(void), void (*more)(void)) {
  printf("inline const std::vector<%s>& %s() {\n  static const std::vector<%s> all = {", type, name, type);
  if (fill != abi_constants && fill != options) printf("\n");
  column = 99;
  fill();
  if (more) more();
  if (fill == abi_constants || fill == options) printf("\n");
  printf("  };\n  return all;\n}\n\n");
}

static void hardware(void) {
  commands();
  words();
  events();
}

static void calls(void) {
  client_calls();
  queue_calls();
  service_calls();
}

int main(int argc, char** argv) {
  puts("// SPDX-License-Identifier: Apache-2.0");
  if (argc == 2 && strcmp(argv[1], "calls") == 0) {
    puts(
        "// The calls of the public CXI header, as golden_cxi.hpp has the formats. Written by record/record_cxi.c.\n"
        "#pragma once\n\n#include <vector>\n\n#include \"golden_cxi.hpp\"\n\nnamespace golden_cxi {\n\n// clang-format "
        "off");
    list("Format", "calls", calls, NULL);
  } else {
    puts(
        "// Where the public CXI headers put every field, with bytes that gcc made of their structs, and their "
        "numbers.\n"
        "// Written by record/record_cxi.c, not by the code under test; see there for how to make it anew.\n"
        "#pragma once\n\n#include <cstdint>\n#include <string>\n#include <vector>\n\nnamespace golden_cxi {\n\n"
        "struct Field {\n  const char* name;\n  unsigned bit, width;\n  std::uint64_t value;\n};\n\n"
        "struct Format {\n  const char* name;\n  std::vector<Field> fields;\n  std::string hex;\n};\n\n"
        "struct Constant {\n  const char* name;\n  std::uint64_t value;\n};\n\n"
        "struct Header {\n  unsigned type, size, opcode, byte;\n};\n\n"
        "struct Address {\n  std::uint32_t nid, pid, pid_bits, index, dfa, index_ext, initiator;\n};\n\n"
        "struct Multicast {\n  std::uint32_t id, reduction, index, dfa, pid_offset;\n};\n\n"
        "// clang-format off");
    list("Format", "hardware", hardware, NULL);
    list("Constant", "constants", abi_constants, hardware_constants);
    list("Constant", "options", options, NULL);
    list("Header", "headers", headers, NULL);
    list("Address", "addresses", addresses, NULL);
    list("Multicast", "multicasts", multicasts, NULL);
    list("unsigned", "atomic_sizes", sizes, NULL);
  }
  puts("// clang-format on\n\n}  // namespace golden_cxi");
  return 0;
}
