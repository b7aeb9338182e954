// SPDX-License-Identifier: Apache-2.0
// Memory of another process, for every kind of memory and every way to open it. The owner is this program again, with
// "--owner". Runs on whatever libraries the loader finds: the software ones under `strait run --accelerators
// cuda:2,rocm:2,gaudi:2`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "buffer/ipc_testing.hpp"
#include "sys/library.hpp"

namespace strait::buffer {
namespace {

constexpr std::uint64_t kBytes = 100'000;

struct IpcKind {
  const char* kind;
  const char* provider;
  bool fd_is_the_memory;    // a descriptor that outlives owner and free
  bool opened_stays_whole;  // what is open survives the owner's free
};
constexpr IpcKind kKinds[] = {
    {"host", "host", true, true},  {"cuda", "cuda", false, true}, {"vmm", "cuda", true, true},
    {"pool", "cuda", false, true}, {"rocm", "rocm", false, true}, {"gaudi", "gaudi", false, false},
};

class Ipc : public ::testing::TestWithParam<IpcKind> {
 protected:
  void SetUp() override {
    (void)Provider::open(plugin_of(GetParam().provider, ""));  // a driver keeps some descriptors from its first use on
    descriptors_ = sys::count_open_fds();
    open_provider("ipc_cache=8");
  }
  void TearDown() override {
    lent_.clear();
    provider_.reset();
    owner_.reset();
    EXPECT_EQ(sys::count_open_fds(), descriptors_) << "something stayed open";
  }
  void open_provider(const std::string& config) {
    auto opened = Provider::open(plugin_of(GetParam().provider, config));
    ASSERT_TRUE(opened) << opened.error().explain();
    provider_ = std::move(*opened);
  }
  void borrow(int count, std::uint64_t length_bytes = kBytes) {
    owner_ = std::make_unique<Owner>();
    for (int i = 0; i < count; ++i)
      lent_.push_back(owner_->make(GetParam().kind, length_bytes, static_cast<unsigned>(i)));
  }
  // On the first device that can be had: a compute node may have one owner.
  [[nodiscard]] Result<std::uint64_t> open(const Lent& lent) {
    auto opened = provider_->ipc_open(0, lent.handle());
    for (std::uint32_t device = 1; !opened && device < provider_->devices().size(); ++device)
      opened = provider_->ipc_open(device, lent.handle());
    return opened;
  }
  [[nodiscard]] Status move(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) const {
    STRAIT_TRY(const std::uint64_t ticket, provider_->start_copy(to, from, length_bytes));
    return provider_->wait_copy(ticket, ipc_soon());
  }
  void expect_bytes(std::uint64_t address, unsigned seed) const {
    std::vector<unsigned char> seen(kBytes);
    const Status got = move(reinterpret_cast<std::uint64_t>(seen.data()), address, kBytes);
    ASSERT_TRUE(got) << got.error().explain();
    EXPECT_EQ(seen, ipc_pattern(kBytes, seed));
  }
  static void expect_sentence(const Error& error) {
    EXPECT_TRUE(error.code == Code::gone || error.code == Code::invalid) << error.explain();
    EXPECT_GE(error.text.size(), 20u) << error.text;
    EXPECT_TRUE(error.explain().find("freed") != std::string::npos ||
                error.explain().find("ended") != std::string::npos)
        << error.explain();
  }
  [[nodiscard]] std::uint64_t counter(const std::string& name) const {
    const std::string all = "," + provider_->counters();
    const std::size_t at = all.find("," + name + "=");
    EXPECT_NE(at, std::string::npos) << name << " is not in " << all;
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + name.size() + 2));
  }

  int descriptors_ = 0;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Owner> owner_;
  std::vector<Lent> lent_;
};

