// SPDX-License-Identifier: Apache-2.0
// The message format: round trips, golden bytes, and a parser that refuses everything else.
#include "rendezvous/codec.hpp"

#include <gtest/gtest.h>

#include <random>

#include "strait/c.h"
#include "strait/plugin.h"

namespace strait::rendezvous {
namespace {

static_assert(sizeof(NicAddress) == sizeof(strait_nic_address));
static_assert(sizeof(TicketBytes) == STRAIT_TICKET_BYTES);

using Frame = std::vector<std::byte>;

template <std::size_t N>
std::array<std::byte, N> filled(unsigned start) {
  std::array<std::byte, N> bytes{};
  for (std::size_t i = 0; i < N; ++i) bytes[i] = static_cast<std::byte>(start + i);
  return bytes;
}

Target some_target() {
  return {3, 0x1122334455667788, 5, 0x7e0000001000, 1 << 20, 0x1a2b01, 0x1a2b02, 0x7f0000002000};
}

std::vector<Body> one_of_each() {
  return {
      Hello{1, filled<32>(1)},
      Challenge{1, filled<32>(2)},
      Proof{filled<32>(3)},
      ConnectRequest{filled<64>(4), 0x123456, LaneKind::extra, 256, filled<16>(5), 4711, filled<16>(6), "trainer-0"},
      ConnectReply{filled<64>(7), 0x654321, filled<16>(8), -1, filled<16>(9), "cache-1"},
      Ready{42},
      Done{},
      Lookup{"kv/0"},
      LookupReply{some_target()},
      Redeem{filled<128>(10)},
      RedeemReply{some_target()},
      Bye{},
      Refusal{Code::gone, "no such name", "try another"},
      Describe{},
      Described{R"({"memories":[]})"},
      Count{},
      Counted{R"({"counters":{}})"}};
}

Frame frame_of(const Body& body, std::uint32_t id = 77) {
  return encode({id, body}).value();
}

std::string refusal(const Frame& frame) {
  const auto parsed = parse(frame);
  return parsed ? "accepted" : parsed.error().text;
}

TEST(Codec, EveryMessageComesBackAsItWas) {
  for (const Body& body : one_of_each()) {
    const Frame frame = frame_of(body);
    const auto parsed = parse(frame);
    ASSERT_TRUE(parsed) << type_name(body) << ": " << parsed.error().text;
    EXPECT_EQ(parsed->id, 77u);
    EXPECT_STREQ(type_name(parsed->body), type_name(body));
    EXPECT_EQ(encode(*parsed).value(), frame) << type_name(body);
  }
  const auto request = std::get<ConnectRequest>(parse(frame_of(one_of_each()[3]))->body);
  EXPECT_EQ(request.nic, filled<64>(4));
  EXPECT_EQ(request.qpn, 0x123456u);
  EXPECT_EQ(request.lane, LaneKind::extra);
  EXPECT_EQ(request.depth, 256u);
  EXPECT_EQ(request.pid, 4711);
  EXPECT_EQ(request.host, filled<16>(6));
  EXPECT_EQ(request.name, "trainer-0");
  EXPECT_EQ(std::get<ConnectReply>(parse(frame_of(one_of_each()[4]))->body).pid, -1);
  const Target target = std::get<LookupReply>(parse(frame_of(one_of_each()[8]))->body).target;
  EXPECT_EQ(target.region_id, 0x1122334455667788u);
  EXPECT_EQ(target.signal_rkey, 0x1a2b02u);
  EXPECT_EQ(target.signal_address, 0x7f0000002000u);
}

// Written by hand from docs/rendezvous.md, not by the encoder.
TEST(Codec, GoldenBytes) {
  const unsigned char lookup[] = {0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 9, 0, 4, 'k', 'v', '/', '0'};
  const auto bytes = std::as_bytes(std::span(lookup));
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->id, 9u);
  EXPECT_EQ(std::get<Lookup>(parsed->body).name, "kv/0");
  EXPECT_EQ(frame_of(Lookup{"kv/0"}, 9), Frame(bytes.begin(), bytes.end()));
  const unsigned char refused[] = {0, 0, 0, 15, 0, 13, 0, 0, 0, 0, 0, 1, 6, 0, 2, 'n', 'o', 0, 0};
  EXPECT_EQ(std::get<Refusal>(parse(std::as_bytes(std::span(refused)))->body).error().text, "no");
  EXPECT_EQ(std::get<Refusal>(parse(std::as_bytes(std::span(refused)))->body).error().code, Code::gone);
}

TEST(Codec, EveryTruncationIsRefused) {
  for (const Body& body : one_of_each()) {
    const Frame whole = frame_of(body);
    for (std::size_t kept = 0; kept < whole.size(); ++kept) {
      Frame cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept));
      EXPECT_FALSE(parse(cut)) << type_name(body) << " " << kept;
      if (kept < kHeaderBytes) continue;
      cut[2] = static_cast<std::byte>((kept - 4) >> 8);  // now the length agrees, and only a field is short
      cut[3] = static_cast<std::byte>((kept - 4) & 0xff);
      EXPECT_TRUE(refusal(cut).ends_with("malformed: it ends in the middle of a field"))
          << type_name(body) << refusal(cut);
    }
  }
}

