// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/announce.hpp"

#include <gtest/gtest.h>

#include "soft/accel/accelerator.hpp"
#include "soft/kernel/drivers.hpp"

namespace strait::soft::accel {
namespace {

TEST(Announce, TheKernelKnowsEveryAllocationWhileItLives) {
  kernel::Drivers& drivers = kernel::machine_drivers();
  const std::size_t before = drivers.live();
  {
    auto soft = Accelerator::open("devices=2,memory=16777216").value();
    const std::uint64_t a = soft->allocate(1, 10'000).value();
    const std::uint64_t b = soft->allocate(0, 4096).value();
    const auto known = drivers.find(a + 9'999);
    ASSERT_TRUE(known);
    EXPECT_EQ(known->said().base, a);
    EXPECT_EQ(known->said().length_bytes, 10'000u);
    EXPECT_EQ(known->said().vendor, std::uint32_t{STRAIT_SOFT_VENDOR_SOFT});
    EXPECT_EQ(known->said().device, 1u);
    const Accelerator::Export exported = soft->export_pages(a, 10'000).value();
    EXPECT_EQ(drivers.find_file(*sys::file_id(exported.fd), exported.offset), known);
    soft->close_fd(exported.fd);

    EXPECT_FALSE(soft->free(a + 1)) << "inside: nothing is freed, nothing forgotten";
    EXPECT_TRUE(drivers.find(a));
    ASSERT_TRUE(soft->free(a));
    EXPECT_FALSE(drivers.find(a));
    EXPECT_TRUE(drivers.find(b));
  }
  EXPECT_EQ(drivers.live(), before) << "what was left is retracted when the accelerator closes";
}

}  // namespace
}  // namespace strait::soft::accel
