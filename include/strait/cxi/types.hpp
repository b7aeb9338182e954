// SPDX-License-Identifier: Apache-2.0
// The structures, enumerations and constants of cxi.h, laid out as the kernel and the hardware have them. What wire/
// says in setters is said in fields here, because programs written against the public names set fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"

// ---- Limits and the map of BAR 0. The vendor's headers, if they come first, have the same.
// ---------------------------

#ifndef C_NUM_CTS
#define C_NUM_CTS 2048  // number 0 is never handed out: 2047 are usable
#endif
#ifndef C_NUM_EQS
#define C_NUM_EQS 2048
#endif
#ifndef C_NUM_PTLTES
#define C_NUM_PTLTES 2048
#endif
#ifndef C_NUM_TLES
#define C_NUM_TLES 2048  // triggered operations; list entries are 16384 for each processing element
#endif
#ifndef C_PE_COUNT
#define C_PE_COUNT 4
#endif
#ifndef C_NUM_TRANSMIT_CQS
#define C_NUM_TRANSMIT_CQS 1024
#endif
#ifndef C_NUM_TARGET_CQS
#define C_NUM_TARGET_CQS 512
#endif
#ifndef CXI_MAX_CQ_COUNT
#define CXI_MAX_CQ_COUNT (1 << 16)
#endif
#ifndef C_MEMORG_CQ_TOU
#define C_MEMORG_CQ_TOU 0x08000000u
#endif
#ifndef C_TOU_LAUNCH_PAGE_SIZE
#define C_TOU_LAUNCH_PAGE_SIZE 0x10000  // the distance of two pages; 4096 bytes of each are mapped
#endif
#ifndef C_CQ_LAUNCH_TXQ_BASE
#define C_CQ_LAUNCH_TXQ_BASE 0x00000000u
#endif
#ifndef C_CQ_LAUNCH_PAGE_SIZE
#define C_CQ_LAUNCH_PAGE_SIZE 0x10000
#endif
#ifndef CXI_VA_TO_IOVA
#define CXI_VA_TO_IOVA(_md, _va) ((_md)->iova + ((std::uint64_t)(_va) - (_md)->va))
#define CXI_IOVA_TO_VA(_md, _iova) ((_md)->va + ((std::uint64_t)(_iova) - (_md)->iova))
#endif

