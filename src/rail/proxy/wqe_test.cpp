// SPDX-License-Identifier: Apache-2.0
// Work requests as bytes in a ring: what is understood, and that garbage is refused with a reason.
#include "rail/proxy/wqe.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace strait::rail::proxy {
namespace {
namespace m = wire::mlx5;
using wire::be32;
using wire::be64;

constexpr std::uint32_t kQpn = 0x1234;

class Bytes {
 public:
  explicit Bytes(std::uint32_t blocks) : bytes_(std::size_t{blocks} * m::kBlockBytes) {}
  template <class Segment>
  void put(std::uint64_t offset, const Segment& segment) {
    for (std::size_t i = 0; i < sizeof segment; ++i)
      bytes_[(offset + i) % bytes_.size()] = reinterpret_cast<const std::byte*>(&segment)[i];
  }
  void control(std::uint64_t index, m::Opcode opcode, std::uint32_t ds, std::uint8_t flags = m::kCompletionAlways) {
    m::CtrlSeg segment{};
    segment.opmod_idx_opcode = be32{m::control_word0(0, index, opcode)};
    segment.qpn_ds = be32{m::control_word1(kQpn, ds)};
    segment.fm_ce_se = flags;
    segment.imm = be32{0xdeadbeef};
    put(index * m::kBlockBytes, segment);
  }
  void remote(std::uint64_t offset) { put(offset, m::RaddrSeg{be64{0x7000}, be32{0x99}, be32{0}}); }
  void data(std::uint64_t offset, std::uint32_t count) {
    put(offset, m::DataSeg{be32{count}, be32{0x42}, be64{0x5000}});
  }
  [[nodiscard]] Ring ring() const { return {bytes_.data(), bytes_.size()}; }
  [[nodiscard]] const std::byte* begin() const { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

TEST(ProxyWqe, Write) {
  Bytes bytes(4);
  bytes.control(2, m::Opcode::rdma_write_imm, 3, m::kCompletionAlways | m::kFence | m::kSolicited);
  bytes.remote(2 * 64 + 16);
  bytes.data(2 * 64 + 32, 3000);
  Work work;
  ASSERT_EQ(read_send(bytes.ring(), 2, 1, kQpn, work), nullptr);
  EXPECT_EQ(work.opcode, m::Opcode::rdma_write_imm);
  EXPECT_TRUE(work.signaled && work.fence && work.solicited);
  EXPECT_EQ(be32::from_raw(work.imm_raw).value(), 0xdeadbeefu);
  EXPECT_EQ(work.remote_address, 0x7000u);
  EXPECT_EQ(work.rkey, 0x99u);
  ASSERT_EQ(work.count, 1u);
  EXPECT_EQ(work.parts[0].address, 0x5000u);
  EXPECT_EQ(work.parts[0].lkey, 0x42u);
  EXPECT_EQ(work.total_bytes, 3000u);
  EXPECT_EQ(work.blocks, 1u);
}

TEST(ProxyWqe, IndicesGoOnBeyondTheRing) {
  Bytes bytes(4);
  bytes.control(70001, m::Opcode::nop, 1, 0);
  Work work;
  ASSERT_EQ(read_send(bytes.ring(), 70001, 1, kQpn, work), nullptr);
  EXPECT_FALSE(work.signaled);
  EXPECT_EQ(work.count, 0u);
}

TEST(ProxyWqe, InlineAcrossTheEndIsTwoParts) {
  Bytes bytes(4);
  const std::uint32_t length = 100;
  bytes.control(3, m::Opcode::send, 1 + m::inline_segments(length));
  bytes.put(3 * 64 + 16, m::InlineHeader{be32{m::kInlineFlag | length}});
  Work work;
  ASSERT_EQ(read_send(bytes.ring(), 3, 2, kQpn, work), nullptr);
  EXPECT_EQ(work.total_bytes, length);
  EXPECT_EQ(work.blocks, 2u);
  ASSERT_EQ(work.count, 2u);
  EXPECT_TRUE(work.parts[0].in_ring && work.parts[1].in_ring);
  EXPECT_EQ(work.parts[0].address, reinterpret_cast<std::uintptr_t>(bytes.begin() + 3 * 64 + 20));
  EXPECT_EQ(work.parts[0].length_bytes, 44u);
  EXPECT_EQ(work.parts[1].address, reinterpret_cast<std::uintptr_t>(bytes.begin()));
  EXPECT_EQ(work.parts[1].length_bytes, 56u);
}

TEST(ProxyWqe, Atomics) {
  Bytes bytes(4);
  for (const auto opcode : {m::Opcode::atomic_cs, m::Opcode::atomic_fa}) {
    bytes.control(0, opcode, 4);
    bytes.remote(16);
    bytes.put(32, m::AtomicSeg{be64{7}, be64{9}});
    bytes.data(48, 8);
    Work work;
    ASSERT_EQ(read_send(bytes.ring(), 0, 1, kQpn, work), nullptr);
    EXPECT_EQ(work.operand, 7u);
    EXPECT_EQ(work.compare, 9u);
    bytes.data(48, 4);
    EXPECT_NE(read_send(bytes.ring(), 0, 1, kQpn, work), nullptr);
  }
}

TEST(ProxyWqe, RefusesWithAReason) {
  Bytes bytes(4);
  Work work;
  const auto reason = [&](std::uint32_t published = 4) -> std::string {
    const char* said = read_send(bytes.ring(), 0, published, kQpn, work);
    return said == nullptr ? "" : said;
  };
  bytes.control(0, m::Opcode::send, 0);
  EXPECT_EQ(reason(), "a work request of 0 segments");
  bytes.control(0, m::Opcode::send, 9);
  EXPECT_EQ(reason(2), "the work request is longer than what was published");
  EXPECT_EQ(work.blocks, 2u) << "what is skipped is what was published";
  bytes.control(0, m::Opcode::send, 63);
  EXPECT_EQ(reason(16), "the work request is longer than its ring");
  bytes.control(0, m::Opcode::umr, 1);
  EXPECT_EQ(reason(), "no such operation on a reliable connection");
  bytes.control(0, m::Opcode::atomic_masked_fa, 4);
  EXPECT_EQ(reason(), "no such operation on a reliable connection");
  bytes.control(0, m::Opcode::rdma_read, 1);
  EXPECT_EQ(reason(), "the work request is too short for its opcode");
  bytes.control(0, m::Opcode::rdma_read, 3);
  bytes.data(32, m::kInlineFlag | 4);
  EXPECT_EQ(reason(), "inline data in an operation that cannot carry any");
  bytes.control(0, m::Opcode::send, 2);
  bytes.data(16, m::kInlineFlag | 13);
  EXPECT_EQ(reason(), "inline data runs past the end of its work request");
  bytes.data(16, 0);
  EXPECT_EQ(reason(), "a data segment of 0 bytes, which to hardware is 2^31");
  bytes.data(16, m::kMaxMessageBytes + 1);
  EXPECT_EQ(reason(), kTooLong);
  bytes.control(1, m::Opcode::send, 1);
  std::memcpy(const_cast<std::byte*>(bytes.begin()), bytes.begin() + 64, 64);
  EXPECT_EQ(reason(), "the control segment names another index");
  EXPECT_STREQ(read_send(bytes.ring(), 1, 1, kQpn + 1, work), "the control segment names another queue pair");
}

TEST(ProxyWqe, Receives) {
  Bytes bytes(4);  // strides of 64 bytes: four segments
  bytes.data(64, 100);
  bytes.data(80, 200);
  bytes.put(96, m::DataSeg{be32{0}, be32{m::kTerminatorLkey}, be64{0}});
  Work work;
  ASSERT_EQ(read_receive(bytes.ring(), 5, 64, work), nullptr);
  EXPECT_EQ(work.count, 2u);
  EXPECT_EQ(work.total_bytes, 300u);
  bytes.put(64, m::DataSeg{be32{0}, be32{1}, be64{0}});
  EXPECT_NE(read_receive(bytes.ring(), 1, 64, work), nullptr);
  bytes.data(64, m::kInlineFlag | 1);
  EXPECT_NE(read_receive(bytes.ring(), 1, 64, work), nullptr);
}

// Whatever lies in the ring: no more parts than there are places, no step of 0 blocks, no part outside the ring that
// claims to be in it.
TEST(ProxyWqe, SurvivesGarbage) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> words(64 * 64 / 8);
  for (int round = 0; round < 20'000; ++round) {
    for (std::uint64_t& word : words) word = random();
    const Ring ring(words.data(), words.size() * 8);
    const std::uint64_t index = random() % 64;
    // The control segment mostly right, so that the rest is reached.
    m::CtrlSeg control{};
    std::memcpy(&control, ring.at(index * 64), sizeof control);
    static constexpr m::Opcode kOpcodes[] = {m::Opcode::send, m::Opcode::rdma_write, m::Opcode::rdma_read,
                                             m::Opcode::atomic_cs};
    control.opmod_idx_opcode = be32{m::control_word0(0, index, kOpcodes[random() % 4])};
    control.qpn_ds = be32{m::control_word1(kQpn, static_cast<std::uint32_t>(random() % 64))};
    std::memcpy(const_cast<std::byte*>(ring.at(index * 64)), &control, sizeof control);
    Work work;
    (void)read_send(ring, index, static_cast<std::uint32_t>(1 + random() % 64), kQpn, work);
    ASSERT_LE(work.count, kMaxParts);
    ASSERT_GE(work.blocks, 1u);
    for (const Part& part : work.used()) {
      if (!part.in_ring) continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(words.data());
      ASSERT_GE(part.address, begin);
      ASSERT_LE(part.address + part.length_bytes, begin + words.size() * 8);
    }
  }
}

}  // namespace
}  // namespace strait::rail::proxy
