// SPDX-License-Identifier: Apache-2.0
// Where the public CXI headers put every field, with bytes that gcc made of their structs, and their numbers.
// Written by record/record_cxi.c, not by the code under test; see there for how to make it anew.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace golden_cxi {

struct Field {
  const char* name;
  unsigned bit, width;
  std::uint64_t value;
};

struct Format {
  const char* name;
  std::vector<Field> fields;
  std::string hex;
};

struct Constant {
  const char* name;
  std::uint64_t value;
};

struct Header {
  unsigned type, size, opcode, byte;
};

struct Address {
  std::uint32_t nid, pid, pid_bits, index, dfa, index_ext, initiator;
};

struct Multicast {
  std::uint32_t id, reduction, index, dfa, pid_offset;
};

// clang-format off
inline const std::vector<Format>& hardware() {
  static const std::vector<Format> all = {
      {"NomatchDmaCmd", {
        {"header", 0, 8, 0xa1}, {"index_ext", 8, 5, 0x19}, {"lac", 16, 3, 0x7}, {"event_send_disable", 19, 1, 0x0},
        {"event_success_disable", 20, 1, 0x0}, {"event_ct_send", 21, 1, 0x0}, {"event_ct_reply", 22, 1, 0x1},
        {"event_ct_ack", 23, 1, 0x1}, {"event_ct_bytes", 24, 1, 0x0}, {"get_with_local_flag", 25, 1, 0x0},
        {"restricted", 26, 1, 0x1}, {"reduction", 27, 1, 0x0}, {"flush", 28, 1, 0x1},
        {"use_offset_for_get", 29, 1, 0x0}, {"dfa", 32, 32, 0xd064e22f}, {"remote_offset", 64, 56, 0xd1da9507df3af2},
        {"local_addr", 128, 57, 0x13aef1089ea30e4}, {"request_len", 192, 32, 0xcc6c522b},
        {"ct", 224, 11, 0x47c}, {"eq", 240, 11, 0x67b},},
       "a119c7142fe264d0f23adf0795dad100e430ea8910ef3a012b526ccc7c047b06"},
      {"FullDmaCmd", {
        {"header", 0, 8, 0xea}, {"index_ext", 8, 5, 0x11}, {"lac", 16, 3, 0x6}, {"event_send_disable", 19, 1, 0x0},
        {"event_success_disable", 20, 1, 0x0}, {"event_ct_send", 21, 1, 0x1}, {"event_ct_reply", 22, 1, 0x1},
        {"event_ct_ack", 23, 1, 0x0}, {"event_ct_bytes", 24, 1, 0x1}, {"get_with_local_flag", 25, 1, 0x0},
        {"restricted", 26, 1, 0x0}, {"reduction", 27, 1, 0x0}, {"flush", 28, 1, 0x0},
        {"use_offset_for_get", 29, 1, 0x0}, {"dfa", 32, 32, 0x9fefb566}, {"remote_offset", 64, 56, 0xb702e4c7bf19f1},
        {"local_addr", 128, 57, 0x17d1d0d3d4a8ec5}, {"request_len", 192, 32, 0xba62dccb},
        {"ct", 224, 11, 0x44b}, {"eq", 240, 11, 0x59c}, {"eager_length", 256, 20, 0x8b68e},
        {"rendezvous_id", 280, 8, 0xd3}, {"initiator", 288, 32, 0x85a45644}, {"match_bits", 320, 64, 0x8f4acc8c1520dd73},
        {"header_data", 384, 64, 0xf5a59d61ae0f8464}, {"user_ptr", 448, 64, 0xd9600a5f4b8b735c},},
       "ea11660166b5ef9ff119bfc7e402b700c58e4a3d0d1d7d01cbdc62ba4b049c058eb608d34456a48573dd20158ccc4a8f"
       "64840fae619da5f55c738b4b5f0a60d9"},
      {"AmoDmaCmd", {
        {"header", 0, 8, 0xd8}, {"index_ext", 8, 5, 0x11}, {"lac", 16, 3, 0x6}, {"event_send_disable", 19, 1, 0x1},
        {"event_success_disable", 20, 1, 0x0}, {"event_ct_send", 21, 1, 0x1}, {"event_ct_reply", 22, 1, 0x0},
        {"event_ct_ack", 23, 1, 0x0}, {"event_ct_bytes", 24, 1, 0x0}, {"get_with_local_flag", 25, 1, 0x0},
        {"restricted", 26, 1, 0x1}, {"reduction", 27, 1, 0x1}, {"flush", 28, 1, 0x0},
        {"use_offset_for_get", 29, 1, 0x0}, {"dfa", 32, 32, 0xe9c8b3ac}, {"remote_offset", 64, 56, 0xd290fa4dcee280},
        {"local_addr", 128, 57, 0x1ce706478000997}, {"request_len", 192, 32, 0xd6756763},
        {"ct", 224, 11, 0x503}, {"eq", 240, 11, 0x7ee}, {"initiator", 288, 32, 0xc72f7146},
        {"match_bits", 320, 64, 0x9730ae769149cbba}, {"header_data", 384, 64, 0x90ec1a636fd6612d},
        {"user_ptr", 448, 64, 0xddc5d9ea650fa766}, {"local_write_addr", 512, 57, 0x160e068cac3adc2},
        {"atomic_op", 576, 4, 0xc}, {"atomic_type", 584, 4, 0x9}, {"cswap_op", 592, 3, 0x7},
        {"write_lac", 608, 3, 0x7}, {"op2_word1", 640, 64, 0x95e671eefbd33cae}, {"op2_word2", 704, 64, 0xd5bedcacb64a8fa9},},
       "d8112e0cacb3c8e980e2ce4dfa90d200970900786470ce01636775d60305ee070000000046712fc7bacb499176ae3097"
       "2d61d66f631aec9066a70f65ead9c5ddc2adc3ca68e060010c09070007000000ae3cd3fbee71e695a98f4ab6acdcbed5"},
      {"CStateCmd", {
        {"header", 0, 8, 0xd6}, {"length", 8, 8, 0xdf}, {"write_lac", 16, 3, 0x4},
        {"event_send_disable", 19, 1, 0x0}, {"event_success_disable", 20, 1, 0x0},
        {"event_ct_send", 21, 1, 0x0}, {"event_ct_reply", 22, 1, 0x0}, {"event_ct_ack", 23, 1, 0x0},
        {"event_ct_bytes", 24, 1, 0x1}, {"get_with_local_flag", 25, 1, 0x0}, {"restricted", 26, 1, 0x0},
        {"reduction", 27, 1, 0x1}, {"flush", 28, 1, 0x0}, {"use_offset_for_get", 29, 1, 0x1},
        {"initiator", 32, 32, 0xbcdde6b5}, {"index_ext", 64, 5, 0x1d}, {"user_ptr", 128, 64, 0x97974eee0cea70ba},
        {"ct", 224, 11, 0x453}, {"eq", 240, 11, 0x594},},
       "d6df0429b5e6ddbc1d00000000000000ba70ea0cee4e97970000000053049405"},
      {"IdcHeader", {
        {"header", 0, 8, 0xa9}, {"length", 8, 8, 0xd6}, {"dfa", 32, 32, 0xc11e6d7a},
        {"remote_offset", 64, 56, 0xecb325806e77f0},},
       "a9d600007a6d1ec1f0776e8025b3ec00"},
      {"IdcSmallAmoCmd", {
        {"header", 0, 8, 0xb8}, {"length", 8, 8, 0xbd}, {"dfa", 32, 32, 0xc4f1e484},
        {"remote_offset", 64, 56, 0xf04ebfa5491f08}, {"atomic_op", 128, 4, 0xa}, {"atomic_type", 136, 4, 0xa},
        {"op1_word1", 192, 64, 0x856f6c5d6e07d38d},},
       "b8bd000084e4f1c4081f49a5bf4ef0000a0a0000000000008dd3076e5d6c6f85"},
      {"IdcAmoCmd", {
        {"header", 0, 8, 0xfc}, {"length", 8, 8, 0xdf}, {"dfa", 32, 32, 0xff5b74a8},
        {"remote_offset", 64, 56, 0xd3cd41c9093294}, {"local_addr", 128, 57, 0x18cc50d02158220},
        {"atomic_op", 192, 4, 0xa}, {"atomic_type", 200, 4, 0x8}, {"cswap_op", 208, 3, 0x6},
        {"op1_word1", 256, 64, 0x82a5a6b22b45d376}, {"op1_word2", 320, 64, 0xdb7a320686bd2cbb},
        {"op2_word1", 384, 64, 0xbb7ec9db8ed84107}, {"op2_word2", 448, 64, 0xa0419a506cb535ef},},
       "fcdf0000a8745bff943209c941cdd300208215020dc58c010a0806000000000076d3452bb2a6a582bb2cbd8606327adb"
       "0741d88edbc97ebbef35b56c509a41a0"},
      {"IdcMsgHeader", {
        {"header", 0, 8, 0xaa}, {"length", 8, 8, 0xac}, {"dfa", 32, 32, 0xfd0b27e8},
        {"match_bits", 64, 64, 0xb63ed5d997c510ea}, {"header_data", 128, 64, 0xaa8cfd101861575f},
        {"user_ptr", 192, 64, 0xc35f6c57190c3646},},
       "aaac0000e8270bfdea10c597d9d53eb65f57611810fd8caa46360c19576c5fc3"},
      {"CtCmd", {
        {"header", 0, 8, 0x82}, {"ct", 16, 11, 0x43a}, {"trig_ct", 32, 11, 0x72b},
        {"eq", 48, 11, 0x50a}, {"ct_success", 64, 48, 0x8daa5d4b823e}, {"ct_failure", 112, 7, 0x5a},
        {"with_success", 126, 1, 0x1}, {"with_failure", 127, 1, 0x0}, {"threshold", 128, 48, 0xeefb37b72076},},
       "82003a042b070a053e824b5daa8d5a407620b737fbee0000"},
      {"CqCmd", {
        {"header", 0, 8, 0xa6}, {"lcid", 32, 4, 0x8},},
       "a60000000800000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
       "00000000000000000000000000000000"},
      {"TargetCmd", {
        {"header", 0, 8, 0x89}, {"ptl_list", 8, 2, 0x3}, {"ptlte_index", 16, 11, 0x40b},
        {"event_ct_bytes", 32, 1, 0x0}, {"event_ct_overflow", 33, 1, 0x0}, {"event_ct_comm", 34, 1, 0x1},
        {"event_unlink_disable", 35, 1, 0x0}, {"event_success_disable", 36, 1, 0x0},
        {"event_comm_disable", 37, 1, 0x1}, {"event_link_disable", 38, 1, 0x0}, {"unrestricted_end_ro", 39, 1, 0x1},
        {"unrestricted_body_ro", 40, 1, 0x0}, {"unexpected_hdr_disable", 41, 1, 0x1},
        {"use_once", 42, 1, 0x0}, {"no_truncate", 43, 1, 0x1}, {"manage_local", 44, 1, 0x0},
        {"op_get", 45, 1, 0x1}, {"op_put", 46, 1, 0x1}, {"ct", 48, 11, 0x675}, {"buffer_id", 64, 16, 0x9fc1},
        {"lac", 80, 3, 0x5}, {"restart_seq", 88, 1, 0x0}, {"start", 128, 57, 0x156152543cc4204},
        {"length", 192, 56, 0xe05d470d63ab58}, {"min_free", 256, 24, 0x8b81b5}, {"match_id", 288, 32, 0xa69e9752},
        {"match_bits", 320, 64, 0xf80040e30aa2c9e6}, {"ignore_bits", 384, 64, 0xc180448b0640c9cb},},
       "89030b04a46a7506c19f0500000000000442cc432515560158ab630d475de000b5818b0052979ea6e6c9a20ae34000f8"
       "cbc940068b4480c10000000000000000"},
      {"SetStateCmd", {
        {"header", 0, 8, 0xee}, {"ptlte_state", 8, 3, 0x4}, {"ptlte_index", 16, 11, 0x474},
        {"current_addr", 64, 57, 0x1faf34444846eca}, {"drop_count", 128, 24, 0x85a58b},},
       "ee04740400000000ca6e844444f3fa018ba5850000000000000000000000000000000000000000000000000000000000"
       "00000000000000000000000000000000"},
      {"QueueStatus", {
        {"rd_ptr", 0, 16, 0xba5a}, {"num_write_cmds_rejected", 16, 16, 0x8485}, {"fail_command", 32, 8, 0xb4},
        {"return_code", 48, 6, 0x30}, {"fail_loc_32", 61, 1, 0x1}, {"fail_ll", 62, 1, 0x0},
        {"ll_disabled", 63, 1, 0x0},},
       "5aba8584b4003020"},
      {"CtWriteback", {
        {"success", 0, 48, 0xcb9dfc776923}, {"failure", 48, 7, 0x62}, {"written", 63, 1, 0x1},},
       "236977fc9dcb6280"},
      {"EqSwState", {
        {"rd_ptr", 0, 26, 0x3276c63}, {"reading_buffer_b", 31, 1, 0x0}, {"event_int_disable", 32, 1, 0x1},
        {"eq_sts_int_disable", 33, 1, 0x0}, {"event_drop_seq_no", 40, 1, 0x0},},
       "636c270301000000"},
      {"EqStatus", {
        {"timestamp_ns_copy", 0, 30, 0x3941872b}, {"timestamp_sec_copy", 64, 48, 0xa3d2ba84472e},
        {"thld_sts", 112, 1, 0x0}, {"thld_id", 116, 2, 0x3}, {"unackd_dropped_event", 120, 1, 0x0},
        {"event_drop_seq_no", 124, 1, 0x1}, {"event_slots_free", 128, 26, 0x265f3f3},
        {"event_slots_rsrvd", 160, 26, 0x3c45a8d}, {"wr_ptr", 192, 26, 0x3d0ed6d},
        {"using_buffer_b", 224, 1, 0x0}, {"timestamp_ns", 416, 30, 0x21fd778a}, {"timestamp_sec", 448, 48, 0xbd3396b7a814},},
       "2b874139000000002e4784bad2a33010f3f365028d5ac4036dedd0030000000000000000000000000000000000000000"
       "000000008a77fd2114a8b79633bd0000"},
      {"InitiatorShort", {
        {"user_ptr", 0, 64, 0x916d24bcab16fdf2}, {"mlength", 64, 32, 0xc4aa786b},
        {"ptl_list", 96, 2, 0x2}, {"rendezvous", 100, 1, 0x0}, {"retry", 101, 1, 0x0},
        {"tgt_error", 102, 1, 0x0}, {"event_size", 112, 2, 0x3}, {"event_type", 114, 5, 0x17},
        {"return_code", 120, 6, 0x3d},},
       "f2fd16abbc246d916b78aac402005f3d"},
      {"InitiatorLong", {
        {"user_ptr", 0, 64, 0xc71deb6937f946e2}, {"mlength", 64, 32, 0xd6ba5bbe},
        {"ptl_list", 96, 2, 0x3}, {"rendezvous", 100, 1, 0x1}, {"retry", 101, 1, 0x0},
        {"tgt_error", 102, 1, 0x1}, {"event_size", 112, 2, 0x3}, {"event_type", 114, 5, 0x16},
        {"return_code", 248, 6, 0x22}, {"timestamp_ns", 128, 30, 0x26a19522}, {"timestamp_sec", 192, 48, 0xcb0e2721ddbe},},
       "e246f93769eb1dc7be5bbad653005b002295a12600000000bedd21270ecb0022"},
      {"TriggeredShort", {
        {"threshold", 0, 48, 0xfabfae1e8d44}, {"ct_handle", 64, 11, 0x5bf}, {"event_size", 112, 2, 0x3},
        {"event_type", 114, 5, 0x1a}, {"return_code", 120, 6, 0x29},},
       "448d1eaebffa0000bf05000000006b29"},
      {"TriggeredLong", {
        {"threshold", 0, 48, 0xdf9a16444c0f}, {"ct_handle", 64, 11, 0x668}, {"event_size", 112, 2, 0x3},
        {"event_type", 114, 5, 0x12}, {"return_code", 248, 6, 0x23}, {"timestamp_ns", 128, 30, 0x2fbc19d8},
        {"timestamp_sec", 192, 48, 0xa5283e0c9ee2},},
       "0f4c44169adf00006806000000004b00d819bc2f00000000e29e0c3e28a50023"},
      {"CommandFailure", {
        {"cq_id", 0, 10, 0x391}, {"is_target", 10, 1, 0x0}, {"fail_loc", 16, 16, 0x801f},
        {"fail_command", 32, 8, 0xf4}, {"event_size", 112, 2, 0x3}, {"event_type", 114, 5, 0x10},
        {"return_code", 120, 6, 0x2f},},
       "91031f80f4000000000000000000432f"},
      {"TargetShort", {
        {"initiator", 64, 32, 0x88dd89ee}, {"header_data", 0, 64, 0xb86286f3945e63c0},
        {"ptlte_index", 96, 11, 0x60a}, {"ptl_list", 120, 2, 0x3}, {"auto_unlinked", 124, 1, 0x0},
        {"match_bits", 128, 64, 0xca101e063e23b168}, {"buffer_id", 192, 16, 0xce79},
        {"vni", 208, 16, 0x8e43}, {"event_size", 112, 2, 0x3}, {"event_type", 114, 5, 0x1b},
        {"return_code", 248, 6, 0x24}, {"length", 224, 20, 0xf1e83},},
       "c0635e94f38662b8ee89dd880a066f0368b1233e061e10ca79ce438e831e0f24"},
      {"TargetLong", {
        {"initiator", 64, 32, 0xdd64caee}, {"header_data", 0, 64, 0x8796e839b4ffe086},
        {"ptlte_index", 96, 11, 0x45d}, {"ptl_list", 120, 2, 0x2}, {"auto_unlinked", 124, 1, 0x0},
        {"match_bits", 128, 64, 0x979eb5587a54411f}, {"buffer_id", 192, 16, 0xda5d},
        {"vni", 208, 16, 0xda60}, {"event_size", 112, 2, 0x3}, {"event_type", 114, 5, 0x1b},
        {"return_code", 504, 6, 0x23}, {"rendezvous", 122, 1, 0x0}, {"get_issued", 123, 1, 0x1},
        {"timestamp_ns", 224, 30, 0x35ad2a2c}, {"timestamp_sec_low", 254, 2, 0x2},
        {"mlength", 256, 32, 0xb200327b}, {"rlength", 288, 32, 0x8dc8b4e7}, {"remote_offset", 320, 56, 0x80fae4b13581ea},
        {"start", 384, 57, 0x13295b0449dc34b}, {"lpe_stat_1", 448, 16, 0xc5e0}, {"lpe_stat_2", 464, 16, 0xb60a},
        {"atomic_type", 480, 4, 0xf}, {"atomic_op", 484, 4, 0xf}, {"cswap_op", 488, 3, 0x4},
        {"rendezvous_id", 496, 8, 0xc6},},
       "86e0ffb439e89687eeca64dd5d046f0a1f41547a58b59e975dda60da2c2aadb57b3200b2e7b4c88dea8135b1e4fa8000"
       "4bc39d44b0953201e0c50ab6ff04c623"},
      {"TargetLong/StateChange", {
        {"ptlte_state", 64, 3, 0x6}, {"sc_reason", 72, 4, 0xd}, {"sc_nic_auto", 80, 1, 0x1},
        {"ptlte_index", 96, 11, 0x57e}, {"event_size", 112, 2, 0x2}, {"event_type", 114, 5, 0x15},
        {"return_code", 504, 6, 0x3a},},
       "0000000000000000060d01007e0556000000000000000000000000000000000000000000000000000000000000000000"
       "0000000000000000000000000000003a"},
      {"TargetEthernet", {
        {"checksum", 0, 16, 0xf577}, {"pkt_cnt", 16, 46, 0x2533381c48a2}, {"seg_cnt", 62, 2, 0x3},
        {"rss_hash_value", 64, 32, 0xcd7958c0}, {"ptlte_index", 96, 11, 0x7f4}, {"ptl_list", 120, 2, 0x3},
        {"auto_unlinked", 124, 1, 0x0}, {"start", 128, 57, 0x16ef13c8799a089}, {"buffer_id", 192, 16, 0x8af5},
        {"rss_hash_type", 208, 5, 0x1e}, {"more_frags", 216, 1, 0x1}, {"is_roce", 218, 1, 0x1},
        {"roce_icrc_ok", 219, 1, 0x0}, {"timestamp", 220, 1, 0x0}, {"fmt", 221, 1, 0x0},
        {"parser_err", 222, 1, 0x1}, {"length", 224, 16, 0xa1dc}, {"event_size", 112, 2, 0x2},
        {"event_type", 114, 5, 0x15}, {"return_code", 248, 6, 0x3a},},
       "77f5a2481c3833e5c05879cdf407560389a099873cf16e01f58a1e45dca1003a"},
      {"EthernetFgfc", {
        {"identifier", 0, 32, 0xdb4ebb7c}, {"fgfc_type", 64, 2, 0x3}, {"xoff", 72, 1, 0x1},
        {"srcip_tag", 80, 2, 0x3}, {"credits", 96, 16, 0x8ee6}, {"event_size", 112, 2, 0x3},
        {"event_type", 114, 5, 0x1a}, {"return_code", 120, 6, 0x31},},
       "7cbb4edb0000000003010300e68e6b31"},
      {"PctEvent", {
        {"dfa", 0, 32, 0xbe07fac7}, {"seq_num", 32, 12, 0xd13}, {"pct_event_type", 64, 3, 0x5},
        {"spt_idx", 80, 11, 0x647}, {"tct_idx", 96, 13, 0x1b37}, {"event_size", 112, 2, 0x2},
        {"event_type", 114, 5, 0x16}, {"return_code", 120, 6, 0x38},},
       "c7fa07be130d000005004706371b5a38"},
      {"PctEvent/Source", {
        {"sct_idx", 96, 12, 0xa7f}, {"event_size", 112, 2, 0x3}, {"event_type", 114, 5, 0x18},
        {"return_code", 120, 6, 0x21},},
       "0000000000000000000000007f0a6321"},
      {"TimestampEvent", {
        {"timestamp_ns", 0, 30, 0x25a51f3b}, {"timestamp_sec", 64, 48, 0xb9b806c0d8ac},
        {"event_size", 112, 2, 0x2}, {"event_type", 114, 5, 0x14}, {"return_code", 120, 6, 0x28},},
       "3b1fa52500000000acd8c006b8b95228"},
      {"EventHead", {
        {"event_size", 112, 2, 0x2}, {"event_type", 114, 5, 0x1a}, {"return_code", 120, 6, 0x38},},
       "00000000000000000000000000006a38"},
  };
  return all;
}