TEST_P(Ipc, BytesGoBothWays) {
  borrow(1);
  const auto here = open(lent_[0]);
  ASSERT_TRUE(here) << here.error().explain();
  expect_bytes(*here, 0);
  const auto bytes = ipc_pattern(kBytes, 77);
  const Status put = move(*here, reinterpret_cast<std::uint64_t>(bytes.data()), kBytes);
  ASSERT_TRUE(put) << put.error().explain();
  EXPECT_EQ(owner_->ask("holds 0 77"), "1");
  const auto claim = provider_->classify(*here + 1);
  ASSERT_TRUE(claim || GetParam().provider == std::string("host"));
  EXPECT_TRUE(provider_->ipc_close(*here));
  EXPECT_FALSE(provider_->ipc_close(*here));
}

TEST_P(Ipc, TenThousandOpensOfEightHandlesAreEight) {
  borrow(8);
  for (int i = 0; i < 10'000; ++i) {
    const auto here = open(lent_[static_cast<std::size_t>(i) % 8]);
    ASSERT_TRUE(here) << i << ": " << here.error().explain();
    if (i >= 9'992) expect_bytes(*here, static_cast<unsigned>(i) % 8);
    ASSERT_TRUE(provider_->ipc_close(*here));
  }
  EXPECT_EQ(counter("ipc_opens"), 8u);
  EXPECT_EQ(counter("ipc_hits"), 9'992u);
  EXPECT_EQ(counter("ipc_closes"), 0u);
  EXPECT_EQ(counter("ipc_open_now"), 8u);
}

TEST_P(Ipc, WhatNobodyUsesIsKeptUpToTheBound) {
  provider_.reset();
  open_provider("ipc_cache=3");
  borrow(8);
  std::vector<std::uint64_t> addresses;
  for (const Lent& lent : lent_) {
    const auto here = open(lent);
    ASSERT_TRUE(here) << here.error().explain();
    addresses.push_back(*here);
  }
  EXPECT_EQ(counter("ipc_open_now"), 8u) << "in use: the bound is for idle ones";
  for (const std::uint64_t address : addresses) EXPECT_TRUE(provider_->ipc_close(address));
  EXPECT_EQ(counter("ipc_open_now"), 3u);
  EXPECT_EQ(counter("ipc_closes"), 5u);
  // The last three that were used are the ones that stayed.
  for (std::size_t i = 5; i < 8; ++i) {
    const auto here = open(lent_[i]);
    ASSERT_TRUE(here);
    EXPECT_TRUE(provider_->ipc_close(*here));
  }
  EXPECT_EQ(counter("ipc_opens"), 8u);
  const auto gone = open(lent_[0]);
  ASSERT_TRUE(gone) << gone.error().explain();
  expect_bytes(*gone, 0);
  EXPECT_TRUE(provider_->ipc_close(*gone));
  EXPECT_EQ(counter("ipc_opens"), 9u);
  EXPECT_EQ(counter("ipc_open_now"), 3u);
}

TEST_P(Ipc, ADeadOwner) {
  borrow(1);
  owner_->kill();
  const auto here = open(lent_[0]);
  if (GetParam().fd_is_the_memory) {
    ASSERT_TRUE(here) << here.error().explain();
    expect_bytes(*here, 0);
    EXPECT_TRUE(provider_->ipc_close(*here));
  } else {
    ASSERT_FALSE(here);
    expect_sentence(here.error());
  }
}

TEST_P(Ipc, AnOwnerThatDiesWhileItIsOpen) {
  borrow(1);
  const auto here = open(lent_[0]);
  ASSERT_TRUE(here) << here.error().explain();
  owner_->kill();
  if (GetParam().opened_stays_whole) {
    expect_bytes(*here, 0);
  } else {
    unsigned char byte = 0;
    const Status got = move(reinterpret_cast<std::uint64_t>(&byte), *here, 1);
    ASSERT_FALSE(got);
    expect_sentence(got.error());
    // The device is free now; with it this process has those addresses itself, and they are not the old memory.
    const auto mine = provider_->allocate(0, kBytes);
    ASSERT_TRUE(mine) << mine.error().explain();
    const Status other = move(reinterpret_cast<std::uint64_t>(&byte), *here + kBytes - 1, 1);
    EXPECT_TRUE(*mine == *here || !other);
    EXPECT_TRUE(provider_->free(*mine));
  }
  EXPECT_TRUE(provider_->ipc_close(*here));
}

TEST_P(Ipc, MemoryThatWasFreed) {
  // Too large for one block of the device: who holds a part of a block holds all of it.
  borrow(2, GetParam().kind == std::string("vmm") ? kBytes : 5 << 20);
  const auto before = open(lent_[1]);
  ASSERT_TRUE(before) << before.error().explain();
  EXPECT_EQ(owner_->ask("free 0"), "freed");
  EXPECT_EQ(owner_->ask("free 1"), "freed");
  const auto after = open(lent_[0]);
  if (GetParam().fd_is_the_memory) {
    ASSERT_TRUE(after) << after.error().explain();
    expect_bytes(*after, 0);
    EXPECT_TRUE(provider_->ipc_close(*after));
  } else {
    ASSERT_FALSE(after);
    expect_sentence(after.error());
  }
  // What was open before.
  if (GetParam().opened_stays_whole) {
    expect_bytes(*before, 1);
  } else {
    unsigned char byte = 0;
    const Status got = move(reinterpret_cast<std::uint64_t>(&byte), *before, 1);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, Code::gone);
    expect_sentence(got.error());
    EXPECT_EQ(provider_->identity({*before, 1}), 0u);
    const auto again = open(lent_[1]);
    ASSERT_FALSE(again) << "also while it is open";
    expect_sentence(again.error());
  }
  EXPECT_TRUE(provider_->ipc_close(*before));
}

TEST_P(Ipc, HandlesOfOthersAreRefused) {
  borrow(1);
  for (const char* other : {"host", "cuda", "rocm", "gaudi"}) {
    if (other == std::string(GetParam().provider)) continue;
    auto provider = Provider::open(plugin_of(other, ""));
    ASSERT_TRUE(provider) << provider.error().explain();
    const auto opened = (*provider)->ipc_open(0, lent_[0].handle());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::invalid);
    EXPECT_NE(opened.error().text.find("these bytes are no "), std::string::npos) << opened.error().text;
  }
  strait_ipc_handle bad = lent_[0].handle();
  bad.length_bytes = kBytes * 1000;
  EXPECT_FALSE(provider_->ipc_open(0, bad));
  bad = lent_[0].handle();
  bad.fd = -1;
  const bool needs_fd = lent_[0].handle().fd >= 0;
  const auto bare = open(Lent(bad));
  EXPECT_EQ(bare.has_value(), !needs_fd) << (bare ? "" : bare.error().explain());
  if (bare) {
    EXPECT_TRUE(provider_->ipc_close(*bare));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Ipc, ::testing::ValuesIn(kKinds),
                         [](const auto& about) { return std::string(about.param.kind); });

// From the other process's device to one of this process: over the link, and no byte through host memory.
TEST(IpcLink, FarToNearPassesNoHostMemory) {
  using Counters = std::size_t (*)(char*, std::size_t);
  auto library = sys::Library::open("libstrait-gaudi.so");
  ASSERT_TRUE(library) << library.error().text;
  const auto counters = library->symbol<Counters>("strait_soft_gaudi_counters");
  ASSERT_TRUE(counters);
  const auto counted = [&](const std::string& name) -> std::uint64_t {
    std::string all(16384, '\0');
    all.resize((*counters)(all.data(), all.size()));
    const std::size_t at = ("," + all).find("," + name + "=");
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + name.size() + 1));
  };
  auto opened = Provider::open(plugin_of("gaudi", ""));
  ASSERT_TRUE(opened) << opened.error().explain();
  Provider& provider = **opened;
  Owner owner;
  const Lent lent = owner.make("gaudi", kBytes, 3);
  const auto far = provider.ipc_open(1, lent.handle());
  ASSERT_TRUE(far) << far.error().explain();
  const auto near = provider.allocate(1, kBytes);
  ASSERT_TRUE(near) << near.error().explain();
  const auto move = [&](std::uint64_t to, std::uint64_t from) {
    const auto ticket = provider.start_copy(to, from, kBytes);
    ASSERT_TRUE(ticket) << ticket.error().explain();
    const Status done = provider.wait_copy(*ticket, ipc_soon());
    ASSERT_TRUE(done) << done.error().explain();
  };
  const std::uint64_t host = counted("host_bytes"), link = counted("link_bytes");
  move(*near, *far);
  EXPECT_EQ(counted("host_bytes"), host);
  EXPECT_EQ(counted("link_bytes"), link + kBytes);
  std::vector<unsigned char> seen(kBytes);
  move(reinterpret_cast<std::uint64_t>(seen.data()), *near);
  EXPECT_EQ(seen, ipc_pattern(kBytes, 3));
  // And the other way.
  const auto bytes = ipc_pattern(kBytes, 9);
  move(*near, reinterpret_cast<std::uint64_t>(bytes.data()));
  move(*far, *near);
  EXPECT_EQ(owner.ask("holds 0 9"), "1");
  const auto both = provider.start_copy(*far, *far + 50'000, 100);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, Code::unsupported) << both.error().text;
  EXPECT_FALSE(provider.export_fd({*far, 4096})) << "its owner exports it";
  EXPECT_TRUE(provider.ipc_close(*far));
  EXPECT_TRUE(provider.free(*near));
}

