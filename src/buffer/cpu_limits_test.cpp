// SPDX-License-Identifier: Apache-2.0
#include "buffer/cpu_limits.hpp"

#include <gtest/gtest.h>

#include "buffer/config.hpp"
#include "sys/clock.hpp"

namespace strait::buffer {
namespace {

TEST(CpuLimits, TheWindowWinsUpToWhereTheLinesCross) {
  // 100 ns and 10 ns a byte against 10 us and 0.1 ns a byte: 64 bytes + 9260 ns / (9.9 ns a byte).
  EXPECT_NEAR(static_cast<double>(window_wins_up_to({740, 41'060}, {10'006, 10'410})), 1000, 2);
  EXPECT_EQ(window_wins_up_to({100, 100 + 4032}, {4132, 4132}), 4096u) << "they meet at the long copy";
  EXPECT_EQ(window_wins_up_to({100, 100 + 4032}, {101, 101}), 65u);
}

TEST(CpuLimits, AWindowThatIsSlowerAtOnceIsNeverUsed) {
  EXPECT_EQ(window_wins_up_to({9000, 9000}, {8000, 20'000}), 0u);
  EXPECT_EQ(window_wins_up_to({8000, 8000}, {8000, 8000}), 0u) << "nothing is won by a draw";
}

TEST(CpuLimits, AreBounded) {
  EXPECT_EQ(window_wins_up_to({100, 200}, {8000, 9000}), kCpuCopiesMost) << "flatter than the engine";
  EXPECT_EQ(window_wins_up_to({100, 101}, {8'000'000, 8'000'000}), kCpuCopiesMost);
  EXPECT_EQ(window_wins_up_to({100, 50}, {8000, 7000}), kCpuCopiesMost) << "noise is no slope";
}

TEST(CpuLimits, TimesAreMediansAndEndInTime) {
  int calls = 0;
  const auto times = time_copies([&](std::uint64_t length_bytes) {
    const std::int64_t until = sys::now_ns() + (++calls % 7 == 0             ? 3'000'000
                                                : length_bytes == kShortCopy ? 0
                                                                             : 100'000);
    while (sys::now_ns() < until) continue;
    return true;
  });
  ASSERT_TRUE(times);
  EXPECT_GE(times->long_ns, 100'000);
  EXPECT_LT(times->short_ns, times->long_ns) << "the few slow ones do not count";
  EXPECT_LE(calls, 52);
  EXPECT_FALSE(time_copies([&](std::uint64_t length_bytes) { return length_bytes == kShortCopy; }));
}

TEST(CpuLimits, OneTimesAndWhatFailsIsSaid) {
  DeviceCpuLimits limits{CpuCopies{}};
  EXPECT_NE(limits.text().find("4096 bytes to it and 64 from it, until"), std::string::npos) << limits.text();
  EXPECT_TRUE(limits.take_turn());
  EXPECT_FALSE(limits.take_turn());
  const auto works = [](bool, std::uint64_t) { return true; };
  limits.time(works, [](bool to_device, std::uint64_t) { return to_device; });
  EXPECT_FALSE(limits.was_timed());
  EXPECT_EQ(limits.of(true), 4096u);
  EXPECT_EQ(limits.of(false), 64u);
  EXPECT_NE(limits.text().find("not timed: a copy failed"), std::string::npos) << limits.text();
  limits.time(works, [](bool to_device, std::uint64_t) {
    const std::int64_t until = sys::now_ns() + (to_device ? 20'000'000 : 0);
    while (sys::now_ns() < until) continue;
    return true;
  });
  EXPECT_TRUE(limits.was_timed());
  EXPECT_GE(limits.of(true), kShortCopy);
  DeviceCpuLimits told{CpuCopies{false, {7, 8}}};
  EXPECT_FALSE(told.take_turn());
  EXPECT_EQ(told.text(), "copies of up to 7 bytes to it and 8 from it, as cpu_copies in the provider's config says");
}

TEST(CpuLimits, AreReadFromTheConfig) {
  const auto parsed = [](const char* text) { return ProviderConfig::parse(text, "cuda")->cpu_copies; };
  EXPECT_TRUE(parsed("").timed);
  EXPECT_TRUE(parsed("cpu_copies=auto").timed);
  EXPECT_FALSE(parsed("cpu_copies=off").timed);
  EXPECT_EQ(parsed("cpu_copies=off").limits, (CpuLimits{0, 0}));
  EXPECT_EQ(parsed("ipc_cache=3,cpu_copies=65536/16").limits, (CpuLimits{65536, 16}));
  for (const char* wrong : {"cpu_copies=", "cpu_copies=4096", "cpu_copies=4096/", "cpu_copies=/64", "cpu_copies=1/-1",
                            "cpu_copies=65537/64", "cpu_copies=4096/64/1", "cpu_copies=on"})
    EXPECT_EQ(ProviderConfig::parse(wrong, "rocm").error().code, Code::invalid) << wrong;
  EXPECT_EQ(ProviderConfig::parse("cpu_copies=auto", "gaudi").error().code, Code::invalid) << "it has no window";
}

}  // namespace
}  // namespace strait::buffer
