// SPDX-License-Identifier: Apache-2.0
// Bad weather over every carrier: messages are dropped, doubled, reordered and damaged, and no program may notice.
#include "soft/nic/storm_testing.hpp"

namespace strait::soft::nic::testing {
namespace {

struct Weather {
  const char* name;
  const char* plan;
  std::uint32_t pmtu_bytes = 1024;
  bool v6 = false;
  Over over = Over::packets;
};
void PrintTo(const Weather& weather, std::ostream* out) {
  *out << weather.plan;
}

// The same over shared memory, where it is the ring's messages that go astray.
std::vector<Weather> over_shared_memory() {
  std::vector<Weather> all;
  for (const Over over : {Over::one_copy, Over::through_the_ring}) {
    const bool one = over == Over::one_copy;
    all.push_back({one ? "copy_calm" : "ring_calm", "seed=1", 0, false, over});
    all.push_back({one ? "copy_drops" : "ring_drops", "drop=5%", 0, false, over});
    all.push_back({one ? "copy_doubles" : "ring_doubles", "dup=5%", 0, false, over});
    all.push_back({one ? "copy_reorders" : "ring_reorders", "reorder=5%", 0, false, over});
    all.push_back({one ? "copy_corrupts" : "ring_corrupts", "corrupt=5%", 0, false, over});
    all.push_back({one ? "copy_delays" : "ring_delays", "delay=3%:300us", 0, false, over});
    all.push_back({one ? "copy_receivers_overlooked" : "ring_receivers_overlooked", "rnr=20%,drop=2%", 0, false, over});
    all.push_back({one ? "copy_bad" : "ring_bad", "drop=5%,dup=2%,reorder=2%,corrupt=1%,rnr=2%", 0, false, over});
    all.push_back({one ? "copy_storm" : "ring_storm", "drop=20%,dup=10%,reorder=10%", 0, false, over});
  }
  return all;
}

class Loss : public ::testing::TestWithParam<Weather> {};
constexpr const char* kBad = "drop=5%,dup=2%,reorder=2%,corrupt=1%";
INSTANTIATE_TEST_SUITE_P(
    In, Loss,
    ::testing::Values(Weather{"calm", "seed=1", 1024}, Weather{"drops", "drop=5%,seed=2", 1024},
                      Weather{"doubles", "dup=20%,seed=3", 512}, Weather{"reorders", "reorder=10%,seed=4", 1024},
                      Weather{"corrupts", "corrupt=5%,seed=5", 2048}, Weather{"delays", "delay=5%:200us,seed=6", 1024},
                      Weather{"bad_256", kBad, 256}, Weather{"bad_512", kBad, 512}, Weather{"bad_1024", kBad, 1024},
                      Weather{"bad_2048", kBad, 2048}, Weather{"bad_4096", kBad, 4096},
                      Weather{"bad_v6", kBad, 1024, true}, Weather{"drops_v6", "drop=5%,rnr=5%,seed=8", 1024, true},
                      Weather{"storm", "drop=20%,dup=10%,reorder=10%", 1024},
                      Weather{"receivers_overlooked", "rnr=20%,drop=2%,seed=9", 1024}),
    [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(OverSharedMemory, Loss, ::testing::ValuesIn(over_shared_memory()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(Loss, NobodyNotices) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    StormConfig config;
    config.operations = 500;
    config.seed = seed;
    config.pair = PairConfig(GetParam().over);
    if (GetParam().over != Over::packets) config.largest_bytes = 30'000;  // several messages of the ring
    config.pair.pmtu_bytes = GetParam().pmtu_bytes;
    config.pair.v6 = GetParam().v6;
    config.pair.faults = FaultPlan::parse(fmt::format("{},seed={}", GetParam().plan, seed * 100 + 7)).value();
    Storm storm(config);
    const std::string failure = storm.run();
    ASSERT_EQ(failure, "") << "seed " << seed << ", plan " << config.pair.faults->text();
    for (Engine* const engine : {storm.pair.a.get(), storm.pair.b.get()}) {
      const bool touched = config.pair.faults->touches_messages();
      EXPECT_EQ(engine->counts().faults_injected != 0, touched);
    }
  }
}

}  // namespace
}  // namespace strait::soft::nic::testing
