// SPDX-License-Identifier: Apache-2.0
// The calls of a CXI client to the kernel, field by field, against bytes that the public header made.
#include "strait/wire/cxi_abi.hpp"

#include <gtest/gtest.h>

#include "cxi_fields.hpp"
#include "golden_cxi_abi.hpp"

namespace {

using namespace strait::wire::cxi;
using namespace cxi_fields;

void compare_client_calls(Comparison& c) {
  c.check<CmdHead>("CmdHead", {member<CmdHead, &CmdHead::op>("op"), member<CmdHead, &CmdHead::resp>("resp")});
  c.check<MmInfo>("MmInfo", {member<MmInfo, &MmInfo::offset>("offset"), member<MmInfo, &MmInfo::size>("size")});
  c.check<LniAllocCmd>("LniAllocCmd",
                       {member<LniAllocCmd, &LniAllocCmd::op>("op"), member<LniAllocCmd, &LniAllocCmd::resp>("resp"),
                        member<LniAllocCmd, &LniAllocCmd::svc_id>("svc_id")});
  c.check<LniAllocResp>("LniAllocResp", {member<LniAllocResp, &LniAllocResp::lni>("lni")});
  c.check<LniFreeCmd>("LniFreeCmd",
                      {member<LniFreeCmd, &LniFreeCmd::op>("op"), member<LniFreeCmd, &LniFreeCmd::lni>("lni")});
  c.check<DomainReserveCmd>(
      "DomainReserveCmd",
      {member<DomainReserveCmd, &DomainReserveCmd::op>("op"), member<DomainReserveCmd, &DomainReserveCmd::resp>("resp"),
       member<DomainReserveCmd, &DomainReserveCmd::lni>("lni"), member<DomainReserveCmd, &DomainReserveCmd::vni>("vni"),
       member<DomainReserveCmd, &DomainReserveCmd::pid>("pid"),
       member<DomainReserveCmd, &DomainReserveCmd::count>("count")});
  c.check<DomainReserveResp>("DomainReserveResp", {member<DomainReserveResp, &DomainReserveResp::pid>("pid")});
  c.check<DomainAllocCmd>(
      "DomainAllocCmd",
      {member<DomainAllocCmd, &DomainAllocCmd::op>("op"), member<DomainAllocCmd, &DomainAllocCmd::resp>("resp"),
       member<DomainAllocCmd, &DomainAllocCmd::lni>("lni"), member<DomainAllocCmd, &DomainAllocCmd::vni>("vni"),
       member<DomainAllocCmd, &DomainAllocCmd::pid>("pid")});
  c.check<DomainAllocResp>("DomainAllocResp", {member<DomainAllocResp, &DomainAllocResp::domain>("domain"),
                                               member<DomainAllocResp, &DomainAllocResp::vni>("vni"),
                                               member<DomainAllocResp, &DomainAllocResp::pid>("pid")});
  c.check<DomainFreeCmd>("DomainFreeCmd", {member<DomainFreeCmd, &DomainFreeCmd::op>("op"),
                                           member<DomainFreeCmd, &DomainFreeCmd::domain>("domain")});
  c.check<CpAllocCmd>("CpAllocCmd",
                      {member<CpAllocCmd, &CpAllocCmd::op>("op"), member<CpAllocCmd, &CpAllocCmd::resp>("resp"),
                       member<CpAllocCmd, &CpAllocCmd::lni>("lni"), member<CpAllocCmd, &CpAllocCmd::vni>("vni"),
                       member<CpAllocCmd, &CpAllocCmd::tc>("tc"), member<CpAllocCmd, &CpAllocCmd::tc_type>("tc_type")});
  c.check<TrigCpAllocCmd>(
      "TrigCpAllocCmd",
      {member<TrigCpAllocCmd, &TrigCpAllocCmd::op>("op"), member<TrigCpAllocCmd, &TrigCpAllocCmd::resp>("resp"),
       member<TrigCpAllocCmd, &TrigCpAllocCmd::lni>("lni"), member<TrigCpAllocCmd, &TrigCpAllocCmd::vni>("vni"),
       member<TrigCpAllocCmd, &TrigCpAllocCmd::tc>("tc"), member<TrigCpAllocCmd, &TrigCpAllocCmd::tc_type>("tc_type"),
       member<TrigCpAllocCmd, &TrigCpAllocCmd::cp_type>("cp_type")});
  c.check<CpAllocResp>("CpAllocResp", {member<CpAllocResp, &CpAllocResp::cp_hndl>("cp_hndl"),
                                       member<CpAllocResp, &CpAllocResp::lcid>("lcid")});
  c.check<CpFreeCmd>("CpFreeCmd",
                     {member<CpFreeCmd, &CpFreeCmd::op>("op"), member<CpFreeCmd, &CpFreeCmd::cp_hndl>("cp_hndl")});
  c.check<CpModifyCmd>("CpModifyCmd", {member<CpModifyCmd, &CpModifyCmd::op>("op"),
                                       member<CpModifyCmd, &CpModifyCmd::cp_hndl>("cp_hndl"),
                                       member<CpModifyCmd, &CpModifyCmd::vni>("vni")});
  c.check<MdHints>(
      "MdHints",
      {member<MdHints, &MdHints::page_shift>("page_shift"), member<MdHints, &MdHints::huge_shift>("huge_shift"),
       member<MdHints, &MdHints::ptg_mode>("ptg_mode"), member<MdHints, &MdHints::ptg_mode_valid>("ptg_mode_valid"),
       member<MdHints, &MdHints::dmabuf_fd>("dmabuf_fd"), member<MdHints, &MdHints::dmabuf_offset>("dmabuf_offset"),
       member<MdHints, &MdHints::dmabuf_valid>("dmabuf_valid")});
  c.check<Md>("Md", {member<Md, &Md::iova>("iova"), member<Md, &Md::va>("va"), member<Md, &Md::len>("len"),
                     member<Md, &Md::lac>("lac"), member<Md, &Md::page_shift>("page_shift"),
                     member<Md, &Md::huge_shift>("huge_shift"), member<Md, &Md::id>("id")});
  c.check<AtuMapCmd>("AtuMapCmd",
                     {member<AtuMapCmd, &AtuMapCmd::op>("op"), member<AtuMapCmd, &AtuMapCmd::resp>("resp"),
                      member<AtuMapCmd, &AtuMapCmd::lni>("lni"), member<AtuMapCmd, &AtuMapCmd::va>("va"),
                      member<AtuMapCmd, &AtuMapCmd::len>("len"), member<AtuMapCmd, &AtuMapCmd::flags>("flags"),
                      member<AtuMapCmd, &AtuMapCmd::hints, &MdHints::page_shift>("hints.page_shift"),
                      member<AtuMapCmd, &AtuMapCmd::hints, &MdHints::huge_shift>("hints.huge_shift"),
                      member<AtuMapCmd, &AtuMapCmd::hints, &MdHints::ptg_mode>("hints.ptg_mode"),
                      member<AtuMapCmd, &AtuMapCmd::hints, &MdHints::ptg_mode_valid>("hints.ptg_mode_valid"),
                      member<AtuMapCmd, &AtuMapCmd::hints, &MdHints::dmabuf_fd>("hints.dmabuf_fd"),
                      member<AtuMapCmd, &AtuMapCmd::hints, &MdHints::dmabuf_offset>("hints.dmabuf_offset"),
                      member<AtuMapCmd, &AtuMapCmd::hints, &MdHints::dmabuf_valid>("hints.dmabuf_valid")});
  c.check<AtuMapResp>(
      "AtuMapResp",
      {member<AtuMapResp, &AtuMapResp::id>("id"), member<AtuMapResp, &AtuMapResp::md, &Md::iova>("md.iova"),
       member<AtuMapResp, &AtuMapResp::md, &Md::va>("md.va"), member<AtuMapResp, &AtuMapResp::md, &Md::len>("md.len"),
       member<AtuMapResp, &AtuMapResp::md, &Md::lac>("md.lac"),
       member<AtuMapResp, &AtuMapResp::md, &Md::page_shift>("md.page_shift"),
       member<AtuMapResp, &AtuMapResp::md, &Md::huge_shift>("md.huge_shift"),
       member<AtuMapResp, &AtuMapResp::md, &Md::id>("md.id")});
  c.check<AtuUnmapCmd>("AtuUnmapCmd",
                       {member<AtuUnmapCmd, &AtuUnmapCmd::op>("op"), member<AtuUnmapCmd, &AtuUnmapCmd::id>("id")});
  c.check<AtuUpdateMdCmd>(
      "AtuUpdateMdCmd",
      {member<AtuUpdateMdCmd, &AtuUpdateMdCmd::op>("op"), member<AtuUpdateMdCmd, &AtuUpdateMdCmd::id>("id"),
       member<AtuUpdateMdCmd, &AtuUpdateMdCmd::va>("va"), member<AtuUpdateMdCmd, &AtuUpdateMdCmd::len>("len"),
       member<AtuUpdateMdCmd, &AtuUpdateMdCmd::flags>("flags")});
  c.check<PhysLacAllocCmd>("PhysLacAllocCmd", {member<PhysLacAllocCmd, &PhysLacAllocCmd::op>("op"),
                                               member<PhysLacAllocCmd, &PhysLacAllocCmd::resp>("resp"),
                                               member<PhysLacAllocCmd, &PhysLacAllocCmd::lni>("lni")});
  c.check<PhysLacAllocResp>("PhysLacAllocResp", {member<PhysLacAllocResp, &PhysLacAllocResp::lac>("lac")});
  c.check<PhysLacFreeCmd>("PhysLacFreeCmd", {member<PhysLacFreeCmd, &PhysLacFreeCmd::op>("op"),
                                             member<PhysLacFreeCmd, &PhysLacFreeCmd::lni>("lni"),
                                             member<PhysLacFreeCmd, &PhysLacFreeCmd::lac>("lac")});
  c.check<WaitAllocCmd>(
      "WaitAllocCmd", {member<WaitAllocCmd, &WaitAllocCmd::op>("op"), member<WaitAllocCmd, &WaitAllocCmd::resp>("resp"),
                       member<WaitAllocCmd, &WaitAllocCmd::lni>("lni")});
  c.check<WaitAllocResp>("WaitAllocResp", {member<WaitAllocResp, &WaitAllocResp::client_id>("client_id"),
                                           member<WaitAllocResp, &WaitAllocResp::wait>("wait")});
  c.check<WaitFreeCmd>("WaitFreeCmd",
                       {member<WaitFreeCmd, &WaitFreeCmd::op>("op"), member<WaitFreeCmd, &WaitFreeCmd::resp>("resp"),
                        member<WaitFreeCmd, &WaitFreeCmd::wait>("wait")});
  c.check<InboundWaitCmd>("InboundWaitCmd", {member<InboundWaitCmd, &InboundWaitCmd::op>("op")});
  c.check<MapCsrsCmd>("MapCsrsCmd",
                      {member<MapCsrsCmd, &MapCsrsCmd::op>("op"), member<MapCsrsCmd, &MapCsrsCmd::resp>("resp")});
  c.check<MapCsrsResp>("MapCsrsResp", {member<MapCsrsResp, &MapCsrsResp::csr, &MmInfo::offset>("csr.offset"),
                                       member<MapCsrsResp, &MapCsrsResp::csr, &MmInfo::size>("csr.size")});
  c.check<DevInfoGetCmd>("DevInfoGetCmd", {member<DevInfoGetCmd, &DevInfoGetCmd::op>("op"),
                                           member<DevInfoGetCmd, &DevInfoGetCmd::resp>("resp")});
  c.check<DevInfo>("DevInfo", {member<DevInfo, &DevInfo::nid>("nid"),
                               member<DevInfo, &DevInfo::pid_bits>("pid_bits"),
                               member<DevInfo, &DevInfo::pid_count>("pid_count"),
                               member<DevInfo, &DevInfo::pid_granule>("pid_granule"),
                               member<DevInfo, &DevInfo::min_free_shift>("min_free_shift"),
                               member<DevInfo, &DevInfo::rdzv_get_idx>("rdzv_get_idx"),
                               member<DevInfo, &DevInfo::vendor_id>("vendor_id"),
                               member<DevInfo, &DevInfo::device_id>("device_id"),
                               member<DevInfo, &DevInfo::device_rev>("device_rev"),
                               member<DevInfo, &DevInfo::device_proto>("device_proto"),
                               member<DevInfo, &DevInfo::device_platform>("device_platform"),
                               member<DevInfo, &DevInfo::pct_eq>("pct_eq"),
                               member<DevInfo, &DevInfo::uc_nic>("uc_nic"),
                               member<DevInfo, &DevInfo::link_mtu>("link_mtu"),
                               member<DevInfo, &DevInfo::link_speed>("link_speed"),
                               member<DevInfo, &DevInfo::link_state>("link_state"),
                               member<DevInfo, &DevInfo::num_ptes>("num_ptes"),
                               member<DevInfo, &DevInfo::num_txqs>("num_txqs"),
                               member<DevInfo, &DevInfo::num_tgqs>("num_tgqs"),
                               member<DevInfo, &DevInfo::num_eqs>("num_eqs"),
                               member<DevInfo, &DevInfo::num_cts>("num_cts"),
                               member<DevInfo, &DevInfo::num_acs>("num_acs"),
                               member<DevInfo, &DevInfo::num_tles>("num_tles"),
                               member<DevInfo, &DevInfo::num_les>("num_les"),
                               member<DevInfo, &DevInfo::fru_description, 0u>("fru_description[0]"),
                               member<DevInfo, &DevInfo::fru_description, 1u>("fru_description[1]"),
                               member<DevInfo, &DevInfo::fru_description, 2u>("fru_description[2]"),
                               member<DevInfo, &DevInfo::fru_description, 3u>("fru_description[3]"),
                               member<DevInfo, &DevInfo::fru_description, 4u>("fru_description[4]"),
                               member<DevInfo, &DevInfo::fru_description, 5u>("fru_description[5]"),
                               member<DevInfo, &DevInfo::fru_description, 6u>("fru_description[6]"),
                               member<DevInfo, &DevInfo::fru_description, 7u>("fru_description[7]"),
                               member<DevInfo, &DevInfo::fru_description, 8u>("fru_description[8]"),
                               member<DevInfo, &DevInfo::fru_description, 9u>("fru_description[9]"),
                               member<DevInfo, &DevInfo::fru_description, 10u>("fru_description[10]"),
                               member<DevInfo, &DevInfo::fru_description, 11u>("fru_description[11]"),
                               member<DevInfo, &DevInfo::fru_description, 12u>("fru_description[12]"),
                               member<DevInfo, &DevInfo::fru_description, 13u>("fru_description[13]"),
                               member<DevInfo, &DevInfo::fru_description, 14u>("fru_description[14]"),
                               member<DevInfo, &DevInfo::fru_description, 15u>("fru_description[15]"),
                               member<DevInfo, &DevInfo::cassini_version>("cassini_version"),
                               member<DevInfo, &DevInfo::system_type_identifier>("system_type_identifier")});
  c.check<RetryHandlerRunningCmd>("RetryHandlerRunningCmd",
                                  {member<RetryHandlerRunningCmd, &RetryHandlerRunningCmd::op>("op"),
                                   member<RetryHandlerRunningCmd, &RetryHandlerRunningCmd::resp>("resp")});
  c.check<RetryHandlerRunningResp>("RetryHandlerRunningResp",
                                   {member<RetryHandlerRunningResp, &RetryHandlerRunningResp::running>("running")});
}

void compare_queue_calls(Comparison& c) {
  c.check<CqAllocOpts>(
      "CqAllocOpts",
      {member<CqAllocOpts, &CqAllocOpts::count>("count"), member<CqAllocOpts, &CqAllocOpts::policy>("policy"),
       member<CqAllocOpts, &CqAllocOpts::stat_cnt_pool>("stat_cnt_pool"),
       member<CqAllocOpts, &CqAllocOpts::flags>("flags"), member<CqAllocOpts, &CqAllocOpts::lcid>("lcid"),
       member<CqAllocOpts, &CqAllocOpts::lpe_cdt_thresh_id>("lpe_cdt_thresh_id")});
  c.check<CqAllocOptsBuf>(
      "CqAllocOptsBuf",
      {member<CqAllocOptsBuf, &CqAllocOptsBuf::opts, &CqAllocOpts::count>("opts.count"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::opts, &CqAllocOpts::policy>("opts.policy"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::opts, &CqAllocOpts::stat_cnt_pool>("opts.stat_cnt_pool"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::opts, &CqAllocOpts::flags>("opts.flags"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::opts, &CqAllocOpts::lcid>("opts.lcid"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::opts, &CqAllocOpts::lpe_cdt_thresh_id>("opts.lpe_cdt_thresh_id"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::buf>("buf"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::is_host_mem>("is_host_mem"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::dmabuf_fd>("dmabuf_fd"),
       member<CqAllocOptsBuf, &CqAllocOptsBuf::dmabuf_offset>("dmabuf_offset")});
  c.check<CqAllocCmd>(
      "CqAllocCmd", {member<CqAllocCmd, &CqAllocCmd::op>("op"), member<CqAllocCmd, &CqAllocCmd::resp>("resp"),
                     member<CqAllocCmd, &CqAllocCmd::lni>("lni"), member<CqAllocCmd, &CqAllocCmd::eq>("eq"),
                     member<CqAllocCmd, &CqAllocCmd::opts, &CqAllocOpts::count>("opts.count"),
                     member<CqAllocCmd, &CqAllocCmd::opts, &CqAllocOpts::policy>("opts.policy"),
                     member<CqAllocCmd, &CqAllocCmd::opts, &CqAllocOpts::stat_cnt_pool>("opts.stat_cnt_pool"),
                     member<CqAllocCmd, &CqAllocCmd::opts, &CqAllocOpts::flags>("opts.flags"),
                     member<CqAllocCmd, &CqAllocCmd::opts, &CqAllocOpts::lcid>("opts.lcid"),
                     member<CqAllocCmd, &CqAllocCmd::opts, &CqAllocOpts::lpe_cdt_thresh_id>("opts.lpe_cdt_thresh_id")});
  c.check<CqAllocBufCmd>(
      "CqAllocBufCmd",
      {member<CqAllocBufCmd, &CqAllocBufCmd::op>("op"), member<CqAllocBufCmd, &CqAllocBufCmd::resp>("resp"),
       member<CqAllocBufCmd, &CqAllocBufCmd::lni>("lni"), member<CqAllocBufCmd, &CqAllocBufCmd::eq>("eq"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::opts, &CqAllocOpts::count>("opts.opts.count"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::opts, &CqAllocOpts::policy>("opts.opts.policy"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::opts, &CqAllocOpts::stat_cnt_pool>(
           "opts.opts.stat_cnt_pool"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::opts, &CqAllocOpts::flags>("opts.opts.flags"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::opts, &CqAllocOpts::lcid>("opts.opts.lcid"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::opts, &CqAllocOpts::lpe_cdt_thresh_id>(
           "opts.opts.lpe_cdt_thresh_id"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::buf>("opts.buf"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::is_host_mem>("opts.is_host_mem"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::dmabuf_fd>("opts.dmabuf_fd"),
       member<CqAllocBufCmd, &CqAllocBufCmd::opts, &CqAllocOptsBuf::dmabuf_offset>("opts.dmabuf_offset")});
  c.check<CqAllocResp>("CqAllocResp",
                       {member<CqAllocResp, &CqAllocResp::cq>("cq"), member<CqAllocResp, &CqAllocResp::count>("count"),
                        member<CqAllocResp, &CqAllocResp::cmds, &MmInfo::offset>("cmds.offset"),
                        member<CqAllocResp, &CqAllocResp::cmds, &MmInfo::size>("cmds.size"),
                        member<CqAllocResp, &CqAllocResp::wp_addr, &MmInfo::offset>("wp_addr.offset"),
                        member<CqAllocResp, &CqAllocResp::wp_addr, &MmInfo::size>("wp_addr.size")});
  c.check<CqFreeCmd>("CqFreeCmd", {member<CqFreeCmd, &CqFreeCmd::op>("op"), member<CqFreeCmd, &CqFreeCmd::cq>("cq")});
  c.check<CqAckCounterCmd>("CqAckCounterCmd", {member<CqAckCounterCmd, &CqAckCounterCmd::op>("op"),
                                               member<CqAckCounterCmd, &CqAckCounterCmd::resp>("resp"),
                                               member<CqAckCounterCmd, &CqAckCounterCmd::cq>("cq")});
  c.check<CqAckCounterResp>("CqAckCounterResp",
                            {member<CqAckCounterResp, &CqAckCounterResp::ack_counter>("ack_counter")});
  c.check<EqAttr>(
      "EqAttr",
      {member<EqAttr, &EqAttr::queue>("queue"), member<EqAttr, &EqAttr::queue_len>("queue_len"),
       member<EqAttr, &EqAttr::flags>("flags"), member<EqAttr, &EqAttr::status_thresh_base>("status_thresh_base"),
       member<EqAttr, &EqAttr::status_thresh_delta>("status_thresh_delta"),
       member<EqAttr, &EqAttr::status_thresh_count>("status_thresh_count"),
       member<EqAttr, &EqAttr::ec_delay>("ec_delay"), member<EqAttr, &EqAttr::cpu_affinity>("cpu_affinity")});
  c.check<EqAllocCmd>(
      "EqAllocCmd", {member<EqAllocCmd, &EqAllocCmd::op>("op"), member<EqAllocCmd, &EqAllocCmd::resp>("resp"),
                     member<EqAllocCmd, &EqAllocCmd::lni>("lni"), member<EqAllocCmd, &EqAllocCmd::queue_md>("queue_md"),
                     member<EqAllocCmd, &EqAllocCmd::event_wait>("event_wait"),
                     member<EqAllocCmd, &EqAllocCmd::status_wait>("status_wait"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::queue>("attr.queue"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::queue_len>("attr.queue_len"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::flags>("attr.flags"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::status_thresh_base>("attr.status_thresh_base"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::status_thresh_delta>("attr.status_thresh_delta"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::status_thresh_count>("attr.status_thresh_count"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::ec_delay>("attr.ec_delay"),
                     member<EqAllocCmd, &EqAllocCmd::attr, &EqAttr::cpu_affinity>("attr.cpu_affinity")});
  c.check<EqAllocResp>("EqAllocResp", {member<EqAllocResp, &EqAllocResp::eq>("eq"),
                                       member<EqAllocResp, &EqAllocResp::csr, &MmInfo::offset>("csr.offset"),
                                       member<EqAllocResp, &EqAllocResp::csr, &MmInfo::size>("csr.size")});
  c.check<EqFreeCmd>("EqFreeCmd", {member<EqFreeCmd, &EqFreeCmd::op>("op"), member<EqFreeCmd, &EqFreeCmd::eq>("eq")});
  c.check<EqResizeCmd>(
      "EqResizeCmd",
      {member<EqResizeCmd, &EqResizeCmd::op>("op"), member<EqResizeCmd, &EqResizeCmd::eq_hndl>("eq_hndl"),
       member<EqResizeCmd, &EqResizeCmd::queue>("queue"), member<EqResizeCmd, &EqResizeCmd::queue_len>("queue_len"),
       member<EqResizeCmd, &EqResizeCmd::queue_md>("queue_md")});
  c.check<EqResizeCompleteCmd>("EqResizeCompleteCmd",
                               {member<EqResizeCompleteCmd, &EqResizeCompleteCmd::op>("op"),
                                member<EqResizeCompleteCmd, &EqResizeCompleteCmd::eq_hndl>("eq_hndl")});
  c.check<EqAdjustReservedFcCmd>("EqAdjustReservedFcCmd",
                                 {member<EqAdjustReservedFcCmd, &EqAdjustReservedFcCmd::op>("op"),
                                  member<EqAdjustReservedFcCmd, &EqAdjustReservedFcCmd::resp>("resp"),
                                  member<EqAdjustReservedFcCmd, &EqAdjustReservedFcCmd::eq_hndl>("eq_hndl"),
                                  member<EqAdjustReservedFcCmd, &EqAdjustReservedFcCmd::value>("value")});
  c.check<EqAdjustReservedFcResp>("EqAdjustReservedFcResp", {});
  c.check<CtAllocCmd>("CtAllocCmd",
                      {member<CtAllocCmd, &CtAllocCmd::op>("op"), member<CtAllocCmd, &CtAllocCmd::resp>("resp"),
                       member<CtAllocCmd, &CtAllocCmd::lni>("lni"), member<CtAllocCmd, &CtAllocCmd::wb>("wb")});
  c.check<CtAllocResp>("CtAllocResp", {member<CtAllocResp, &CtAllocResp::ctn>("ctn"),
                                       member<CtAllocResp, &CtAllocResp::doorbell, &MmInfo::offset>("doorbell.offset"),
                                       member<CtAllocResp, &CtAllocResp::doorbell, &MmInfo::size>("doorbell.size")});
  c.check<CtFreeCmd>("CtFreeCmd", {member<CtFreeCmd, &CtFreeCmd::op>("op"), member<CtFreeCmd, &CtFreeCmd::ctn>("ctn")});
  c.check<CtWbUpdateCmd>("CtWbUpdateCmd", {member<CtWbUpdateCmd, &CtWbUpdateCmd::op>("op"),
                                           member<CtWbUpdateCmd, &CtWbUpdateCmd::ctn>("ctn"),
                                           member<CtWbUpdateCmd, &CtWbUpdateCmd::wb>("wb")});
  c.check<PteAllocCmd>(
      "PteAllocCmd",
      {member<PteAllocCmd, &PteAllocCmd::op>("op"), member<PteAllocCmd, &PteAllocCmd::resp>("resp"),
       member<PteAllocCmd, &PteAllocCmd::lni_hndl>("lni_hndl"),
       member<PteAllocCmd, &PteAllocCmd::evtq_hndl>("evtq_hndl"), member<PteAllocCmd, &PteAllocCmd::opts>("opts")});
  c.check<PteAllocResp>("PteAllocResp", {member<PteAllocResp, &PteAllocResp::pte_number>("pte_number")});
  c.check<PteFreeCmd>("PteFreeCmd",
                      {member<PteFreeCmd, &PteFreeCmd::op>("op"), member<PteFreeCmd, &PteFreeCmd::resp>("resp"),
                       member<PteFreeCmd, &PteFreeCmd::pte_number>("pte_number")});
  c.check<PteMapCmd>("PteMapCmd", {member<PteMapCmd, &PteMapCmd::op>("op"), member<PteMapCmd, &PteMapCmd::resp>("resp"),
                                   member<PteMapCmd, &PteMapCmd::pte_number>("pte_number"),
                                   member<PteMapCmd, &PteMapCmd::domain_hndl>("domain_hndl"),
                                   member<PteMapCmd, &PteMapCmd::pid_offset>("pid_offset"),
                                   member<PteMapCmd, &PteMapCmd::is_multicast>("is_multicast")});
  c.check<PteMapResp>("PteMapResp", {member<PteMapResp, &PteMapResp::pte_index>("pte_index")});
  c.check<PteUnmapCmd>("PteUnmapCmd",
                       {member<PteUnmapCmd, &PteUnmapCmd::op>("op"), member<PteUnmapCmd, &PteUnmapCmd::resp>("resp"),
                        member<PteUnmapCmd, &PteUnmapCmd::pte_index>("pte_index")});
  c.check<PteLeInvalidateCmd>("PteLeInvalidateCmd",
                              {member<PteLeInvalidateCmd, &PteLeInvalidateCmd::op>("op"),
                               member<PteLeInvalidateCmd, &PteLeInvalidateCmd::pte_index>("pte_index"),
                               member<PteLeInvalidateCmd, &PteLeInvalidateCmd::buffer_id>("buffer_id"),
                               member<PteLeInvalidateCmd, &PteLeInvalidateCmd::list>("list")});
  c.check<PteStatusCmd>(
      "PteStatusCmd", {member<PteStatusCmd, &PteStatusCmd::op>("op"), member<PteStatusCmd, &PteStatusCmd::resp>("resp"),
                       member<PteStatusCmd, &PteStatusCmd::pte_index>("pte_index")});
  c.check<PteStatus>(
      "PteStatus",
      {member<PteStatus, &PteStatus::drop_count>("drop_count"), member<PteStatus, &PteStatus::state>("state"),
       member<PteStatus, &PteStatus::les_reserved>("les_reserved"),
       member<PteStatus, &PteStatus::les_allocated>("les_allocated"), member<PteStatus, &PteStatus::les_max>("les_max"),
       member<PteStatus, &PteStatus::ule_offsets>("ule_offsets"),
       member<PteStatus, &PteStatus::ule_count>("ule_count")});
  c.check<PteTransitionSmCmd>("PteTransitionSmCmd",
                              {member<PteTransitionSmCmd, &PteTransitionSmCmd::op>("op"),
                               member<PteTransitionSmCmd, &PteTransitionSmCmd::resp>("resp"),
                               member<PteTransitionSmCmd, &PteTransitionSmCmd::pte_index>("pte_index"),
                               member<PteTransitionSmCmd, &PteTransitionSmCmd::drop_count>("drop_count")});
}

void compare_service_calls(Comparison& c) {
  c.check<Limits>("Limits", {member<Limits, &Limits::max>("max"), member<Limits, &Limits::res>("res")});
  c.check<SvcDesc>("SvcDesc", {member<SvcDesc, &SvcDesc::flags>("flags"),
                               member<SvcDesc, &SvcDesc::num_vld_vnis>("num_vld_vnis"),
                               member<SvcDesc, &SvcDesc::vnis, 0u>("vnis[0]"),
                               member<SvcDesc, &SvcDesc::vnis, 1u>("vnis[1]"),
                               member<SvcDesc, &SvcDesc::vnis, 2u>("vnis[2]"),
                               member<SvcDesc, &SvcDesc::vnis, 3u>("vnis[3]"),
                               member<SvcDesc, &SvcDesc::tcs, 0u>("tcs[0]"),
                               member<SvcDesc, &SvcDesc::tcs, 1u>("tcs[1]"),
                               member<SvcDesc, &SvcDesc::tcs, 2u>("tcs[2]"),
                               member<SvcDesc, &SvcDesc::tcs, 3u>("tcs[3]"),
                               member<SvcDesc, &SvcDesc::tcs, 4u>("tcs[4]"),
                               member<SvcDesc, &SvcDesc::members, 0u, &SvcMember::id>("members[0].id"),
                               member<SvcDesc, &SvcDesc::members, 0u, &SvcMember::type>("members[0].type"),
                               member<SvcDesc, &SvcDesc::members, 1u, &SvcMember::id>("members[1].id"),
                               member<SvcDesc, &SvcDesc::members, 1u, &SvcMember::type>("members[1].type"),
                               member<SvcDesc, &SvcDesc::limits, 0u, &Limits::max>("limits[0].max"),
                               member<SvcDesc, &SvcDesc::limits, 0u, &Limits::res>("limits[0].res"),
                               member<SvcDesc, &SvcDesc::limits, 1u, &Limits::max>("limits[1].max"),
                               member<SvcDesc, &SvcDesc::limits, 1u, &Limits::res>("limits[1].res"),
                               member<SvcDesc, &SvcDesc::limits, 2u, &Limits::max>("limits[2].max"),
                               member<SvcDesc, &SvcDesc::limits, 2u, &Limits::res>("limits[2].res"),
                               member<SvcDesc, &SvcDesc::limits, 3u, &Limits::max>("limits[3].max"),
                               member<SvcDesc, &SvcDesc::limits, 3u, &Limits::res>("limits[3].res"),
                               member<SvcDesc, &SvcDesc::limits, 4u, &Limits::max>("limits[4].max"),
                               member<SvcDesc, &SvcDesc::limits, 4u, &Limits::res>("limits[4].res"),
                               member<SvcDesc, &SvcDesc::limits, 5u, &Limits::max>("limits[5].max"),
                               member<SvcDesc, &SvcDesc::limits, 5u, &Limits::res>("limits[5].res"),
                               member<SvcDesc, &SvcDesc::limits, 6u, &Limits::max>("limits[6].max"),
                               member<SvcDesc, &SvcDesc::limits, 6u, &Limits::res>("limits[6].res"),
                               member<SvcDesc, &SvcDesc::limits, 7u, &Limits::max>("limits[7].max"),
                               member<SvcDesc, &SvcDesc::limits, 7u, &Limits::res>("limits[7].res"),
                               member<SvcDesc, &SvcDesc::svc_id>("svc_id")});
  c.check<SvcFailInfo>("SvcFailInfo", {member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 0u>("rsrc_avail[0]"),
                                       member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 1u>("rsrc_avail[1]"),
                                       member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 2u>("rsrc_avail[2]"),
                                       member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 3u>("rsrc_avail[3]"),
                                       member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 4u>("rsrc_avail[4]"),
                                       member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 5u>("rsrc_avail[5]"),
                                       member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 6u>("rsrc_avail[6]"),
                                       member<SvcFailInfo, &SvcFailInfo::rsrc_avail, 7u>("rsrc_avail[7]"),
                                       member<SvcFailInfo, &SvcFailInfo::no_le_pools>("no_le_pools"),
                                       member<SvcFailInfo, &SvcFailInfo::no_tle_pools>("no_tle_pools"),
                                       member<SvcFailInfo, &SvcFailInfo::no_cntr_pools>("no_cntr_pools")});
  c.check<RsrcUse>(
      "RsrcUse",
      {member<RsrcUse, &RsrcUse::svc_id>("svc_id"), member<RsrcUse, &RsrcUse::tle_pool_id>("tle_pool_id"),
       member<RsrcUse, &RsrcUse::in_use, 0u>("in_use[0]"), member<RsrcUse, &RsrcUse::in_use, 1u>("in_use[1]"),
       member<RsrcUse, &RsrcUse::in_use, 2u>("in_use[2]"), member<RsrcUse, &RsrcUse::in_use, 3u>("in_use[3]"),
       member<RsrcUse, &RsrcUse::in_use, 4u>("in_use[4]"), member<RsrcUse, &RsrcUse::in_use, 5u>("in_use[5]"),
       member<RsrcUse, &RsrcUse::in_use, 6u>("in_use[6]"), member<RsrcUse, &RsrcUse::in_use, 7u>("in_use[7]")});
  c.check<SvcAllocCmd>(
      "SvcAllocCmd",
      {member<SvcAllocCmd, &SvcAllocCmd::op>("op"),
       member<SvcAllocCmd, &SvcAllocCmd::resp>("resp"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::flags>("svc_desc.flags"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::num_vld_vnis>("svc_desc.num_vld_vnis"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::vnis, 0u>("svc_desc.vnis[0]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::vnis, 1u>("svc_desc.vnis[1]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::vnis, 2u>("svc_desc.vnis[2]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::vnis, 3u>("svc_desc.vnis[3]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::tcs, 0u>("svc_desc.tcs[0]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::tcs, 1u>("svc_desc.tcs[1]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::tcs, 2u>("svc_desc.tcs[2]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::tcs, 3u>("svc_desc.tcs[3]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::tcs, 4u>("svc_desc.tcs[4]"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::members, 0u, &SvcMember::id>("svc_desc.members[0].id"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::members, 0u, &SvcMember::type>("svc_desc.members[0].type"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::members, 1u, &SvcMember::id>("svc_desc.members[1].id"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::members, 1u, &SvcMember::type>("svc_desc.members[1].type"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 0u, &Limits::max>("svc_desc.limits[0].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 0u, &Limits::res>("svc_desc.limits[0].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 1u, &Limits::max>("svc_desc.limits[1].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 1u, &Limits::res>("svc_desc.limits[1].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 2u, &Limits::max>("svc_desc.limits[2].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 2u, &Limits::res>("svc_desc.limits[2].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 3u, &Limits::max>("svc_desc.limits[3].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 3u, &Limits::res>("svc_desc.limits[3].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 4u, &Limits::max>("svc_desc.limits[4].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 4u, &Limits::res>("svc_desc.limits[4].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 5u, &Limits::max>("svc_desc.limits[5].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 5u, &Limits::res>("svc_desc.limits[5].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 6u, &Limits::max>("svc_desc.limits[6].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 6u, &Limits::res>("svc_desc.limits[6].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 7u, &Limits::max>("svc_desc.limits[7].max"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::limits, 7u, &Limits::res>("svc_desc.limits[7].res"),
       member<SvcAllocCmd, &SvcAllocCmd::svc_desc, &SvcDesc::svc_id>("svc_desc.svc_id")});
  c.check<SvcAllocResp>(
      "SvcAllocResp",
      {member<SvcAllocResp, &SvcAllocResp::svc_id>("svc_id"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 0u>("fail_info.rsrc_avail[0]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 1u>("fail_info.rsrc_avail[1]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 2u>("fail_info.rsrc_avail[2]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 3u>("fail_info.rsrc_avail[3]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 4u>("fail_info.rsrc_avail[4]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 5u>("fail_info.rsrc_avail[5]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 6u>("fail_info.rsrc_avail[6]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::rsrc_avail, 7u>("fail_info.rsrc_avail[7]"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::no_le_pools>("fail_info.no_le_pools"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::no_tle_pools>("fail_info.no_tle_pools"),
       member<SvcAllocResp, &SvcAllocResp::fail_info, &SvcFailInfo::no_cntr_pools>("fail_info.no_cntr_pools")});
  c.check<SvcUpdateCmd>(
      "SvcUpdateCmd",
      {member<SvcUpdateCmd, &SvcUpdateCmd::op>("op"),
       member<SvcUpdateCmd, &SvcUpdateCmd::resp>("resp"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::flags>("svc_desc.flags"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::num_vld_vnis>("svc_desc.num_vld_vnis"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::vnis, 0u>("svc_desc.vnis[0]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::vnis, 1u>("svc_desc.vnis[1]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::vnis, 2u>("svc_desc.vnis[2]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::vnis, 3u>("svc_desc.vnis[3]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::tcs, 0u>("svc_desc.tcs[0]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::tcs, 1u>("svc_desc.tcs[1]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::tcs, 2u>("svc_desc.tcs[2]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::tcs, 3u>("svc_desc.tcs[3]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::tcs, 4u>("svc_desc.tcs[4]"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::members, 0u, &SvcMember::id>("svc_desc.members[0].id"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::members, 0u, &SvcMember::type>(
           "svc_desc.members[0].type"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::members, 1u, &SvcMember::id>("svc_desc.members[1].id"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::members, 1u, &SvcMember::type>(
           "svc_desc.members[1].type"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 0u, &Limits::max>("svc_desc.limits[0].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 0u, &Limits::res>("svc_desc.limits[0].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 1u, &Limits::max>("svc_desc.limits[1].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 1u, &Limits::res>("svc_desc.limits[1].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 2u, &Limits::max>("svc_desc.limits[2].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 2u, &Limits::res>("svc_desc.limits[2].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 3u, &Limits::max>("svc_desc.limits[3].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 3u, &Limits::res>("svc_desc.limits[3].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 4u, &Limits::max>("svc_desc.limits[4].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 4u, &Limits::res>("svc_desc.limits[4].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 5u, &Limits::max>("svc_desc.limits[5].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 5u, &Limits::res>("svc_desc.limits[5].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 6u, &Limits::max>("svc_desc.limits[6].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 6u, &Limits::res>("svc_desc.limits[6].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 7u, &Limits::max>("svc_desc.limits[7].max"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::limits, 7u, &Limits::res>("svc_desc.limits[7].res"),
       member<SvcUpdateCmd, &SvcUpdateCmd::svc_desc, &SvcDesc::svc_id>("svc_desc.svc_id")});
  c.check<SvcUpdateResp>(
      "SvcUpdateResp",
      {member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 0u>("fail_info.rsrc_avail[0]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 1u>("fail_info.rsrc_avail[1]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 2u>("fail_info.rsrc_avail[2]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 3u>("fail_info.rsrc_avail[3]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 4u>("fail_info.rsrc_avail[4]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 5u>("fail_info.rsrc_avail[5]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 6u>("fail_info.rsrc_avail[6]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::rsrc_avail, 7u>("fail_info.rsrc_avail[7]"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::no_le_pools>("fail_info.no_le_pools"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::no_tle_pools>("fail_info.no_tle_pools"),
       member<SvcUpdateResp, &SvcUpdateResp::fail_info, &SvcFailInfo::no_cntr_pools>("fail_info.no_cntr_pools")});
  c.check<SvcDestroyCmd>("SvcDestroyCmd", {member<SvcDestroyCmd, &SvcDestroyCmd::op>("op"),
                                           member<SvcDestroyCmd, &SvcDestroyCmd::svc_id>("svc_id")});
  c.check<SvcGetCmd>("SvcGetCmd", {member<SvcGetCmd, &SvcGetCmd::op>("op"), member<SvcGetCmd, &SvcGetCmd::resp>("resp"),
                                   member<SvcGetCmd, &SvcGetCmd::svc_id>("svc_id")});
  c.check<SvcGetResp>(
      "SvcGetResp",
      {member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::flags>("svc_desc.flags"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::num_vld_vnis>("svc_desc.num_vld_vnis"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::vnis, 0u>("svc_desc.vnis[0]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::vnis, 1u>("svc_desc.vnis[1]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::vnis, 2u>("svc_desc.vnis[2]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::vnis, 3u>("svc_desc.vnis[3]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::tcs, 0u>("svc_desc.tcs[0]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::tcs, 1u>("svc_desc.tcs[1]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::tcs, 2u>("svc_desc.tcs[2]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::tcs, 3u>("svc_desc.tcs[3]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::tcs, 4u>("svc_desc.tcs[4]"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::members, 0u, &SvcMember::id>("svc_desc.members[0].id"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::members, 0u, &SvcMember::type>("svc_desc.members[0].type"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::members, 1u, &SvcMember::id>("svc_desc.members[1].id"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::members, 1u, &SvcMember::type>("svc_desc.members[1].type"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 0u, &Limits::max>("svc_desc.limits[0].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 0u, &Limits::res>("svc_desc.limits[0].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 1u, &Limits::max>("svc_desc.limits[1].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 1u, &Limits::res>("svc_desc.limits[1].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 2u, &Limits::max>("svc_desc.limits[2].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 2u, &Limits::res>("svc_desc.limits[2].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 3u, &Limits::max>("svc_desc.limits[3].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 3u, &Limits::res>("svc_desc.limits[3].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 4u, &Limits::max>("svc_desc.limits[4].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 4u, &Limits::res>("svc_desc.limits[4].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 5u, &Limits::max>("svc_desc.limits[5].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 5u, &Limits::res>("svc_desc.limits[5].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 6u, &Limits::max>("svc_desc.limits[6].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 6u, &Limits::res>("svc_desc.limits[6].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 7u, &Limits::max>("svc_desc.limits[7].max"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::limits, 7u, &Limits::res>("svc_desc.limits[7].res"),
       member<SvcGetResp, &SvcGetResp::svc_desc, &SvcDesc::svc_id>("svc_desc.svc_id")});
  c.check<SvcListGetCmd>("SvcListGetCmd", {member<SvcListGetCmd, &SvcListGetCmd::op>("op"),
                                           member<SvcListGetCmd, &SvcListGetCmd::resp>("resp"),
                                           member<SvcListGetCmd, &SvcListGetCmd::count>("count"),
                                           member<SvcListGetCmd, &SvcListGetCmd::svc_list>("svc_list")});
  c.check<SvcListGetResp>("SvcListGetResp", {member<SvcListGetResp, &SvcListGetResp::count>("count")});
  c.check<SvcRsrcGetCmd>("SvcRsrcGetCmd", {member<SvcRsrcGetCmd, &SvcRsrcGetCmd::op>("op"),
                                           member<SvcRsrcGetCmd, &SvcRsrcGetCmd::resp>("resp"),
                                           member<SvcRsrcGetCmd, &SvcRsrcGetCmd::svc_id>("svc_id")});
  c.check<SvcRsrcGetResp>("SvcRsrcGetResp",
                          {member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::svc_id>("rsrcs.svc_id"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::tle_pool_id>("rsrcs.tle_pool_id"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 0u>("rsrcs.in_use[0]"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 1u>("rsrcs.in_use[1]"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 2u>("rsrcs.in_use[2]"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 3u>("rsrcs.in_use[3]"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 4u>("rsrcs.in_use[4]"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 5u>("rsrcs.in_use[5]"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 6u>("rsrcs.in_use[6]"),
                           member<SvcRsrcGetResp, &SvcRsrcGetResp::rsrcs, &RsrcUse::in_use, 7u>("rsrcs.in_use[7]")});
  c.check<SvcRsrcListGetCmd>("SvcRsrcListGetCmd",
                             {member<SvcRsrcListGetCmd, &SvcRsrcListGetCmd::op>("op"),
                              member<SvcRsrcListGetCmd, &SvcRsrcListGetCmd::resp>("resp"),
                              member<SvcRsrcListGetCmd, &SvcRsrcListGetCmd::count>("count"),
                              member<SvcRsrcListGetCmd, &SvcRsrcListGetCmd::rsrc_list>("rsrc_list")});
  c.check<SvcRsrcListGetResp>("SvcRsrcListGetResp", {member<SvcRsrcListGetResp, &SvcRsrcListGetResp::count>("count")});
  c.check<SvcEnableCmd>(
      "SvcEnableCmd",
      {member<SvcEnableCmd, &SvcEnableCmd::op>("op"), member<SvcEnableCmd, &SvcEnableCmd::resp>("resp"),
       member<SvcEnableCmd, &SvcEnableCmd::svc_id>("svc_id"), member<SvcEnableCmd, &SvcEnableCmd::enable>("enable")});
  c.check<SvcLprCmd>("SvcLprCmd", {member<SvcLprCmd, &SvcLprCmd::op>("op"), member<SvcLprCmd, &SvcLprCmd::resp>("resp"),
                                   member<SvcLprCmd, &SvcLprCmd::svc_id>("svc_id"),
                                   member<SvcLprCmd, &SvcLprCmd::lnis_per_rgid>("lnis_per_rgid")});
  c.check<SvcSetExclusiveCpCmd>("SvcSetExclusiveCpCmd",
                                {member<SvcSetExclusiveCpCmd, &SvcSetExclusiveCpCmd::op>("op"),
                                 member<SvcSetExclusiveCpCmd, &SvcSetExclusiveCpCmd::svc_id>("svc_id"),
                                 member<SvcSetExclusiveCpCmd, &SvcSetExclusiveCpCmd::exclusive_cp>("exclusive_cp")});
  c.check<SvcGetExclusiveCpCmd>("SvcGetExclusiveCpCmd",
                                {member<SvcGetExclusiveCpCmd, &SvcGetExclusiveCpCmd::op>("op"),
                                 member<SvcGetExclusiveCpCmd, &SvcGetExclusiveCpCmd::resp>("resp"),
                                 member<SvcGetExclusiveCpCmd, &SvcGetExclusiveCpCmd::svc_id>("svc_id")});
  c.check<SvcGetExclusiveCpResp>("SvcGetExclusiveCpResp",
                                 {member<SvcGetExclusiveCpResp, &SvcGetExclusiveCpResp::exclusive_cp>("exclusive_cp")});
  c.check<SvcVniRangeCmd>("SvcVniRangeCmd", {member<SvcVniRangeCmd, &SvcVniRangeCmd::op>("op"),
                                             member<SvcVniRangeCmd, &SvcVniRangeCmd::resp>("resp"),
                                             member<SvcVniRangeCmd, &SvcVniRangeCmd::svc_id>("svc_id"),
                                             member<SvcVniRangeCmd, &SvcVniRangeCmd::vni_min>("vni_min"),
                                             member<SvcVniRangeCmd, &SvcVniRangeCmd::vni_max>("vni_max")});
  c.check<SvcGetVniRangeResp>("SvcGetVniRangeResp",
                              {member<SvcGetVniRangeResp, &SvcGetVniRangeResp::vni_min>("vni_min"),
                               member<SvcGetVniRangeResp, &SvcGetVniRangeResp::vni_max>("vni_max")});
  c.check<SvcSetNetnsCmd>("SvcSetNetnsCmd", {member<SvcSetNetnsCmd, &SvcSetNetnsCmd::op>("op"),
                                             member<SvcSetNetnsCmd, &SvcSetNetnsCmd::svc_id>("svc_id"),
                                             member<SvcSetNetnsCmd, &SvcSetNetnsCmd::netns>("netns")});
  c.check<SvcGetNetnsCmd>("SvcGetNetnsCmd", {member<SvcGetNetnsCmd, &SvcGetNetnsCmd::op>("op"),
                                             member<SvcGetNetnsCmd, &SvcGetNetnsCmd::resp>("resp"),
                                             member<SvcGetNetnsCmd, &SvcGetNetnsCmd::svc_id>("svc_id")});
  c.check<SvcGetValueResp>("SvcGetValueResp", {member<SvcGetValueResp, &SvcGetValueResp::value>("value")});
  c.check<GetDevPropertiesCmd>("GetDevPropertiesCmd",
                               {member<GetDevPropertiesCmd, &GetDevPropertiesCmd::op>("op"),
                                member<GetDevPropertiesCmd, &GetDevPropertiesCmd::resp>("resp")});
  c.check<DevProperties>("DevProperties",
                         {member<DevProperties, &DevProperties::nid>("nid"),
                          member<DevProperties, &DevProperties::nid_configured>("nid_configured"),
                          member<DevProperties, &DevProperties::pid_bits>("pid_bits"),
                          member<DevProperties, &DevProperties::pid_count>("pid_count"),
                          member<DevProperties, &DevProperties::pid_granule>("pid_granule"),
                          member<DevProperties, &DevProperties::min_free_shift>("min_free_shift"),
                          member<DevProperties, &DevProperties::rdzv_get_idx>("rdzv_get_idx"),
                          member<DevProperties, &DevProperties::rsrcs, 0u, &Limits::max>("rsrcs[0].max"),
                          member<DevProperties, &DevProperties::rsrcs, 0u, &Limits::res>("rsrcs[0].res"),
                          member<DevProperties, &DevProperties::rsrcs, 1u, &Limits::max>("rsrcs[1].max"),
                          member<DevProperties, &DevProperties::rsrcs, 1u, &Limits::res>("rsrcs[1].res"),
                          member<DevProperties, &DevProperties::rsrcs, 2u, &Limits::max>("rsrcs[2].max"),
                          member<DevProperties, &DevProperties::rsrcs, 2u, &Limits::res>("rsrcs[2].res"),
                          member<DevProperties, &DevProperties::rsrcs, 3u, &Limits::max>("rsrcs[3].max"),
                          member<DevProperties, &DevProperties::rsrcs, 3u, &Limits::res>("rsrcs[3].res"),
                          member<DevProperties, &DevProperties::rsrcs, 4u, &Limits::max>("rsrcs[4].max"),
                          member<DevProperties, &DevProperties::rsrcs, 4u, &Limits::res>("rsrcs[4].res"),
                          member<DevProperties, &DevProperties::rsrcs, 5u, &Limits::max>("rsrcs[5].max"),
                          member<DevProperties, &DevProperties::rsrcs, 5u, &Limits::res>("rsrcs[5].res"),
                          member<DevProperties, &DevProperties::rsrcs, 6u, &Limits::max>("rsrcs[6].max"),
                          member<DevProperties, &DevProperties::rsrcs, 6u, &Limits::res>("rsrcs[6].res"),
                          member<DevProperties, &DevProperties::rsrcs, 7u, &Limits::max>("rsrcs[7].max"),
                          member<DevProperties, &DevProperties::rsrcs, 7u, &Limits::res>("rsrcs[7].res"),
                          member<DevProperties, &DevProperties::device_rev>("device_rev"),
                          member<DevProperties, &DevProperties::device_proto>("device_proto"),
                          member<DevProperties, &DevProperties::device_platform>("device_platform"),
                          member<DevProperties, &DevProperties::cassini_version>("cassini_version"),
                          member<DevProperties, &DevProperties::rdzv_get_en>("rdzv_get_en"),
                          member<DevProperties, &DevProperties::amo_remap_to_pcie_fadd>("amo_remap_to_pcie_fadd")});
}

TEST(CxiAbi, EveryCall) {
  Comparison c{golden_cxi::calls()};
  compare_client_calls(c);
  compare_queue_calls(c);
  compare_service_calls(c);
  EXPECT_EQ(c.done, golden_cxi::calls().size());
}

TEST(CxiAbi, NumbersNobodyServes) {
  unsigned obsolete = 0, profile = 0;
  for (std::uint32_t i = 0; i < kOpMax; ++i) {
    obsolete += is_obsolete(static_cast<Op>(i));
    profile += is_profile_op(static_cast<Op>(i));
  }
  EXPECT_EQ(obsolete, 8u);
  EXPECT_EQ(profile, 22u);
  EXPECT_TRUE(is_obsolete(static_cast<Op>(35)) && is_obsolete(static_cast<Op>(47)));
  EXPECT_TRUE(is_profile_op(static_cast<Op>(55)) && is_profile_op(static_cast<Op>(76)));
}

}  // namespace
