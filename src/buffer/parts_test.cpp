// SPDX-License-Identifier: Apache-2.0
// The parts that vendors' providers share: opened handles, PCI spellings, the port made of copies.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "buffer/config.hpp"
#include "buffer/copy_port.hpp"
#include "buffer/opened_handles.hpp"
#include "buffer/pci.hpp"
#include "sys/mapping.hpp"

namespace strait::buffer {
namespace {

struct Opener {
  int opens = 0;
  int closes = 0;
  OpenedHandles handles;
  explicit Opener(std::size_t idle) : handles(idle) {}

  Result<std::uint64_t> open(std::uint64_t base, std::uint64_t identity, std::uint64_t offset = 0) {
    OpenedHandles::Key key;
    key.base = base;
    key.identity = identity;
    return handles.open(key, offset, 10, [&]() -> Result<OpenedHandles::Opened> {
      ++opens;
      return OpenedHandles::Opened{base + 0x1'0000'0000, 4096, [this] { ++closes; }};
    });
  }
};

TEST(OpenedHandles, AreOpenedOnceAndKeptUpToABound) {
  Opener opener(2);
  const std::uint64_t first = opener.open(0x1000, 1, 5).value();
  EXPECT_EQ(first, 0x1'0000'1005u);
  EXPECT_EQ(opener.open(0x1000, 1, 5).value(), first);
  EXPECT_EQ(opener.opens, 1);
  EXPECT_TRUE(opener.handles.close(first));
  EXPECT_TRUE(opener.handles.close(first));
  EXPECT_FALSE(opener.handles.close(first)) << "closed more often than opened";
  EXPECT_EQ(opener.closes, 0) << "kept for the next time";
  (void)opener.open(0x1000, 1).value();
  EXPECT_EQ(opener.opens, 1);
  ASSERT_TRUE(opener.handles.close(0x1'0000'1000));
  for (const std::uint64_t base : {0x2000u, 0x3000u, 0x4000u}) {
    ASSERT_TRUE(opener.handles.close(opener.open(base, 1).value()));
  }
  EXPECT_EQ(opener.closes, 2) << "two are kept, the least recently used went";
  EXPECT_EQ(opener.handles.counts().open_now, 2u);
  opener.handles.clear();
  EXPECT_EQ(opener.closes, opener.opens);
}

TEST(OpenedHandles, AnotherIdentityAtTheSameAddressReplacesAnIdleOne) {
  Opener opener(8);
  ASSERT_TRUE(opener.handles.close(opener.open(0x1000, 1).value()));
  (void)opener.open(0x1000, 2).value();
  EXPECT_EQ(opener.opens, 2);
  EXPECT_EQ(opener.closes, 1);
  (void)opener.open(0x1000, 3).value();
  EXPECT_EQ(opener.closes, 1) << "the second is in use";
}

TEST(OpenedHandles, RangesPastTheEndAreRefusedAndNothingIsKeptOpenForThem) {
  Opener opener(0);
  EXPECT_EQ(opener.open(0x1000, 1, 4090).error().code, Code::invalid);
  EXPECT_EQ(opener.closes, 1);
  EXPECT_EQ(opener.open(0x1000, 1, UINT64_MAX).error().code, Code::invalid);
}

TEST(FillPci, ReadsNodeAndLargestPrefetchableWindow) {
  const auto root = std::filesystem::temp_directory_path() / fmt::format("strait-pci-{}", ::getpid());
  const auto folder = root / "sys/bus/pci/devices/0000:3b:00.0";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "numa_node") << "1\n";
  std::ofstream(folder / "resource") << "0x0000000091000000 0x0000000091ffffff 0x0000000000040200\n"
                                        "0x0000380000000000 0x0000383fffffffff 0x000000000014220c\n"
                                        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  strait_device_info info{};
  fill_pci("0000:3b:00.0", info, root.string());
  EXPECT_STREQ(info.pci_address, "0000:3b:00.0");
  EXPECT_EQ(info.numa_known, 1u);
  EXPECT_EQ(info.numa_node, 1);
  EXPECT_EQ(info.bar_bytes, std::uint64_t{256} << 30);
  strait_device_info nothing{};
  fill_pci("0000:ff:00.0", nothing, root.string());
  EXPECT_EQ(nothing.numa_known, 0u);
  EXPECT_EQ(nothing.bar_bytes, 0u);
  std::filesystem::remove_all(root);
}

// A port onto plain bytes.
class BytesPort final : public CopyPort {
 public:
  alignas(8) unsigned char bytes[64] = {};
  bool child = false;
  int pinned = 0;
  int* last = nullptr;
  ~BytesPort() override {
    unpin_all();
    if (last != nullptr) *last = pinned;
  }

