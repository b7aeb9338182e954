// SPDX-License-Identifier: Apache-2.0
// The Gaudi provider on hl-thunk as it was in 2021: an allocator with fewer arguments, export by handle, no copies. Run
// with that library in front of today's.
#include <gtest/gtest.h>

#include "buffer/gaudi/gaudi.hpp"
#include "buffer/provider.hpp"
#include "sys/fd.hpp"
#include "sys/files.hpp"

namespace strait::buffer::gaudi {
namespace {

TEST(Thunk2021, IsToldApartAndUsedWithItsOwnSignatures) {
  ASSERT_TRUE(Provider::open(use_plugin(gaudi_provider_ops()).value()));  // a driver keeps some from its first use on
  const int fds_before = sys::count_open_fds();
  {
    auto opened = Provider::open(use_plugin(gaudi_provider_ops()).value());
    ASSERT_TRUE(opened) << opened.error().explain();
    Provider& provider = **opened;
    ASSERT_EQ(provider.devices()[0].driver, "hl-thunk as of 2021");
    EXPECT_EQ(provider.devices()[0].capabilities & STRAIT_CAN_COPY, 0u);
    const auto address = provider.allocate(0, 1 << 20);
    ASSERT_TRUE(address) << address.error().explain();
    const auto claim = provider.classify(*address + 100);
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->base, *address);
    EXPECT_EQ(claim->length_bytes, std::uint64_t{1} << 20);
    const auto exported = provider.export_fd({*address + 4096, 4096});
    ASSERT_TRUE(exported) << exported.error().explain();
    EXPECT_EQ(exported->offset, 4096u);
    EXPECT_GE(sys::file_bytes(exported->fd), 1 << 20);
    provider.close_fd(exported->fd);
    int here = 0;
    const auto copy = provider.start_copy(*address, reinterpret_cast<std::uint64_t>(&here), 4);
    ASSERT_FALSE(copy);
    EXPECT_NE(copy.error().text.find("hl-thunk has no copies"), std::string::npos) << copy.error().text;
    const auto freed = provider.free(*address);
    EXPECT_TRUE(freed) << freed.error().explain();
    EXPECT_FALSE(provider.classify(*address));
    EXPECT_FALSE(provider.allocate(0, std::uint64_t{1} << 50));
  }
  EXPECT_EQ(sys::count_open_fds(), fds_before);
}

}  // namespace
}  // namespace strait::buffer::gaudi