namespace strait::cxi {

// ---- The kernel's calls ---------------------------------------------------------------------------------------------

enum cxi_command_opcode : unsigned {
  CXI_OP_INVALID = 0,
  CXI_OP_LNI_ALLOC = 1,
  CXI_OP_LNI_FREE = 2,
  CXI_OP_DOMAIN_RESERVE = 3,
  CXI_OP_DOMAIN_ALLOC = 4,
  CXI_OP_DOMAIN_FREE = 5,
  CXI_OP_CP_ALLOC = 6,
  CXI_OP_CP_FREE = 7,
  CXI_OP_CQ_ALLOC = 8,
  CXI_OP_CQ_FREE = 9,
  CXI_OP_ATU_MAP = 11,
  CXI_OP_ATU_UNMAP = 12,
  CXI_OP_EQ_ALLOC = 13,
  CXI_OP_EQ_FREE = 14,
  CXI_OP_PTE_ALLOC = 17,
  CXI_OP_PTE_FREE = 18,
  CXI_OP_PTE_MAP = 19,
  CXI_OP_PTE_UNMAP = 20,
  CXI_OP_PTE_STATUS = 22,
  CXI_OP_CT_ALLOC = 25,
  CXI_OP_CT_FREE = 26,
  CXI_OP_CT_WB_UPDATE = 38,
  CXI_OP_TRIG_CP_ALLOC = 83,
  CXI_OP_CQ_ALLOC_BUF = 86,
  CXI_OP_MAX = 110,  // of the newest driver; an older one knows fewer and answers EINVAL
};

enum cxi_traffic_class : unsigned {
  CXI_TC_DEDICATED_ACCESS,
  CXI_TC_LOW_LATENCY,
  CXI_TC_BULK_DATA,
  CXI_TC_BEST_EFFORT,
  CXI_TC_ETH,
};
enum cxi_traffic_class_type : unsigned {
  CXI_TC_TYPE_DEFAULT,
  CXI_TC_TYPE_HRP,
  CXI_TC_TYPE_RESTRICTED,
  CXI_TC_TYPE_COLL_LEAF,
};
enum cxi_trig_cp : unsigned {
  TRIG_LCID,      // LCID 0, the only one a triggered queue takes
  NON_TRIG_LCID,  // 1 to 15
  ANY_LCID,
};
enum cxi_cq_update_policy : unsigned {
  CXI_CQ_UPDATE_ALWAYS,
  CXI_CQ_UPDATE_HIGH_FREQ_EMPTY,
  CXI_CQ_UPDATE_LOW_FREQ_EMPTY,
  CXI_CQ_UPDATE_LOW_FREQ,
};
enum : unsigned {
  CXI_CQ_USER = 1u << 0,  // set by the driver
  CXI_CQ_IS_TX = 1u << 1,
  CXI_CQ_TX_ETHERNET = 1u << 2,
  CXI_CQ_TX_WITH_TRIG_CMDS = 1u << 3,
};
enum cxi_atu_map_flags : unsigned {
  CXI_MAP_PIN = 1u << 0,
  CXI_MAP_ATS = 1u << 1,
  CXI_MAP_WRITE = 1u << 2,
  CXI_MAP_READ = 1u << 3,
  CXI_MAP_FAULT = 1u << 4,
  CXI_MAP_NOCACHE = 1u << 5,
  CXI_MAP_USER_ADDR = 1u << 6,
  CXI_MAP_ATS_PT = 1u << 7,
  CXI_MAP_ATS_DYN = 1u << 8,
  CXI_MAP_DEVICE = 1u << 9,
  CXI_MAP_ALLOC_MD = 1u << 11,
  CXI_MAP_PREFETCH = 1u << 12,
};

struct cxi_mminfo {
  std::uint64_t offset;
  std::uint64_t size;
};
struct c_ct_writeback {
  std::uint64_t ct_success : 48;
  std::uint64_t ct_failure : 7;
  std::uint64_t unused : 8;
  std::uint64_t ct_writeback : 1;  // written by the device since somebody cleared it
};
struct cxi_ct_alloc_cmd {
  cxi_command_opcode op;
  void* resp;
  unsigned lni;
  c_ct_writeback* wb;
};
struct cxi_ct_alloc_resp {
  unsigned ctn;
  cxi_mminfo doorbell;
};
struct cxi_ct_wb_update_cmd {  // no resp
  cxi_command_opcode op;
  unsigned ctn;
  c_ct_writeback* wb;
};
struct cxi_md_hints {
  int page_shift;
  int huge_shift;
  int ptg_mode;
  bool ptg_mode_valid;
  int dmabuf_fd;
  unsigned long dmabuf_offset;
  bool dmabuf_valid;
};
struct cxi_md {
  std::uint64_t iova;
  std::uint64_t va;
  std::size_t len;
  std::uint8_t lac;
  int page_shift;
  int huge_shift;
  unsigned id;
};
struct cxi_atu_map_cmd {
  cxi_command_opcode op;
  void* resp;
  unsigned lni;
  std::uint64_t va;
  std::uint64_t len;
  std::uint32_t flags;
  cxi_md_hints hints;
};
struct cxi_cq_alloc_opts {
  unsigned count;
  cxi_cq_update_policy policy;
  unsigned stat_cnt_pool;
  std::uint32_t flags;
  unsigned lcid;
  unsigned lpe_cdt_thresh_id;
};
struct cxi_cq_alloc_cmd {
  cxi_command_opcode op;
  void* resp;
  unsigned lni;
  unsigned eq;
  cxi_cq_alloc_opts opts;
};
struct cxi_cq_alloc_resp {
  unsigned cq;
  unsigned count;
  cxi_mminfo cmds;
  cxi_mminfo wp_addr;
};
struct cxi_trig_cp_alloc_cmd {
  cxi_command_opcode op;
  void* resp;
  unsigned lni;
  unsigned vni;
  cxi_traffic_class tc;
  cxi_traffic_class_type tc_type;
  cxi_trig_cp cp_type;
};
struct cxi_cp_alloc_resp {
  unsigned cp_hndl;
  unsigned lcid;
};
struct cxi_pt_alloc_opts {
  std::uint64_t en_event_match : 1;
  std::uint64_t clr_remote_offset : 1;
  std::uint64_t en_flowctrl : 1;
  std::uint64_t use_long_event : 1;
  std::uint64_t lossless : 1;
  std::uint64_t en_restricted_unicast_lm : 1;
  std::uint64_t use_logical : 1;
  std::uint64_t is_matching : 1;
  std::uint64_t do_space_check : 1;
  std::uint64_t en_align_lm : 1;
  std::uint64_t en_sw_hw_st_chng : 1;
  std::uint64_t ethernet : 1;
  std::uint64_t signal_invalid : 1;
  std::uint64_t signal_underflow : 1;
  std::uint64_t signal_overflow : 1;
  std::uint64_t signal_inexact : 1;
  std::uint64_t en_match_on_vni : 1;
};
struct cxi_pte_map_cmd {
  cxi_command_opcode op;
  void* resp;
  unsigned pte_number;
  unsigned domain_hndl;
  unsigned pid_offset;
  bool is_multicast;
};
struct cxi_pte_map_resp {
  unsigned pte_index;
};
struct cxi_pte_status {
  std::uint32_t drop_count;
  std::uint8_t state;
  std::uint16_t les_reserved;
  std::uint16_t les_allocated;
  std::uint16_t les_max;
  std::uint64_t* ule_offsets;
  std::uint16_t ule_count;
};
static_assert(sizeof(cxi_ct_alloc_cmd) == sizeof(wire::cxi::CtAllocCmd) &&
              sizeof(cxi_ct_alloc_resp) == sizeof(wire::cxi::CtAllocResp) &&
              sizeof(cxi_ct_wb_update_cmd) == sizeof(wire::cxi::CtWbUpdateCmd) && sizeof(c_ct_writeback) == 8 &&
              sizeof(cxi_md_hints) == sizeof(wire::cxi::MdHints) && sizeof(cxi_md) == sizeof(wire::cxi::Md) &&
              sizeof(cxi_atu_map_cmd) == sizeof(wire::cxi::AtuMapCmd) &&
              sizeof(cxi_cq_alloc_cmd) == sizeof(wire::cxi::CqAllocCmd) &&
              sizeof(cxi_cq_alloc_resp) == sizeof(wire::cxi::CqAllocResp) &&
              sizeof(cxi_trig_cp_alloc_cmd) == sizeof(wire::cxi::TrigCpAllocCmd) &&
              sizeof(cxi_cp_alloc_resp) == sizeof(wire::cxi::CpAllocResp) && sizeof(cxi_pt_alloc_opts) == 8 &&
              sizeof(cxi_pte_map_cmd) == sizeof(wire::cxi::PteMapCmd) &&
              sizeof(cxi_pte_map_resp) == sizeof(wire::cxi::PteMapResp) &&
              sizeof(cxi_pte_status) == sizeof(wire::cxi::PteStatus));

// ---- Commands of a queue --------------------------------------------------------------------------------------------

enum c_dma_op : unsigned { C_CMD_NOOP, C_CMD_PUT, C_CMD_GET, C_CMD_RENDEZVOUS_PUT };
enum c_tgt_op : unsigned {
  C_CMD_TGT_APPEND = 8,
  C_CMD_TGT_SEARCH,
  C_CMD_TGT_SEARCH_AND_DELETE,
  C_CMD_TGT_UNLINK,
  C_CMD_TGT_SETSTATE,
};
enum c_ptl_list : unsigned { C_PTL_LIST_PRIORITY, C_PTL_LIST_OVERFLOW, C_PTL_LIST_REQUEST, C_PTL_LIST_UNEXPECTED };
enum c_ptlte_state : unsigned {
  C_PTLTE_RESET,
  C_PTLTE_DISABLED,
  C_PTLTE_ENABLED,
  C_PTLTE_SOFTWARE_MANAGED,
  C_PTLTE_ETHERNET,
};

struct c_cmd {
  std::uint8_t cmd_type : 2;
  std::uint8_t cmd_size : 2;
  std::uint8_t opcode : 4;
};
union c_fab_addr {
  struct {
    std::uint32_t endpoint_defined : 12;
    std::uint32_t nid : 20;
  } unicast;
  std::uint32_t word;
};
// PUT and GET. The queue sets type and size; the caller sets command.opcode.
struct c_full_dma_cmd {
  c_cmd command;
  std::uint8_t index_ext : 5;
  std::uint8_t : 3;
  std::uint8_t lac : 3;
  std::uint8_t event_send_disable : 1;
  std::uint8_t event_success_disable : 1;
  std::uint8_t event_ct_send : 1;
  std::uint8_t event_ct_reply : 1;
  std::uint8_t event_ct_ack : 1;
  std::uint8_t event_ct_bytes : 1;
  std::uint8_t get_with_local_flag : 1;
  std::uint8_t restricted : 1;
  std::uint8_t reduction : 1;
  std::uint8_t flush : 1;
  std::uint8_t use_offset_for_get : 1;
  std::uint8_t : 2;
  c_fab_addr dfa;
  std::uint64_t remote_offset : 56;
  std::uint64_t : 8;
  std::uint64_t local_addr : 57;
  std::uint64_t : 7;
  std::uint32_t request_len;
  std::uint16_t ct : 11;
  std::uint16_t : 5;
  std::uint16_t eq : 11;
  std::uint16_t : 5;
  std::uint32_t eager_length : 20;
  std::uint32_t : 4;
  std::uint32_t rendezvous_id : 8;
  std::uint32_t initiator;
  std::uint64_t match_bits;
  std::uint64_t header_data;
  std::uint64_t user_ptr;
};
struct c_target_cmd {
  c_cmd command;
  std::uint8_t ptl_list : 2;
  std::uint8_t : 6;
  std::uint16_t ptlte_index : 11;
  std::uint16_t : 5;
  std::uint8_t event_ct_bytes : 1;
  std::uint8_t event_ct_overflow : 1;
  std::uint8_t event_ct_comm : 1;
  std::uint8_t event_unlink_disable : 1;
  std::uint8_t event_success_disable : 1;
  std::uint8_t event_comm_disable : 1;
  std::uint8_t event_link_disable : 1;
  std::uint8_t unrestricted_end_ro : 1;
  std::uint8_t unrestricted_body_ro : 1;
  std::uint8_t unexpected_hdr_disable : 1;
  std::uint8_t use_once : 1;
  std::uint8_t no_truncate : 1;
  std::uint8_t manage_local : 1;
  std::uint8_t op_get : 1;
  std::uint8_t op_put : 1;
  std::uint8_t : 1;
  std::uint16_t ct : 11;
  std::uint16_t : 5;
  std::uint16_t buffer_id;
  std::uint8_t lac : 3;
  std::uint8_t : 5;
  std::uint8_t restart_seq : 1;
  std::uint8_t : 7;
  std::uint32_t : 32;
  std::uint64_t start : 57;
  std::uint64_t : 7;
  std::uint64_t length : 56;
  std::uint64_t : 8;
  std::uint32_t min_free : 24;
  std::uint32_t : 8;
  std::uint32_t match_id;
  std::uint64_t match_bits;
  std::uint64_t ignore_bits;
  std::uint64_t unused;
};
struct c_set_state_cmd {
  c_cmd command;
  std::uint8_t ptlte_state : 3;
  std::uint8_t : 5;
  std::uint16_t ptlte_index : 11;
  std::uint16_t : 5;
  std::uint32_t : 32;
  std::uint64_t current_addr : 57;
  std::uint64_t : 7;
  std::uint64_t drop_count : 24;
  std::uint64_t : 40;
  std::uint64_t unused[5];
};
union c_cmdu {
  std::uint8_t u8;
  c_cmd command;
  c_full_dma_cmd full_dma;
  c_target_cmd target;
  c_set_state_cmd set_state;
};
static_assert(sizeof(c_full_dma_cmd) == 64 && sizeof(c_target_cmd) == 64 && sizeof(c_set_state_cmd) == 64 &&
              sizeof(c_cmdu) == 64 && sizeof(c_cmd) == 1);

}  // namespace strait::cxi