inline const std::vector<Constant>& constants() {
  static const std::vector<Constant> all = {
      {"CXI_OP_INVALID", 0x0}, {"CXI_OP_LNI_ALLOC", 0x1}, {"CXI_OP_LNI_FREE", 0x2},
      {"CXI_OP_DOMAIN_RESERVE", 0x3}, {"CXI_OP_DOMAIN_ALLOC", 0x4}, {"CXI_OP_DOMAIN_FREE", 0x5},
      {"CXI_OP_CP_ALLOC", 0x6}, {"CXI_OP_CP_FREE", 0x7}, {"CXI_OP_CQ_ALLOC", 0x8},
      {"CXI_OP_CQ_FREE", 0x9}, {"CXI_OP_CQ_ACK_COUNTER", 0xa}, {"CXI_OP_ATU_MAP", 0xb},
      {"CXI_OP_ATU_UNMAP", 0xc}, {"CXI_OP_EQ_ALLOC", 0xd}, {"CXI_OP_EQ_FREE", 0xe},
      {"CXI_OP_EQ_RESIZE", 0xf}, {"CXI_OP_EQ_RESIZE_COMPLETE", 0x10}, {"CXI_OP_PTE_ALLOC", 0x11},
      {"CXI_OP_PTE_FREE", 0x12}, {"CXI_OP_PTE_MAP", 0x13}, {"CXI_OP_PTE_UNMAP", 0x14},
      {"CXI_OP_PTE_LE_INVALIDATE", 0x15}, {"CXI_OP_PTE_STATUS", 0x16}, {"CXI_OP_WAIT_ALLOC", 0x17},
      {"CXI_OP_WAIT_FREE", 0x18}, {"CXI_OP_CT_ALLOC", 0x19}, {"CXI_OP_CT_FREE", 0x1a},
      {"CXI_OP_SVC_LIST_GET", 0x1b}, {"CXI_OP_SVC_ALLOC", 0x1c}, {"CXI_OP_SVC_DESTROY", 0x1d},
      {"CXI_OP_MAP_CSRS", 0x1e}, {"CXI_OP_SBUS_OP_RESET", 0x1f}, {"CXI_OP_SBUS_OP", 0x20},
      {"CXI_OP_SERDES_OP", 0x21}, {"CXI_OP_GET_DEV_PROPERTIES", 0x22}, {"_OBSOLETED_CXI_OP_MAP_TELEMETRY", 0x23},
      {"_OBSOLETED_CXI_OP_UNMAP_TELEMETRY", 0x24}, {"CXI_OP_EQ_ADJUST_RESERVED_FC", 0x25},
      {"CXI_OP_CT_WB_UPDATE", 0x26}, {"_OBSOLETED_CXI_OP_RESERVE_CNTR_POOL_ID", 0x27},
      {"_OBSOLETED_CXI_OP_RELEASE_CNTR_POOL_ID", 0x28}, {"_OBSOLETED_CXI_OP_GET_TELEMETRY_REFRESH_INTERVAL", 0x29},
      {"_OBSOLETED_CXI_OP_SET_TELEMETRY_REFRESH_INTERVAL", 0x2a}, {"CXI_OP_INBOUND_WAIT", 0x2b},
      {"CXI_OP_SVC_UPDATE", 0x2c}, {"CXI_OP_SVC_GET", 0x2d}, {"_OBSOLETED_CXI_OP_START_TELEMETRY", 0x2e},
      {"_OBSOLETED_CXI_OP_STOP_TELEMETRY", 0x2f}, {"CXI_OP_PTE_TRANSITION_SM", 0x30},
      {"CXI_OP_SVC_RSRC_LIST_GET", 0x31}, {"CXI_OP_SVC_RSRC_GET", 0x32}, {"CXI_OP_ATU_UPDATE_MD", 0x33},
      {"CXI_OP_DEV_INFO_GET", 0x34}, {"CXI_OP_SVC_SET_LPR", 0x35}, {"CXI_OP_SVC_GET_LPR", 0x36},
      {"CXI_OP_DEV_ALLOC_RX_PROFILE", 0x37}, {"CXI_OP_DEV_GET_RX_PROFILE_IDS", 0x38},
      {"CXI_OP_RX_PROFILE_RELEASE", 0x39}, {"CXI_OP_RX_PROFILE_REVOKE", 0x3a}, {"CXI_OP_RX_PROFILE_GET_INFO", 0x3b},
      {"CXI_OP_RX_PROFILE_ADD_AC_ENTRY", 0x3c}, {"CXI_OP_RX_PROFILE_REMOVE_AC_ENTRY", 0x3d},
      {"CXI_OP_RX_PROFILE_GET_AC_ENTRY_IDS", 0x3e}, {"CXI_OP_RX_PROFILE_GET_AC_ENTRY_DATA_BY_ID", 0x3f},
      {"CXI_OP_RX_PROFILE_GET_AC_ENTRY_ID_BY_DATA", 0x40}, {"CXI_OP_RX_PROFILE_GET_AC_ENTRY_ID_BY_USER", 0x41},
      {"CXI_OP_DEV_ALLOC_TX_PROFILE", 0x42}, {"CXI_OP_DEV_GET_TX_PROFILE_IDS", 0x43},
      {"CXI_OP_TX_PROFILE_RELEASE", 0x44}, {"CXI_OP_TX_PROFILE_REVOKE", 0x45}, {"CXI_OP_TX_PROFILE_GET_INFO", 0x46},
      {"CXI_OP_TX_PROFILE_ADD_AC_ENTRY", 0x47}, {"CXI_OP_TX_PROFILE_REMOVE_AC_ENTRY", 0x48},
      {"CXI_OP_TX_PROFILE_GET_AC_ENTRY_IDS", 0x49}, {"CXI_OP_TX_PROFILE_GET_AC_ENTRY_DATA_BY_ID", 0x4a},
      {"CXI_OP_TX_PROFILE_GET_AC_ENTRY_ID_BY_DATA", 0x4b}, {"CXI_OP_TX_PROFILE_GET_AC_ENTRY_ID_BY_USER", 0x4c},
      {"CXI_OP_CP_MODIFY", 0x4d}, {"CXI_OP_SVC_SET_EXCLUSIVE_CP", 0x4e}, {"CXI_OP_SVC_GET_EXCLUSIVE_CP", 0x4f},
      {"CXI_OP_SVC_ENABLE", 0x50}, {"CXI_OP_SVC_SET_VNI_RANGE", 0x51}, {"CXI_OP_SVC_GET_VNI_RANGE", 0x52},
      {"CXI_OP_TRIG_CP_ALLOC", 0x53}, {"CXI_OP_SVC_SET_NETNS", 0x54}, {"CXI_OP_SVC_GET_NETNS", 0x55},
      {"CXI_OP_CQ_ALLOC_BUF", 0x56}, {"CXI_OP_VF_GET_TOKEN", 0x57}, {"CXI_OP_PHYS_LAC_ALLOC", 0x58},
      {"CXI_OP_PHYS_LAC_FREE", 0x59}, {"CXI_OP_ATU_MAP_SGT", 0x5a}, {"CXI_OP_ATU_UPDATE_SGT", 0x5b},
      {"CXI_OP_ATU_CLEAR_MD", 0x5c}, {"CXI_OP_RETRY_HANDLER_RUNNING", 0x5d}, {"CXI_OP_ETH_DEV_INFO_GET", 0x5e},
      {"CXI_OP_ETH_TC_REQ_PCP_GET", 0x5f}, {"CXI_OP_ETH_PAUSE_GET", 0x60}, {"CXI_OP_ETH_MAX_RXSIZE_GET", 0x61},
      {"CXI_OP_ETH_LINK_STATE_GET", 0x62}, {"CXI_OP_RMU_ETH_ALLOC", 0x63}, {"CXI_OP_RMU_ETH_FREE", 0x64},
      {"CXI_OP_RMU_ETH_HASH_KEY_GET", 0x65}, {"CXI_OP_RMU_ETH_ADD_MAC_FILTER", 0x66},
      {"CXI_OP_RMU_ETH_REMOVE_FILTER", 0x67}, {"CXI_OP_RMU_ETH_ADD_PROMISC_FILTER", 0x68},
      {"CXI_OP_RMU_ETH_SET_RSS_QUEUES", 0x69}, {"CXI_OP_RMU_ETH_SET_INDIR_TABLE", 0x6a},
      {"CXI_OP_RMU_ETH_ADD_ALL_MCAST_FILTER", 0x6b}, {"CXI_OP_ETH_VF_MAC_GET", 0x6c},
      {"CXI_OP_ETH_VF_MAC_VALIDATE", 0x6d}, {"CXI_OP_MAX", 0x6e}, {"CXI_TC_DEDICATED_ACCESS", 0x0},
      {"CXI_TC_LOW_LATENCY", 0x1}, {"CXI_TC_BULK_DATA", 0x2}, {"CXI_TC_BEST_EFFORT", 0x3},
      {"CXI_TC_ETH", 0x4}, {"CXI_TC_MAX", 0x5}, {"CXI_TC_TYPE_DEFAULT", 0x0}, {"CXI_TC_TYPE_HRP", 0x1},
      {"CXI_TC_TYPE_RESTRICTED", 0x2}, {"CXI_TC_TYPE_COLL_LEAF", 0x3}, {"CXI_TC_TYPE_MAX", 0x4},
      {"TRIG_LCID", 0x0}, {"NON_TRIG_LCID", 0x1}, {"ANY_LCID", 0x2}, {"CXI_CQ_UPDATE_ALWAYS", 0x0},
      {"CXI_CQ_UPDATE_HIGH_FREQ_EMPTY", 0x1}, {"CXI_CQ_UPDATE_LOW_FREQ_EMPTY", 0x2},
      {"CXI_CQ_UPDATE_LOW_FREQ", 0x3}, {"CXI_CQ_USER", 0x1}, {"CXI_CQ_IS_TX", 0x2},
      {"CXI_CQ_TX_ETHERNET", 0x4}, {"CXI_CQ_TX_WITH_TRIG_CMDS", 0x8}, {"CXI_MAX_CQ_COUNT", 0x10000},
      {"CXI_EQ_USER", 0x1}, {"CXI_EQ_PASSTHROUGH", 0x2}, {"CXI_EQ_INIT_LONG", 0x4},
      {"CXI_EQ_TGT_LONG", 0x8}, {"CXI_EQ_DROP_STATUS_DISABLE", 0x10}, {"CXI_EQ_TIMESTAMP_EVENTS", 0x20},
      {"CXI_EQ_EC_DISABLE", 0x40}, {"CXI_EQ_REGISTER_PCT", 0x80}, {"CXI_MAP_PIN", 0x1},
      {"CXI_MAP_ATS", 0x2}, {"CXI_MAP_WRITE", 0x4}, {"CXI_MAP_READ", 0x8}, {"CXI_MAP_FAULT", 0x10},
      {"CXI_MAP_NOCACHE", 0x20}, {"CXI_MAP_USER_ADDR", 0x40}, {"CXI_MAP_ATS_PT", 0x80},
      {"CXI_MAP_ATS_DYN", 0x100}, {"CXI_MAP_DEVICE", 0x200}, {"CXI_MAP_UNUSED", 0x400},
      {"CXI_MAP_ALLOC_MD", 0x800}, {"CXI_MAP_PREFETCH", 0x1000}, {"INVALID_DMABUF_FD", 0xffffffffffffffff},
      {"CXI_MD_NONE", 0x0}, {"CXI_WAIT_NONE", 0x0}, {"CXI_DEFAULT_SVC_ID", 0x1}, {"CXI_SVC_MAX_MEMBERS", 0x2},
      {"CXI_SVC_MAX_VNIS", 0x4}, {"CXI_RSRC_TYPE_PTE", 0x0}, {"CXI_RSRC_TYPE_TXQ", 0x1},
      {"CXI_RSRC_TYPE_TGQ", 0x2}, {"CXI_RSRC_TYPE_EQ", 0x3}, {"CXI_RSRC_TYPE_CT", 0x4},
      {"CXI_RSRC_TYPE_LE", 0x5}, {"CXI_RSRC_TYPE_TLE", 0x6}, {"CXI_RSRC_TYPE_AC", 0x7},
      {"CXI_RSRC_TYPE_MAX", 0x8}, {"CXI_SVC_MEMBER_IGNORE", 0x0}, {"CXI_SVC_MEMBER_UID", 0x1},
      {"CXI_SVC_MEMBER_GID", 0x2}, {"CXI_SVC_MEMBER_NET_NS", 0x3}, {"CXI_SVC_MEMBER_MAX", 0x4},
      {"CASSINI_1", 0x10}, {"CASSINI_2", 0x20}, {"CASSINI_1_0", 0x11}, {"CASSINI_1_1", 0x12},
      {"CASSINI_2_0", 0x21}, {"CASSINI_MIX", 0x0}, {"CASSINI_1_ONLY", 0x1}, {"CASSINI_2_ONLY", 0x2},
      {"C_PLATFORM_ASIC", 0x0}, {"C_PLATFORM_NETSIM", 0x1}, {"C_PLATFORM_Z1", 0x2},
      {"C_PLATFORM_FPGA", 0x3}, {"C_CMD_TYPE_IDC", 0x0}, {"C_CMD_TYPE_DMA", 0x1},
      {"C_CMD_TYPE_CT", 0x2}, {"C_CMD_TYPE_CQ", 0x3}, {"C_CMD_SIZE_32B", 0x0}, {"C_CMD_SIZE_64B", 0x1},
      {"C_CMD_SIZE_128B", 0x2}, {"C_CMD_SIZE_256B", 0x3}, {"C_CMD_NOOP", 0x0}, {"C_CMD_PUT", 0x1},
      {"C_CMD_GET", 0x2}, {"C_CMD_RENDEZVOUS_PUT", 0x3}, {"C_CMD_ATOMIC", 0x4}, {"C_CMD_FETCHING_ATOMIC", 0x5},
      {"C_CMD_ETHERNET_TX", 0x6}, {"C_CMD_SMALL_MESSAGE", 0x7}, {"C_CMD_NOMATCH_PUT", 0x8},
      {"C_CMD_NOMATCH_GET", 0x9}, {"C_CMD_CSTATE", 0xa}, {"C_CMD_CLOSE", 0xb}, {"C_CMD_CLEAR", 0xc},
      {"C_CMD_REDUCTION", 0xd}, {"C_CMD_CT_NOOP", 0x0}, {"C_CMD_CT_SET", 0x1}, {"C_CMD_CT_GET", 0x2},
      {"C_CMD_CT_INC", 0x3}, {"C_CMD_CT_CANCEL", 0x4}, {"C_CMD_CT_TRIG_DMA", 0x5},
      {"C_CMD_CT_TRIG_SET", 0x6}, {"C_CMD_CT_TRIG_INC", 0x7}, {"C_CMD_CT_TRIG_EVENT", 0x8},
      {"C_CMD_CQ_NOOP", 0x0}, {"C_CMD_CQ_FENCE", 0x1}, {"C_CMD_CQ_LCID", 0x2}, {"C_CMD_TGT_APPEND", 0x8},
      {"C_CMD_TGT_SEARCH", 0x9}, {"C_CMD_TGT_SEARCH_AND_DELETE", 0xa}, {"C_CMD_TGT_UNLINK", 0xb},
      {"C_CMD_TGT_SETSTATE", 0xc}, {"C_PTL_LIST_PRIORITY", 0x0}, {"C_PTL_LIST_OVERFLOW", 0x1},
      {"C_PTL_LIST_REQUEST", 0x2}, {"C_PTL_LIST_UNEXPECTED", 0x3}, {"C_PTLTE_RESET", 0x0},
      {"C_PTLTE_DISABLED", 0x1}, {"C_PTLTE_ENABLED", 0x2}, {"C_PTLTE_SOFTWARE_MANAGED", 0x3},
      {"C_PTLTE_ETHERNET", 0x4}, {"C_AMO_OP_MIN", 0x0}, {"C_AMO_OP_MAX", 0x1}, {"C_AMO_OP_SUM", 0x2},
      {"C_AMO_OP_LOR", 0x4}, {"C_AMO_OP_LAND", 0x5}, {"C_AMO_OP_BOR", 0x6}, {"C_AMO_OP_BAND", 0x7},
      {"C_AMO_OP_LXOR", 0x8}, {"C_AMO_OP_BXOR", 0x9}, {"C_AMO_OP_SWAP", 0xa}, {"C_AMO_OP_CSWAP", 0xb},
      {"C_AMO_OP_AXOR", 0xc}, {"C_AMO_OP_CSWAP_EQ", 0x0}, {"C_AMO_OP_CSWAP_NE", 0x1},
      {"C_AMO_OP_CSWAP_LE", 0x2}, {"C_AMO_OP_CSWAP_LT", 0x3}, {"C_AMO_OP_CSWAP_GE", 0x4},
      {"C_AMO_OP_CSWAP_GT", 0x5}, {"C_AMO_TYPE_INT8_T", 0x0}, {"C_AMO_TYPE_UINT8_T", 0x1},
      {"C_AMO_TYPE_INT16_T", 0x2}, {"C_AMO_TYPE_UINT16_T", 0x3}, {"C_AMO_TYPE_INT32_T", 0x4},
      {"C_AMO_TYPE_UINT32_T", 0x5}, {"C_AMO_TYPE_INT64_T", 0x6}, {"C_AMO_TYPE_UINT64_T", 0x7},
      {"C_AMO_TYPE_FLOAT_T", 0x8}, {"C_AMO_TYPE_FLOAT_COMPLEX_T", 0x9}, {"C_AMO_TYPE_DOUBLE_T", 0xa},
      {"C_AMO_TYPE_DOUBLE_COMPLEX_T", 0xb}, {"C_AMO_TYPE_UINT128_T", 0xc}, {"C_EVENT_SIZE_NO_EVENT", 0x0},
      {"C_EVENT_SIZE_16_BYTE", 0x1}, {"C_EVENT_SIZE_32_BYTE", 0x2}, {"C_EVENT_SIZE_64_BYTE", 0x3},
      {"C_EVENT_PUT", 0x0}, {"C_EVENT_GET", 0x1}, {"C_EVENT_ATOMIC", 0x2}, {"C_EVENT_FETCH_ATOMIC", 0x3},
      {"C_EVENT_PUT_OVERFLOW", 0x4}, {"C_EVENT_GET_OVERFLOW", 0x5}, {"C_EVENT_ATOMIC_OVERFLOW", 0x6},
      {"C_EVENT_FETCH_ATOMIC_OVERFLOW", 0x7}, {"C_EVENT_SEND", 0x8}, {"C_EVENT_ACK", 0x9},
      {"C_EVENT_REPLY", 0xa}, {"C_EVENT_LINK", 0xb}, {"C_EVENT_SEARCH", 0xc}, {"C_EVENT_STATE_CHANGE", 0xd},
      {"C_EVENT_UNLINK", 0xe}, {"C_EVENT_RENDEZVOUS", 0xf}, {"C_EVENT_ETHERNET", 0x10},
      {"C_EVENT_COMMAND_FAILURE", 0x11}, {"C_EVENT_TRIGGERED_OP", 0x12}, {"C_EVENT_ETHERNET_FGFC", 0x13},
      {"C_EVENT_PCT", 0x14}, {"C_EVENT_MATCH", 0x15}, {"C_EVENT_ERROR", 0x1c}, {"C_EVENT_TIMESTAMP", 0x1d},
      {"C_EVENT_EQ_SWITCH", 0x1e}, {"C_EVENT_NULL_EVENT", 0x1f}, {"C_SC_FC_EQ_FULL", 0x0},
      {"C_SC_FC_NO_MATCH", 0x1}, {"C_SC_FC_UNEXPECTED_FAIL", 0x2}, {"C_SC_FC_REQUEST_FULL", 0x3},
      {"C_SC_SM_UNEXPECTED_FAIL", 0x4}, {"C_SC_SM_APPEND_FAIL", 0x5}, {"C_SC_DIS_UNCOR", 0x6},
      {"C_PCT_REQUEST_NACK", 0x0}, {"C_PCT_REQUEST_TIMEOUT", 0x1}, {"C_PCT_SCT_TIMEOUT", 0x2},
      {"C_PCT_TCT_TIMEOUT", 0x3}, {"C_PCT_ACCEL_CLOSE_COMPLETE", 0x4}, {"C_PCT_RETRY_COMPLETE", 0x5},
      {"C_RC_NO_EVENT", 0x0}, {"C_RC_OK", 0x1}, {"C_RC_UNDELIVERABLE", 0x2}, {"C_RC_PT_DISABLED", 0x3},
      {"C_RC_DROPPED", 0x4}, {"C_RC_PERM_VIOLATION", 0x5}, {"C_RC_OP_VIOLATION", 0x6},
      {"C_RC_NO_MATCH", 0x8}, {"C_RC_UNCOR", 0x9}, {"C_RC_UNCOR_TRNSNT", 0xa}, {"C_RC_NO_SPACE", 0x10},
      {"C_RC_ENTRY_NOT_FOUND", 0x12}, {"C_RC_NO_TARGET_CONN", 0x13}, {"C_RC_NO_TARGET_MST", 0x14},
      {"C_RC_NO_TARGET_TRS", 0x15}, {"C_RC_SEQUENCE_ERROR", 0x16}, {"C_RC_NO_MATCHING_CONN", 0x17},
      {"C_RC_INVALID_DFA_FORMAT", 0x18}, {"C_RC_VNI_NOT_FOUND", 0x19}, {"C_RC_PTLTE_NOT_FOUND", 0x1a},
      {"C_RC_PTLTE_SW_MANAGED", 0x1b}, {"C_RC_SRC_ERROR", 0x1c}, {"C_RC_MST_CANCELLED", 0x1d},
      {"C_RC_HRP_CONFIG_ERROR", 0x1e}, {"C_RC_HRP_RSP_ERROR", 0x1f}, {"C_RC_HRP_RSP_DISCARD", 0x20},
      {"C_RC_INVALID_AC", 0x21}, {"C_RC_PAGE_PERM_ERROR", 0x22}, {"C_RC_ATS_ERROR", 0x23},
      {"C_RC_NO_TRANSLATION", 0x24}, {"C_RC_PAGE_REQ_ERROR", 0x25}, {"C_RC_PCIE_ERROR_POISONED", 0x26},
      {"C_RC_PCIE_UNSUCCESS_CMPL", 0x27}, {"C_RC_AMO_INVAL_OP_ERROR", 0x28}, {"C_RC_AMO_ALIGN_ERROR", 0x29},
      {"C_RC_AMO_FP_INVALID", 0x2a}, {"C_RC_AMO_FP_UNDERFLOW", 0x2b}, {"C_RC_AMO_FP_OVERFLOW", 0x2c},
      {"C_RC_AMO_FP_INEXACT", 0x2d}, {"C_RC_ILLEGAL_OP", 0x2e}, {"C_RC_INVALID_ENDPOINT", 0x2f},
      {"C_RC_RESTRICTED_UNICAST", 0x30}, {"C_RC_CMD_ALIGN_ERROR", 0x31}, {"C_RC_CMD_INVALID_ARG", 0x32},
      {"C_RC_INVALID_EVENT", 0x33}, {"C_RC_ADDR_OUT_OF_RANGE", 0x34}, {"C_RC_CONN_CLOSED", 0x35},
      {"C_RC_CANCELED", 0x36}, {"C_RC_NO_MATCHING_TRS", 0x37}, {"C_RC_NO_MATCHING_MST", 0x38},
      {"C_RC_DELAYED", 0x39}, {"C_RC_AMO_LENGTH_ERROR", 0x3a}, {"C_RC_PKTBUF_ERROR", 0x3b},
      {"C_RC_RESOURCE_BUSY", 0x3c}, {"C_RC_FLUSH_TRANSLATION", 0x3d}, {"C_RC_TRS_PEND_RSP", 0x3e},
      {"C_NUM_CTS", 0x800}, {"C_NUM_EQS", 0x800}, {"C_NUM_PTLTES", 0x800}, {"C_NUM_TRANSMIT_CQS", 0x400},
      {"C_NUM_TARGET_CQS", 0x200}, {"C_NUM_ACS", 0x400}, {"C_NUM_LACS", 0x8}, {"C_NUM_RGIDS", 0x100},
      {"C_RESERVED_RGID", 0x0}, {"C_COMM_PROF_PER_CQ", 0x10}, {"C_NUM_TLES", 0x800},
      {"C_PE_COUNT", 0x4}, {"C_NUM_VFS", 0x40}, {"C_CT_NONE", 0x0}, {"C_EQ_NONE", 0x0},
      {"C_MAX_IDC_PAYLOAD_RES", 0xe0}, {"C_MAX_IDC_PAYLOAD_UNR", 0xc0}, {"C_CQ_FIRST_WR_PTR", 0x4},
      {"C_CQ_FIRST_WR_PTR_32", 0x8}, {"C_CQ_CMD_SIZE", 0x40}, {"C_EE_CFG_ECB_SIZE", 0x40},
      {"C_CQ_LAUNCH_TXQ_BASE", 0x0}, {"C_CQ_LAUNCH_TGT_BASE", 0x4000000}, {"C_MEMORG_CQ_TOU", 0x8000000},
      {"C_MEMORG_EE", 0x10000000}, {"C_MEMORG_CSR", 0x40000000}, {"C_MEMORG_CSR_SIZE", 0x28000000},
      {"C_CQ_STS_TLE_IN_USE_ENTRIES", 0x4}, {"C_CQ_STS_TLE_IN_USE(0)", 0x850}, {"C_CQ_STS_MAX_TLE_IN_USE(0)", 0x870},
      {"C_CQ_LAUNCH_PAGE_SIZE", 0x10000}, {"C_TOU_LAUNCH_PAGE_SIZE", 0x10000}, {"C_EE_SW_STATE_PAGE_SIZE", 0x10000},
      {"CT_INC_SUCCESS_OFFSET", 0x0}, {"CT_INC_FAILURE_OFFSET", 0x40}, {"CT_RESET_SUCCESS_OFFSET", 0x80},
      {"CT_RESET_FAILURE_OFFSET", 0xc0}, {"CT_SUCCESS_MASK", 0xffffffffffff}, {"CT_FAILURE_MASK", 0x7f},
      {"C_NID_ANY", 0xfffff}, {"C_PID_ANY", 0x1ff}, {"C_RANK_ANY", 0x7fffff}, {"CXI_MATCH_ID_ANY", 0xffffffff},
      {"C_DFA_PID_BITS_MIN", 0x6}, {"C_DFA_PID_BITS_MAX", 0x9}, {"C_DFA_NIC_BITS", 0x14},
      {"C_DFA_MULTICAST_ID_BITS", 0xd}, {"C_DFA_INDEX_EXT_BITS", 0x5}, {"C_DFA_ENDPOINT_DEFINED_BITS", 0xc},
      {"CXI_MCAST_FA_FORMAT", 0x1ff}, {"CXI_MCAST_FA_ACTION", 0x7}, {"offsetof(struct c_cmdq, wr_ptr)", 0x0},
      {"offsetof(struct c_cmdq, ll_wr64a0123)", 0x400}, {"offsetof(struct c_cmdq, ll_wr128a02)", 0x800},
      {"offsetof(struct c_cmdq, ll_wr128a13)", 0xc00}, {"sizeof(struct c_cmdq)", 0x1000},
      {"offsetof(struct c_ct_cmd, embedded_dma)", 0x18}, {"offsetof(struct c_idc_msg_hdr, data)", 0x20},
      {"offsetof(struct c_idc_put_cmd, data)", 0x10}, {"LL_OFFSET(45)", 0x180}, {"C_LE_EVENT_CT_BYTES", 0x1},
      {"C_LE_EVENT_CT_OVERFLOW", 0x2}, {"C_LE_EVENT_CT_COMM", 0x4}, {"C_LE_EVENT_UNLINK_DISABLE", 0x8},
      {"C_LE_EVENT_SUCCESS_DISABLE", 0x10}, {"C_LE_EVENT_COMM_DISABLE", 0x20}, {"C_LE_EVENT_LINK_DISABLE", 0x40},
      {"C_LE_UNRESTRICTED_END_RO", 0x80}, {"C_LE_UNRESTRICTED_BODY_RO", 0x100}, {"C_LE_UNEXPECTED_HDR_DISABLE", 0x200},
      {"C_LE_USE_ONCE", 0x400}, {"C_LE_NO_TRUNCATE", 0x800}, {"C_LE_MANAGE_LOCAL", 0x1000},
      {"C_LE_OP_GET", 0x2000}, {"C_LE_OP_PUT", 0x4000},
  };
  return all;
}