TEST(Codec, BytesAfterTheLastFieldAreRefused) {
  for (const Body& body : one_of_each()) {
    Frame longer = frame_of(body);
    longer.push_back(std::byte{0});
    EXPECT_TRUE(refusal(longer).starts_with("this is not a rendezvous message: it says it has ")) << type_name(body);
    const std::size_t length = longer.size() - 4;
    longer[2] = static_cast<std::byte>(length >> 8);
    longer[3] = static_cast<std::byte>(length & 0xff);
    EXPECT_EQ(refusal(longer),
              fmt::format("a {} message is malformed: there are bytes after its last field", type_name(body)));
  }
}

TEST(Codec, LengthsAreBoundedBeforeAnythingIsRead) {
  const auto start = [](std::uint32_t length) {
    return Frame{static_cast<std::byte>(length >> 24), static_cast<std::byte>(length >> 16),
                 static_cast<std::byte>(length >> 8), static_cast<std::byte>(length)};
  };
  EXPECT_EQ(frame_bytes({}).value(), 0u);
  EXPECT_EQ(frame_bytes(Frame(3)).value(), 0u);
  EXPECT_EQ(frame_bytes(start(8)).value(), 12u);
  EXPECT_EQ(frame_bytes(start(65532)).value(), 65536u);
  EXPECT_EQ(frame_bytes(start(65533)).error().text,
            "this is not a rendezvous message: it says it has 65537 bytes, allowed are 65536");
  EXPECT_EQ(frame_bytes(start(0xffffffff)).error().code, Code::invalid);
  EXPECT_EQ(frame_bytes(start(7)).error().text, "this is not a rendezvous message: 11 bytes hold no header");
  EXPECT_EQ(frame_bytes(start(300), kMaxGreetingBytes).error().code, Code::invalid);
}

TEST(Codec, UnknownTypesAreToldApartAndKeepTheirId) {
  for (const unsigned type : {0u, 18u, 200u}) {
    Frame frame = frame_of(Done{}, 31);
    frame[5] = static_cast<std::byte>(type);
    std::uint32_t id = 0;
    const auto parsed = parse(frame, &id);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, Code::unsupported);
    EXPECT_EQ(parsed.error().text, fmt::format("message type {} is not known to this version (3)", type));
    EXPECT_EQ(id, 31u);
  }
  Frame frame = frame_of(Done{});
  frame[7] = std::byte{1};
  EXPECT_EQ(refusal(frame), "a message is malformed: bytes 6 and 7 are not zero");
}

TEST(Codec, FieldsOutOfBounds) {
  Frame lane = frame_of(one_of_each()[3]);
  lane[kHeaderBytes + 64 + 4] = std::byte{2};
  EXPECT_EQ(refusal(lane), "a connect_request message is malformed: a number is out of range");
  for (const unsigned code : {0u, 10u}) {
    Frame bad = frame_of(Refusal{Code::gone, "x", ""});
    bad[kHeaderBytes] = static_cast<std::byte>(code);
    EXPECT_EQ(refusal(bad), "a refusal message is malformed: a number is out of range");
  }
  Frame control = frame_of(Refusal{Code::gone, "x", ""});
  control[kHeaderBytes + 3] = std::byte{0x1b};  // the start of a terminal escape
  EXPECT_EQ(refusal(control), "a refusal message is malformed: a text has control characters");

  EXPECT_EQ(encode({1, Lookup{""}}).error().text, "a lookup message cannot be sent: a name is empty or too long");
  EXPECT_EQ(encode({1, Lookup{std::string(256, 'n')}}).error().code, Code::invalid);
  EXPECT_TRUE(encode({1, Lookup{std::string(255, 'n')}}));
  Frame empty = frame_of(Lookup{"n"});
  empty.pop_back();
  empty[3] = std::byte{10};
  empty[kHeaderBytes + 1] = std::byte{0};
  EXPECT_EQ(refusal(empty), "a lookup message is malformed: a name is empty or too long");
}

TEST(Codec, LongAndDirtyTextsOfRefusalsAreCutAndCleaned) {
  const Frame frame = frame_of(Refusal{Code::system, std::string(70'000, 'x'), "first\nsecond\x1b[2J"});
  ASSERT_LE(frame.size(), kMaxFrameBytes);
  const auto seen = std::get<Refusal>(parse(frame)->body);
  EXPECT_EQ(seen.text.size(), kMaxTextBytes);
  EXPECT_EQ(seen.remedy, "first second [2J");
}

// Whatever arrives: an answer, no crash, and nothing is accepted that would not be written the same way.
TEST(Codec, GarbageAndMutationsNeverPassAsSomethingElse) {
  std::mt19937 random(11);
  const auto bodies = one_of_each();
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    Frame frame = frame_of(bodies[random() % bodies.size()]);
    for (unsigned n = 1 + random() % 4; n-- > 0;) frame[random() % frame.size()] = static_cast<std::byte>(random());
    if (const auto parsed = parse(frame)) {
      ++accepted;
      EXPECT_EQ(encode(*parsed).value(), frame);
    }
    Frame noise(random() % 200);
    for (std::byte& each : noise) each = static_cast<std::byte>(random());
    EXPECT_FALSE(parse(noise));
  }
  EXPECT_GT(accepted, 100) << "most flips hit opaque bytes: otherwise this test tests the length only";
}

}  // namespace
}  // namespace strait::rendezvous
