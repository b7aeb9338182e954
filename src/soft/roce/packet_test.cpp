// SPDX-License-Identifier: Apache-2.0
// The codec against published packets, against itself for every opcode, and against input that must be refused.
#include "soft/roce/packet.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "soft/roce/testing.hpp"

namespace strait::soft::roce {
namespace {

using namespace wire::roce;
using testing::bth_of;
using testing::Bytes;
using testing::from_hex;
using testing::kGoldenPackets;

// A packet of any opcode with every field that the opcode has set to something telling.
Headers telling(Opcode opcode) {
  const Shape& shape = shape_of(opcode);
  Headers h;
  h.opcode = opcode;
  if (shape.has_xrceth) h.xrc_srqn = 0x123456;
  h.solicited = true;
  h.ack_req = true;
  h.becn = true;
  h.fecn = true;
  h.pkey = kLimitedPkey;
  h.dest_qpn = 0xabcdef;
  h.psn = 0xfedcba;
  h.mig_req = false;
  if (shape.has_reth || shape.has_atomic) {
    h.va = 0x1122334455667788;
    h.rkey = 0x99aabbcc;
  }
  if (shape.has_reth) h.dma_length = 0x7fffffff;
  if (shape.has_aeth) {
    h.syndrome = 0x61;
    h.msn = 0x123456;
  }
  if (shape.has_atomic) {
    h.swap_or_add = 0x0102030405060708;
    h.compare = 0xf1f2f3f4f5f6f7f8;
  }
  if (shape.has_atomic_ack) h.original = 0xa1a2a3a4a5a6a7a8;
  if (shape.has_imm) h.imm_raw = 0xdeadbeef;
  if (shape.has_ieth) h.inval_rkey = 0x0badcafe;
  if (shape.has_deth) {
    h.qkey = 0x80010000;
    h.src_qpn = 0x654321;
  }
  return h;
}

Bytes packet_of(const Headers& headers, std::size_t payload_bytes) {
  Bytes bytes(kMaxHeaderBytes);
  bytes.resize(write_headers(headers, bytes.data()));
  for (std::size_t i = 0; i < payload_bytes; ++i) bytes.push_back(static_cast<std::byte>(i + 1));
  bytes.resize(bytes.size() + headers.pad + kIcrcBytes);
  return bytes;
}

TEST(Packet, EveryOpcodeComesBackAsItWasWritten) {
  int known = 0;
  for (unsigned code = 0; code < 256; ++code) {
    const auto opcode = static_cast<Opcode>(code);
    const Shape& shape = shape_of(opcode);
    SCOPED_TRACE(opcode_name(opcode));
    EXPECT_EQ(std::string(opcode_name(opcode)) != "unknown", shape.known);
    Headers h = telling(opcode);
    std::byte untouched[kMaxHeaderBytes + 8] = {};
    if (!shape.known) {
      EXPECT_EQ(write_headers(h, untouched), 0U);
      EXPECT_EQ(untouched[1], std::byte{0});
      continue;
    }
    ++known;
    EXPECT_EQ(shape.first + shape.middle + shape.last + shape.only, 1);
    EXPECT_LE(shape.header_bytes, kMaxHeaderBytes);
    const std::size_t payload = shape.may_carry_payload() ? 5 : 0;
    h.pad = pad_of(payload);
    const Bytes bytes = packet_of(h, payload);
    EXPECT_EQ(bytes.size(), shape.header_bytes + payload + h.pad + kIcrcBytes);
    Packet packet;
    ASSERT_EQ(parse(bytes, packet), Drop::none);
    EXPECT_EQ(static_cast<const Headers&>(packet), h);
    EXPECT_EQ(packet.payload.data(), bytes.data() + shape.header_bytes);
    EXPECT_EQ(packet.payload.size(), payload);
    EXPECT_EQ(peek_dest_qpn(bytes), h.dest_qpn);
  }
  EXPECT_EQ(known, 23 + 12 + 2 + 1 + 23);
}

TEST(Packet, ParsesPublishedPackets) {
  Packet p;
  const Bytes write = from_hex(kGoldenPackets[0].hex);
  ASSERT_EQ(parse(bth_of(write), p), Drop::none);
  EXPECT_EQ(p.opcode, Opcode::rc_write_only);
  EXPECT_EQ(p.dest_qpn, 0x11U);
  EXPECT_EQ(p.psn, 3U);
  EXPECT_TRUE(p.ack_req);
  EXPECT_TRUE(p.mig_req);
  EXPECT_EQ(p.va, 0x1000U);
  EXPECT_EQ(p.rkey, 0x1234U);
  EXPECT_EQ(p.dma_length, 3U);
  EXPECT_EQ(p.payload.size(), 3U);
  EXPECT_EQ(std::memcmp(p.payload.data(), "xyz", 3), 0);

  const Bytes cnp = from_hex(kGoldenPackets[2].hex);
  ASSERT_EQ(parse(bth_of(cnp), p), Drop::none);
  EXPECT_EQ(p.opcode, Opcode::cnp);
  EXPECT_TRUE(p.becn);
  EXPECT_FALSE(p.fecn);
  EXPECT_EQ(p.dest_qpn, 0x118U);

  const Bytes uc = from_hex(kGoldenPackets[3].hex);
  ASSERT_EQ(parse(bth_of(uc), p), Drop::none);
  EXPECT_EQ(p.opcode, Opcode::uc_send_only);
  EXPECT_EQ(p.dest_qpn, 211U);
  EXPECT_EQ(p.psn, 13571856U);
  EXPECT_EQ(p.payload.size(), 18U);
}

TEST(Packet, WritesPublishedHeaders) {
  for (const auto& golden : kGoldenPackets) {
    const Bytes ip = from_hex(golden.hex);
    const auto bytes = bth_of(ip);
    Packet p;
    ASSERT_EQ(parse(bytes, p), Drop::none) << golden.name;
    std::byte again[kMaxHeaderBytes];
    const std::size_t count = write_headers(p, again);
    EXPECT_EQ(std::memcmp(again, bytes.data(), count), 0) << golden.name;
  }
}

TEST(Packet, HasTheHeadersOfTheTable) {
  const auto bytes = [](Opcode o) { return static_cast<int>(shape_of(o).header_bytes) - 12; };
  EXPECT_EQ(bytes(Opcode::rc_send_first), 0);
  EXPECT_EQ(bytes(Opcode::rc_send_last_imm), 4);
  EXPECT_EQ(bytes(Opcode::rc_send_only_inval), 4);
  EXPECT_EQ(bytes(Opcode::rc_write_first), 16);
  EXPECT_EQ(bytes(Opcode::rc_write_middle), 0);
  EXPECT_EQ(bytes(Opcode::rc_write_last_imm), 4);
  EXPECT_EQ(bytes(Opcode::rc_write_only_imm), 20);
  EXPECT_EQ(bytes(Opcode::rc_read_request), 16);
  EXPECT_EQ(bytes(Opcode::rc_read_response_first), 4);
  EXPECT_EQ(bytes(Opcode::rc_read_response_middle), 0);
  EXPECT_EQ(bytes(Opcode::rc_read_response_last), 4);
  EXPECT_EQ(bytes(Opcode::rc_read_response_only), 4);
  EXPECT_EQ(bytes(Opcode::rc_ack), 4);
  EXPECT_EQ(bytes(Opcode::rc_atomic_ack), 12);
  EXPECT_EQ(bytes(Opcode::rc_compare_swap), 28);
  EXPECT_EQ(bytes(Opcode::ud_send_only), 8);
  EXPECT_EQ(bytes(Opcode::ud_send_only_imm), 12);
  EXPECT_EQ(bytes(Opcode::cnp), 16);
}

Drop drop_of(const Bytes& bytes) {
  Packet packet;
  return parse(bytes, packet);
}

TEST(Packet, RefusesWhatItCannotBe) {
  Headers h;
  h.opcode = Opcode::rc_write_only;
  h.dma_length = 8;
  const Bytes good = packet_of(h, 8);
  ASSERT_EQ(drop_of(good), Drop::none);
  for (std::size_t n = 0; n < 12 + 16 + 4; ++n) {
    EXPECT_EQ(drop_of(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n))), Drop::too_short) << n;
  }
  Bytes bad = good;
  bad[1] |= std::byte{1};
  EXPECT_EQ(drop_of(bad), Drop::bad_version);
  bad = good;
  bad[0] = std::byte{0x15};
  EXPECT_EQ(drop_of(bad), Drop::unknown_opcode);
  bad = good;
  bad[3] = std::byte{0xfe};
  EXPECT_EQ(drop_of(bad), Drop::bad_pkey);
  bad = good;
  bad.push_back(std::byte{0});  // the length is no multiple of four
  EXPECT_EQ(drop_of(bad), Drop::bad_pad);