inline const std::vector<Constant>& options() {
  static const std::vector<Constant> all = {
      {"en_event_match", 0x1}, {"clr_remote_offset", 0x2}, {"en_flowctrl", 0x4}, {"use_long_event", 0x8},
      {"lossless", 0x10}, {"en_restricted_unicast_lm", 0x20}, {"use_logical", 0x40},
      {"is_matching", 0x80}, {"do_space_check", 0x100}, {"en_align_lm", 0x200}, {"en_sw_hw_st_chng", 0x400},
      {"ethernet", 0x800}, {"signal_invalid", 0x1000}, {"signal_underflow", 0x2000},
      {"signal_overflow", 0x4000}, {"signal_inexact", 0x8000}, {"en_match_on_vni", 0x10000},
      {"restricted_members", 0x1}, {"restricted_vnis", 0x2}, {"restricted_tcs", 0x4},
      {"resource_limits", 0x8}, {"enable", 0x10}, {"is_system_svc", 0x20}, {"cntr_pool_id", 0xc0},
  };
  return all;
}

inline const std::vector<Header>& headers() {
  static const std::vector<Header> all = {
      {0, 0, 0, 0x00},
      {0, 1, 5, 0x54},
      {0, 2, 10, 0xa8},
      {0, 3, 15, 0xfc},
      {1, 2, 1, 0x19},
      {1, 3, 6, 0x6d},
      {1, 0, 11, 0xb1},
      {2, 0, 2, 0x22},
      {2, 1, 7, 0x76},
      {2, 2, 12, 0xca},
      {3, 2, 3, 0x3b},
      {3, 3, 8, 0x8f},
      {3, 0, 13, 0xd3},
  };
  return all;
}

inline const std::vector<Address>& addresses() {
  static const std::vector<Address> all = {
      {0x0, 0, 9, 0, 0x00000000, 0, 0x00000000},
      {0xfffff, 510, 9, 255, 0xfffffffe, 31, 0xff0fffff},
      {0x12345, 17, 9, 31, 0x12345011, 31, 0x08812345},
      {0x54321, 300, 9, 32, 0x5432132c, 0, 0x96054321},
      {0x7, 63, 6, 1000, 0x000077ff, 8, 0xfc000007},
      {0x9, 1, 8, 500, 0x00009f01, 20, 0x01000009},
  };
  return all;
}

inline const std::vector<Multicast>& multicasts() {
  static const std::vector<Multicast> all = {
      {0x0, 0, 0, 0xff800007, 0x0},
      {0x1fff, 7, 31, 0xff9cffff, 0x3ffff},
      {0x1234, 5, 9, 0xff9491a7, 0x13234},
  };
  return all;
}

inline const std::vector<unsigned>& atomic_sizes() {
  static const std::vector<unsigned> all = {
      1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 0, 0, 0
  };
  return all;
}

// clang-format on

}  // namespace golden_cxi
