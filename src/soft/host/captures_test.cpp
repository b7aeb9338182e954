// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "soft/host/report.hpp"
#include "soft/host/root.hpp"

namespace strait::soft::host {
namespace {

// A block of pcapng: its type, its length, the words, its length.
std::string block(std::uint32_t type, const std::vector<std::uint32_t>& words) {
  const auto bytes = static_cast<std::uint32_t>(12 + 4 * words.size());
  std::vector<std::uint32_t> all{type, bytes};
  all.insert(all.end(), words.begin(), words.end());
  all.push_back(bytes);
  std::string text(bytes, '\0');
  std::memcpy(text.data(), all.data(), bytes);
  return text;
}
std::string header() {
  return block(0x0a0d0d0a, {0x1a2b3c4d, 1, ~0u, ~0u}) + block(1, {101, 0});
}
std::string packet(std::uint64_t time) {
  return block(6, {0, static_cast<std::uint32_t>(time >> 32), static_cast<std::uint32_t>(time), 0, 0});
}

class Captures : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_.path() + kCaptures + name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string joined(std::uint64_t parts) const {
    const std::string file = root_.path() + "/all.pcapng";
    EXPECT_EQ(join_captures(root_.path(), file).value(), parts);
    std::stringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  Root root_ = Root::create().value();
};

TEST_F(Captures, AreInTheOrderOfTheirTimes) {
  const std::uint64_t later = std::uint64_t{1} << 32;
  write("/1.a", header() + packet(5) + packet(8) + packet(later));
  write("/2.b", header() + packet(1) + packet(8) + packet(9));
  write("/3.c", header());
  EXPECT_EQ(joined(3), header() + packet(1) + packet(5) + packet(8) + packet(8) + packet(9) + packet(later));
}

TEST_F(Captures, EndWhereAProcessWasKilled) {
  write("/1.a", header() + packet(2) + packet(4).substr(0, 20));
  write("/2.b", header() + packet(3) + std::string(11, '\xff'));
  EXPECT_EQ(joined(2), header() + packet(2) + packet(3));
}

TEST_F(Captures, AreNotWhatElseLiesThere) {
  std::string wrong_end = packet(1);
  wrong_end[wrong_end.size() - 4] ^= 4;
  write("/0.empty", "");
  write("/1.text", "no capture at all, only a text that is long enough");
  write("/2.b", header() + packet(3) + wrong_end + packet(4));
  write("/3.short", header() + block(6, {1, 2, 3}) + packet(1));
  EXPECT_EQ(joined(2), header() + packet(3));
}

TEST_F(Captures, OfNobodyAreAnEmptyFile) {
  EXPECT_EQ(joined(0), "");
  EXPECT_FALSE(join_captures(root_.path(), "/nowhere/at/all"));
}

}  // namespace
}  // namespace strait::soft::host