  h.pad = 1;  // more pad than body
  EXPECT_EQ(drop_of([&] {
              Bytes bytes = packet_of(h, 0);
              bytes.pop_back();
              return bytes;
            }()),
            Drop::bad_pad);
  for (const Opcode none : {Opcode::rc_ack, Opcode::rc_read_request, Opcode::rc_fetch_add, Opcode::rc_atomic_ack}) {
    EXPECT_EQ(drop_of(packet_of(telling(none), 4)), Drop::bad_length) << opcode_name(none);
  }
}

TEST(Packet, EveryReasonHasItsOwnText) {
  std::set<std::string> texts;
  std::set<std::string> names;
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    texts.insert(drop_text(static_cast<Drop>(i)));
    names.insert(drop_name(static_cast<Drop>(i)));
  }
  EXPECT_EQ(texts.size(), kDropReasons);
  EXPECT_EQ(names.size(), kDropReasons);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_EQ(texts.count("unknown reason"), 0U);
}

TEST(Wire, SequenceNumbersGoRound) {
  EXPECT_EQ(psn_add(0xfffffe, 3), 1U);
  EXPECT_EQ(psn_diff(1, 0xfffffe), 3);
  EXPECT_EQ(psn_diff(0xfffffe, 1), -3);
  EXPECT_EQ(psn_diff(0x7fffff, 0), 0x7fffff);
  EXPECT_EQ(psn_diff(0x800000, 0), -0x800000);
}

