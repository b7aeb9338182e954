// SPDX-License-Identifier: Apache-2.0
#include "soft/host/report.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "soft/host/root.hpp"

namespace strait::soft::host {
namespace {

namespace fs = std::filesystem;

class Report : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::ofstream(root_.path() + path, std::ios::binary) << text;
  }
  Root root_ = Root::create().value();
};

TEST_F(Report, AddsUpWhatTheDevicesLeft) {
  EXPECT_EQ(read_reports(root_.path()).processes, 0u);
  leave_report(root_.path(), "strait0", "packets_sent=1,packets_resent=2");
  leave_report(root_.path(), "strait0", "packets_sent=3,packets_resent=2");  // the newer one
  leave_report(root_.path(), "strait1", "packets_sent=4");
  write(std::string(kReports) + "/99999999.strait0", "packets_sent=10,faults_injected=1\n");
  const RunTotals totals = read_reports(root_.path());
  EXPECT_EQ(totals.processes, 2u);
  EXPECT_EQ(totals.get("packets_sent"), 17u);
  EXPECT_EQ(totals.get("packets_resent"), 2u);
  EXPECT_EQ(totals.get("faults_injected"), 1u);
  EXPECT_EQ(totals.get("nobody"), 0u);
}

TEST_F(Report, GarbageCountsForNothing) {
  write(std::string(kReports) + "/1.x", "a=,=,b,c=-1,d=1x,e=99999999999999999999999,f=7,,\n\xff");
  write(std::string(kReports) + "/2.x.new", "f=100");
  const RunTotals totals = read_reports(root_.path());
  EXPECT_EQ(totals.processes, 1u);
  for (const char* name : {"a", "b", "c", "d", "e"}) EXPECT_EQ(totals.get(name), 0u) << name;
  EXPECT_EQ(totals.get("f"), 7u);
}

TEST_F(Report, NobodyHearsOfAReportThatCannotBeLeft) {
  leave_report("/nowhere/at/all", "strait0", "a=1");
}

}  // namespace
}  // namespace strait::soft::host
