// SPDX-License-Identifier: Apache-2.0
// Distances on machines that people know: switches with GPUs and NICs below, two sockets, a virtual machine.
#include "plan/place.hpp"

#include <gtest/gtest.h>

namespace strait::plan {
namespace {

const Place kGpu{{"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:19:00.0", "0000:1b:00.0"}, 0};
const Place kNicBeside{{"pci0000:17", "0000:17:01.0", "0000:18:00.0", "0000:19:01.0", "0000:1c:00.0"}, 0};
const Place kNicNextSwitch{{"pci0000:17", "0000:17:01.0", "0000:20:00.0", "0000:21:00.0", "0000:22:00.0"}, 0};
const Place kNicOtherPort{{"pci0000:17", "0000:17:03.0", "0000:30:00.0"}, 0};
const Place kNicOtherRoot{{"pci0000:3a", "0000:3a:01.0", "0000:3b:00.0"}, 0};
const Place kNicOtherSocket{{"pci0000:ca", "0000:ca:01.0", "0000:cb:00.0"}, 1};

TEST(Place, FromNearToFar) {
  EXPECT_EQ(distance(kGpu, kGpu).nearness, Nearness::same_device);
  EXPECT_EQ(distance(kGpu, kNicBeside).nearness, Nearness::one_switch);
  EXPECT_EQ(distance(kGpu, kNicNextSwitch).nearness, Nearness::switches);
  EXPECT_EQ(distance(kGpu, kNicOtherPort).nearness, Nearness::root_complex);
  EXPECT_EQ(distance(kGpu, kNicOtherRoot).nearness, Nearness::numa_node);
  EXPECT_EQ(distance(kGpu, kNicOtherSocket).nearness, Nearness::machine);
  EXPECT_EQ(distance(kGpu, Place{}).nearness, Nearness::unknown);
  EXPECT_LT(distance(kGpu, kNicBeside), distance(kGpu, kNicNextSwitch));
  EXPECT_LT(distance(kGpu, kNicOtherSocket), distance(kGpu, Place{})) << "something known before something unknown";
}

TEST(Place, NodesThatAreNotSaidAreNotTakenForEqual) {
  EXPECT_EQ(distance({{"pci0000:00", "0000:00:04.0"}, -1}, {{"pci0000:80", "0000:80:00.0"}, -1}).nearness,
            Nearness::machine);
}

TEST(Place, TheSameBothWays) {
  for (const Place& a : {kGpu, kNicBeside, kNicNextSwitch, kNicOtherPort, kNicOtherRoot, kNicOtherSocket}) {
    for (const Place& b : {kGpu, kNicBeside, kNicNextSwitch, kNicOtherPort, kNicOtherRoot, kNicOtherSocket})
      EXPECT_EQ(distance(a, b), distance(b, a));
  }
}

}  // namespace
}  // namespace strait::plan
