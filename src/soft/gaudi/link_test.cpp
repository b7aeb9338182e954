// SPDX-License-Identifier: Apache-2.0
// The links between software Gaudis: all to all, within a process and between processes; no byte passes host memory.
#include "soft/gaudi/driver.hpp"
#include "soft/gaudi/testing.hpp"

namespace strait::soft::gaudi::testing {
namespace {

constexpr std::size_t kFarBytes = 300'000;  // what a peer's "link" makes

std::string link_name(std::uint32_t from, std::uint32_t to, const char* what) {
  return fmt::format("link{}to{}_{}", from, to, what);
}

class Link : public GaudiTest {
 protected:
  void SetUp() override { ASSERT_EQ(SYN(Initialize)(), syn::kSuccess); }
  void TearDown() override {
    EXPECT_EQ(SYN(Destroy)(), syn::kSuccess);
    GaudiTest::TearDown();
  }
  struct End {
    syn::DeviceId device = 0;
    syn::StreamHandle stream = nullptr;
    std::uint64_t memory = 0;
  };
  static End take(std::uint32_t module, std::uint64_t bytes) {
    End end;
    EXPECT_EQ(SYN(DeviceAcquireByModuleId)(&end.device, module), syn::kSuccess);
    EXPECT_EQ(SYN(StreamCreateGeneric)(&end.stream, end.device, 0), syn::kSuccess);
    EXPECT_EQ(SYN(DeviceMalloc)(end.device, bytes, 0, 0, &end.memory), syn::kSuccess);
    return end;
  }
  static void through_host(const End& end, std::vector<std::byte>& bytes, std::int32_t direction) {
    const auto host = reinterpret_cast<std::uint64_t>(bytes.data());
    const bool in = direction == syn::kHostToDram;
    EXPECT_EQ(SYN(HostMap)(end.device, bytes.size(), bytes.data()), syn::kSuccess);
    EXPECT_EQ(SYN(MemCopyAsync)(end.stream, in ? host : end.memory, bytes.size(), in ? end.memory : host, direction),
              syn::kSuccess);
    EXPECT_EQ(SYN(StreamSynchronize)(end.stream), syn::kSuccess);
    EXPECT_EQ(SYN(HostUnmap)(end.device, bytes.data()), syn::kSuccess);
  }
  static void put(const End& end, std::vector<std::byte> bytes) { through_host(end, bytes, syn::kHostToDram); }
  static std::vector<std::byte> get(const End& end, std::size_t size) {
    std::vector<std::byte> bytes(size);
    through_host(end, bytes, syn::kDramToHost);
    return bytes;
  }
  static syn::Answer over(const End& by, std::uint64_t from, std::uint64_t to, std::uint64_t size) {
    const syn::Answer asked = SYN(MemCopyAsync)(by.stream, from, size, to, syn::kDramToDram);
    return asked != syn::kSuccess ? asked : SYN(StreamSynchronize)(by.stream);
  }
};

TEST_F(Link, EveryGaudiReachesEveryOther) {
  constexpr std::size_t kBytes = 100'000;
  std::vector<End> ends;
  for (std::uint32_t i = 0; i < 4; ++i) ends.push_back(take(i, kBytes));
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      const auto bytes = pattern(kBytes, 10 * from + to);
      put(ends[from], bytes);
      const std::uint64_t host = counter("host_bytes"), local = counter("local_bytes");
      const std::uint64_t link = counter(link_name(from, to, "bytes"));
      const std::uint64_t transfers = counter(link_name(from, to, "transfers"));
      EXPECT_EQ(over(ends[from], ends[from].memory, ends[to].memory, kBytes), syn::kSuccess);
      EXPECT_EQ(counter("host_bytes"), host) << "no byte passed host memory";
      EXPECT_EQ(counter("local_bytes"), local);
      EXPECT_EQ(counter(link_name(from, to, "bytes")), link + kBytes);
      EXPECT_EQ(counter(link_name(from, to, "transfers")), transfers + 1);
      EXPECT_EQ(get(ends[to], kBytes), bytes) << from << " to " << to;
    }
  }
}

