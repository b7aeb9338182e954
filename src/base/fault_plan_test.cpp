// SPDX-License-Identifier: Apache-2.0
#include "base/fault_plan.hpp"

#include <gtest/gtest.h>

#include <array>

namespace strait {
namespace {

TEST(FaultPlan, ReadsEveryFaultAndWritesItBack) {
  const char* const text =
      "drop=2%,dup=1%,reorder=0.5%,delay=1%:2ms,corrupt=0.1%,rnr=5%,error=0.01%:0x13,down=1s..2s,stall=10ms..20ms,"
      "overrun=1000,gone=50,seed=0x2a";
  const FaultPlan plan = FaultPlan::parse(text).value();
  EXPECT_DOUBLE_EQ(plan.drop, 0.02);
  EXPECT_DOUBLE_EQ(plan.reorder, 0.005);
  EXPECT_EQ(plan.delay_ns, 2'000'000);
  EXPECT_EQ(plan.error_syndrome, 0x13);
  EXPECT_EQ(plan.overrun, 1000u);
  EXPECT_EQ(plan.gone, 50u);
  EXPECT_EQ(plan.seed, 42u);
  EXPECT_TRUE(plan.down(1'500'000'000));
  EXPECT_FALSE(plan.down(2'000'000'000));
  EXPECT_TRUE(plan.stalled(15'000'000));
  EXPECT_EQ(FaultPlan::parse(plan.text()).value().text(), plan.text());
  EXPECT_EQ(FaultPlan::parse("").value().text(), "seed=1");
}

TEST(FaultPlan, SaysWhichPartIsWrong) {
  for (const char* const text :
       {"drop", "drop=", "drop=-1%", "drop=101%", "drop=nan", "drop=2%x", "loss=1%", "delay=1%:soon", "error=1%:0x100",
        "error=1%:0", "down=1s", "down=2s..1s", "seed=x", "overrun=-1", "gone=soon"}) {
    const auto plan = FaultPlan::parse(text);
    ASSERT_FALSE(plan) << text;
    EXPECT_NE(plan.error().text.find(std::string("\"") + text + "\""), std::string::npos) << plan.error().text;
    EXPECT_FALSE(plan.error().remedy.empty());
  }
  EXPECT_FALSE(FaultPlan::parse("drop=60%,dup=60%"));
}

TEST(FaultPlan, DecidesBySeedFlowAndNumberAlone) {
  const FaultPlan plan = FaultPlan::parse("drop=5%,dup=2%,reorder=2%,rnr=10%,error=1%,seed=7").value();
  const FaultPlan same = plan;
  FaultPlan other = plan;
  other.seed = 8;
  std::array<int, 6> seen{};
  int differ = 0, receives = 0, errors = 0;
  constexpr std::uint64_t kMany = 200'000;
  for (std::uint64_t n = 0; n < kMany; ++n) {
    const Fault fault = plan.on_message(3, n);
    ASSERT_EQ(fault, same.on_message(3, n));
    ++seen[static_cast<std::size_t>(fault)];
    differ += fault != other.on_message(3, n) ? 1 : 0;
    receives += plan.on_receive(3, n) ? 1 : 0;
    errors += plan.on_work(4, n) ? 1 : 0;
  }
  EXPECT_NEAR(seen[static_cast<std::size_t>(Fault::drop)], kMany * 0.05, kMany * 0.003);
  EXPECT_NEAR(seen[static_cast<std::size_t>(Fault::duplicate)], kMany * 0.02, kMany * 0.002);
  EXPECT_NEAR(seen[static_cast<std::size_t>(Fault::reorder)], kMany * 0.02, kMany * 0.002);
  EXPECT_EQ(seen[static_cast<std::size_t>(Fault::corrupt)], 0);
  EXPECT_GT(differ, 1000) << "another seed is another run";
  EXPECT_NEAR(receives, kMany * 0.1, kMany * 0.005);
  EXPECT_NEAR(errors, kMany * 0.01, kMany * 0.002);
}

}  // namespace
}  // namespace strait
