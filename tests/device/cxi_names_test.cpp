// SPDX-License-Identifier: Apache-2.0
// Every row of the tables of the founding document, by its name, through strait/cxi.h: commands, exported calls,
// user-space functions, structures, flags and limits. The device behind it takes notes; what a device does is tested on
// the software one.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cxi_rig.hpp"
#include "golden_cxi_ring.hpp"
#include "strait/cxi.h"

#if !defined(STRAIT_CXI_GLOBAL_NAMES)
#error "alone, the names of cxi.h are global"
#endif

namespace {

namespace cx = strait::wire::cxi;
using paper::Aligned;

// Remembers commands, hands out numbers and pages.
class Noting {
 public:
  Noting() {
    dev.device = this;
    dev.command = [](void* self, const void* command, std::size_t length) {
      return static_cast<Noting*>(self)->take(static_cast<const std::uint8_t*>(command), length);
    };
    dev.map = [](void* self, std::uint64_t offset, std::uint64_t length, void** address) {
      auto& all = static_cast<Noting*>(self)->pages;
      const auto found = all.find(offset);
      if (found == all.end() || found->second->size() != length) return EINVAL;
      *address = found->second->data();
      ++static_cast<Noting*>(self)->mapped;
      return 0;
    };
    dev.unmap = [](void* self, void*, std::uint64_t) { --static_cast<Noting*>(self)->mapped; };
    dev.doorbell_flags = strait::device::cxi::kMemoryDoorbell;
  }
  template <class Cmd>
  Cmd last() const {
    Cmd out{};
    EXPECT_EQ(newest.size(), sizeof out);
    std::memcpy(&out, newest.data(), std::min(newest.size(), sizeof out));
    EXPECT_EQ(out.op, Cmd::kOp);
    return out;
  }

  cxi_dev dev{};
  std::vector<std::uint8_t> newest;
  std::map<std::uint64_t, std::unique_ptr<Aligned>> pages;
  int mapped = 0;
  int refuse = 0;