TEST(Wire, TimersAndMtusFollowTheirTables) {
  constexpr double kMilliseconds[32] = {655.36, .01,   .02,   .03,    .04,    .06,    .08,    .12,
                                        .16,    .24,   .32,   .48,    .64,    .96,    1.28,   1.92,
                                        2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                        40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (std::uint8_t code = 0; code < 32; ++code) {
    EXPECT_DOUBLE_EQ(static_cast<double>(rnr_timer_ns(code)), kMilliseconds[code] * 1e6) << int{code};
    EXPECT_EQ(rnr_timer_code(rnr_timer_ns(code)), code);
  }
  EXPECT_EQ(rnr_timer_code(~std::uint64_t{0}), 0);
  EXPECT_EQ(ack_timeout_ns(0), 0U);
  EXPECT_EQ(ack_timeout_ns(1), 8192U);
  EXPECT_EQ(ack_timeout_ns(31), std::uint64_t{4096} << 31);
  for (std::uint8_t code = 1; code <= 5; ++code) EXPECT_EQ(pmtu_code(pmtu_bytes(code)), code);
  EXPECT_EQ(pmtu_code(1500), 0);
  EXPECT_EQ(pmtu_bytes(6), 0U);
  EXPECT_EQ(largest_pmtu(1500), 1024U);
  EXPECT_EQ(largest_pmtu(4200), 4096U);
  EXPECT_EQ(largest_pmtu(65536), 4096U);
  EXPECT_EQ(largest_pmtu(300), 0U);
}

TEST(Address, TextAndBack) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "::", "::1", "fd00::7", "1:2:3:4:5:6:7:8", "fe80::1:0:0:2",
                           "1::", "2001:db8::a:0:0:1", "0:1:2:3:4:5:6:7"}) {
    const auto address = IpAddress::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
  EXPECT_EQ(IpAddress::parse("::ffff:1.2.3.4").value(), IpAddress::v4(1, 2, 3, 4));
  EXPECT_EQ(IpAddress::parse("0:0:0:0:0:ffff:102:304").value().text(), "1.2.3.4");
  EXPECT_TRUE(IpAddress::parse("0.0.0.0").value().is_any());
  EXPECT_TRUE(IpAddress::parse("::").value().is_any());
  EXPECT_TRUE(IpAddress::parse("fe80::1").value().is_link_local());
  EXPECT_TRUE(IpAddress::parse("ff02::1").value().is_multicast());
  for (const char* text :
       {"", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", ":", ":::", "1::2::3",
        "12345::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "g::", "host", "1.2.3.4::"}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
}

}  // namespace
}  // namespace strait::soft::roce
