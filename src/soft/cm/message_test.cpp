// SPDX-License-Identifier: Apache-2.0
// The codec against bytes that are placed by hand from the tables of the specification, against itself with random
// contents, and against input that must be refused. What tshark thinks of it is in tests/interop.
#include "soft/cm/message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "soft/cm/testing.hpp"

namespace strait::soft::cm {
namespace {

using testing::telling_messages;

unsigned at(const Mad& mad, std::size_t offset) {
  return std::to_integer<unsigned>(mad[24 + offset]);
}
std::uint64_t number(const Mad& mad, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | at(mad, offset + i);
  return value;
}

TEST(Message, ComesBackAsItWasWritten) {
  for (const Message& message : telling_messages()) {
    SCOPED_TRACE(name_of(message.body));
    const Mad mad = write(message);
    Message again;
    ASSERT_EQ(parse(mad, again), Refusal::none);
    EXPECT_EQ(again, message);
  }
}

// Any 232 bytes are some message: reading and writing them again changes reserved bits at most, and the second time
// nothing at all.
TEST(Message, WhatWasReadIsWrittenTheSame) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    Mad mad = write(Message{random(), Rtu{}});
    mad[17] = static_cast<std::byte>(0x10 + round % 11);
    for (std::size_t i = 24; i < mad.size(); ++i) mad[i] = static_cast<std::byte>(random());
    Message first, second;
    ASSERT_EQ(parse(mad, first), Refusal::none);
    const Mad written = write(first);
    ASSERT_EQ(parse(written, second), Refusal::none);
    ASSERT_EQ(first, second);
    ASSERT_EQ(write(second), written);
  }
}

// Offsets and bit positions of table "REQ Message Contents", byte by byte.
TEST(Message, ReqHasItsFieldsWhereTheTableSays) {
  const Message message = telling_messages()[0];
  const Req& req = std::get<Req>(message.body);
  const Mad mad = write(message);
  const unsigned char header[] = {1, 7, 2, 3, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(mad.data(), header, sizeof header), 0);
  EXPECT_EQ(mad[16], std::byte{0});
  EXPECT_EQ(mad[17], std::byte{0x10});
  EXPECT_EQ(number(mad, 0, 4), req.local_comm_id);
  EXPECT_EQ(number(mad, 4, 4), 0u);
  EXPECT_EQ(number(mad, 8, 8), req.service_id);
  EXPECT_EQ(number(mad, 16, 8), req.ca_guid);
  EXPECT_EQ(number(mad, 28, 4), req.qkey);
  EXPECT_EQ(number(mad, 32, 3), req.qpn);
  EXPECT_EQ(at(mad, 35), req.responder_resources);
  EXPECT_EQ(at(mad, 39), req.initiator_depth);
  EXPECT_EQ(at(mad, 43), 0x14u << 3 | 3u << 1 | 1u);
  EXPECT_EQ(number(mad, 44, 3), req.starting_psn);
  EXPECT_EQ(at(mad, 47), 0x13u << 3 | 5u);
  EXPECT_EQ(number(mad, 48, 2), req.pkey);
  EXPECT_EQ(at(mad, 50), 5u << 4 | 6u);
  EXPECT_EQ(at(mad, 51), 15u << 4 | 1u << 3 | 1u);
  EXPECT_EQ(number(mad, 52, 4), 0xffffffffu);
  EXPECT_EQ(number(mad, 56 + 12, 4), 0x0a000001u);
  EXPECT_EQ(number(mad, 72 + 12, 4), 0x0a000002u);
  EXPECT_EQ(number(mad, 88, 4), 0xabcdeu << 12 | 0x12u);
  EXPECT_EQ(at(mad, 92), 0x68u);
  EXPECT_EQ(at(mad, 93), 0x40u);
  EXPECT_EQ(at(mad, 94), 9u << 4 | 1u << 3);
  EXPECT_EQ(at(mad, 95), 0x12u << 3);
  EXPECT_EQ(at(mad, 140 + 36), 0x5au);
}

