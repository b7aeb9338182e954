// SPDX-License-Identifier: Apache-2.0
// Command rings of a CXI device: every scenario holds in every order within its bound, and no ordering can be taken
// away unnoticed.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <string>

#include "explore/cxi_scenarios.hpp"

namespace explore {
namespace {

struct CxiScenario {
  Scenario scenario;
  friend void PrintTo(const CxiScenario& one, std::ostream* out) { *out << one.scenario.name; }
};
std::vector<CxiScenario> all_cxi() {
  std::vector<CxiScenario> out;
  for (const Scenario& each : cxi_scenarios()) out.push_back({each});
  return out;
}
Explored cxi_explored(const Scenario& scenario, const Mutant& mutant) {
  Machine machine;
  const auto program = scenario.make();
  return machine.explore(*program, scenario.bounds, mutant);
}

class CxiExplore : public testing::TestWithParam<CxiScenario> {};

TEST_P(CxiExplore, holds_in_every_order) {
  const Explored found = cxi_explored(GetParam().scenario, {});
  EXPECT_EQ(found.violation, "") << found.schedule;
  EXPECT_TRUE(found.complete || !found.violation.empty()) << "the search was given up";
  std::printf("%s: %llu executions, %llu states\n", GetParam().scenario.name,
              static_cast<unsigned long long>(found.executions + found.cut),
              static_cast<unsigned long long>(found.states));
}

INSTANTIATE_TEST_SUITE_P(scenarios, CxiExplore, testing::ValuesIn(all_cxi()),
                         [](const auto& tested) { return std::string(tested.param.scenario.name); });

struct CxiRemoved {
  const char* name;
  Mutant mutant;
  const char* scenario;  // that notices
  const char* words;     // of what it finds

  friend void PrintTo(const CxiRemoved& removed, std::ostream* out) { *out << removed.name; }
};

class CxiWithout : public testing::TestWithParam<CxiRemoved> {};

TEST_P(CxiWithout, it_something_breaks) {
  for (const Scenario& scenario : cxi_scenarios()) {
    if (std::string(scenario.name) != GetParam().scenario) continue;
    const Explored found = cxi_explored(scenario, GetParam().mutant);
    EXPECT_NE(found.violation.find(GetParam().words), std::string::npos) << "found: " << found.violation;
    std::printf("%s\n%s", found.violation.c_str(), found.schedule.c_str());
    return;
  }
  FAIL() << "no such scenario";
}

const CxiRemoved kCxiNeeded[] = {
    {"order_before_doorbell", {Leaf::order_before_doorbell}, "cxi_owner", "published but not whole"},
    {"order_before_doorbell_where_threads_share",
     {Leaf::order_before_doorbell},
     "cxi_two_posters",
     "published but not whole"},
    {"order_after_doorbell", {Leaf::order_after_doorbell}, "cxi_owner_short_ring", "waits for what never comes"},
    {"order_after_doorbell_where_threads_share",
     {Leaf::order_after_doorbell},
     "cxi_two_posters",
     "still in the write-combining buffer"},
    {"order_cqe_reads_before_a_block_is_used_again",
     {Leaf::order_cqe_reads, Kind::any, Call::post},
     "cxi_owner",
     "overwritten while device may still be reading"},
    {"order_cqe_reads_behind_a_counter",
     {Leaf::order_cqe_reads, Kind::any, Call::reap},
     "cxi_owner",
     "but the payload reads"},
    {"order_cqe_reads_where_threads_share",
     {Leaf::order_cqe_reads, Kind::any, Call::post},
     "cxi_two_posters_twice",
     "overwritten while device may still be reading"},
    {"release_of_a_mark", {Leaf::store_release, Kind::mark, Call::post}, "cxi_two_posters", "published but not whole"},
    {"order_mark_reads", {Leaf::order_mark_reads}, "cxi_two_posters", "published but not whole"},
    {"acquire_of_requests_when_asking",
     {Leaf::fetch_add, Kind::requests, Call::ring, Part::acquire},
     "cxi_two_posters",
     "write pointer"},
    {"release_of_requests_when_asking",
     {Leaf::fetch_add, Kind::requests, Call::ring, Part::release},
     "cxi_two_posters",
     "1 of 2 commands were executed"},
    {"acquire_of_requests_when_leaving",
     {Leaf::compare_exchange, Kind::requests, Call::ring, Part::acquire},
     "cxi_two_posters",
     "1 of 2 commands were executed"},
    {"release_of_requests_when_leaving",
     {Leaf::compare_exchange, Kind::requests, Call::ring, Part::release},
     "cxi_two_posters",
     "write pointer"},
    {"acquire_of_taken_when_claiming",
     {Leaf::load_acquire, Kind::completed, Call::post},
     "cxi_two_posters_twice",
     "overwritten while device may still be reading"},
    {"release_of_taken",
     {Leaf::compare_exchange, Kind::completed, Call::post, Part::release},
     "cxi_two_posters_twice",
     "overwritten while device may still be reading"},
};
INSTANTIATE_TEST_SUITE_P(orders, CxiWithout, testing::ValuesIn(kCxiNeeded),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace explore
