// SPDX-License-Identifier: Apache-2.0
// Every scenario holds in every order within its bound, and no ordering can be taken away unnoticed.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <string>

#include "explore/scenarios.hpp"

namespace explore {

static void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

namespace {

Explored explored(const Scenario& scenario, const Mutant& mutant) {
  Machine machine;
  const auto program = scenario.make();
  return machine.explore(*program, scenario.bounds, mutant);
}

class Explore : public testing::TestWithParam<Scenario> {};

TEST_P(Explore, holds_in_every_order) {
  const Explored found = explored(GetParam(), {});
  EXPECT_EQ(found.violation, "") << found.schedule;
  EXPECT_TRUE(found.complete || !found.violation.empty()) << "the search was given up";
  std::printf("%s: %llu executions, %llu states\n", GetParam().name,
              static_cast<unsigned long long>(found.executions + found.cut),
              static_cast<unsigned long long>(found.states));
}

INSTANTIATE_TEST_SUITE_P(scenarios, Explore, testing::ValuesIn(scenarios()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// ---- One ordering less ---------------------------------------------------------------------------------------------

struct Removed {
  const char* name;
  Mutant mutant;
  const char* scenario;  // that notices
  const char* words;     // of what it finds

  friend void PrintTo(const Removed& removed, std::ostream* out) { *out << removed.name; }
};

class Without : public testing::TestWithParam<Removed> {};

TEST_P(Without, it_something_breaks) {
  for (const Scenario& scenario : scenarios()) {
    if (std::string(scenario.name) != GetParam().scenario) continue;
    const Explored found = explored(scenario, GetParam().mutant);
    EXPECT_NE(found.violation.find(GetParam().words), std::string::npos) << "found: " << found.violation;
    std::printf("%s\n%s", found.violation.c_str(), found.schedule.c_str());
    return;
  }
  FAIL() << "no such scenario";
}

const Removed kNeeded[] = {
    {"order_stores_before_dma_when_ringing",
     {Leaf::order_stores_before_dma, Kind::any, Call::ring},
     "two_posters",
     "published but not whole"},
    {"order_stores_before_dma_when_publishing_receives",
     {Leaf::order_stores_before_dma, Kind::any, Call::ring},
     "own_receives",
     "published but not whole"},
    {"order_stores_before_dma_when_taking_a_cqe",
     {Leaf::order_stores_before_dma, Kind::any, Call::reap},
     "owner",
     "overwritten while owner may still be reading"},
    {"order_before_doorbell", {Leaf::order_before_doorbell}, "owner", "arrived, the record still says"},
    {"order_after_doorbell", {Leaf::order_after_doorbell}, "owner", "still in the write-combining buffer"},
    {"order_cqe_reads_before_the_fields", {Leaf::order_cqe_reads}, "owner_long_ring", "was read as"},
    {"order_cqe_reads_before_the_slot_is_used_again",
     {Leaf::order_cqe_reads},
     "owner",
     "overwritten while device may still be reading"},
    {"order_cqe_reads_of_a_collapsed_cqe",
     {Leaf::order_cqe_reads},
     "reader_ring_of_one",
     "overwritten while device may still be reading"},
    {"release_of_a_mark", {Leaf::store_release, Kind::mark, Call::post}, "two_posters", "published but not whole"},
    {"order_mark_reads", {Leaf::order_mark_reads}, "two_posters", "published but not whole"},
    {"acquire_of_requests_when_asking",
     {Leaf::fetch_add, Kind::requests, Call::ring, Part::acquire},
     "two_posters",
     "the record goes from 1 to 0"},
    {"release_of_requests_when_asking",
     {Leaf::fetch_add, Kind::requests, Call::ring, Part::release},
     "two_posters",
     "everybody has rung, but the record says 1 of 2"},
    {"acquire_of_requests_when_leaving",
     {Leaf::compare_exchange, Kind::requests, Call::ring, Part::acquire},
     "two_posters",
     "everybody has rung, but the record says 1 of 2"},
    {"release_of_requests_when_leaving",
     {Leaf::compare_exchange, Kind::requests, Call::ring, Part::release},
     "two_posters",
     "the doorbell goes from 2 to 1"},
    {"acquire_of_completed_when_reserving",
     {Leaf::load_acquire, Kind::completed, Call::post},
     "reader_ring_of_one",
     "overwritten while device may still be reading"},
    {"acquire_of_completed_when_done",
     {Leaf::load_acquire, Kind::completed, Call::done},
     "waiter",
     "is done, but its payload reads"},
    {"acquire_of_completed_before_a_collapsed_cqe",
     {Leaf::load_acquire, Kind::completed, Call::reap},
     "sleeper",
     "completions are counted up to 65539, executed up to 65538"},
    {"release_of_completed",
     {Leaf::compare_exchange, Kind::completed, Call::reap, Part::release},
     "reader_ring_of_one",
     "overwritten while device may still be reading"},
    // Through device::Lane, with the ring in registers and with that of threads who share.
    {"lanes_order_stores_before_dma", {Leaf::order_stores_before_dma}, "own_lanes", "published but not whole"},
    {"lanes_order_before_doorbell", {Leaf::order_before_doorbell}, "own_lanes", "arrived, the record still says"},
    {"lanes_order_after_doorbell", {Leaf::order_after_doorbell}, "own_lanes", "still in the write-combining buffer"},
    {"lanes_order_cqe_reads",
     {Leaf::order_cqe_reads},
     "own_lanes_ring_of_one",
     "overwritten while device may still be reading"},
    {"shared_lanes_release_of_a_mark",
     {Leaf::store_release, Kind::mark, Call::post},
     "shared_lanes",
     "published but not whole"},
    {"shared_lanes_release_of_the_right_to_reap",
     {Leaf::store_release, Kind::reaper, Call::any},
     "shared_lanes",
     "the counter says"},
    {"shared_lanes_release_of_completed",
     {Leaf::compare_exchange, Kind::completed, Call::any, Part::release},
     "shared_lanes_ring_of_one",
     "overwritten while device may still be reading"},
    {"failing_lanes_release_of_completed",
     {Leaf::compare_exchange, Kind::completed, Call::any, Part::release},
     "failing_lanes",
     "failed, and its poster was not told"},
    {"failing_lanes_acquire_of_completed",
     {Leaf::load_acquire, Kind::completed, Call::any},
     "failing_lanes",
     "failed, and its poster was not told"},
    {"order_cqe_reads_behind_a_signal", {Leaf::order_cqe_reads}, "signalled", "but the payload reads"},
};
INSTANTIATE_TEST_SUITE_P(orders, Without, testing::ValuesIn(kNeeded),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Orderings that another one covers, or that come along with one that is needed. Listed so that the list stays true:
// one that becomes necessary fails here and moves up.
class Spare : public testing::TestWithParam<Removed> {};

TEST_P(Spare, nothing_breaks_without_it) {
  for (const Scenario& scenario : scenarios()) {
    // The small ones, in every order, where threads share; of an order in one scenario only, that one.
    const std::string name = scenario.name;
    const bool small = scenario.bounds.preemptions == kEveryOrder && !name.starts_with("own");
    if (*GetParam().scenario == '\0' ? !small : !name.starts_with(GetParam().scenario)) continue;
    const Explored found = explored(scenario, GetParam().mutant);
    EXPECT_EQ(found.violation, "") << scenario.name << "\n" << found.schedule;
  }
}

const Removed kSpare[] = {
    {"acquire_of_completed_when_raising", {Leaf::compare_exchange, Kind::completed, Call::reap, Part::acquire}, "", ""},
    {"acquire_of_completed_when_counting_space", {Leaf::load_acquire, Kind::completed, Call::space}, "", ""},
    {"release_of_failure", {Leaf::store_release, Kind::failure}, "failing_lanes", ""},
    {"acquire_of_failure", {Leaf::load_acquire, Kind::failure}, "failing_lanes", ""},
};
INSTANTIATE_TEST_SUITE_P(orders, Spare, testing::ValuesIn(kSpare),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace explore
