// SPDX-License-Identifier: Apache-2.0
// CUDA_VISIBLE_DEVICES, which a process reads once: this program again, with the word "visible", says what it then
// sees.
#include <gtest/gtest.h>

#include <iostream>

#include "soft/cuda/testing.hpp"
#include "sys/child.hpp"
#include "sys/clock.hpp"

namespace strait::soft::cuda {

int say_visible(const char* chosen) {
  ::setenv("STRAIT_SOFT_ACCELERATORS", "cuda:4x16M", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", chosen, 1);
  if (std::string(chosen) == "unset") ::unsetenv("CUDA_VISIBLE_DEVICES");
  std::string line = std::to_string(CUDA(cuInit)(0));
  int count = 0;
  (void)CUDA(cuDeviceGetCount)(&count);
  for (CUdevice device = 0; device < count; ++device) {
    char bus[16] = "?";
    (void)CUDA(cuDeviceGetPCIBusId)(bus, sizeof bus, device);
    line += std::string(" ") + bus;
  }
  std::cout << line << std::endl;
  return 0;
}

namespace {

// What cuInit answers, and the addresses of the devices in the program's order.
std::string seen_with(const std::string& chosen) {
  auto child = sys::Child::start_self({"visible", chosen});
  if (!child) return child.error().text;
  const auto line = child->read(sys::Deadline::after_ns(60'000'000'000));
  return line ? *line : line.error().text;
}

const std::string kFirst = "GPU-73747261-6974-2073-6f66-742063756400";
const std::string kThird = "GPU-73747261-6974-2073-6f66-742063756402";

TEST(CudaVisible, AllOfThemInTheMachinesOrder) {
  const std::string all = "0 0000:21:00.0 0000:24:00.0 0000:27:00.0 0000:2A:00.0";
  EXPECT_EQ(seen_with("unset"), all);
  EXPECT_EQ(seen_with("0,1,2,3"), all);
}

TEST(CudaVisible, ChosenAndOrderedByNumber) {
  EXPECT_EQ(seen_with("2,0"), "0 0000:27:00.0 0000:21:00.0");
  EXPECT_EQ(seen_with("3"), "0 0000:2A:00.0");
}

TEST(CudaVisible, ChosenByUuidOrItsUnambiguousBeginning) {
  EXPECT_EQ(seen_with(kThird), "0 0000:27:00.0");
  EXPECT_EQ(seen_with(kThird + "," + kFirst), "0 0000:27:00.0 0000:21:00.0");
  EXPECT_EQ(seen_with("1," + kThird), "0 0000:24:00.0 0000:27:00.0");
  EXPECT_EQ(seen_with("GPU-73747261"), "100") << "of all four";
  EXPECT_EQ(seen_with("GPU-00000000"), "100");
}

TEST(CudaVisible, TheFirstThatNamesNoneEndsTheList) {
  EXPECT_EQ(seen_with("1,9,0"), "0 0000:24:00.0");
  EXPECT_EQ(seen_with("1,-1,0"), "0 0000:24:00.0");
  EXPECT_EQ(seen_with("1,,0"), "0 0000:24:00.0");
  for (const char* none : {"", "-1", "4", "none", " 1", "0x1"}) EXPECT_EQ(seen_with(none), "100") << none;
}

TEST(CudaVisible, OneNamedTwiceLeavesNone) {
  EXPECT_EQ(seen_with("1,1"), "100");
  EXPECT_EQ(seen_with("2,0," + kThird), "100") << "by whatever name";
}

}  // namespace
}  // namespace strait::soft::cuda
