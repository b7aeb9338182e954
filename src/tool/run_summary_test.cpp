// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tool/run.hpp"

namespace strait::tool {
namespace {

TEST(RunSummary, SaysWhatTheDevicesDid) {
  soft::host::RunTotals totals;
  EXPECT_EQ(run_summary(totals, ""),
            "strait run: no device was opened (a static program or raw system calls? try --watch)");
  EXPECT_EQ(run_summary(totals, "", true), "strait run: no device was opened");
  totals.processes = 1;
  EXPECT_EQ(run_summary(totals, ""), "strait run: 1 process, no traffic");
  totals.counters["packets_sent"] = 0;
  EXPECT_EQ(run_summary(totals, ""), "strait run: 1 process, 0 packets");
  totals.processes = 2;
  totals.counters = {{"packets_sent", 41022}, {"drops_injected", 815}, {"packets_resent", 1815}, {"other", 3}};
  EXPECT_EQ(run_summary(totals, "w.pcapng"),
            "strait run: 2 processes, 41 022 packets, 815 dropped on purpose, 1 815 resent, capture w.pcapng");
  totals.counters = {{"packets_sent", 1234567}, {"messages_sent", 999}, {"strict_findings", 2}};
  EXPECT_EQ(run_summary(totals, ""),
            "strait run: 2 processes, 1 234 567 packets, 999 messages through shared memory, 2 findings");
  totals.counters = {{"packets_sent", 1}, {"messages_sent", 2}, {"links_bounced", 1}, {"ports_private", 3}};
  EXPECT_EQ(run_summary(totals, ""),
            "strait run: 2 processes, 1 packets, 2 messages through shared memory (large ones copied twice: no "
            "process_vm_readv), other hosts out of reach (port 4791 is another user's)");
}

TEST(RunSummary, SaysWhatCassinisDid) {
  soft::host::RunTotals totals;
  totals.processes = 1;
  totals.counters = {{"cxi.commands", 1200}, {"cxi.puts", 3}, {"cxi.bytes", 24}};
  EXPECT_EQ(run_summary(totals, ""), "strait run: 1 process, 1 200 commands to Cassinis, 3 puts, 24 bytes");
  totals.counters["cxi.faults_injected"] = 2;
  totals.counters["strict_findings"] = 1;
  EXPECT_EQ(run_summary(totals, ""),
            "strait run: 1 process, 1 200 commands to Cassinis, 3 puts, 24 bytes, 2 failed, lost or late on purpose, 1 "
            "findings");
}

TEST(RunSummary, SaysWhatAcceleratorsDidNotKnowAndStillHold) {
  soft::host::RunTotals totals;
  totals.processes = 1;
  totals.counters = {{"accel.processes", 1}};
  EXPECT_EQ(run_summary(totals, ""), "strait run: 1 process");
  totals.counters = {{"accel.processes", 1},
                     {"accel.unfreed", 2},
                     {"accel.unfreed_bytes", 4096},
                     {"accel.held_by_fds", 1},
                     {"accel.held_by_fds_bytes", 2097152},
                     {"unsupported.cuLaunchKernel", 3},
                     {"unsupported.cuModuleLoad", 1}};
  EXPECT_EQ(run_summary(totals, ""),
            "strait run: 1 process, 2 allocations not freed (4 096 bytes), 1 freed but held by open descriptors (2 097 "
            "152 bytes), called but not supported: cuLaunchKernel (3), cuModuleLoad (1)");
}

TEST(RunAccelerators, AreCheckedBeforeAProgramRuns) {
  EXPECT_EQ(check_accelerators("cuda:2,rocm:1x64M"), "");
  EXPECT_NE(check_accelerators("tpu:1").find("\"tpu:1\" is not cuda:N"), std::string::npos);
}

}  // namespace
}  // namespace strait::tool
