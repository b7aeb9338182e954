// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC-SHA256 against the published examples: FIPS 180-4 (NIST's example files) and RFC 4231.
#include "base/mac.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strait {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes) {
    text.push_back("0123456789abcdef"[std::to_integer<unsigned>(each) >> 4]);
    text.push_back("0123456789abcdef"[std::to_integer<unsigned>(each) & 15]);
  }
  return text;
}

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(hex(sha256(bytes_of(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes_of("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
                                "klmnopqrlmnopqrsmnopqrstnopqrstu"))),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hex(sha256(bytes_of(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The padding changes shape at 55, 56, 63 and 64 bytes. Expected values from coreutils' sha256sum over that many 'x'.
TEST(Sha256, LengthsAroundTheBlock) {
  const std::vector<std::pair<std::size_t, const char*>> expected = {
      {55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
      {56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
      {57, "ae14a2563ccf969d99aca69ce6bb74981f734bbf9f655f73b8f06db68cab5217"},
      {63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
      {64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
      {65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
      {119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
      {120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"},
      {128, "24da1b81d0b16df6428eee73c69fcb2a93c76bc6df706f0c6670fe6bfe800464"},
  };
  for (const auto& [length, digest] : expected) {
    EXPECT_EQ(hex(sha256(bytes_of(std::string(length, 'x')))), digest) << length;
  }
}

struct Case {
  std::string key;
  std::string data;
  const char* mac;
};

TEST(HmacSha256, Rfc4231) {
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting.push_back(c);
  const std::vector<Case> cases = {
      {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
       "hashed "
       "before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const Case& each : cases) EXPECT_EQ(hex(hmac_sha256(bytes_of(each.key), bytes_of(each.data))), each.mac);
  // Case 5 of the RFC publishes the first 128 bits only.
  EXPECT_EQ(hex(hmac_sha256(bytes_of(std::string(20, '\x0c')), bytes_of("Test With Truncation"))).substr(0, 32),
            "a3b6167473100ee06e0c796c2955552b");
}

TEST(SameDigest, EveryByteAndTheLengthCount) {
  const Digest one = sha256(bytes_of("one"));
  EXPECT_TRUE(same_digest(one, one));
  for (std::size_t i = 0; i < one.size(); ++i) {
    Digest other = one;
    other[i] ^= std::byte{0x80};
    EXPECT_FALSE(same_digest(one, other)) << i;
  }
  EXPECT_FALSE(same_digest(one, std::span(one).first(31)));
  EXPECT_TRUE(same_digest({}, {}));
}

}  // namespace
}  // namespace strait
