// SPDX-License-Identifier: Apache-2.0
// The calls of strait/cxi.h by their names, on a software Cassini of this process: a put by cxi_cq_emit_dma lands where
// cxi_cq_emit_target appended memory, and counts on a counter.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "strait/cxi.h"
#include "strait/cxi/library.hpp"
#include "strait/device/cxi/command.hpp"
#include "strait/device/wait.hpp"

namespace {

namespace ki = strait::device::cxi;
using strait::device::Deadline;

template <class Enough>
bool soon(Enough enough) {
  return strait::device::wait_bounded({Deadline::after_ns(20'000'000'000)}, [&] {
           return enough() ? strait::device::Turn::finished : strait::device::Turn::idle;
         }) == strait::device::Waited::ok;
}

TEST(CxiNamesOnCassini, APutLandsAndCounts) {
  cxi_dev* const dev = cxi_dev_open("local0");
  ASSERT_NE(dev, nullptr) << errno;
  strait_cxi_about about{};
  about.struct_size = sizeof about;
  ASSERT_EQ(strait_cxi_about_device(static_cast<strait_cxi_device*>(dev->device), &about, nullptr), 0);
  cxi_lni* const lni = cxi_lni_alloc(dev, 1);
  ASSERT_NE(lni, nullptr) << errno;
  cxi_cp* const cp = cxi_trig_cp_alloc(lni, 1, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, TRIG_LCID);
  ASSERT_NE(cp, nullptr) << errno;
  cxi_domain* const domain = cxi_domain_alloc(lni, 1, 511);
  ASSERT_NE(domain, nullptr) << errno;
  alignas(64) c_ct_writeback word{};
  cxi_ct* const ct = cxi_ct_alloc(lni, &word);
  ASSERT_NE(ct, nullptr) << errno;
  cxi_cq_alloc_opts opts{};
  opts.count = 64;
  opts.flags = CXI_CQ_IS_TX;
  opts.lcid = cp->lcid;
  cxi_cq* const transmit = cxi_cq_alloc(lni, nullptr, &opts);
  ASSERT_NE(transmit, nullptr) << errno;
  opts.flags = CXI_CQ_IS_TX | CXI_CQ_TX_WITH_TRIG_CMDS;
  cxi_cq* const triggered = cxi_cq_alloc(lni, nullptr, &opts);
  ASSERT_NE(triggered, nullptr) << errno;
  opts.flags = 0;
  opts.lcid = 0;
  cxi_cq* const target = cxi_cq_alloc(lni, nullptr, &opts);
  ASSERT_NE(target, nullptr) << errno;
  std::vector<std::uint64_t> memory(1024);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  cxi_md* const md = cxi_map(lni, address, 8192, CXI_MAP_PIN | CXI_MAP_READ | CXI_MAP_WRITE, nullptr);
  ASSERT_NE(md, nullptr) << errno;
  const cxi_pt_alloc_opts portal{};
  cxi_pte* const pte = cxi_pte_alloc(lni, nullptr, &portal);
  ASSERT_NE(pte, nullptr) << errno;
  unsigned index = 0;
  ASSERT_EQ(cxi_pte_map(pte, domain, 0, false, &index), 0);

  c_target_cmd append{};
  append.command.opcode = C_CMD_TGT_APPEND;
  append.ptlte_index = pte->id & 0x7ff;
  append.op_put = 1;
  append.event_link_disable = append.event_comm_disable = append.event_unlink_disable = 1;
  append.lac = md->lac & 7;
  append.start = CXI_VA_TO_IOVA(md, address + 4096) & 0x1ffffffffffffff;
  append.length = 4096;
  append.match_id = 0xffffffff;
  append.ignore_bits = ~std::uint64_t{0};
  ASSERT_EQ(cxi_cq_emit_target(target, &append), 0);
  c_set_state_cmd enable{};
  enable.command.opcode = C_CMD_TGT_SETSTATE;
  enable.ptlte_state = C_PTLTE_ENABLED;
  enable.ptlte_index = pte->id & 0x7ff;
  ASSERT_EQ(cxi_cq_emit_target(target, &enable), 0);
  cxi_cq_ring(target);
  ASSERT_TRUE(soon([&] { return ki::status_of(static_cast<std::uint8_t*>(target->cmds)).rd_ptr() == 6; }));

  memory[0] = 0x5155;
  c_full_dma_cmd put{};
  put.command.opcode = C_CMD_PUT;
  put.lac = md->lac & 7;
  put.event_send_disable = put.event_success_disable = put.event_ct_ack = 1;
  put.dfa.unicast.nid = about.nid & 0xfffff;
  put.dfa.unicast.endpoint_defined = domain->pid & 0xfff;
  put.local_addr = CXI_VA_TO_IOVA(md, address) & 0x1ffffffffffffff;
  put.remote_offset = 64;
  put.request_len = 8;
  put.ct = ct->ctn & 0x7ff;
  ASSERT_EQ(cxi_cq_emit_dma(transmit, &put), 0);
  cxi_cq_ring(transmit);
  EXPECT_TRUE(soon([&] { return __atomic_load_n(&memory[512 + 8], __ATOMIC_ACQUIRE) == 0x5155; }));

  // The word is written when it is asked for; a doorbell counts beside the put.
  cxi_ct_inc_success(ct, 41);
  ki::store_ct(triggered->commands.claim<2>(), ki::trig_event(ct->ctn, 42));
  cxi_cq_ring(triggered);
  auto* const raw = reinterpret_cast<std::uint64_t*>(&word);
  EXPECT_TRUE(soon([&] { return (__atomic_load_n(raw, __ATOMIC_ACQUIRE) & 0xffffffffffff) == 42; }));
  alignas(64) c_ct_writeback other{};
  EXPECT_EQ(cxi_ct_wb_update(ct, &other), 0);
  cxi_ct_reset_success(ct);
  EXPECT_TRUE(soon([&] { return __atomic_load_n(reinterpret_cast<std::uint64_t*>(&other), __ATOMIC_ACQUIRE) >> 63; }));
  EXPECT_EQ(other.ct_success, 0u);

  EXPECT_EQ(cxi_lni_free(lni), -EBUSY);  // its children are still there
  cxi_cq_free(target);
  cxi_cq_free(triggered);
  cxi_cq_free(transmit);
  EXPECT_EQ(cxi_pte_unmap(pte, domain, static_cast<int>(index)), 0);
  cxi_pte_free(pte);
  EXPECT_EQ(cxi_unmap(md), 0);
  cxi_ct_free(ct);
  cxi_domain_free(domain);
  cxi_cp_free(cp);
  EXPECT_EQ(cxi_lni_free(lni), 0);
  cxi_dev_close(dev);
}

TEST(CxiNamesOnCassini, RefusalsAreErrnos) {
  EXPECT_EQ(cxi_dev_open("no such device"), nullptr);
  cxi_dev* const dev = cxi_dev_open("local0");
  ASSERT_NE(dev, nullptr);
  EXPECT_EQ(cxi_lni_alloc(dev, 4711), nullptr);
  EXPECT_EQ(errno, EINVAL);
  cxi_lni* const lni = cxi_lni_alloc(dev, 1);
  alignas(8) std::uint8_t odd[16] = {};
  EXPECT_EQ(cxi_ct_alloc(lni, reinterpret_cast<c_ct_writeback*>(odd + 1)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  cxi_cq_alloc_opts opts{};
  opts.count = 64;
  opts.flags = CXI_CQ_IS_TX | CXI_CQ_TX_WITH_TRIG_CMDS;
  opts.lcid = 3;
  EXPECT_EQ(cxi_cq_alloc(lni, nullptr, &opts), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(cxi_map(lni, 0x1000, 0, CXI_MAP_PIN | CXI_MAP_READ, nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(cxi_lni_free(lni), 0);
  cxi_dev_close(dev);
}

}  // namespace
