// SPDX-License-Identifier: Apache-2.0
// Our encoder and our CQE reader against bytes that libmlx5 wrote and read.
#include "golden_libmlx5.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "rig.hpp"

namespace {

using namespace paper;
using namespace strait::device;
using strait::wire::be32;

const Remote kRemote{0xabcdef, 0x44556677};
const Remote kAligned{0xabcde8, 0x44556677};
const Piece kPiece{0x7f0000001000, 0x200, 0x00112233};
const Piece kResult{0x7f0000002008, 8, 0x00112233};
const Piece kList[4] = {{0x1000, 0x10, 1}, {0x2000, 0, 2}, {0x3000, 0x30, 3}, {0x4000, 0x40000000 - 0x40, 4}};

std::vector<std::uint8_t> pattern() {
  std::vector<std::uint8_t> p(256);
  for (unsigned i = 0; i < 256; ++i) p[i] = static_cast<std::uint8_t>(0x40 + i);
  return p;
}

template <Sharing S>
std::map<std::string, std::function<Pending(SendRing&)>> posts() {
  static const std::vector<std::uint8_t> pay = pattern();
  static const std::vector<std::uint8_t> joined = {0x40, 0x41, 0x42, 0x43, 0x44, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9};
  static const Piece empty{0x1000, 0, 1};
  return {
      {"write", [](SendRing& r) { return post_write<S>(r, kRemote, kPiece, kSignaled); }},
      {"write_inline12", [](SendRing& r) { return post_write_inline<S>(r, kRemote, pay.data(), 12, kNoFlags); }},
      {"write_inline8", [](SendRing& r) { return post_write_inline<S>(r, kRemote, pay.data(), 8, kSignaled); }},
      {"write_inline60", [](SendRing& r) { return post_write_inline<S>(r, kRemote, pay.data(), 60, kSignaled); }},
      {"send_imm", [](SendRing& r) { return post_send_imm<S>(r, kPiece, be32{0x01020304}, kSignaled | kSolicited); }},
      {"read_fenced", [](SendRing& r) { return post_read<S>(r, kRemote, kPiece, kFenced | kSignaled); }},
      {"fetch_add", [](SendRing& r) { return post_fetch_add<S>(r, kAligned, 0x1122334455667788, kResult, kSignaled); }},
      {"compare_swap",
       [](SendRing& r) {
         return post_compare_swap<S>(r, kAligned, 0x1122334455667788, 0x99aabbccddeeff00, kResult, kSignaled);
       }},
      {"write_3_of_4_pieces", [](SendRing& r) { return post_write<S>(r, kRemote, kList, 4, kNoFlags); }},
      {"send_2_of_3_pieces", [](SendRing& r) { return post_send<S>(r, kList, 3, kSignaled); }},
      {"write_imm_empty",
       [](SendRing& r) { return post_write_imm<S>(r, kRemote, empty, be32{0xcafef00d}, kSignaled); }},
      {"send_invalidate", [](SendRing& r) { return post_send_invalidate<S>(r, kList[0], 0x55667788, kSignaled); }},
      {"send_inline60_wraps", [](SendRing& r) { return post_send_inline<S>(r, pay.data(), 60, kSignaled); }},
      {"send_inline_5_and_6",
       [](SendRing& r) { return post_send_inline<S>(r, joined.data(), joined.size(), kSignaled); }},
  };
}

template <Sharing S>
void compare_with_libmlx5() {
  const auto all = posts<S>();
  ASSERT_EQ(golden::wqes().size(), all.size());
  for (const golden::Wqe& g : golden::wqes()) {
    SCOPED_TRACE(g.name);
    SendRig rig(6, g.index, golden::kQpn);
    ASSERT_TRUE(rig.opened);
    const Pending p = all.at(g.name)(rig.ring);
    ASSERT_TRUE(p.ok());
    EXPECT_EQ(p.start, g.index);
    ring_doorbell<S>(rig.ring);
    EXPECT_EQ(rig.sent(), g.record);
    for (std::size_t i = 0; i < g.bytes.size(); ++i) {
      if (i >= g.undefined.begin && i < g.undefined.end) continue;
      const std::size_t at = (g.index % 64 * 64 + i) % rig.memory.size();
      ASSERT_EQ(rig.memory.data()[at], g.bytes[i]) << "byte " << i;
    }
    if (S == kOne) {
      EXPECT_EQ(std::memcmp(&rig.doorbell, g.bytes.data(), 8), 0) << "the doorbell is the control segment's beginning";
    } else {
      mlx5::Doorbell bell;
      std::memcpy(&bell, &rig.doorbell, 8);
      EXPECT_EQ(bell.index(), g.record) << "the doorbell has the next index";
      EXPECT_EQ(bell.qpn(), golden::kQpn);
    }
  }
}

TEST(Golden, OneThreadWritesWhatLibmlx5Writes) {
  compare_with_libmlx5<kOne>();
}
TEST(Golden, ManyThreadsWriteWhatLibmlx5Writes) {
  compare_with_libmlx5<kMany>();
}

// The worked example of the format's description: index 0x41, QP 0xa1b2.
TEST(Golden, WorkedExample) {
  const std::uint8_t want[48] = {0, 0, 0x41, 8, 0, 0xa1, 0xb2, 3,    0,    0,    0,    8,    0, 0, 0,    0,
                                 0, 0, 0,    0, 0, 0xab, 0xcd, 0xef, 0x44, 0x55, 0x66, 0x77, 0, 0, 0,    0,
                                 0, 0, 2,    0, 0, 0x11, 0x22, 0x33, 0,    0,    0x7f, 0,    0, 0, 0x10, 0};
  SendRig rig(7, 0x41, 0xa1b2);
  ASSERT_TRUE(post_write<kOne>(rig.ring, kRemote, kPiece, kSignaled).ok());
  EXPECT_EQ(rig.doorbell, 0u) << "posting does not ring";
  ring_doorbell<kOne>(rig.ring);
  EXPECT_EQ(std::memcmp(rig.memory.data() + 0x41 * 64, want, 48), 0);
  EXPECT_EQ(rig.sent(), 0x42u);
  EXPECT_EQ(std::memcmp(&rig.doorbell, want, 8), 0);
}

TEST(Golden, ReceivesAreWhatLibmlx5Writes) {
  Guarded memory(64 * 4, 0xee);
  mlx5::QueueRecord record{};
  ReceiveRing ring{};
  ASSERT_TRUE(open_receive_ring(ring, {memory.data(), 2, 6, &record, nullptr, 0}));
  const Piece some[3] = {{0x5000, 0x50, 5}, {0x6000, 0, 6}, {0x7000, 0x70, 7}};
  const Piece full[3] = {{0x5000, 0x50, 5}, {0x6000, 0x60, 6}, {0x7000, 0x70, 7}};
  ASSERT_TRUE(post_receive<kOne>(ring, some, 3).ok());
  ASSERT_TRUE(post_receive<kOne>(ring, nullptr, 0).ok());
  ASSERT_TRUE(post_receive<kOne>(ring, full, 3).ok());
  publish_receives<kOne>(ring);
  EXPECT_EQ(record.receive.value(), 3u);
  // What libmlx5 leaves alone we leave alone too, so even its undefined bytes are equal.
  ASSERT_EQ(golden::receives().size(), 3u * 64);
  for (std::size_t i = 0; i < golden::receives().size(); ++i)
    ASSERT_EQ(memory.data()[i], golden::receives()[i]) << "byte " << i;
  EXPECT_TRUE(memory.intact());
}

TEST(Golden, CqesMeanWhatLibmlx5Says) {
  const std::map<std::string, mlx5::Syndrome> words = {
      {"success", mlx5::Syndrome::none},
      {"local length error", mlx5::Syndrome::local_length},
      {"local QP operation error", mlx5::Syndrome::local_qp_operation},
      {"local protection error", mlx5::Syndrome::local_protection},
      {"Work Request Flushed Error", mlx5::Syndrome::flushed},
      {"memory management operation error", mlx5::Syndrome::memory_window_bind},
      {"bad response error", mlx5::Syndrome::bad_response},
      {"local access error", mlx5::Syndrome::local_access},
      {"remote invalid request error", mlx5::Syndrome::remote_invalid_request},
      {"remote access error", mlx5::Syndrome::remote_access},
      {"remote operation error", mlx5::Syndrome::remote_operation},
      {"transport retry counter exceeded", mlx5::Syndrome::transport_retry_exceeded},
      {"RNR retry counter exceeded", mlx5::Syndrome::rnr_retry_exceeded},
      {"aborted error", mlx5::Syndrome::remote_aborted},
  };
  for (std::uint32_t bytes : {64u, 128u}) {
    CqRig cq(5, bytes);
    for (const golden::Cqe& g : golden::cqes()) {
      SCOPED_TRACE(g.status);
      mlx5::Cqe entry;
      ASSERT_EQ(g.bytes.size(), 64u);
      std::memcpy(&entry, g.bytes.data(), 64);
      cq.write(entry);
      Completion c{};
      const Polled polled = poll(cq.ring, c);
      const bool ok = std::string(g.status) == "success";
      EXPECT_EQ(polled, ok ? Polled::done : Polled::error);
      EXPECT_EQ(c.syndrome, words.at(g.status));
      EXPECT_EQ(c.vendor_syndrome, g.vendor);
      EXPECT_EQ(c.qpn, golden::kQpn);
      if (ok) {
        EXPECT_EQ(c.byte_count, g.byte_len) << "2^31 and more is a length, not a negative number";
        EXPECT_EQ(c.imm.value(), g.imm);
      }
    }
  }
}

}  // namespace