 protected:
  Status read(std::uint64_t address, void* into, std::uint64_t length_bytes) override {
    if (address + length_bytes > sizeof bytes) return fail(Code::invalid, "past the end");
    std::memcpy(into, bytes + address, length_bytes);
    return {};
  }
  Status write(std::uint64_t address, const void* from, std::uint64_t length_bytes) override {
    if (address + length_bytes > sizeof bytes) return fail(Code::invalid, "past the end");
    std::memcpy(bytes + address, from, length_bytes);
    return {};
  }
  bool in_child() const override { return child; }
  Result<std::uint64_t> start(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) override {
    STRAIT_CHECK(to < sizeof bytes ? write(to, reinterpret_cast<const void*>(from), length_bytes)
                                   : read(from, reinterpret_cast<void*>(to), length_bytes));
    return 7;
  }
  std::int32_t done(std::uint64_t ticket) override {
    return ticket == 7 ? 1 : -static_cast<std::int32_t>(Code::invalid);
  }
  const char* kind() const override { return "bytes"; }
  Result<std::uint64_t> pin(Range pages) override {
    if (pages.length_bytes > 1 << 20) return fail(Code::limit, "too much");
    ++pinned;
    return pages.address;
  }
  Status unpin(Range) override {
    --pinned;
    return {};
  }
};

TEST(CopyPort, CopiesGoOnByThemselvesAndHostPagesArePinnedOnce) {
  const std::vector<std::byte> host(3 * sys::page_bytes());
  void* const first = const_cast<std::byte*>(host.data());
  int left = -1;
  {
    BytesPort memory;
    const strait_memory_port port = memory.port();
    EXPECT_EQ(port.prepare(port.context, first, sys::page_bytes()), 0);
    EXPECT_EQ(port.prepare(port.context, first, sys::page_bytes()), 0);
    EXPECT_EQ(memory.pinned, 1) << "the same pages, once";
    port.release(port.context, first);
    EXPECT_EQ(memory.pinned, 1);
    port.release(port.context, first);
    port.release(port.context, first);
    EXPECT_EQ(memory.pinned, 0);
    EXPECT_NE(port.prepare(port.context, first, 2 << 20), 0);
    EXPECT_EQ(memory.pinned, 0);
    EXPECT_EQ(port.prepare(port.context, first, sys::page_bytes()), 0);
    memory.last = &left;

    std::uint64_t word = 0x0123456789abcdef;
    std::uint64_t ticket = 0;
    ASSERT_EQ(port.start_write(port.context, 16, &word, 8, &ticket), 0);
    EXPECT_EQ(port.done(port.context, ticket), 1);
    std::uint64_t seen = 0;
    ASSERT_EQ(port.start_read(port.context, 16, &seen, 8, &ticket), 0);
    EXPECT_EQ(port.done(port.context, ticket), 1);
    EXPECT_EQ(seen, word);
    EXPECT_EQ(port.start_read(port.context, 60, &seen, 8, &ticket), static_cast<std::int32_t>(Code::invalid));
    EXPECT_LT(port.done(port.context, 99), 0);
    memory.child = true;
    EXPECT_EQ(port.done(port.context, ticket), -static_cast<std::int32_t>(Code::gone));
    memory.child = false;
  }
  EXPECT_EQ(left, 0) << "what the NIC left is given back with the port";
}

TEST(CopyPort, AtomicsAreAtomicToItsUsers) {
  BytesPort memory;
  const strait_memory_port port = memory.port();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        std::uint64_t old = 0;
        for (int i = 0; i < 5000; ++i) EXPECT_EQ(port.fetch_add(port.context, 8, 8, 1, 0, &old), 0);
      });
    }
  }
  std::uint64_t sum = 0;
  ASSERT_EQ(port.read(port.context, 8, &sum, 8), 0);
  EXPECT_EQ(sum, 20'000u);
  EXPECT_EQ(port.read(port.context, 60, &sum, 8), static_cast<std::int32_t>(Code::invalid));
  memory.child = true;
  EXPECT_EQ(port.read(port.context, 8, &sum, 8), static_cast<std::int32_t>(Code::gone));
}

TEST(ProviderConfig, IsOneNumber) {
  EXPECT_EQ(ProviderConfig::parse("", "x")->ipc_cache, 64u);
  EXPECT_EQ(ProviderConfig::parse("ipc_cache=3", "x")->ipc_cache, 3u);
  for (const char* wrong : {"ipc_cache=", "ipc_cache=-1", "ipc_cache=3x", "ipc_cache=99999999", "cache=3"}) {
    EXPECT_EQ(ProviderConfig::parse(wrong, "x").error().code, Code::invalid) << wrong;
  }
}

}  // namespace
}  // namespace strait::buffer