 private:
  cx::MmInfo cookie(std::uint64_t bytes) {
    next_ += 0x10000;
    pages[next_] = std::make_unique<Aligned>(bytes);
    return {next_, bytes};
  }
  template <class Resp>
  int answer(const Resp& resp) {
    cx::CmdHead head{};
    std::memcpy(&head, newest.data(), sizeof head);
    std::memcpy(reinterpret_cast<void*>(head.resp), &resp, sizeof resp);
    return 0;
  }
  int take(const std::uint8_t* command, std::size_t length) {
    newest.assign(command, command + length);
    if (refuse != 0) return refuse;
    cx::Op op;
    std::memcpy(&op, command, sizeof op);
    switch (op) {
      case cx::Op::lni_alloc: return answer(cx::LniAllocResp{3});
      case cx::Op::domain_alloc: return answer(cx::DomainAllocResp{4, 10, 20});
      case cx::Op::trig_cp_alloc: return answer(cx::CpAllocResp{5, 0});
      case cx::Op::cq_alloc: return answer(cx::CqAllocResp{6, 64, cookie(4096), cookie(4096)});
      case cx::Op::ct_alloc: return answer(cx::CtAllocResp{7, 0, cookie(4096)});
      case cx::Op::pte_alloc: return answer(cx::PteAllocResp{8});
      case cx::Op::pte_map: return answer(cx::PteMapResp{9});
      case cx::Op::atu_map: {
        cx::AtuMapResp resp{};
        resp.id = 11;
        resp.md = {0x4000, 0x7000, 0x2000, 5, {}, 12, 21, 11};
        return answer(resp);
      }
      default: return 0;
    }
  }
  std::uint64_t next_ = 0;
};

TEST(CxiNames, Commands) {
  EXPECT_EQ(CXI_OP_CT_ALLOC, static_cast<unsigned>(cx::Op::ct_alloc));
  EXPECT_EQ(CXI_OP_CT_WB_UPDATE, static_cast<unsigned>(cx::Op::ct_wb_update));
  EXPECT_EQ(CXI_OP_CT_FREE, static_cast<unsigned>(cx::Op::ct_free));
  EXPECT_EQ(CXI_OP_CQ_ALLOC, static_cast<unsigned>(cx::Op::cq_alloc));
  EXPECT_EQ(CXI_OP_CQ_FREE, static_cast<unsigned>(cx::Op::cq_free));
  EXPECT_EQ(CXI_OP_TRIG_CP_ALLOC, static_cast<unsigned>(cx::Op::trig_cp_alloc));
  EXPECT_EQ(CXI_OP_ATU_MAP, static_cast<unsigned>(cx::Op::atu_map));
  EXPECT_EQ(CXI_OP_ATU_UNMAP, static_cast<unsigned>(cx::Op::atu_unmap));
  EXPECT_EQ(CXI_OP_PTE_ALLOC, static_cast<unsigned>(cx::Op::pte_alloc));
  EXPECT_EQ(CXI_OP_PTE_MAP, static_cast<unsigned>(cx::Op::pte_map));
  EXPECT_EQ(CXI_OP_LNI_ALLOC, static_cast<unsigned>(cx::Op::lni_alloc));
  EXPECT_EQ(CXI_OP_LNI_FREE, static_cast<unsigned>(cx::Op::lni_free));
  EXPECT_EQ(CXI_OP_DOMAIN_RESERVE, static_cast<unsigned>(cx::Op::domain_reserve));
  EXPECT_EQ(CXI_OP_DOMAIN_ALLOC, static_cast<unsigned>(cx::Op::domain_alloc));
  EXPECT_EQ(CXI_OP_DOMAIN_FREE, static_cast<unsigned>(cx::Op::domain_free));
  EXPECT_EQ(CXI_OP_CP_ALLOC, static_cast<unsigned>(cx::Op::cp_alloc));
  EXPECT_EQ(CXI_OP_EQ_ALLOC, static_cast<unsigned>(cx::Op::eq_alloc));
  EXPECT_EQ(CXI_OP_INVALID, 0u);
  EXPECT_EQ(CXI_OP_MAX, cx::kOpMax);
}

TEST(CxiNames, Flags) {
  EXPECT_EQ(CXI_CQ_USER, cx::kCqUser);
  EXPECT_EQ(CXI_CQ_IS_TX, cx::kCqIsTx);
  EXPECT_EQ(CXI_CQ_TX_ETHERNET, cx::kCqTxEthernet);
  EXPECT_EQ(CXI_CQ_TX_WITH_TRIG_CMDS, cx::kCqTxTriggered);
  EXPECT_EQ(CXI_MAP_PIN, cx::kMapPin);
  EXPECT_EQ(CXI_MAP_ATS, cx::kMapAts);
  EXPECT_EQ(CXI_MAP_WRITE, cx::kMapWrite);
  EXPECT_EQ(CXI_MAP_READ, cx::kMapRead);
  EXPECT_EQ(CXI_MAP_FAULT, cx::kMapFault);
  EXPECT_EQ(CXI_MAP_NOCACHE, cx::kMapNocache);
  EXPECT_EQ(CXI_MAP_USER_ADDR, cx::kMapUserAddr);
  EXPECT_EQ(CXI_MAP_DEVICE, cx::kMapDevice);
  EXPECT_EQ(CXI_MAP_ALLOC_MD, cx::kMapAllocMd);
  EXPECT_EQ(CXI_MAP_PREFETCH, cx::kMapPrefetch);
  EXPECT_EQ(TRIG_LCID, static_cast<unsigned>(cx::CpType::triggered));
  EXPECT_EQ(NON_TRIG_LCID, static_cast<unsigned>(cx::CpType::non_triggered));
  EXPECT_EQ(ANY_LCID, static_cast<unsigned>(cx::CpType::any));
  EXPECT_EQ(CXI_CQ_UPDATE_LOW_FREQ, static_cast<unsigned>(cx::CqPolicy::low_freq));
  EXPECT_EQ(CXI_TC_ETH, static_cast<unsigned>(cx::TrafficClass::ethernet));
  EXPECT_EQ(CXI_TC_TYPE_DEFAULT, static_cast<unsigned>(cx::TrafficClassType::standard));
  EXPECT_EQ(CXI_TC_TYPE_HRP, static_cast<unsigned>(cx::TrafficClassType::hrp));
  EXPECT_EQ(CXI_TC_TYPE_RESTRICTED, static_cast<unsigned>(cx::TrafficClassType::restricted));
  EXPECT_EQ(CXI_TC_TYPE_COLL_LEAF, static_cast<unsigned>(cx::TrafficClassType::coll_leaf));
  EXPECT_EQ(CXI_TC_TYPE_RESTRICTED, static_cast<unsigned>(cx::TrafficClassType::restricted));
}

TEST(CxiNames, Limits) {
  EXPECT_EQ(C_NUM_CTS, cx::kNumCts);
  EXPECT_EQ(C_NUM_PTLTES, cx::kNumPtes);
  EXPECT_EQ(C_NUM_TLES, cx::kNumTles);
  EXPECT_EQ(C_PE_COUNT, cx::kProcessingElements);
  EXPECT_EQ(C_NUM_TRANSMIT_CQS, cx::kNumTransmitCqs);
  EXPECT_EQ(C_NUM_TARGET_CQS, cx::kNumTargetCqs);
  EXPECT_EQ(CXI_MAX_CQ_COUNT, cx::kMaxCqBlocks);
  EXPECT_EQ(C_MEMORG_CQ_TOU, cx::kBarCts);
  EXPECT_EQ(C_TOU_LAUNCH_PAGE_SIZE, cx::kBarPageStride);
  EXPECT_EQ(C_CQ_LAUNCH_TXQ_BASE, cx::kBarTransmitCqs);
  EXPECT_EQ(C_CQ_LAUNCH_PAGE_SIZE, cx::kBarPageStride);
}

// Every field of ours where the kernel has it.
TEST(CxiNames, Structures) {
  EXPECT_EQ(offsetof(cxi_mminfo, size), offsetof(cx::MmInfo, size));
  EXPECT_EQ(offsetof(cxi_ct_alloc_cmd, resp), offsetof(cx::CtAllocCmd, resp));
  EXPECT_EQ(offsetof(cxi_ct_alloc_cmd, lni), offsetof(cx::CtAllocCmd, lni));
  EXPECT_EQ(offsetof(cxi_ct_alloc_cmd, wb), offsetof(cx::CtAllocCmd, wb));
  EXPECT_EQ(offsetof(cxi_ct_alloc_resp, doorbell), offsetof(cx::CtAllocResp, doorbell));
  EXPECT_EQ(offsetof(cxi_ct_wb_update_cmd, ctn), offsetof(cx::CtWbUpdateCmd, ctn));
  EXPECT_EQ(offsetof(cxi_ct_wb_update_cmd, wb), offsetof(cx::CtWbUpdateCmd, wb));
  EXPECT_EQ(offsetof(cxi_md_hints, ptg_mode_valid), offsetof(cx::MdHints, ptg_mode_valid));
  EXPECT_EQ(offsetof(cxi_md_hints, dmabuf_fd), offsetof(cx::MdHints, dmabuf_fd));
  EXPECT_EQ(offsetof(cxi_md_hints, dmabuf_offset), offsetof(cx::MdHints, dmabuf_offset));
  EXPECT_EQ(offsetof(cxi_md_hints, dmabuf_valid), offsetof(cx::MdHints, dmabuf_valid));
  EXPECT_EQ(offsetof(cxi_atu_map_cmd, va), offsetof(cx::AtuMapCmd, va));
  EXPECT_EQ(offsetof(cxi_atu_map_cmd, flags), offsetof(cx::AtuMapCmd, flags));
  EXPECT_EQ(offsetof(cxi_atu_map_cmd, hints), offsetof(cx::AtuMapCmd, hints));
  EXPECT_EQ(offsetof(cxi_cq_alloc_opts, lcid), offsetof(cx::CqAllocOpts, lcid));
  EXPECT_EQ(offsetof(cxi_cq_alloc_cmd, opts), offsetof(cx::CqAllocCmd, opts));
  EXPECT_EQ(offsetof(cxi_cq_alloc_resp, cmds), offsetof(cx::CqAllocResp, cmds));
  EXPECT_EQ(offsetof(cxi_cq_alloc_resp, wp_addr), offsetof(cx::CqAllocResp, wp_addr));
  EXPECT_EQ(offsetof(cxi_trig_cp_alloc_cmd, cp_type), offsetof(cx::TrigCpAllocCmd, cp_type));
  EXPECT_EQ(offsetof(cxi_cp_alloc_resp, lcid), offsetof(cx::CpAllocResp, lcid));
  EXPECT_EQ(offsetof(cxi_pte_map_cmd, is_multicast), offsetof(cx::PteMapCmd, is_multicast));
  EXPECT_EQ(offsetof(cxi_pte_status, les_max), offsetof(cx::PteStatus, les_max));
  EXPECT_EQ(offsetof(cxi_pte_status, ule_offsets), offsetof(cx::PteStatus, ule_offsets));
  EXPECT_EQ(offsetof(cxi_pte_status, ule_count), offsetof(cx::PteStatus, ule_count));
  EXPECT_EQ(offsetof(cxi_md, lac), offsetof(cx::Md, lac));
  EXPECT_EQ(offsetof(cxi_md, id), offsetof(cx::Md, id));
  cx::CtWriteback word{};
  word.set_success(0x123456789abc);
  word.set_failure(0x55);
  word.set_written(true);
  c_ct_writeback named{};
  std::memcpy(&named, &word, 8);
  EXPECT_EQ(named.ct_success, 0x123456789abcu);
  EXPECT_EQ(named.ct_failure, 0x55u);
  EXPECT_EQ(named.ct_writeback, 1u);
}

TEST(CxiNames, PortalOptionsAreTheSeventeenBits) {
  const auto bit = [](auto set) {
    cxi_pt_alloc_opts opts{};
    set(opts);
    std::uint64_t word = 0;
    std::memcpy(&word, &opts, 8);
    return word;
  };
  EXPECT_EQ(bit([](auto& o) { o.en_event_match = 1; }), cx::kPteEnEventMatch);
  EXPECT_EQ(bit([](auto& o) { o.clr_remote_offset = 1; }), cx::kPteClrRemoteOffset);
  EXPECT_EQ(bit([](auto& o) { o.en_flowctrl = 1; }), cx::kPteEnFlowctrl);
  EXPECT_EQ(bit([](auto& o) { o.use_long_event = 1; }), cx::kPteUseLongEvent);
  EXPECT_EQ(bit([](auto& o) { o.lossless = 1; }), cx::kPteLossless);
  EXPECT_EQ(bit([](auto& o) { o.en_restricted_unicast_lm = 1; }), cx::kPteEnRestrictedUnicastLm);
  EXPECT_EQ(bit([](auto& o) { o.use_logical = 1; }), cx::kPteUseLogical);
  EXPECT_EQ(bit([](auto& o) { o.is_matching = 1; }), cx::kPteIsMatching);
  EXPECT_EQ(bit([](auto& o) { o.do_space_check = 1; }), cx::kPteDoSpaceCheck);
  EXPECT_EQ(bit([](auto& o) { o.en_align_lm = 1; }), cx::kPteEnAlignLm);
  EXPECT_EQ(bit([](auto& o) { o.en_sw_hw_st_chng = 1; }), cx::kPteEnSwHwStChng);
  EXPECT_EQ(bit([](auto& o) { o.ethernet = 1; }), cx::kPteEthernet);
  EXPECT_EQ(bit([](auto& o) { o.signal_invalid = 1; }), cx::kPteSignalInvalid);
  EXPECT_EQ(bit([](auto& o) { o.signal_underflow = 1; }), cx::kPteSignalUnderflow);
  EXPECT_EQ(bit([](auto& o) { o.signal_overflow = 1; }), cx::kPteSignalOverflow);
  EXPECT_EQ(bit([](auto& o) { o.signal_inexact = 1; }), cx::kPteSignalInexact);
  EXPECT_EQ(bit([](auto& o) { o.en_match_on_vni = 1; }), cx::kPteEnMatchOnVni);
}

TEST(CxiNames, AddressesOfADescriptor) {
  const cxi_md md{0x40000000, 0x7000, 0x2000, 5, 12, 21, 1};
  EXPECT_EQ(CXI_VA_TO_IOVA(&md, 0x7123), 0x40000123u);
  EXPECT_EQ(CXI_IOVA_TO_VA(&md, 0x40000123), 0x7123u);
}

TEST(CxiNames, ExportedCallsOfCounters) {
  Noting noting;
  cxi_lni* const lni = cxi_lni_alloc(&noting.dev, 1);
  ASSERT_NE(lni, nullptr);
  c_ct_writeback first{}, second{};
  cxi_ct* const ct = cxi_ct_alloc(lni, &first);
  ASSERT_NE(ct, nullptr);
  EXPECT_EQ(noting.last<cx::CtAllocCmd>().lni, 3u);
  EXPECT_EQ(noting.last<cx::CtAllocCmd>().wb, reinterpret_cast<std::uint64_t>(&first));
  EXPECT_EQ(ct->ctn, 7u);
  void* page = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(cxi_ct_user_info(ct, &page, &size), 0);
  EXPECT_EQ(page, ct->doorbell);
  EXPECT_EQ(size, 4096u);
  EXPECT_EQ(cxi_ct_user_info(ct, nullptr, &size), -EINVAL);
  ASSERT_EQ(cxi_ct_wb_update(ct, &second), 0);
  EXPECT_EQ(noting.last<cx::CtWbUpdateCmd>().wb, reinterpret_cast<std::uint64_t>(&second));
  EXPECT_EQ(ct->wb, &second);
  noting.refuse = ETIMEDOUT;
  EXPECT_EQ(cxi_ct_wb_update(ct, &first), -ETIMEDOUT);
  EXPECT_EQ(ct->wb, &second);
  EXPECT_EQ(cxi_ct_alloc(lni, &first), nullptr);
  EXPECT_EQ(errno, ETIMEDOUT);
  noting.refuse = 0;
  // The doorbell functions, on a page that is memory: every call counts.
  auto* const words = static_cast<std::uint64_t*>(page);
  words[16] = words[24] = ~std::uint64_t{0};
  cxi_ct_inc_success(ct, 5);
  cxi_ct_inc_success(ct, 5);
  cxi_ct_inc_failure(ct, 1);
  cxi_ct_reset_success(ct);
  cxi_ct_reset_failure(ct);
  EXPECT_EQ(words[0], 10u);
  EXPECT_EQ(words[8], 1u);
  EXPECT_NE(words[16], ~std::uint64_t{0});
  EXPECT_NE(words[24], ~std::uint64_t{0});
  EXPECT_EQ(noting.mapped, 1);
  cxi_ct_free(ct);
  EXPECT_EQ(noting.last<cx::CtFreeCmd>().ctn, 7u);
  EXPECT_EQ(noting.mapped, 0);  // before the command: the kernel refuses a counter whose page is mapped
  EXPECT_EQ(cxi_lni_free(lni), 0);
}

TEST(CxiNames, ExportedCallsOfCommandQueues) {
  Noting noting;
  cxi_lni* const lni = cxi_lni_alloc(&noting.dev, 1);
  cxi_cp* const cp = cxi_trig_cp_alloc(lni, 1, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, TRIG_LCID);
  ASSERT_NE(cp, nullptr);
  EXPECT_EQ(noting.last<cx::TrigCpAllocCmd>().cp_type, cx::CpType::triggered);
  EXPECT_EQ(cp->lcid, 0u);
  cxi_cq_alloc_opts opts{};
  opts.count = 64;
  opts.flags = CXI_CQ_IS_TX | CXI_CQ_TX_WITH_TRIG_CMDS;
  opts.lcid = cp->lcid;
  cxi_cq* const cq = cxi_cq_alloc(lni, nullptr, &opts);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(noting.last<cx::CqAllocCmd>().opts.flags, CXI_CQ_IS_TX | CXI_CQ_TX_WITH_TRIG_CMDS);
  std::size_t ring_bytes = 0, page_bytes = 0;
  void* ring = nullptr;
  void* page = nullptr;
  ASSERT_EQ(cxi_cq_user_info(cq, &ring_bytes, &ring, &page, &page_bytes), 0);
  EXPECT_EQ(ring_bytes, 4096u);
  EXPECT_EQ(page_bytes, 4096u);
  EXPECT_EQ(noting.mapped, 2);
  c_full_dma_cmd put{};
  put.command.opcode = C_CMD_PUT;
  EXPECT_EQ(cxi_cq_emit_dma(cq, &put), 0);
  cxi_cq_ring(cq);
  EXPECT_EQ(*static_cast<std::uint64_t*>(page), 5u);
  EXPECT_EQ(static_cast<std::uint8_t*>(ring)[256], 0x15);
  cxi_cq_free(cq);
  EXPECT_EQ(noting.mapped, 0);
  cxi_cp_free(cp);
  EXPECT_EQ(noting.last<cx::CpFreeCmd>().cp_hndl, 5u);
  (void)cxi_lni_free(lni);
}

TEST(CxiNames, ExportedCallsOfMemoryAndPortals) {
  Noting noting;
  cxi_lni* const lni = cxi_lni_alloc(&noting.dev, 1);
  cxi_md_hints hints{};
  hints.dmabuf_fd = 33;
  hints.dmabuf_offset = 4096;
  hints.dmabuf_valid = true;
  cxi_md* const md = cxi_map(lni, 0x7010, 100, CXI_MAP_PIN | CXI_MAP_DEVICE | CXI_MAP_READ, &hints);
  ASSERT_NE(md, nullptr);
  EXPECT_EQ(noting.last<cx::AtuMapCmd>().hints.dmabuf_fd, 33);
  EXPECT_EQ(noting.last<cx::AtuMapCmd>().hints.dmabuf_valid, 1);
  EXPECT_EQ(noting.last<cx::AtuMapCmd>().flags, cx::kMapPin | cx::kMapDevice | cx::kMapRead);
  EXPECT_EQ(CXI_VA_TO_IOVA(md, 0x7010), 0x4010u);
  EXPECT_EQ(cxi_unmap(md), 0);
  EXPECT_EQ(noting.last<cx::AtuUnmapCmd>().id, 11u);
  cxi_domain* const domain = cxi_domain_alloc(lni, 10, 20);
  cxi_pt_alloc_opts opts{};
  opts.is_matching = 1;
  cxi_pte* const pte = cxi_pte_alloc(lni, nullptr, &opts);
  ASSERT_NE(pte, nullptr);
  EXPECT_EQ(noting.last<cx::PteAllocCmd>().opts, cx::kPteIsMatching);
  unsigned index = 0;
  EXPECT_EQ(cxi_pte_map(pte, domain, 17, false, &index), 0);
  EXPECT_EQ(index, 9u);
  EXPECT_EQ(noting.last<cx::PteMapCmd>().pid_offset, 17u);
  EXPECT_EQ(cxi_pte_unmap(pte, domain, 9), 0);
  cxi_pte_free(pte);
  cxi_domain_free(domain);
  (void)cxi_lni_free(lni);
}

// The queue functions make the public ones' bytes.
TEST(CxiNames, QueueFunctionsAreTheRecordedOnes) {
  Aligned ring(4096), page(4096);
  std::memset(ring.data(), 0xee, 4096);
  cxi_cq cq{};
  cxi_cq_init(&cq, ring.data(), 64, page.data(), 0);
  EXPECT_EQ(*ring.words(), cx::initial_queue_status().word);
  c_full_dma_cmd c{};
  c.command.opcode = C_CMD_PUT;
  c.index_ext = 3;
  c.lac = 5;
  c.event_send_disable = c.event_success_disable = c.event_ct_ack = 1;
  c.dfa.word = 0x12345678;
  c.remote_offset = 0x40;
  c.local_addr = 0x123456789000;
  c.request_len = 4096;
  c.ct = 1234;
  c.eq = 777;
  c.initiator = 0xc0ffee;
  c.user_ptr = 0x1122334455667788;
  EXPECT_EQ(cxi_cq_emit_dma(&cq, &c), 0);
  c.command.opcode = C_CMD_GET;
  c.event_ct_ack = 0;
  c.event_ct_reply = 1;
  c.local_addr += 8;
  c.remote_offset = 0x48;
  c.request_len = 24;
  c.user_ptr = 0;
  EXPECT_EQ(cxi_cq_emit_dma(&cq, &c), 0);
  c.command.opcode = C_CMD_PUT;
  c.event_ct_ack = 1;
  c.event_ct_reply = 0;
  c.local_addr += 8;
  c.remote_offset = 0x50;
  c.request_len = 0xffffffff;
  c.match_bits = 0xfedcba9876543210;
  EXPECT_EQ(cxi_cq_emit_dma(&cq, &c), 0);
  cxi_cq_ring(&cq);
  Aligned targets(4096);
  std::memset(targets.data(), 0xee, 4096);
  cxi_cq target{};
  cxi_cq_init(&target, targets.data(), 64, page.data() + 64, 1024);
  c_cmdu append{};
  append.target.command.opcode = C_CMD_TGT_APPEND;
  append.target.ptl_list = C_PTL_LIST_PRIORITY;
  append.target.ptlte_index = 1021;
  append.target.event_ct_comm = append.target.event_success_disable = 1;
  append.target.op_put = append.target.op_get = 1;
  append.target.ct = 1234;
  append.target.buffer_id = 0xbeef;
  append.target.lac = 5;
  append.target.start = 0x123456789000;
  append.target.length = 0x10000;
  append.target.match_id = 0xffffffff;
  append.target.match_bits = 0x1111111111111111;
  append.target.ignore_bits = 0x2222222222222222;
  EXPECT_EQ(cxi_cq_emit_target(&target, &append), 0);
  c_set_state_cmd enable{};
  enable.command.opcode = C_CMD_TGT_SETSTATE;
  enable.ptlte_state = C_PTLTE_ENABLED;
  enable.ptlte_index = 1021;
  EXPECT_EQ(cxi_cq_emit_target(&target, &enable), 0);
  cxi_cq_ring(&target);
  for (const golden_cxi::RingImage& golden : golden_cxi::rings()) {
    const bool puts = std::string(golden.name) == "puts_and_gets";
    if (!puts && std::string(golden.name) != "target") continue;
    EXPECT_EQ(page.words()[puts ? 0 : 8], golden.write_pointer);
    for (std::size_t i = 0; i < golden.hex.size(); ++i) {
      if (golden.hex[i] == '-') continue;
      const unsigned byte = (puts ? ring : targets).data()[256 + i / 2];
      ASSERT_EQ("0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15], golden.hex[i]) << golden.name << i / 2;
    }
  }
}

TEST(CxiNames, AFullRingIsAnAnswer) {
  Aligned ring(4096), page(4096);
  cxi_cq cq{};
  cxi_cq_init(&cq, ring.data(), 64, page.data(), 0);
  c_full_dma_cmd put{};
  put.command.opcode = C_CMD_PUT;
  for (unsigned i = 0; i < 59; ++i) ASSERT_EQ(cxi_cq_emit_dma(&cq, &put), 0);
  EXPECT_EQ(cxi_cq_emit_dma(&cq, &put), -ENOSPC);
  cxi_cq none{};
  cxi_cq_init(&none, ring.data(), 63, page.data(), 0);
  EXPECT_EQ(cxi_cq_emit_dma(&none, &put), -ENOSPC);
}

}  // namespace
