// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/translation.hpp"

#include <gtest/gtest.h>

#include "soft/cassini/engine_testing.hpp"

namespace strait::soft::cassini {
namespace {

using bench::Bytes;
using bench::Rig;
using wire::ReturnCode;

TEST(CassiniTranslation, AnAccessReachesOverDescriptorsThatFollowEachOther) {
  Rig client;
  const std::uint64_t more = Rig::kIova + 65536;
  client.map(more, 4096, 4096, wire::kMapRead);
  client.map(more + 4096, 0, 4096, wire::kMapRead);
  Extents out;
  ASSERT_EQ(translate(*client.lni, Rig::kLac, more + 100, 5000, false, out), ReturnCode::ok);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].address, 4096u + 100);
  EXPECT_EQ(out[0].bytes, 3996u);
  EXPECT_EQ(out[1].address, 0u);
  EXPECT_EQ(out[1].bytes, 1004u);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, more + 100, 8192, false, out), ReturnCode::no_translation);
}

TEST(CassiniTranslation, WhatCannotBeReachedSaysWhy) {
  Rig client;
  Extents out;
  EXPECT_EQ(translate(*client.lni, 5, Rig::kIova, 8, false, out), ReturnCode::invalid_ac);
  EXPECT_EQ(translate(*client.lni, 8, Rig::kIova, 8, false, out), ReturnCode::invalid_ac);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, Rig::kIova - 1, 8, false, out), ReturnCode::no_translation);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, Rig::kIova + 65529, 8, false, out), ReturnCode::no_translation);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, ~std::uint64_t{0} - 3, 8, false, out), ReturnCode::no_translation);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, 1, 0, false, out), ReturnCode::ok) << "no byte is touched";
}

TEST(CassiniTranslation, PermissionIsTheDescriptors) {
  Rig client;
  const std::uint64_t read_only = 0x9000000;
  const std::uint64_t write_only = 0xa000000;
  client.map(read_only, 0, 4096, wire::kMapRead);
  Md* const md = client.map(write_only, 0, 4096, wire::kMapWrite);
  Extents out;
  EXPECT_EQ(translate(*client.lni, Rig::kLac, read_only, 8, false, out), ReturnCode::ok);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, read_only, 8, true, out), ReturnCode::page_perm_error);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, write_only, 8, true, out), ReturnCode::ok);
  EXPECT_EQ(translate(*client.lni, Rig::kLac, write_only, 8, false, out), ReturnCode::page_perm_error);
  md->dead = true;
  EXPECT_EQ(translate(*client.lni, Rig::kLac, write_only, 8, true, out), ReturnCode::no_translation);
}

Extents whole(Bytes& bytes, std::uint64_t length) {
  Extents out;
  out.push_back({.memory = &bytes, .address = 0, .direct = bytes.direct(0, length), .bytes = length});
  return out;
}

TEST(CassiniTranslation, BytesMoveOnceWhereOneSideIsDirect) {
  for (const bool from_shared : {true, false}) {
    for (const bool to_shared : {true, false}) {
      constexpr std::uint64_t kLength = 200000;
      Bytes from(kLength);
      Bytes to(kLength);
      from.shared = from_shared;
      to.shared = to_shared;
      for (std::uint64_t i = 0; i < kLength; ++i) *from.at(i) = static_cast<std::byte>(i * 7);
      ASSERT_EQ(move(whole(from, kLength), whole(to, kLength), kLength), ReturnCode::ok);
      EXPECT_EQ(std::memcmp(from.at(0), to.at(0), kLength), 0);
      const bool bounced = !from_shared && !to_shared;
      EXPECT_EQ(from.reads, from_shared ? 0u : (bounced ? 4u : 1u));
      EXPECT_EQ(to.writes, to_shared ? 0u : (bounced ? 4u : 1u));
    }
  }
}

TEST(CassiniTranslation, MemoryThatIsGoneIsAnAnswer) {
  Bytes from(64);
  Bytes to(64);
  to.shared = false;
  to.gone = true;
  EXPECT_EQ(move(whole(from, 64), whole(to, 64), 64), ReturnCode::no_translation);
  EXPECT_EQ(move(whole(from, 8), whole(from, 64), 16), ReturnCode::no_translation) << "a list too short";
}

TEST(CassiniTranslation, PartsAndManyPieces) {
  Bytes bytes(4096);
  Extents many;
  for (std::uint64_t i = 0; i < 10; ++i) {
    many.push_back({.memory = &bytes, .address = i * 100, .direct = bytes.at(i * 100), .bytes = 10});
  }
  ASSERT_EQ(many.size(), 10u);
  EXPECT_EQ(many[9].address, 900u);
  const Extents some = part(many, 25, 30);
  ASSERT_EQ(some.size(), 4u);
  EXPECT_EQ(some[0].address, 205u);
  EXPECT_EQ(some[0].bytes, 5u);
  EXPECT_EQ(some[3].bytes, 5u);
  EXPECT_TRUE(part(many, 100, 5).empty());
  char text[30];
  for (std::uint64_t i = 0; i < 100; ++i) *bytes.at(i / 10 * 100 + i % 10) = static_cast<std::byte>(i);
  ASSERT_EQ(read(some, text, sizeof text), ReturnCode::ok);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(text[i], 25 + i);
}

}  // namespace
}  // namespace strait::soft::cassini