TEST(Message, OthersHaveTheirFieldsWhereTheTablesSay) {
  const auto messages = telling_messages();
  for (const Message& message : messages) {
    const Mad mad = write(message);
    SCOPED_TRACE(name_of(message.body));
    if (const auto* rep = std::get_if<Rep>(&message.body)) {
      EXPECT_EQ(mad[17], std::byte{0x13});
      EXPECT_EQ(number(mad, 4, 4), rep->remote_comm_id);
      EXPECT_EQ(number(mad, 12, 3), rep->qpn);
      EXPECT_EQ(number(mad, 20, 3), rep->starting_psn);
      EXPECT_EQ(at(mad, 24), rep->responder_resources);
      EXPECT_EQ(at(mad, 25), rep->initiator_depth);
      EXPECT_EQ(at(mad, 26), 15u << 3 | 1u << 1 | 1u);
      EXPECT_EQ(at(mad, 27), 6u << 5 | 1u << 4);
      EXPECT_EQ(number(mad, 28, 8), rep->ca_guid);
      EXPECT_EQ(at(mad, 36), 0x77u);
    } else if (const auto* rej = std::get_if<Rej>(&message.body)) {
      EXPECT_EQ(mad[17], std::byte{0x12});
      EXPECT_EQ(at(mad, 8), 1u << 6);
      EXPECT_EQ(at(mad, 9), 3u << 1);
      EXPECT_EQ(number(mad, 10, 2), rej->reason);
      EXPECT_EQ(at(mad, 12), 0x31u);
      EXPECT_EQ(at(mad, 84), 0x41u);
    } else if (std::get_if<Mra>(&message.body)) {
      EXPECT_EQ(mad[17], std::byte{0x11});
      EXPECT_EQ(at(mad, 8), 1u << 6);
      EXPECT_EQ(at(mad, 9), 0x15u << 3);
    } else if (const auto* dreq = std::get_if<Dreq>(&message.body)) {
      EXPECT_EQ(mad[17], std::byte{0x15});
      EXPECT_EQ(number(mad, 8, 3), dreq->remote_qpn);
    } else if (const auto* sidr = std::get_if<SidrReq>(&message.body)) {
      EXPECT_EQ(mad[17], std::byte{0x17});
      EXPECT_EQ(number(mad, 0, 4), sidr->request_id);
      EXPECT_EQ(number(mad, 4, 2), sidr->pkey);
      EXPECT_EQ(number(mad, 8, 8), sidr->service_id);
    } else if (const auto* answer = std::get_if<SidrRep>(&message.body)) {
      EXPECT_EQ(mad[17], std::byte{0x18});
      EXPECT_EQ(at(mad, 4), answer->status);
      EXPECT_EQ(number(mad, 8, 3), answer->qpn);
      EXPECT_EQ(number(mad, 12, 8), answer->service_id);
      EXPECT_EQ(number(mad, 20, 4), answer->qkey);
      EXPECT_EQ(at(mad, 96), 0x61u);
    } else if (const auto* apr = std::get_if<Apr>(&message.body)) {
      EXPECT_EQ(mad[17], std::byte{0x1a});
      EXPECT_EQ(at(mad, 9), apr->status);
    }
  }
}

TEST(Message, RefusesWhatIsNotForIt) {
  const Mad good = write(Message{1, Rtu{1, 2, {}}});
  Message out;
  EXPECT_EQ(parse(good, out), Refusal::none);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_EQ(parse(std::span(good).first(bytes), out), Refusal::wrong_size);
  const auto with = [&](std::size_t offset, unsigned value) {
    Mad bad = good;
    bad[offset] = static_cast<std::byte>(value);
    return parse(bad, out);
  };
  EXPECT_EQ(with(0, 2), Refusal::wrong_version);
  EXPECT_EQ(with(1, 3), Refusal::wrong_class);
  EXPECT_EQ(with(2, 1), Refusal::wrong_version);
  EXPECT_EQ(with(3, 1), Refusal::wrong_method);
  EXPECT_EQ(with(17, 0x0f), Refusal::unknown_attribute);
  EXPECT_EQ(with(17, 0x1b), Refusal::unknown_attribute);
  EXPECT_EQ(with(16, 1), Refusal::unknown_attribute);
}

TEST(IpHeader, ComesBackAndHasTheShapeOfTheAnnex) {
  std::array<std::byte, kIpHeaderBytes> bytes;
  const IpHeader four{0x1234, IpAddress::v4(10, 1, 2, 3), IpAddress::v4(10, 1, 2, 4)};
  write_ip_header(four, bytes);
  EXPECT_EQ(bytes[0], std::byte{0});
  EXPECT_EQ(bytes[1], std::byte{0x40});
  EXPECT_EQ(bytes[2], std::byte{0x12});
  EXPECT_EQ(bytes[15], std::byte{0});  // not the mapped form: twelve zero bytes
  EXPECT_EQ(bytes[16], std::byte{10});
  EXPECT_EQ(bytes[35], std::byte{4});
  EXPECT_EQ(parse_ip_header(bytes), four);

  const IpHeader six{1, IpAddress::parse("fd00::1").value(), IpAddress::parse("fd00::2").value()};
  write_ip_header(six, bytes);
  EXPECT_EQ(bytes[1], std::byte{0x60});
  EXPECT_EQ(parse_ip_header(bytes), six);

  EXPECT_FALSE(parse_ip_header(std::span(bytes).first(35)));
  bytes[1] = std::byte{0x50};
  EXPECT_FALSE(parse_ip_header(bytes));
  bytes[1] = std::byte{0x40};
  bytes[0] = std::byte{1};
  EXPECT_FALSE(parse_ip_header(bytes));
}

}  // namespace
}  // namespace strait::soft::cm