TEST_F(Link, LeadsToADeviceOfAnotherProcess) {
  Peer peer;
  const auto far = static_cast<std::uint64_t>(peer.ask("link 3 7"));
  ASSERT_NE(far, 0u);
  const End near = take(0, kFarBytes);
  const std::uint64_t host = counter("host_bytes"), in = counter("link3to0_bytes"), out = counter("link0to3_bytes");
  const std::int64_t host_there = peer.ask("host_bytes");
  EXPECT_EQ(over(near, far, near.memory, kFarBytes), syn::kSuccess) << "read over the link";
  EXPECT_EQ(counter("host_bytes"), host);
  EXPECT_EQ(peer.ask("host_bytes"), host_there) << "no byte passed host memory, there neither";
  EXPECT_EQ(counter("link3to0_bytes"), in + kFarBytes);
  EXPECT_EQ(get(near, kFarBytes), pattern(kFarBytes, 7));

  put(near, pattern(kFarBytes, 8));
  EXPECT_EQ(over(near, near.memory + 1, far + 1, 10), syn::kSuccess) << "bytes, not pages";
  EXPECT_EQ(over(near, near.memory, far, kFarBytes), syn::kSuccess) << "written over the link";
  EXPECT_EQ(counter("link0to3_bytes"), out + kFarBytes + 10);
  EXPECT_EQ(peer.ask("holds 8"), 1);
  EXPECT_EQ(peer.ask("release 3"), syn::kSuccess);
  EXPECT_EQ(over(near, far, near.memory, 64), syn::kInvalidArgument) << "released";
  peer.end();
}

TEST_F(Link, WhatIsNotThereIsRefused) {
  Peer peer;
  const auto far = static_cast<std::uint64_t>(peer.ask("link 3 7"));
  ASSERT_NE(far, 0u);
  const End near = take(0, kFarBytes);
  const std::uint64_t refused = counter("copies_refused");
  EXPECT_EQ(over(near, far, near.memory, std::uint64_t{32} << 20), syn::kInvalidArgument) << "past the pool";
  EXPECT_EQ(over(near, far, far + 4096, 64), syn::kInvalidArgument) << "neither end is of this process";
  EXPECT_EQ(over(near, Driver::dram_base(2), near.memory, 64), syn::kInvalidArgument) << "nobody has that one open";
  EXPECT_EQ(over(near, Driver::dram_base(3) + 5 * kSegmentStride, near.memory, 64), syn::kInvalidArgument);
  EXPECT_EQ(over(near, UINT64_MAX - 63, near.memory, 64), syn::kInvalidArgument);
  EXPECT_EQ(SYN(MemCopyAsync)(near.stream, far, 64, reinterpret_cast<std::uint64_t>(&refused), syn::kDramToHost),
            syn::kMappingNotFound)
      << "the host side is not mapped";
  EXPECT_EQ(counter("copies_refused"), refused + 6);
  EXPECT_EQ(peer.ask("reset 3"), 0);
  EXPECT_EQ(over(near, far, near.memory, 64), syn::kInvalidArgument) << "it fell over";
  peer.end();
}

TEST_F(Link, AnOwnerThatDiedIsNoOwner) {
  Peer peer;
  const auto far = static_cast<std::uint64_t>(peer.ask("link 2 7"));
  ASSERT_NE(far, 0u);
  const End near = take(1, 4096);
  EXPECT_EQ(over(near, far, near.memory, 4096), syn::kSuccess);
  peer.kill();  // it tells nobody
  EXPECT_EQ(over(near, far, near.memory, 4096), syn::kInvalidArgument);
  const End next = take(2, 4096);
  EXPECT_EQ(get(next, 4096), std::vector<std::byte>(4096)) << "and the next owner finds nothing of it";
}

}  // namespace
}  // namespace strait::soft::gaudi::testing