// Host memory to another process's device and back: on the way it takes a bounded part of the nearer device.
TEST(IpcLink, LongCopiesOfHostMemoryStopInPieces) {
  constexpr std::uint64_t kPiece = 4u << 20;
  constexpr std::uint64_t kLong = 5 * kPiece + 12'345;
  auto opened = Provider::open(plugin_of("gaudi", ""));
  ASSERT_TRUE(opened) << opened.error().explain();
  Provider& provider = **opened;
  Owner owner;
  const Lent lent = owner.make("gaudi", kLong, 3);
  const auto far = provider.ipc_open(1, lent.handle());
  ASSERT_TRUE(far) << far.error().explain();
  const std::uint64_t room = provider.free_bytes(1);
  const auto move = [&](std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    const auto ticket = provider.start_copy(to, from, bytes);
    ASSERT_TRUE(ticket) << ticket.error().explain();
    // All of it is queued, and nothing given back before somebody asks.
    EXPECT_GE(room - provider.free_bytes(1), std::min(bytes, 2 * kPiece));
    EXPECT_LE(room - provider.free_bytes(1), 2 * kPiece) << "of " << bytes;
    const Status done = provider.wait_copy(*ticket, ipc_soon());
    ASSERT_TRUE(done) << done.error().explain();
    EXPECT_EQ(provider.free_bytes(1), room);
  };
  std::vector<unsigned char> seen(kLong);
  const auto at = [](const auto& bytes) { return reinterpret_cast<std::uint64_t>(bytes.data()); };
  move(at(seen), *far, kLong);
  EXPECT_EQ(seen, ipc_pattern(kLong, 3));
  for (const std::uint64_t bytes : {kLong, kPiece, kPiece + 1, std::uint64_t{2} * kPiece, std::uint64_t{100}}) {
    const auto sent = ipc_pattern(bytes, static_cast<unsigned>(bytes % 250) + 1);
    move(*far, at(sent), bytes);
    std::vector<unsigned char> back(bytes);
    move(at(back), *far, bytes);
    EXPECT_EQ(back, sent);
  }
  EXPECT_TRUE(provider.ipc_close(*far));
}

// No IMEX channel, no fabric: not permitted, says the driver (an H200, too).
TEST(IpcFabric, IsNotSupportedHere) {
  Owner owner;
  EXPECT_EQ(owner.ask("fabric"), "800");
}

}  // namespace
}  // namespace strait::buffer

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--owner") == 0) return strait::buffer::serve_owner();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
