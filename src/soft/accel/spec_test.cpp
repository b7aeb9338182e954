// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/spec.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace strait::soft::accel {
namespace {

TEST(SpecTest, ReadsCountsAndMemory) {
  const Spec spec = parse_spec("cuda:2,gaudi:8x64M").value();
  EXPECT_EQ(spec.of(Vendor::cuda).devices, 2u);
  EXPECT_EQ(spec.of(Vendor::cuda).memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(spec.of(Vendor::rocm).devices, 0u);
  EXPECT_EQ(spec.of(Vendor::gaudi).devices, 8u);
  EXPECT_EQ(spec.of(Vendor::gaudi).memory_bytes, std::uint64_t{64} << 20);
}

TEST(SpecTest, ReadsVariants) {
  const Spec spec = parse_spec("cuda:1@map,rocm:1@bar,gaudi:8x64M@2021").value();
  EXPECT_EQ(spec.of(Vendor::rocm).variant, "bar");
  EXPECT_EQ(spec.of(Vendor::gaudi).variant, "2021");
  EXPECT_EQ(spec.of(Vendor::gaudi).memory_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(spec.of(Vendor::cuda).variant, "map");
  EXPECT_EQ(parse_spec("cuda:1").value().of(Vendor::cuda).variant, "");
  for (const char* text : {"cuda:1@bar", "cuda:1@", "rocm:1@map", "rocm:1@", "rocm:1@2021", "gaudi:1@bar",
                           "gaudi:1@2021@2021", "gaudi:@2021", "gaudi:1@2021x64M"})
    EXPECT_EQ(parse_spec(text).error().code, Code::invalid) << text;
}

TEST(SpecTest, EmptyIsAMachineWithoutAccelerators) {
  const Spec spec = parse_spec("").value();
  for (const VendorSpec& vendor : spec.vendors) EXPECT_EQ(vendor.devices, 0u);
}

TEST(SpecTest, RefusesWhatItCannotReadAndNamesThePart) {
  for (const char* text : {"cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:65", "cuda:2x", "cuda:2x1K", "cuda:2x9999999G",
                           "cuda:2xx4M", "tpu:1", ":1", "cuda:1,", ",cuda:1", "cuda:1,,rocm:1", "cuda:1,cuda:2",
                           "cuda:2 ", "CUDA:1", "cuda:99999999999999999999"}) {
    const auto spec = parse_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, Code::invalid) << text;
  }
  EXPECT_NE(parse_spec("rocm:1,tpu:4").error().text.find("\"tpu:4\""), std::string::npos);
}

TEST(SpecTest, TheEnvironmentGivesEachVendorItsPart) {
  ASSERT_EQ(setenv(kSpecVariable, "rocm:3x16M", 1), 0);
  EXPECT_EQ(spec_from_environment(Vendor::rocm).devices, 3u);
  EXPECT_EQ(spec_from_environment(Vendor::rocm).memory_bytes, std::uint64_t{16} << 20);
  EXPECT_EQ(spec_from_environment(Vendor::cuda).devices, 0u);
  ASSERT_EQ(setenv(kSpecVariable, "rocm:3x", 1), 0);
  EXPECT_EQ(spec_from_environment(Vendor::rocm).devices, 0u) << "what cannot be read is no device";
  ASSERT_EQ(unsetenv(kSpecVariable), 0);
  EXPECT_EQ(spec_from_environment(Vendor::rocm).devices, 0u);
}

}  // namespace
}  // namespace strait::soft::accel
