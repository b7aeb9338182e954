// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tool/run.hpp"

namespace strait::tool {
namespace {

TEST(RunSummary, SaysWhatTheDevicesDid) {
  soft::host::RunTotals totals;
  EXPECT_EQ(run_summary(totals, ""), "strait run: no device was opened");
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
}

}  // namespace
}  // namespace strait::tool
