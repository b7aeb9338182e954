// SPDX-License-Identifier: Apache-2.0
// The calls of the public CXI header, as golden_cxi.hpp has the formats. Written by record/record_cxi.c.
#pragma once

#include <vector>

#include "golden_cxi.hpp"

namespace golden_cxi {

// clang-format off
inline const std::vector<Format>& calls() {
  static const std::vector<Format> all = {
      {"CmdHead", {
        {"op", 0, 32, 0xcabea221}, {"resp", 64, 64, 0x9417034723148989},},
       "21a2beca000000008989142347031794"},
      {"MmInfo", {
        {"offset", 0, 64, 0xdd555950609dfe03}, {"size", 64, 64, 0xdbafb150deb12800},},
       "03fe9d60505955dd0028b1de50b1afdb"},
      {"LniAllocCmd", {
        {"op", 0, 32, 0xec442cb6}, {"resp", 64, 64, 0xf41e5636c7e4f8c4}, {"svc_id", 128, 32, 0xf8fba7e4},},
       "b62c44ec00000000c4f8e4c736561ef4e4a7fbf800000000"},
      {"LniAllocResp", {
        {"lni", 0, 32, 0xbcdb9eea},},
       "ea9edbbc"},
      {"LniFreeCmd", {
        {"op", 0, 32, 0xf9520068}, {"lni", 32, 32, 0xe116868b},},
       "680052f98b8616e1"},
      {"DomainReserveCmd", {
        {"op", 0, 32, 0xa2023cbd}, {"resp", 64, 64, 0xdf98cb79a37b51b9}, {"lni", 128, 32, 0xd24f3905},
        {"vni", 160, 32, 0xeca3b276}, {"pid", 192, 32, 0xd104e85a}, {"count", 224, 32, 0x9fd533b3},},
       "bd3c02a200000000b9517ba379cb98df05394fd276b2a3ec5ae804d1b333d59f"},
      {"DomainReserveResp", {
        {"pid", 0, 32, 0xd0ab4b56},},
       "564babd0"},
      {"DomainAllocCmd", {
        {"op", 0, 32, 0x80fe62c5}, {"resp", 64, 64, 0xf68912e3a6bcedc7}, {"lni", 128, 32, 0xb32c7c88},
        {"vni", 160, 32, 0xa0bd47da}, {"pid", 192, 32, 0xe0bb7c4f},},
       "c562fe8000000000c7edbca6e31289f6887c2cb3da47bda04f7cbbe000000000"},
      {"DomainAllocResp", {
        {"domain", 0, 32, 0xc34a346d}, {"vni", 32, 32, 0xe0416d7f}, {"pid", 64, 32, 0xe0e10a5e},},
       "6d344ac37f6d41e05e0ae1e0"},
      {"DomainFreeCmd", {
        {"op", 0, 32, 0xd064e22f}, {"domain", 32, 32, 0x87df3af2},},
       "2fe264d0f23adf87"},
      {"CpAllocCmd", {
        {"op", 0, 32, 0x89ea30e4}, {"resp", 64, 64, 0x9ade6673cc6c522b}, {"lni", 128, 32, 0xce37087c},
        {"vni", 160, 32, 0x9f51f27b}, {"tc", 192, 32, 0xcee481ea}, {"tc_type", 224, 32, 0xbc59a1f1},},
       "e430ea89000000002b526ccc7366de9a7c0837ce7bf2519fea81e4cef1a159bc"},
      {"TrigCpAllocCmd", {
        {"op", 0, 32, 0xe51ea4da}, {"resp", 64, 64, 0xa5242f018fc01ac6}, {"lni", 128, 32, 0xa31b717c},
        {"vni", 160, 32, 0x9797d3a2}, {"tc", 192, 32, 0xc4ac1880}, {"tc_type", 224, 32, 0xc2c28a7d},
        {"cp_type", 256, 32, 0xe4327351},},
       "daa41ee500000000c61ac08f012f24a57c711ba3a2d397978018acc47d8ac2c2517332e400000000"},
      {"CpAllocResp", {
        {"cp_hndl", 0, 32, 0xd9e9c06d}, {"lcid", 32, 32, 0xc6524825},},
       "6dc0e9d9254852c6"},
      {"CpFreeCmd", {
        {"op", 0, 32, 0xe2a51616}, {"cp_hndl", 32, 32, 0xc53f2b3a},},
       "1616a5e23a2b3fc5"},
      {"CpModifyCmd", {
        {"op", 0, 32, 0x94b9c33e}, {"cp_hndl", 32, 32, 0xa447e8ab}, {"vni", 64, 32, 0xaa1a245e},},
       "3ec3b994abe847a45e241aaa"},
      {"MdHints", {
        {"page_shift", 0, 32, 0xfd7b3b98}, {"huge_shift", 32, 32, 0xc536912f}, {"ptg_mode", 64, 32, 0xecf9881a},
        {"ptg_mode_valid", 96, 1, 0x0}, {"dmabuf_fd", 128, 32, 0x9e7f46ab}, {"dmabuf_offset", 192, 64, 0xdedf66783eddb4a0},
        {"dmabuf_valid", 256, 1, 0x0},},
       "983b7bfd2f9136c51a88f9ec00000000ab467f9e00000000a0b4dd3e7866dfde0000000000000000"},
      {"Md", {
        {"iova", 0, 64, 0xbb41fe601fefb566}, {"va", 64, 64, 0xdc3702e4c7bf19f1}, {"len", 128, 64, 0x8c7d1d0d3d4a8ec5},
        {"lac", 192, 8, 0xcb}, {"page_shift", 224, 32, 0xf530844b}, {"huge_shift", 256, 32, 0xcd57959c},
        {"id", 288, 32, 0xfe90b68e},},
       "66b5ef1f60fe41bbf119bfc7e40237dcc58e4a3d0d1d7d8ccb0000004b8430f59c9557cd8eb690fe"},
      {"AtuMapCmd", {
        {"op", 0, 32, 0xa696fbd3}, {"resp", 64, 64, 0xf009346385a45644}, {"lni", 128, 32, 0x9520dd73},
        {"va", 192, 64, 0xf5a59d61ae0f8464}, {"len", 256, 64, 0xd9600a5f4b8b735c},
        {"flags", 320, 32, 0xc2774058}, {"hints.page_shift", 384, 32, 0x9a613341},
        {"hints.huge_shift", 416, 32, 0xf390fd42}, {"hints.ptg_mode", 448, 32, 0x8a8cae7c},
        {"hints.ptg_mode_valid", 480, 1, 0x1}, {"hints.dmabuf_fd", 512, 32, 0xcc38672a},
        {"hints.dmabuf_offset", 576, 64, 0x83731d929aa1ff24}, {"hints.dmabuf_valid", 640, 1, 0x1},},
       "d3fb96a6000000004456a485633409f073dd20950000000064840fae619da5f55c738b4b5f0a60d9584077c200000000"
       "4133619a42fd90f37cae8c8a010000002a6738cc0000000024ffa19a921d73830100000000000000"},
      {"AtuMapResp", {
        {"id", 0, 32, 0x8aab8b70}, {"md.iova", 64, 64, 0x8f022cd022ea0cbf}, {"md.va", 128, 64, 0xba7e97a12f21baa6},
        {"md.len", 192, 64, 0xb895acc1e36f3046}, {"md.lac", 256, 8, 0xc0}, {"md.page_shift", 288, 32, 0xd89b430b},
        {"md.huge_shift", 320, 32, 0xeefd6c18}, {"md.id", 352, 32, 0xb6b9345e},},
       "708bab8a00000000bf0cea22d02c028fa6ba212fa1977eba46306fe3c1ac95b8c00000000b439bd8186cfdee5e34b9b6"},
      {"AtuUnmapCmd", {
        {"op", 0, 32, 0xeee5762b}, {"id", 32, 32, 0xf932dcbd},},
       "2b76e5eebddc32f9"},
      {"AtuUpdateMdCmd", {
        {"op", 0, 32, 0xf41fe7d9}, {"id", 32, 32, 0xedffc430}, {"va", 64, 64, 0xea5efe3a842100a4},
        {"len", 128, 64, 0x8d4cc01bf4e09a16}, {"flags", 192, 32, 0x97c97212},},
       "d9e71ff430c4ffeda40021843afe5eea169ae0f41bc04c8d1272c99700000000"},
      {"PhysLacAllocCmd", {
        {"op", 0, 32, 0xe9c8b3ac}, {"resp", 64, 64, 0xd3d290fa4dcee280}, {"lni", 128, 32, 0xf8000997},},
       "acb3c8e90000000080e2ce4dfa90d2d3970900f800000000"},
      {"PhysLacAllocResp", {
        {"lac", 0, 32, 0xd6756763},},
       "636775d6"},
      {"PhysLacFreeCmd", {
        {"op", 0, 32, 0xf19dc103}, {"lni", 32, 32, 0xe0df3fee}, {"lac", 64, 32, 0xc72f7146},},
       "03c19df1ee3fdfe046712fc7"},
      {"WaitAllocCmd", {
        {"op", 0, 32, 0x9149cbba}, {"resp", 64, 64, 0x90ec1a636fd6612d}, {"lni", 128, 32, 0xe50fa766},},
       "bacb4991000000002d61d66f631aec9066a70fe500000000"},
      {"WaitAllocResp", {
        {"client_id", 0, 32, 0xcac3adc2}, {"wait", 32, 32, 0xdce17a0c},},
       "c2adc3ca0c7ae1dc"},
      {"WaitFreeCmd", {
        {"op", 0, 32, 0xe2191df9}, {"resp", 64, 64, 0xbf3d169157da4aef}, {"wait", 128, 32, 0xb367f9df},},
       "f91d19e200000000ef4ada5791163dbfdff967b300000000"},
      {"InboundWaitCmd", {
        {"op", 0, 32, 0xfbd33cae},},
       "ae3cd3fb"},
      {"MapCsrsCmd", {
        {"op", 0, 32, 0xb64a8fa9}, {"resp", 64, 64, 0xe494760f1ba45656},},
       "a98f4ab6000000005656a41b0f7694e4"},
      {"MapCsrsResp", {
        {"csr.offset", 0, 64, 0xa1b556b8b6ee2c5f}, {"csr.size", 64, 64, 0xa1ed31d3d69b05cc},},
       "5f2ceeb6b856b5a1cc059bd6d331eda1"},
      {"DevInfoGetCmd", {
        {"op", 0, 32, 0xf1a39e83}, {"resp", 64, 64, 0xb9b3379a4081919a},},
       "839ea3f1000000009a9181409a37b3b9"},
      {"DevInfo", {
        {"nid", 0, 32, 0x8bf14a28}, {"pid_bits", 32, 32, 0xce040f10}, {"pid_count", 64, 32, 0xfadfc8b3},
        {"pid_granule", 96, 32, 0xa76c88e4}, {"min_free_shift", 128, 32, 0xa0811612},
        {"rdzv_get_idx", 160, 32, 0xb0b2d28c}, {"vendor_id", 192, 32, 0x830215a8},
        {"device_id", 224, 32, 0xf8d039fe}, {"device_rev", 256, 32, 0xee08c0b5}, {"device_proto", 288, 32, 0xe905324f},
        {"device_platform", 320, 32, 0x9e945862}, {"pct_eq", 352, 32, 0xc39547ee},
        {"uc_nic", 384, 32, 0x8a7e3ef0}, {"link_mtu", 448, 64, 0xbdb34783d40d6e72},
        {"link_speed", 512, 64, 0xb2fd49e41fa25861}, {"link_state", 576, 8, 0xa3},
        {"num_ptes", 592, 16, 0x82b4}, {"num_txqs", 608, 16, 0x84e4}, {"num_tgqs", 624, 16, 0xe8ce},
        {"num_eqs", 640, 16, 0x8d71}, {"num_cts", 656, 16, 0xe6b5}, {"num_acs", 672, 16, 0x88cd},
        {"num_tles", 688, 16, 0xf0ba}, {"num_les", 704, 16, 0xec53}, {"fru_description[0]", 720, 8, 0x94},
        {"fru_description[1]", 728, 8, 0xa9}, {"fru_description[2]", 736, 8, 0xd6},
        {"fru_description[3]", 744, 8, 0xfa}, {"fru_description[4]", 752, 8, 0xf0},
        {"fru_description[5]", 760, 8, 0xb8}, {"fru_description[6]", 768, 8, 0xbd},
        {"fru_description[7]", 776, 8, 0x84}, {"fru_description[8]", 784, 8, 0x88},
        {"fru_description[9]", 792, 8, 0xf2}, {"fru_description[10]", 800, 8, 0xaa},
        {"fru_description[11]", 808, 8, 0x8d}, {"fru_description[12]", 816, 8, 0xfc},
        {"fru_description[13]", 824, 8, 0xdf}, {"fru_description[14]", 832, 8, 0xa8},
        {"fru_description[15]", 840, 8, 0x94}, {"cassini_version", 864, 32, 0x82158220},
        {"system_type_identifier", 896, 32, 0xb6811522},},
       "284af18b100f04ceb3c8dffae4886ca7121681a08cd2b2b0a8150283fe39d0f8b5c008ee4f3205e96258949eee4795c3"
       "f03e7e8a00000000726e0dd48347b3bd6158a21fe449fdb2a300b482e484cee8718db5e6cd88baf053ec94a9d6faf0b8"
       "bd8488f2aa8dfcdfa894000020821582221581b600000000"},
      {"RetryHandlerRunningCmd", {
        {"op", 0, 32, 0xb526a978}, {"resp", 64, 64, 0xa00d7fb47afa2772},},
       "78a926b5000000007227fa7ab47f0da0"},
      {"RetryHandlerRunningResp", {
        {"running", 0, 1, 0x1},},
       "01"},
      {"CqAllocOpts", {
        {"count", 0, 32, 0x8ed84107}, {"policy", 32, 32, 0xecb535ef}, {"stat_cnt_pool", 64, 32, 0xc82d1e2a},
        {"flags", 96, 32, 0xa01ef5ac}, {"lcid", 128, 32, 0xfd0b27e8}, {"lpe_cdt_thresh_id", 160, 32, 0x97c510ea},},
       "0741d88eef35b5ec2a1e2dc8acf51ea0e8270bfdea10c597"},
      {"CqAllocOptsBuf", {
        {"opts.count", 0, 32, 0x9861575f}, {"opts.policy", 32, 32, 0x990c3646}, {"opts.stat_cnt_pool", 64, 32, 0xa30b6282},
        {"opts.flags", 96, 32, 0x99509c3a}, {"opts.lcid", 128, 32, 0xdb7b532b}, {"opts.lpe_cdt_thresh_id", 160, 32, 0xc924350a},
        {"buf", 192, 64, 0xdd5c0daa5d4b823e}, {"is_host_mem", 256, 1, 0x0}, {"dmabuf_fd", 288, 32, 0xcd9bbf45},
        {"dmabuf_offset", 320, 64, 0xe92ab383113c68ae},},
       "5f57619846360c9982620ba33a9c50992b537bdb0a3524c93e824b5daa0d5cdd0000000045bf9bcdae683c1183b32ae9"},
      {"CqAllocCmd", {
        {"op", 0, 32, 0xef484328}, {"resp", 64, 64, 0x99866efb37b72076}, {"lni", 128, 32, 0xc7108ba6},
        {"eq", 160, 32, 0xbd5c0ca0}, {"opts.count", 192, 32, 0xf3e81d09}, {"opts.policy", 224, 32, 0xa50bc6b9},
        {"opts.stat_cnt_pool", 256, 32, 0x9a68740b}, {"opts.flags", 288, 32, 0xa0f932cc},
        {"opts.lcid", 320, 32, 0x81ee6d4e}, {"opts.lpe_cdt_thresh_id", 352, 32, 0x90f3f2ef},},
       "284348ef000000007620b737fb6e8699a68b10c7a00c5cbd091de8f3b9c60ba50b74689acc32f9a04e6dee81eff2f390"},
      {"CqAllocBufCmd", {
        {"op", 0, 32, 0x9485bd62}, {"resp", 64, 64, 0x969e36e0e6f9b6de}, {"lni", 128, 32, 0xf28c5483},
        {"eq", 160, 32, 0xf0076b77}, {"opts.opts.count", 192, 32, 0xa7a448f6}, {"opts.opts.policy", 224, 32, 0x95feb53a},
        {"opts.opts.stat_cnt_pool", 256, 32, 0xa7803150}, {"opts.opts.flags", 288, 32, 0xbd21581c},
        {"opts.opts.lcid", 320, 32, 0xfa85a239}, {"opts.opts.lpe_cdt_thresh_id", 352, 32, 0xf3b129ae},
        {"opts.buf", 384, 64, 0xf7b69e4fcfe53920}, {"opts.is_host_mem", 448, 1, 0x1},
        {"opts.dmabuf_fd", 480, 32, 0x99e23471}, {"opts.dmabuf_offset", 512, 64, 0xb6e7a8e998fe1e04},},
       "62bd859400000000deb6f9e6e0369e9683548cf2776b07f0f648a4a73ab5fe95503180a71c5821bd39a285faae29b1f3"
       "2039e5cf4f9eb6f7010000007134e299041efe98e9a8e7b6"},
      {"CqAllocResp", {
        {"cq", 0, 32, 0xb39c8cd9}, {"count", 32, 32, 0xab7aee65}, {"cmds.offset", 64, 64, 0xa086704201a7469e},
        {"cmds.size", 128, 64, 0xda5d698442d2e216}, {"wp_addr.offset", 192, 64, 0xe421106739485e0c},
        {"wp_addr.size", 256, 64, 0xea88e48d6eedd5ed},},
       "d98c9cb365ee7aab9e46a701427086a016e2d24284695dda0c5e4839671021e4edd5ed6e8de488ea"},
      {"CqFreeCmd", {
        {"op", 0, 32, 0xd142564d}, {"cq", 32, 32, 0xae70f466},},
       "4d5642d166f470ae"},
      {"CqAckCounterCmd", {
        {"op", 0, 32, 0xd26d6ee5}, {"resp", 64, 64, 0xfb3bef18a0e0c8a9}, {"cq", 128, 32, 0xb6d9566b},},
       "e56e6dd200000000a9c8e0a018ef3bfb6b56d9b600000000"},
      {"CqAckCounterResp", {
        {"ack_counter", 0, 32, 0xf30a5bdf},},
       "df5b0af3"},
      {"EqAttr", {
        {"queue", 0, 64, 0xb9b7d6906877ea75}, {"queue_len", 64, 64, 0xf618a46b8de61fc1},
        {"flags", 128, 64, 0xbfb889497a2f1241}, {"status_thresh_base", 192, 32, 0xfefa8bc5},
        {"status_thresh_delta", 224, 32, 0xefd63f9a}, {"status_thresh_count", 256, 32, 0xc3cc4204},
        {"ec_delay", 288, 32, 0x8d63ab58}, {"cpu_affinity", 320, 32, 0xb38b81b5},},
       "75ea776890d6b7b9c11fe68d6ba418f641122f7a4989b8bfc58bfafe9a3fd6ef0442ccc358ab638db5818bb300000000"},
      {"EqAllocCmd", {
        {"op", 0, 32, 0xa69e9752}, {"resp", 64, 64, 0xf80040e30aa2c9e6}, {"lni", 128, 32, 0x8640c9cb},
        {"queue_md", 160, 32, 0x83c9456e}, {"event_wait", 192, 32, 0xe128036c}, {"status_wait", 224, 32, 0xebb0f074},
        {"attr.queue", 256, 64, 0xa9faf34444846eca}, {"attr.queue_len", 320, 64, 0xb3c982023f05a58b},
        {"attr.flags", 384, 64, 0xe6efc66581e03a5a}, {"attr.status_thresh_base", 448, 32, 0xcb758485},
        {"attr.status_thresh_delta", 480, 32, 0xf005a534}, {"attr.status_thresh_count", 512, 32, 0xaaa99d70},
        {"attr.ec_delay", 544, 32, 0xc1397e0f}, {"attr.cpu_affinity", 576, 32, 0x86de6e03},},
       "52979ea600000000e6c9a20ae34000f8cbc940866e45c9836c0328e174f0b0ebca6e844444f3faa98ba5053f0282c9b3"
       "5a3ae08165c6efe6858475cb34a505f0709da9aa0f7e39c1036ede8600000000"},
      {"EqAllocResp", {
        {"eq", 0, 32, 0xd9388a9f}, {"csr.offset", 64, 64, 0xc43aa3ece4266ee2}, {"csr.size", 128, 64, 0x893bc7d1412eae2d},},
       "9f8a38d900000000e26e26e4eca33ac42dae2e41d1c73b89"},
      {"EqFreeCmd", {
        {"op", 0, 32, 0xcf9b080e}, {"eq", 32, 32, 0xfc776923},},
       "0e089bcf236977fc"},
      {"EqResizeCmd", {
        {"op", 0, 32, 0xdd4dade2}, {"eq_hndl", 32, 32, 0xc3b36609}, {"queue", 64, 64, 0xa283c0a27f964ef1},
        {"queue_len", 128, 64, 0xba9760919b276c63}, {"queue_md", 192, 32, 0xe9a70cfb},},
       "e2ad4ddd0966b3c3f14e967fa2c083a2636c279b916097bafb0ca7e900000000"},
      {"EqResizeCompleteCmd", {
        {"op", 0, 32, 0x85a819c8}, {"eq_hndl", 32, 32, 0xbfb26034},},
       "c819a8853460b2bf"},
      {"EqAdjustReservedFcCmd", {
        {"op", 0, 32, 0xae8578dd}, {"resp", 64, 64, 0xc810f4676d8701df}, {"eq_hndl", 128, 32, 0x854b1dfc},
        {"value", 160, 32, 0xe44845d6},},
       "dd7885ae00000000df01876d67f410c8fc1d4b85d64548e4"},
      {"EqAdjustReservedFcResp", {
       },
       "00000000"},
      {"CtAllocCmd", {
        {"op", 0, 32, 0xe347f3d0}, {"resp", 64, 64, 0xd5e66dbd1941872b}, {"lni", 128, 32, 0xba84472e},
        {"wb", 192, 64, 0xc7f3f0870c5c4777},},
       "d0f347e3000000002b874119bd6de6d52e4784ba0000000077475c0c87f0f3c7"},
      {"CtAllocResp", {
        {"ctn", 0, 32, 0xfc0753ae}, {"doorbell.offset", 64, 64, 0xbb640796bb30ec97},
        {"doorbell.size", 128, 64, 0xcafa1f062e65178b},},
       "ae5307fc0000000097ec30bb960764bb8b17652e061ffaca"},
      {"CtFreeCmd", {
        {"op", 0, 32, 0xf2c795cc}, {"ctn", 32, 32, 0xa69c9199},},
       "cc95c7f299919ca6"},
      {"CtWbUpdateCmd", {
        {"op", 0, 32, 0xd7a5211d}, {"ctn", 32, 32, 0xae65f3f3}, {"wb", 64, 64, 0xa0dbe71321c45a8d},},
       "1d21a5d7f3f365ae8d5ac42113e7dba0"},
      {"PteAllocCmd", {
        {"op", 0, 32, 0xabd0ed6d}, {"resp", 64, 64, 0xb7782c5d1f5e6169}, {"lni_hndl", 128, 32, 0x98b71886},
        {"evtq_hndl", 160, 32, 0xc1fd778a}, {"opts", 192, 64, 0x9ebabd3396b7a814},},
       "6dedd0ab0000000069615e1f5d2c78b78618b7988a77fdc114a8b79633bdba9e"},
      {"PteAllocResp", {
        {"pte_number", 0, 32, 0xab16fdf2},},
       "f2fd16ab"},
      {"PteFreeCmd", {
        {"op", 0, 32, 0xc4aa786b}, {"resp", 64, 64, 0xeb236674dac1ea4a}, {"pte_number", 128, 32, 0xab29e115},},
       "6b78aac4000000004aeac1da746623eb15e129ab00000000"},
      {"PteMapCmd", {
        {"op", 0, 32, 0x99fe208e}, {"resp", 64, 64, 0xb5b8dc2e663d5ad6}, {"pte_number", 128, 32, 0xc44d6fe0},
        {"domain_hndl", 160, 32, 0xdc9b701e}, {"pid_offset", 192, 32, 0xbd84f93e},
        {"is_multicast", 224, 1, 0x1},},
       "8e20fe9900000000d65a3d662edcb8b5e06f4dc41e709bdc3ef984bd01000000"},
      {"PteMapResp", {
        {"pte_index", 0, 32, 0xd6b5bf3d},},
       "3dbfb5d6"},
      {"PteUnmapCmd", {
        {"op", 0, 32, 0xb7f946e2}, {"resp", 64, 64, 0xacffa34c56ba5bbe}, {"pte_index", 128, 32, 0x92bb10c7},},
       "e246f9b700000000be5bba564ca3ffacc710bb9200000000"},
      {"PteLeInvalidateCmd", {
        {"op", 0, 32, 0xc86f33f8}, {"pte_index", 32, 32, 0xbd291115}, {"buffer_id", 64, 32, 0xf94f9e97},
        {"list", 96, 32, 0xbff6d4c0},},
       "f8336fc8151129bd979e4ff9c0d4f6bf"},
      {"PteStatusCmd", {
        {"op", 0, 32, 0xc33d099c}, {"resp", 64, 64, 0x8db4122934ad4945}, {"pte_index", 128, 32, 0x91ffbdd5},},
       "9c093dc3000000004549ad342912b48dd5bdff9100000000"},
      {"PteStatus", {
        {"drop_count", 0, 32, 0x965edfe6}, {"state", 32, 8, 0x82}, {"les_reserved", 48, 16, 0x9522},
        {"les_allocated", 64, 16, 0xddbe}, {"les_max", 80, 16, 0x8d44}, {"ule_offsets", 128, 64, 0xc3431f435c4ce1bf},
        {"ule_count", 192, 16, 0xeb9d},},
       "e6df5e9682002295bedd448d00000000bfe14c5c431f43c39deb000000000000"},
      {"PteTransitionSmCmd", {
        {"op", 0, 32, 0xf4471b4a}, {"resp", 64, 64, 0xddf154502530f029}, {"pte_index", 128, 32, 0x96444c0f},
        {"drop_count", 160, 32, 0xd24af668},},
       "4a1b47f40000000029f030255054f1dd0f4c449668f64ad2"},
      {"Limits", {
        {"max", 0, 16, 0xed9d}, {"res", 16, 16, 0xca12},},
       "9ded12ca"},
      {"SvcDesc", {
        {"flags", 0, 8, 0x83}, {"num_vld_vnis", 8, 8, 0xd8}, {"vnis[0]", 16, 16, 0x9ee2},
        {"vnis[1]", 32, 16, 0x9d91}, {"vnis[2]", 48, 16, 0xd1c6}, {"vnis[3]", 64, 16, 0xd206},
        {"tcs[0]", 80, 1, 0x0}, {"tcs[1]", 88, 1, 0x0}, {"tcs[2]", 96, 1, 0x0}, {"tcs[3]", 104, 1, 0x0},
        {"tcs[4]", 112, 1, 0x1}, {"members[0].id", 128, 32, 0xe774d752}, {"members[0].type", 160, 32, 0xbe23b168},
        {"members[1].id", 192, 32, 0xefeece79}, {"members[1].type", 224, 32, 0xf7040e43},
        {"limits[0].max", 256, 16, 0xc91d}, {"limits[0].res", 272, 16, 0xdd6b}, {"limits[1].max", 288, 16, 0xd7e4},
        {"limits[1].res", 304, 16, 0x9e83}, {"limits[2].max", 320, 16, 0xcaee}, {"limits[2].res", 336, 16, 0xe086},
        {"limits[3].max", 352, 16, 0xcc5d}, {"limits[3].res", 368, 16, 0xc74c}, {"limits[4].max", 384, 16, 0xa8b6},
        {"limits[4].res", 400, 16, 0x82ce}, {"limits[5].max", 416, 16, 0xc11f}, {"limits[5].res", 432, 16, 0xda5d},
        {"limits[6].max", 448, 16, 0xda60}, {"limits[6].res", 464, 16, 0xdd57}, {"limits[7].max", 480, 16, 0x862b},
        {"limits[7].res", 496, 16, 0xc463}, {"svc_id", 512, 32, 0xe13d12ef},},
       "83d8e29e919dc6d106d200000000010052d774e768b123be79ceeeef430e04f71dc96bdde4d7839eeeca86e05dcc4cc7"
       "b6a8ce821fc15dda60da57dd2b8663c4ef123de1"},
      {"SvcFailInfo", {
        {"rsrc_avail[0]", 0, 16, 0xa39a}, {"rsrc_avail[1]", 16, 16, 0xb0bf}, {"rsrc_avail[2]", 32, 16, 0xde29},
        {"rsrc_avail[3]", 48, 16, 0xaa2c}, {"rsrc_avail[4]", 64, 16, 0x8122}, {"rsrc_avail[5]", 80, 16, 0xb27b},
        {"rsrc_avail[6]", 96, 16, 0xb4e7}, {"rsrc_avail[7]", 112, 16, 0x81ea}, {"no_le_pools", 128, 1, 0x0},
        {"no_tle_pools", 136, 1, 0x1}, {"no_cntr_pools", 144, 1, 0x0},},
       "9aa3bfb029de2caa22817bb2e7b4ea8100010000"},
      {"RsrcUse", {
        {"svc_id", 0, 32, 0xb429bbc6}, {"tle_pool_id", 32, 32, 0xf9dd03d6}, {"in_use[0]", 64, 16, 0xd2bd},
        {"in_use[1]", 80, 16, 0xcda7}, {"in_use[2]", 96, 16, 0x941d}, {"in_use[3]", 112, 16, 0xbd7e},
        {"in_use[4]", 128, 16, 0xc8cc}, {"in_use[5]", 144, 16, 0xcb15}, {"in_use[6]", 160, 16, 0xc83a},
        {"in_use[7]", 176, 16, 0xf577},},
       "c6bb29b4d603ddf9bdd2a7cd1d947ebdccc815cb3ac877f5"},
      {"SvcAllocCmd", {
        {"op", 0, 32, 0xb81c48a2}, {"resp", 64, 64, 0xe46a543983b78b23}, {"svc_desc.flags", 128, 8, 0xc0},
        {"svc_desc.num_vld_vnis", 136, 8, 0xf4}, {"svc_desc.vnis[0]", 144, 16, 0x86e5},
        {"svc_desc.vnis[1]", 160, 16, 0xbff8}, {"svc_desc.vnis[2]", 176, 16, 0xcd5a},
        {"svc_desc.vnis[3]", 192, 16, 0xa089}, {"svc_desc.tcs[0]", 208, 1, 0x0}, {"svc_desc.tcs[1]", 216, 1, 0x1},
        {"svc_desc.tcs[2]", 224, 1, 0x1}, {"svc_desc.tcs[3]", 232, 1, 0x0}, {"svc_desc.tcs[4]", 240, 1, 0x0},
        {"svc_desc.members[0].id", 256, 32, 0x9d872b2f}, {"svc_desc.members[0].type", 288, 32, 0xa3604788},
        {"svc_desc.members[1].id", 320, 32, 0xa3bbd4a7}, {"svc_desc.members[1].type", 352, 32, 0xdebed59f},
        {"svc_desc.limits[0].max", 384, 16, 0xa1dc}, {"svc_desc.limits[0].res", 400, 16, 0xaeb6},
        {"svc_desc.limits[1].max", 416, 16, 0xd1d5}, {"svc_desc.limits[1].res", 432, 16, 0xc87a},
        {"svc_desc.limits[2].max", 448, 16, 0xbb7c}, {"svc_desc.limits[2].res", 464, 16, 0xbaaf},
        {"svc_desc.limits[3].max", 480, 16, 0xa30e}, {"svc_desc.limits[3].res", 496, 16, 0xe535},
        {"svc_desc.limits[4].max", 512, 16, 0xe507}, {"svc_desc.limits[4].res", 528, 16, 0x8ee6},
        {"svc_desc.limits[5].max", 544, 16, 0xf3eb}, {"svc_desc.limits[5].res", 560, 16, 0xde2a},
        {"svc_desc.limits[6].max", 576, 16, 0x9ed1}, {"svc_desc.limits[6].res", 592, 16, 0xfac7},
        {"svc_desc.limits[7].max", 608, 16, 0xcd13}, {"svc_desc.limits[7].res", 624, 16, 0xae4d},
        {"svc_desc.svc_id", 640, 32, 0xe82a1647},},
       "a2481cb800000000238bb78339546ae4c0f4e586f8bf5acd89a00001010000002f2b879d884760a3a7d4bba39fd5bede"
       "dca1b6aed5d17ac87cbbafba0ea335e507e5e68eebf32aded19ec7fa13cd4dae47162ae800000000"},
      {"SvcAllocResp", {
        {"svc_id", 0, 32, 0xe3835b37}, {"fail_info.rsrc_avail[0]", 32, 16, 0xd5d6},
        {"fail_info.rsrc_avail[1]", 48, 16, 0xf886}, {"fail_info.rsrc_avail[2]", 64, 16, 0xd358},
        {"fail_info.rsrc_avail[3]", 80, 16, 0xc27f}, {"fail_info.rsrc_avail[4]", 96, 16, 0xfeaf},
        {"fail_info.rsrc_avail[5]", 112, 16, 0xc808}, {"fail_info.rsrc_avail[6]", 128, 16, 0x9821},
        {"fail_info.rsrc_avail[7]", 144, 16, 0x9f3b}, {"fail_info.no_le_pools", 160, 1, 0x0},
        {"fail_info.no_tle_pools", 168, 1, 0x0}, {"fail_info.no_cntr_pools", 176, 1, 0x0},},
       "375b83e3d6d586f858d37fc2affe08c821983b9f00000000"},
      {"SvcUpdateCmd", {
        {"op", 0, 32, 0xf416dcb8}, {"resp", 64, 64, 0xf94efd4eb5073357}, {"svc_desc.flags", 128, 8, 0xd7},
        {"svc_desc.num_vld_vnis", 136, 8, 0x8c}, {"svc_desc.vnis[0]", 144, 16, 0xb198},
        {"svc_desc.vnis[1]", 160, 16, 0xa004}, {"svc_desc.vnis[2]", 176, 16, 0xe3d8},
        {"svc_desc.vnis[3]", 192, 16, 0xa2ab}, {"svc_desc.tcs[0]", 208, 1, 0x1}, {"svc_desc.tcs[1]", 216, 1, 0x1},
        {"svc_desc.tcs[2]", 224, 1, 0x1}, {"svc_desc.tcs[3]", 232, 1, 0x0}, {"svc_desc.tcs[4]", 240, 1, 0x0},
        {"svc_desc.members[0].id", 256, 32, 0xdef26c44}, {"svc_desc.members[0].type", 288, 32, 0xba1a26f7},
        {"svc_desc.members[1].id", 320, 32, 0xae743d95}, {"svc_desc.members[1].type", 352, 32, 0xd9925f9e},
        {"svc_desc.limits[0].max", 384, 16, 0xe987}, {"svc_desc.limits[0].res", 400, 16, 0xefeb},
        {"svc_desc.limits[1].max", 416, 16, 0xece7}, {"svc_desc.limits[1].res", 432, 16, 0xc67c},
        {"svc_desc.limits[2].max", 448, 16, 0xc21b}, {"svc_desc.limits[2].res", 464, 16, 0xd4b0},
        {"svc_desc.limits[3].max", 480, 16, 0xfb6d}, {"svc_desc.limits[3].res", 496, 16, 0xc709},
        {"svc_desc.limits[4].max", 512, 16, 0xdf1b}, {"svc_desc.limits[4].res", 528, 16, 0x9d6e},
        {"svc_desc.limits[5].max", 544, 16, 0x9bc7}, {"svc_desc.limits[5].res", 560, 16, 0xe4ef},
        {"svc_desc.limits[6].max", 576, 16, 0x8395}, {"svc_desc.limits[6].res", 592, 16, 0xba80},
        {"svc_desc.limits[7].max", 608, 16, 0xe67f}, {"svc_desc.limits[7].res", 624, 16, 0xf3d7},
        {"svc_desc.svc_id", 640, 32, 0xbc05ba7e},},
       "b8dc16f400000000573307b54efd4ef9d78c98b104a0d8e3aba2010101000000446cf2def7261aba953d74ae9e5f92d9"
       "87e9ebefe7ec7cc61bc2b0d46dfb09c71bdf6e9dc79befe4958380ba7fe6d7f37eba05bc00000000"},
      {"SvcUpdateResp", {
        {"fail_info.rsrc_avail[0]", 0, 16, 0xafbe}, {"fail_info.rsrc_avail[1]", 16, 16, 0x9b29},
        {"fail_info.rsrc_avail[2]", 32, 16, 0xf913}, {"fail_info.rsrc_avail[3]", 48, 16, 0xad03},
        {"fail_info.rsrc_avail[4]", 64, 16, 0x8c60}, {"fail_info.rsrc_avail[5]", 80, 16, 0xf8d1},
        {"fail_info.rsrc_avail[6]", 96, 16, 0xa835}, {"fail_info.rsrc_avail[7]", 112, 16, 0xcedc},
        {"fail_info.no_le_pools", 128, 1, 0x1}, {"fail_info.no_tle_pools", 136, 1, 0x1},
        {"fail_info.no_cntr_pools", 144, 1, 0x0},},
       "beaf299b13f903ad608cd1f835a8dcce01010000"},
      {"SvcDestroyCmd", {
        {"op", 0, 32, 0xb17cedd9}, {"svc_id", 32, 32, 0xda391fb3},},
       "d9ed7cb1b31f39da"},
      {"SvcGetCmd", {
        {"op", 0, 32, 0xc51d5834}, {"resp", 64, 64, 0xd0f5283fee3fe2da}, {"svc_id", 128, 32, 0xcab4df79},},
       "34581dc500000000dae23fee3f28f5d079dfb4ca00000000"},
      {"SvcGetResp", {
        {"svc_desc.flags", 0, 8, 0xee}, {"svc_desc.num_vld_vnis", 8, 8, 0xa9}, {"svc_desc.vnis[0]", 16, 16, 0xa7dd},
        {"svc_desc.vnis[1]", 32, 16, 0x9975}, {"svc_desc.vnis[2]", 48, 16, 0x9f54},
        {"svc_desc.vnis[3]", 64, 16, 0x9f53}, {"svc_desc.tcs[0]", 80, 1, 0x0}, {"svc_desc.tcs[1]", 88, 1, 0x0},
        {"svc_desc.tcs[2]", 96, 1, 0x0}, {"svc_desc.tcs[3]", 104, 1, 0x0}, {"svc_desc.tcs[4]", 112, 1, 0x1},
        {"svc_desc.members[0].id", 128, 32, 0xdeb30258}, {"svc_desc.members[0].type", 160, 32, 0xf5974d5e},
        {"svc_desc.members[1].id", 192, 32, 0xac63c7c4}, {"svc_desc.members[1].type", 224, 32, 0xb394f727},
        {"svc_desc.limits[0].max", 256, 16, 0xcf46}, {"svc_desc.limits[0].res", 272, 16, 0xc518},
        {"svc_desc.limits[1].max", 288, 16, 0xcc04}, {"svc_desc.limits[1].res", 304, 16, 0x9693},
        {"svc_desc.limits[2].max", 320, 16, 0xedef}, {"svc_desc.limits[2].res", 336, 16, 0x9936},
        {"svc_desc.limits[3].max", 352, 16, 0xc261}, {"svc_desc.limits[3].res", 368, 16, 0x8bb8},
        {"svc_desc.limits[4].max", 384, 16, 0xa7a5}, {"svc_desc.limits[4].res", 400, 16, 0x895b},
        {"svc_desc.limits[5].max", 416, 16, 0xedf7}, {"svc_desc.limits[5].res", 432, 16, 0x8938},
        {"svc_desc.limits[6].max", 448, 16, 0xf516}, {"svc_desc.limits[6].res", 464, 16, 0xdcc0},
        {"svc_desc.limits[7].max", 480, 16, 0xa90a}, {"svc_desc.limits[7].res", 496, 16, 0x9929},
        {"svc_desc.svc_id", 512, 32, 0xc442a534},},
       "eea9dda77599549f539f0000000001005802b3de5e4d97f5c4c763ac27f794b346cf18c504cc9396efed369961c2b88b"
       "a5a75b89f7ed388916f5c0dc0aa9299934a542c4"},
      {"SvcListGetCmd", {
        {"op", 0, 32, 0xff3650e5}, {"resp", 64, 64, 0x91c938f515fbaf6d}, {"count", 128, 32, 0x9d522755},
        {"svc_list", 192, 64, 0x93a5cc71e4f0b3c9},},
       "e55036ff000000006daffb15f538c9915527529d00000000c9b3f0e471cca593"},
      {"SvcListGetResp", {
        {"count", 0, 32, 0xe54920bd},},
       "bd2049e5"},
      {"SvcRsrcGetCmd", {
        {"op", 0, 32, 0x9b458231}, {"resp", 64, 64, 0xa0f7c7d02e4fd9ce}, {"svc_id", 128, 32, 0xd2ac54ad},},
       "3182459b00000000ced94f2ed0c7f7a0ad54acd200000000"},
      {"SvcRsrcGetResp", {
        {"rsrcs.svc_id", 0, 32, 0xba9819eb}, {"rsrcs.tle_pool_id", 32, 32, 0xbf987d1d},
        {"rsrcs.in_use[0]", 64, 16, 0xd4e0}, {"rsrcs.in_use[1]", 80, 16, 0xe202},
        {"rsrcs.in_use[2]", 96, 16, 0xfd05}, {"rsrcs.in_use[3]", 112, 16, 0xdc5f},
        {"rsrcs.in_use[4]", 128, 16, 0xdc60}, {"rsrcs.in_use[5]", 144, 16, 0xcf4e},
        {"rsrcs.in_use[6]", 160, 16, 0xe8e2}, {"rsrcs.in_use[7]", 176, 16, 0xf7e4},},
       "eb1998ba1d7d98bfe0d402e205fd5fdc60dc4ecfe2e8e4f7"},
      {"SvcRsrcListGetCmd", {
        {"op", 0, 32, 0xe9889f6b}, {"resp", 64, 64, 0xa5b2bf079fb48ae0}, {"count", 128, 32, 0xeb198c33},
        {"rsrc_list", 192, 64, 0xb3a252eba381e72c},},
       "6b9f88e900000000e08ab49f07bfb2a5338c19eb000000002ce781a3eb52a2b3"},
      {"SvcRsrcListGetResp", {
        {"count", 0, 32, 0xa4f53a83},},
       "833af5a4"},
      {"SvcEnableCmd", {
        {"op", 0, 32, 0xff2b0f01}, {"resp", 64, 64, 0xa9081c0a52f8e607}, {"svc_id", 128, 32, 0xd99a3359},
        {"enable", 160, 1, 0x0},},
       "010f2bff0000000007e6f8520a1c08a959339ad900000000"},
      {"SvcLprCmd", {
        {"op", 0, 32, 0x9d384ccd}, {"resp", 64, 64, 0x9cf226b6d27a45ae}, {"svc_id", 128, 32, 0x9dc974c0},
        {"lnis_per_rgid", 160, 32, 0xe5d4bddd},},
       "cd4c389d00000000ae457ad2b626f29cc074c99dddbdd4e5"},
      {"SvcSetExclusiveCpCmd", {
        {"op", 0, 32, 0xdc1792e0}, {"svc_id", 32, 32, 0xb6bd78c4}, {"exclusive_cp", 64, 1, 0x1},},
       "e09217dcc478bdb601000000"},
      {"SvcGetExclusiveCpCmd", {
        {"op", 0, 32, 0xfc7c078b}, {"resp", 64, 64, 0xc31f874ca288a631}, {"svc_id", 128, 32, 0xa8fe7290},},
       "8b077cfc0000000031a688a24c871fc39072fea800000000"},
      {"SvcGetExclusiveCpResp", {
        {"exclusive_cp", 0, 1, 0x0},},
       "00"},
      {"SvcVniRangeCmd", {
        {"op", 0, 32, 0xbae6c09f}, {"resp", 64, 64, 0xf52ac4d211309c7e}, {"svc_id", 128, 32, 0xb9b94482},
        {"vni_min", 160, 32, 0xbeb9b1cd}, {"vni_max", 192, 32, 0x9325f0d3},},
       "9fc0e6ba000000007e9c3011d2c42af58244b9b9cdb1b9bed3f0259300000000"},
      {"SvcGetVniRangeResp", {
        {"vni_min", 0, 32, 0xee84c639}, {"vni_max", 32, 32, 0xe4d38782},},
       "39c684ee8287d3e4"},
      {"SvcSetNetnsCmd", {
        {"op", 0, 32, 0x91fdf05d}, {"svc_id", 32, 32, 0xd49abbae}, {"netns", 64, 32, 0xd317004b},},
       "5df0fd91aebb9ad44b0017d3"},
      {"SvcGetNetnsCmd", {
        {"op", 0, 32, 0xecd6b5de}, {"resp", 64, 64, 0xafe4e8f555949a4a}, {"svc_id", 128, 32, 0x941fa8e8},},
       "deb5d6ec000000004a9a9455f5e8e4afe8a81f9400000000"},
      {"SvcGetValueResp", {
        {"value", 0, 32, 0xaa2c9d47},},
       "479d2caa"},
      {"GetDevPropertiesCmd", {
        {"op", 0, 32, 0xbe0e48f7}, {"resp", 64, 64, 0xf9a0e370da14a414},},
       "f7480ebe0000000014a414da70e3a0f9"},
      {"DevProperties", {
        {"nid", 0, 32, 0x87389ad6}, {"nid_configured", 32, 1, 0x0}, {"pid_bits", 64, 32, 0xe6f4b0f8},
        {"pid_count", 96, 32, 0xf2fabff7}, {"pid_granule", 128, 32, 0xb8a39d39}, {"min_free_shift", 160, 32, 0xe40ddedd},
        {"rdzv_get_idx", 192, 32, 0xb1975cc4}, {"rsrcs[0].max", 224, 16, 0xb521},
        {"rsrcs[0].res", 240, 16, 0x9229}, {"rsrcs[1].max", 256, 16, 0xaf3b}, {"rsrcs[1].res", 272, 16, 0xd6db},
        {"rsrcs[2].max", 288, 16, 0xa6bf}, {"rsrcs[2].res", 304, 16, 0xcd26}, {"rsrcs[3].max", 320, 16, 0xa264},
        {"rsrcs[3].res", 336, 16, 0x89cb}, {"rsrcs[4].max", 352, 16, 0xada7}, {"rsrcs[4].res", 368, 16, 0x945f},
        {"rsrcs[5].max", 384, 16, 0xaf82}, {"rsrcs[5].res", 400, 16, 0xa854}, {"rsrcs[6].max", 416, 16, 0xd96e},
        {"rsrcs[6].res", 432, 16, 0xc1e3}, {"rsrcs[7].max", 448, 16, 0xfdba}, {"rsrcs[7].res", 464, 16, 0x953b},
        {"device_rev", 480, 32, 0xd2d490a0}, {"device_proto", 512, 32, 0xcb415594},
        {"device_platform", 544, 32, 0xd146cb2e}, {"cassini_version", 576, 32, 0x8083fb3d},
        {"rdzv_get_en", 608, 1, 0x0}, {"amo_remap_to_pcie_fadd", 640, 32, 0xa279426d},},
       "d69a388700000000f8b0f4e6f7bffaf2399da3b8ddde0de4c45c97b121b529923bafdbd6bfa626cd64a2cb89a7ad5f94"
       "82af54a86ed9e3c1bafd3b95a090d4d2945541cb2ecb46d13dfb8380000000006d4279a2"},
  };
  return all;
}

// clang-format on

}  // namespace golden_cxi
