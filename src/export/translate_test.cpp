// SPDX-License-Identifier: Apache-2.0
#include "export/translate.hpp"

#include <gtest/gtest.h>

#include "buffer/providers.hpp"
#include "soft/accel/plugin.hpp"
#include "sys/fd.hpp"

namespace strait::exports {
namespace {

using buffer::Range;

class TranslateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<buffer::Plugin> plugins;
    plugins.push_back(buffer::use_plugin(strait_provider_plugin(), "memory=16777216,udmabuf=off").value());
    all_ = buffer::Providers::open(std::move(plugins)).value();
    memory_ = all_->allocate("soft:0", 256 * 1024).value();
    claim_ = all_->classify(memory_.range()).value();
    range_ = {memory_.range().address + 70'001, 100'000};
  }
  std::unique_ptr<buffer::Providers> all_;
  buffer::Memory memory_;
  buffer::Claim claim_;
  Range range_;
  NicAbilities nic_{.name = "strait0", .imports_fds = true, .peer_memory = true, .p2p_pages = true};
};

TEST_F(TranslateTest, EachGenerationHasItsAddressesAndItsLifetime) {
  const auto by = [&](Reach reach) { return translate(claim_, range_, nic_, {.reach = reach}).value(); };
  const Translated dmabuf = by(Reach::dmabuf);
  EXPECT_EQ(dmabuf.lifetime, Lifetime::reference);
  ASSERT_EQ(dmabuf.pieces.size(), 1u);
  EXPECT_GE(dmabuf.pieces[0].fd, 0);
  EXPECT_EQ(dmabuf.pieces[0].fd_offset, 70'001u);
  EXPECT_EQ(dmabuf.pieces[0].length_bytes, 100'000u) << "the caller's bytes, not the allocation's";

  const Translated client = by(Reach::peer_memory);
  EXPECT_EQ(client.lifetime, Lifetime::invalidate);
  ASSERT_EQ(client.pieces.size(), 1u);
  EXPECT_EQ(client.pieces[0].address, range_.address);
  EXPECT_EQ(client.pieces[0].fd, -1);
  EXPECT_FALSE(client.exported.fd.valid()) << "nothing is exported for it";

  const Translated pages = by(Reach::p2p_pages);
  EXPECT_EQ(pages.lifetime, Lifetime::free_callback);
  ASSERT_FALSE(pages.pieces.empty());
  EXPECT_LE(pages.pieces.front().address, range_.address);
  EXPECT_GE(pages.pieces.back().address + kP2pPage, range_.end());
  for (const AddressPiece& each : pages.pieces) {
    EXPECT_EQ(each.address % kP2pPage, 0u);
    EXPECT_EQ(each.length_bytes, kP2pPage);
  }

  const Translated staged = by(Reach::staged);
  EXPECT_EQ(staged.lifetime, Lifetime::copied);
  EXPECT_TRUE(staged.pieces.empty());
  EXPECT_EQ(by(Reach::automatic).exported.way, Way::dmabuf);
}

// With the flavour of NVIDIA's client that has no upcall a free ends nothing, and so it is not called `invalidate`.
TEST_F(TranslateTest, PersistentPagesSurviveTheFree) {
  nic_.persistent = true;
  const auto by = [&](Reach reach) { return translate(claim_, range_, nic_, {.reach = reach}).value(); };
  EXPECT_EQ(by(Reach::peer_memory).lifetime, Lifetime::persistent);
  EXPECT_EQ(by(Reach::p2p_pages).lifetime, Lifetime::persistent);
  EXPECT_EQ(by(Reach::dmabuf).lifetime, Lifetime::reference) << "of addresses alone";
  EXPECT_NE(std::string(lifetime_text(Lifetime::persistent)).find("survive the free"), std::string::npos);
  // AMD's client has one flavour, and its upcall.
  buffer::Device other = *claim_.device;
  other.kind = "rocm";
  claim_.device = &other;
  EXPECT_EQ(by(Reach::peer_memory).lifetime, Lifetime::invalidate);
}

TEST_F(TranslateTest, WhatIsNotThereIsAnHonestNo) {
  nic_.peer_memory = nic_.p2p_pages = false;
  for (const Reach reach : {Reach::peer_memory, Reach::p2p_pages}) {
    const auto no = translate(claim_, range_, nic_, {.reach = reach});
    ASSERT_FALSE(no);
    EXPECT_EQ(no.error().code, Code::unsupported);
    EXPECT_NE(no.error().text.find("dma-buf: option reach="), std::string::npos) << no.error().text;
    EXPECT_NE(no.error().remedy.find("reach=auto"), std::string::npos) << no.error().remedy;
  }
  nic_.plain_unknown = true;
  EXPECT_TRUE(translate(claim_, range_, nic_, {.reach = Reach::peer_memory})) << "by name it is tried";
  NicAbilities blind{.name = "blind", .plain_unknown = true};
  EXPECT_FALSE(translate(claim_, range_, blind, {})) << "and not taken unasked";
  blind.peer_memory = true;
  EXPECT_EQ(translate(claim_, range_, blind, {})->exported.way, Way::peer_memory);
  EXPECT_FALSE(translate(claim_, {memory_.range().end(), 1}, nic_, {})) << "one past the end";
}

TEST_F(TranslateTest, NothingStaysOpen) {
  const int before = sys::count_open_fds();
  for (int i = 0; i < 100; ++i) {
    for (const Reach reach : {Reach::automatic, Reach::dmabuf, Reach::peer_memory, Reach::p2p_pages, Reach::staged})
      EXPECT_TRUE(translate(claim_, range_, nic_, {.reach = reach}));
    EXPECT_FALSE(translate(claim_, {range_.address, 1u << 30}, nic_, {}));
  }
  EXPECT_EQ(sys::count_open_fds(), before);
}

TEST(ExportedFd, ACopyOfTheCallersIsClosedAloneAndOnce) {
  const sys::Fd file = sys::Fd::copy_of(0).value();
  const int before = sys::count_open_fds();
  {
    ExportedFd mine = ExportedFd::copy_of(file.get(), 77).value();
    EXPECT_TRUE(mine.valid());
    EXPECT_NE(mine.fd(), file.get());
    EXPECT_EQ(mine.offset(), 77u);
    const ExportedFd moved = std::move(mine);
    EXPECT_FALSE(mine.valid());  // NOLINT: that it is empty is the point
    EXPECT_EQ(sys::count_open_fds(), before + 1);
  }
  EXPECT_EQ(sys::count_open_fds(), before);
  EXPECT_FALSE(ExportedFd::copy_of(-1, 0));
}

}  // namespace
}  // namespace strait::exports
