// SPDX-License-Identifier: Apache-2.0
// A descriptor that a vendor's driver exported, shared by somebody who is no Node of that memory: moved, and the
// caller's and the device's as before.
#include "buffer/built_in.hpp"
#include "buffer/providers.hpp"
#include "flow.hpp"

namespace strait::flow {
namespace {

constexpr std::size_t kExported = 2 << 20;

std::unique_ptr<buffer::Providers> owner_of(const std::string& kind) {
  std::vector<buffer::Plugin> plugins;
  plugins.push_back(kind == "soft" ? buffer::load_plugin(STRAIT_SOFT_LIBRARY, "devices=1,memory=67108864").value()
                                   : buffer::use_plugin(buffer::built_in_provider(kind)).value());
  return buffer::Providers::open(std::move(plugins)).value();
}

TEST(DriversDescriptor, IsSharedMovedAndGivenBack) {
  const auto owner = owner_of(test_kind());
  const auto deadline = [] { return sys::Deadline::after_ns(20'000'000'000); };
  const buffer::Providers::Place place = owner->find(test_device()).value();
  std::uint64_t free_before = 0;
  std::uint64_t free_shared = 0;
  for (int round = 0; round < 2; ++round) {  // the first use of everything
    free_before = place.provider->free_bytes(place.index);
    const int fds = settled_fds();
    {
      const buffer::Memory memory = owner->allocate(test_device(), kExported).value();
      const auto exported = place.provider->export_fd(memory.range());
      ASSERT_TRUE(exported) << exported.error().explain();
      Pair pair(settings({{"accelerators", "none"}}), settings({{"accelerators", "none"}}));
      // From 64 KiB on: the descriptor's own offset is where the allocation begins in it.
      constexpr std::size_t kSkip = 65536;
      auto region = pair.owner.share_dmabuf(exported->fd, exported->offset + kSkip, kExported - kSkip, access::all);
      if (!region) {  // hardware: no CPU maps a real GPU's dma-buf
        EXPECT_EQ(region.error().code, Code::unsupported) << region.error().explain();
        EXPECT_NE(region.error().text.find("lets no CPU map it"), std::string::npos) << region.error().explain();
        place.provider->close_fd(exported->fd);
        return;
      }
      place.provider->close_fd(exported->fd);  // theirs is a duplicate
      free_shared = place.provider->free_bytes(place.index);
      const Published published = pair.owner.publish("block", *region).value();
      const Target target = pair.far.lookup("block").value();
      Block local(pair.asker, "host", kExported - kSkip, access::local);
      const auto bytes = pattern(kExported - kSkip, 3);
      local.fill(bytes);
      ASSERT_TRUE(pair.far.put(local.region.all(), target.at(0)).wait(30s));
      std::vector<std::uint8_t> there(bytes.size());
      auto* const at = static_cast<std::uint8_t*>(memory.data()) + kSkip;
      ASSERT_TRUE(owner->copy(there.data(), at, there.size(), deadline()));
      EXPECT_EQ(there, bytes);
      const auto other = pattern(bytes.size(), 4);
      ASSERT_TRUE(owner->copy(at, other.data(), other.size(), deadline()));
      ASSERT_TRUE(pair.far.get(local.region.all(), target.at(0)).wait(30s));
      EXPECT_EQ(local.read(0, other.size()), other);
    }
    if (round == 0) continue;
    EXPECT_EQ(place.provider->free_bytes(place.index), free_before);
    if (free_before != 0) {  // 0: nobody counts
      EXPECT_LT(free_shared, free_before) << "the memory was there meanwhile";
    }
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (open_fds() > fds && std::chrono::steady_clock::now() < until) ::usleep(5000);
    EXPECT_LE(open_fds(), fds);
  }
}

}  // namespace
}  // namespace strait::flow
